"""The cost model's first choice for a problem that was never measured, on a device where others of its family were.

Nothing is compiled or measured, and the same measurements lead to the same choice. A model that learned from some
problems can be wrong about others by more than it thinks, and it is looking for the place where it is most wrong. So it
is put to the test first: each problem that was measured is taken out in turn, and the model of the others chooses among
what was measured of it. Where that would have been slower than the default, or is not known, the default stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log

import numpy as np

from lithify.explore.candidates import Features, features_of, valid_in
from lithify.explore.experience import all_experience, experience_of
from lithify.explore.place import state_of_records
from lithify.explore.proposals import Experience, Model
from lithify.explore.records import RECORDS, Records
from lithify.explore.surrogate import Array, Shape, Surrogate
from lithify.lowering.tuning import Family, Parameters, Problem, Space
from lithify.machine import DeviceModel
from lithify.targets.cache import CACHE

_LEAST_PROBLEMS, _LEAST_MEASURED = 3, 60
_ROUNDS, _STARTS, _PAIRS = 5, 3, 120
_MOST_WINNERS = 12
_CLEARLY, _NOISE = log(1.05), log(1.02)
_SURE = 1.5  # standard deviations
_NOTHING = np.array([], int)
_YES, _NO = b"yes", b"no"


def first_choice(
    family: Family, problem: Problem, model: DeviceModel, space: Space, records: Records = RECORDS
) -> Parameters | None:
    """What the model expects most of; None where it is not sure that it is clearly faster than the default."""
    if not is_trusted(family, problem.scalars, model, records):
        return None
    experience = experience_of(family, problem, model, records)
    default = str(space.default)
    over = features_of(family, problem, model, space, [default])
    predictor = Model(over, experience)
    surrogate = predictor.fitted(_NOTHING, np.array([]))
    winners = [record.parameters for record in records.of_family(family.name, model.fingerprint)]
    valid = [parameters for text in winners if (parameters := valid_in(space, text)) is not None]
    seen = dict.fromkeys([default, *map(str, valid[:_MOST_WINNERS])])

    def expected(keys: Sequence[str]) -> Array:
        """How much faster than the default at least, as a logarithm."""
        return _expected(predictor, surrogate, features_of(family, problem, model, space, keys), over)

    random = np.random.default_rng(0)
    value = dict(zip(seen, expected(list(seen)), strict=True))
    for _ in range(_ROUNDS):
        starts = sorted(value, key=lambda key: -value[key])[:_STARTS]
        new = [key for start in starts for key in _neighbours(Parameters.parse(start), space, random)]
        new = [key for key in dict.fromkeys(new) if key not in value]
        if not new:
            break
        value |= dict(zip(new, expected(new), strict=True))
    best = max(value, key=lambda key: value[key])
    return Parameters.parse(best) if value[best] > _CLEARLY else None


def is_trusted(family: Family, scalars: Mapping[str, str], model: DeviceModel, records: Records = RECORDS) -> bool:
    """Whether the model has passed its test on a device; of the user's records this is remembered on disk."""
    state = state_of_records(model.fingerprint) if records is RECORDS else ""
    key = CACHE.key("cost model", state, family.name, model.fingerprint, str(sorted(scalars.items())))
    stored = CACHE.get(key) if state else None
    if stored is not None:
        return stored == _YES
    trusted = _passes(all_experience(family, scalars, model, records))
    if state:
        CACHE.put(key, _YES if trusted else _NO)
    return trusted


def _passes(experience: Sequence[Experience]) -> bool:
    """Would the first choice have been right for the problems that were measured, each by what the others show?"""
    if len(experience) < _LEAST_PROBLEMS or sum(len(e.seconds) for e in experience) < _LEAST_MEASURED:
        return False
    gained: list[float] = []
    shape: Shape | None = None
    for number, each in enumerate(experience):
        if each.default is None:
            continue
        predictor = Model(each.features, [*experience[:number], *experience[number + 1 :]], shape)
        over = Features(each.features.rows[[each.default]], each.features.rough[[each.default]])
        expected = _expected(predictor, predictor.fitted(_NOTHING, np.array([])), each.features, over)
        shape = predictor.shape
        best = int(np.argmax(expected))
        if expected[best] > _CLEARLY:
            gained.append(float(each.seconds[each.default] - each.seconds[best]))
    return len(gained) >= _LEAST_PROBLEMS and min(gained) > -_NOISE and float(np.median(gained)) > _CLEARLY


def _expected(predictor: Model, surrogate: Surrogate, features: Features, over: Features) -> Array:
    gain, deviation = surrogate.gain(predictor.scaled(features.rows), predictor.scaled(over.rows)[0])
    found: Array = gain + over.rough[0] - features.rough - _SURE * deviation
    return found


def _neighbours(start: Parameters, space: Space, random: np.random.Generator) -> Iterable[str]:
    """Valid sets that differ from one in a parameter, and some that do in two."""
    moves = [(name, value) for name, values in space.choices.items() for value in values if value != start[name]]
    pairs = random.integers(0, max(1, len(moves)), (_PAIRS if moves else 0, 2))
    for changed in [{name: value} for name, value in moves] + [dict([moves[a], moves[b]]) for a, b in pairs]:
        parameters = start.updated(**changed)
        if space.against(parameters) is None:
            yield str(parameters)
