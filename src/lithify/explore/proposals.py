"""What to measure next: all in order, at random, or by a cost model that is fitted to what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from lithify.explore.surrogate import Surrogate
from lithify.lang.errors import LithifyError

Positions = np.ndarray[Any, np.dtype[np.intp]]
History = Mapping[str, float | None]  # seconds by key, in the order of measuring; None where there is no right result

_FIRST = 8  # candidates that differ as much as possible, before the model is asked
_POOL = 4000  # candidates that the model is asked about at a time
_DOUBT = 0.6  # standard deviations below the prediction that a candidate is hoped to be
_FAILED = 2.0  # times the slowest: what a candidate without a result counts as
_MOST_FITTED = 300


class Proposer(Protocol):
    """Says which candidates to measure, given what was measured."""

    def propose(self, history: History, count: int) -> Sequence[str]:
        """At most `count` keys that are not in the history; none where all are."""
        ...


class Exhaustive:
    """All candidates in order."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def propose(self, history: History, count: int) -> Sequence[str]:
        found: list[str] = []
        for key in self._keys:
            if len(found) == count:
                break
            if key not in history:
                found.append(key)
        return found


class Random(Exhaustive):
    """All candidates, the first of them first, the others in a random order."""

    def __init__(self, keys: Sequence[str], seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(keys) - 1) + 1
        super().__init__([*keys[:1], *[keys[k] for k in order]])


class ModelGuided:
    """First candidates that differ as much as possible, then those that a `Surrogate` hopes most of.

    `features` gives each key's numbers; `near` are keys that are measured right after the default (the best of
    problems like this one).
    """

    def __init__(
        self,
        keys: Sequence[str],
        features: Callable[[str], tuple[float, ...]],
        seed: int,
        near: Sequence[str] = (),
    ) -> None:
        self._keys, self._random = keys, np.random.default_rng(seed)
        self._features = np.array([features(key) for key in keys], np.float64).reshape(len(keys), -1)
        self._positions = {key: k for k, key in enumerate(keys)}
        self._first = list(dict.fromkeys([*keys[:1], *(key for key in near if key in self._positions)]))

    def propose(self, history: History, count: int) -> Sequence[str]:
        known = [key for key in history if key in self._positions]
        first = [key for key in self._first if key not in history][:count]
        if first:
            return first
        if len(known) < _FIRST or sum(history[key] is not None for key in known) < 2:
            return self._spread(known, count)
        return self._promising(history, known, count)

    def _pool(self, known: Sequence[str]) -> Positions:
        """Positions of candidates that are not known: all of them, or some at random."""
        free = np.ones(len(self._keys), bool)
        free[[self._positions[key] for key in known]] = False
        places = np.flatnonzero(free)
        if len(places) > _POOL:
            places = np.sort(self._random.choice(places, _POOL, replace=False))
        return places

    def _spread(self, known: Sequence[str], count: int) -> list[str]:
        """Those that are furthest from all that are known, one after the other."""
        places = self._pool(known)
        chosen = [self._positions[key] for key in known]
        found: list[str] = []
        while len(found) < count and len(places):
            apart = ((self._features[places][:, None] - self._features[chosen][None]) ** 2).sum(axis=2).min(axis=1)
            place = places[int(np.argmax(apart))]
            chosen.append(place)
            found.append(self._keys[place])
            places = places[places != place]
        return found

    def _promising(self, history: History, known: list[str], count: int) -> list[str]:
        """Those with the lowest prediction, doubt taken off; what is chosen counts as measured for the next."""
        fitted = sorted(known, key=lambda key: history[key] or np.inf)[:_MOST_FITTED]
        right = [seconds for key in fitted if (seconds := history[key]) is not None]
        slow = _FAILED * max(right)
        rows = self._features[[self._positions[key] for key in fitted]]
        values = np.log([slow if (seconds := history[key]) is None else seconds for key in fitted])
        best = self._positions[fitted[0]]
        places = np.union1d(self._pool(known), self._around(best, known))
        found: list[str] = []
        for _ in range(min(count, len(places))):
            mean, deviation = Surrogate(rows, values).predict(self._features[places])
            number = int(np.argmin(mean - _DOUBT * deviation))
            place = places[number]
            found.append(self._keys[place])
            rows = np.vstack([rows, self._features[place]])
            values = np.append(values, mean[number])
            places = np.delete(places, number)
        return found

    def _around(self, best: int, known: Sequence[str]) -> Positions:
        """Positions of the unknown candidates nearest to one."""
        apart = ((self._features - self._features[best]) ** 2).sum(axis=1)
        apart[[self._positions[key] for key in known]] = np.inf
        near: Positions = np.argsort(apart, kind="stable")[: _POOL // 4]
        unknown: Positions = near[np.isfinite(apart[near])]
        return unknown


SEARCHES = ("model", "random", "exhaustive")


def proposer(
    search: str,
    keys: Sequence[str],
    features: Callable[[str], tuple[float, ...]],
    seed: int,
    near: Sequence[str] = (),
) -> Proposer:
    """The proposer of a name. Raises LithifyError for another."""
    if search == "exhaustive":
        return Exhaustive(keys)
    if search == "random":
        return Random(keys, seed)
    if search == "model":
        return ModelGuided(keys, features, seed, near)
    raise LithifyError(f"there is no search `{search}`", hint=f"there are {', '.join(SEARCHES)}")
