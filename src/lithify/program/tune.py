"""Tuning a program: the space of its family's parameters is searched on the device, and the best becomes its record.

Later calls of the program with arguments of the same types, in any process, are lowered by what the record says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lithify.evaluate import evaluate
from lithify.explore.candidates import SpaceCandidates, valid_in
from lithify.explore.choice import near
from lithify.explore.comparison import allowed_difference
from lithify.explore.experience import experience_of
from lithify.explore.proposals import check_search
from lithify.explore.records import RECORDS, Records
from lithify.explore.search import Budget, Outcome, Progress, Timeouts, search
from lithify.explore.trial import Task
from lithify.lang.errors import LithifyError
from lithify.lang.given import kind_of, whole_number
from lithify.lang.scalars import Scalar
from lithify.lang.types import Array, Tuple, Type
from lithify.lowering.families import FAMILIES, recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Family
from lithify.machine.roofline import Bound
from lithify.program.arguments import flatten
from lithify.program.bandwidth import measured
from lithify.program.check import sample
from lithify.program.devices import device
from lithify.program.work import bound_of

if TYPE_CHECKING:
    from lithify.program.program import Program
    from lithify.program.specialise import Specialisation
    from lithify.targets.base import Target

_SEED = 20


def tune(
    program: Program,
    arguments: Sequence[Any],
    *,
    sizes: Mapping[str, int] | None = None,
    budget: str | Budget = "30s",
    search_by: str = "model",
    seed: int = 0,
    records: Records = RECORDS,
    families: tuple[Family, ...] = FAMILIES,
    timeouts: Timeouts | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Search the parameters of a program for arguments like these (arrays, numbers, or types: then values are random).

    Raises LithifyError where the program belongs to no family that has parameters on the device.
    """
    limit = budget if isinstance(budget, Budget) else Budget.parse(budget)
    check_search(search_by)
    if (whole_number(seed) or 0) < 0 or whole_number(seed) is None:
        raise LithifyError(f"seed is a whole number of 0 or more, {kind_of(seed)} is given")
    if on_progress is not None and not callable(on_progress):
        raise LithifyError(f"on_progress is a function of a Progress, {kind_of(on_progress)} is given")
    start = time.monotonic()  # to find the exact results takes time, too
    specialisation = program.for_these_sizes().specialise(*arguments, sizes=sizes)
    candidates = candidates_of(specialisation, families)
    near_keys = [
        str(parameters)
        for record in near(candidates.problem, candidates.model.fingerprint, records)
        if (parameters := valid_in(candidates.space, record.parameters)) is not None
    ]
    return search(
        candidates,
        specialisation.device.target,
        task_of(specialisation, arguments),
        candidates.problem,
        limit,
        search=search_by,
        seed=seed,
        near=near_keys,
        experience=experience_of(candidates.family, candidates.problem, candidates.model, records),
        bound_seconds=bound.seconds if (bound := bound_on(specialisation)) else None,
        records=records,
        timeouts=timeouts,
        on_progress=on_progress,
        start=start,
    )


def candidates_of(specialisation: Specialisation, families: tuple[Family, ...] = FAMILIES) -> SpaceCandidates:
    """The space of a program's parameters. Raises LithifyError where it has none."""
    elaborated, model = specialisation.elaborated, specialisation.device.model
    term = name_loops(elaborated.term)
    found = recognise(term, families)
    if found is None:
        known = ", ".join(family.name for family in families) or "none"
        raise LithifyError(
            f"{specialisation.source.name} is of no family of programs that is tuned",
            hint=f"those that are: {known}; `lithify explore` searches the rewritings of any program",
        )
    family, problem = found
    space = family.space(problem, model)
    if space is None:
        raise LithifyError(f"there is nothing to tune for `{problem}` on {specialisation.device}: it has one lowering")
    return SpaceCandidates(term, tuple(elaborated.parameters), model, family, problem, space)


def task_of(specialisation: Specialisation, arguments: Sequence[Any]) -> Task:
    """What candidates are run on: copies of the arguments, or random values, and exact results."""
    elaborated = specialisation.elaborated
    random = np.random.default_rng(_SEED)
    types = [type_ for _, type_ in elaborated.parameters]
    values = [
        centred(type_, random) if isinstance(given, str | Type) else given
        for given, type_ in zip(arguments, types, strict=True)
    ]
    inputs = dict(zip([name for name, _ in elaborated.parameters], values, strict=True))
    expected = [np.asarray(leaf) for leaf in flatten([evaluate(elaborated.term, inputs)])]
    elements = max(1, sum(leaf.size for leaf in expected))
    operations = {name: count / elements for name, count in specialisation.work.operations.items()}
    return Task(
        partial(open_target, specialisation.device.name),
        tuple(flatten(values)),
        tuple(expected),
        tuple([allowed_difference(scalar, operations) for scalar in _scalars(elaborated.type)]),
    )


def centred(type_: Type, random: np.random.Generator) -> Any:
    """Random values of a type; arrays of floats between -1 and 1, so that sums are small beside what is summed, and
    one term too many or too few is far more than rounding.
    """
    value = sample(type_, random)
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind not in "iub":
        return (value * 2 - 1).astype(value.dtype)
    return value


def bound_on(specialisation: Specialisation) -> Bound | None:
    """The bound by the roofline of the measured device; None where the machine's peaks are not known."""
    try:
        lowered = specialisation.lowered.term
    except LithifyError:  # a search goes on without a default
        lowered = specialisation.elaborated.term
    model = measured(specialisation.device).model
    try:
        return bound_of(specialisation.work, lowered, model)
    except LookupError:
        return None


def open_target(name: str) -> Target:
    """The target of a device, in the process that measures."""
    return device(name).target


def _scalars(type_: Type) -> list[Scalar]:
    while isinstance(type_, Array):
        type_ = type_.element
    if isinstance(type_, Tuple):
        return [scalar for item in type_.items for scalar in _scalars(item)]
    assert isinstance(type_, Scalar)
    return [type_]
