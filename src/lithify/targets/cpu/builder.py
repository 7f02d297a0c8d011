"""Printing LLVM IR: values with arithmetic, and a builder that collects the lines of one function.

A `Value` is a scalar or a vector of one LLVM element type. Operands of different widths are brought together by
splats, Python numbers become constants, so that formulas (`mathematics`, `conversion`) read as formulas.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

FLOATS = {"half": 16, "float": 32, "double": 64}
_SHORT = {"half": "f16", "float": "f32", "double": "f64"}

Number = int | float | bool

# What a branch says that is seldom taken; the module's text ends with its meaning. Loops have the numbers after it.
UNLIKELY = "!prof !1"
METADATA = '!0 = !{i32 1}\n!1 = !{!"branch_weights", i32 1, i32 2000}\n'
_FIRST_LOOP = 2


class Module:
    """Functions, the declarations of the intrinsics they call, and what is said about loops."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.declarations: set[str] = set()
        self.loops: list[str] = []

    def define(self, signature: str, lines: Iterable[str]) -> None:
        """Add a function: its linkage, type, name and parameters, and the lines of its body."""
        self.functions.append("\n".join([f"define {signature} #0 {{", "entry:", *lines, "}"]))

    def text(self) -> str:
        """The module as LLVM reads it."""
        return "\n\n".join(self.functions) + "\n\n" + "\n".join([*sorted(self.declarations), *self.loops]) + "\n"

    def unrolled(self, times: int) -> str:
        """What the branch at the end of a loop says, so that LLVM writes the loop's body so many times."""
        number = _FIRST_LOOP + len(self.loops)
        self.loops += (
            f"!{number} = distinct !{{!{number}, !{number + 1}}}",
            f'!{number + 1} = !{{!"llvm.loop.unroll.count", i32 {times}}}',
        )
        return f", !llvm.loop !{number}"


