"""What to measure next: all in order, at random, or by a cost model that is fitted to what was measured.

Proposals come one by one, so that whoever takes them can stop in between: fitting takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lithify.explore.candidates import Features
from lithify.explore.surrogate import Array, Shape, Surrogate
from lithify.lang.errors import LithifyError
from lithify.lang.given import text_given
from lithify.lang.spelling import choices

Positions = np.ndarray[Any, np.dtype[np.intp]]
History = Mapping[str, float | None]  # seconds by key, in the order of measuring; None where there is no right result

_FIRST = 6  # candidates that differ as much as possible, before the model is asked, where it knows nothing
_PROMISING = 0.05  # the share of candidates, by their rough times, that these are taken from
_NEAR = 2  # keys of near problems that are tried before anything else
_MOST_KEYS = 100_000  # candidates that the model looks at: of more, so many at random
_POOL = 4000  # candidates that the model is asked about at a time
_DOUBT = 0.6  # standard deviations below the prediction that a candidate is hoped to be
_FAILED = 2.0  # times the slowest: what a candidate without a result counts as
_MOST_OWN, _MOST_OTHER = 200, 240  # measurements that a model is fitted to, of this problem and of others
_GROWN = 1.5  # times as many measurements: then lengths are chosen anew


@dataclass(frozen=True)
class Experience:
    """What was measured of another problem: a row of features and the logarithm of seconds for each candidate.

    `default` is the default's place among them, if it is there.
    """

    features: Features
    seconds: Array
    default: int | None = None


class Proposer(Protocol):
    """Says which candidates to measure, given what was measured."""

    def propose(self, history: History) -> Iterator[str]:
        """Keys that are not in the history, the most promising first, each once; none where all are.

        Later ones are worth less: they do not know how the earlier ones end.
        """
        ...


class Exhaustive:
    """All candidates in order."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def propose(self, history: History) -> Iterator[str]:
        return (key for key in self._keys if key not in history)


class Random(Exhaustive):
    """All candidates, the first of them first, the others in a random order."""

    def __init__(self, keys: Sequence[str], seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(keys) - 1) + 1
        super().__init__([*keys[:1], *[keys[k] for k in order]])


