"""What the measurements of other problems of a family say about a new one on the same device."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np

from lithify.explore.candidates import features_of, valid_in
from lithify.explore.proposals import Experience
from lithify.explore.records import RECORDS, Record, Records
from lithify.lowering.tuning import Family, Problem, Space
from lithify.machine import DeviceModel

_MOST_PROBLEMS = 10


def experience_of(
    family: Family, problem: Problem, model: DeviceModel, records: Records = RECORDS
) -> tuple[Experience, ...]:
    """What was measured of other problems of the family with the same scalars, those of the nearest sizes."""
    alike = [
        (_apart(problem, record), record.problem, record)
        for record in records.of_family(family.name, model.fingerprint)
        if record.problem != problem.line
        and dict(record.scalars) == dict(problem.scalars)
        and record.sizes.keys() == problem.sizes.keys()
    ]
    found = (_of(family, record, model, records) for _, _, record in sorted(alike, key=lambda entry: entry[:2]))
    return tuple([each for each, _ in zip(filter(None, found), range(_MOST_PROBLEMS), strict=False)])


def _of(family: Family, record: Record, model: DeviceModel, records: Records) -> Experience | None:
    """What was measured of a record's problem; None where nothing of it is valid any more."""
    problem = Problem(record.family, record.problem, record.sizes, record.scalars)
    space = family.space(problem, model)
    if space is None:
        return None
    times = {
        str(parameters): seconds
        for text, seconds in _times(record, space, records)
        if (parameters := valid_in(space, text)) is not None
    }
    if not times:
        return None
    keys, default = list(times), str(space.default)
    place = keys.index(default) if default in times else None
    return Experience(features_of(family, problem, model, space, keys), np.log([times[key] for key in keys]), place)


def _times(record: Record, space: Space, records: Records) -> Iterator[tuple[str, float]]:
    for measured in records.measurements(record.problem, record.device):
        if measured.seconds is not None:
            yield measured.candidate, measured.seconds
    if record.default_seconds is not None:
        yield str(space.default), record.default_seconds
    yield record.parameters, record.seconds


def _apart(problem: Problem, record: Record) -> float:
    pairs = [(size, record.sizes[name]) for name, size in problem.sizes.items()]
    return sum(abs(log2(max(a, 1) / max(b, 1))) for a, b in pairs)
