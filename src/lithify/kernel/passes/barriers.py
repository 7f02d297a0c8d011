"""Barriers between work-items that touch the same element of shared memory, one of them writing.

The code says what each work-item does; this pass finds pairs of accesses to one shared buffer that may be of different
work-items, and separates them. A barrier stands in front of the outermost statement that needs it; loop bodies are
walked twice, so that the end of an iteration is separated from the beginning of the next. No barrier is needed where
the normal forms show that both accesses are the same work-item's (identical forms from which the item can be decoded)
or are of different elements; one of the warp suffices where they show that both are the same warp's.

A barrier must be reached by every work-item of its scope: an If that diverges is split around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any

from lithify.arith import Expr, Variable, as_variable, const, var
from lithify.kernel import ir
from lithify.kernel.walk import blocks_of, index_accesses, reads_of, written_in
from lithify.lang.levels import Level

WARP, GROUP = "warp", "group"


def insert_barriers(program: ir.Program, *, warps: bool = True) -> ir.Program:
    """The program with the barriers that its kernels need; `warps` says that the items of a warp can wait for each
    other (otherwise all items of the group do)."""
    return replace(program, kernels=tuple([_kernel(kernel, warps) for kernel in program.kernels]))


def _kernel(kernel: ir.Kernel, warps: bool) -> ir.Kernel:
    items = frozenset(v for level, v in kernel.hardware.items() if level.name != "group")
    if not items:
        return kernel
    # Only these can be in conflict.
    shared = frozenset(b for b in written_in(kernel.body) if b.memory.name in ("local", "heap"))
    if not shared:
        return kernel
    warp = kernel.hardware.get(Level("warp")) if warps else None
    placement = _Placement(shared, items, warp, kernel.hardware.get(Level("lane")))
    body, _ = placement.block(kernel.body, _State())
    return replace(kernel, body=body)


def _wait(block: list[ir.Statement], barrier: ir.Barrier) -> None:
    """The barrier at the end of a block: one for the memories of both where there is one already."""
    last = block[-1] if block else None
    if isinstance(last, ir.Barrier) and last.scope == barrier.scope:
        block[-1] = ir.Barrier(barrier.scope, tuple(sorted({*last.memory, *barrier.memory}, reverse=True)))
    else:
        block.append(barrier)


# The largest values that variables have where conditions hold.
Bounds = frozenset[tuple[Variable, int]]


@dataclass(frozen=True, slots=True, eq=False)
class _Access:
    """One access, the same object wherever it is met (see `_Placement._access`)."""

    buffer: ir.Buffer
    index: ir.Index
    form: Expr  # the element's number as the code says it: the variables of other iterations are not renamed in it
    bounds: Bounds  # of the items' variables here
    writes: bool
    atomic: bool

    @property
    def pinned(self) -> frozenset[Variable]:
        """The items' variables that are 0 here."""
        return frozenset(v for v, last in self.bounds if last == 0)

    def mentions(self, variable: Variable) -> bool:
        return any(variable in e.variables() for e in self.index)

    def renamed(self, variables: Mapping[Variable, Expr]) -> _Access:
        return replace(self, index=tuple([e.substitute(variables) for e in self.index]))


@dataclass(frozen=True, slots=True)
class _State:
    """Accesses since the last barrier of the group for their memory, and those of them since the last of the warp."""

    group: frozenset[_Access] = frozenset()
    warp: frozenset[_Access] = frozenset()

    def after(self, scope: str, memory: tuple[str, ...]) -> _State:
        """Behind a barrier, which orders accesses to the memories that it names."""
        warp = frozenset(a for a in self.warp if a.buffer.memory.name not in memory)
        if scope != GROUP:
            return _State(self.group, warp)
        return _State(frozenset(a for a in self.group if a.buffer.memory.name not in memory), warp)

    def joined(self, other: _State) -> _State:
        return _State(self.group | other.group, self.warp | other.warp)

    def in_the_iteration_before(self, variable: Variable, extent: Expr) -> _State:
        """The same accesses, of another value of a loop's variable."""
        earlier = {variable: var(variable.name, extent)}
        other = {a: a.renamed(earlier) if a.mentions(variable) else a for a in self.group}
        return _State(frozenset(other.values()), frozenset([other[a] for a in self.warp]))

    def having(self, accesses: frozenset[_Access]) -> _State:
        return _State(self.group | accesses, self.warp | accesses)


