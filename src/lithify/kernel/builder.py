"""The state of the translation: the block under construction, scratch memory, loops, and where we are in the machine.

`READERS` and `WRITERS` hold one function a pattern; the `translate_*` modules fill them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from lithify.arith import Expr, Variable, as_variable, ceil_div, const, proves, var
from lithify.kernel import ir
from lithify.kernel.conditions import conjunction
from lithify.kernel.hardware import Hardware, missing_level, within_one_item
from lithify.kernel.places import Acceptor, Environment, Place, Readable, index_scalar, leaves
from lithify.lang.errors import Rejected
from lithify.lang.levels import PRIVATE, SEQ, Level, LevelKind, Memory
from lithify.lang.scalars import bool_
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Type
from lithify.machine import DeviceModel, reason_against

Reader = Callable[["Translator", Term, Environment], Readable]
Writer = Callable[["Translator", Term, Acceptor, Environment], None]
READERS: dict[str, Reader] = {}
WRITERS: dict[str, Writer] = {}
SCRATCH_ALIGNMENT = 64


def reads(*patterns: str) -> Callable[[Reader], Reader]:
    """Declare how patterns are read."""

    def declare(function: Reader) -> Reader:
        READERS.update(dict.fromkeys(patterns, function))
        return function

    return declare


def writes(*patterns: str) -> Callable[[Writer], Writer]:
    """Declare how patterns are written to an acceptor."""

    def declare(function: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(patterns, function))
        return function

    return declare


class KernelScope:
    """What belongs to the kernel under construction."""

    def __init__(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self.scratch: list[ir.Buffer] = []
        self.block: list[ir.Statement] = []
        self.depth = 0  # loops entered
        self.entered: tuple[Level, ...] = ()  # parallel and vector levels entered, outermost first
        self.owned: frozenset[Variable] = frozenset()  # hardware variables of the levels entered
        self.current: dict[Level, Expr] = {}  # the index of a hardware level entered, where one round covers it
        self.aliases: dict[tuple[Level, Expr], Expr] = {}  # narrower names of hardware indices
        self.lane: tuple[Expr, int] | None = None  # lane variable and width
        self.loops: list[Expr] = []  # indices of all loops entered, outermost first
        self.in_sequence = 0  # sequential and unrolled loops entered
        self.repeating: frozenset[Variable] = frozenset()  # variables of all loops entered but lanes


class Translator:
    """Turns terms into statements; see `readable` and `write`."""

    def __init__(self, name: str, device: DeviceModel | None) -> None:
        self.name = name
        self.device = device
        self.inputs: dict[str, Readable] = {}
        self.temporaries: list[ir.Buffer] = []
        self.kernels: list[ir.Kernel] = []
        self.owner: dict[ir.Buffer, KernelScope] = {}
        self.scope = KernelScope(Hardware())
        self.trail: list[str] = []
        self.accumulators: list[frozenset[ir.Buffer]] = []  # of the accumulations under way, outermost first
        self._names: dict[str, int] = {}
        self._in_use: list[str] = []
        self._repeated: frozenset[int] = frozenset()
        self._values: dict[tuple[int, int], tuple[Environment, Readable]] = {}
        self.probing = False  # reading only to look, not to compute

    # ---- the two functions ----

    def readable(self, term: Term, env: Environment) -> Readable:
        """Append what must be computed first, and return something that can be indexed."""
        reader = READERS.get(term.pattern.name)
        if reader is None:
            raise self.rejected(term, f"{term.kind} cannot be read here")
        return self._once(reader, term, env) if term.id in self._repeated else reader(self, term, env)

    def write(self, term: Term, acceptor: Acceptor, env: Environment) -> None:
        """Append statements that write the term's value to the acceptor."""
        writer = WRITERS.get(term.pattern.name)
        if writer is None:
            raise self.rejected(term, f"{term.kind} cannot be written")
        writer(self, term, acceptor, env)

    def evaluated(self, term: Term, env: Environment) -> Readable:
        """What a body means, read here and now: what it computes and mentions several times is computed once."""
        outer = self._repeated, self._values
        repeated = _repeated_work.get(term)
        if repeated is None:
            repeated = _repeated_work[term] = _work_with_several_users(term)
        self._repeated, self._values = repeated, {}
        value = self.readable(term, env)
        self._repeated, self._values = outer
        return value

    def _once(self, reader: Reader, term: Term, env: Environment) -> Readable:
        """A value that the body under evaluation mentions several times; scalars are kept in private memory."""
        key = (term.id, id(env))
        found = self._values.get(key)
        if found is None:
            value = reader(self, term, env)
            if isinstance(value, ir.Apply) and value.scalar is not bool_:
                value = self.materialised(value)
            found = self._values[key] = (env, value)
        return found[1]

    # ---- errors ----

    def rejected(self, term: Term, message: str, hint: str | None = None) -> Rejected:
        """The error for a term that cannot be translated as it stands, with its place."""
        from lithify.kernel.place_names import describe

        place = " > ".join([*self.trail, describe(term)])
        return Rejected(message, where=f"at {place}", hint=hint)

    # ---- statements ----

    def emit(self, statement: ir.Statement) -> None:
        self.scope.block.append(statement)

    @contextmanager
    def collected(self) -> Iterator[list[ir.Statement]]:
        """Statements emitted inside go to a block of their own."""
        scope = self.scope
        outer, scope.block = scope.block, []
        block = scope.block
        try:
            yield block
        finally:
            scope.block = outer

    @contextmanager
    def probed(self) -> Iterator[None]:
        """What is read inside is only looked at: statements and scratch memory are dropped."""
        probing, scratch = self.probing, list(self.scope.scratch)
        self.probing = True
        with self.collected():
            yield
        self.probing = probing
        self.scope.scratch[:] = scratch

    # ---- memory ----

    def fresh_name(self, base: str) -> str:
        """base, base_1, base_2, ..."""
        number = self._names.get(base, 0)
        self._names[base] = number + 1
        return base if number == 0 else f"{base}_{number}"

    def allocate(self, type_: Type, memory: Memory, term: Term) -> Place:
        """Memory for a value of the type, allocated where we stand."""
        if memory.name == "out":
            raise self.rejected(term, "memory `out` is the place a result is written to; here the value is read",
                                "use to[private], to[thread], to[local] or to[heap]")  # fmt: skip
        if memory.name == "reg":
            return self._allocate_distributed(type_, memory, term)
        if memory.name == "heap":
            self._check_heap(term)
        if memory.name == "local":
            return self._allocate_local(type_, memory, term)
        return self._place(type_, memory, (), ())

    def _place(self, type_: Type, memory: Memory, before: tuple[Expr, ...], prefix: ir.Index) -> Place:
        """One buffer a leaf, with dimensions `before` the value's own, indexed by `prefix`; expanded by the lane."""
        scope = self.scope
        lane = scope.lane if memory.name in ("private", "reg", "thread") else None
        after = () if lane is None else (const(lane[1]),)
        buffers = []
        for shape, scalar in leaves(type_):
            role = "temporary" if memory.name == "heap" else "scratch"
            name = self.fresh_name({"heap": "heap", "local": "local"}.get(memory.name, "t"))
            if memory.padding and shape:
                shape = (*shape[:-1], shape[-1] + memory.padding)
            buffer = ir.Buffer(name, scalar, (*before, *shape, *after), memory, role, SCRATCH_ALIGNMENT)
            (self.temporaries if role == "temporary" else scope.scratch).append(buffer)
            if role == "scratch":
                self.owner[buffer] = scope
            buffers.append(buffer)
        suffix = () if lane is None else (lane[0],)
        return Place(type_, tuple(buffers), prefix, (), suffix)

    def _check_heap(self, term: Term) -> None:
        entered = self.scope.entered
        if entered:
            raise self.rejected(
                term,
                f"to[heap] stands below map[{entered[-1]}]: its iterations would share it",
                "hoist it with the map's dimension, or use thread, local or private memory",
            )

    def _allocate_local(self, type_: Type, memory: Memory, term: Term) -> Place:
        scope = self.scope
        if not scope.hardware.present:
            raise self.rejected(term, "local memory is that of a work-group; this kernel has none",
                                "use thread or private memory on a CPU")  # fmt: skip
        if within_one_item(scope.entered):
            raise self.rejected(term, f"to[local] stands below map[{scope.entered[-1]}]: one work-item's own code",
                                "use private memory, or stage in front of the map over items")  # fmt: skip
        before: list[Expr] = []
        prefix: list[Expr] = []
        for level in scope.entered:
            if level.name in ("warp", "warpgroup"):
                before.append(scope.hardware.extent[level])
                prefix.append(scope.hardware.index[level])
        if memory.slots > 1:
            before.insert(0, const(memory.slots))
            prefix.insert(0, (scope.loops[-1] if scope.loops else const(0)) % memory.slots)
        return self._place(type_, memory, tuple(before), tuple(prefix))

    def _allocate_distributed(self, type_: Type, memory: Memory, term: Term) -> Place:
        inner, kept = type_, []
        for level in memory.distribution:
            if not isinstance(inner, Array):
                raise self.rejected(term, f"{memory} names more dimensions than {type_} has")
            if level is None:
                kept.append(inner.size)
            inner = inner.element
        for size in reversed(kept):
            inner = Array(size, inner)
        plain = self._place(inner, memory, (), ())

        def check(level: Level, index: Expr) -> None:
            here = self.scope.current.get(level)
            if index is not here:
                held = f"the one at [{here}]" if here is not None else "none (no map at that level encloses this)"
                raise self.rejected(
                    term, f"explicit exchange needed: a value distributed over {level} is used at [{index}], "
                    f"but this {level} holds {held}", "go through local memory: to[local] (copy ..)")  # fmt: skip

        return Place(type_, plain.leaf_buffers, (), (), plain.suffix, memory.distribution, check)

    def materialised(self, value: ir.Value, guard: ir.Guard = ()) -> ir.Load:
        """The value, evaluated here once into a private scalar (where the guard holds)."""
        place = self._place(value.scalar, PRIVATE, (), ())
        stored = place.read()
        assert isinstance(stored, ir.Load)
        self.emit(ir.Store(stored.buffer, stored.index, value, guard))
        return stored

    # ---- loops ----

    @contextmanager
    def _variable(self, name: str | None, default: str, extent: Expr) -> Iterator[Expr]:
        """An index variable with a name that no enclosing loop has."""
        if name is None:
            free = [c for c in default if c not in self._in_use]
            chosen = free[0] if free else f"{default[0]}{len(self._in_use)}"
        else:
            chosen = name if name not in self._in_use else f"{name}_{len(self._in_use)}"
        self._in_use.append(chosen)
        yield var(chosen, extent)
        self._in_use.pop()

    def loop(self, size: Expr, level: Level, name: str | None, term: Term, body: Callable[[Expr], None]) -> None:
        """Run `body` for every index below `size`, the way the level says. An empty loop leaves nothing."""
        if size.constant == 0:
            return
        scope, kind = self.scope, level.kind
        if kind is LevelKind.INLINE:
            raise self.rejected(term, f"{term.kind}[inline] is recomputed by its readers; here it must be written",
                                "give it a level that writes: seq, unroll, vec, ...")  # fmt: skip
        refusal = self._refusal(level)
        if refusal is not None:
            raise self.rejected(term, refusal)
        self.trail.append(f"{term.kind}[{level}]" + (f" {name}" if name else ""))
        scope.depth += 1
        if kind is LevelKind.HARDWARE:
            self._hardware_loop(size, level, name, body)
        elif kind is LevelKind.UNROLLED:
            self._unrolled(size, term, body)
        elif kind is LevelKind.VECTOR:
            self._lanes(size, name, term, body)
        else:
            self._sequential(size, level, name, body)
        scope.depth -= 1
        self.trail.pop()

    def _refusal(self, level: Level) -> str | None:
        """Why a loop at the level cannot stand here, or None."""
        if level.kind in (LevelKind.SEQUENTIAL, LevelKind.UNROLLED):
            return None
        if self.device is not None and not self.device.has_level(level):
            return missing_level(level, self.device)
        if self.scope.in_sequence and (level.kind is LevelKind.THREADS or level.name in ("group", "global", "cluster")):
            return f"map[{level}] stands below a loop: the whole device would wait for itself in every iteration"
        reasons = (reason_against(outer, level) for outer in self.scope.entered)
        return next((reason for reason in reasons if reason is not None), None)

    def _unrolled(self, size: Expr, term: Term, body: Callable[[Expr], None]) -> None:
        if size.constant is None:
            raise self.rejected(term, f"unrolling {size} iterations needs a constant number of them", "use seq")
        for i in range(size.constant):
            self.scope.loops.append(const(i))
            self.scope.in_sequence += 1
            body(const(i))
            self.scope.in_sequence -= 1
            self.scope.loops.pop()

    def _sequential(self, size: Expr, level: Level, name: str | None, body: Callable[[Expr], None]) -> None:
        scope = self.scope
        outer = scope.entered
        if level.kind is LevelKind.THREADS:
            scope.entered = (*outer, level)
        else:
            scope.in_sequence += 1
        repeating = scope.repeating
        with self._variable(name, "ijkmnpqrs", size) as index, self.collected() as block:
            scope.loops.append(index)
            scope.repeating = repeating | index.variables()
            body(index)
        scope.repeating = repeating
        scope.loops.pop()
        scope.entered = outer
        scope.in_sequence -= level.kind is not LevelKind.THREADS
        if index.constant is not None:
            scope.block.extend(block)
        elif block:
            self.emit(ir.Loop(as_variable(index), size, level, tuple(block), name))

    def _lanes(self, size: Expr, name: str | None, term: Term, body: Callable[[Expr], None]) -> None:
        scope = self.scope
        if size.constant is None:
            raise self.rejected(term, f"a vector of {size} lanes needs a constant number of them")
        outer = scope.entered
        scope.entered = (*outer, Level("vec"))
        if size.constant == 1:
            body(const(0))
        else:
            with self._variable(name, "v", size) as index, self.collected() as block:
                scope.lane = (index, size.constant)
                body(index)
            scope.lane = None
            if block:
                self.emit(ir.Lanes(as_variable(index), size.constant, tuple(block), name))
        scope.entered = outer

    def _hardware_loop(self, size: Expr, level: Level, name: str | None, body: Callable[[Expr], None]) -> None:
        scope = self.scope
        hardware = scope.hardware
        index, extent = hardware.index[level], hardware.extent[level]
        outer, owned, current, repeating = scope.entered, scope.owned, scope.current, scope.repeating
        scope.entered, scope.owned = (*outer, level), owned | index.variables()
        if size is extent:
            scope.current = {**current, level: index}
            scope.repeating = repeating | index.variables()
            body(index)
        elif _is_part(size, extent):
            narrow = scope.aliases.get((level, size))
            if narrow is None:
                narrow = scope.aliases[level, size] = var(str(level), size)
            scope.current = {**current, level: narrow}
            scope.repeating = repeating | narrow.variables()
            self.conditional((size - 1 - index,), lambda: body(narrow))
        else:
            self._strided(size, index, extent, name, body)
        scope.entered, scope.owned, scope.current, scope.repeating = outer, owned, current, repeating

    def _strided(self, size: Expr, index: Expr, extent: Expr, name: str | None, body: Callable[[Expr], None]) -> None:
        """More elements than hardware indices: each takes every extent-th."""
        scope = self.scope
        rounds = ceil_div(size, extent)
        with self._variable(name, "rstuw", rounds) as turn, self.collected() as block:
            element = turn * extent + index
            scope.loops.append(turn)
            scope.repeating = scope.repeating | element.variables()
            self.conditional((size - 1 - element,), lambda: body(element))
        scope.loops.pop()
        if turn.constant is not None:
            scope.block.extend(block)
        elif block:
            self.emit(ir.Loop(as_variable(turn), rounds, SEQ, tuple(block), name))

    def conditional(self, conditions: ir.Guard, body: Callable[[], None]) -> None:
        """Run `body` under an If, or without where the ranges imply the conditions."""
        guard = conjunction((), conditions)
        if guard is None:
            return
        if not guard:
            body()
            return
        with self.collected() as block:
            body()
        if block:
            self.emit(ir.If(guard, tuple(block)))

    # ---- stores ----

    def store(self, term: Term, place: Place, value: Readable) -> None:
        """place := value for a scalar or an index; nothing where a place is stored to itself."""
        if place.impossible:
            return
        buffer, index = place.leaf_buffers[0], place.index + place.suffix
        guard = place.guard + self._first_alone(term, buffer)
        if isinstance(value, Expr):
            value = index_value(value, buffer.scalar)
        assert isinstance(value, ir.Value), value
        if isinstance(value, ir.Load) and value.buffer is buffer and value.index == index and place.atomic is None:
            return
        if place.atomic is not None:
            if self.scope.lane is not None:
                raise self.rejected(
                    term, "the lanes of a vector cannot update one element atomically", "use seq or par"
                )
            self.emit(ir.AtomicUpdate(place.atomic, buffer, index, value, guard))
        else:
            self.emit(ir.Store(buffer, index, value, guard))

    def _first_alone(self, term: Term, buffer: ir.Buffer) -> ir.Guard:
        """What all work-items (or groups) of a launch would write to one shared element, the first writes alone."""
        scope = self.scope
        owner = self.owner.get(buffer)
        if owner is not None and owner is not scope:
            raise self.rejected(term, f"{buffer} belongs to another kernel", "keep it on the heap")
        if not scope.hardware.present or buffer.memory.name not in ("local", "heap"):
            return ()
        local = buffer.memory.name == "local"
        needed = scope.hardware.item_variables() if local else scope.hardware.all_variables()
        missing = needed - scope.owned
        formulas = {scope.hardware.index[level] for level, v in scope.hardware.variables.items() if v in missing}
        return tuple([-formula for formula in sorted(formulas, key=str)])


