"""Scalar types in LLVM registers and in memory, and the conversions between them.

Booleans are i1 in registers and bytes in memory; f16 is `half`; bf16 and the 8-bit floats are integers that hold
their bits. Arithmetic on floats narrower than f32 is done in f32 and rounded after every operation. Conversions round
to nearest even, once: from f64 by way of f32 rounded to odd (Boldo and Melquiond 2008). Complex numbers are pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.scalars import (
    Kind,
    Scalar,
    bf16,
    bool_,
    complex64,
    complex128,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
)  # fmt: skip
from lithify.machine import host
from lithify.targets.cpu.builder import UNLIKELY, Builder, Value, suffix, type_text

_REGISTER = {bool_: "i1", f16: "half", bf16: "i16", f8e4m3: "i8", f8e5m2: "i8", f32: "float", f64: "double",
             complex64: "float", complex128: "double"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Small:
    """A float format that is computed by integer operations: mantissa bits, exponent bias, has infinities."""

    mantissa: int
    bias: int
    infinities: bool


# Lanes of f32 that AVX-512 has instructions to round to bf16; the class of subnormal numbers in its tests.
_VECTOR, _ROUNDED_AT_ONCE, _SUBNORMAL = 16, (16, 32, 64), 0x20

_SMALL = {f8e4m3: Small(3, 7, False), f8e5m2: Small(2, 15, True)}


def register_kind(scalar: Scalar) -> str:
    """The LLVM type of an element in a register (of one part of a complex number)."""
    return _REGISTER.get(scalar) or f"i{scalar.bits}"


def memory_kind(scalar: Scalar) -> str:
    """The LLVM type of an element in memory (of one part of a complex number)."""
    return "i8" if scalar is bool_ else register_kind(scalar)


def part_scalar(scalar: Scalar) -> Scalar:
    """The type of a complex type's real and imaginary parts."""
    return f32 if scalar is complex64 else f64


def widen(value: Value, scalar: Scalar) -> Value:
    """A float narrower than f32 as f32, exactly; f32 and f64 as they are."""
    if scalar in (f32, f64):
        return value
    if scalar is f16:
        return value.cast("fpext", "float")
    if scalar is bf16:
        return value.cast("zext", "i32").shl(16).cast("bitcast", "float")
    if scalar is f8e5m2:  # the upper half of an f16
        return value.cast("zext", "i16").shl(8).cast("bitcast", "half").cast("fpext", "float")
    # f8e4m3: its exponent and mantissa as those of an f16, whose bias is greater by 8
    bits = value.cast("zext", "i16")
    half = (bits & 0x80).shl(8) | (bits & 0x7F).shl(7)
    wide = half.cast("bitcast", "half").cast("fpext", "float") * 256.0
    return (value & 0x7F).compare("eq", 0x7F).choose(wide.like(float("nan")), wide)


def narrow(value: Value, scalar: Scalar) -> Value:
    """An f32 or f64 as a float type, rounded to nearest even."""
    if scalar is f64:
        return value.cast("fpext", "double")
    if value.kind == "double":
        if scalar is f32:
            return value.cast("fptrunc", "float")
        value = _round_to_odd(value)
    if scalar is f32:
        return value
    if scalar is f16:
        return value.cast("fptrunc", "half")
    if scalar is bf16:
        return _narrow_bf16(value)
    return _narrow_small(value, _SMALL[scalar])


def _narrow_bf16(value: Value) -> Value:
    """f32 to bf16: by the processor where it can, but for vectors with subnormal numbers, which it takes for zeros."""
    if value.lanes not in _ROUNDED_AT_ONCE or "avx512bf16" not in host().architecture.split():
        return _upper_half(value)
    b = value.builder
    subnormal = b.constant("i16", 0)
    for start in range(0, value.lanes, _VECTOR):
        part = b.shuffle(value, range(start, start + _VECTOR))
        found = _call(b, "fpclass.ps.512", "i1", part.typed, f"i32 {_SUBNORMAL}")
        subnormal = subnormal | Value(b, "i16", 0, b.emit(f"bitcast {found.typed} to i16"))
    label = b.fresh("round")
    b.line(f"br i1 {subnormal.compare('ne', 0).text}, label %{label}, label %{label}.fast, {UNLIKELY}")
    b.start(label)
    exact = _upper_half(value)
    b.line(f"br label %{label}.end")
    b.start(f"{label}.fast")
    fast = _rounded(value)
    b.line(f"br label %{label}.end")
    b.start(f"{label}.end")
    incoming = f"[ {exact.text}, %{label} ], [ {fast.text}, %{label}.fast ]"
    return Value(b, "i16", value.lanes, b.emit(f"phi {exact.type} {incoming}"))


def _upper_half(value: Value) -> Value:
    """f32 to bf16 by integer operations."""
    bits = value.bits()
    rounded = (bits + ((bits.lshr(16) & 1) + 0x7FFF)).lshr(16)
    quiet = bits.lshr(16) | 0x40
    return value.compare("ne", value).choose(quiet, rounded).cast("trunc", "i16")


