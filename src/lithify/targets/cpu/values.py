"""Values of the kernel language in LLVM IR, loads among them.

Inside `Lanes`, how an index depends on the lane decides what an access is: not at all, one scalar for all lanes; with
coefficient 1, a contiguous vector; with -1, a reversed one; otherwise a gather.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from lithify.arith import Expr, Variable, const
from lithify.kernel import ir
from lithify.kernel.walk import accesses, loaded_in
from lithify.lang.scalars import Scalar, bool_, i64
from lithify.targets.cpu import operators
from lithify.targets.cpu.builder import Module, Value, bytes_of_kind, suffix
from lithify.targets.cpu.conversion import Parts, convert, memory_kind, part_scalar, register_kind
from lithify.targets.cpu.indices import IndexEmitter


@dataclass(frozen=True, slots=True)
class Access:
    """Where a load or store goes: `stride` is the lane's coefficient, None when the index is no linear form of it."""

    buffer: ir.Buffer
    index: Expr
    stride: int | None


def _lasts(load: ir.Load) -> bool:
    """Whether a load rests on inputs alone: its index and conditions may be read from memory, too."""
    return all(buffer.role == "input" for buffer, _ in accesses(load))


class ValueEmitter(IndexEmitter):
    """Prints values into one function; `pointers` and `scalars` say where buffers are."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.pointers: dict[ir.Buffer, Value] = {}
        self.alignments: dict[ir.Buffer, int] = {}  # bytes that the pointers are known to be multiples of
        self.scalars: dict[ir.Buffer, Parts] = {}
        self._loads: dict[tuple[ir.Load, Value | None], Parts] = {}  # of inputs, under a mask

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed or loaded inside is forgotten at the end: it does not dominate what follows."""
        saved = dict(self._loads)
        try:
            with super().scope():
                yield
        finally:
            self._loads = saved

    def value(self, value: ir.Value, target: Scalar | None = None) -> Parts:
        """The parts of a value, converted to `target` if that is given."""
        parts = self._value(value)
        return parts if target is None else convert(parts, value.scalar, target, self)

    def _value(self, value: ir.Value) -> Parts:
        if isinstance(value, ir.Constant):
            return self._constant(value)
        if isinstance(value, ir.IndexValue):
            return convert((self.index(value.index),), i64, value.scalar, self)
        if isinstance(value, ir.Load):
            return self._load_once(value) if _lasts(value) else self._load(value)
        if isinstance(value, ir.Choose):
            return self._choose(value)
        operands = [(self._value(v), v.scalar) for v in value.operands]
        return operators.apply(self, value.operator, operands, value.scalar)

    def _constant(self, constant: ir.Constant) -> Parts:
        scalar, value = constant.scalar, constant.value
        kind = register_kind(scalar)
        if scalar.is_complex:
            number = complex(value)
            return self.constant(kind, number.real), self.constant(kind, number.imag)
        if not scalar.is_float:
            return (self.constant(kind, value),)
        with np.errstate(over="ignore"):
            if kind.startswith("i"):  # stored as bits
                return (self.constant(kind, int(np.array(value, scalar.dtype).view(f"u{scalar.bytes}"))),)
            return (self.constant(kind, float(np.array(value).astype(scalar.dtype))),)

    def _choose(self, choice: ir.Choose) -> Parts:
        return self._where(choice.guard, self._value(choice.then), choice.otherwise)

    def _where(self, conditions: ir.Guard, then: Parts, otherwise: ir.Value | None) -> Parts:
        """`then` where the conditions hold, `otherwise` (undefined if None) elsewhere."""
        condition = self.condition(conditions)
        if condition is None or otherwise is None:
            return then
        return tuple(condition.choose(t, o) for t, o in zip(then, self._value(otherwise), strict=True))

    # ---- places in memory --------------------------------------------------------------------------------------

    def access(self, element: ir.ElementAccess) -> Access:
        """Where a load or store goes."""
        position = element.position
        return Access(element.buffer, position, 0 if self.lane is None else position.coefficient(self.lane))

    def alignment(self, access: Access, lowest: Expr) -> int:
        """Bytes that divide the address of `lowest`: gcd of its coefficients and of its base."""
        return gcd(lowest.alignment * access.buffer.scalar.bytes, self.alignments[access.buffer])

    def address(self, access: Access, index: Expr) -> Value:
        """The address of the element at a scalar index."""
        buffer = access.buffer
        kind = memory_kind(buffer.scalar)
        steps = 2 if buffer.scalar.is_complex else 1
        offset = self.index(index * steps)
        base = self.pointers[buffer]
        return Value(self, "ptr", 0, self.emit(f"getelementptr inbounds {kind}, {base.typed}, {offset.typed}"))

    def addresses(self, access: Access) -> Value:
        """One address a lane."""
        if access.stride == 0:
            return self.address(access, access.index).splat(self.width)
        buffer = access.buffer
        kind = memory_kind(buffer.scalar)
        offset = self.index(access.index * (2 if buffer.scalar.is_complex else 1))
        text = self.emit(f"getelementptr inbounds {kind}, {self.pointers[buffer].typed}, {offset.typed}")
        return Value(self, "ptr", self.width, text)

    def lowest(self, access: Access) -> Expr:
        """The index of the lane with the lowest address of a contiguous access."""
        assert self.lane is not None and access.stride is not None
        base = access.index - self.lane.expr * access.stride
        return base if access.stride > 0 else base - (self.width - 1)

    # ---- loads -------------------------------------------------------------------------------------------------

    def _load_once(self, load: ir.Load) -> Parts:
        """A load of what nothing writes. LLVM would find it too, later: texts of stencils are half as long."""
        found = self._loads.get((load, self.mask))
        if found is None:
            found = self._loads[load, self.mask] = self._load(load)
        return found

    def _load(self, load: ir.Load) -> Parts:
        buffer = load.buffer
        if buffer in self.scalars:
            return self._where(load.guard, self.scalars[buffer], load.fill)
        access = self.access(load)
        varies = self.depends_on_lane(access.index, *load.guard) or (self.lane is not None and access.stride is None)
        if not varies:
            return self._load_one(load, access)
        shifted = self._load_shifted(load, access)
        if shifted is not None:
            return self._where(load.guard, (self.from_memory(shifted, buffer.scalar),), load.fill)
        mask = self.lane_mask(load.guard)
        nearby = self._load_nearby(access) if mask is None and access.stride is None else None
        if nearby is not None:
            parts = nearby
        elif access.stride in (1, -1):
            parts = self._load_contiguous(access, mask)
        else:
            parts = self._gather(access, mask)
        parts = tuple(self.from_memory(p, buffer.scalar) for p in parts)
        return self._where(load.guard, parts, load.fill)

    def _fill(self, load: ir.Load) -> Parts:
        if load.fill is not None:
            return self.value(load.fill, load.scalar)
        zero = self.constant(register_kind(load.scalar), 0)
        return (zero, zero) if load.scalar.is_complex else (zero,)

    def from_memory(self, value: Value, scalar: Scalar) -> Value:
        """A loaded element as it is kept in registers."""
        return value.compare("ne", 0) if scalar is bool_ else value

    def _load_one(self, load: ir.Load, access: Access) -> Parts:
        """One element for all lanes; under a guard, by a branch around the load."""
        condition, _ = self.guard(load.guard)
        if condition is None:
            return self._load_scalar(access)
        fill = self._fill(load)
        label = self.fresh("load")
        before = self.block
        self.line(f"br i1 {condition.text}, label %{label}, label %{label}.end")
        self.start(label)
        with self.scope():
            loaded = tuple(p.splat(f.lanes) for p, f in zip(self._load_scalar(access), fill, strict=True))
            inside = self.block
            self.line(f"br label %{label}.end")
        self.start(f"{label}.end")
        return tuple(
            Value(self, p.kind, p.lanes, self.emit(f"phi {p.type} [ {p.text}, %{inside} ], [ {f.text}, %{before} ]"))
            for p, f in zip(loaded, fill, strict=True)
        )

    def _load_scalar(self, access: Access) -> Parts:
        buffer = access.buffer
        kind = memory_kind(buffer.scalar)
        address = self.address(access, access.index)
        size = buffer.scalar.bytes
        if not buffer.scalar.is_complex:
            align = min(size, self.alignments[buffer])
            return (self.from_memory(self._raw(kind, 0, address, align), buffer.scalar),)
        second = Value(self, "ptr", 0, self.emit(f"getelementptr inbounds {kind}, {address.typed}, i64 1"))
        align = part_scalar(buffer.scalar).bytes
        return self._raw(kind, 0, address, align), self._raw(kind, 0, second, align)

    def _raw(self, kind: str, lanes: int, address: Value, align: int) -> Value:
        result = Value(self, kind, lanes, "")
        return Value(self, kind, lanes, self.emit(f"load {result.type}, {address.typed}, align {align}"))

    def _load_contiguous(self, access: Access, mask: Value | None) -> Parts:
        buffer, w = access.buffer, self.width
        parts = 2 if buffer.scalar.is_complex else 1
        kind, lowest = memory_kind(buffer.scalar), self.lowest(access)
        address, align = self.address(access, lowest), self.alignment(access, lowest)
        reverse = access.stride == -1
        if mask is not None and reverse:
            mask = self.shuffle(mask, range(w - 1, -1, -1))
        if mask is None:
            whole = self._raw(kind, w * parts, address, align)
        else:
            if parts == 2:
                mask = self.shuffle(mask, [i // 2 for i in range(2 * w)])
            whole = self._masked_load(kind, address, align, mask)
        order = range(w - 1, -1, -1) if reverse else range(w)
        if parts == 1:
            return (self.shuffle(whole, order) if reverse else whole,)
        return tuple(self.shuffle(whole, [2 * i + k for i in order]) for k in range(2))

    def _load_shifted(self, load: ir.Load, access: Access) -> Value | None:
        """Neighbours in private memory that lie across its vectors: those whole, permuted, so that they stay registers.

        None where they lie as a vector does, or it is not known which lanes there are.
        """
        buffer, w = access.buffer, self.width
        if buffer.memory.name != "private" or buffer.scalar.is_complex or access.stride != 1:
            return None
        lowest, size = self.lowest(access), buffer.count.constant or 0
        shift = lowest.offset % w
        first = lowest - shift
        if not shift or size % w or first.alignment % w or any(g.variables() != {self.lane} for g in load.guard):
            return None
        there = [lane for lane in range(w) if all(g.evaluate({self.lane: lane}) >= 0 for g in load.guard)]
        vectors = sorted({(lane + shift) // w for lane in there})
        if not vectors:
            return None
        kind, align = memory_kind(buffer.scalar), self.alignment(access, first)
        parts = [self._raw(kind, w, self.address(access, first + w * vector), align) for vector in vectors]
        order = [(lane + shift) % (w * len(parts)) for lane in range(w)]
        return self.shuffle(parts[0], order, parts[-1])

    def _load_nearby(self, access: Access) -> Parts | None:
        """One vector with what all lanes need, permuted: at the ends of rows, where padding repeats elements.

        None where the lanes are further apart than that, or at distances that are not known.
        """
        apart = self._apart(access.index)
        if apart is None or access.buffer.scalar.is_complex:
            return None
        base, offsets = apart
        low, w = min(offsets), self.width
        span = max(offsets) - low + 1
        if span > w:
            return None
        lowest = base + low
        address, align = self.address(access, lowest), self.alignment(access, lowest)
        kind = memory_kind(access.buffer.scalar)
        if span == w:
            whole = self._raw(kind, w, address, align)
        else:
            whole = self._masked_load(kind, address, align, self.vector("i1", [i < span for i in range(w)]))
        return (self.shuffle(whole, [o - low for o in offsets]),)

    def _apart(self, index: Expr) -> tuple[Expr, list[int]] | None:
        """What all lanes share of an index, and what each adds to it; None where the two are entangled."""
        assert self.lane is not None
        own = const(0)
        for monomial, coefficient in index.terms:
            variables = frozenset[Variable]().union(*[atom.variables for atom in monomial])
            if self.lane not in variables:
                continue
            term = prod((atom.expr for atom in monomial), start=const(coefficient))
            if len(variables) > 1 or any(True for _ in loaded_in(term)):
                return None
            own = own + term
        return index - own, [own.evaluate({self.lane: i}) for i in range(self.width)]

    def _masked_load(self, kind: str, address: Value, align: int, mask: Value) -> Value:
        result = Value(self, kind, mask.lanes, "")
        name = f"@llvm.masked.load.{suffix(kind, mask.lanes)}.p0"
        self.declare(f"declare {result.type} {name}(ptr, {mask.type}, {result.type})")
        text = self.emit(
            f"call {result.type} {name}(ptr align {align} {address.text}, {mask.typed}, {result.type} zeroinitializer)"
        )
        return Value(self, kind, mask.lanes, text)

    def _gather(self, access: Access, mask: Value | None) -> Parts:
        buffer, w = access.buffer, self.width
        taken = self.constant("i1", True, w) if mask is None else mask
        base = self.addresses(access)  # perhaps one, where the guard differs from lane to lane
        kind = memory_kind(buffer.scalar)
        addresses = [base]
        if buffer.scalar.is_complex:
            text = self.emit(f"getelementptr inbounds {kind}, {base.typed}, i64 1")
            addresses.append(Value(self, "ptr", w, text))
        return tuple(self._gather_part(kind, a, taken) for a in addresses)

    def _gather_part(self, kind: str, addresses: Value, mask: Value) -> Value:
        w = self.width
        result = Value(self, kind, w, "")
        align = bytes_of_kind(kind)
        name = f"@llvm.masked.gather.{suffix(kind, w)}.v{w}p0"
        self.declare(f"declare {result.type} {name}(<{w} x ptr>, {mask.type}, {result.type})")
        operands = f"<{w} x ptr> align {align} {addresses.text}, {mask.typed}, {result.type} zeroinitializer"
        return Value(self, kind, w, self.emit(f"call {result.type} {name}({operands})"))
