"""Exploring a program: its rewritings are enumerated in phases, and searched on the device for the fastest.

Later calls of the program with arguments of the same types, in any process, are lowered by what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lithify.explore.phases import Limit, PhaseCandidates, is_key
from lithify.explore.phases import explore as run_phases
from lithify.explore.records import RECORDS, Record, Records
from lithify.explore.search import Budget, Outcome, Progress, Timeouts, search
from lithify.lang.digest import digest
from lithify.lang.errors import LithifyError
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Problem
from lithify.program.bandwidth import measured
from lithify.program.derivations import replay
from lithify.program.tune import bound_of, task_of

if TYPE_CHECKING:
    from lithify.program.program import Program
    from lithify.program.specialise import Specialisation

FAMILY = "rewriting"


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
    specialisation = program.for_these_sizes().specialise(*arguments, sizes=sizes)
    elaborated = specialisation.elaborated
    model = specialisation.device.model
    candidates = run_phases(elaborated.term, tuple(elaborated.parameters), model, limit or Limit(seed=seed), on_phase)
    on_funnel(candidates)
    work = specialisation.work
    outcome = search(
        candidates,
        specialisation.device.target,
        task_of(specialisation, arguments, work),
        problem_of(specialisation),
        Budget.parse(budget) if isinstance(budget, str) else budget,
        search=search_by,
        seed=seed,
        bound_seconds=bound_of(work, measured(specialisation.device)),
        records=records,
        timeouts=timeouts,
        on_progress=on_progress,
    )
    return Explored(candidates, outcome)


def problem_of(specialisation: Specialisation) -> Problem:
    """What records of a program's rewritings are kept under: its types, and a digest of what it says."""
    elaborated = specialisation.elaborated
    types = " -> ".join([*(str(t) for _, t in elaborated.parameters), str(elaborated.type)])
    line = f"{FAMILY} {specialisation.source.name} : {types} #{digest(name_loops(elaborated.term))[:10]}"
    sizes = {name: size.constant for name, size in elaborated.sizes.items() if size.constant is not None}
    return Problem(FAMILY, line, sizes, {})


def winner_of(specialisation: Specialisation, records: Records = RECORDS) -> Record | None:
    """The record of what exploring a program found, where a call is to be lowered by it; None where it is not.

    It is for exactly this program and device, faster than the default, and than what tuning found for it; and its
    derivation still leads where it led. Never raises: records that cannot be read are as good as none.
    """
    with suppress(LithifyError):
        term, device = specialisation.elaborated.term, specialisation.device.model.fingerprint
        record = records.find(problem_of(specialisation).line, device)
        if record is None or not is_key(record.parameters) or not record.derivation:
            return None
        family = recognise(name_loops(term))
        tuned = None if family is None else records.find(family[1].line, device)
        if tuned is not None and tuned.seconds <= record.seconds:
            return None
        replay(record.derivation, term)
        return record
    return None
