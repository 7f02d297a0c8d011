"""The search: candidates are filtered, proposed, built, validated, measured and remembered until the budget is spent.

One process measures at a time and nothing else runs meanwhile; builders work, several at once, in between. A candidate
that fails, crashes or hangs is recorded with the reason, and the search goes on. Every measurement is committed when it
is made: a search that was interrupted goes on where it was, also as to its budget. At the end the best few and the
default, which is always measured, are timed side by side, and the fastest of them becomes the record.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from lithify.explore.building import Builders, Built
from lithify.explore.candidates import Candidates, Effort, Filtered
from lithify.explore.interrupts import Interrupts
from lithify.explore.proposals import Experience, check_search, proposer
from lithify.explore.record import Measured, Record, now
from lithify.explore.records import RECORDS, Records
from lithify.explore.trial import WARM, Duel, Load, Run, Task, Timed, Trial
from lithify.explore.worker import Worker, WorkerCrashed, WorkerFailed, WorkerTimedOut
from lithify.lang.errors import LithifyError
from lithify.lang.given import text_given
from lithify.lowering.tuning import Problem
from lithify.targets.base import Target
from lithify.targets.cache import package_digest

_FINALISTS = 4  # beside the default
_DUEL_SECONDS, _LEAST_ROUNDS, _MOST_ROUNDS = 1.0, 3, 20
# Of the seconds that are left, the part in which candidates are looked for; how many keys of a space can be gone
# through in it for each second that is left, and how many are drawn at random where there are more.
_LOOKING, _WHOLE, _SAMPLE, _LEAST_SAMPLE = 0.25, 60_000, 10_000, 2_000
_REPORTED = 1.0  # seconds between two reports of looking
_RUN_SECONDS = 0.06  # of running each candidate that is not far behind
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")


@dataclass(frozen=True)
class Budget:
    """When to stop: after some seconds, or a number of measurements, or (neither) when all candidates are measured.

    What an interrupted search spent before counts.
    """

    seconds: float | None = None
    measurements: int | None = None

    @staticmethod
    def parse(text: str) -> Budget:
        """`60s`, `2m`, `1h`; a plain number counts measurements; `all`. Raises LithifyError."""
        text = text_given(text, "a budget", "write 60s, 2m, 1h, a number of measurements, or all")
        if text.strip() == "all":
            return Budget()
        match = _BUDGET.fullmatch(text.strip())
        if match is None or not float(match[1]) or (match[2] is None and "." in match[1]):
            raise LithifyError(f"`{text}` is no budget", hint="write 60s, 2m, 1h, a number of measurements, or all")
        if match[2] is None:
            return Budget(measurements=int(match[1]))
        return Budget(seconds=float(match[1]) * _UNITS[match[2]])


@dataclass(frozen=True)
class Timeouts:
    """Seconds after which a candidate is given up: while it is built, and while it runs.

    `start` is for the process that measures to open the device.
    """

    build: float = 20.0
    run: float = 10.0
    start: float = 60.0


@dataclass(frozen=True)
class Progress:
    """Where a search stands. `phase` is filter, search or final; `best` is a key, `total` counts valid candidates."""

    phase: str
    measured: int
    failed: int
    total: int
    best: str | None
    best_seconds: float | None
    default_seconds: float | None
    elapsed: float
    left: float | None  # seconds, as far as it can be said


@dataclass(frozen=True)
class Outcome:
    """What a search found: `record` is the best (None where no candidate was right), `measurements` are all in order.

    `rejected` counts by reason what was filtered before anything was built. Of a space that is larger than there was
    time for, `valid` and `rejected` are of the `looked` keys that were looked at; None: all were.
    """

    problem: Problem
    total: int
    valid: int
    rejected: Mapping[str, int]
    measurements: tuple[Measured, ...] = field(repr=False)
    record: Record | None
    seconds: float
    resumed: int
    interrupted: bool
    looked: int | None = None

    @property
    def only_default(self) -> bool:
        """Whether the budget ended before anything but the default was measured, though there is more."""
        return len(self.measurements) == 1 < self.valid and not self.interrupted


def search(
    candidates: Candidates,
    target: Target,
    task: Task,
    problem: Problem,
    budget: Budget,
    *,
    search: str = "model",
    seed: int = 0,
    near: Sequence[str] = (),
    experience: Sequence[Experience] = (),
    bound_seconds: float | None = None,
    records: Records = RECORDS,
    timeouts: Timeouts | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    start: float | None = None,
) -> Outcome:
    """Search the candidates for the one that runs fastest, and keep it as the problem's record.

    `target` builds (it touches no device), `task` says what candidates are run on and what has to come out; `near` are
    keys to try early, `experience` what other problems have shown. The budget counts from `start` (a time of
    `time.monotonic`), or from the call. An interrupt (Ctrl-C) ends the search as a spent budget does, and the outcome
    says so. Raises LithifyError where the device cannot be opened, there is no such search, or what is found could not
    be kept.
    """
    start = time.monotonic() if start is None else start
    records.check_writable()
    run = _Search(candidates, target, task, problem, budget, records, timeouts or Timeouts(), on_progress, start)
    check_search(search)
    found = run.look(near, seed, in_order=search == "exhaustive")
    proposals = proposer(search, found.keys, candidates.features, seed, near, experience)
    with Interrupts() as interrupts:
        try:
            run.open()
            while not interrupts.seen and (keys := run.taken(proposals.propose(run.history))):
                run.measure(keys)
        except KeyboardInterrupt:
            interrupts.seen = True
    interrupted = interrupts.seen
    try:
        record = run.decide(bound_seconds, quick=interrupted)
    except KeyboardInterrupt:
        interrupted = True
        record = run.decide(bound_seconds, quick=True)
    finally:
        run.close()
    return Outcome(problem, len(candidates), len(found.keys), found.rejected, tuple(run.measurements), record,
                   time.monotonic() - start, run.resumed, interrupted,
                   None if found.whole else found.looked)  # fmt: skip


class _Search:
    """The state of a search: what was measured, and the processes that build and measure."""

    def __init__(
        self,
        candidates: Candidates,
        target: Target,
        task: Task,
        problem: Problem,
        budget: Budget,
        records: Records,
        timeouts: Timeouts,
        on_progress: Callable[[Progress], None] | None,
        start: float,
    ) -> None:
        self.candidates, self.task, self.problem, self.budget = candidates, task, problem, budget
        self.records, self.timeouts, self._on_progress = records, timeouts, on_progress
        self._valid: tuple[str, ...] = ()
        self._start, self._last = start, start
        self.device = candidates.model.fingerprint
        self.build_name = f"{package_digest()} {target.fingerprint()}"
        self.measurements = records.measurements(problem.line, self.device, self.build_name)
        self.resumed = len(self.measurements)
        self._spent = sum(m.cost for m in self.measurements)
        self.history: dict[str, float | None] = {m.candidate: m.seconds for m in self.measurements}
        self._codes: dict[str, Built] = {}
        self._builders = Builders(candidates, target, timeouts.build)
        self._runner: Worker | None = None
        self._opened = False

    # ---- candidates --------------------------------------------------------------------------------------------------

    def look(self, near: Sequence[str], seed: int, *, in_order: bool) -> Filtered:
        """Find the candidates: all of them, or where there is no time for that, what a part of it allows."""
        seconds = self.budget.seconds
        if seconds is None:
            effort = Effort(go_on=self._looking(inf))
        else:
            left = max(0.0, seconds - self.elapsed())
            until, sample = time.monotonic() + _LOOKING * left, max(_LEAST_SAMPLE, int(left * _SAMPLE))
            effort = Effort(int(left * _WHOLE), sample, seed, in_order, self._looking(until))
        found = self.candidates.filtered(effort, [*near, *self.history])
        self._valid = found.keys
        return found

    def _looking(self, until: float) -> Callable[[int], bool]:
        """Whether there is time to look for more candidates; and says now and then how many there are."""
        reported = [time.monotonic()]

        def go_on(kept: int) -> bool:
            at = time.monotonic()
            if self._on_progress is not None and at >= reported[0] + _REPORTED:
                reported[0] = at
                self._on_progress(
                    Progress("filter", len(self.history), 0, kept, None, None, None, self.elapsed(), None)
                )
            return at < until

        return go_on

    # ---- budget ------------------------------------------------------------------------------------------------------

    def elapsed(self) -> float:
        """Seconds, those of earlier searches that this one continues included."""
        return self._spent + time.monotonic() - self._start

    def wanted(self) -> bool:
        """Whether anything is left to spend; the default is measured in any case."""
        if not self.measurements:
            return True
        if time.monotonic() >= self._until():
            return False
        return self.budget.measurements is None or len(self.measurements) < self.budget.measurements

    def _until(self) -> float:
        """When the budget of seconds is spent, but for what the end takes."""
        seconds = self.budget.seconds
        if seconds is None:
            return inf
        return self._start - self._spent + seconds - min(_DUEL_SECONDS, seconds / 4)

    def taken(self, proposals: Iterator[str]) -> list[str]:
        """The candidates to measure next, one for each builder; none where nothing is left to spend, or to propose.

        To propose takes time, too: the budget is looked at again before each.
        """
        most = self._builders.count
        if self.budget.measurements is not None:
            most = min(most, self.budget.measurements - len(self.measurements))
        found: list[str] = []
        while len(found) < most and self.wanted():
            key = next(proposals, None)
            if key is None:
                break
            found.append(key)
        return found if self.wanted() else []

    # ---- measuring ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start the process that measures."""
        self._report("search")
        if self.wanted():
            self._launch()

    def measure(self, keys: Sequence[str]) -> None:
        """Build some candidates at once, then measure one after the other."""
        built = list(self._builders.build(keys, self._until(), None if self.measurements else self._valid[0]))
        built.sort(key=lambda each: keys.index(each.key))
        for number, each in enumerate(built):
            if number and not self.wanted():
                return
            measured = self._measure(each)
            at = time.monotonic()
            measured = Measured(each.key, measured.state, measured.seconds, measured.samples, measured.detail,
                                at - self._last)  # fmt: skip
            self._last = at
            self.records.add_measurement(self.problem.line, self.device, self.build_name, measured)
            self.measurements.append(measured)
            self.history[each.key] = measured.seconds
            self._keep(each)
            self._report("search")

    def _measure(self, built: Built) -> Measured:
        if built.data is None:
            return Measured(built.key, built.state, detail=built.detail)
        try:
            runner = self._running()
            runner.ask(Load((built.data,)), self.timeouts.build)
            timed: Timed = runner.ask(Run(self._best_seconds(), _RUN_SECONDS), self.timeouts.run)
        except WorkerFailed as error:
            return Measured(built.key, "failed", detail=error.message)
        except WorkerCrashed as error:
            self._runner = None
            return Measured(built.key, "crashed", detail=error.message)
        except WorkerTimedOut as error:
            self._runner = None
            return Measured(built.key, "timeout", detail=error.message)
        if timed.problem:
            return Measured(built.key, "wrong", detail=timed.problem)
        return Measured(built.key, "right", statistics.median(timed.samples), timed.samples)

    def _launch(self) -> None:
        self._runner, self._opened = Worker.launched(Trial, self.task), False
        self._runner.send(Load(()))  # answered when the device is open

    def _running(self) -> Worker:
        """The process that measures; a new one where the last is gone."""
        if self._runner is None:
            self._launch()
        assert self._runner is not None
        if not self._opened:
            try:
                self._runner.receive(self.timeouts.start)
            except (WorkerFailed, WorkerCrashed, WorkerTimedOut) as error:
                raise LithifyError(f"the process that measures cannot start: {error.message}") from error
            self._opened = True
        return self._runner

    def _keep(self, built: Built) -> None:
        """Keep the codes of those that are best so far, for the end."""
        self._codes[built.key] = built
        for key in list(self._codes):
            if key not in self._finalists():
                del self._codes[key]

    # ---- the end -----------------------------------------------------------------------------------------------------

    def decide(self, bound_seconds: float | None, *, quick: bool) -> Record | None:
        """Time the best and the default side by side (unless `quick`), and keep the fastest as the record."""
        existing = self.records.find(self.problem.line, self.device)
        if existing is not None and len(self.measurements) == self.resumed:
            return existing
        finalists = self._finalists()
        if not finalists:
            return None
        samples = {m.candidate: m.samples for m in self.measurements if m.candidate in finalists}
        if not quick:
            samples |= self._duel(finalists)
        best = min(finalists, key=lambda key: statistics.median(samples[key]))
        record = self._record(best, samples, bound_seconds)
        self.records.put(record)
        return record

    def _finalists(self) -> list[str]:
        """The default, where it is right, and the best others."""
        right = sorted((seconds, key) for key, seconds in self.history.items() if seconds is not None)
        default = self._valid[0]
        first = [default] if self.history.get(default) is not None else []
        return first + [key for _, key in right if key != default][:_FINALISTS]

    def _duel(self, finalists: Sequence[str]) -> dict[str, tuple[float, ...]]:
        self._report("final")
        missing = [key for key in finalists if key not in self._codes]
        for each in self._builders.build(missing):
            self._codes[each.key] = each
        ready = [(key, data) for key in finalists if (data := self._codes[key].data) is not None]
        once = sum(self.history[key] or 0.0 for key, _ in ready)
        rounds = max(_LEAST_ROUNDS, min(_MOST_ROUNDS, int(_DUEL_SECONDS / (3 * once or 1.0))))
        try:
            runner = self._running()
            runner.ask(Load(tuple([data for _, data in ready])), self.timeouts.build)
            found = runner.ask(Duel(rounds), self.timeouts.run + 3 * rounds * once)
        except (WorkerFailed, WorkerCrashed, WorkerTimedOut):  # each of them ran before: what was measured then counts
            return {}
        return dict(zip([key for key, _ in ready], found, strict=True))

    def _record(self, best: str, samples: Mapping[str, tuple[float, ...]], bound_seconds: float | None) -> Record:
        from lithify.version import __version__

        default = samples.get(self._valid[0])
        times = samples[best]
        low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
        return Record(
            problem=self.problem.line,
            device=self.device,
            family=self.problem.family,
            parameters=best,
            seconds=middle,
            low=low,
            high=high,
            default_seconds=None if default is None else statistics.median(default),
            bound_seconds=bound_seconds,
            measured=len(self.measurements),
            state=WARM,
            sizes=dict(self.problem.sizes),
            scalars=dict(self.problem.scalars),
            versions={"lithify": __version__, "target": self.build_name.partition(" ")[2]},
            date=now(),
            derivation=self._codes[best].derivation if best in self._codes else "",
        )

    def close(self) -> None:
        """End the processes."""
        self._builders.close()
        if self._runner is not None:
            self._runner.close()

    # ---- progress ----------------------------------------------------------------------------------------------------

    def _best_seconds(self) -> float | None:
        return min((s for s in self.history.values() if s is not None), default=None)

    def _report(self, phase: str) -> None:
        if self._on_progress is None:
            return
        right = [(s, key) for key, s in self.history.items() if s is not None]
        seconds, best = min(right, default=(None, None))
        self._on_progress(
            Progress(
                phase,
                len(self.history),
                len(self.history) - len(right),
                len(self._valid),
                best,
                seconds,
                self.history.get(self._valid[0]),
                self.elapsed(),
                self._left(),
            )
        )

    def _left(self) -> float | None:
        elapsed, done = self.elapsed(), len(self.measurements)
        if self.budget.seconds is not None:
            return max(0.0, self.budget.seconds - elapsed)
        total = min(len(self._valid), self.budget.measurements or len(self._valid))
        return elapsed / done * max(0, total - done) if done else None
