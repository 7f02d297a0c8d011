"""`lithify explore`: the rewritings of a program, phase by phase, and the search for the fastest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lithify.cli.console import err, note, out
from lithify.cli.inputs import read_sizes, read_types
from lithify.cli.main import INTERRUPTED
from lithify.cli.programs import find_program
from lithify.cli.tune import print_outcome, progressing

if TYPE_CHECKING:
    from lithify.explore.phases import PhaseCandidates

_EVERY = 1000  # programs between two lines where there is no terminal


def explore_program(
    reference: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    device: str | None,
    budget: str,
    search: str,
    seed: int,
    rules: int | None,
    fresh: bool,
    enumerate_only: bool,
) -> int:
    """Run the phases, print the funnel, search; the exit code."""
    from dataclasses import replace

    from lithify.explore.phases import Limit
    from lithify.explore.phases import explore as run_phases
    from lithify.explore.proposals import check_search
    from lithify.explore.records import RECORDS
    from lithify.explore.search import Budget
    from lithify.program.explore import explore
    from lithify.program.explored import problem_of
    from lithify.program.tune import bound_on

    spent = Budget.parse(budget)
    check_search(search)
    limit = Limit(seed=seed) if rules is None else replace(Limit(seed=seed), rules=rules)
    program = find_program(reference, device=device)
    fixed = read_sizes(sizes)
    given = read_types(program, arguments, fixed, seed)
    specialisation = program.specialise(*given, sizes=fixed)
    elaborated = specialisation.elaborated
    if enumerate_only:
        with _phases() as on_phase:
            found = run_phases(
                elaborated.term, tuple(elaborated.parameters), specialisation.device.model, limit, on_phase
            )
        out().print(str(found.funnel))
        return INTERRUPTED if found.funnel.interrupted else 0
    if fresh:
        RECORDS.forget(problem_of(specialisation).line, specialisation.device.model.fingerprint)
    with _phases() as on_phase, progressing(f"exploring for {program.device}") as on_progress:
        explored = explore(
            program, given, sizes=fixed, budget=spent, search_by=search, seed=seed, limit=limit,
            on_phase=on_phase, on_progress=on_progress, on_funnel=_print_funnel,
        )  # fmt: skip
    print_outcome(explored.outcome, str(program.device), specialisation.work, bound_on(specialisation))
    interrupted = explored.outcome.interrupted or explored.candidates.funnel.interrupted
    return INTERRUPTED if interrupted else 0


def _print_funnel(candidates: PhaseCandidates) -> None:
    out().print(str(candidates.funnel))


@contextmanager
def _phases() -> Iterator[Callable[[str, int, int | None], None]]:
    """What takes the progress of the phases and shows it: a live line on a terminal, else a line now and then."""
    console = err()
    if not console.is_terminal:

        def say(what: str, done: int, total: int | None) -> None:
            if done % _EVERY == 0:
                note(f"{what}: {done}" + (f" of at most {total}" if total else ""))

        yield say
        return
    with console.status("enumerating") as status:
        yield lambda what, done, total: status.update(f"{what}: {done}" + (f" of at most {total}" if total else ""))
