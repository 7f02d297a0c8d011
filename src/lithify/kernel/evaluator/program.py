"""Running a program: its memories, the launch of each kernel, and what must hold of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from lithify.arith import Expr, Variable
from lithify.evaluate import EXACT, STORED, Numerics, bind_sizes
from lithify.evaluate.sizes import internal, value_of
from lithify.kernel import ir
from lithify.kernel.evaluator.accesses import Settings
from lithify.kernel.evaluator.active import Active, Integers, Number
from lithify.kernel.evaluator.asynchronous import InFlight
from lithify.kernel.evaluator.counts import Counts
from lithify.kernel.evaluator.interpreter import MOST_PRIVATE, MOST_THREADS, Interpreter
from lithify.kernel.evaluator.memory import Storage
from lithify.kernel.evaluator.reports import first, first_line
from lithify.kernel.evaluator.width import check_index_width
from lithify.kernel.walk import blocks_of, reads_of, statements
from lithify.lang.errors import EvaluationError, UnboundSize
from lithify.lang.levels import Level, LevelKind
from lithify.lang.types import Type, array

Sizes = dict[Variable, int]
WHOLE = 0  # instead of a loop's id: the whole kernel


def run(
    program: ir.Program,
    inputs: Mapping[str, Any],
    *,
    seed: int = 0,
    checks: bool = True,
    exact: bool = True,
    sizes: Mapping[str, int] | None = None,
    warp: int = 32,
    index_bits: int | None = None,
    counts: Counts | None = None,
) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Run a program on arrays given by the parameters' names; the results in order.

    `seed` decides the order of groups, of iterations of loops over threads and of atomic updates, and when asynchronous
    copies land. `exact` computes floating point in float64, otherwise in the declared types. `warp` is the number of
    work-items in a warp where the kernel does not say it; `index_bits` the width of index arithmetic, where one is
    claimed. `counts` is added to. Without `checks` a wrong program runs on, and its results show it.

    Raises EvaluationError with the statement and the coordinates for: an access out of bounds; a read of memory that
    nothing wrote, accumulation into it, a result element that nothing wrote; two threads, groups or iterations that
    touch one element unordered, one of them writing; a barrier that part of its scope reaches; an access to the
    target, or a write to the source, of an asynchronous copy in flight, and a copy that is never waited for; two lanes
    that write one element; an index beyond the claimed width or the range of its variable; a kernel that writes its
    input; a counter that is not 0 in the end (fewer groups than it says count themselves there, or more).
    """
    settings = Settings(EXACT if exact else STORED, np.random.default_rng(seed), checks, counts, warp)
    _well_formed(program)
    bound = _bound_sizes(program, inputs, sizes or {})
    if index_bits is not None:
        check_index_width(program, index_bits, {v.name: n for v, n in bound.items()})
    memories = _memories(program, inputs, bound, settings.numerics)
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            _Launch(kernel, settings, memories, bound).run()
    if checks:
        _counters_are_zero(program, memories)
    return [_result(memories[buffer], checks) for buffer in program.results]


def _bound_sizes(program: ir.Program, inputs: Mapping[str, Any], given: Mapping[str, int]) -> Sizes:
    """The values of the program's sizes, by the shapes of the inputs or as given."""
    types = _types(program)
    missing = sorted(types.keys() - inputs.keys())
    if missing:
        raise EvaluationError(f"no value is given for {', '.join(missing)}")
    bound = bind_sizes(types, inputs, given)
    for variable in program.sizes:
        if variable not in bound:
            if variable.name not in given:
                raise UnboundSize(f"size {variable.name} is not bound", hint=f"sizes={{{variable.name!r}: value}}")
            bound[variable] = int(given[variable.name])
    return bound


def _types(program: ir.Program) -> dict[str, Type]:
    return {b.name: array(*b.shape, b.scalar) for b in program.parameters}


def _memories(
    program: ir.Program, inputs: Mapping[str, Any], sizes: Sizes, numerics: Numerics
) -> dict[ir.Buffer, Storage]:
    """What all kernels share: parameters with their values; results and temporaries, which nothing has written yet."""
    types = _types(program)
    memories: dict[ir.Buffer, Storage] = {}
    for buffer in (*program.parameters, *program.results, *program.temporaries):
        memories[buffer] = Storage(buffer, tuple([value_of(s, sizes) for s in buffer.shape]), 0)
        if buffer in program.parameters:
            value = internal(inputs[buffer.name], types[buffer.name], buffer.name, sizes, numerics)
            assert isinstance(value, np.ndarray)
            memories[buffer].load(np.array(value))
        elif buffer.role == "counter":
            memories[buffer].load(np.zeros(memories[buffer].count, numerics.dtype(buffer.scalar)))
        else:
            memories[buffer].allocate(numerics)
    return memories


