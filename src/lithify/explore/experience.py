"""What the measurements of other problems of a family say about a new one on the same device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log2

import numpy as np

from lithify.explore.candidates import features_of, valid_in
from lithify.explore.proposals import Experience
from lithify.explore.record import Record
from lithify.explore.records import RECORDS, Records
from lithify.lowering.tuning import Family, Problem, Space
from lithify.machine import DeviceModel

_MOST_PROBLEMS = 10


def experience_of(
    family: Family, problem: Problem, model: DeviceModel, records: Records = RECORDS
) -> tuple[Experience, ...]:
    """What was measured of other problems of the family with the same scalars, those of the nearest sizes."""
    others = [
        (size_distance(problem, record), record.problem, record)
        for record in _alike(family, problem.scalars, model, records)
        if record.problem != problem.line and record.sizes.keys() == problem.sizes.keys()
    ]
    return _first(family, [record for _, _, record in sorted(others, key=lambda entry: entry[:2])], model, records)


def all_experience(
    family: Family, scalars: Mapping[str, str], model: DeviceModel, records: Records = RECORDS
) -> tuple[Experience, ...]:
    """What was measured of problems of the family with some scalars: of so many as are learned from at a time."""
    found = _alike(family, scalars, model, records)
    return _first(family, sorted(found, key=lambda record: record.problem), model, records)


def _alike(family: Family, scalars: Mapping[str, str], model: DeviceModel, records: Records) -> list[Record]:
    found = records.of_family(family.name, model.fingerprint)
    return [record for record in found if dict(record.scalars) == dict(scalars)]


def _first(family: Family, found: list[Record], model: DeviceModel, records: Records) -> tuple[Experience, ...]:
    every = (_of(family, record, model, records) for record in found)
    return tuple([each for each, _ in zip(filter(None, every), range(_MOST_PROBLEMS), strict=False)])


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


def size_distance(problem: Problem, record: Record) -> float:
    """How far a record's sizes are from a problem's: the sum of |log2| of their ratios, 0 counted as 1."""
    pairs = [(size, record.sizes[name]) for name, size in problem.sizes.items()]
    return sum(abs(log2(max(a, 1) / max(b, 1))) for a, b in pairs)
