"""A whole kernel program as one LLVM module, with the layout of the memory that it is called with.

The module's function takes a *frame*: an array of 8-byte slots with the pool, the buffers' addresses, the scalars and
the sizes. It runs the kernels one after another. What runs between two parallel loops, and the body of each parallel
loop, are functions of their own, whose buffers are parameters that do not alias.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lithify.arith import Expr, Variable
from lithify.kernel import ir
from lithify.lang.errors import Rejected
from lithify.lang.levels import LevelKind
from lithify.targets.base import Dim, size_text
from lithify.targets.cpu import policy, tiles
from lithify.targets.cpu.analysis import has_parallel_loop, uses, work
from lithify.targets.cpu.builder import METADATA, Module, Value
from lithify.targets.cpu.conversion import memory_kind, part_scalar
from lithify.targets.cpu.frame import DISPATCH, FIRST, POOL, Layout
from lithify.targets.cpu.prefetch import Plan, plan
from lithify.targets.cpu.statements import StatementEmitter

_ATTRIBUTES = 'attributes #0 = { nounwind noinline "prefer-vector-width"="512" }\n'


@dataclass(slots=True)
class _Slots:
    count: int = FIRST
    buffers: dict[ir.Buffer, int] = field(default_factory=dict)
    variables: dict[Variable, int] = field(default_factory=dict)

    def take(self, number: int = 1) -> int:
        self.count += number
        return self.count - number

    def buffer(self, buffer: ir.Buffer, number: int = 1) -> int:
        self.buffers[buffer] = self.take(number)
        return self.buffers[buffer]

    def variable(self, variable: Variable) -> int:
        if variable not in self.variables:
            self.variables[variable] = self.take()
        return self.variables[variable]


@dataclass(slots=True)
class _Passed:
    """What a function with the code takes, and what the one that unpacks the frame passes for it."""

    parameters: list[str] = field(default_factory=lambda: ["i64 %begin", "i64 %end"])
    arguments: list[str] = field(default_factory=lambda: ["i64 %begin", "i64 %end"])

    def add(self, parameter: str, argument: str) -> None:
        self.parameters.append(parameter)
        self.arguments.append(argument)


def emit(program: ir.Program, streaming: bool) -> tuple[str, Layout]:
    """The text of the module and the layout of its frame. `streaming`: large results are written past the caches."""
    return _ProgramEmitter(program, streaming).emit()


def has_streams(program: ir.Program) -> bool:
    """Whether something in the program is large enough to be written past the caches."""
    return any(_streamed(kernel) for kernel in program.kernels)


class _ProgramEmitter:
    def __init__(self, program: ir.Program, streaming: bool) -> None:
        self.program = program
        self.module = Module()
        self.slots = _Slots()
        self.streaming = streaming
        self.streamed: frozenset[ir.Buffer] = frozenset()
        self.prefetches: Plan = {}
        self.parts = 0
        self.work: list[Expr] = []
        self.shared: list[ir.Buffer] = []
        self.per_thread: list[ir.Buffer] = []
        self.driver = StatementEmitter(self.module)

    def emit(self) -> tuple[str, Layout]:
        program, slots = self.program, self.slots
        parameters = tuple(
            slots.buffer(b, max(1, b.scalar.bytes // 8) if b.role == "scalar" else 1) for b in program.parameters
        )
        results = tuple(slots.buffer(b) for b in program.results)
        sizes = tuple(slots.variable(v) for v in program.sizes)
        for buffer in program.temporaries:
            self._share(buffer)
        driver = self.driver
        for variable in program.sizes:
            driver.bind({variable: self._slot(driver, slots.variable(variable), "i64")})
        for kernel in program.kernels:
            self._kernel(kernel)
        driver.line("ret void")
        self.module.define("void @lithify_run(ptr %frame)", driver.lines)
        total = work(tuple([s for kernel in program.kernels for s in kernel.body]))
        layout = Layout(
            slots.count,
            parameters,
            results,
            sizes,
            tuple((slots.buffers[b], size_text(b.bytes)) for b in self.shared),
            tuple((slots.buffers[b], size_text(b.bytes)) for b in self.per_thread),
            self._work_text(),
            total.constant is not None and total.constant <= policy.SHORT_WORK,
        )
        return self.module.text() + _ATTRIBUTES + METADATA, layout

    def _work_text(self) -> Dim:
        known = [w for w in self.work if w.variables() <= set(self.program.sizes)]
        unknown = len(known) < len(self.work)  # some depends on a loop's variable: let the pool be there
        constants = [w.constant for w in known if w.constant is not None] + ([policy.LEAST_WORK] if unknown else [])
        symbolic = [str(size_text(w)) for w in known if w.constant is None]
        if not symbolic:
            return max(constants, default=0)
        return " + ".join([*symbolic, str(max(constants, default=0))])

    # ---- kernels -----------------------------------------------------------------------------------------------

    def _kernel(self, kernel: ir.Kernel) -> None:
        if kernel.grid or kernel.group:
            raise Rejected(
                f"{kernel.name} is launched as groups of work-items, which a CPU has not",
                hint="use the levels par, seq and vec for the cpu target",
            )
        pieces = list(_pieces(kernel.body))
        self._place_scratch(kernel, pieces)
        self.streamed = _streamed(kernel) if self.streaming else frozenset()
        self.prefetches = plan(kernel)
        self._block(kernel.body)

    def _place_scratch(self, kernel: ir.Kernel, pieces: list[tuple[ir.Block, bool]]) -> None:
        """Memory that outlives a piece is shared; what is large or of symbolic size is allocated per thread."""
        found = [(uses(block), parallel) for block, parallel in pieces]
        scratch = dict.fromkeys(kernel.scratch)
        for use, _ in found:
            scratch.update(dict.fromkeys(b for b in use.buffers if b.role == "scratch"))
        for buffer in scratch:
            if buffer in self.slots.buffers:
                continue
            inside = [(use, parallel) for use, parallel in found if buffer in use.read or buffer in use.written]
            written_in_parallel = any(parallel and buffer in use.written for use, parallel in inside)
            size = buffer.bytes.constant
            if buffer.memory.name == "heap" or (len(inside) > 1 and not written_in_parallel):
                self._share(buffer)
            elif buffer.memory.name == "thread" or size is None or size > policy.LARGEST_ON_STACK:
                self.slots.buffer(buffer, 2)
                self.per_thread.append(buffer)

    def _share(self, buffer: ir.Buffer) -> None:
        self.slots.buffer(buffer)
        self.shared.append(buffer)

    def _block(self, block: ir.Block) -> None:
        serial: list[ir.Statement] = []
        for statement in block:
            if not has_parallel_loop(statement):
                serial.append(statement)
                continue
            self._serial(tuple(serial))
            serial = []
            self._around(statement)
        self._serial(tuple(serial))

    def _around(self, statement: ir.Statement) -> None:
        """A statement that is, or holds, parallel loops: printed into the driver."""
        driver = self.driver
        if isinstance(statement, ir.Loop) and statement.level.kind is LevelKind.THREADS:
            self._parallel(statement)
        elif isinstance(statement, ir.Loop):
            slot = self.slots.variable(statement.variable)

            def body() -> None:
                self._store_slot(slot, driver.variables[statement.variable])
                self._block(statement.body)

            driver.counted(statement.variable, statement.extent, body)
        elif isinstance(statement, ir.If):
            scalar, _ = driver.guard(statement.guard)
            if scalar is None:
                self._block(statement.body)
            else:
                driver.branch(scalar, lambda: self._block(statement.body), lambda: self._block(statement.otherwise))
        else:
            raise Rejected("a map[par] inside a map[vec]", hint="put the parallel level outside the vector level")

    def _serial(self, block: ir.Block) -> None:
        if block:
            name = self._part(block)
            self.driver.line(f"call void @{name}(i64 0, i64 1, ptr %frame, i64 0)")

    def _parallel(self, loop: ir.Loop) -> None:
        if any(has_parallel_loop(s) for s in loop.body):
            raise Rejected("a map[par] inside a map[par]", hint="make the inner one seq")
        driver = self.driver
        name = self._part((loop,))
        extent = driver.index(loop.extent)
        amount = work((loop,))
        self.work.append(amount)
        alone = f"call void @{name}(i64 0, i64 {extent.text}, ptr %frame, i64 0)"
        constant = amount.constant
        some = driver.index(loop.extent).compare("gt", 0) if loop.extent.lo < 1 else None

        def run() -> None:
            if constant is not None and constant < policy.LEAST_WORK:
                driver.line(alone)
                return
            pool = self._slot(driver, POOL, "ptr")
            together = pool.compare("ne", Value(driver, "ptr", 0, "null"))
            if constant is None:
                together = together & driver.index(amount).compare("ge", policy.LEAST_WORK)
            driver.branch(together, lambda: dispatch(pool), lambda: driver.line(alone))

        def dispatch(pool: Value) -> None:
            function = self._slot(driver, DISPATCH, "ptr")
            arguments = f"{pool.typed}, ptr @{name}, ptr %frame, {extent.typed}, i64 {_pieces_each(constant)}"
            driver.line(f"call void {function.text}({arguments}, {driver.index(amount).typed})")

        if some is None:
            run()
        else:
            driver.branch(some, run, None)

    # ---- functions ---------------------------------------------------------------------------------------------

    def _part(self, block: ir.Block) -> str:
        """A function of the pool's type that unpacks the frame, and one with the code, whose pointers do not alias.

        Of a parallel loop, each call runs some iterations.
        """
        self.parts += 1
        name = f"part{self.parts}"
        use = uses(block)
        parallel = next((s for s in block if isinstance(s, ir.Loop) and s.level.kind is LevelKind.THREADS), None)
        inner = StatementEmitter(self.module, self.streamed, self.prefetches)
        outer = StatementEmitter(self.module)
        passed = _Passed()
        for number, buffer in enumerate(use.buffers):
            if buffer.role == "scalar":
                self._pass_scalar(buffer, number, inner, outer, passed)
            elif buffer in self.slots.buffers:
                pointer = self._buffer_address(buffer, outer)
                inner.pointers[buffer] = Value(inner, "ptr", 0, f"%b{number}")
                known = inner.alignments[buffer] = self._alignment(buffer)
                passed.add(f"ptr noalias align {known} %b{number}", pointer.typed)
            else:
                inner.pointers[buffer] = _on_stack(inner, buffer, number)
        for number, free in enumerate(use.free):
            size = self._slot(outer, self.slots.variable(free), "i64")
            inner.bind({free: Value(inner, "i64", 0, f"%n{number}")})
            passed.add(f"i64 %n{number}", size.typed)
        if parallel is None:
            inner.statements(block)
        else:
            begin, end = (Value(inner, "i64", 0, f"%{n}") for n in ("begin", "end"))
            frame = inner.loop(end, begin)
            inner.bind({parallel.variable: frame.index})
            inner.iteration(parallel)
            frame.close()
        if inner.streams:
            inner.fence()
        if inner.has_tiles:
            body, inner.lines = inner.lines, []
            tiles.set_up(inner)
            inner.lines += body
            tiles.release(inner)
        inner.line("ret void")
        outer.line(f"call void @{name}.body({', '.join(passed.arguments)})")
        outer.line("ret void")
        self.module.define(f"internal void @{name}.body({', '.join(passed.parameters)})", inner.lines)
        self.module.define(f"internal void @{name}(i64 %begin, i64 %end, ptr %frame, i64 %worker)", outer.lines)
        return name

    def _pass_scalar(
        self, buffer: ir.Buffer, number: int, inner: StatementEmitter, outer: StatementEmitter, passed: _Passed
    ) -> None:
        kind = memory_kind(buffer.scalar)
        count = 2 if buffer.scalar.is_complex else 1
        size = part_scalar(buffer.scalar).bytes if count == 2 else buffer.scalar.bytes
        base = self._slot_address(outer, self.slots.buffers[buffer])
        parts: list[Value] = []
        for k in range(count):
            place = outer.emit(f"getelementptr inbounds i8, {base.typed}, i64 {k * size}")
            loaded = outer.emit(f"load {kind}, ptr {place}, align {size}")
            passed.add(f"{kind} %s{number}.{k}", f"{kind} {loaded}")
            parts.append(inner.from_memory(Value(inner, kind, 0, f"%s{number}.{k}"), buffer.scalar))
        inner.scalars[buffer] = tuple(parts)

    def _alignment(self, buffer: ir.Buffer) -> int:
        """Callers' arrays promise no more than their elements' alignment, unless results are streamed."""
        return _known_alignment(buffer, self.streaming)

    def _buffer_address(self, buffer: ir.Buffer, b: StatementEmitter) -> Value:
        slot = self.slots.buffers[buffer]
        base = self._slot(b, slot, "ptr")
        if buffer not in self.per_thread:
            return base
        stride = self._slot(b, slot + 1, "i64")
        offset = stride * Value(b, "i64", 0, "%worker")
        return Value(b, "ptr", 0, b.emit(f"getelementptr inbounds i8, {base.typed}, {offset.typed}"))

    # ---- the frame ---------------------------------------------------------------------------------------------

    def _slot_address(self, b: StatementEmitter, slot: int) -> Value:
        return Value(b, "ptr", 0, b.emit(f"getelementptr inbounds i64, ptr %frame, i64 {slot}"))

    def _slot(self, b: StatementEmitter, slot: int, kind: str) -> Value:
        address = self._slot_address(b, slot)
        return Value(b, kind, 0, b.emit(f"load {kind}, {address.typed}, align 8"))

    def _store_slot(self, slot: int, value: Value) -> None:
        address = self._slot_address(self.driver, slot)
        self.driver.line(f"store {value.typed}, {address.typed}, align 8")


def _known_alignment(buffer: ir.Buffer, fresh_results: bool) -> int:
    """Bytes that a buffer's address is known to be a multiple of."""
    if buffer.role == "input" or (buffer.role == "output" and not fresh_results):
        return part_scalar(buffer.scalar).bytes if buffer.scalar.is_complex else buffer.scalar.bytes
    return policy.ALIGNMENT