_WORK = frozenset({"op", "reduce", "pipe", "iterate", "to"})
_repeated_work: WeakKeyDictionary[Term, frozenset[int]] = WeakKeyDictionary()


def _work_with_several_users(term: Term) -> frozenset[int]:
    """The ids of the subterms that compute something and are mentioned more than once."""
    users: dict[int, int] = {}
    for t in subterms(term):
        for a in t.args:
            if a.kind in _WORK:
                users[a.id] = users.get(a.id, 0) + 1
    return frozenset([identity for identity, count in users.items() if count > 1])


def index_value(index: Expr, scalar: Any = None) -> ir.Value:
    """An index as a value of an integer type; one that a buffer holds is a load."""
    from lithify.arith import Loaded

    single = index.single
    if isinstance(single, Loaded) and isinstance(single.buffer, ir.Buffer):
        if scalar is None or single.buffer.scalar is scalar:
            return ir.Load(single.buffer, single.index)
    return ir.IndexValue(index, scalar or index_scalar(as_size(index)))


def as_size(index: Expr) -> Expr:
    """A size above all values of an index that has a numeric bound (else one that only i64 holds)."""
    return const(int(index.hi) + 1 if index.hi < 2**62 else 2**62)


def _is_part(size: Expr, extent: Expr) -> bool:
    """Are there hardware indices for all iterations, and others? (The longest loop of a kernel gives their number.)"""
    if size.constant is not None and extent.constant is not None:
        return size.constant < extent.constant
    return proves(extent - size)
