"""Asynchronous copies in flight: from the statement that starts them to the wait that covers them.

A copy may read its source and write its target at any moment in between. So any access to the target, and any write to
the source, is an error until then. Where checks are off, each copy lands at once or only at its wait, by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lithify.kernel.evaluator.active import Integers
from lithify.kernel.evaluator.memory import Storage
from lithify.kernel.evaluator.races import READ, WRITE, Access, Event


@dataclass(slots=True, eq=False)
class Copy:
    """One execution of a copy: by entry, the target element, the value, the source element (-1: none, a fill)."""

    access: Access
    rows: Integers  # entries of the access
    threads: Integers
    groups: Integers  # the commit group that the copy belongs to, counted by its thread
    target: Storage
    elements: Integers
    source: Storage
    origins: Integers
    values: NDArray[Any]
    late: bool

    def start(self) -> None:
        """Mark the elements; a copy that lands at once writes now."""
        np.add.at(self.target.in_flight()[0], self.elements, 1)
        np.add.at(self.source.in_flight()[1], self.origins[self.origins >= 0], 1)
        if not self.late:
            self._land(slice(None))

    def finish(self, done: NDArray[np.bool_]) -> Copy | None:
        """End the copies of some entries; what is left of it, or None."""
        np.subtract.at(self.target.in_flight()[0], self.elements[done], 1)
        ended = self.origins[done]
        np.subtract.at(self.source.in_flight()[1], ended[ended >= 0], 1)
        if self.late:
            self._land(done)
        if done.all():
            return None
        kept = ~done
        return Copy(self.access, self.rows[kept], self.threads[kept], self.groups[kept], self.target,
                    self.elements[kept], self.source, self.origins[kept], self.values[kept], self.late)  # fmt: skip

    def _land(self, which: Any) -> None:
        values, origins = self.values[which].copy(), self.origins[which]
        read = origins >= 0
        values[read] = self.source.data[origins[read]]
        self.target.data[self.elements[which]] = values
        self.target.valid[self.elements[which]] = True

    def events(self) -> list[tuple[Storage, Event]]:
        """What it may do at any moment, for the interval that begins."""
        read = self.origins >= 0
        return [
            (self.target, Event(self.elements, WRITE, self.access, self.rows)),
            (self.source, Event(self.origins[read], READ, self.access, self.rows[read])),
        ]


class InFlight:
    """The copies of the threads from `first` on, and how many groups each thread has committed."""

    def __init__(self, first: int, threads: int) -> None:
        self.first = first
        self.committed = np.zeros(threads, np.int64)
        self.copies: list[Copy] = []

    def group(self, threads: Integers) -> Integers:
        """The commit group that the next copy of each thread belongs to."""
        return self.committed[threads - self.first]

    def start(self, copy: Copy) -> None:
        """Begin a copy."""
        copy.start()
        self.copies.append(copy)

    def commit(self, threads: Integers) -> None:
        """End the current group of each thread."""
        self.committed[threads - self.first] += 1

    def wait(self, threads: Integers, pending: int) -> None:
        """Finish all but the last `pending` committed groups of each thread."""
        limit = np.full(len(self.committed), -1)
        limit[threads - self.first] = self.committed[threads - self.first] - pending
        left = []
        for copy in self.copies:
            done = copy.groups < limit[copy.threads - self.first]
            rest = copy.finish(done) if done.any() else copy
            if rest is not None:
                left.append(rest)
        self.copies = left
