"""Instructions of AVX-512 for elementary functions, on vectors of any number of whole registers.

Only where `fits` says so: elsewhere the functions are computed without them.
"""

from __future__ import annotations

from lithify.machine import host
from lithify.targets.cpu.builder import FLOATS, Value, type_text

_SHORT = {"float": "ps", "double": "pd"}
_NARROWEST, _WIDEST = 128, 512  # bits of a register
_CURRENT_ROUNDING = 4


def fits(value: Value) -> bool:
    """Are there such instructions here, and does the value fill one register or a power of two of them?"""
    bits = FLOATS.get(value.kind, 0) * value.lanes
    whole = bits >= _NARROWEST and bits.bit_count() == 1
    return value.kind in _SHORT and whole and "avx512" in host().architecture.split()


def times_power_of_two(value: Value, exponent: Value) -> Value:
    """value 2^exponent for an exponent that is an integer, rounded once: infinite or subnormal beyond the range."""
    return _by_registers("mask.scalef", [value, exponent], rounding=True)


def rough_inverse_root(value: Value) -> Value:
    """1 / sqrt value with a relative error of at most 2^-14; infinite for 0 and 0 for infinity, of the same sign."""
    return _by_registers("rsqrt14", [value], rounding=False)


def _by_registers(name: str, operands: list[Value], rounding: bool) -> Value:
    """An instruction with a mask (all lanes), register by register; the widest can be told how to round."""
    first = operands[0]
    b, lanes = first.builder, min(first.lanes, _WIDEST // FLOATS[first.kind])
    if first.lanes > lanes:
        halves = [range(start, start + first.lanes // 2) for start in (0, first.lanes // 2)]
        return b.joined(*(_by_registers(name, [b.shuffle(o, half) for o in operands], rounding) for half in halves))
    bits = lanes * FLOATS[first.kind]
    function = f"@llvm.x86.avx512.{name}.{_SHORT[first.kind]}.{bits}"
    mask = f"i{max(lanes, 8)}"
    arguments = [*(o.typed for o in operands), f"{first.type} zeroinitializer", f"{mask} -1"]
    if rounding and bits == _WIDEST:
        arguments.append(f"i32 {_CURRENT_ROUNDING}")
    types = [*(o.type for o in operands), first.type, mask, "i32"][: len(arguments)]
    result = type_text(first.kind, lanes)
    b.declare(f"declare {result} {function}({', '.join(types)})")
    return Value(b, first.kind, lanes, b.emit(f"call {result} {function}({', '.join(arguments)})"))
