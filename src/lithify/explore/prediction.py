"""The cost model's first choice for a problem that was never measured, on a device where others of its family were.

Nothing is compiled or measured, and the same measurements lead to the same choice: from the default and the best of
other problems one goes to sets that differ in a parameter or two, as long as the model expects more of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log

import numpy as np

from lithify.explore.candidates import Features, features_of, valid_in
from lithify.explore.experience import experience_of
from lithify.explore.proposals import Model
from lithify.explore.records import RECORDS, Records
from lithify.explore.surrogate import Array
from lithify.lowering.tuning import Family, Parameters, Problem, Space
from lithify.machine import DeviceModel

_LEAST_PROBLEMS, _LEAST_MEASURED = 3, 60
_ROUNDS, _STARTS, _PAIRS = 5, 3, 120
_MOST_WINNERS = 12
_CLEARLY = log(1.05)
_SURE = 1.5  # standard deviations


def first_choice(
    family: Family, problem: Problem, model: DeviceModel, space: Space, records: Records = RECORDS
) -> Parameters | None:
    """What the model expects most of; None where it is not sure that it is clearly faster than the default."""
    experience = experience_of(family, problem, model, records)
    if len(experience) < _LEAST_PROBLEMS or sum(len(e.seconds) for e in experience) < _LEAST_MEASURED:
        return None
    default = str(space.default)
    winners = [record.parameters for record in records.of_family(family.name, model.fingerprint)]
    valid = [parameters for text in winners if (parameters := valid_in(space, text)) is not None]
    seen = dict.fromkeys([default, *map(str, valid[:_MOST_WINNERS])])

    def features(keys: Sequence[str]) -> Features:
        return features_of(family, problem, model, space, keys)

    predictor = Model(features([default]), experience)
    surrogate = predictor.fitted(np.array([], int), np.array([]))
    over = features([default])

    def expected(keys: Sequence[str]) -> Array:
        """How much faster than the default at least, as a logarithm."""
        rows = features(keys)
        gain, deviation = surrogate.gain(predictor.scaled(rows.rows), predictor.rows[0])
        found: Array = gain + over.rough[0] - rows.rough - _SURE * deviation
        return found

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


def _neighbours(start: Parameters, space: Space, random: np.random.Generator) -> Iterable[str]:
    """Valid sets that differ from one in a parameter, and some that do in two."""
    moves = [(name, value) for name, values in space.choices.items() for value in values if value != start[name]]
    pairs = random.integers(0, max(1, len(moves)), (_PAIRS if moves else 0, 2))
    for changed in [{name: value} for name, value in moves] + [dict([moves[a], moves[b]]) for a, b in pairs]:
        parameters = start.updated(**changed)
        if space.against(parameters) is None:
            yield str(parameters)
