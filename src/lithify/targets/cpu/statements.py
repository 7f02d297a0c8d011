"""Statements of the kernel language in LLVM IR: loops, lanes, stores, atomic updates."""

from __future__ import annotations

from collections.abc import Callable

from lithify.arith import Expr, Variable
from lithify.kernel import ir
from lithify.kernel.walk import reads_buffer
from lithify.lang.errors import Rejected
from lithify.lang.scalars import Kind, Scalar, bool_, f32, f64
from lithify.machine import host, rows_for
from lithify.targets.cpu import operators, policy
from lithify.targets.cpu.builder import Module, Value, bytes_of_kind, suffix
from lithify.targets.cpu.conversion import Parts, memory_kind, part_scalar
from lithify.targets.cpu.expressions import Access, Emitter
from lithify.targets.cpu.prefetch import Plan, Prefetch
from lithify.targets.cpu.tiles import Accumulation, TileRegisters, accumulations, is_tile_instruction


class StatementEmitter(Emitter):
    """Prints statements into one function. Buffers in `streamed` are written past the caches."""

    def __init__(
        self, module: Module, streamed: frozenset[ir.Buffer] = frozenset(), prefetches: Plan | None = None
    ) -> None:
        super().__init__(module)
        self.streamed = streamed
        self.prefetches = prefetches or {}
        self.streams = False  # whether a store past the caches was printed
        self.has_tiles = False  # whether an instruction on tile registers was printed
        self.tiles: TileRegisters | None = None  # in a loop that adds to tiles which stay in them

    def statements(self, block: ir.Block) -> None:
        """The statements one after another."""
        found = accumulations(block) if self.tiles is None else {}
        zeros = {p - before for p, tiles in found.items() for before in range(1, tiles.zeros + 1)}
        position = 0
        while position < len(block):
            count, neighbours = 1, self._neighbours(block, position)
            if neighbours:
                self._store_interleaved(neighbours)
                count = len(neighbours)
            elif position in found:
                count = found[position].statements
                self._accumulate(block[position : position + count], found[position])
            elif position not in zeros:
                self._statement(block[position])
            position += count

    def _accumulate(self, block: ir.Block, found: Accumulation) -> None:
        """Statements that leave what they add to in tile registers until they end."""
        self.has_tiles = True
        self.tiles = TileRegisters(self, found.tiles, zero=found.zeros > 0)
        for statement in block:
            self._statement(statement)
        self.tiles.store()
        self.tiles = None

    def _statement(self, statement: ir.Statement) -> None:
        if isinstance(statement, ir.Store):
            self._store(statement)
        elif isinstance(statement, ir.Loop):
            self._loop(statement)
        elif isinstance(statement, ir.Lanes) and statement.width == 1:
            self.bind({statement.variable: self.constant("i64", 0)})
            self.statements(statement.body)
        elif isinstance(statement, ir.Lanes):
            with self.lanes(statement.variable, statement.width):
                self.statements(statement.body)
        elif isinstance(statement, ir.If):
            self._if(statement)
        elif isinstance(statement, ir.AtomicUpdate):
            self._atomic(statement)
        elif isinstance(statement, ir.Instruction):
            self._instruction(statement)
        elif isinstance(statement, ir.Async):
            self.statements(statement.body)  # there is no copy engine: the copies happen at once
        elif not isinstance(statement, ir.Barrier | ir.Commit | ir.Wait):  # one item a group: nothing to wait for
            raise AssertionError(f"no such statement on a CPU: {statement}")

    # ---- control -----------------------------------------------------------------------------------------------

    def _loop(self, loop: ir.Loop) -> None:
        if self.depends_on_lane(loop.extent):
            raise Rejected(f"the length {loop.extent} of a loop differs from lane to lane", hint="use map[seq] outside")
        if loop.extent.constant == 1:
            with self.scope():
                self.bind({loop.variable: self.constant("i64", 0)})
                self.statements(loop.body)
            return

        def body() -> None:
            for prefetch in self.prefetches.get(id(loop), ()):
                self._prefetch(prefetch)
            self.statements(loop.body)

        self.counted(loop.variable, loop.extent, body)

    def _prefetch(self, prefetch: Prefetch) -> None:
        self.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        buffer = prefetch.buffer
        distance = self.index(prefetch.index * buffer.scalar.bytes + prefetch.ahead)
        place = self.emit(f"getelementptr i8, {self.pointers[buffer].typed}, {distance.typed}")
        self.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 {prefetch.locality}, i32 1)")

    def counted(self, variable: Variable, extent: Expr, body: Callable[[], None]) -> None:
        """A loop that runs `body` with `variable` bound; skipped where the extent may be 0."""
        end = self.index(extent)
        label = None
        if extent.lo < 1:
            label = self.fresh("some")
            positive = end.compare("gt", 0)
            self.line(f"br i1 {positive.text}, label %{label}, label %{label}.none")
            self.start(label)
        with self.scope():
            frame = self.loop(end)
            self.bind({variable: frame.index})
            body()
            frame.close()
        if label is not None:
            self.line(f"br label %{label}.none")
            self.start(f"{label}.none")

    def _if(self, statement: ir.If) -> None:
        scalar, vector = self.guard(statement.guard)
        if vector is None:
            if scalar is None:
                self.statements(statement.body)
            else:
                otherwise = (lambda: self.statements(statement.otherwise)) if statement.otherwise else None
                self.branch(scalar, lambda: self.statements(statement.body), otherwise)
            return
        inside = vector if scalar is None else vector & scalar
        outer = self.mask
        self._masked(inside if outer is None else outer & inside, statement.body)
        if statement.otherwise:
            outside = inside ^ True
            self._masked(outside if outer is None else outer & outside, statement.otherwise)

    def _masked(self, mask: Value, block: ir.Block) -> None:
        """The block in some lanes; skipped where there are none, so that what all lanes share may be loaded."""
        name = f"@llvm.vector.reduce.or.{suffix('i1', mask.lanes)}"
        self.declare(f"declare i1 {name}({mask.type})")
        some = Value(self, "i1", 0, self.emit(f"call i1 {name}({mask.typed})"))
        outer, self.mask = self.mask, mask
        try:
            self.branch(some, lambda: self.statements(block), None)
        finally:
            self.mask = outer

    def branch(self, condition: Value, then: Callable[[], None], otherwise: Callable[[], None] | None) -> None:
        """Print what runs where a scalar i1 holds, and what runs elsewhere."""
        label = self.fresh("if")
        target = f"{label}.else" if otherwise else f"{label}.end"
        self.line(f"br i1 {condition.text}, label %{label}, label %{target}")
        for name, body in ((label, then), (target, otherwise)):
            if body is None:
                continue
            self.start(name)
            with self.scope():
                body()
            self.line(f"br label %{label}.end")
        self.start(f"{label}.end")

    def fence(self) -> None:
        """Order stores past the caches before what tells others that they are done."""
        self.line("fence seq_cst")

    # ---- instructions ------------------------------------------------------------------------------------------

    def _instruction(self, statement: ir.Instruction) -> None:
        """One call of the intrinsic; what the row means where this machine has none."""
        operation = statement.row.operation_on("cpu")
        if operation is None or statement.row not in rows_for(host()):
            self.statements(statement.body)
            return
        if is_tile_instruction(statement):
            self.has_tiles = True
            (self.tiles or TileRegisters(self)).multiply_add(statement)
            return
        loads = dict(zip("abc", statement.operands, strict=True))
        held = dict(zip("abc", statement.row.elements, strict=True))
        values = [(type_, self._registers(loads[name], held[name], type_)) for name, type_ in operation.operands]
        result = dict(operation.operands)["c"]
        self.declare(f"declare {result} @{operation.name}({', '.join(type_ for type_, _ in values)})")
        arguments = ", ".join(f"{type_} {text}" for type_, text in values)
        text = self.emit(f"call {result} @{operation.name}({arguments})")
        access = self.access(statement.result)
        address, align = self.address(access, access.index), self.alignment(access, access.index)
        self.line(f"store {result} {text}, {address.typed}, align {align}")

    def _registers(self, load: ir.Load, held: int, type_: str) -> str:
        """`held` elements that follow one another, as a value of an LLVM type: again and again if that holds more."""
        access = self.access(load)
        address, align = self.address(access, access.index), self.alignment(access, access.index)
        times = bytes_of_type(type_) // (held * load.buffer.scalar.bytes)
        if times == 1:
            return self.emit(f"load {type_}, {address.typed}, align {align}")
        kind = f"i{8 * held * load.buffer.scalar.bytes}"
        one = Value(self, kind, 0, self.emit(f"load {kind}, {address.typed}, align {align}"))
        return self.emit(f"bitcast {one.splat(times).typed} to {type_}")

    # ---- stores ------------------------------------------------------------------------------------------------

    def _store(self, store: ir.Store) -> None:
        access = self.access(store)
        if self.lane is None or not (
            self.mask is not None or self.depends_on_lane(access.index, *store.guard) or access.stride is None
        ):
            self._store_one(store, access)
            return
        if access.stride == 0:
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
        buffer, w = access.buffer, self.width
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
            past = ""
            if buffer in self.streamed and _whole_lines(whole, align):
                past, self.streams = ", !nontemporal !0", True
            self.line(f"store {whole.typed}, {address.typed}, align {align}{past}")
            return
        if not whole.is_float:
            mask = self._opaque(mask)
        name = f"@llvm.masked.store.{suffix(whole.kind, whole.lanes)}.p0"
        self.declare(f"declare void {name}({whole.type}, ptr, {mask.type})")
        self.line(f"call void {name}({whole.typed}, ptr align {align} {address.text}, {mask.typed})")

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
        vectors = self._interleave([to_memory(part, buffer.scalar) for part in parts])
        access = self.access(stores[0])
        first = access.index - self.lane.expr * len(stores)
        address, align = self.address(access, first), self.alignment(access, first)
        size = bytes_of_kind(vectors[0].kind)
        for vector in vectors:
            past = ""
            if buffer in self.streamed and _whole_lines(vector, align):
                past, self.streams = ", !nontemporal !0", True
            self.line(f"store {vector.typed}, {address.typed}, align {align}{past}")
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

    def _zipped(self, even: Value, odd: Value) -> list[Value]:
        n = even.lanes
        order = [i + n * second for i in range(n) for second in (0, 1)]
        halves = (order[:n], order[n:]) if n % 2 == 0 else (order,)
        return [self.shuffle(even, half, odd) for half in halves]

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


def _whole_lines(value: Value, align: int) -> bool:
    """Whether a store is of a full, aligned vector, as stores past the caches have to be."""
    size = bytes_of_kind(value.kind) * value.lanes
    return size >= policy.LEAST_STREAMED_STORE and align % min(size, 64) == 0


def _atomic_operation(name: str, scalar: Scalar) -> str | None:
    if scalar in (f32, f64):
        return {"add": "fadd", "sub": "fsub", "min": "fmin", "max": "fmax"}.get(name)
    if scalar.is_integer:
        unsigned = "u" if scalar.kind is Kind.UNSIGNED else ""
        return {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor",
                "min": unsigned + "min", "max": unsigned + "max"}.get(name)  # fmt: skip
    return None


def bytes_of_type(type_: str) -> int:
    """The bytes of an LLVM type: `<16 x float>` or `float`."""
    lanes, found, kind = type_.strip("<>").rpartition(" x ")
    return bytes_of_kind(kind) * (int(lanes) if found else 1)
