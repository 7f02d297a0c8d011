"""The process that measures: one candidate at a time, its results compared with the reference before its time counts.

Inputs lie where they were put once; outputs and temporaries are the trial's own and are filled with NaN (integers: with
-1) before the run whose results are compared. Times are of runs back to back on the same
buffers, the first not counted, so whatever fits into a cache is found there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lithify.explore.comparison import Array, relative_difference
from lithify.targets.base import POISON, Executable, Target
from lithify.targets.memory import aligned_empty

WARM = "warm: back to back on the same buffers, after one run that is not counted"
_LEAST_RUNS, _MOST_RUNS = 3, 50
_HOPELESS = 1.5  # times the best: not worth more than the least runs


@dataclass(frozen=True)
class Task:
    """What all candidates of a search are run on. Picklable: `target` opens the device in the process that measures.

    `arguments` are flat (the components of tuples one after another), `expected` are exact results in order,
    `tolerances` what each may differ by, relative to its largest element.
    """

    target: Callable[[], Target]
    arguments: tuple[Any, ...]
    expected: tuple[Array, ...]
    tolerances: tuple[float, ...]


@dataclass(frozen=True)
class Load:
    """Make codes ready to run; those loaded before are let go."""

    data: tuple[bytes, ...]


@dataclass(frozen=True)
class Run:
    """Validate and time what was loaded: as many runs as `seconds` hold, few where it is far behind `best`."""

    best: float | None
    seconds: float


@dataclass(frozen=True)
class Duel:
    """Time what was loaded side by side, in an order that turns, so that what disturbs disturbs all."""

    rounds: int


@dataclass(frozen=True)
class Timed:
    """The times of a candidate in seconds; `problem` says what is wrong with its results ("" if nothing)."""

    samples: tuple[float, ...]
    problem: str = ""


class Trial:
    """Answers `Load` by nothing, `Run` by `Timed`, and `Duel` by the samples of each candidate."""

    def __init__(self, task: Task) -> None:
        self.task, self.target = task, task.target()
        self.loaded: list[Executable] = []

    def __call__(self, request: Load | Run | Duel) -> Timed | list[tuple[float, ...]] | None:
        if isinstance(request, Load):
            self.loaded = []
            self.loaded = [self.target.finish(data) for data in request.data]
            return None
        if isinstance(request, Duel):
            return self.duel(request.rounds)
        (executable,) = self.loaded
        problem, once = self.validate(executable)
        return Timed((), problem) if problem else Timed(self.time(executable, once, request))

    def validate(self, executable: Executable) -> tuple[str, float]:
        """What is wrong with the results ("" if nothing), and seconds of the call, the first one."""
        outputs = [_poisoned(wanted, each.scalar) for wanted, each in
                   zip(self.task.expected, executable.interface.results, strict=True)]  # fmt: skip
        executable.poisoned = True
        start = time.perf_counter()
        executable(*self.task.arguments, out=outputs if len(outputs) > 1 else outputs[0])
        seconds = time.perf_counter() - start
        executable.poisoned = False
        for number, (got, wanted, allowed) in enumerate(
            zip(outputs, self.task.expected, self.task.tolerances, strict=True)
        ):
            difference = relative_difference(got, wanted)
            if not difference <= allowed:
                which = f"result {number + 1}" if len(outputs) > 1 else "the result"
                return f"{which} differs by {difference:.1e} of its largest element, allowed are {allowed:.1e}", seconds
        return "", seconds

    def time(self, executable: Executable, once: float, request: Run) -> tuple[float, ...]:
        """Seconds of runs, the more the shorter they are."""
        arguments = self.task.arguments
        samples = executable.time(arguments, _LEAST_RUNS if once < request.seconds else 1)
        fastest = min(samples)
        if request.best is None or fastest < _HOPELESS * request.best:
            more = min(_MOST_RUNS, int(request.seconds / max(fastest, 1e-9))) - len(samples)
            if more > 0:
                samples += executable.time(arguments, more)
        return tuple(samples)

    def duel(self, rounds: int) -> list[tuple[float, ...]]:
        """The samples of each."""
        samples: list[list[float]] = [[] for _ in self.loaded]
        for turn in range(rounds):
            for position in range(len(self.loaded)):
                which = (position + turn) % len(self.loaded)
                samples[which] += self.loaded[which].time(self.task.arguments, 2)
        return [tuple(each) for each in samples]


def _poisoned(wanted: Array, scalar: str) -> Array:
    """An output of the shape of what is expected, in its own type, filled with what is wrong."""
    from lithify.lang.scalars import SCALARS

    output = aligned_empty(wanted.shape, SCALARS[scalar].dtype)
    output.reshape(-1).view(np.uint8).fill(POISON)
    return output
