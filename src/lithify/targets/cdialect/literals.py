"""Literals that are read back as exactly the value they were written from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lithify.lang.scalars import Kind, Scalar, f32
from lithify.targets.cdialect.dialect import Dialect, computed, parts_of
from lithify.targets.cdialect.text import PRIMARY, UNARY, Text


def literal(value: Any, scalar: Scalar, dialect: Dialect) -> Text:
    """The literal for a Python value of a scalar type; floats of 8 and 16 bits are written as the f32 they equal."""
    if scalar.kind is Kind.BOOL:
        return Text("true" if value else "false")
    if scalar.is_complex:
        part = parts_of(scalar)
        number = complex(value)
        real, imaginary = (_float(x, part, dialect).text for x in (number.real, number.imag))
        return Text(f"make_{scalar.name}({real}, {imaginary})")
    if scalar.is_float:
        with np.errstate(over="ignore"):
            rounded = float(np.asarray(value, dtype=scalar.dtype).astype(np.float64))
        return _float(rounded, computed(scalar), dialect)
    return integer(int(np.asarray(value).astype(scalar.dtype)), scalar, dialect)


def integer(value: int, scalar: Scalar, dialect: Dialect) -> Text:
    """An integer literal. The least value of a signed type has no literal in C; the dialect names it."""
    if scalar.kind is Kind.SIGNED and scalar.bits >= 32 and value == scalar.limits[0]:
        return Text(dialect.least_integers[scalar.bits], PRIMARY)
    text = f"{value}{dialect.literal_suffixes.get(scalar, '')}"
    return Text(text, UNARY if value < 0 else PRIMARY)


def _float(value: float, scalar: Scalar, dialect: Dialect) -> Text:
    if math.isnan(value):
        return Text("NAN")
    if math.isinf(value):
        return Text("INFINITY") if value > 0 else Text("-INFINITY", UNARY)
    text = _shortest(value, scalar)
    return Text(text + dialect.literal_suffixes.get(scalar, ""), UNARY if text.startswith("-") else PRIMARY)


def _shortest(value: float, scalar: Scalar) -> str:
    """The shortest decimal that is read back as the value."""
    number = np.float32(value) if scalar is f32 else np.float64(value)
    text = np.format_float_scientific(number, unique=True, trim="0")
    plain = np.format_float_positional(number, unique=True, trim="0")
    return plain if len(plain) <= len(text) + 2 else text
