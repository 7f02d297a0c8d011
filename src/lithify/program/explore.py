"""Exploring a program: its rewritings are enumerated in phases, and searched on the device for the fastest.

Later calls of the program with arguments of the same types, in any process, are lowered by what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lithify.explore.phases import Limit, PhaseCandidates
from lithify.explore.phases import explore as run_phases
from lithify.explore.proposals import check_search
from lithify.explore.records import RECORDS, Records
from lithify.explore.search import Budget, Outcome, Progress, Timeouts, search
from lithify.program.explored import problem_of
from lithify.program.tune import bound_on, task_of

if TYPE_CHECKING:
    from lithify.program.program import Program


@dataclass(frozen=True)
class Explored:
    """The candidates that the phases found (`candidates.funnel` says how), and what the search among them found."""

    candidates: PhaseCandidates
    outcome: Outcome


def explore(
    program: Program,
    arguments: Sequence[Any],
    *,
    sizes: Mapping[str, int] | None = None,
    budget: str | Budget = "60s",
    search_by: str = "model",
    seed: int = 0,
    limit: Limit | None = None,
    records: Records = RECORDS,
    timeouts: Timeouts | None = None,
    on_phase: Callable[[str, int, int | None], None] = lambda what, done, total: None,
    on_progress: Callable[[Progress], None] | None = None,
    on_funnel: Callable[[PhaseCandidates], None] = lambda candidates: None,
) -> Explored:
    """Enumerate the rewritings of a program for arguments like these and search among them.

    `on_phase` hears of the phases' progress (what, done, of how many), `on_funnel` what they found, `on_progress` of
    the search. The budget is the search's alone. Raises LithifyError where the device cannot be opened.
    """
    check_search(search_by)
    specialisation = program.for_these_sizes().specialise(*arguments, sizes=sizes)
    elaborated = specialisation.elaborated
    model = specialisation.device.model
    candidates = run_phases(elaborated.term, tuple(elaborated.parameters), model, limit or Limit(seed=seed), on_phase)
    on_funnel(candidates)
    outcome = search(
        candidates,
        specialisation.device.target,
        task_of(specialisation, arguments),
        problem_of(specialisation),
        Budget.parse(budget) if isinstance(budget, str) else budget,
        search=search_by,
        seed=seed,
        bound_seconds=bound.seconds if (bound := bound_on(specialisation)) else None,
        records=records,
        timeouts=timeouts,
        on_progress=on_progress,
    )
    return Explored(candidates, outcome)
