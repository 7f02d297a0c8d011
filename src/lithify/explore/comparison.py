"""How far a result is from what it should be, and how far it may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lithify.lang.scalars import SCALARS, Scalar

Array = np.ndarray[Any, np.dtype[Any]]
_BITS = {"f8e5m2": 2, "f8e4m3": 3, "bf16": 7, "f16": 10, "f32": 23, "complex64": 23}
_STORED, _SUMMED = 4, 16  # units of rounding: of a stored result, and for each root of the operations behind it
MOST = 0.25


def allowed_difference(result: Scalar, operations: Mapping[str, float]) -> float:
    """What rounding may change in a result, relative to its largest element: nothing for integers.

    `operations` counts, by scalar type, those that one element of the result takes: errors of sums that are made in
    any order grow like the root of their number (N. Higham, "Accuracy and Stability of Numerical Algorithms", 2.8).
    """
    if not (result.is_float or result.is_complex):
        return 0.0
    computed = [_unit(SCALARS[name]) * math.sqrt(count) for name, count in operations.items() if name in SCALARS]
    return min(MOST, _STORED * _unit(result) + _SUMMED * max(computed, default=0.0))


def _unit(scalar: Scalar) -> float:
    """The unit of rounding; 0 for what is exact."""
    if not (scalar.is_float or scalar.is_complex):
        return 0.0
    return float(2.0 ** -(_BITS.get(scalar.name, 52) + 1))


def relative_difference(got: Array, wanted: Array) -> float:
    """The largest difference, relative to the largest finite element expected; infinite where one alone is NaN."""
    if not got.size:
        return 0.0
    kind = np.complex128 if "c" in (got.dtype.kind, wanted.dtype.kind) else np.float64
    exact = wanted.astype(kind, copy=False)
    with np.errstate(all="ignore"):
        apart = float(np.abs(got.astype(kind, copy=False) - exact).max())
        if not math.isfinite(apart):
            apart = float(distance(got, wanted).max())
        scale = float(np.abs(exact).max())
    if not math.isfinite(scale):
        finite = np.abs(exact[np.isfinite(exact)])
        scale = float(finite.max()) if finite.size else 1.0
    return apart / (scale or 1.0)


def distance(got: Array, wanted: Array) -> Array:
    """Elementwise distance; 0 where both are NaN or the same infinity."""
    kind = np.complex128 if "c" in (got.dtype.kind, wanted.dtype.kind) else np.float64
    a, b = got.astype(kind), wanted.astype(kind)
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(apart), math.inf, apart))
