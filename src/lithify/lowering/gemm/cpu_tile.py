"""The register tile of matrix multiplication on CPUs: of which shape it is, by the time that the results take in it."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lowering.gemm.cpu_machine import Machine
from lithify.machine import InstructionRow

# Vectors side by side in a register tile.
VECTORS = (1, 2, 3, 4)
# Tile registers that hold results: there are eight, half of them for what is multiplied.
TILES_OF_RESULTS = 4
# How long it takes to load a tile from the second cache, in instructions: measured on Sapphire Rapids, where they take
# 16 cycles.
_LOAD = 1.4
# Cycles and what happens in one, measured on Emerald Rapids by loops that do nothing else: multiply-adds that start,
# and cycles until their results are there; loads, of which a broadcast is one; bytes from the second cache, of panels
# and of rows that begin in the middle of a line. Loads cost a little even where they are not what limits.
_STARTED, _LATENCY, _LOADS, _A_LOAD = 2, 4.0, 1.5, 0.025
_PANEL_BYTES, _ROW_BYTES = 28, 24
# Cycles to start a tile, and for each line of memory that its results are written to: one that the second cache has,
# and one from beyond. Arrays of NumPy begin in the middle of a line, and so each row of a tile meets one line more than
# it has vectors.
_START, _NEAR_LINE, _FAR_LINE = 10.0, 2.0, 8.0
_LINE = 64


@dataclass(frozen=True)
class Results:
    """The results that a thread computes: rows, columns and the terms of each.

    `far`: they are more than its second cache holds. Of the right operand, `near`: what a column of tiles takes stays
    in the first cache; `packed`: it is read from panels, whose rows begin where lines of the caches do.
    """

    rows: int
    columns: int
    terms: int
    far: bool
    near: bool
    packed: bool

    def time(self, tile: tuple[int, int], machine: Machine) -> float:
        """Cycles in tiles of so many rows and columns. Of the last ones only what there is of results is computed,
        whole vectors."""
        rows, columns = tile
        return sum(
            count * others * self._tile_time(r, -(-c // machine.lanes), machine)
            for r, count in _parts(self.rows, rows)
            for c, others in _parts(self.columns, columns)
        )

    def _tile_time(self, rows: int, vectors: int, machine: Machine) -> float:
        """Cycles of one tile: the steps of the sum, and what is around them."""
        element = machine.vector_bytes / machine.lanes
        row = 0 if self.near else vectors * machine.vector_bytes + _LINE * (not self.packed)
        rate = _PANEL_BYTES if self.packed else _ROW_BYTES
        loads, bytes_read = rows + vectors, rows * element + row
        step = max(rows * vectors / _STARTED, _LATENCY, loads / _LOADS, bytes_read / rate) + _A_LOAD * loads
        return self.terms * step + rows * (vectors + 1) * (_FAR_LINE if self.far else _NEAR_LINE) + _START


def _parts(size: int, tile: int) -> list[tuple[int, int]]:
    """Sizes of tiles, and how many there are of each: whole ones, and the rest."""
    whole, rest = divmod(size, tile)
    return [(tile, whole)] * (whole > 0) + [(rest, 1)] * (rest > 0)


def register_tiles(rows: int, columns: int, machine: Machine) -> list[tuple[int, int]]:
    """The shapes of tiles that fit the registers: rows and columns, not more than there are."""
    vectors = [v for v in VECTORS if v == 1 or ((v - 1) * machine.lanes < columns and 2 * v < machine.registers)]
    return [(r, v * machine.lanes) for v in vectors for r in range(1, min((machine.registers - 1) // v - 1, rows) + 1)]


def instruction_tile(rows: int, columns: int, row: InstructionRow) -> tuple[int, int]:
    """Rows and columns of the results that tile registers hold at a time: least time.

    An instruction takes less time than to load a tile from the second cache, which happens meanwhile.
    """
    of_m, of_n, _ = row.shape
    shapes = [(r, c) for r in (1, 2, 4) for c in (1, 2, 4) if r * c <= TILES_OF_RESULTS]

    def cost(shape: tuple[int, int]) -> tuple[float, int]:
        r, c = shape
        count = -(-rows // (r * of_m)) * -(-columns // (c * of_n))
        return count * max(r * c, _LOAD * (r + c)), count * r * c

    r, c = min(shapes, key=cost)
    return r * of_m, c * of_n
