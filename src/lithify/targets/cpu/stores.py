"""Stores and atomic updates of the kernel language in LLVM IR."""

from __future__ import annotations

from lithify.kernel import ir
from lithify.kernel.walk import reads_buffer
from lithify.lang.errors import Rejected
from lithify.lang.scalars import Kind, Scalar, bool_, f32, f64
from lithify.targets.cpu import operators, policy
from lithify.targets.cpu.builder import Module, Value, bytes_of_kind, suffix
from lithify.targets.cpu.conversion import Parts, memory_kind, part_scalar
from lithify.targets.cpu.values import Access, ValueEmitter

# Bytes of the parts of registers within which instructions reorder elements.
_PART = 16


class StoreEmitter(ValueEmitter):
    """Prints stores into one function. Buffers in `streamed` are written past the caches."""

    def __init__(self, module: Module, streamed: frozenset[ir.Buffer] = frozenset()) -> None:
        super().__init__(module)
        self.streamed = streamed
        self.streams = False  # whether a store past the caches was printed

    def _store(self, store: ir.Store) -> None:
        access = self.access(store)
        if self.lane is None or not (
            self.mask is not None or self.depends_on_lane(access.index, *store.guard) or access.stride is None
        ):
            self._store_one(store, access)
            return
        if access.stride == 0 and not self.depends_on_lane(*store.guard):  # else the guard chooses one of them
            raise Rejected(
                f"all lanes of a map[vec] write the same element {store.buffer}[{access.index}]",
                hint="reduce over the lanes with seq or unroll",
            )
        mask = self.lane_mask(store.guard)
        values = tuple(
            to_memory(v, store.buffer.scalar).splat(self.width) for v in self.value(store.value, store.buffer.scalar)
        )
        if access.stride in (1, -1):
            self._store_contiguous(access, values, mask)
        else:
            self._scatter(access, values, mask)

    def _store_one(self, store: ir.Store, access: Access) -> None:
        condition, _ = self.guard(store.guard)
        if condition is None:
            self._store_scalar(access, self._one_value(store))
            return
        self.branch(condition, lambda: self._store_scalar(access, self._one_value(store)), None)

    def _one_value(self, store: ir.Store) -> Parts:
        values = self.value(store.value, store.buffer.scalar)
        if any(v.lanes for v in values):
            raise Rejected(
                f"all lanes of a map[vec] write the same element of {store.buffer}",
                hint="reduce over the lanes with seq or unroll",
            )
        return tuple(to_memory(v, store.buffer.scalar) for v in values)

    def _store_scalar(self, access: Access, values: Parts) -> None:
        scalar = access.buffer.scalar
        address = self.address(access, access.index)
        align = part_scalar(scalar).bytes if scalar.is_complex else min(scalar.bytes, self.alignments[access.buffer])
        self.line(f"store {values[0].typed}, {address.typed}, align {align}")
        if scalar.is_complex:
            second = self.emit(f"getelementptr inbounds {memory_kind(scalar)}, {address.typed}, i64 1")
            self.line(f"store {values[1].typed}, ptr {second}, align {align}")

    def _store_contiguous(self, access: Access, values: Parts, mask: Value | None) -> None:
        w = self.width
        if access.stride == -1:
            order = range(w - 1, -1, -1)
            values = tuple(self.shuffle(v, order) for v in values)
            mask = None if mask is None else self.shuffle(mask, order)
        if len(values) == 2:
            both = self.emit(
                f"shufflevector {values[0].typed}, {values[1].typed}, <{2 * w} x i32> "
                + "<" + ", ".join(f"i32 {i}, i32 {i + w}" for i in range(w)) + ">"
            )  # fmt: skip
            whole = Value(self, values[0].kind, 2 * w, both)
            mask = None if mask is None else self.shuffle(mask, [i // 2 for i in range(2 * w)])
        else:
            whole = values[0]
        lowest = self.lowest(access)
        address, align = self.address(access, lowest), self.alignment(access, lowest)
        if mask is None:
            self._store_vector(access.buffer, whole, address, align)
            return
        if not whole.is_float:
            mask = self._opaque(mask)
        name = f"@llvm.masked.store.{suffix(whole.kind, whole.lanes)}.p0"
        self.declare(f"declare void {name}({whole.type}, ptr, {mask.type})")
        self.line(f"call void {name}({whole.typed}, ptr align {align} {address.text}, {mask.typed})")

    def _store_vector(self, buffer: ir.Buffer, vector: Value, address: Value, align: int) -> None:
        """A vector to contiguous memory, past the caches where the buffer is written so and the vector allows it."""
        size = bytes_of_kind(vector.kind) * vector.lanes
        whole_lines = size >= policy.LEAST_STREAMED_STORE and align % min(size, 64) == 0
        past = buffer in self.streamed and whole_lines
        self.streams = self.streams or past
        self.line(f"store {vector.typed}, {address.typed}, align {align}" + (", !nontemporal !0" if past else ""))

    def _opaque(self, mask: Value) -> Value:
        """The mask, such that LLVM does not know its value.

        LLVM 22 makes a masked store of truncated integers whose mask is constant and holds for one lane a plain store
        of that lane, of the integer before the truncation: it writes beyond the element. (An empty piece of assembly
        hides the value and costs nothing by itself.)
        """
        lanes = mask.lanes
        part = min(lanes & -lanes, 64) if lanes > 64 else lanes
        wide = "i32" if part <= 32 else "i64"
        pieces = []
        for start in range(0, lanes, part):
            piece = mask if part == lanes else self.shuffle(mask, range(start, start + part))
            bits = Value(self, f"i{part}", 0, self.emit(f"bitcast {piece.typed} to i{part}")).resized(wide, False)
            hidden = Value(self, wide, 0, self.emit(f'call {wide} asm "", "=r,0"({bits.typed})'))
            pieces.append(self.emit(f"bitcast {hidden.resized(f'i{part}', False).typed} to {piece.type}"))
        if part == lanes:
            return Value(self, "i1", lanes, pieces[0])
        small, whole = suffix("i1", part), suffix("i1", lanes)
        name = f"@llvm.vector.insert.{whole}.{small}"
        self.declare(f"declare {mask.type} {name}({mask.type}, <{part} x i1>, i64)")
        text = "poison"
        for number, piece_text in enumerate(pieces):
            operands = f"{mask.type} {text}, <{part} x i1> {piece_text}, i64 {number * part}"
            text = self.emit(f"call {mask.type} {name}({operands})")
        return Value(self, "i1", lanes, text)

    def _scatter(self, access: Access, values: Parts, mask: Value | None) -> None:
        w = self.width
        taken = self.constant("i1", True, w) if mask is None else mask
        addresses = self.addresses(access)
        kind = values[0].kind
        align = part_scalar(access.buffer.scalar).bytes if len(values) == 2 else access.buffer.scalar.bytes
        for k, value in enumerate(values):
            place = addresses
            if k:
                text = self.emit(f"getelementptr inbounds {kind}, {addresses.typed}, i64 1")
                place = Value(self, "ptr", w, text)
            name = f"@llvm.masked.scatter.{suffix(kind, w)}.v{w}p0"
            self.declare(f"declare void {name}({value.type}, <{w} x ptr>, {taken.type})")
            self.line(f"call void {name}({value.typed}, <{w} x ptr> align {align} {place.text}, {taken.typed})")

    def fence(self) -> None:
        """Order stores past the caches before what tells others that they are done."""
        self.line("fence seq_cst")

    # ---- stores of neighbours ----------------------------------------------------------------------------------

    def _neighbours(self, block: ir.Block, position: int) -> list[ir.Store]:
        """Statements from a position on that store 2, 4, 8 or 16 neighbours, as many apart from lane to lane; or none.

        None of them reads the buffer, so that it does not matter that all are computed before the first is stored.
        """
        first = block[position]
        if self.lane is None or self.mask is not None or not isinstance(first, ir.Store):
            return []
        lowest = self.access(first)
        stores = [s for s in block[position : position + (lowest.stride or 0)] if isinstance(s, ir.Store)]
        if lowest.stride not in (2, 4, 8, 16) or len(stores) < lowest.stride or first.buffer.scalar.is_complex:
            return []
        for number, store in enumerate(stores):
            if store.buffer is not first.buffer or store.guard or reads_buffer(store.value, first.buffer):
                return []
            if self.access(store).index is not lowest.index + number:
                return []
        return stores

    def _store_interleaved(self, stores: list[ir.Store]) -> None:
        """Contiguous stores, a vector each, of all that neighbouring stores write."""
        assert self.lane is not None
        buffer = stores[0].buffer
        parts = [self.value(s.value, buffer.scalar)[0].splat(self.width) for s in stores]
        rows = [to_memory(part, buffer.scalar) for part in parts]
        square = len(rows) == self.width and self.width * bytes_of_kind(rows[0].kind) % _PART == 0
        vectors = self._transposed(rows) if square else self._interleave(rows)
        access = self.access(stores[0])
        first = access.index - self.lane.expr * len(stores)
        address, align = self.address(access, first), self.alignment(access, first)
        size = bytes_of_kind(vectors[0].kind)
        for vector in vectors:
            self._store_vector(buffer, vector, address, align)
            step = vector.lanes * size
            text = self.emit(f"getelementptr inbounds i8, {address.typed}, i64 {step}")
            address, align = Value(self, "ptr", 0, text), min(align, step & -step)

    def _interleave(self, values: list[Value]) -> list[Value]:
        """The first lane of all, then the second of all, ..: by halves, the even ones and the odd ones.

        In vectors as wide as the values where their lanes can be halved: so each step is an instruction on registers.
        """
        if len(values) == 1:
            return values
        pairs = zip(self._interleave(values[::2]), self._interleave(values[1::2]), strict=True)
        return [part for even, odd in pairs for part in self._zipped(even, odd)]

    def _transposed(self, rows: list[Value]) -> list[Value]:
        """As `_interleave`, of as many vectors as each has lanes: by steps within parts of registers, then by steps
        that move whole parts.

        Each step is one instruction for a vector, as there, but one that has its order in itself. (Orders that cross
        parts lie in registers, which LLVM keeps over the loops that follow: what those keep in registers was moved
        about in each iteration, and 350 x 800 x 192 times a transposed operand took 1.5 times as long.)
        """
        rows, lanes, part = list(rows), len(rows), _PART // bytes_of_kind(rows[0].kind)
        within = [range(start, start + part // 2) for start in range(0, lanes, part)]
        low = [i for half in within for lane in half for i in (lane, lanes + lane)]
        even = [lane for start in range(0, 2 * lanes, 2 * part) for lane in range(start, start + part)]
        steps = [(apart, low, part // 2) for apart in (8, 4, 2, 1) if apart < part]
        steps += [(apart, even, part) for apart in (1, 2, 4, 8) if part <= apart < lanes]
        for apart, order, other in steps:
            for i in range(lanes):
                if not i & apart:
                    a, b = rows[i], rows[i + apart]
                    rows[i] = self.shuffle(a, order, b)
                    rows[i + apart] = self.shuffle(a, [lane + other for lane in order], b)
        return rows

    def _zipped(self, even: Value, odd: Value) -> list[Value]:
        n = even.lanes
        order = [i + n * second for i in range(n) for second in (0, 1)]
        halves = (order[:n], order[n:]) if n % 2 == 0 else (order,)
        return [self.shuffle(even, half, odd) for half in halves]

    # ---- atomic updates ----------------------------------------------------------------------------------------

    def _atomic(self, update: ir.AtomicUpdate) -> None:
        if self.lane is None:
            self._atomic_one(update)
            return
        # lane after lane: their elements may coincide
        lane, width, mask = self.lane, self.width, self.mask
        if mask is not None:
            raise Rejected("an atomic update under a condition that differs from lane to lane", hint="use map[seq]")
        self.lane, self.width = None, 0
        with self.scope():
            self._indices.clear()
            frame = self.loop(self.constant("i64", width))
            self.bind({lane: frame.index})
            self._atomic_one(update)
            frame.close()
        self.lane, self.width = lane, width

    def _atomic_one(self, update: ir.AtomicUpdate) -> None:
        condition, _ = self.guard(update.guard)
        if condition is None:
            self._atomic_here(update)
        else:
            self.branch(condition, lambda: self._atomic_here(update), None)

    def _atomic_here(self, update: ir.AtomicUpdate) -> None:
        scalar = update.buffer.scalar
        operand = self.value(update.value, scalar)
        access = self.access(update)
        address = self.address(access, access.index)
        operation = _atomic_operation(update.operator.name, scalar)
        if operation is not None:
            self.emit(f"atomicrmw {operation} {address.typed}, {operand[0].typed} monotonic, align {scalar.bytes}")
            return
        if scalar.bits > 64:
            raise Rejected(
                f"no atomic {update.operator.name} on {scalar}", hint="write partial results and combine them"
            )
        self._compare_and_exchange(update, scalar, operand, address)

    def _compare_and_exchange(self, update: ir.AtomicUpdate, scalar: Scalar, operand: Parts, address: Value) -> None:
        bits = f"i{scalar.bits}"
        label = self.fresh("retry")
        first = self.emit(f"load {bits}, {address.typed}, align {scalar.bytes}")
        origin = self.block
        self.line(f"br label %{label}")
        self.start(label)
        place = len(self.lines)
        self.lines.append("")
        old = Value(self, bits, 0, f"%{label}.old")
        now = operators.apply(
            self, update.operator, [(self._from_bits(old, scalar), scalar), (operand, scalar)], scalar
        )
        new = self._bits(now, scalar)
        pair = self.emit(f"cmpxchg {address.typed}, {old.typed}, {new.typed} monotonic monotonic, align {scalar.bytes}")
        seen = self.emit(f"extractvalue {{ {bits}, i1 }} {pair}, 0")
        done = self.emit(f"extractvalue {{ {bits}, i1 }} {pair}, 1")
        self.lines[place] = f"  {old.text} = phi {bits} [ {first}, %{origin} ], [ {seen}, %{self.block} ]"
        self.line(f"br i1 {done}, label %{label}.end, label %{label}")
        self.start(f"{label}.end")

    def _from_bits(self, value: Value, scalar: Scalar) -> Parts:
        if scalar.is_complex:
            low = value.cast("trunc", "i32").cast("bitcast", "float")
            return low, value.lshr(32).cast("trunc", "i32").cast("bitcast", "float")
        if scalar is bool_:
            return (value.compare("ne", 0),)
        return (value.cast("bitcast", memory_kind(scalar)),)

    def _bits(self, parts: Parts, scalar: Scalar) -> Value:
        if scalar.is_complex:
            low, high = (p.cast("bitcast", "i32").cast("zext", "i64") for p in parts)
            return low | high.shl(32)
        value = to_memory(parts[0], scalar)
        return value.cast("bitcast", f"i{scalar.bits}")


def to_memory(value: Value, scalar: Scalar) -> Value:
    """A register as it is stored."""
    return value.cast("zext", "i8") if scalar is bool_ else value


def _atomic_operation(name: str, scalar: Scalar) -> str | None:
    if scalar in (f32, f64):
        return {"add": "fadd", "sub": "fsub", "min": "fmin", "max": "fmax"}.get(name)
    if scalar.is_integer:
        unsigned = "u" if scalar.kind is Kind.UNSIGNED else ""
        return {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor",
                "min": unsigned + "min", "max": unsigned + "max"}.get(name)  # fmt: skip
    return None
