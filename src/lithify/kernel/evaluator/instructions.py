"""What an instruction does, from its row alone: the registers' order in each operand, and the row's meaning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lithify.evaluate import evaluate
from lithify.lang.build import map_, param, proj, zip_
from lithify.lang.term import Term, apply
from lithify.lang.types import Array
from lithify.machine import InstructionRow

Values = NDArray[Any]
_NAMES = ("a", "b", "c")
_ROUNDING = 1e-5  # the order in which a sum is rounded may differ


@cache
def registers(row: InstructionRow, operand: int) -> NDArray[np.int64]:
    """For each element of a matrix (operand 0, 1, 2 for a, b, c) the number of the register that holds it.

    Registers are numbered through all lanes.
    """
    layout, held = row.layouts[operand], row.elements[operand]
    numbers = np.arange(row.lanes * held, dtype=np.int32).reshape(row.lanes, held)
    return np.asarray(evaluate(apply(layout, param("held", layout.attrs[0])), {"held": numbers}), np.int64)


@cache
def _for_each(row: InstructionRow, count: int) -> Term:
    a, b, c = (param(name, Array(count, type_)) for name, type_ in zip(_NAMES, row.types, strict=True))
    return map_(lambda p: apply(row.definition, proj(0, p), proj(1, p), proj(2, p)), zip_(a, b, c))


def computed(row: InstructionRow, operands: Sequence[Values], *, exact: bool) -> Values:
    """The results of an instruction for each of some operands: arrays [number][row][column] of a, b and c."""
    result = evaluate(_for_each(row, len(operands[0])), dict(zip(_NAMES, operands, strict=True)), exact=exact)
    return np.asarray(result)


def agree(said: Values, expected: Values) -> bool:
    """Are they the same, up to the rounding of sums?"""
    if said.dtype.kind in "iu":
        return bool(np.array_equal(said, expected))
    return bool(np.allclose(said, expected, _ROUNDING, _ROUNDING, equal_nan=True))
