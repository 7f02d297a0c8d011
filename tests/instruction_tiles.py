"""A register tile of each row of the instruction tables, as text in the language, with values and what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from lithify.lang import read_text
from lithify.lang.module import Elaborated
from lithify.lang.scalars import Kind, Scalar
from lithify.machine import InstructionRow

ROWS_OF_TILE, STEPS = 3, 4

# c += a b, the rows of a as they are, b packed: the step's factors of each column side by side.
TILE = """tile = λ (a : {m}.{depth}.{ta}) (b : {steps}.{n}.{k}.{tb}) (c : {m}.{n}.{tc}) .
  map[unroll] (map[vec] (λ x . x)) (reduce[seq, private] (λ acc ab .
    map[unroll] (λ (row, as) . join (instr[{row}](split {k} as, transpose ab.1, split {n} row))) (zip acc ab.0)
  ) (map[unroll] (map[vec] (λ x . x)) c) (zip (transpose (map (split {k}) a)) b))
"""


def tile(row: InstructionRow, steps: int = STEPS, m: int = ROWS_OF_TILE) -> Elaborated:
    """The tile's program."""
    _, n, k = row.shape
    ta, tb, tc = row.operands
    text = TILE.format(m=m, n=n, k=k, steps=steps, depth=steps * k, ta=ta, tb=tb, tc=tc, row=row.name)
    return read_text(text)["tile"].elaborate()


def values(row: InstructionRow, steps: int = STEPS, m: int = ROWS_OF_TILE, seed: int = 0) -> tuple[list[Any], Any]:
    """Arguments, and the result in exact arithmetic (sums of i32 wrap)."""
    _, n, k = row.shape
    rng = np.random.default_rng(seed)
    a, b, c = (_numbers(rng, s, size) for s, size in
               zip(row.scalars, ((m, steps * k), (steps, n, k), (m, n)), strict=True))  # fmt: skip
    wide = np.int64 if row.scalars[2].is_integer else np.float64
    packed = b.astype(wide).transpose(0, 2, 1).reshape(steps * k, n)
    return [a, b, c], (c.astype(wide) + a.astype(wide) @ packed).astype(row.scalars[2].dtype)


def _numbers(rng: np.random.Generator, scalar: Scalar, size: tuple[int, ...]) -> Any:
    """Integers over the whole range; floats whose products and sums are exact."""
    if scalar.is_integer:
        return rng.integers(*scalar.limits, size, endpoint=True).astype(scalar.dtype)
    assert scalar.kind is Kind.FLOAT
    return rng.integers(-8, 9, size).astype(scalar.dtype)