class _Placement:
    def __init__(
        self,
        shared: frozenset[ir.Buffer],
        items: frozenset[Variable],
        warp: Variable | None,
        lane: Variable | None,
    ) -> None:
        self.shared, self.items, self.warp, self.lane = shared, items, warp, lane
        self.others = {v: var(v.name, v.extent) for v in items if v.extent is not None}
        self.bounds: Bounds = frozenset()
        self._known: dict[tuple[int, Bounds], tuple[ir.Statement, frozenset[_Access]]] = {}
        self._all: dict[tuple[Any, ...], _Access] = {}
        self._foreign: dict[_Access, ir.Index] = {}
        self._decided: dict[tuple[_Access, _Access], str | None] = {}

    def block(self, block: ir.Block, state: _State) -> tuple[ir.Block, _State]:
        """The block with barriers, entered in a state; and the state at its end."""
        result: list[ir.Statement] = []
        pending = list(reversed(block))
        cut = False
        while pending:
            statement = pending.pop()
            if isinstance(statement, ir.Barrier):
                state = state.after(statement.scope, statement.memory)
                _wait(result, statement)
                continue
            if isinstance(statement, ir.LastGroup):  # a barrier of the group, of all memory
                body, state = self.block(statement.body, _State())
                result.append(replace(statement, body=body))
                continue
            accesses = self._accesses(statement)
            needed = self._needed(state, accesses)
            if needed is not None:
                scope, memory = needed
                if isinstance(statement, ir.Loop):
                    loop, last = self._nested(statement, state.after(scope, memory))
                    if _begins_with(loop, ir.Barrier(scope, memory)):  # needed between iterations anyhow
                        result.append(loop)
                        state = last
                        continue
                _wait(result, ir.Barrier(scope, memory))
                state = state.after(scope, memory)
            if not any(a.writes for a in accesses):
                result.append(statement)
                state = state.having(accesses)
            elif isinstance(statement, ir.If) and not self._uniform(statement.guard):
                bounds = self.bounds
                self.bounds = bounds | _bounds(statement.guard)
                inner, _ = self.block(statement.body, _State())
                self.bounds = bounds
                other, _ = self.block(statement.otherwise, _State())
                if inner != statement.body or other != statement.otherwise:
                    pending.extend(reversed(_distributed(statement)))
                    cut = True
                    continue
                result.append(statement)
                state = state.having(accesses)
            elif blocks_of(statement):
                changed, state = self._nested(statement, state)
                result.append(changed)
            else:
                result.append(statement)
                state = state.having(accesses)
        return tuple(_gathered(result) if cut else result), state

    def _nested(self, statement: ir.Statement, state: _State) -> tuple[ir.Statement, _State]:
        match statement:
            case ir.Loop(variable, extent, level, body, name):
                once, end = self.block(body, state)
                twice, last = self.block(once, end.in_the_iteration_before(variable, extent))
                if extent.lo < 1:
                    last = last.joined(state)
                return ir.Loop(variable, extent, level, twice, name), last
            case ir.If(guard, body, otherwise):
                inner, end = self.block(body, state)
                other, other_end = self.block(otherwise, state)
                return ir.If(guard, inner, other), end.joined(other_end)
        return statement, state.having(self._accesses(statement))

    def _accesses(self, statement: ir.Statement) -> frozenset[_Access]:
        key = (id(statement), self.bounds)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (statement, frozenset(self._within(statement, self.bounds)))
        return found[1]

    def _within(self, statement: ir.Statement, bounds: Bounds) -> Iterator[_Access]:
        for buffer, index in reads_of(statement):
            if buffer in self.shared:
                yield self._access(buffer, index, bounds, False)
        if isinstance(statement, (ir.Store, ir.AtomicUpdate)) and statement.buffer in self.shared:
            atomic = isinstance(statement, ir.AtomicUpdate)
            yield self._access(statement.buffer, statement.index, bounds, True, atomic)
        if isinstance(statement, ir.If):
            inside = bounds | _bounds(statement.guard)
            for s in statement.body:
                yield from self._within(s, inside)
            for s in statement.otherwise:
                yield from self._within(s, bounds)
        else:
            for block in blocks_of(statement):
                for s in block:
                    yield from self._within(s, bounds)

    def _access(
        self,
        buffer: ir.Buffer,
        index: ir.Index,
        bounds: Bounds,
        writes: bool,
        atomic: bool = False,
    ) -> _Access:
        key = (buffer, index, bounds, writes, atomic)
        found = self._all.get(key)
        if found is None:
            position = self._position(buffer, index)
            of_items = frozenset((v, last) for v, last in bounds if v in self.items)
            found = self._all[key] = _Access(buffer, index, position, of_items, writes, atomic)
        return found

    def _position(self, buffer: ir.Buffer, index: ir.Index) -> Expr:
        """The element's number, in the dimensions in which work-items differ."""
        position = const(0)
        for size, i in zip(buffer.shape, index, strict=True):
            if not self.items.isdisjoint(i.variables()):
                position = position * size + i
        return position

    def _same_dims(self, old: _Access, new: _Access) -> bool:
        """Do the work-items differ in the same dimensions of both, so that the elements' numbers can be compared?"""
        dims = [[self.items.isdisjoint(i.variables()) for i in access.index] for access in (old, new)]
        return dims[0] == dims[1]

    def _uniform(self, guard: ir.Guard) -> bool:
        return all(self.items.isdisjoint(condition.variables()) for condition in guard)

    def _needed(self, state: _State, accesses: frozenset[_Access]) -> tuple[str, tuple[str, ...]] | None:
        """Scope and memories of the barrier that must stand between the state and the accesses."""
        scope, memories = None, set()
        for buffer in {a.buffer for a in accesses} & {a.buffer for a in state.group}:
            found = self._conflict(state, accesses, buffer)
            if found is not None:
                scope = GROUP if GROUP in (scope, found) else WARP
                memories.add(buffer.memory.name)
        return None if scope is None else (scope, tuple(sorted(memories, reverse=True)))

    def _conflict(self, state: _State, accesses: frozenset[_Access], buffer: ir.Buffer) -> str | None:
        """The scope of the barrier that accesses to one buffer need."""
        pending = [a for a in state.group if a.buffer is buffer]
        strongest = None
        for new in accesses:
            if new.buffer is buffer:
                for old in pending:
                    if old.writes or new.writes:
                        found = self._scope(old, new)
                        if found == GROUP:
                            return GROUP
                        if found == WARP and old in state.warp:
                            strongest = WARP
        return strongest

    def _scope(self, old: _Access, new: _Access) -> str | None:
        key = (old, new)
        if key not in self._decided:
            self._decided[key] = self._decide(old, new)
        return self._decided[key]

    def _decide(self, old: _Access, new: _Access) -> str | None:
        if old.atomic and new.atomic:
            return None
        known = set(old.pinned & new.pinned)
        if old.form is new.form and self._same_dims(old, new):
            known |= _decoded(old.form)
        for a, b in zip(old.index, new.index, strict=True):
            if a is b:
                known |= _decoded(a)
        if self.items <= known:
            return None
        others = self._by_another_item(old)
        for a, b in zip(others, new.index, strict=True):
            known |= {v for v, other in self.others.items() if _agrees(v, other, b, a)}
        if self.items <= known:
            return None
        narrower = self._narrower(old, new)
        if any(_differs((a - b).substitute(narrower)) for a, b in zip(others, new.index, strict=True)):
            return None
        # In a copy to rows of any length the element's number says more than the row and the column do.
        apart = old.buffer.position(others) - new.buffer.position(new.index)
        if len(others) > 1 and _differs(apart.substitute(narrower)):
            return None
        return WARP if self.warp is not None and self.lane is not None and self.warp in known else GROUP

    def _narrower(self, old: _Access, new: _Access) -> dict[Variable, Expr]:
        """The items' variables with the ranges that they have where the accesses happen."""
        found: dict[Variable, Expr] = {}
        for access, variables in ((old, self.others), (new, {v: v.expr for v in self.others})):
            for v, last in sorted(access.bounds, key=lambda bound: -bound[1]):
                if v in variables and last < v.hi:
                    found[as_variable(variables[v])] = var(v.name, const(last + 1))
        return found

    def _by_another_item(self, access: _Access) -> ir.Index:
        found = self._foreign.get(access)
        if found is None:
            found = self._foreign[access] = tuple([e.substitute(self.others) for e in access.index])
        return found