def _pieces_each(work: int | None) -> int:
    """In how many pieces each thread's share of a loop is cut: few where they would be short.

    Then a thread meets the same part of an array at each call, and finds it in the caches of its core.
    """
    return policy.PIECES if work is None else max(1, min(policy.PIECES, work // policy.PIECE_WORK))


def _pieces(block: ir.Block) -> Iterable[tuple[ir.Block, bool]]:
    """The blocks that become functions, and whether threads run them."""
    serial: list[ir.Statement] = []
    for statement in block:
        if not has_parallel_loop(statement):
            serial.append(statement)
            continue
        if serial:
            yield tuple(serial), False
            serial = []
        if isinstance(statement, ir.Loop) and statement.level.kind is LevelKind.THREADS:
            yield (statement,), True
        elif isinstance(statement, ir.Loop):
            yield from _pieces(statement.body)
        elif isinstance(statement, ir.If):
            yield from _pieces(statement.body)
            yield from _pieces(statement.otherwise)
    if serial:
        yield tuple(serial), False


def _on_stack(b: StatementEmitter, buffer: ir.Buffer, number: int) -> Value:
    size = buffer.bytes.constant
    assert size is not None
    kind = memory_kind(buffer.scalar)
    unit = part_scalar(buffer.scalar).bytes if buffer.scalar.is_complex else buffer.scalar.bytes
    b.alignments[buffer] = policy.ALIGNMENT
    b.line(f"%t{number} = alloca [{size // unit} x {kind}], align {policy.ALIGNMENT}")
    return Value(b, "ptr", 0, f"%t{number}")


def _streamed(kernel: ir.Kernel) -> frozenset[ir.Buffer]:
    """Large buffers that the kernel writes and does not read."""
    use = uses(kernel.body)
    sizes = {b: b.bytes.constant for b in use.written if b.role in ("output", "temporary") and b not in use.read}
    return frozenset(b for b, size in sizes.items() if size and size >= policy.STREAMED_BYTES)
