"""A register tile of each row of the instruction tables, as text in the language, with values and what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from lithify.lang import read_text
from lithify.lang.module import Elaborated
from lithify.lang.scalars import Kind, Scalar
from lithify.machine import InstructionRow

TILES, STEPS = 3, 4

# c += a b, the rows of a as they are, b packed: lines with a group of the step's factors of each column.
TILE = """tile = λ (a : {m}.{depth}.{ta}) (b : {steps}.{lines}.{n}.{group}.{tb}) (c : {m}.{n}.{tc}) .
  map[unroll] (map[vec] (λ x . x)) (reduce[seq, private] (λ acc ab .
    join (map[unroll] (λ (sums, as) . instr[{row}](as, join (map transpose ab.1), sums))
      (zip (split {rows} acc) (split {rows} ab.0)))
  ) (map[unroll] (map[vec] (λ x . x)) c) (zip (transpose (map (split {k}) a)) b))
"""


def group(row: InstructionRow) -> int:
    """How many factors of each column follow one another in a packed operand b."""
    return min(row.shape[2], row.scalars[2].bytes // row.scalars[1].bytes)


def tile(row: InstructionRow, steps: int = STEPS, tiles: int = TILES) -> Elaborated:
    """The tile's program: as many instructions below one another as `tiles`."""
    (rows, n, k), g = row.shape, group(row)
    ta, tb, tc = row.operands
    text = TILE.format(m=tiles * rows, rows=rows, n=n, k=k, lines=k // g, group=g, steps=steps, depth=steps * k,
                       ta=ta, tb=tb, tc=tc, row=row.name)  # fmt: skip
    return read_text(text)["tile"].elaborate()


def values(row: InstructionRow, steps: int = STEPS, tiles: int = TILES, seed: int = 0) -> tuple[list[Any], Any]:
    """Arguments, and the result in exact arithmetic (sums of i32 wrap)."""
    (rows, n, k), g = row.shape, group(row)
    m = tiles * rows
    rng = np.random.default_rng(seed)
    a, b, c = (_numbers(rng, s, size) for s, size in
               zip(row.scalars, ((m, steps * k), (steps, k // g, n, g), (m, n)), strict=True))  # fmt: skip
    wide = np.int64 if row.scalars[2].is_integer else np.float64
    packed = b.astype(wide).transpose(0, 1, 3, 2).reshape(steps * k, n)
    return [a, b, c], (c.astype(wide) + a.astype(wide) @ packed).astype(row.scalars[2].dtype)


def _numbers(rng: np.random.Generator, scalar: Scalar, size: tuple[int, ...]) -> Any:
    """Integers over the whole range; floats whose products and sums are exact."""
    if scalar.is_integer:
        return rng.integers(*scalar.limits, size, endpoint=True).astype(scalar.dtype)
    assert scalar.kind is Kind.FLOAT
    return rng.integers(-8, 9, size).astype(scalar.dtype)
