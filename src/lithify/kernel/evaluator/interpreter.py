"""Executes the statements of one kernel, for all executors at once."""

from __future__ import annotations

import numpy as np

from lithify.arith import Expr, Variable
from lithify.kernel import ir
from lithify.kernel.evaluator.accesses import Accesses
from lithify.kernel.evaluator.active import Active, Integers, Number, as_array
from lithify.kernel.evaluator.asynchronous import Copy, InFlight
from lithify.kernel.evaluator.instructions import Values, agree, computed, registers
from lithify.kernel.evaluator.memory import Storage
from lithify.kernel.evaluator.races import ATOMIC, LARGEST_LOG, WRITE, Event
from lithify.kernel.evaluator.reports import first
from lithify.lang.levels import LevelKind

MOST_THREADS = 1 << 16  # executors, and private elements of all of them, that run together
MOST_PRIVATE = 1 << 22


class Interpreter(Accesses):
    """Runs blocks of statements."""

    # ---- statements ----

    def block(self, block: ir.Block, active: Active) -> None:
        """Run statements in order."""
        for statement in block:
            self.statement(statement, active)

    def statement(self, statement: ir.Statement, active: Active) -> None:
        """Run one statement for all executors."""
        match statement:
            case ir.Store():
                self._store(statement, active)
            case ir.Loop():
                self._loop(statement, active)
            case ir.If(guard, body, otherwise):
                holding = self.holds(guard, active, statement)
                if isinstance(holding, bool):
                    self.block(body if holding else otherwise, active)
                else:
                    self.block(body, active.select(holding))
                    if otherwise:
                        self.block(otherwise, active.select(~holding))
            case ir.Lanes(variable, width, body, _):
                if active.lanes:
                    raise self.fail("lanes inside lanes", statement, active)
                self._in_range(variable, width, active, statement)
                self.block(body, active.expand(variable, np.arange(width)))
            case ir.AtomicUpdate():
                self._atomic(statement, active)
            case ir.Barrier():
                self._barrier(statement, active)
            case ir.LastGroup():
                self._last_group(statement, active)
            case ir.Instruction():
                self._instruction(statement, active)
            case ir.Async(body):
                self.copying = True
                self.block(body, active)
                self.copying = False
            case ir.Commit():
                self._for_whole_threads(statement, active)
                self.flight.commit(active.threads)
            case ir.Wait(pending):
                self._for_whole_threads(statement, active)
                self.flight.wait(active.threads, pending)

    def _for_whole_threads(self, statement: ir.Statement, active: Active) -> None:
        if active.lanes:
            raise self.fail("a statement for whole threads stands inside lanes", statement, active)

    def _guarded(self, guard: ir.Guard, active: Active, statement: ir.Statement) -> Active | None:
        holding = self.holds(guard, active, statement)
        if isinstance(holding, bool):
            return active if holding else None
        return active.select(holding)

    def _store(self, store: ir.Store, active: Active) -> None:
        inner = self._guarded(store.guard, active, store)
        if inner is None:
            return
        if self.copying:
            self._start_copy(store, inner)
            return
        values = self.value(store.value, inner, store, None)
        storage = self._storage(store.buffer, store, inner)
        elements = self._locate(storage, self._index(store.index, inner, store), inner, store, "writes")
        self._write(storage, elements, values, inner, store)

    def _start_copy(self, store: ir.Store, active: Active) -> None:
        load = store.value
        if not isinstance(load, ir.Load):
            raise self.fail("only copies (a store of a load) can run asynchronously", store, active)
        values = np.broadcast_to(self._load(load, active, store, None), active.count)
        target, source = (self._storage(b, store, active) for b in (store.buffer, load.buffer))
        elements = self._locate(target, self._index(store.index, active, store), active, store, "writes")
        origins = np.full(active.count, -1)
        holding = self.holds(load.guard, active, store)
        if holding is not False:
            chosen = np.ones(active.count, bool) if holding is True else holding
            inner = active.select(chosen)
            origins[chosen] = self._locate(source, self._index(load.index, inner, store), inner, store, "reads")
        if self.checks:
            self._writable(target, elements, active, store)
            self._record(target, elements, WRITE, active, store)
        if self.counts is not None:
            self._count(target, elements, active, write=True)
        late = bool(self.random.integers(2))
        threads = active.threads
        access, rows, group = self._access(active, store), self._rows(active.count), self.flight.group(threads)
        self.flight.start(Copy(access, rows, threads, group, target, elements, source, origins, values, late))

    def _atomic(self, update: ir.AtomicUpdate, active: Active) -> None:
        inner = self._guarded(update.guard, active, update)
        if inner is None:
            return
        values = np.broadcast_to(self.value(update.value, inner, update, None), inner.count)
        storage = self._storage(update.buffer, update, inner)
        elements = self._locate(storage, self._index(update.index, inner, update), inner, update, "updates")
        if self.checks:
            for flags in (storage.targets, storage.sources):
                if flags is not None:
                    self._not_in_flight(flags, elements, storage, inner, update, "written")
            missing = ~storage.valid[elements]
            if missing.any():
                position = first(missing)
                raise self.fail(f"accumulates into {storage.position(int(elements[position]))}, which nothing "
                                "initialised", update, inner, position)  # fmt: skip
            self._record(storage, elements, ATOMIC, inner, update)
        left = self.random.permutation(inner.count)
        while len(left):
            _, turn = np.unique(elements[left], return_index=True)
            now = left[turn]
            old = storage.data[elements[now]]
            storage.data[elements[now]] = self.numerics.apply(update.operator, (old, values[now]), update.buffer.scalar)
            left = np.delete(left, turn)
        if self.counts is not None:
            self.counts.operations[update.operator.name] += inner.count
            self._count(storage, elements, inner, write=False)
            self._count(storage, elements, inner, write=True)

    def _instruction(self, statement: ir.Instruction, active: Active) -> None:
        """The instruction by its row, on the registers that it would load; what its body says must be the same."""
        if active.lanes:
            raise self.fail("an instruction stands inside lanes", statement, active)
        row, counts, self.counts = statement.row, self.counts, None  # counted is what the body says
        operands = [self._matrix(k, statement, active) for k in range(3)]
        with np.errstate(all="ignore"):
            expected = computed(row, operands, exact=self.numerics.exact)
        self.counts = counts
        self.block(statement.body, active)
        self.counts = None
        storage, elements = self._held(statement.result, 2, statement.pitches[0], statement, active)
        places = elements[:, registers(row, 2)]
        said = storage.data[places]
        if self.checks and not agree(said, expected):
            position = first((~np.isclose(said, expected, equal_nan=True)).any(axis=(1, 2)))
            raise self.fail(
                f"{row.name} computes {expected[position].tolist()}, "
                f"and what the statement stands for is {said[position].tolist()}", statement, active, position,
                "its operands do not lie where the statement reads them")  # fmt: skip
        storage.data[places] = expected
        self.counts = counts

    def _matrix(self, operand: int, statement: ir.Instruction, active: Active) -> Values:
        """An operand for each executor: the elements from the first one in memory on, as the row arranges them."""
        load, pitch = statement.operands[operand], statement.pitches[operand + 1]
        storage, elements = self._held(load, operand, pitch, statement, active)
        held = [self._read(storage, elements[:, k], active, statement, None) for k in range(elements.shape[1])]
        return np.stack(held, axis=1)[:, registers(statement.row, operand)]

    def _held(
        self, load: ir.Load, operand: int, pitch: Expr, statement: ir.Instruction, active: Active
    ) -> tuple[Storage, Integers]:
        """The places of an operand's registers, for each executor: lines of elements that follow one another."""
        row, storage = statement.row, self._storage(load.buffer, statement, active)
        start = self._locate(storage, self._index(load.index, active, statement), active, statement, "takes")
        (between,) = self._index((pitch,), active, statement)
        held = row.in_line[operand]
        lines = start[:, None] + np.arange(row.elements[operand] // held) * np.reshape(between, (-1, 1))
        beyond = ((start % storage.count)[:, None] + (lines - start[:, None]) + held > storage.count).any(axis=1)
        if beyond.any():
            position = first(beyond)
            where = storage.position(int(start[position]))
            raise self.fail(
                f"out of bounds: the {row.elements[operand]} elements from {where} on run past the end of "
                f"{load.buffer.name}", statement, active, position)  # fmt: skip
        return storage, (lines[:, :, None] + np.arange(held)).reshape(len(start), -1)

    def _in_range(self, variable: Variable, extent: Number, active: Active, statement: ir.Statement) -> None:
        """The values 0 .. extent - 1 must lie in the variable's declared range: formulas were simplified by it."""
        declared = variable.extent
        if declared is None:
            raise self.fail(f"{variable.name} is a size, not an index variable", statement, active)
        limit = self.number(declared, active, statement)
        beyond = as_array(extent, active.count) > as_array(limit, active.count)
        if beyond.any():
            raise self.fail(f"{variable.name} runs to {extent} and is declared below {declared}", statement, active,
                            first(beyond))  # fmt: skip

    def _loop(self, loop: ir.Loop, active: Active) -> None:
        extent = self.number(loop.extent, active, loop)
        self._in_range(loop.variable, extent, active, loop)
        if loop.level.kind is LevelKind.THREADS:
            self._threads(loop, extent, active)
        elif isinstance(extent, int):
            for i in range(extent):
                self.block(loop.body, active.at(loop.variable, i))
        else:
            for i in range(int(extent.max(initial=0))):
                going = extent > i
                inner = active if going.all() else active.select(going)
                self.block(loop.body, inner.at(loop.variable, i))

    # ---- loops over CPU threads ----

    def _threads(self, loop: ir.Loop, extent: Number, active: Active) -> None:
        if self.items or active.lanes or not isinstance(extent, int):
            raise self.fail("a loop over CPU threads stands below work-items or lanes", loop, active)
        own = self.scratch.get(id(loop), [])
        private = sum(storage.count for storage in own)
        at_once = min(MOST_THREADS, MOST_PRIVATE // max(1, private)) if active.count == 1 else extent
        order = self.random.permutation(extent)
        outer = self.flight
        for start in range(0, extent, max(1, at_once)):
            chosen = order[start : start + max(1, at_once)]
            inner = active.expand(loop.variable, chosen, extent=extent)
            base = int(inner.threads.min())
            threads = int(inner.threads.max()) - base + 1
            for storage in own:
                storage.allocate(self.numerics, threads, base)
            self.flight = InFlight(base, threads)
            self.block(loop.body, inner)
            self.landed()
        self.flight = outer
        self.end_of_interval(active.depth + 1)

    # ---- synchronisation ----

    def landed(self) -> None:
        """All asynchronous copies must have been waited for when their threads end."""
        if self.checks and self.flight.copies:
            copy = self.flight.copies[0]
            raise self.fail("an asynchronous copy is never waited for", copy.access.statement, copy.access.active,
                            int(copy.rows[0]))  # fmt: skip

    def end_of_interval(self, depth: int, memory: tuple[str, ...] | None = None, among: Integers | None = None) -> None:
        """Compare the accesses of the interval at a depth, and hand them to the enclosing one.

        `memory` are the memories that are synchronised (None: all), `among` the groups that are (None: all).
        """
        for storage in self.memories.values():
            log = storage.logs.get(depth)
            if log is None or not log.events or (memory is not None and storage.buffer.memory.name not in memory):
                continue
            self._no_race(storage, log)
            ended = log.take(among, depth - 1)
            if storage.depth < depth - 1:
                outer = storage.log(depth - 1)
                for event in ended:
                    outer.add(event)
                if outer.size > LARGEST_LOG:
                    self._no_race(storage, outer)
                    outer.merge()

    def _barrier(self, barrier: ir.Barrier, active: Active) -> None:
        if not self.items or active.lanes:
            raise self.fail("a barrier stands outside the work-items of a group", barrier, active)
        if barrier.scope == "warp":
            self._reached_by_all(barrier, active, self._warps(active), self.warp)
            self.passed[np.unique(self._warps(active)) - self._warps_of(self.flight.first)] += 1
            for storage in self.memories.values():
                if storage.depth < active.depth and storage.buffer.memory.name in barrier.memory:
                    storage.log(active.depth).by_warp = True
        elif barrier.scope == "group":
            self._wait_for_group(barrier, barrier.memory, active)
        else:
            raise self.fail(f"no barrier of scope {barrier.scope} is known", barrier, active)
        if self.counts is not None:
            self.counts.barriers += len(np.unique(active.owners[1]))

    def _wait_for_group(self, statement: ir.Barrier | ir.LastGroup, memory: tuple[str, ...], active: Active) -> None:
        self._reached_by_all(statement, active, active.owners[1], self.items)
        groups = np.unique(active.owners[1])
        everyone = len(self.flight.committed) == active.count
        self.end_of_interval(2, memory, None if everyone else groups)
        for copy in self.flight.copies:
            for storage, event in copy.events():
                synchronised = storage.buffer.memory.name in memory
                if synchronised and storage.depth < active.depth and storage.buffer in self.written:
                    storage.log(active.depth).add(event)

    def _last_group(self, statement: ir.LastGroup, active: Active) -> None:
        if not self.items or active.lanes:
            raise self.fail("the last of several groups is asked for outside the work-items of a group", statement,
                            active)  # fmt: skip
        self._wait_for_group(statement, ("local", "heap"), active)
        groups, rows = np.unique(active.owners[1], return_index=True)
        here = active.select(rows)  # one item of each group
        storage = self._storage(statement.buffer, statement, active)
        elements = self._locate(
            storage, self._index(statement.index, active, statement), active, statement, "counts at"
        )
        expected = as_array(self.number(statement.groups, active, statement), active.count)
        of_item = np.searchsorted(groups, active.owners[1])
        differs = (elements != elements[rows][of_item]) | (expected != expected[rows][of_item])
        if differs.any():
            raise self.fail("the items of a group count it at different places", statement, active, first(differs))
        if self.checks:  # as groups, not as items: those have waited
            event = Event(elements[rows], ATOMIC, self._access(here, statement), self._rows(here.count))
            storage.log(1).add(event)
        later = np.arange((self.flight.first + len(self.flight.committed)) // self.items)
        last = np.zeros(len(groups), bool)
        for k in self.random.permutation(len(groups)):
            element, wanted = int(elements[rows[k]]), int(expected[rows[k]])
            arrived = self.arrived.setdefault((storage.buffer, element), [])
            arrived.append(int(groups[k]))
            storage.data[element] += 1
            last[k] = storage.data[element] == wanted
            if last[k]:
                later[arrived] = groups[k]
                storage.data[element] = 0
        if self.checks and last.any():
            for shared in self.memories.values():
                log = shared.logs.get(1)
                if log is not None:
                    self._no_race(shared, log)
                    log.order(later)
        if self.counts is not None:
            self.counts.barriers += 2 * len(groups)
        if last.any():
            self.block(statement.body, active.select(last[of_item]))

    def _reached_by_all(self, barrier: ir.Barrier | ir.LastGroup, active: Active, owners: Integers, size: int) -> None:
        found, starts, here = np.unique(owners, return_index=True, return_counts=True)
        expected = np.full(len(found), size)
        scope = barrier.scope if isinstance(barrier, ir.Barrier) else "group"
        if scope == "warp":  # the last warp of a group may be smaller
            per_group = -(-self.items // self.warp)
            last = found % per_group == per_group - 1
            expected[last] = self.items - (per_group - 1) * self.warp
        if (here != expected).any():
            k = first(here != expected)
            raise self.fail(
                f"a barrier of scope {scope} is reached by {here[k]} of its {expected[k]} work-items",
                barrier, active, int(starts[k]), "every work-item of the scope must run the same barriers")  # fmt: skip
