"""Statements of the kernel language in LLVM IR: loops, lanes, conditions, instructions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import attrgetter

from lithify.arith import Expr, Variable
from lithify.kernel import ir
from lithify.kernel.walk import reads_buffer
from lithify.lang.errors import Rejected
from lithify.machine import host, rows_for
from lithify.targets.cpu import policy
from lithify.targets.cpu.builder import Module, Value, bytes_of_kind, suffix
from lithify.targets.cpu.chains import in_turn
from lithify.targets.cpu.prefetch import Plan, Prefetch
from lithify.targets.cpu.stores import StoreEmitter
from lithify.targets.cpu.tiles import Accumulation, TileRegisters, accumulations, is_tile_instruction


class StatementEmitter(StoreEmitter):
    """Prints statements into one function. Buffers in `streamed` are written past the caches."""

    def __init__(
        self, module: Module, streamed: frozenset[ir.Buffer] = frozenset(), prefetches: Plan | None = None
    ) -> None:
        super().__init__(module, streamed)
        self.prefetches = prefetches or {}
        self.has_tiles = False  # whether an instruction on tile registers was printed
        self.tiles: TileRegisters | None = None  # in a loop that adds to tiles which stay in them

    def statements(self, block: ir.Block) -> None:
        """The statements one after another."""
        block = in_turn(block) if self.lane is not None else block
        if self.tiles is not None:
            self.tiles.load_factors(block)
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
        self.statements(block)
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

        times = policy.TIMES_IN_TURN if adds_to_registers(loop.body) else 1
        self.counted(loop.variable, loop.extent, lambda: self.iteration(loop), times)

    def iteration(self, loop: ir.Loop) -> None:
        """The body of a loop, for its variable as it is bound."""
        for every, prefetches in groupby(self.prefetches.get(id(loop), ()), key=attrgetter("every")):
            self._ask(loop, every, list(prefetches))
        self.statements(loop.body)

    def _ask(self, loop: ir.Loop, every: int, prefetches: list[Prefetch]) -> None:
        """Ask for lines in each iteration, or in each of so many."""
        if every == 1:
            for prefetch in prefetches:
                self._prefetch(prefetch)
        else:
            turn = self.index(loop.variable.expr % every).compare("eq", 0)
            self.branch(turn, lambda: self._ask(loop, 1, prefetches), None)

    def _prefetch(self, prefetch: Prefetch) -> None:
        self.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        buffer = prefetch.buffer
        distance = self.index(prefetch.index * buffer.scalar.bytes + prefetch.ahead)
        place = self.emit(f"getelementptr i8, {self.pointers[buffer].typed}, {distance.typed}")
        self.line(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 {prefetch.locality}, i32 1)")

    def counted(self, variable: Variable, extent: Expr, body: Callable[[], None], times: int = 1) -> None:
        """A loop that runs `body` with `variable` bound; skipped where the extent may be 0.

        The body is written so many `times`, one iteration after another.
        """
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
            frame.close(times)
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


def adds_to_registers(block: ir.Block) -> bool:
    """Are these statements nothing but sums in private vectors, as many as make a register tile?"""
    sums = [s for lanes in block for s in (lanes.body if isinstance(lanes, ir.Lanes) else (lanes,))]
    return len(sums) >= policy.LEAST_SUMS_IN_TURN and all(
        isinstance(s, ir.Store) and s.buffer.memory.name == "private" and reads_buffer(s.value, s.buffer) for s in sums
    )


def bytes_of_type(type_: str) -> int:
    """The bytes of an LLVM type: `<16 x float>` or `float`."""
    lanes, found, kind = type_.strip("<>").rpartition(" x ")
    return bytes_of_kind(kind) * (int(lanes) if found else 1)
