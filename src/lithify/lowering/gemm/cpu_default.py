"""The parameters of matrix multiplication on CPUs that are taken where nothing was measured.

First the register tile that takes least time; then blocks, so that what is read again and again comes from the second
cache. Which operand that is, and how it lies in memory, decides among a few kinds of blocks, a function each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from lithify.lowering.gemm.cpu_case import ROWS_OF_LINES, Case, along_rows, in_parts
from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.gemm.cpu_shares import even, part, up
from lithify.lowering.gemm.cpu_sharing import PIECES, Tiling
from lithify.lowering.gemm.operands import NONE
from lithify.lowering.tuning import Parameters, Problem

# Terms of a block behind OpenCL where the elements of the left operand that they take lie pages apart: they share a few
# lines of the first cache.
_SUM_OF_ONE_SET = 256
# Terms of the sum, and panels, for which a thread packs both operands.
_TERMS_OF_BOTH, _PANELS_OF_BOTH = 512, 8
# Rows of the left operand that are read again and again while a block of a sum is added up.
_ROWS_OF_BLOCK = 1100
# How many times the second cache the sums of a block may take where all columns of a panel stay in it: each sum is met
# once for all terms of a block. Fewer rows at a time pack the panel again: 3 to 4 % of 4096 cubed on Emerald Rapids.
_SUMS_BEYOND = 4
# Of few rows: how many times a block's sums fit the second cache, and the rows of the right operand read at a time.
# Measured on Sapphire Rapids: a single row gains 8 to 18 % by 128 where the last cache holds the operand and loses 7
# where memory gives it; more rows lose 30. The second cache must hold some lines of each meanwhile, what it looks ahead
# for among them, and lines that lie `_SET_APART` bytes from each other share a set. Who has a part of the sum, and so
# the operand from one end to the other, reads few rows: 16 gain 5 to 10 % over 128 there.
_SUMS, _ROWS_AT_ONCE, _ROWS_OF_ONE, _ROWS_OF_MEMORY = 8, 32, 128, 16
_LINES_AHEAD, _SET_APART, _LINE = 32, 128 << 10, 64
# The share of the second cache that rows of a packed left operand take as they pass by. For tile registers, which take
# both operands from there at its full rate, a tile's rows at a time are best: measured on Emerald Rapids, bf16, against
# a sixteenth: 1.07, 0.99 and 1.01 times the rate at 1024, 1536 and 2048 cubed (means of three processes); a sixteenth
# against a fourth: 1.11 and 1.16 at 2048 and 4096 cubed.
_ROWS_SHARE = 1 / 4
# Products of at most so many multiply-adds take so little time on a matrix unit that each thread gets one piece.
_SMALL = 1 << 26


def default(problem: Problem, machine: Machine, instruction: str) -> Parameters:
    """Parameters for a problem by an instruction (or none), whatever a thread may keep for itself."""
    case = Case(problem, machine, instruction)
    tiles = Tiling.of(case)
    blocks = _blocks(case, tiles)
    apart = {"splitK": case.parts} if in_parts(problem, machine) else {}
    return Parameters(
        {
            "outer": blocks.outer,
            "parallel": "outer" if case.g == 1 else "batch" if case.by_batch else "all",
            "mPerBlock": blocks.m,
            "nPerBlock": blocks.n,
            "kPerBlock": case.k if "-whole" in problem.line else blocks.k,
            "mPerThread": tiles.rows,
            "nPerThread": tiles.columns,
            "packA": blocks.pack_a,
            "packB": blocks.pack_b,
            "instruction": instruction,
            **apart,
        }
    )


@dataclass(frozen=True)
class _Blocks:
    """Which loop is outside, the blocks, and where operands are packed."""

    outer: str
    m: int
    n: int
    k: int
    pack_a: str = NONE
    pack_b: str = NONE


def _blocks(case: Case, tiles: Tiling) -> _Blocks:
    straight = along_rows(case.problem, "B")
    if any(case.packed):
        return _packed(case, tiles)
    if case.once:
        return _read_once(case, tiles) if straight else _panel_at_a_time(case, tiles)
    if case.by_rows:
        return _rows_packed(case, tiles)
    if case.stays and (blocks := _as_it_lies(case, tiles)):
        return blocks
    if tiles.wide:
        if case.machine.own_bytes is not None:
            return _columns_in_own_memory(case, tiles)
        return _both(case, tiles) if case.across else _columns_outside(case, tiles)
    if straight and not tiles.many_panels:
        return _rows_outside(case, tiles)
    rows, pack_b = tiles.rows_of(tiles.threads, tiles.all_rows), "thread" if case.packed_by_each else "heap"
    return _Blocks("m", rows, tiles.all_columns, case.k, pack_b=pack_b)


# ---- kinds of blocks -------------------------------------------------------------------------------------------------


def _packed(case: Case, tiles: Tiling) -> _Blocks:
    """Operands that must be packed: columns of the right one stay in the second cache, rows of the left one pass by."""
    pack_a, pack_b = case.packed
    pieces, passing = PIECES, int(_ROWS_SHARE * case.machine.room)  # bytes of rows
    if case.on_tiles is not None:
        pieces, passing = 1 if case.m * case.n * case.k <= _SMALL else 2, 0
    line = case.k * case.stored  # bytes of all terms of a row or a column
    columns = tiles.columns_of(pieces * case.machine.threads, max(tiles.columns, case.machine.room // 2 // line))
    rows = tiles.rows_of(1, max(tiles.rows, passing // line))
    straight = along_rows(case.problem, "B") and not pack_b
    left, right = _heap_or_thread(case) if pack_a else NONE, NONE if straight else "thread"
    return _Blocks("n", rows, columns, case.k, left, right)


def _read_once(case: Case, tiles: Tiling) -> _Blocks:
    """Few rows: the right operand is read along its rows, far at a time, as they lie in memory.

    The sums of a block stay in the second cache meanwhile, beside what is read.
    """
    held = case.machine.room // _SUMS // (case.m * case.bytes("acc"))
    pieces = 1 if case.parts > 1 else case.machine.threads
    columns = tiles.columns_of(pieces, max(tiles.columns, held))
    return _Blocks("n", tiles.all_rows, columns, even(case.k // case.parts, _rows_at_once(case)))


def _panel_at_a_time(case: Case, tiles: Tiling) -> _Blocks:
    """Few rows, and the right operand lies across: one panel is packed, of as many terms as the second cache holds."""
    return _Blocks("n", tiles.all_rows, tiles.columns, even(case.k, case.most_terms(tiles.columns)), pack_b="thread")


def _as_it_lies(case: Case, tiles: Tiling) -> _Blocks | None:
    """The right operand stays in the second cache as it lies in memory; None where it is better packed all the same."""
    if case.shared_out:
        if tiles.wide:
            columns = up(part(case.n, tiles.columns, case.sharing), tiles.columns)
            return _Blocks("n", tiles.all_rows, columns, case.k)
        return _Blocks("m", tiles.rows, tiles.all_columns, case.k)
    if case.by_batch and case.is_near(tiles.columns):
        return _Blocks("n", tiles.all_rows, tiles.columns, case.k)
    if tiles.wide and case.m < tiles.pieces * tiles.rows:
        return _Blocks("n", tiles.all_rows, tiles.columns_of(tiles.pieces, tiles.all_columns), case.k)
    small = case.all_of_b <= case.panel and not case.by_batch
    if tiles.wide and case.rows_meet and not case.by_batch and (small or case.machine.own_bytes is None):
        columns = tiles.columns_of(tiles.threads, tiles.all_columns)
        return _Blocks("n", tiles.rows, columns, case.k, pack_b="thread")
    if small or case.n <= tiles.columns or not tiles.wide:
        return _Blocks("m", tiles.rows_of(tiles.pieces, tiles.all_rows), tiles.all_columns, case.k)
    return None


def _columns_outside(case: Case, tiles: Tiling) -> _Blocks:
    """A panel of the right operand stays in the second cache while all rows pass by; packed by who needs it."""
    terms, element = _terms(case, tiles), case.bytes("acc")
    columns = tiles.columns_of(tiles.pieces, max(tiles.columns, case.panel // (terms * element)))
    sums = _SUMS_BEYOND * case.machine.room // (columns * element)
    rows = tiles.all_rows if terms == case.k else tiles.rows_of(1, sums)
    return _Blocks("n", rows, columns, terms, pack_b="thread")


def _columns_in_own_memory(case: Case, tiles: Tiling) -> _Blocks:
    """As with columns outside; half of what a thread may keep is for the panel, the other for sums and rows."""
    terms, element, half = _terms(case, tiles), case.bytes("acc"), case.machine.room // 2
    most = max(tiles.columns, half // (terms * element))
    rows = tiles.all_rows if terms == case.k else tiles.rows_of(1, max(tiles.rows, half // (2 * most * element)))
    return _Blocks("n", rows, tiles.columns_of(tiles.pieces, most), terms, pack_b="thread")


def _rows_outside(case: Case, tiles: Tiling) -> _Blocks:
    """All columns, of the right operand as it lies: a block of the sum is read from memory for each block of rows."""
    terms = _terms(case, tiles)
    whole = terms == case.k
    rows = tiles.rows_of(tiles.pieces, tiles.all_rows) if whole else tiles.rows_of(case.machine.threads, _ROWS_OF_BLOCK)
    return _Blocks("m", rows, tiles.all_columns, terms)


def _both(case: Case, tiles: Tiling) -> _Blocks:
    """Both operands packed: the left one lies across, and the lines of a tile's terms would come from far each time.

    If that fits, the whole sum at once, the left operand packed once, by all threads.
    """
    element = case.bytes("acc")
    if case.g == 1 and case.k * tiles.columns * element <= case.machine.room // 2:
        columns = tiles.columns_of(tiles.pieces, max(tiles.columns, case.panel // (case.k * element)))
        return _Blocks("n", tiles.all_rows, columns, case.k, "heap", "thread")
    columns = tiles.columns_of(case.machine.threads, _PANELS_OF_BOTH * tiles.columns)
    return _Blocks("n", tiles.rows_of(1, _ROWS_OF_BLOCK), columns, even(case.k, _TERMS_OF_BOTH), "thread", "thread")


def _rows_packed(case: Case, tiles: Tiling) -> _Blocks:
    """Rows of a left operand that lies across, packed by who needs them: they stay while all packed columns pass by."""
    pieces = 1 if case.by_batch else min(tiles.pieces, case.m // ROWS_OF_LINES)
    rows = tiles.rows_of(pieces, case.panel // (case.k * case.bytes("acc")))
    return _Blocks("m", rows, tiles.all_columns, case.k, "thread", _heap_or_thread(case))


# ---- what several of them ask ----------------------------------------------------------------------------------------


def _heap_or_thread(case: Case) -> str:
    """Where an operand is packed for all blocks: a product of a batch has its own."""
    return "heap" if case.g == 1 else "thread"


def _terms(case: Case, tiles: Tiling) -> int:
    """Terms of a block of the sum, in equal blocks: as many as a panel may have.

    Where a thread may keep but so much for itself: those of a panel; all of them where they are not many more.
    """
    if case.machine.own_bytes is None:
        return even(case.k, case.most_terms(tiles.columns))
    line = tiles.columns * case.bytes("acc")
    most = max(1, case.panel // line)
    most = min(most, _SUM_OF_ONE_SET if case.in_one_set else most, max(1, case.machine.room // 2 // line))
    return case.k if 2 * case.k <= 3 * most else even(case.k, most)


def _rows_at_once(case: Case) -> int:
    """Rows of a right operand that is read once: it is read along so many at a time."""
    if case.m > 1:
        return _ROWS_AT_ONCE
    row = case.n * case.bytes("b")
    if case.parts > 1 or row * case.k > case.machine.last:
        return _ROWS_OF_MEMORY
    lines = case.machine.second // _LINE // max(1, gcd(row, _SET_APART) // _LINE)
    return max(_ROWS_OF_MEMORY, min(_ROWS_OF_ONE, lines // _LINES_AHEAD))
