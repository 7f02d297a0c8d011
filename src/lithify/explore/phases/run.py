"""The four phases, one after the other.

high-level program -> macro rules -> rewritten programs -> mapping -> lowered programs -> parameters -> specialised
programs; code is generated for those that a search asks for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from lithify.explore.phases import filters
from lithify.explore.phases import parameters as points
from lithify.explore.phases.anatomy import Anatomy, Lengths, anatomy, primes
from lithify.explore.phases.candidates import PhaseCandidates, Plan, derive, finish
from lithify.explore.phases.filters import Filter
from lithify.explore.phases.funnel import Funnel, Stage, reason
from lithify.explore.phases.mapping import mappings
from lithify.explore.phases.parameters import Limits
from lithify.explore.phases.pool import answers
from lithify.explore.phases.rewritten import Rewritten, enumerate_programs
from lithify.explore.phases.shape import blocked_dimensions, distance, nesting_depth
from lithify.explore.phases.sizes import Cuts
from lithify.kernel.translate import translate
from lithify.lang.depth import deeply
from lithify.lang.errors import LithifyError
from lithify.lang.term import Term, subterms
from lithify.lang.types import Type
from lithify.lowering.loops import name_loops
from lithify.lowering.work import length_of
from lithify.machine import DeviceModel

Progress = Callable[[str, int, int | None], None]
# Points that one lowered program hands on, at most: the rest of a large one is as good as these.
_POINTS_A_PROGRAM = 4_000
_SECONDS_A_PROGRAM = 5.0


@dataclass(frozen=True)
class Limit:
    """How far the phases go, where that is not as `filters` say. `seed` decides which points are left out."""

    rules: int = int(filters.RULES.limit)
    programs: int = int(filters.PROGRAMS.limit)
    mapped: int = int(filters.MAPPED.limit)
    points: int = int(filters.POINTS.limit)
    seed: int = 0


def explore(
    term: Term,
    parameters: tuple[tuple[str, Type], ...],
    model: DeviceModel,
    limit: Limit | None = None,
    progress: Progress = lambda what, done, total: None,
) -> PhaseCandidates:
    """Run the phases for a program on a device. An interrupt (KeyboardInterrupt) ends them early, with what there is.

    The same program, device and limit give the same candidates in the same order.
    """
    limit = limit or Limit()
    program, funnel = name_loops(term), Funnel()
    rewritten = _rewrite(program, funnel, limit, progress)
    planned = _plan(program, rewritten, model, funnel, limit, progress)
    found = _specialise(planned, funnel, limit)
    return PhaseCandidates(term, parameters, model, funnel, found)


@contextmanager
def _stage(funnel: Funnel, stage: Stage) -> Iterator[Stage]:
    """A stage with its time, that an interrupt ends."""
    funnel.stages.append(stage)
    start = time.perf_counter()
    try:
        yield stage
    except KeyboardInterrupt:
        funnel.interrupted = True
    stage.seconds = time.perf_counter() - start


# ---- macro rules ---------------------------------------------------------------------------------------------------


def _rewrite(program: Term, funnel: Funnel, limit: Limit, progress: Progress) -> list[Rewritten]:
    """All programs within some macro rules, then those that every filter keeps."""
    found: list[Rewritten] = []
    stage = Stage("macro rules", "high-level program", 1, "rewritten programs")

    def tell(count: int) -> None:
        progress(stage.name, count, limit.programs)

    with _stage(funnel, stage):
        for each in enumerate_programs(program, limit.rules, int(filters.REPEATED.limit), limit.programs, tell):
            found.append(each)
            stage.made = len(found)
    start = time.perf_counter()
    kept = [r for r in found if Cuts(r.moves).are_in(r.term)]
    stage.drop(str(filters.VANISHED), len(found) - len(kept))
    least = min([distance(r.term) for r in kept], default=0)
    most = max([blocked_dimensions(r.term) for r in kept], default=0)
    measures: tuple[tuple[Filter, Callable[[Term], bool]], ...] = (
        (filters.DEPTH, lambda t: nesting_depth(t) <= filters.DEPTH.limit),
        (filters.DISTANCE, lambda t: distance(t) <= least + filters.DISTANCE.limit),
        (filters.BLOCKED, lambda t: blocked_dimensions(t) >= filters.BLOCKED.limit or most < filters.BLOCKED.limit),
    )
    for named, keeps in measures:
        before = len(kept)
        kept = [r for r in kept if keeps(r.term)]
        stage.drop(str(named), before - len(kept))
    stage.seconds += time.perf_counter() - start
    return kept


# ---- mapping and parameters ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Planned:
    """A lowered program: what it takes, the points that go on, and how many each filter dropped of how many."""

    plan: Plan
    anatomy: Anatomy
    lengths: Lengths
    dropped: Mapping[str, int]
    there: int


def _plan(
    program: Term,
    rewritten: Sequence[Rewritten],
    model: DeviceModel,
    funnel: Funnel,
    limit: Limit,
    progress: Progress,
) -> list[_Planned]:
    """Every mapping of every program; dropped is what cannot be lowered or translated, with the reason."""
    stage = Stage("mapping to the machine", "rewritten programs", len(rewritten), "lowered programs")
    plans = [Plan(r.moves, mapping) for r in rewritten for mapping in mappings(r.term, model)]
    stage.made = len(plans)
    if len(plans) > limit.mapped:
        order = np.random.default_rng(limit.seed).permutation(len(plans))[: limit.mapped]
        plans = [plans[i] for i in np.sort(order)]
        stage.drop(str(replace(filters.MAPPED, limit=limit.mapped)), stage.made - limit.mapped)
    extents = {t["name"]: length_of(t.args[-1]) for t in subterms(program) if t.kind in ("map", "reduce")}
    limits = Limits.of(model)

    def serve(number: int) -> _Planned:
        return deeply(_examine, plans[number], program, extents, model, limits, limit.seed)

    found: list[tuple[int, _Planned]] = []
    with _stage(funnel, stage):
        asked = answers(serve, range(len(plans)), _SECONDS_A_PROGRAM)
        for done, (number, answer) in enumerate(asked, 1):
            progress(stage.name, done, len(plans))
            if isinstance(answer, LithifyError):
                stage.drop(reason(answer.message))
            else:
                found.append((number, answer))
    if funnel.interrupted:
        stage.drop("not looked at", stage.went_on - len(found))
    return [planned for _, planned in sorted(found, key=lambda each: each[0])]


def _examine(
    plan: Plan, program: Term, extents: Mapping[str, int], model: DeviceModel, limits: Limits, seed: int
) -> _Planned:
    """What a plan takes, its points, and whether the first of them becomes kernels. Raises LithifyError."""
    taken = anatomy(plan.cuts, extents, derive(plan, primes(plan.cuts, extents), program, model).term)
    lengths, dropped, there = points.survivors(taken, limits)
    if lengths.shape[0] > _POINTS_A_PROGRAM:
        (rows,) = points.sample([lengths.shape[0]], _POINTS_A_PROGRAM, seed)
        dropped[_SAMPLED] = lengths.shape[0] - len(rows)
        lengths = lengths[rows]
    if lengths.shape[0]:
        values = {part: int(v) for part, v in zip(plan.cuts.parts, lengths[0], strict=True)}  # the least code
        lowered = finish(derive(plan, values, program, model), model)
        parameters = sorted((t for t in subterms(program) if t.kind == "param"), key=lambda t: str(t["name"]))
        translate(lowered.term, parameters, device=model)
    return _Planned(plan, taken, lengths, dropped, there)


_SAMPLED = f"points of one program (at most {_POINTS_A_PROGRAM:,}, at random)"


def _specialise(planned: Sequence[_Planned], funnel: Funnel, limit: Limit) -> list[tuple[Plan, Anatomy, Lengths]]:
    """The points of all lowered programs that go on."""
    stage = Stage("parameters", "lowered programs", len(planned), "specialised programs")
    with _stage(funnel, stage):
        for each in planned:
            stage.made += each.there
            for why, count in each.dropped.items():
                stage.drop(why, count)
    rows = points.sample([p.lengths.shape[0] for p in planned], limit.points, limit.seed)
    stage.drop(
        str(replace(filters.POINTS, limit=limit.points)),
        sum(p.lengths.shape[0] - len(kept) for p, kept in zip(planned, rows, strict=True)),
    )
    return [(p.plan, p.anatomy, p.lengths[kept]) for p, kept in zip(planned, rows, strict=True) if len(kept)]
