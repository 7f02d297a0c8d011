"""The scalar types: a table of names, kinds, widths and the NumPy type that stores them."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from lithify.lang.types import Type


class Kind(Enum):
    """What arithmetic a scalar type has."""

    BOOL = "bool"
    SIGNED = "signed integer"
    UNSIGNED = "unsigned integer"
    FLOAT = "floating point"
    COMPLEX = "complex"


class Scalar(Type):
    """A scalar type. Instances are the module's constants; compare by identity."""

    __slots__ = ("__dict__", "bits", "dtype", "kind", "name")

    def __init__(self, name: str, kind: Kind, bits: int, dtype: Any) -> None:
        self.name, self.kind, self.bits, self.dtype = name, kind, bits, np.dtype(dtype)

    def __str__(self) -> str:
        return self.name

    def __call__(self, value: Any) -> Any:
        """Conversion in the Python front end: `f32(x)`."""
        from lithify.lang.frontend import convert

        return convert(self, value)

    @property
    def bytes(self) -> int:
        """Bytes that one element takes in memory."""
        return int(self.dtype.itemsize)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @cached_property
    def limits(self) -> tuple[Any, Any]:
        """Least and largest value; infinities for floating point, where the type has them."""
        if self.kind is Kind.BOOL:
            return False, True
        if self.is_integer:
            info = np.iinfo(self.dtype)
            return int(info.min), int(info.max)
        if self is f8e4m3:  # has no infinities
            largest = float(ml_dtypes.finfo(self.dtype).max)  # type: ignore[no-untyped-call]
            return -largest, largest
        if self.is_float:
            return float("-inf"), float("inf")
        raise ValueError(f"{self} is not ordered")


bool_ = Scalar("bool", Kind.BOOL, 8, np.bool_)
i8 = Scalar("i8", Kind.SIGNED, 8, np.int8)
u8 = Scalar("u8", Kind.UNSIGNED, 8, np.uint8)
i16 = Scalar("i16", Kind.SIGNED, 16, np.int16)
u16 = Scalar("u16", Kind.UNSIGNED, 16, np.uint16)
i32 = Scalar("i32", Kind.SIGNED, 32, np.int32)
u32 = Scalar("u32", Kind.UNSIGNED, 32, np.uint32)
i64 = Scalar("i64", Kind.SIGNED, 64, np.int64)
u64 = Scalar("u64", Kind.UNSIGNED, 64, np.uint64)
f8e4m3 = Scalar("f8e4m3", Kind.FLOAT, 8, ml_dtypes.float8_e4m3fn)
f8e5m2 = Scalar("f8e5m2", Kind.FLOAT, 8, ml_dtypes.float8_e5m2)
f16 = Scalar("f16", Kind.FLOAT, 16, np.float16)
bf16 = Scalar("bf16", Kind.FLOAT, 16, ml_dtypes.bfloat16)
f32 = Scalar("f32", Kind.FLOAT, 32, np.float32)
f64 = Scalar("f64", Kind.FLOAT, 64, np.float64)
complex64 = Scalar("complex64", Kind.COMPLEX, 64, np.complex64)
complex128 = Scalar("complex128", Kind.COMPLEX, 128, np.complex128)

SCALARS: dict[str, Scalar] = {
    s.name: s
    for s in (
        bool_, i8, u8, i16, u16, i32, u32, i64, u64, f8e4m3, f8e5m2, f16, bf16, f32, f64, complex64, complex128,
    )
}  # fmt: skip
_BY_DTYPE = {s.dtype: s for s in SCALARS.values()}


def scalar_of_dtype(dtype: Any) -> Scalar:
    """The scalar type that a NumPy (or ml_dtypes) dtype stores; raises KeyError for dtypes that have none."""
    return _BY_DTYPE[np.dtype(dtype)]


def accumulator_of(scalar: Scalar) -> Scalar:
    """The type in which sums of `scalar` are kept: f32 for 16- and 8-bit floats, i32 for 8- and 16-bit integers."""
    if scalar.is_float and scalar.bits < 32:
        return f32
    if scalar.is_integer and scalar.bits < 32:
        return i32
    return scalar


def result_of(scalar: Scalar) -> Scalar:
    """The type of products of matrices of `scalar`, where none is said: small integers would not hold them."""
    return accumulator_of(scalar) if scalar.is_integer else scalar
