"""`lithify tune`: search the parameters of a program on a device, with live progress, and keep the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lithify.cli.console import err, note, print_rows, working
from lithify.cli.inputs import read_sizes, read_types
from lithify.cli.main import INTERRUPTED
from lithify.cli.programs import find_program

if TYPE_CHECKING:
    from lithify.explore.search import Outcome, Progress
    from lithify.machine.roofline import Bound
    from lithify.program.work import Work

_MOST_REASONS = 6
_SILENCE = 15.0  # seconds without a new best after which progress is said where there is no terminal


def tune_program(
    reference: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    device: str | None,
    budget: str,
    search: str,
    seed: int,
    fresh: bool,
) -> int:
    """Search, and print what was found; the exit code."""
    from lithify.explore.records import RECORDS
    from lithify.explore.search import Budget
    from lithify.program.tune import bound_on, candidates_of, tune

    limit = Budget.parse(budget)
    program = find_program(reference, device=device)
    fixed = read_sizes(sizes)
    given = read_types(program, arguments, fixed, seed)
    specialisation = program.specialise(*given, sizes=fixed)
    with working(f"looking at {program.name}"):
        candidates = candidates_of(specialisation)
    if fresh:
        RECORDS.forget(candidates.problem.line, candidates.model.fingerprint)
    with progressing(f"tuning for {program.device}") as show:
        outcome = tune(program, given, sizes=fixed, budget=limit, search_by=search, seed=seed, on_progress=show)
    print_outcome(outcome, str(program.device), specialisation.work, bound_on(specialisation))
    note(f"records: {RECORDS.path or 'switched off, LITHIFY_RECORDS is empty'}")
    return INTERRUPTED if outcome.interrupted else 0


# ---- progress --------------------------------------------------------------------------------------------------------


@contextmanager
def progressing(title: str) -> Iterator[Callable[[Progress], None]]:
    """What takes the progress of a search and shows it: a live line on a terminal, else a line now and then."""
    console = err()
    if not console.is_terminal:
        yield Rarely(title, note)
        return
    from rich.live import Live
    from rich.text import Text

    with Live(Text(f"{title}: filtering"), console=console, refresh_per_second=8, transient=True) as live:
        yield lambda progress: live.update(Text(f"{title}: {_line(progress)}", overflow="ellipsis"))


class Rarely:
    """Says the progress of a search in a line for each new best, and where there is none for a while."""

    def __init__(self, title: str, say: Callable[[str], None]) -> None:
        self._title, self._say = title, say
        self._best: str | None = None
        self._phase, self._said = "", 0.0

    def __call__(self, progress: Progress) -> None:
        better = progress.best is not None and progress.best != self._best
        looking = progress.phase == "filter" != self._phase
        if better or looking or progress.elapsed >= self._said + _SILENCE:
            self._best, self._phase, self._said = progress.best or self._best, progress.phase, progress.elapsed
            self._say(f"{self._title}: {_line(progress)}")


def _line(progress: Progress) -> str:
    """Phase, best so far, measured / total, time left."""
    from lithify.program.explain import duration

    if progress.phase == "filter":
        return f"{progress.total} candidates so far, {progress.elapsed:.0f} s"
    parts = [f"{progress.phase} {progress.measured}/{progress.total}"]
    if progress.failed:
        parts.append(f"{progress.failed} without a right result")
    if progress.best_seconds is not None:
        parts.append(f"best {duration(progress.best_seconds)} by {progress.best}")
    parts.append(f"{progress.elapsed:.0f} s")
    if progress.left is not None:
        parts.append(f"{progress.left:.0f} s left")
    return ", ".join(parts)


# ---- results ---------------------------------------------------------------------------------------------------------


def print_outcome(outcome: Outcome, device: str, work: Work, bound: Bound | None) -> None:
    """What a search found, and what it left out; `bound` of the work on the device, where it is known."""
    from lithify.program.explain import duration, why_above

    rows = [
        ("problem", outcome.problem.line),
        ("device", device),
        ("candidates", _candidates(outcome)),
        *[("  rejected", f"{count}: {reason}") for reason, count in list(outcome.rejected.items())[:_MOST_REASONS]],
        ("measured", _measured(outcome)),
        *[("  not right", text) for text in _failures(outcome)],
    ]
    record = outcome.record
    if record is None:
        rows.append(("best", "no candidate gave a right result"))
    else:
        operations = sum(work.operations.values())
        rows += [
            ("best", record.parameters),
            ("time", f"{duration(record.seconds)} ({duration(record.low)} .. {duration(record.high)}), "
                     f"{operations / record.seconds / 1e9:.4g} G operations/s"),
        ]  # fmt: skip
        if record.default_seconds is not None:
            rows.append(("default", f"{duration(record.default_seconds)}, {record.gain:.3g} times as long"))
        if record.bound_seconds is not None:
            share = record.bound_seconds / record.seconds
            rows.append(("share of the bound", f"{share:.0%}{why_above(share, bound.resource if bound else None)}"))
    print_rows(rows)


def _candidates(outcome: Outcome) -> str:
    if outcome.looked is None:
        return f"{outcome.valid} of {outcome.total}"
    return f"{outcome.valid} of {outcome.looked} that there was time to look at, of {outcome.total} in all"


def _measured(outcome: Outcome) -> str:
    count = len(outcome.measurements)
    earlier = f", {outcome.resumed} of them by earlier searches" if outcome.resumed else ""
    interrupted = ", interrupted: the same command goes on" if outcome.interrupted else ""
    ended = ", the budget ended before anything but the default: give more" if outcome.only_default else ""
    return f"{count} in {outcome.seconds:.1f} s{earlier}{interrupted}{ended}"


def _failures(outcome: Outcome) -> list[str]:
    """Those that gave no right result, by how they ended, with the first example of each."""
    found: dict[str, list[str]] = {}
    for m in outcome.measurements:
        if m.state != "right":
            found.setdefault(m.state, []).append(f"{m.candidate}: {m.detail.splitlines()[0] if m.detail else ''}")
    return [f"{len(examples)} {state}, such as {examples[0]}" for state, examples in found.items()]
