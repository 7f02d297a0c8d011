"""What is searched: an ordered collection of ways to compute one program on one device, each under a text.

A space of tuning parameters is one such collection (`SpaceCandidates`); rewritten programs are another.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import log2

from lithify.explore.reasons import regions
from lithify.lang.term import Term
from lithify.lang.types import Type
from lithify.lowering import lower
from lithify.lowering.default import Lowered
from lithify.lowering.tuning import Family, Parameters, Problem, Space, Value
from lithify.machine import DeviceModel

_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Filtered:
    """The keys that are candidates, the default first, and how many are not, by reason."""

    keys: tuple[str, ...]
    rejected: dict[str, int]


class Candidates(ABC):
    """An ordered collection of ways to compute `term` on `model`; a key is a text that says which way.

    The first key is the default: what runs where nothing was measured. It is valid. Processes that build candidates are
    forked, so that nothing here needs to be pickled; a key alone goes to them.
    """

    term: Term
    parameters: tuple[tuple[str, Type], ...]  # of the program, in the order of a call
    model: DeviceModel

    @abstractmethod
    def __len__(self) -> int:
        """How many keys there are, valid or not."""

    @abstractmethod
    def __iter__(self) -> Iterator[str]:
        """All keys, valid or not, each once, the default first."""

    @abstractmethod
    def against(self, key: str) -> str | None:
        """Why a key is no candidate, None where it is one. Takes microseconds: nothing is derived or compiled."""

    @abstractmethod
    def lower(self, key: str) -> Lowered:
        """The lowered program. Raises LithifyError where it turns out that there is none."""

    @abstractmethod
    def features(self, key: str) -> tuple[float, ...]:
        """Numbers that say how candidates differ, equally many for each key, of similar magnitude; cheap.

        What a cost model predicts times from, so logarithms of sizes rather than sizes.
        """

    def filtered(self) -> Filtered:
        """Ask `against` about every key. Reasons that differ in numbers only are counted together."""
        keys: list[str] = []
        rejected: Counter[str] = Counter()
        for key in self:
            reason = self.against(key)
            if reason is None:
                keys.append(key)
            else:
                rejected[_NUMBER.sub("#", reason)] += 1
        return Filtered(tuple(keys), dict(rejected.most_common()))


class SpaceCandidates(Candidates):
    """All sets of a family's tuning parameters for a program; a key is the text of a set."""

    def __init__(
        self,
        term: Term,
        parameters: tuple[tuple[str, Type], ...],
        model: DeviceModel,
        family: Family,
        problem: Problem,
        space: Space,
    ) -> None:
        self.term, self.parameters, self.model = term, parameters, model
        self.family, self.problem, self.space = family, problem, space

    def __len__(self) -> int:
        return len(self.space)

    def __iter__(self) -> Iterator[str]:
        default = self.space.default
        yield str(default)
        for each in self.space:
            if each != default:
                yield str(each)

    def against(self, key: str) -> str | None:
        return self.space.against(Parameters.parse(key))

    def lower(self, key: str) -> Lowered:
        return lower(self.term, self.model, parameters=Parameters.parse(key), families=(self.family,))

    def features(self, key: str) -> tuple[float, ...]:
        of = self._coordinates
        return tuple([f for word in key.split(",") for f in of[word]])

    def filtered(self) -> Filtered:
        default = str(self.space.default)
        keys, rejected = [default], Counter[str]()
        for region in regions(self.space):
            if region.reason is None:
                keys += [text for text in region.texts() if text != default]
            else:
                rejected[_NUMBER.sub("#", region.reason)] += len(region)
        return Filtered(tuple(keys), dict(rejected.most_common()))

    @cached_property
    def _coordinates(self) -> dict[str, tuple[float, ...]]:
        """The features of each parameter's values, by their text."""
        values = [(name, [*choices, self.space.default[name]]) for name, choices in self.space.choices.items()]
        return {f"{name}={v}": _scaled(v, self.space.choices[name]) for name, every in values for v in every}


def _scaled(value: Value, choices: tuple[Value, ...]) -> tuple[float, ...]:
    """A parameter as numbers: a number as its logarithm, scaled to 0 .. 1; a word as one number for each choice."""
    if len(choices) < 2:
        return ()
    numbers = [c for c in choices if isinstance(c, int)]
    if len(numbers) < len(choices):
        return tuple([float(value == choice) for choice in choices])
    assert isinstance(value, int)
    low, high = log2(1 + min(numbers)), log2(1 + max(numbers))
    return ((log2(1 + value) - low) / (high - low),)
