"""What NumPy's functions and arrays' methods are called in the Python front end: for errors that say what to write."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import SCALARS

_PRODUCT = "a >> lf.map(lambda row: b >> lf.transpose >> lf.map(lambda column: lf.dot(row, column)))"
_MEAN = "lf.sum(xs) / n, n being the size that the annotation names"
_EXTREME = "xs >> lf.reduce(lf.{0}, {1}inf), and lf.{0}(a, b) for the {2} of two values"
_LARGEST, _SMALLEST = _EXTREME.format("max", "-", "larger"), _EXTREME.format("min", "", "smaller")

# By the names of arrays' methods and of NumPy's functions: how it is written here.
_WRITTEN = {
    "sum": "lf.sum(xs); for every row a >> lf.map(lf.sum)",
    "prod": "xs >> lf.reduce(lf.mul, 1)",
    "mean": _MEAN,
    "average": _MEAN,
    "max": _LARGEST,
    "amax": _LARGEST,
    "min": _SMALLEST,
    "amin": _SMALLEST,
    "cumsum": "xs >> lf.scan(lf.add, 0)",
    "dot": "lf.dot(xs, ys) for vectors, and for matrices " + _PRODUCT,
    "matmul": _PRODUCT,
    "where": "lf.select(condition, a, b), in lf.map for each element",
    "clip": "lf.min(lf.max(x, low), high)",
    "T": "lf.transpose(a)",
    "transpose": "lf.transpose(a)",
    "reshape": "lf.split(n, xs) for rows of n, and lf.join(a) for the rows one after another",
    "ravel": "lf.join(a)",
    "flatten": "lf.join(a)",
    "concatenate": "lf.concat(xs, ys)",
    "flip": "lf.reverse(xs)",
    "pad": "lf.pad(left, right, 0, xs)",
    "square": "x * x",
    "astype": "lf.f32(x), and so for each type; for each element xs >> lf.map(lf.f32)",
    "shape": "the sizes that the annotation names (xs: lf.Array[n, lf.f32]), or lf.length(xs)",
    "size": "lf.length(xs), or the size that the annotation names",
    "dtype": "a.type",
    "conjugate": "lf.conj(x)",
    "real": "lf.re(x)",
    "imag": "lf.im(x)",
    "maximum": "lf.max(a, b)",
    "minimum": "lf.min(a, b)",
    "absolute": "abs(x)",
    "asarray": "the value as it is: arrays of a program are values already",
}
# NumPy's functions that are Python's operators: where an array of NumPy's stands on the left, NumPy is asked first.
AS_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "remainder": operator.mod, "power": operator.pow, "left_shift": operator.lshift, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "equal": operator.eq, "not_equal": operator.ne,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


def written_as(name: str) -> str | None:
    """What to write instead of NumPy's function, or of an array's method, of a name; None where nothing is alike."""
    if name in _WRITTEN:
        return f"write {_WRITTEN[name]}"
    if name in OPERATORS and name not in SCALARS:
        operands = "x" if OPERATORS[name].arity == 1 else "x, y"
        return f"write lf.{name}({operands}); for each element xs >> lf.map(lf.{name})"
    return None
