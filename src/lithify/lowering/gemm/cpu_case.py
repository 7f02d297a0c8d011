"""Matrix multiplication on a CPU as the choice of parameters sees it: what of a problem decides among kinds of blocks.

Above all: which operand lies so that it is read well, and which cache holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd

from lithify.lang.scalars import SCALARS
from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.gemm.cpu_tile import instruction_tile
from lithify.lowering.gemm.operands import NONE, wants_packing
from lithify.lowering.gemm.problem import lies_across
from lithify.lowering.tuning import Problem
from lithify.machine import InstructionRow
from lithify.machine import instruction as instruction_of

# How many packed panels the second cache could hold.
_PANELS = 4
# Rows of a left operand that lies across and is packed: the processor reads lines in pairs. And the columns for which
# that pays: where half of the second caches holds the operand as it lies and its lines do not share a few sets, and
# else. Measured on Emerald Rapids (f32), packed against as it lies, for 16, 32, 64, 128 and 200 columns: 0.6, 1.0, 0.8,
# 0.9, 0.95 for 600 rows of 600 terms; 0.76, 1.04, 1.0, 1.13, 1.1 for 1500 of 450; 0.56, 1.2, 1.2, 1.4, 1.5 for 1024 of
# 512, whose lines share sets; 1.07, 1.8 and 1.5 for 16, 32 and 64 columns and 3000 of 400.
ROWS_OF_LINES = 32
_COLUMNS_OF_NEAR, _COLUMNS_OF_FAR = 256, 32
# A right operand is read as it lies where it takes at most a seventh of the second cache, where its bytes, once for
# each row of the result, fill it at most 50 times, or where a sum has so few terms that the results take most of the
# time; else it is packed. Measured on Emerald Rapids (f32), packed against as it lies: 0.83 for 32 x 500 x 500, 1.06
# for 128, 1.17 for 250, 1.3 for 1000 rows; 0.97 for 250 x 300 x 300, 1.2 for 1000 rows; 0.85 for 1000 x 200 x 200; 0.9
# for 600 x 3000 x 50, 1.06 for 1000 x 700 x 256.
_LIES, _READ, _FEW_TERMS = 7, 50, 128
# Terms that a part of the sum has at least, for each thread one, and more for each row: the results of all parts are
# stored and added. Measured on Emerald Rapids, one row in two parts by two threads: 1.33 times as fast for 768 x 768,
# 1.6 for 1024 x 1024, 1.12 and 1.03 for 2304 and 3072 columns of 768 terms, 1.4 or more for 8192 of 512.
_TERMS_OF_PART, _TERMS_OF_ROW = 128, 32
# Multiply-adds of which other threads would take longer to hear.
_ALONE = 1 << 18
# From so many tiles of columns on, tile registers read the left operand often.
_OFTEN = 8
_LINE, _PAGE = 64, 4096


def along_rows(problem: Problem, operand: str) -> bool:
    """Do the elements that a tile takes of an operand, "A" or "B", at once follow one another in memory?"""
    return not lies_across(problem)[operand.lower()]


def in_parts(problem: Problem, machine: Machine) -> bool:
    """May each thread have its part of the sum? Of few rows, which limit what there is to share otherwise.

    A large right operand is then read by each from one end to the other.
    """
    case = Case(problem, machine, NONE)
    plain = not any(wants_packing(problem, NONE)) and "-whole" not in problem.line
    own = machine.own_bytes is None and machine.threads > 1
    return own and plain and case.g == 1 and case.once and along_rows(problem, "B")


@dataclass(frozen=True)
class Case:
    """What the choice of parameters looks at: a problem, a machine and an instruction (or none)."""

    problem: Problem
    machine: Machine
    instruction: str

    # ---- sizes ----

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
    def all_of_b(self) -> int:
        """Bytes of the right operand where it is multiplied as the sum."""
        return self.n * self.k * self.bytes("acc")

    @property
    def panel(self) -> int:
        """Bytes of packed columns that stay in the second cache while rows pass by."""
        return self.machine.room // _PANELS

    def most_terms(self, columns: int) -> int:
        """Terms of a block of the sum at most: those of a panel of so many columns that half of the second cache holds.

        On Emerald Rapids a sum of 4096 terms in two blocks takes 2.8 % longer (4096 cubed; 256 rows: 6.5 %).
        """
        return max(1, self.machine.room // (2 * columns * self.bytes("acc")))

    # ---- the instruction ----

    @property
    def on_tiles(self) -> InstructionRow | None:
        """The instruction, if it is one on tile registers."""
        row = None if self.instruction == NONE else instruction_of(self.instruction)
        return row if row is not None and row.line else None

    @cached_property
    def packed(self) -> tuple[bool, bool]:
        """Which operands (left, right) are packed because an instruction or a conversion wants it."""
        left, right = wants_packing(self.problem, self.instruction)
        if self.on_tiles is not None:
            rows, columns = instruction_tile(self.m, self.n, self.on_tiles)
            left = left or self.m % rows > 0 or self._read_often(columns)
        return left, right

    def _read_often(self, columns: int) -> bool:
        """Is a left operand that tile registers take as it lies better packed all the same?

        Its lines then begin where those of the caches do (half of the time to load one that does not is gone), and
        follow one another. That pays where they come from beyond the second cache, again and again.
        """
        large = self.m * self.k * self.bytes("a") > self.machine.room // 2
        return self.g == 1 and self.n >= _OFTEN * columns and large

    # ---- threads ----

    @property
    def by_batch(self) -> bool:
        """Are there products enough in the batch for all threads, or as many for each?"""
        return self.g >= 2 * self.machine.threads or (self.g > 1 and self.g % self.machine.threads == 0)

    @property
    def sharing(self) -> int:
        """Threads that share out the blocks of one product, if all products of a batch are computed at once."""
        alone = self.by_batch or self.m * self.n * self.k <= _ALONE
        return 1 if alone else -(-self.machine.threads // self.g)

    @property
    def parts(self) -> int:
        """Parts of the sum, one for each thread, if they are to have such."""
        threads = self.machine.threads
        enough = self.k >= threads * (_TERMS_OF_PART + _TERMS_OF_ROW * self.m)
        return threads if enough and self.k % threads == 0 and in_parts(self.problem, self.machine) else 1

    # ---- the right operand ----

    @property
    def once(self) -> bool:
        """Are there so few rows that a large right operand is read but once or twice? Memory limits such products."""
        return self.m <= self.machine.registers // 2 and self.n * self.k * self.stored > self.machine.room // 2

    @cached_property
    def stays(self) -> bool:
        """Does the right operand stay in the second cache, read as it lies in memory?"""
        straight = along_rows(self.problem, "B") and not any(self.packed) and not self.once
        room = self.machine.room
        seldom = self.all_of_b <= room // _LIES or self.m * self.all_of_b <= _READ * room or self.k < _FEW_TERMS
        beside = self.across and self.n < self._columns_to_pack_for  # a left operand whose lines come from far
        return straight and (seldom or beside) and self.all_of_b <= room // 2 and not self.by_rows

    @cached_property
    def shared_out(self) -> bool:
        """Does each thread have one share, of the rows or of the columns? What it reads again stays in its cache.

        Large right operands whose rows share a few sets of the first cache are better packed, a part by each thread.
        """
        scattered = self.rows_meet and 2 * self.all_of_b > self.panel
        return self.stays and not self.by_batch and not scattered and self.machine.own_bytes is None

    def is_near(self, columns: int) -> bool:
        """Do so many columns of the right operand, where they are multiplied, stay in the first cache?"""
        row = columns * self.bytes("acc") + _LINE * self.stays  # in memory it begins in the middle of a line
        return not (self.stays and self.rows_meet) and self.k * row <= self.machine.first // 2

    @property
    def packed_by_each(self) -> bool:
        """Does each thread pack a right operand of which it needs all panels, though others need them too?

        Where its second cache keeps them beside all else, that takes less time than to wait for what others packed.
        """
        return self.g > 1 or (self.machine.own_bytes is None and self.all_of_b <= self.panel)

    @property
    def rows_meet(self) -> bool:
        """Do rows of the right operand lie so that their elements of a tile share a few sets of the first cache?"""
        return _meet(self.n * self.bytes("acc"))

    # ---- the left operand ----

    @property
    def across(self) -> bool:
        """Does the left operand lie across, so large that the lines of a tile's terms come from far each time?"""
        return along_rows(self.problem, "A") and self.m * self.k * self.bytes("acc") > self.panel

    @property
    def in_one_set(self) -> bool:
        """Do the elements of a left operand that lies across, of the terms of a sum, share a few sets of a cache?"""
        return along_rows(self.problem, "A") and self.m * self.bytes("acc") % _PAGE == 0

    @cached_property
    def by_rows(self) -> bool:
        """Is such a left operand packed some rows at a time, by who needs them, for all columns?

        The second cache must hold the right operand, packed, beside them, and all threads must have rows enough.
        """
        line = self.k * self.bytes("acc")
        held = self.all_of_b <= self.machine.room // 2 and ROWS_OF_LINES * line <= self.panel
        alone = self.by_batch or (self.g == 1 and self.m >= 2 * self.machine.threads * ROWS_OF_LINES)
        plain = self.machine.own_bytes is None and not any(self.packed) and not self.once
        return plain and self.across and held and alone and self.n >= self._columns_to_pack_for

    @property
    def _columns_to_pack_for(self) -> int:
        """From how many columns on a left operand that lies across is better packed."""
        each = self.m * self.k * self.bytes("acc") // (1 if self.by_batch else self.machine.threads)
        near = 2 * each <= self.machine.second and not _meet(self.m * self.bytes("acc"))
        return _COLUMNS_OF_NEAR if near else _COLUMNS_OF_FAR


def _meet(apart: int) -> bool:
    """Do lines so many bytes apart share a few sets of the first cache?"""
    return 4 * gcd(apart, _PAGE) >= _PAGE