class Model:
    """A `Surrogate` of the candidates of one problem, with what others have shown; lengths are chosen now and then."""

    def __init__(self, features: Features, experience: Sequence[Experience], shape: Shape | None = None) -> None:
        width = features.rows.shape[1]  # where features are the parameters, those of other problems may be others
        experience = [e for e in experience if e.features.rows.shape[1] == width]
        every = [features.rows[:: max(1, len(features.rows) // _POOL)], *[e.features.rows for e in experience]]
        rows = np.concatenate(every)
        deviation = rows.std(axis=0)
        self._middle, self._deviation = rows.mean(axis=0), np.where(deviation > 1e-9, deviation, 1.0)
        self.rows, self.rough = self.scaled(features.rows), features.rough
        self._others = _thinned(experience)
        self.shape = shape

    @property
    def knows(self) -> int:
        """How many measurements of other problems it goes by."""
        return sum(len(e.seconds) for e in self._others)

    def fitted(self, places: Positions, seconds: Array) -> Surrogate:
        """Fitted to times (logarithms) of the candidates at some places and to those of other problems."""
        rows = [self.rows[places], *[self.scaled(e.features.rows) for e in self._others]]
        values = [seconds - self.rough[places], *[e.seconds - e.features.rough for e in self._others]]
        groups = [np.full(len(v), g) for g, v in enumerate(values)]
        features, given, group = np.concatenate(rows), np.concatenate(values), np.concatenate(groups)
        if self.shape is None or len(given) > _GROWN * self.shape.rows or len(places) in _AGAIN:
            order = np.argsort(group, kind="stable")
            self.shape = Shape.choose(features[order], given[order], group[order], self.shape)
        return Surrogate(features, given, group, self.shape)

    def scaled(self, rows: Array) -> Array:
        """Features as the model takes them."""
        scaled: Array = (rows - self._middle) / self._deviation
        return scaled


_AGAIN = (4, 8, 16, 32, 64, 128)  # measurements of the problem itself after which lengths are chosen anew


def _thinned(experience: Sequence[Experience]) -> list[Experience]:
    """Of each other problem the fastest and some of the others, as many as there is room for."""
    found = []
    for each in experience:
        room = max(6, _MOST_OTHER // len(experience))
        order = np.argsort(each.seconds, kind="stable")
        best, rest = order[: room // 3], order[room // 3 :]
        kept = np.concatenate([best, rest[:: max(1, -(-len(rest) // max(1, room - len(best))))]])
        found.append(Experience(Features(each.features.rows[kept], each.features.rough[kept]), each.seconds[kept]))
    return found


class ModelGuided:
    """The default, some candidates that differ, then those that a `Model` hopes most of.

    `near` are keys that are measured right after the default (the best of problems like this one); with `experience`
    the model is asked from the beginning.
    """

    def __init__(
        self,
        keys: Sequence[str],
        features: Callable[[Sequence[str]], Features],
        seed: int,
        near: Sequence[str] = (),
        experience: Sequence[Experience] = (),
    ) -> None:
        self._keys, self._features, self._random = keys, features, np.random.default_rng(seed)
        valid = frozenset(keys) if near else ()
        self._first = list(dict.fromkeys([*keys[:1], *[key for key in near if key in valid][:_NEAR]]))
        self._experience = experience
        self._positions: dict[str, int] = {}

    def propose(self, history: History) -> Iterator[str]:
        if not self._positions:
            self._look(history)
        known = [key for key in history if key in self._positions]
        yield from (first := [key for key in self._first if key not in history])
        known += first
        right = [key for key in known if history.get(key) is not None]
        if not self._model.knows and (len(known) < _FIRST or len(right) < 2):
            yield from self._spread(known)
        elif right or self._model.knows:
            yield from self._promising(history, known)

    def _look(self, history: History) -> None:
        """At the candidates: all of them, or some, with those that were measured."""
        if len(self._keys) > _MOST_KEYS:
            valid = frozenset(self._keys)
            kept = np.sort(self._random.choice(len(self._keys), _MOST_KEYS, replace=False))
            measured = [key for key in history if key in valid]
            self._keys = list(dict.fromkeys([*self._first, *measured, *[self._keys[k] for k in kept]]))
        self._positions = {key: k for k, key in enumerate(self._keys)}
        self._model = Model(self._features(self._keys), self._experience)

    def _pool(self, known: Sequence[str]) -> Positions:
        """Positions of candidates that are not known: all of them, or some at random."""
        free = np.ones(len(self._keys), bool)
        free[[self._positions[key] for key in known]] = False
        places = np.flatnonzero(free)
        if len(places) > _POOL:
            places = np.sort(self._random.choice(places, _POOL, replace=False))
        return places

    def _spread(self, known: Sequence[str]) -> Iterator[str]:
        """Those of the promising ones that are furthest from all that are known, one after the other."""
        rows, rough = self._model.rows, self._model.rough
        places = self._pool(known)
        if np.ptp(rough) > 0:
            places = places[np.argsort(rough[places], kind="stable")[: max(4 * _FIRST, int(_PROMISING * len(places)))]]
        chosen = [self._positions[key] for key in known]
        while len(places):
            apart = ((rows[places][:, None] - rows[chosen][None]) ** 2).sum(axis=2).min(axis=1) if chosen else rough
            place = places[int(np.argmax(apart))]
            chosen.append(place)
            yield self._keys[place]
            places = places[places != place]

    def _promising(self, history: History, known: list[str]) -> Iterator[str]:
        """Those with the lowest prediction, doubt taken off; what is chosen counts as measured for the next."""
        fitted = sorted([key for key in known if key in history], key=lambda key: history[key] or np.inf)[:_MOST_OWN]
        right = [seconds for key in fitted if (seconds := history[key]) is not None]
        slow = _FAILED * max(right, default=1.0)
        own = np.array([self._positions[key] for key in fitted], int)
        values = np.log([slow if (seconds := history[key]) is None else seconds for key in fitted])
        places = np.union1d(self._pool(known), self._around(own[:1], known))
        rows, rough = self._model.rows, self._model.rough
        while len(places):
            mean, deviation = self._model.fitted(own, values).predict(rows[places])
            mean = mean + rough[places]
            number = int(np.argmin(mean - _DOUBT * deviation))
            yield self._keys[places[number]]
            own, values = np.append(own, places[number]), np.append(values, mean[number])
            places = np.delete(places, number)

    def _around(self, best: Positions, known: Sequence[str]) -> Positions:
        """Positions of the unknown candidates nearest to one; none where there is none."""
        if not len(best):
            return best
        apart = ((self._model.rows - self._model.rows[best]) ** 2).sum(axis=1)
        apart[[self._positions[key] for key in known]] = np.inf
        near: Positions = np.argsort(apart, kind="stable")[: _POOL // 4]
        unknown: Positions = near[np.isfinite(apart[near])]
        return unknown


SEARCHES = ("model", "random", "exhaustive")


def proposer(
    search: str,
    keys: Sequence[str],
    features: Callable[[Sequence[str]], Features],
    seed: int,
    near: Sequence[str] = (),
    experience: Sequence[Experience] = (),
) -> Proposer:
    """The proposer of a name. Raises LithifyError for another."""
    check_search(search)
    if search == "exhaustive":
        return Exhaustive(keys)
    if search == "random":
        return Random(keys, seed)
    return ModelGuided(keys, features, seed, near, experience)


def check_search(search: str) -> None:
    """Raises LithifyError for a name that no search has."""
    text_given(search, "the name of a search", f"there are {', '.join(SEARCHES)}")
    if search not in SEARCHES:
        raise LithifyError(f"there is no search `{search}`", hint=choices(search, SEARCHES))
