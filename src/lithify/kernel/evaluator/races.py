"""Accesses that nothing orders: recorded between two synchronisations, and compared at the second.

Between two barriers the work-items of a group are unordered, groups are unordered from the start of a kernel to its
end, and so are the iterations of a loop over threads. Such a stretch is an *interval*. Two accesses to one element in
an interval by different threads, one of them a plain write (or one atomic, the other not), are a race in whatever order
the evaluator ran them. At the end of an interval its accesses are handed to the enclosing one, where they count as
those of the group (or of the outer iteration).

Barriers of a warp inside an interval order its own work-items only: each access carries the number of warp barriers
that its warp had passed. That is exact because scopes nest: a chain of barriers orders two accesses only if its largest
scope contains both threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lithify.kernel import ir
from lithify.kernel.evaluator.active import Active, Integers

READ, WRITE, ATOMIC = 1, 2, 4
_WORDS = {READ: "read", WRITE: "written", ATOMIC: "updated atomically"}
LARGEST_LOG = 1 << 20  # accesses kept before equal ones are merged


@dataclass(slots=True, eq=False)
class Access:
    """One execution of a statement: who, and (for barriers of warps) each entry's warp and how many it has passed."""

    statement: ir.Statement
    active: Active
    warps: Integers | None = None
    passed: Integers | None = None

    def of(self, depth: int, others: Integers) -> Access:
        """The same, by others: owner others[k] at the depth instead of k."""
        active = self.active
        owners = (*active.owners[:depth], others[active.owners[depth]], *active.owners[depth + 1 :])
        return Access(
            self.statement, Active(active.values, owners, active.count, active.lanes), self.warps, self.passed
        )


@dataclass(slots=True, eq=False)
class Event:
    """Elements touched by an access; `rows` are the entries that touched them."""

    elements: Integers
    kind: int
    access: Access
    rows: Integers

    def select(self, chosen: NDArray[Any]) -> Event:
        """Some of the elements."""
        return Event(self.elements[chosen], self.kind, self.access, self.rows[chosen])

    def owners(self, depth: int) -> Integers:
        """Who touched each element, at a depth."""
        return self.access.active.owners[depth][self.rows]


@dataclass(slots=True, eq=False)
class Race:
    """Two unordered accesses to one element."""

    element: int
    first: tuple[Event, int]
    second: tuple[Event, int]

    @property
    def words(self) -> tuple[str, str]:
        """What the two did."""
        return _WORDS[self.first[0].kind], _WORDS[self.second[0].kind]


@dataclass(slots=True, eq=False)
class Log:
    """The accesses to one buffer in the current interval of a depth."""

    depth: int
    events: list[Event] = field(default_factory=list)
    size: int = 0
    by_warp: bool = False  # a barrier of warps was passed in this interval

    def add(self, event: Event) -> None:
        """Record accesses."""
        self.events.append(event)
        self.size += len(event.elements)

    def race(self) -> Race | None:
        """A race in the interval, or None."""
        if not any(e.kind != READ for e in self.events):
            return None
        elements = np.concatenate([e.elements for e in self.events])
        threads = np.concatenate([e.owners(self.depth) for e in self.events])
        kinds = np.repeat([e.kind for e in self.events], [len(e.elements) for e in self.events])
        if not self.by_warp:
            found = _conflict(elements, threads, kinds)
        else:
            warps = np.concatenate([_part(e, "warps") for e in self.events])
            passed = np.concatenate([_part(e, "passed") for e in self.events])
            found = _conflict(elements, warps, kinds)
            if found is None:
                _, rounds = np.unique(np.stack([elements, warps, passed]), axis=1, return_inverse=True)
                found = _conflict(np.ravel(rounds), threads, kinds)
        if found is None:
            return None
        starts = np.cumsum([0] + [len(e.elements) for e in self.events])
        sides = []
        for position in found:
            k = int(np.searchsorted(starts, position, side="right")) - 1
            sides.append((self.events[k], int(position - starts[k])))
        return Race(int(elements[found[0]]), sides[0], sides[1])

    def order(self, later: Integers) -> None:
        """From now on what owner k did counts as done by owner later[k]: nothing of this one's is unordered with it.

        Races among what was done before must have been looked for.
        """
        for event in self.events:
            event.access = event.access.of(self.depth, later)

    def take(self, among: Integers | None, depth: int) -> list[Event]:
        """Remove and return the events of some owners at a depth (None: all)."""
        if among is None:
            taken, self.events = self.events, []
        else:
            taken, kept = [], []
            for event in self.events:
                mine = np.isin(event.owners(depth), among)
                taken.append(event.select(mine))
                kept.append(event.select(~mine))
            self.events = [e for e in kept if len(e.elements)]
        self.size = sum(len(e.elements) for e in self.events)
        self.by_warp = self.by_warp and bool(self.events)
        return [e for e in taken if len(e.elements)]

    def merge(self) -> None:
        """Keep one of all accesses of the same kind by the same owner to the same element."""
        if self.by_warp or self.size < LARGEST_LOG:
            return
        elements = np.concatenate([e.elements for e in self.events])
        owners = np.concatenate([e.owners(self.depth) for e in self.events])
        lengths = [len(e.elements) for e in self.events]
        kinds = np.repeat([e.kind for e in self.events], lengths)
        _, kept = np.unique(np.stack([elements, owners, kinds]), axis=1, return_index=True)
        chosen = np.zeros(len(elements), bool)
        chosen[kept] = True
        parts = np.split(chosen, np.cumsum(lengths)[:-1])
        self.events = [e.select(part) for e, part in zip(self.events, parts, strict=True) if part.any()]
        self.size = len(kept)


def _part(event: Event, name: str) -> Integers:
    values = getattr(event.access, name)
    assert values is not None
    found: Integers = values[event.rows]
    return found


def _conflict(places: Integers, owners: Integers, kinds: NDArray[Any]) -> tuple[int, int] | None:
    """Positions of two accesses to one place by different owners, of kinds that may not be unordered."""
    order = np.argsort(places, kind="stable")
    at, by, what = places[order], owners[order], kinds[order]
    starts = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
    several = np.minimum.reduceat(by, starts) != np.maximum.reduceat(by, starts)
    together = np.bitwise_or.reduceat(what, starts)
    bad = several & (((together & WRITE) != 0) | (together == READ | ATOMIC))
    if not bad.any():
        return None
    start = starts[int(np.argmax(bad))]
    end = int(np.searchsorted(at, at[start], side="right"))
    segment = sorted(range(start, end), key=lambda p: (what[p] != WRITE, what[p] != READ))
    pairs = ((p, q) for p in segment for q in segment if by[p] != by[q] and (what[p] == WRITE or what[p] != what[q]))
    one, other = next(pairs)
    return int(order[one]), int(order[other])