def _result(storage: Storage, checks: bool) -> np.ndarray[Any, np.dtype[Any]]:
    if checks and not storage.valid.all():
        element = first(~storage.valid)
        missing = int((~storage.valid).sum())
        raise EvaluationError(
            f"the result {storage.position(element)} is never written ({missing} of {storage.count} elements are not)"
        )
    return storage.data.reshape(storage.shape)


def _counters_are_zero(program: ir.Program, memories: Mapping[ir.Buffer, Storage]) -> None:
    for buffer in program.temporaries:
        if buffer.role == "counter" and memories[buffer].data.any():
            storage = memories[buffer]
            element = first(storage.data != 0)
            raise EvaluationError(
                f"the counter {storage.position(element)} is {storage.data[element]} when {program.name} ends, and the "
                "next call begins with it"
            )


def _well_formed(program: ir.Program) -> None:
    """Buffers have one role and one name, inputs are not written, and last groups come last."""
    buffers = [*program.parameters, *program.results, *program.temporaries]
    names = [b.name for b in buffers]
    for name in names:
        if names.count(name) > 1:
            raise EvaluationError(f"two buffers of {program.name} are called {name}: results and inputs do not alias")
    for kernel in program.kernels:
        ends = kernel.body[-1].body if kernel.body and isinstance(kernel.body[-1], ir.LastGroup) else kernel.body[-1:]
        if any(isinstance(statement, ir.LastGroup) for statement in statements(kernel.body[:-1] + ends)):
            raise EvaluationError(f"{kernel.name} does not end with what its last group does")
        for statement in statements(kernel.body):
            if isinstance(statement, ir.Store | ir.AtomicUpdate) and statement.buffer in program.parameters:
                raise EvaluationError(
                    f"{kernel.name} writes its input {statement.buffer.name}", where=f"in {first_line(statement)}"
                )