def _rounded(value: Value) -> Value:
    """f32 without subnormal numbers to bf16 by the processor's instructions."""
    b, lanes = value.builder, value.lanes
    if lanes == _VECTOR:
        return _call(b, "cvtneps2bf16.512", "bfloat", value.typed).cast("bitcast", "i16")
    low, high = (b.shuffle(value, range(start, start + lanes // 2)) for start in (0, lanes // 2))
    if lanes == 2 * _VECTOR:
        return _call(b, "cvtne2ps2bf16.512", "bfloat", high.typed, low.typed).cast("bitcast", "i16")
    return b.joined(_rounded(low), _rounded(high))


def _call(b: Builder, name: str, kind: str, *operands: str) -> Value:
    """An intrinsic of AVX-512, whose result has as many lanes as its first operands together."""
    vectors = [o.rpartition(" ")[0] for o in operands]
    lanes = _VECTOR * sum(v.startswith("<") for v in vectors)
    family = "avx512" if kind == "i1" else "avx512bf16"
    result = type_text(kind, lanes)
    b.declare(f"declare {result} @llvm.x86.{family}.{name}({', '.join(vectors)})")
    return Value(b, kind, lanes, b.emit(f"call {result} @llvm.x86.{family}.{name}({', '.join(operands)})"))


def _round_to_odd(value: Value) -> Value:
    """f64 to f32 such that rounding the result again equals rounding once."""
    nearest = value.cast("fptrunc", "float")
    back = nearest.cast("fpext", "double")
    b = value.builder
    inexact = back.compare("ne", value)
    beyond = b.intrinsic("fabs", back).compare("gt", b.intrinsic("fabs", value))
    bits = nearest.bits()
    truncated = beyond.choose(bits - 1, bits)
    odd = inexact.choose(truncated | 1, bits)
    return value.compare("ne", value).choose(bits, odd).cast("bitcast", "float")


def _narrow_small(value: Value, small: Small) -> Value:
    """f32 to an 8-bit format: subnormal results by adding a power of two whose last place is theirs."""
    bits = value.bits()
    sign = (bits & (1 << 31)).lshr(24)
    magnitude = bits & 0x7FFFFFFF
    shift = 23 - small.mantissa
    least_normal = (127 + 1 - small.bias) << 23
    anchor = value.like(2.0 ** (1 - small.bias + shift))
    below = (magnitude.cast("bitcast", "float") + anchor).bits() - anchor.bits()
    half = (1 << (shift - 1)) - 1
    above = magnitude - ((127 - small.bias) << 23)
    above = (above + ((above.lshr(shift) & 1) + half)).lshr(shift)
    result = magnitude.compare("lt", least_normal, signed=False).choose(below, above)
    special = 0x7F if not small.infinities else 0x7C
    result = result.compare("gt", special, signed=False).choose(result.like(special), result)
    if small.infinities:
        result = magnitude.compare("gt", 0x7F800000, signed=False).choose(result.like(0x7F), result)
    return (result | sign).cast("trunc", "i8")


Parts = tuple[Value, ...]


def convert(parts: Parts, source: Scalar, target: Scalar, b: Builder) -> Parts:
    """A value (its parts) as another scalar type, with the meaning of `lang.operators`."""
    if source is target:
        return parts
    if target.is_complex:
        element = part_scalar(target)
        if source.is_complex:
            return tuple(_convert_real(p, part_scalar(source), element) for p in parts)
        real = _convert_real(parts[0], source, element)
        return real, b.constant(real.kind, 0.0)
    if source.is_complex:
        if target is bool_:
            zero = [p.compare("ne", 0.0) for p in parts]
            return (zero[0] | zero[1],)
        return (_convert_real(parts[0], part_scalar(source), target),)
    return (_convert_real(parts[0], source, target),)


def _convert_real(value: Value, source: Scalar, target: Scalar) -> Value:
    if source is target:
        return value
    if source.is_float:
        wide = widen(value, source)
        if target.is_float:
            return narrow(wide, target)
        if target is bool_:
            return wide.compare("ne", 0.0)
        return _saturating(wide, target)
    signed = source.kind is Kind.SIGNED
    kind = register_kind(target)
    if target is bool_:
        return value.compare("ne", 0)
    if target.is_integer:
        return value.resized(kind, signed)
    operation = "sitofp" if signed else "uitofp"
    if target in (f32, f64):
        return value.cast(operation, kind)
    # i32 and wider: f64 first, so that the value is rounded once (exact for 32 bits)
    return narrow(value.cast(operation, "double" if source.bits > 16 else "float"), target)


def _saturating(value: Value, target: Scalar) -> Value:
    kind = register_kind(target)
    b, lanes = value.builder, value.lanes
    operation = "fptosi" if target.kind is Kind.SIGNED else "fptoui"
    result = Value(b, kind, lanes, "")
    name = f"@llvm.{operation}.sat.{suffix(kind, lanes)}.{suffix(value.kind, lanes)}"
    b.declare(f"declare {result.type} {name}({value.type})")
    return Value(b, kind, lanes, b.emit(f"call {result.type} {name}({value.typed})"))