def _begins_with(statement: ir.Statement, barrier: ir.Barrier) -> bool:
    """Is a barrier at least as strong the first that every iteration does?"""
    first = statement.body[0] if isinstance(statement, ir.Loop) and statement.extent.lo >= 1 else None
    if not isinstance(first, ir.Barrier):
        return False
    return first.scope in (GROUP, barrier.scope) and set(barrier.memory) <= set(first.memory)


def _gathered(block: list[ir.Statement]) -> list[ir.Statement]:
    """Statements under one condition that follow each other, under it together: what was cut, and needs no barrier."""
    result: list[ir.Statement] = []
    for statement in block:
        last = result[-1] if result else None
        if isinstance(last, ir.If) and isinstance(statement, ir.If) and last.guard == statement.guard:
            computed = any(True for _ in index_accesses(last.guard))  # the first one may change what decides
            if not (computed or last.otherwise or statement.otherwise):
                result[-1] = ir.If(last.guard, last.body + statement.body)
                continue
        result.append(statement)
    return result


def _distributed(statement: ir.If) -> list[ir.Statement]:
    """The If around each statement alone, inside of loops: the same for every work-item, and now it can be cut."""
    result: list[ir.Statement] = []
    for s in statement.body:
        if isinstance(s, ir.Loop):
            inner = ir.If(statement.guard, s.body)
            result.append(ir.Loop(s.variable, s.extent, s.level, (inner,), s.name))
        elif isinstance(s, ir.If):
            if s.body:
                result.append(ir.If(statement.guard + s.guard, s.body))
            result += [ir.If(statement.guard + g, (o,)) for o in s.otherwise for g in _negated(s.guard)]
        else:
            result.append(ir.If(statement.guard, (s,)))
    result += [ir.If(g, (o,)) for o in statement.otherwise for g in _negated(statement.guard)]
    return result


