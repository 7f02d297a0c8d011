"""The parameters of matrix multiplication on CPUs that are taken where nothing was measured.

First the register tile that takes least time; then blocks, so that what is read again and again comes from the second
cache. Which operand that is, and how it lies in memory, decides among a few kinds of blocks, a function each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd, inf

from lithify.lang.scalars import SCALARS
from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.gemm.cpu_tile import Results, instruction_tile, register_tiles
from lithify.lowering.gemm.operands import NONE, wants_packing
from lithify.lowering.gemm.problem import lies_across
from lithify.lowering.tuning import Parameters, Problem
from lithify.machine import InstructionRow
from lithify.machine import instruction as instruction_of

# How many packed panels the second cache could hold; fewer terms behind OpenCL where the elements of the left operand
# that they take lie pages apart: they share a few lines of the first cache.
_PANELS, _SUM_OF_ONE_SET, _PAGE = 4, 256, 4096
# Terms of the sum, and panels, for which a thread packs both operands.
_TERMS_OF_BOTH, _PANELS_OF_BOTH = 512, 8
# Rows of the left operand that are read again and again while a block of a sum is added up.
_ROWS_OF_BLOCK = 1100
# Rows of a left operand that lies across and is packed: the processor reads lines in pairs. And the columns for which
# that pays: where three quarters of the second caches hold the operand as it lies, where they do not, and where its
# lines share a few sets besides. Measured on Emerald Rapids (f32): 0.96 for 700 x 200 x 700, 1.2 for 600 x 300 x 600;
# 0.7 for 2000 x 32 x 300, 1.16 for 2000 x 100 x 600; 0.65 for 2048 x 16 x 1024, 1.2 for 4096 x 32 x 1024, 1.6 for 64
# columns.
_ROWS_OF_LINES, _COLUMNS_OF_NEAR, _COLUMNS_OF_FAR, _COLUMNS_OF_MET = 32, 256, 96, 32
# Cycles of an element of the right operand that all threads packed together until each has it in its own cache.
_FROM_ANOTHER = 0.4
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
# Terms that a part of the sum has at least, for each thread one, and more for each row: the results of all parts are
# stored and added. Measured on Emerald Rapids, one row in two parts by two threads: 1.33 times as fast for 768 x 768,
# 1.6 for 1024 x 1024, 1.12 and 1.03 for 2304 and 3072 columns of 768 terms, 1.4 or more for 8192 of 512.
_TERMS_OF_PART, _TERMS_OF_ROW = 128, 32
# Cycles until a line that another core has written may be written: measured on Emerald Rapids by products whose columns
# two threads share, 115 to 230 a row more than by those whose rows they do.
_SHARED_LINE = 130
# Multiply-adds of which other threads would take longer to hear.
_ALONE = 1 << 18
# Pieces for each thread, so that they end at about the same time; and how many times as many there may be for it.
_PIECES, _MORE = 4, 4
# The share of the second cache that rows of a packed left operand take as they pass by. For tile registers, which take
# both operands from there at its full rate, a tile's rows at a time are best: measured on Emerald Rapids, bf16, against
# a sixteenth: 1.07, 0.99 and 1.01 times the rate at 1024, 1536 and 2048 cubed (means of three processes); a sixteenth
# against a fourth: 1.11 and 1.16 at 2048 and 4096 cubed.
_ROWS_SHARE = 1 / 4
# Products of at most so many multiply-adds take so little time on a matrix unit that each thread gets one piece; from
# so many tiles of columns on, the left operand is read often.
_SMALL, _OFTEN = 1 << 26, 8


def default(problem: Problem, machine: Machine, instruction: str) -> Parameters:
    """Parameters for a problem by an instruction (or none), whatever a thread may keep for itself."""
    case = _Case(problem, machine, instruction)
    rows, columns = case.tile
    blocks = _blocks(case)
    apart = {"splitK": case.parts} if in_parts(problem, machine) else {}
    return Parameters(
        {
            "outer": blocks.outer,
            "parallel": "outer" if case.g == 1 else "batch" if case.by_batch else "all",
            "mPerBlock": blocks.m,
            "nPerBlock": blocks.n,
            "kPerBlock": case.k if "-whole" in problem.line else blocks.k,
            "mPerThread": rows,
            "nPerThread": columns,
            "packA": blocks.pack_a,
            "packB": blocks.pack_b,
            "instruction": instruction,
            **apart,
        }
    )


def in_parts(problem: Problem, machine: Machine) -> bool:
    """May each thread have its part of the sum? Of few rows, which limit what there is to share otherwise.

    A large right operand is then read by each from one end to the other.
    """
    case = _Case(problem, machine, NONE)
    plain = not any(wants_packing(problem, NONE)) and "-whole" not in problem.line
    own = machine.own_bytes is None and machine.threads > 1
    return own and plain and case.g == 1 and case.once and along_rows(problem, "B")


def along_rows(problem: Problem, operand: str) -> bool:
    """Do the elements that a tile takes of an operand, "A" or "B", at once follow one another in memory?"""
    return not lies_across(problem)[operand.lower()]


@dataclass(frozen=True)
class _Blocks:
    """Which loop is outside, the blocks, and where operands are packed."""

    outer: str
    m: int
    n: int
    k: int
    pack_a: str = NONE
    pack_b: str = NONE


@dataclass(frozen=True)
class _Case:
    """What the choice of blocks looks at: a problem, a machine and an instruction, and the register tile for them."""

    problem: Problem
    machine: Machine
    instruction: str

    @property
    def g(self) -> int:
        """Products of the batch."""
        return self.problem.sizes["g"]

    @property
    def m(self) -> int:
        """Rows of the result."""
        return self.problem.sizes["m"]

    @property
    def n(self) -> int:
        """Columns of the result."""
        return self.problem.sizes["n"]

    @property
    def k(self) -> int:
        """Terms of a sum."""
        return self.problem.sizes["k"]

    def bytes(self, name: str) -> int:
        """Bytes of an element of an operand, or of a sum."""
        return SCALARS[self.problem.scalars[name]].bytes

    @property
    def stored(self) -> int:
        """Bytes of an element of an operand where it is multiplied: as stored for an instruction, else as the sum."""
        return self.bytes("acc" if self.instruction == NONE else "b")

    @property
    def on_tiles(self) -> InstructionRow | None:
        """The instruction, if it is one on tile registers."""
        row = None if self.instruction == NONE else instruction_of(self.instruction)
        return row if row is not None and row.line else None

    @property
    def once(self) -> bool:
        """Are there so few rows that a large right operand is read but once or twice? Memory limits such products."""
        return self.m <= self.machine.registers // 2 and self.n * self.k * self.stored > self.machine.room // 2

    @cached_property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the register tile."""
        if self.on_tiles is not None:
            return instruction_tile(self.m, self.n, self.on_tiles)
        return min(register_tiles(self.m, self.n, self.machine), key=lambda tile: min(self.times(tile)))

    @property
    def all_of_b(self) -> int:
        """Bytes of the right operand where it is multiplied as the sum."""
        return self.n * self.k * self.bytes("acc")

    @cached_property
    def stays(self) -> bool:
        """Does the right operand stay in the second cache, read as it lies in memory?"""
        straight = along_rows(self.problem, "B") and not any(self.packed) and not self.once
        return straight and self.all_of_b <= self.machine.room // 2 and not self.by_rows

    @property
    def across(self) -> bool:
        """Does the left operand lie across, so large that the lines of a tile's terms come from far each time?"""
        return along_rows(self.problem, "A") and self.m * self.k * self.bytes("acc") > self.panel

    @cached_property
    def by_rows(self) -> bool:
        """Is such a left operand packed some rows at a time, by who needs them, for all columns?

        The second cache must hold the right operand, packed, beside them, and all threads must have rows enough.
        """
        line = self.k * self.bytes("acc")
        held = self.all_of_b <= self.machine.room // 2 and _ROWS_OF_LINES * line <= self.panel
        alone = self.by_batch or (self.g == 1 and self.m >= 2 * self.machine.threads * _ROWS_OF_LINES)
        plain = self.machine.own_bytes is None and not any(self.packed) and not self.once
        return plain and self.across and held and alone and self.n >= self._columns_to_pack_for

    @property
    def _columns_to_pack_for(self) -> int:
        """From how many columns on a left operand that lies across is better packed."""
        each = self.m * self.k * self.bytes("acc") // (1 if self.by_batch else self.machine.threads)
        if 4 * each <= 3 * self.machine.second:
            return _COLUMNS_OF_NEAR
        return _COLUMNS_OF_MET if _meet(self.m * self.bytes("acc")) else _COLUMNS_OF_FAR

    @cached_property
    def shared_out(self) -> bool:
        """Does each thread have one share, of the rows or of the columns? What it reads again stays in its cache.

        Large right operands whose rows share a few sets of the first cache are better packed, a part by each thread.
        """
        scattered = self.rows_meet and 2 * self.all_of_b > self.panel
        return self.stays and not self.by_batch and not scattered and self.machine.own_bytes is None

    @cached_property
    def packed(self) -> tuple[bool, bool]:
        """Which operands (left, right) are packed because an instruction or a conversion wants it."""
        left, right = wants_packing(self.problem, self.instruction)
        if self.on_tiles is not None:
            left = left or self.m % self.tile[0] > 0 or _read_often(self)
        return left, right

    @property
    def by_batch(self) -> bool:
        """Are there products enough in the batch for all threads, or as many for each?"""
        return self.g >= 2 * self.machine.threads or (self.g > 1 and self.g % self.machine.threads == 0)

    @property
    def wide(self) -> bool:
        """Do panels of columns stay while all rows pass by? There are many, or products of a batch for all threads."""
        if self.by_batch or self.on_tiles is not None:
            return self.by_batch or self.many_panels(self.tile)
        over_columns, over_rows = self.times(self.tile)
        return over_columns <= over_rows

    def many_panels(self, tile: tuple[int, int]) -> bool:
        """Are there panels of columns of a register tile enough for all threads, or hardly any rows?"""
        rows, columns = tile
        return self.n >= 2 * self.machine.threads * columns or self.m <= 2 * rows

    def times(self, tile: tuple[int, int]) -> tuple[float, float]:
        """Cycles of all threads for the whole result in tiles: if they share out columns, and if rows.

        The time in which threads wait for others counts.
        """
        threads, many = self.sharing, self.many_panels(tile)
        columns = self._time(self.m, _part(self.n, tile[1], threads), tile)
        if many and not self.shared_out and (self.machine.own_bytes is not None or self.k > self.most_terms(tile[1])):
            return threads * columns, inf
        rows = self._time(_part(self.m, tile[0], threads), self.n, tile)
        if self.shared_out:
            return threads * (columns + _SHARED_LINE * self.m), threads * rows
        packed_together = many * self.n * self.k * _FROM_ANOTHER
        return (threads * columns if many else inf), threads * (rows + packed_together)

    def _time(self, rows: int, columns: int, tile: tuple[int, int]) -> float:
        """Cycles of a thread for so many rows and columns of the result."""
        far = self.g * self.m * self.n * self.bytes("acc") > self.machine.threads * self.machine.second // 2
        near = self.is_near(columns if self.shared_out else tile[1])
        return Results(rows, columns, self.k, far, near, packed=not self.stays).time(tile, self.machine)

    def most_terms(self, columns: int) -> int:
        """Terms of a block of the sum at most: those of a panel of so many columns that half of the second cache holds.

        On Emerald Rapids a sum of 4096 terms in two blocks takes 2.8 % longer (4096 cubed; 256 rows: 6.5 %).
        """
        return max(1, self.machine.room // (2 * columns * self.bytes("acc")))

    def is_near(self, columns: int) -> bool:
        """Do so many columns of the right operand, where they are multiplied, stay in the first cache?"""
        row = columns * self.bytes("acc") + _LINE * self.stays  # in memory it begins in the middle of a line
        return not (self.stays and self.rows_meet) and self.k * row <= self.machine.first // 2

    @property
    def rows_meet(self) -> bool:
        """Do rows of the right operand lie so that their elements of a tile share a few sets of the first cache?"""
        return _meet(self.n * self.bytes("acc"))

    @property
    def parts(self) -> int:
        """Parts of the sum, one for each thread, if they are to have such."""
        threads = self.machine.threads
        enough = self.k >= threads * (_TERMS_OF_PART + _TERMS_OF_ROW * self.m)
        return threads if enough and self.k % threads == 0 and in_parts(self.problem, self.machine) else 1

    @property
    def rows_at_once(self) -> int:
        """Rows of a right operand that is read once: it is read along so many at a time."""
        if self.m > 1:
            return _ROWS_AT_ONCE
        row = self.n * self.bytes("b")
        if self.parts > 1 or row * self.k > self.machine.last:
            return _ROWS_OF_MEMORY
        lines = self.machine.second // _LINE // max(1, gcd(row, _SET_APART) // _LINE)
        return max(_ROWS_OF_MEMORY, min(_ROWS_OF_ONE, lines // _LINES_AHEAD))

    @property
    def pieces(self) -> int:
        """How many pieces the loop outside is cut into."""
        return _PIECES * self.machine.threads

    @property
    def panel(self) -> int:
        """Bytes of packed columns that stay in the second cache while rows pass by."""
        return self.machine.room // _PANELS

    @property
    def heap_or_thread(self) -> str:
        """Where an operand is packed for all blocks: a product of a batch has its own."""
        return "heap" if self.g == 1 else "thread"

    def rows(self, pieces: int, most: int) -> int:
        """Rows of a block; more than one piece are shared out to threads."""
        return _share(self.m, self.tile[0], pieces, most, self.sharing if pieces > 1 else 1)

    def columns(self, pieces: int, most: int) -> int:
        """Columns of a block; more than one piece are shared out to threads."""
        return _share(self.n, self.tile[1], pieces, most, self.sharing if pieces > 1 else 1)

    @property
    def sharing(self) -> int:
        """Threads that share out the blocks of one product."""
        return self.machine.threads if self.g == 1 and self.m * self.n * self.k > _ALONE else 1

    @property
    def all_rows(self) -> int:
        """All rows, in whole tiles."""
        return up(self.m, self.tile[0])

    @property
    def all_columns(self) -> int:
        """All columns, in whole tiles."""
        return up(self.n, self.tile[1])


# ---- kinds of blocks -------------------------------------------------------------------------------------------------


def _blocks(case: _Case) -> _Blocks:
    straight = along_rows(case.problem, "B")
    if any(case.packed):
        return _packed(case, *case.packed)
    if case.once:
        return _read_once(case) if straight else _panel_at_a_time(case)
    if case.by_rows:
        return _rows_packed(case)
    if case.shared_out:
        if case.wide:
            return _Blocks("n", case.all_rows, up(_part(case.n, case.tile[1], case.sharing), case.tile[1]), case.k)
        return _Blocks("m", case.tile[0], case.all_columns, case.k)
    if case.stays:
        if case.by_batch and case.is_near(case.tile[1]):
            return _Blocks("n", case.all_rows, case.tile[1], case.k)
        if case.wide and case.m < case.pieces * case.tile[0]:
            return _Blocks("n", case.all_rows, case.columns(case.pieces, case.n), case.k)
        small = case.all_of_b <= case.panel and not case.by_batch
        if case.wide and case.rows_meet and not case.by_batch and (small or case.machine.own_bytes is None):
            return _Blocks("n", case.tile[0], case.columns(case.machine.threads, case.n), case.k, pack_b="thread")
        if small or case.n <= case.tile[1] or not case.wide:
            return _Blocks("m", case.rows(case.pieces, case.m), case.all_columns, case.k)
    if case.wide:
        if case.machine.own_bytes is not None:
            return _columns_in_own_memory(case)
        return _both(case) if case.across else _columns_outside(case)
    if straight and not case.many_panels(case.tile):
        return _rows_outside(case)
    return _Blocks("m", case.rows(case.machine.threads, case.m), case.all_columns, case.k, pack_b=case.heap_or_thread)


def _packed(case: _Case, pack_a: bool, pack_b: bool) -> _Blocks:
    """Operands that must be packed: columns of the right one stay in the second cache, rows of the left one pass by."""
    rows, columns = case.tile
    pieces, passing = _PIECES, int(_ROWS_SHARE * case.machine.room)  # bytes of rows
    if case.on_tiles is not None:
        pieces, passing = 1 if case.m * case.n * case.k <= _SMALL else 2, 0
    line = case.k * case.stored  # bytes of all terms of a row or a column
    n_block = case.columns(pieces * case.machine.threads, max(columns, case.machine.room // 2 // line))
    m_block = case.rows(1, max(rows, passing // line))
    straight = along_rows(case.problem, "B") and not pack_b
    left, right = case.heap_or_thread if pack_a else NONE, NONE if straight else "thread"
    return _Blocks("n", m_block, n_block, case.k, left, right)


def _read_once(case: _Case) -> _Blocks:
    """Few rows: the right operand is read along its rows, far at a time, as they lie in memory.

    The sums of a block stay in the second cache meanwhile, beside what is read.
    """
    held = case.machine.room // _SUMS // (case.m * case.bytes("acc"))
    pieces = 1 if case.parts > 1 else case.machine.threads
    n_block = case.columns(pieces, max(case.tile[1], held))
    return _Blocks("n", case.all_rows, n_block, _even(case.k // case.parts, case.rows_at_once))


def _panel_at_a_time(case: _Case) -> _Blocks:
    """Few rows, and the right operand lies across: one panel is packed, of as many terms as the second cache holds."""
    columns = case.tile[1]
    k_block = _even(case.k, case.machine.room // (2 * columns * case.bytes("acc")))
    return _Blocks("n", case.all_rows, columns, k_block, pack_b="thread")


def _columns_outside(case: _Case) -> _Blocks:
    """A panel of the right operand stays in the second cache while all rows pass by; packed by who needs it."""
    k_block, element = _terms(case), case.bytes("acc")
    most = max(case.tile[1], case.panel // (k_block * element))
    n_block = case.columns(case.pieces, most)
    sums = _SUMS_BEYOND * case.machine.room // (n_block * element)
    return _Blocks("n", case.all_rows if k_block == case.k else case.rows(1, sums), n_block, k_block, pack_b="thread")


def _columns_in_own_memory(case: _Case) -> _Blocks:
    """As with columns outside; half of what a thread may keep is for the panel, the other for sums and rows."""
    rows, columns = case.tile
    k_block, element, half = _terms(case), case.bytes("acc"), case.machine.room // 2
    most = max(columns, half // (k_block * element))
    m_block = case.all_rows if k_block == case.k else case.rows(1, max(rows, half // (2 * most * element)))
    return _Blocks("n", m_block, case.columns(case.pieces, most), k_block, pack_b="thread")


def _rows_outside(case: _Case) -> _Blocks:
    """All columns, of the right operand as it lies: a block of the sum is read from memory for each block of rows."""
    k_block = _terms(case)
    whole = k_block == case.k
    m_block = case.rows(case.pieces, case.m) if whole else case.rows(case.machine.threads, _ROWS_OF_BLOCK)
    return _Blocks("m", m_block, case.all_columns, k_block)


def _both(case: _Case) -> _Blocks:
    """Both operands packed: the left one lies across, and the lines of a tile's terms would come from far each time.

    If that fits, the whole sum at once, the left operand packed once, by all threads.
    """
    columns, element = case.tile[1], case.bytes("acc")
    if case.g == 1 and case.k * columns * element <= case.machine.room // 2:
        most = max(columns, case.panel // (case.k * element))
        return _Blocks("n", case.all_rows, case.columns(case.pieces, most), case.k, "heap", "thread")
    n_block = case.columns(case.machine.threads, _PANELS_OF_BOTH * columns)
    return _Blocks("n", case.rows(1, _ROWS_OF_BLOCK), n_block, _even(case.k, _TERMS_OF_BOTH), "thread", "thread")


def _rows_packed(case: _Case) -> _Blocks:
    """Rows of a left operand that lies across, packed by who needs them: they stay while all packed columns pass by."""
    pieces = 1 if case.by_batch else min(case.pieces, case.m // _ROWS_OF_LINES)
    rows = case.rows(pieces, case.panel // (case.k * case.bytes("acc")))
    return _Blocks("m", rows, case.all_columns, case.k, "thread", case.heap_or_thread)


def _terms(case: _Case) -> int:
    """Terms of a block of the sum, in equal blocks: as many as a panel may have.

    Where a thread may keep but so much for itself: those of a panel; all of them where they are not many more.
    """
    if case.machine.own_bytes is None:
        return _even(case.k, case.most_terms(case.tile[1]))
    line = case.tile[1] * case.bytes("acc")
    most = max(1, case.panel // line)
    in_one_set = along_rows(case.problem, "A") and case.m * case.bytes("acc") % _PAGE == 0
    most = min(most, _SUM_OF_ONE_SET if in_one_set else most, max(1, case.machine.room // 2 // line))
    return case.k if 2 * case.k <= 3 * most else _even(case.k, most)


def _read_often(case: _Case) -> bool:
    """Is a left operand that tile registers take as it lies better packed all the same?

    Its lines then begin where those of the caches do (half of the time to load one that does not is gone), and follow
    one another. That pays where they come from beyond the second cache, again and again.
    """
    large = case.m * case.k * case.bytes("a") > case.machine.room // 2
    return case.g == 1 and case.n >= _OFTEN * case.tile[1] and large


# ---- shares ----------------------------------------------------------------------------------------------------------


def _in_turn(pieces: int, threads: int) -> int:
    """Pieces, and those that could be done while threads wait for the last ones."""
    return -(-pieces // threads) * threads


def _part(size: int, tile: int, parts: int) -> int:
    """The largest of equal parts that consist of whole tiles."""
    return min(size, -(-size // (tile * parts)) * tile)


def _share(size: int, tile: int, pieces: int, most: int, threads: int) -> int:
    """A multiple of the tile, at most `most`, that cuts a size in about so many pieces, so that threads end together.

    `threads`: those that share out the pieces; 1 where no others do.
    """
    tiles, limit = -(-size // tile), max(1, most // tile)
    least = max(-(-tiles // limit), min(tiles, pieces))

    def cost(count: int) -> tuple[int, int, int]:
        each = -(-tiles // count)
        return _in_turn(-(-tiles // each), threads) * each, count * each - tiles, count

    count = min(range(least, min(tiles, _MORE * least) + 1), key=cost)
    return -(-tiles // count) * tile


def _meet(apart: int) -> bool:
    """Do lines so many bytes apart share a few sets of the first cache?"""
    return 4 * gcd(apart, _PAGE) >= _PAGE


def _even(size: int, most: int) -> int:
    """Equal parts of at most `most`."""
    return -(-size // -(-size // most))


def up(size: int, tile: int) -> int:
    """The size in whole tiles."""
    return -(-size // tile) * tile
