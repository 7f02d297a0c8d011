"""The state of the translation: the block under construction, scratch memory, and where we are in the machine.

`READERS` and `WRITERS` hold one function a pattern; the `translate_*` modules fill them. `loops` enters levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from lithify.arith import Expr, Variable, const, var
from lithify.kernel import ir
from lithify.kernel.conditions import conjunction
from lithify.kernel.hardware import Hardware, within_one_item
from lithify.kernel.places import Acceptor, Environment, Place, Readable, index_scalar, leaves
from lithify.lang.errors import Rejected
from lithify.lang.levels import PRIVATE, Level, Memory
from lithify.lang.scalars import bool_
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Type
from lithify.machine import DeviceModel

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
        lane = scope.lane if memory.of_one_item else None
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

    # ---- blocks ----

    @contextmanager
    def index_variable(self, name: str | None, default: str, extent: Expr) -> Iterator[Expr]:
        """An index variable with a name that no enclosing loop has."""
        if name is None:
            free = [c for c in default if c not in self._in_use]
            chosen = free[0] if free else f"{default[0]}{len(self._in_use)}"
        else:
            chosen = name if name not in self._in_use else f"{name}_{len(self._in_use)}"
        self._in_use.append(chosen)
        yield var(chosen, extent)
        self._in_use.pop()

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
            if self.scope.lane is not None and self.scope.lane[0] not in place.suffix:
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
