"""The scalar operators in LLVM IR, on every scalar type.

What LLVM leaves undefined (division by zero, shifts by the width and more) is given the meaning of `lang.operators`.
`contract` lets the code generator fuse a b + c; nothing else is reassociated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lithify.lang.operators import Operator, Typing
from lithify.lang.scalars import Kind, Scalar, bool_, f32, f64
from lithify.targets.cpu import complexes, mathematics
from lithify.targets.cpu.builder import Builder, Value
from lithify.targets.cpu.conversion import Parts, convert, narrow, widen

_RELATIONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})


def apply(b: Builder, operator: Operator, operands: Sequence[tuple[Parts, Scalar]], result: Scalar) -> Parts:
    """The parts of `operator` applied to operands given as parts and type."""
    name = operator.name
    first, scalar = operands[0]
    if operator.typing is Typing.CONVERT:
        return convert(first, scalar, result, b)
    if operator.typing is Typing.MAKE_COMPLEX:
        return first[0], operands[1][0][0]
    if name == "select":
        then, otherwise = operands[1][0], operands[2][0]
        return tuple(first[0].choose(t, o) for t, o in zip(then, otherwise, strict=True))
    if scalar.is_complex:
        return complexes.apply(b, name, [p for p, _ in operands])
    values = [parts[0] for parts, _ in operands]
    if name in _RELATIONS:
        if scalar.is_float:
            values = [widen(v, scalar) for v in values]
        return (values[0].compare(name, values[1], signed=scalar.kind is Kind.SIGNED),)
    if scalar.is_float:
        return (_float(b, name, values, scalar),)
    if scalar is bool_:
        return (_LOGICAL[name](values),)
    return (_integer(b, name, values, scalar.kind is Kind.SIGNED, scalar.bits),)


_FLOAT: dict[str, Callable[[Builder, list[Value]], Value]] = {
    "add": lambda b, v: b.binary("fadd contract", *v),
    "sub": lambda b, v: b.binary("fsub contract", *v),
    "mul": lambda b, v: b.binary("fmul contract", *v),
    "div": lambda b, v: b.binary("fdiv", *v),
    "min": lambda b, v: b.intrinsic("minnum", *v),
    "max": lambda b, v: b.intrinsic("maxnum", *v),
    "fma": lambda b, v: b.intrinsic("fma", *v),
    "neg": lambda b, v: -v[0],
    "abs": lambda b, v: b.intrinsic("fabs", *v),
    "sqrt": lambda b, v: b.intrinsic("sqrt", *v),
    "floor": lambda b, v: b.intrinsic("floor", *v),
    "ceil": lambda b, v: b.intrinsic("ceil", *v),
    "round": lambda b, v: b.intrinsic("roundeven", *v),
    "tf32": lambda _b, v: _tf32(v[0]),
    **mathematics.FUNCTIONS,
}


def _float(b: Builder, name: str, values: list[Value], scalar: Scalar) -> Value:
    if name == "neg":
        if values[0].is_float:
            return -values[0]
        return values[0] ^ (1 << (scalar.bits - 1))  # the bits of bf16 and 8-bit floats
    if scalar in (f32, f64):
        return _FLOAT[name](b, values)
    wide = [widen(v, scalar) for v in values]
    if name in ("min", "max"):  # the operands themselves, by comparison: LLVM would call the C library for halves
        first = wide[0].compare("lt" if name == "min" else "gt", wide[1]) | wide[1].compare("ne", wide[1])
        return first.choose(*values)
    if name == "fma":  # the product of two narrow floats is exact in f64
        wide = [v.cast("fpext", "double") for v in wide]
    return narrow(_FLOAT[name](b, wide), scalar)


def _tf32(value: Value) -> Value:
    """f32 rounded to nearest even with 10 bits behind the point."""
    bits = value.bits()
    rounded = (bits + ((bits.lshr(13) & 1) + 0xFFF)) & -(1 << 13)
    return value.compare("ne", value).choose(value, rounded.cast("bitcast", "float"))


_LOGICAL: dict[str, Callable[[list[Value]], Value]] = {
    "and": lambda v: v[0] & v[1],
    "or": lambda v: v[0] | v[1],
    "xor": lambda v: v[0] ^ v[1],
    "not": lambda v: v[0] ^ True,
}


def _integer(b: Builder, name: str, values: list[Value], signed: bool, bits: int) -> Value:
    x = values[0]
    if name in _LOGICAL:
        return x ^ -1 if name == "not" else _LOGICAL[name](values)
    if name == "neg":
        return -x
    if name == "abs":
        return x.compare("lt", 0).choose(-x, x) if signed else x
    y = values[1]
    if name == "add":
        return x + y
    if name == "sub":
        return x - y
    if name == "mul":
        return x * y
    if name in ("min", "max"):
        return b.intrinsic(("s" if signed else "u") + name, x, y)
    if name in ("shl", "shr"):
        return _shift(name, x, y, signed, bits)
    zero = y.compare("eq", 0)
    safe = zero.choose(y.like(1), y)
    if signed:  # the least value over -1 overflows to itself; over 1 it gives the same quotient and remainder
        overflow = y.compare("eq", -1) & x.compare("eq", -(1 << (bits - 1)))
        safe = overflow.choose(safe.like(1), safe)
    operation = ("s" if signed else "u") + name
    return zero.choose(x.like(0), b.binary(operation, x, safe))


def _shift(name: str, x: Value, count: Value, signed: bool, bits: int) -> Value:
    """Counts are unsigned here: a negative one is a large one."""
    inside = count.compare("lt", bits, signed=False)
    if name == "shr" and signed:
        return x.ashr(inside.choose(count, bits - 1))
    count = count & (bits - 1)
    return inside.choose(x.shl(count) if name == "shl" else x.lshr(count), 0)