class _Launch:
    """One kernel: its scratch memory, its hardware indices, and the order of its groups."""

    def __init__(self, kernel: ir.Kernel, settings: Settings, memories: dict[ir.Buffer, Storage], sizes: Sizes) -> None:
        self.kernel = kernel
        self.sizes = sizes
        self.numerics, self.random = settings.numerics, settings.random
        self.on_groups = bool(kernel.grid or kernel.group)
        self.grid = self._extents(kernel.grid)
        self.group = self._extents(kernel.group)
        lane = next((v for level, v in kernel.hardware.items() if level.name == "lane"), None)
        if lane is not None and lane.extent is not None:
            settings = replace(settings, warp=value_of(lane.extent, sizes))
        self.warp = settings.warp
        scratch = self._scratch()
        self.own = [storage for group in scratch.values() for storage in group]
        self.interpreter = Interpreter(
            kernel,
            settings,
            {**memories, **{storage.buffer: storage for storage in self.own}},
            scratch,
            self._product(self.group) if self.on_groups else 0,
        )
        counts = settings.counts
        if counts is not None:
            counts.kernels += 1
            counts.warp = settings.warp
            private = sum(s.count for s in self.own if s.buffer.memory.name != "local")
            local = sum(s.count * s.buffer.scalar.bytes for s in self.own if s.buffer.memory.name == "local")
            counts.private_elements = max(counts.private_elements, private)
            counts.local_bytes = max(counts.local_bytes, local)

    def _extents(self, extents: tuple[Expr, ...]) -> tuple[int, ...]:
        return tuple([value_of(e, self.sizes) for e in extents]) or (1,)

    @staticmethod
    def _product(extents: tuple[int, ...]) -> int:
        total = 1
        for extent in extents:
            total *= extent
        return total

    def _scratch(self) -> dict[int, list[Storage]]:
        """The kernel's own memory, by the id of the loop over threads whose iterations have it.

        On groups, local memory is a group's and everything else a work-item's. On a CPU a buffer belongs to each
        iteration of the innermost loop over threads that contains all its uses, and holds nothing when one begins.
        """
        found: dict[int, list[Storage]] = {WHOLE: []}
        homes = _homes(self.kernel.body)
        for buffer in self.kernel.scratch:
            shape = tuple([value_of(s, self.sizes) for s in buffer.shape])
            if self.on_groups:
                found[WHOLE].append(Storage(buffer, shape, 1 if buffer.memory.name == "local" else 2))
            else:
                path = homes.get(buffer, ())
                found.setdefault(id(path[-1]) if path else WHOLE, []).append(Storage(buffer, shape, len(path)))
        return found

    def run(self) -> None:
        """All groups, or the one thread that begins a CPU kernel."""
        if self.on_groups:
            self._run_groups()
            return
        for storage in self.interpreter.scratch[WHOLE]:
            storage.allocate(self.numerics)
        values: dict[Variable, Number] = dict(self.sizes)
        active = Active(values, (np.zeros(1, np.int64),), 1)
        self.interpreter.block(self.kernel.body, active)
        self.interpreter.landed()

    def _run_groups(self) -> None:
        interpreter = self.interpreter
        groups, items = self._product(self.grid), self._product(self.group)
        if not groups or not items:
            return
        private = sum(s.count * (items if s.depth == 2 else 1) for s in self.own)
        at_once = max(1, min(MOST_THREADS // items, MOST_PRIVATE // max(1, private)))
        order = self.random.permutation(groups)
        for start in range(0, groups, at_once):
            chosen = order[start : start + at_once]
            for storage in self.own:
                each = items if storage.depth == 2 else 1
                storage.allocate(self.numerics, len(chosen) * each, start * each)
            interpreter.flight = InFlight(start * items, len(chosen) * items)
            interpreter.passed = np.zeros(len(chosen) * -(-items // self.warp), np.int64)
            active = self._executors(chosen, start, items)
            interpreter.block(self.kernel.body, active)
            interpreter.landed()
            interpreter.end_of_interval(2)
        interpreter.end_of_interval(1)

    def _executors(self, chosen: Integers, start: int, items: int) -> Active:
        """The work-items of some groups; groups are numbered in the order in which they run."""
        group = np.repeat(chosen, items)
        item = np.tile(np.arange(items), len(chosen))
        number = np.repeat(np.arange(start, start + len(chosen)), items)
        values: dict[Variable, Number] = dict(self.sizes)
        for level, variable in self.kernel.hardware.items():
            index = self._hardware(level, group, item)
            limit = value_of(variable.extent, self.sizes) if variable.extent is not None else 0
            if len(index) and int(index.max()) >= limit:
                raise EvaluationError(
                    f"hardware index {level} reaches {int(index.max())} and its variable {variable.name} is declared "
                    f"below {limit}", where=f"in {self.kernel.name}")  # fmt: skip
            values[variable] = index
        return Active(values, (np.zeros(len(group), np.int64), number, number * items + item), len(group))

    def _hardware(self, level: Level, group: Integers, item: Integers) -> Integers:
        """The index of a level; dimension 0 runs fastest."""
        dim = level.dim or 0
        match level.name:
            case "group":
                return self._digit(group, self.grid, dim)
            case "item":
                return item if level.dim is None else self._digit(item, self.group, dim)
            case "global":
                size = self.group[dim] if dim < len(self.group) else 1
                return self._digit(group, self.grid, dim) * size + self._digit(item, self.group, dim)
            case "warp":
                return item // self.warp
            case "lane":
                return item % self.warp
        raise EvaluationError(f"the evaluator knows no hardware level {level}", where=f"in {self.kernel.name}")

    def _digit(self, number: Integers, extents: tuple[int, ...], dim: int) -> Integers:
        if dim >= len(extents):
            return np.zeros_like(number)
        return number // self._product(extents[:dim]) % extents[dim]


Path = tuple[ir.Loop, ...]


def _homes(block: ir.Block) -> dict[ir.Buffer, Path]:
    """For each buffer the loops over threads, outermost first, that contain all its uses."""
    homes: dict[ir.Buffer, Path] = {}

    def use(buffer: ir.Buffer, path: Path) -> None:
        known = homes.setdefault(buffer, path)
        shared = 0
        while shared < min(len(known), len(path)) and known[shared] is path[shared]:
            shared += 1
        homes[buffer] = known[:shared]

    def walk(inner: ir.Block, path: Path) -> None:
        for statement in inner:
            for buffer, _ in reads_of(statement):
                use(buffer, path)
            if isinstance(statement, ir.Store | ir.AtomicUpdate):
                use(statement.buffer, path)
            deeper = path
            if isinstance(statement, ir.Loop) and statement.level.kind is LevelKind.THREADS:
                deeper = (*path, statement)
            for nested in blocks_of(statement):
                walk(nested, deeper)

    walk(block, ())
    return homes
