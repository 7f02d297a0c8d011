"""How threads share out a product, its rows or its columns, and in which register tiles: what takes least time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from lithify.lowering.gemm.cpu_case import Case, along_rows
from lithify.lowering.gemm.cpu_shares import part, share, up
from lithify.lowering.gemm.cpu_tile import Results, instruction_tile, register_tiles

# Pieces for each thread, so that they end at about the same time.
PIECES = 4
# What threads cost each other, in cycles, measured on Emerald Rapids. A line that another core has written, until it
# may be written: products whose columns two threads share take 115 to 230 a row more than those whose rows they do.
_SHARED_LINE = 130
# Of columns in pieces: each row of a piece, as its lines lie far from those before (38 of 500 x 800 x 32). Of a right
# operand that each packs: an element. Of one that all pack together: to wait for each other, and each element until
# each thread has it. (With 0.4 cycles an element alone, 21 products of 16 to 3000 rows whose parameters differ took 1.1
# times as long: f32, a host that others use; 0.93 to 1.32.)
_ROW_OF_PIECE, _PACKED, _TOGETHER, _FROM_ANOTHER = 38, 1.3, 20_000, 2


@dataclass(frozen=True)
class Tiling:
    """A product in register tiles of so many `rows` and `columns`."""

    case: Case
    rows: int
    columns: int

    @staticmethod
    def of(case: Case) -> Tiling:
        """In the tiles that take least time."""
        if case.on_tiles is not None:
            return Tiling(case, *instruction_tile(case.m, case.n, case.on_tiles))
        tilings = [Tiling(case, *tile) for tile in register_tiles(case.m, case.n, case.machine)]
        return min(tilings, key=lambda tiling: min(tiling.times))

    @property
    def wide(self) -> bool:
        """Do panels of columns stay while all rows pass by? There are many, or products of a batch for all threads."""
        if self.case.by_batch or self.case.on_tiles is not None:
            return self.case.by_batch or self.many_panels
        over_columns, over_rows = self.times
        return over_columns <= over_rows

    @property
    def many_panels(self) -> bool:
        """Are there panels of columns enough for all threads, or hardly any rows?"""
        return self.case.n >= 2 * self.case.machine.threads * self.columns or self.case.m <= 2 * self.rows

    @cached_property
    def times(self) -> tuple[float, float]:
        """Cycles of all threads for the whole result: if they share out columns, and if rows.

        The time in which threads wait for others counts.
        """
        case, threads, many = self.case, self.case.sharing, self.many_panels
        columns = self._time(case.m, part(case.n, self.columns, threads))
        own = case.machine.own_bytes is not None
        packed_by_columns = own or case.k > case.most_terms(self.columns) or (case.across and not case.by_rows)
        if many and not case.shared_out and packed_by_columns:
            return threads * columns, inf
        rows = self._time(part(case.m, self.rows, threads), case.n)
        if case.shared_out:
            return threads * (columns + _SHARED_LINE * case.m), threads * rows
        pieces = -(-case.n // part(case.n, self.columns, self.pieces))
        columns += _ROW_OF_PIECE * case.m * -(-pieces // threads)
        apart, each = (0, _PACKED) if case.packed_by_each else (_TOGETHER * (threads > 1), _FROM_ANOTHER)
        if many or (case.g > 1 and not along_rows(case.problem, "B")):
            rows += apart + each * case.n * case.k
        return (threads * columns if many or case.g > 1 else inf), threads * rows

    def _time(self, rows: int, columns: int) -> float:
        """Cycles of a thread for so many rows and columns of the result."""
        case, machine = self.case, self.case.machine
        far = case.g * case.m * case.n * case.bytes("acc") > machine.threads * machine.second // 2
        near = case.is_near(columns if case.shared_out else self.columns)
        few = along_rows(case.problem, "B") and not case.by_rows and not self.many_panels
        results = Results(rows, columns, case.k, far, near, packed=not (case.stays or few))
        return results.time((self.rows, self.columns), machine)

    # ---- shares in whole tiles ----

    @property
    def threads(self) -> int:
        """Threads for which blocks are cut: one where a single product is too small for more."""
        sharing = self.case.sharing
        return sharing if self.case.g == 1 or sharing > 1 else self.case.machine.threads

    @property
    def pieces(self) -> int:
        """How many pieces the loop outside is cut into."""
        return PIECES * self.threads if self.threads > 1 else 1

    def rows_of(self, pieces: int, most: int) -> int:
        """Rows of a block; more than one piece are shared out to threads."""
        return share(self.case.m, self.rows, pieces, most, self.case.sharing if pieces > 1 else 1)

    def columns_of(self, pieces: int, most: int) -> int:
        """Columns of a block; more than one piece are shared out to threads."""
        return share(self.case.n, self.columns, pieces, most, self.case.sharing if pieces > 1 else 1)

    @property
    def all_rows(self) -> int:
        """All rows, in whole tiles."""
        return up(self.case.m, self.rows)

    @property
    def all_columns(self) -> int:
        """All columns, in whole tiles."""
        return up(self.case.n, self.columns)
