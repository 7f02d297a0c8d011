"""Scalar operators on arrays, in one of two arithmetics.

`EXACT` computes floating point in float64 (complex in complex128) whatever is declared: the reference that results are
compared with. `STORED` computes in the declared types and rounds after every operator, as the devices do. Integers have
their declared width in both: they wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lithify.lang.errors import EvaluationError
from lithify.lang.operators import Operator, Typing
from lithify.lang.scalars import Kind, Scalar, complex128, f64
from lithify.lang.types import Index, Type

Array = NDArray[Any]
_INT64: np.dtype[Any] = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class Numerics:
    """An arithmetic: which NumPy type computes and stores a scalar type."""

    exact: bool

    def dtype(self, type_: Type) -> np.dtype[Any]:
        """The NumPy type of values of a scalar or index type (indices are int64)."""
        if isinstance(type_, Index):
            return _INT64
        assert isinstance(type_, Scalar)
        if self.exact and type_.is_float:
            type_ = f64
        elif self.exact and type_.is_complex:
            type_ = complex128
        dtype: np.dtype[Any] = type_.dtype
        return dtype

    def apply(self, operator: Operator, operands: tuple[Array, ...], result: Type) -> Array:
        """The operator on arrays (broadcast against each other); `result` is the type of the result.

        Operators are total (`lang.operators` says what each gives); EvaluationError for one that is not known.
        """
        if operator.typing is Typing.CONVERT:
            return convert(operands[0], self.dtype(result))
        try:
            function = _FUNCTIONS[operator.name]
        except KeyError:
            raise EvaluationError(f"operator {operator.name} has neither a definition nor an evaluation") from None
        value = np.asarray(function(*operands))
        wanted = self.dtype(result)
        return value if value.dtype == wanted else value.astype(wanted)


EXACT = Numerics(exact=True)
STORED = Numerics(exact=False)


def convert(values: Array, dtype: np.dtype[Any]) -> Array:
    """Conversion: floats to integers truncate and saturate, integers wrap; complex to real takes the real part."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "b":
        return np.asarray(values != 0)
    if values.dtype.kind == "c" and dtype.kind != "c":
        values = values.real
    if dtype.kind in "iu" and values.dtype.kind not in "iub":
        return _saturated(values.astype(np.float64), dtype)
    return np.asarray(values, dtype)


def _saturated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Truncated towards zero; the nearest limit outside the integer type, 0 for NaN."""
    limits = np.iinfo(dtype)
    above = values >= float(limits.max)  # rounded up to a power of two for 64 bits
    below = values <= limits.min
    inside = np.where(above | below | np.isnan(values), 0, values)
    least, greatest = dtype.type(limits.min), dtype.type(limits.max)
    return np.where(above, greatest, np.where(below, least, inside.astype(dtype)))


def _divide(a: Array, b: Array) -> Array:
    if not _integer(a):
        return np.asarray(a / b)
    quotient, _ = _truncated(a, b)
    return quotient


def _remainder(a: Array, b: Array) -> Array:
    _, remainder = _truncated(a, b)
    return remainder


def _truncated(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotient truncated towards zero and remainder with the sign of a; both 0 where b is; least / -1 wraps."""
    zero = b == 0
    b = np.where(zero, np.ones_like(b), b)
    quotient = np.asarray(a // b)
    remainder = np.asarray(np.fmod(a, b))
    if a.dtype.kind == "i":  # `//` is the floor
        quotient = quotient + ((remainder != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    nothing = np.zeros_like(quotient)
    return np.where(zero, nothing, quotient), np.where(zero, nothing, remainder)


def _integer(a: Array) -> bool:
    return a.dtype.kind in "iu"


def _shift(operation: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """A shift whose count may be anything: from the width on nothing is left but the sign; negative ones count so."""

    def shifted(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        nothing = operation(operation(a, np.asarray(bits - 1, a.dtype)), np.asarray(1, a.dtype))
        return np.where(inside, operation(a, np.where(inside, b, np.zeros_like(b))), nothing)

    return shifted


def _fused(a: Array, b: Array, c: Array) -> Array:
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    return np.asarray(a.astype(wide) * b.astype(wide) + c.astype(wide), a.dtype)


def _complex(real: Array, imaginary: Array) -> Array:
    value = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), np.result_type(real.dtype, np.complex64))
    value.real, value.imag = real, imaginary
    return value


def _through_float64(function: Callable[[Array], Any]) -> Callable[[Array], Array]:
    return lambda a: np.asarray(function(a.astype(np.float64)), np.float64).astype(a.dtype)


_erf = np.frompyfunc(math.erf, 1, 1)


def _to_tf32(a: Array) -> Array:
    """f32 with 10 bits behind the point; exact arithmetic, in f64, rounds nothing."""
    if a.dtype != np.float32:
        return a
    bits = a.view(np.uint32)
    rounded = (bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(a), a, rounded.view(np.float32))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "rem": _remainder,
    "min": np.fmin,
    "max": np.fmax,
    "pow": np.power,
    "fma": _fused,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": _shift(np.left_shift),
    "shr": _shift(np.right_shift),
    "neg": np.negative,
    "abs": np.abs,
    "not": np.invert,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "tf32": _to_tf32,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": _through_float64(_erf),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "select": np.where,
    "complex": _complex,
    "re": np.real,
    "im": np.imag,
    "conj": np.conj,
}

# Where the whole fold is one NumPy call. Sequential sums of rounded numbers go through `accumulate`, which keeps the
# order of the elements.
_FOLDS: dict[str, np.ufunc] = {
    "add": np.add, "mul": np.multiply, "min": np.fmin, "max": np.fmax,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def fold_of(operator: Operator, scalar: Type, numerics: Numerics) -> np.ufunc | None:
    """The ufunc whose `accumulate` folds the operator over an axis, or None."""
    if not isinstance(scalar, Scalar) or scalar.kind is Kind.BOOL:
        return None
    if numerics.dtype(scalar).kind not in "iufc":  # the types of ml_dtypes have no accumulate that rounds every step
        return None
    return _FOLDS.get(operator.name)
