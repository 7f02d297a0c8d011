"""Indices, values and accesses to memory, for all executors of a statement at once; every access is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lithify.arith import Expr, Loaded
from lithify.evaluate import Numerics
from lithify.kernel import ir
from lithify.kernel.evaluator.active import Active, Formula, Integers, Number, as_array, compiled
from lithify.kernel.evaluator.asynchronous import InFlight
from lithify.kernel.evaluator.counts import Counts
from lithify.kernel.evaluator.memory import Storage, duplicate
from lithify.kernel.evaluator.races import LARGEST_LOG, READ, WRITE, Access, Event, Log
from lithify.kernel.evaluator.reports import coordinates, failure, first, first_line
from lithify.kernel.walk import statements, written_in
from lithify.lang.errors import EvaluationError

Values = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a program is executed, see `run`; `warp` is the number of work-items in a warp."""

    numerics: Numerics
    random: np.random.Generator
    checks: bool
    counts: Counts | None
    warp: int


class Accesses:
    """The state of one kernel's execution, and what its statements read and write."""

    def __init__(
        self,
        kernel: ir.Kernel,
        settings: Settings,
        memories: dict[ir.Buffer, Storage],
        scratch: dict[int, list[Storage]],
        items: int,
    ) -> None:
        self.kernel = kernel
        self.numerics, self.random, self.checks = settings.numerics, settings.random, settings.checks
        self.counts, self.warp = settings.counts, settings.warp
        self.memories = memories
        self.scratch = scratch  # made afresh when a loop over threads (by id) is entered
        self.items = items  # of a group; 0 in a kernel without groups
        self.written = written_in(kernel.body)
        self.warp_barriers = any(isinstance(s, ir.Barrier) and s.scope == "warp" for s in statements(kernel.body))
        self.formulas: dict[Expr, tuple[Formula, bool]] = {}
        self.constants: dict[int, Values] = {}
        self.copying = False
        self.flight = InFlight(0, 1)
        self.passed = np.zeros(0, np.int64)  # barriers of each warp
        self.positions = np.arange(1)
        self.arrived: dict[tuple[ir.Buffer, int], list[int]] = {}  # groups at the counters, in their order

    # ---- reports ----

    def fail(
        self, message: str, statement: ir.Statement, active: Active, position: int = 0, hint: str | None = None
    ) -> EvaluationError:
        """An error at a statement, for one executor."""
        return failure(message, self.kernel.name, statement, active, position, hint)

    # ---- indices and conditions ----

    def number(self, expr: Expr, active: Active, statement: ir.Statement) -> Number:
        """The value of an index formula, for each executor or for all."""
        if not expr.terms:
            return expr.offset
        formula, _ = self._formula(expr)
        try:
            return formula(active.values, lambda atom, index: self._load_index(atom, index, active, statement))
        except KeyError as missing:
            raise self.fail(f"{missing.args[0]} has no value here: it is used outside its loop", statement, active) \
                from None  # fmt: skip

    def _formula(self, expr: Expr) -> tuple[Formula, bool]:
        found = self.formulas.get(expr)
        if found is None:
            found = self.formulas[expr] = (compiled(expr), _loads(expr))
        return found

    def _load_index(self, atom: Loaded, index: tuple[Number, ...], active: Active, statement: ir.Statement) -> Number:
        assert isinstance(atom.buffer, ir.Buffer)
        storage = self.memories[atom.buffer]
        elements = self._locate(storage, index, active, statement, "reads")
        values = self._read(storage, elements, active, statement, None).astype(np.int64)
        low, high = (self.number(e, active, statement) for e in (atom.first, atom.last))
        bad = (values < low) | (values > high)
        if bad.any():
            position = first(bad)
            raise self.fail(
                f"{storage.position(int(elements[position]))} holds {values[position]}, not an index "
                f"from {atom.first} to {atom.last}", statement, active, position)  # fmt: skip
        return values

    def holds(self, guard: ir.Guard, active: Active, statement: ir.Statement) -> Mask | bool:
        """Which executors satisfy all conditions; later conditions are not evaluated where an earlier one fails."""
        result: Mask | None = None
        for condition in guard:
            if result is not None and condition.terms and self._formula(condition)[1]:
                inner = active.select(result)
                result[result] = as_array(self.number(condition, inner, statement), inner.count) >= 0
            else:
                number = self.number(condition, active, statement)
                if isinstance(number, int):
                    if number < 0:
                        return False
                    continue
                result = number >= 0 if result is None else result & (number >= 0)
        if result is None or result.all():
            return True
        return result if result.any() else False

    # ---- values ----

    def value(self, value: ir.Value, active: Active, statement: ir.Statement, care: Mask | None) -> Values:
        """The value for each executor (or one for all); `care` marks those that will use it (None: all)."""
        match value:
            case ir.Load():
                return self._load(value, active, statement, care)
            case ir.Apply(operator, operands, scalar):
                numbers = tuple([self.value(o, active, statement, care) for o in operands])
                if self.counts is not None:
                    self.counts.operations[operator.name] += active.count
                return self.numerics.apply(operator, numbers, scalar)
            case ir.Constant(constant, scalar):
                found = self.constants.get(id(value))
                if found is None:
                    found = self.constants[id(value)] = np.asarray(constant, self.numerics.dtype(scalar))
                return found
            case ir.IndexValue(index, scalar):
                number = np.asarray(self.number(index, active, statement))
                low, high = scalar.limits
                bad = (number < low) | (number > high)
                if scalar.is_integer and bad.any():
                    position = first(np.broadcast_to(bad, active.count))
                    raise self.fail(f"index {index} is {number.flat[position if number.ndim else 0]}, beyond {scalar}",
                                    statement, active, position)  # fmt: skip
                return number.astype(self.numerics.dtype(scalar))
            case ir.Choose(guard, then, otherwise):
                holding = self.holds(guard, active, statement)
                mask = np.full(active.count, holding) if isinstance(holding, bool) else holding
                used = mask if care is None else mask & care
                unused = ~mask if care is None else ~mask & care
                left = self.value(then, active, statement, used)
                right = self.value(otherwise, active, statement, unused)
                return np.where(mask, left, right)

    def _load(self, load: ir.Load, active: Active, statement: ir.Statement, care: Mask | None) -> Values:
        holding = self.holds(load.guard, active, statement)
        storage = self._storage(load.buffer, statement, active)
        if holding is True:
            elements = self._locate(storage, self._index(load.index, active, statement), active, statement, "reads")
            return self._read(storage, elements, active, statement, care)
        mask = np.zeros(active.count, bool) if holding is False else holding
        result = np.zeros(active.count, self.numerics.dtype(load.scalar))
        if holding is not False:
            inner = active.select(mask)
            elements = self._locate(storage, self._index(load.index, inner, statement), inner, statement, "reads")
            result[mask] = self._read(storage, elements, inner, statement, None if care is None else care[mask])
        rest = ~mask
        if load.fill is not None:
            result[rest] = self.value(load.fill, active.select(rest), statement, None if care is None else care[rest])
        elif (rest if care is None else rest & care).any():
            position = first(rest if care is None else rest & care)
            raise self.fail(f"a load of {load.buffer.name} whose condition fails has no fill, and its value is used",
                            statement, active, position)  # fmt: skip
        return result

    # ---- memory ----

    def _storage(self, buffer: ir.Buffer, statement: ir.Statement, active: Active) -> Storage:
        storage = self.memories.get(buffer)
        if storage is None:
            raise self.fail(f"{buffer.name} is not a buffer of this kernel", statement, active)
        return storage

    def _index(self, index: ir.Index, active: Active, statement: ir.Statement) -> tuple[Number, ...]:
        return tuple([self.number(i, active, statement) for i in index])

    def _locate(
        self, storage: Storage, index: Sequence[Number], active: Active, statement: ir.Statement, verb: str
    ) -> Integers:
        """The elements at an index, one an executor; every dimension is checked against the shape."""
        if len(index) != len(storage.shape):
            shape = f"{storage.buffer.name} has {len(storage.shape)} dimensions"
            raise self.fail(f"{shape}, {len(index)} indices are given", statement, active)
        element: Number = 0
        for dim, (i, size, stride) in enumerate(zip(index, storage.shape, storage.strides, strict=True)):
            if isinstance(i, int):
                outside = not 0 <= i < size
            else:
                outside = len(i) > 0 and (int(i.min()) < 0 or int(i.max()) >= size)
            if outside:
                every = as_array(i, active.count)
                position = first((every < 0) | (every >= size))
                raise self.fail(
                    f"out of bounds: {verb} index {every[position]} of dimension {dim} of {storage.buffer.name}, "
                    f"which has {size}", statement, active, position)  # fmt: skip
            element = element + i * stride
        if storage.depth > active.depth:
            raise self.fail(f"{storage.buffer.name} is memory of a thread, used outside all threads", statement, active)
        if storage.depth:
            element = element + (active.owners[storage.depth] - storage.base) * storage.count
        return as_array(element, active.count)

    def _read(
        self, storage: Storage, elements: Integers, active: Active, statement: ir.Statement, care: Mask | None
    ) -> Values:
        if self.checks:
            if storage.targets is not None:
                self._not_in_flight(storage.targets, elements, storage, active, statement, "read")
            missing = ~storage.valid[elements]
            if care is not None:
                missing &= care
            if missing.any():
                position = first(missing)
                what = storage.position(int(elements[position]))
                accumulates = isinstance(statement, ir.AtomicUpdate) or (
                    isinstance(statement, ir.Store) and statement.buffer is storage.buffer
                )
                raise self.fail(
                    f"accumulates into {what}, which nothing initialised" if accumulates
                    else f"reads {what}, which nothing wrote", statement, active, position)  # fmt: skip
            self._record(storage, elements, READ, active, statement)
        if self.counts is not None:
            self._count(storage, elements, active, write=False)
        return storage.data[elements]

    def _write(
        self, storage: Storage, elements: Integers, values: Values, active: Active, statement: ir.Statement
    ) -> None:
        if self.checks:
            self._writable(storage, elements, active, statement)
            self._record(storage, elements, WRITE, active, statement)
        storage.data[elements] = values
        storage.valid[elements] = True
        if self.counts is not None:
            self._count(storage, elements, active, write=True)

    def _writable(self, storage: Storage, elements: Integers, active: Active, statement: ir.Statement) -> None:
        if storage.targets is not None and storage.sources is not None:
            self._not_in_flight(storage.targets, elements, storage, active, statement, "written")
            self._not_in_flight(storage.sources, elements, storage, active, statement, "written")
        if active.lanes:
            position = duplicate(active.threads, elements)
            if position is not None:
                raise self.fail(f"two lanes write {storage.position(int(elements[position]))}",
                                statement, active, position)  # fmt: skip

    def _not_in_flight(
        self, flags: NDArray[np.int32], elements: Integers, storage: Storage, active: Active,
        statement: ir.Statement, verb: str,
    ) -> None:  # fmt: skip
        busy = flags[elements] > 0
        if busy.any():
            position = first(busy)
            element = int(elements[position])
            role = "target" if flags is storage.targets else "source"
            raise self.fail(
                f"{storage.position(element)} is {verb} while it is the {role} of an asynchronous copy in flight",
                statement, active, position, "wait for the copy's group first")  # fmt: skip

    def _record(self, storage: Storage, elements: Integers, kind: int, active: Active, statement: ir.Statement) -> None:
        depth = active.depth
        if storage.depth >= depth or storage.buffer not in self.written:
            return
        log = storage.log(depth)
        log.add(Event(elements, kind, self._access(active, statement), self._rows(active.count)))
        if log.size > LARGEST_LOG:
            self._no_race(storage, log)
            log.merge()

    def _access(self, active: Active, statement: ir.Statement) -> Access:
        if not self.warp_barriers:
            return Access(statement, active)
        warps = self._warps(active)
        return Access(statement, active, warps, self.passed[warps - self._warps_of(self.flight.first)])

    def _warps(self, active: Active) -> Integers:
        groups, items = np.divmod(active.threads, self.items)
        warps: Integers = groups * -(-self.items // self.warp) + items // self.warp
        return warps

    def _warps_of(self, first_thread: int) -> int:
        return first_thread // self.items * -(-self.items // self.warp)

    def _rows(self, count: int) -> Integers:
        if len(self.positions) < count:
            self.positions = np.arange(count)
        return self.positions[:count]

    def _count(self, storage: Storage, elements: Integers, active: Active, *, write: bool) -> None:
        assert self.counts is not None
        places = elements % storage.count if storage.depth else elements
        items = max(1, self.items)
        self.counts.access(storage.buffer, places, active.threads, items, write=write, lanes=active.lanes)
        if self.copying and write:
            self.counts.asynchronous_bytes += len(elements) * storage.buffer.scalar.bytes

    def _no_race(self, storage: Storage, log: Log) -> None:
        race = log.race()
        if race is None:
            return
        sides = []
        for event, position in (race.first, race.second):
            at = coordinates(event.access.active, int(event.rows[position]))
            sides.append(f"{first_line(event.access.statement)}\n  at {at}")
        one, other = race.words
        raise EvaluationError(
            f"race on {storage.position(race.element)}: {one} by one thread, {other} by another, nothing orders them",
            where=f"in {self.kernel.name}: {sides[0]}\nand {sides[1]}",
            hint="a barrier between them, another element for each, or one thread for both",
        )


def _loads(expr: Expr) -> bool:
    atoms = [atom for monomial, _ in expr.terms for atom in monomial]
    return any(isinstance(a, Loaded) or any(_loads(part) for part in a.parts()) for a in atoms)