def _bounds(guard: ir.Guard) -> Bounds:
    """The largest values of variables where the guard holds: 7 - x - 2 y >= 0."""
    found: set[tuple[Variable, int]] = set()
    for condition in guard:
        variables = [(m[0], c) for m, c in condition.terms if len(m) == 1 and isinstance(m[0], Variable)]
        if len(variables) == len(condition.terms) and all(v.lo == 0 and c < 0 for v, c in variables):
            found.update((v, condition.offset // -c) for v, c in variables if condition.offset >= 0)
    return frozenset(found)


def _negated(guard: ir.Guard) -> list[ir.Guard]:
    """Guards of which one holds where the guard does not, and else none: each up to the first condition that fails."""
    return [(*guard[:number], -condition - 1) for number, condition in enumerate(guard)]


def _differs(difference: Expr) -> bool:
    """Is the form never 0? So it is where a part of it lies between two multiples of what divides all the rest."""
    if difference.lo > 0 or difference.hi < 0:
        return True
    steps = {abs(coefficient) for _, coefficient in difference.terms}
    return any(_between_multiples(difference, step) for step in steps | {gcd(*steps)} if step > 1)


def _between_multiples(form: Expr, step: int) -> bool:
    rest = form
    for monomial, coefficient in form.terms:
        if coefficient % step == 0:
            rest = rest - prod([atom.expr for atom in monomial], start=const(coefficient))
    if rest.lo == float("-inf") or rest.hi == float("inf"):
        return False
    below = int(rest.lo) // step * step
    return below < rest.lo and rest.hi < below + step


def _agrees(own: Variable, other: Expr, form: Expr, others: Expr) -> bool:
    """Do two work-items have the same index where they touch the same element, one of `form`, one of `others`?

    So it is where everything else in the forms differs by multiples of more than what the indices can make up for:
    lane + 32 i and lane' + 32 j.
    """
    factor, its = form.coefficient(own), others.coefficient(as_variable(other))
    if not factor or factor != its or own.lo != 0:
        return False
    step = (form - factor * own.expr - (others - factor * other)).alignment
    return step == 0 or abs(factor) * own.hi < step


def _decoded(form: Expr) -> set[Variable]:
    """The variables whose values the form's value determines: a mixed-radix number, read from its leading digit."""
    terms = []
    for monomial, coefficient in form.terms:
        if len(monomial) != 1 or not isinstance(monomial[0], Variable) or monomial[0].lo != 0:
            return set()
        terms.append((abs(coefficient), monomial[0]))
    terms.sort(key=lambda term: -term[0])
    found: set[Variable] = set()
    for k, (coefficient, variable) in enumerate(terms):
        if sum(c * v.hi for c, v in terms[k + 1 :]) >= coefficient:
            break
        found.add(variable)
    return found