class Value:
    """A register or a constant: `kind` is the LLVM type of an element, `lanes` the vector's length or 0."""

    __slots__ = ("builder", "kind", "lanes", "text")

    def __init__(self, builder: Builder, kind: str, lanes: int, text: str) -> None:
        self.builder, self.kind, self.lanes, self.text = builder, kind, lanes, text

    @property
    def type(self) -> str:
        """The LLVM type."""
        return type_text(self.kind, self.lanes)

    @property
    def typed(self) -> str:
        """Type and name, as an operand is written."""
        return f"{self.type} {self.text}"

    @property
    def is_float(self) -> bool:
        return self.kind in FLOATS

    def like(self, other: Value | Number) -> Value:
        """`other` as an operand beside this value."""
        return other if isinstance(other, Value) else self.builder.constant(self.kind, other, self.lanes)

    def __add__(self, other: Value | Number) -> Value:
        return self.builder.binary("fadd" if self.is_float else "add", self, self.like(other))

    def __sub__(self, other: Value | Number) -> Value:
        return self.builder.binary("fsub" if self.is_float else "sub", self, self.like(other))

    def __mul__(self, other: Value | Number) -> Value:
        return self.builder.binary("fmul" if self.is_float else "mul", self, self.like(other))

    def __truediv__(self, other: Value | Number) -> Value:
        return self.builder.binary("fdiv", self, self.like(other))

    def __and__(self, other: Value | Number) -> Value:
        return self.builder.binary("and", self, self.like(other))

    def __or__(self, other: Value | Number) -> Value:
        return self.builder.binary("or", self, self.like(other))

    def __xor__(self, other: Value | Number) -> Value:
        return self.builder.binary("xor", self, self.like(other))

    def __neg__(self) -> Value:
        if self.is_float:
            return Value(self.builder, self.kind, self.lanes, self.builder.emit(f"fneg {self.typed}"))
        return self.like(0) - self

    def shl(self, other: Value | Number) -> Value:
        """Shifted left."""
        return self.builder.binary("shl", self, self.like(other))

    def lshr(self, other: Value | Number) -> Value:
        """Shifted right, zeros coming in."""
        return self.builder.binary("lshr", self, self.like(other))

    def ashr(self, other: Value | Number) -> Value:
        """Shifted right, copies of the sign coming in."""
        return self.builder.binary("ashr", self, self.like(other))

    def compare(self, relation: str, other: Value | Number, signed: bool = True) -> Value:
        """`relation` is eq, ne, lt, le, gt or ge; comparisons with NaN are false, but for ne."""
        if self.is_float:
            code = "fcmp " + ("une" if relation == "ne" else "o" + relation)
        elif relation in ("eq", "ne"):
            code = f"icmp {relation}"
        else:
            code = f"icmp {'s' if signed else 'u'}{relation}"
        result = self.builder.binary(code, self, self.like(other))
        return Value(self.builder, "i1", result.lanes, result.text)

    def choose(self, then: Value, otherwise: Value | Number) -> Value:
        """`then` where this i1 holds, else `otherwise`."""
        otherwise = then.like(otherwise)
        lanes = max(self.lanes, then.lanes, otherwise.lanes)
        condition = self if not self.lanes else self.splat(lanes)
        a, b = then.splat(lanes), otherwise.splat(lanes)
        return Value(self.builder, a.kind, lanes, self.builder.emit(f"select {condition.typed}, {a.typed}, {b.typed}"))

    def splat(self, lanes: int) -> Value:
        """The value in every lane; itself where it is a vector or `lanes` is 0."""
        if not lanes or self.lanes:
            return self
        b = self.builder
        if not self.text.startswith("%"):
            return Value(b, self.kind, lanes, f"splat ({self.typed})")
        one = b.emit(f"insertelement {type_text(self.kind, lanes)} poison, {self.typed}, i64 0")
        vector = type_text(self.kind, lanes)
        return Value(
            b,
            self.kind,
            lanes,
            b.emit(f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer"),
        )

    def cast(self, operation: str, kind: str) -> Value:
        """One of LLVM's casts (sext, zext, trunc, sitofp, fpext, bitcast, ...) of every element."""
        if kind == self.kind:
            return self
        target = type_text(kind, self.lanes)
        return Value(self.builder, kind, self.lanes, self.builder.emit(f"{operation} {self.typed} to {target}"))

    def bits(self) -> Value:
        """A float's bits as an integer of the same width."""
        return self.cast("bitcast", f"i{FLOATS[self.kind]}")

    def resized(self, kind: str, signed: bool = True) -> Value:
        """An integer as an integer of another width."""
        old, new = int(self.kind[1:]), int(kind[1:])
        return self if old == new else self.cast("trunc" if new < old else "sext" if signed else "zext", kind)


def type_text(kind: str, lanes: int) -> str:
    """The LLVM type of `lanes` elements (0: a scalar)."""
    return f"<{lanes} x {kind}>" if lanes else kind


def bytes_of_kind(kind: str) -> int:
    """The bytes of an element of an LLVM type."""
    return {"half": 2, "bfloat": 2, "float": 4, "double": 8}.get(kind) or int(kind[1:]) // 8


def suffix(kind: str, lanes: int) -> str:
    """How intrinsics name a type, for instance v16f32."""
    short = _SHORT.get(kind, kind)
    return f"v{lanes}{short}" if lanes else short


def literal(kind: str, value: Number) -> str:
    """A constant as LLVM writes it."""
    if kind == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if kind == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    if kind in FLOATS:
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
    if kind == "i1":
        return "true" if value else "false"
    return str(int(value))


class Builder:
    """The lines of one function."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0

    def fresh(self, prefix: str = "") -> str:
        """A name without % that was not used in this function."""
        self._count += 1
        return f"{prefix}{self._count}" if prefix else f"v{self._count}"

    def line(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append("  " + text)

    def emit(self, text: str) -> str:
        """An instruction; the name of its result."""
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def constant(self, kind: str, value: Number, lanes: int = 0) -> Value:
        """A constant, in every lane."""
        text = literal(kind, value)
        return Value(self, kind, lanes, f"splat ({kind} {text})" if lanes else text)

    def vector(self, kind: str, values: Iterable[Number]) -> Value:
        """A vector of different constants."""
        elements = [f"{kind} {literal(kind, v)}" for v in values]
        return Value(self, kind, len(elements), "<" + ", ".join(elements) + ">")

    def binary(self, operation: str, a: Value, b: Value) -> Value:
        """An operation on two values of one kind; the result has that kind."""
        if a.kind != b.kind:
            raise AssertionError(f"{operation} on {a.type} and {b.type}")
        lanes = max(a.lanes, b.lanes)
        a, b = a.splat(lanes), b.splat(lanes)
        return Value(self, a.kind, lanes, self.emit(f"{operation} {a.typed}, {b.text}"))

    def shuffle(self, value: Value, order: Sequence[int], second: Value | None = None) -> Value:
        """Lanes of a vector in another order; those of a second one, as long, are numbered after its own."""
        indices = "<" + ", ".join(f"i32 {i}" for i in order) + ">"
        other = f"{value.type} poison" if second is None else second.typed
        text = self.emit(f"shufflevector {value.typed}, {other}, <{len(order)} x i32> {indices}")
        return Value(self, value.kind, len(order), text)

    def joined(self, first: Value, second: Value) -> Value:
        """The lanes of one vector, then those of another as long."""
        return self.shuffle(first, range(first.lanes + second.lanes), second)

    def intrinsic(self, name: str, *operands: Value, flags: str = "") -> Value:
        """An LLVM intrinsic on operands of one kind, overloaded by their type."""
        lanes = max(o.lanes for o in operands)
        operands = tuple(o.splat(lanes) for o in operands)
        kind = operands[0].kind
        type_ = type_text(kind, lanes)
        function = f"@llvm.{name}.{suffix(kind, lanes)}"
        self.declare(f"declare {type_} {function}({', '.join(o.type for o in operands)})")
        arguments = ", ".join(o.typed for o in operands)
        return Value(
            self, kind, lanes, self.emit(f"call {flags + ' ' if flags else ''}{type_} {function}({arguments})")
        )

    def declare(self, text: str) -> None:
        """Declare a function that this one calls."""
        self.module.declarations.add(text)

    def fma(self, a: Value, b: Value | Number, c: Value | Number) -> Value:
        """a b + c, rounded once."""
        return self.intrinsic("fma", a, a.like(b), a.like(c))

    def loop(self, extent: Value, begin: Value | None = None) -> LoopFrame:
        """Open a loop over begin (0) <= i < extent; the extent must be more than begin."""
        return LoopFrame(self, begin or self.constant("i64", 0), extent)


class LoopFrame:
    """A loop being printed: `index` is its variable; `close` ends it."""

    def __init__(self, builder: Builder, begin: Value, extent: Value) -> None:
        self.builder, self.extent = builder, extent
        self.label = builder.fresh("loop")
        before = builder.block
        builder.line(f"br label %{self.label}")
        builder.start(self.label)
        self.place = len(builder.lines)
        builder.lines.append("")
        self.index = Value(builder, "i64", 0, f"%{self.label}.index")
        self._incoming = f"[ {begin.text}, %{before} ]"

    def close(self, unrolled: int = 1) -> None:
        """The increment, the test, and what follows the loop, whose body LLVM writes so many times."""
        b, name = self.builder, self.index.text
        b.line(f"{name}.next = add nuw nsw i64 {name}, 1")
        b.lines[self.place] = f"  {name} = phi i64 {self._incoming}, [ {name}.next, %{b.block} ]"
        b.line(f"{name}.more = icmp slt i64 {name}.next, {self.extent.text}")
        says = b.module.unrolled(unrolled) if unrolled > 1 else ""
        b.line(f"br i1 {name}.more, label %{self.label}, label %{self.label}.end{says}")
        b.start(f"{self.label}.end")
