"""What is searched: an ordered collection of ways to compute one program on one device, each under a text.

A space of tuning parameters is one such collection (`SpaceCandidates`); rewritten programs are another.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lithify.explore.reasons import regions
from lithify.lang.errors import LithifyError
from lithify.lang.term import Term
from lithify.lang.types import Type
from lithify.lowering import lower
from lithify.lowering.default import Lowered
from lithify.lowering.tuning import Column, Columns, Family, Numbers, Parameters, Problem, Space
from lithify.machine import DeviceModel

_NUMBER = re.compile(r"\d+(\.\d+)?")
_BLOCK = 2048  # questions that are asked between two looks at the clock: some hundredths of a second


@dataclass(frozen=True)
class Filtered:
    """The keys that are candidates, the default first, and how many are not, by reason.

    `whole` says that every key was looked at; else these are of some only.
    """

    keys: tuple[str, ...]
    rejected: dict[str, int]
    whole: bool = True

    @property
    def looked(self) -> int:
        """How many keys were looked at."""
        return len(self.keys) + sum(self.rejected.values())


def _everything(kept: int) -> bool:
    return True


@dataclass(frozen=True)
class Effort:
    """How far a collection is looked at; as it stands: all of it.

    `go_on` is asked now and then, with the number of candidates so far, whether there is time for more. A space of more
    than `most` sets is not gone through at all: `sample` of them are drawn at random, each at most once. So are they
    where the time ends on the way, unless `in_order`: then what was found is kept.
    """

    most: int | None = None
    sample: int = 0
    seed: int = 0
    in_order: bool = False
    go_on: Callable[[int], bool] = _everything


ALL = Effort()


@dataclass(frozen=True)
class Features:
    """What is known of candidates before they are derived: a row of numbers each, and a rough time.

    `rough` is a logarithm of seconds; all 0 where nothing is known of the time.
    """

    rows: Numbers
    rough: Numbers


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
    def features(self, keys: Sequence[str]) -> Features:
        """Numbers that say what candidates do and how they differ, equally many for each key; cheap.

        What a cost model predicts times from, so logarithms of sizes rather than sizes.
        """

    def filtered(self, effort: Effort = ALL, known: Sequence[str] = ()) -> Filtered:
        """Ask `against` about every key, or about those that the effort allows and the `known` ones.

        Reasons that differ in numbers only are counted together.
        """
        keys: list[str] = []
        rejected: Counter[str] = Counter()
        for number, key in enumerate(self):
            if number % _BLOCK == _BLOCK - 1 and not effort.go_on(len(keys)):
                return _some(keys, rejected, [key for key in known if self.against(key) is None])
            reason = self.against(key)
            if reason is None:
                keys.append(key)
            else:
                rejected[reason] += 1
        return Filtered(tuple(keys), _by_kind(rejected))


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

    def features(self, keys: Sequence[str]) -> Features:
        return features_of(self.family, self.problem, self.model, self.space, keys)

    def filtered(self, effort: Effort = ALL, known: Sequence[str] = ()) -> Filtered:
        default = str(self.space.default)
        keys, rejected, ended = [default], Counter[str](), not effort.in_order and _more(len(self), effort.most)
        for number, region in enumerate(regions(self.space) if not ended else ()):
            if number % _BLOCK == _BLOCK - 1 and not effort.go_on(len(keys)):
                ended = True
                break
            if region.reason is None:
                keys += [text for text in region.texts() if text != default]
            else:
                rejected[region.reason] += len(region)
        if not ended:
            return Filtered(tuple(keys), _by_kind(rejected))
        if not effort.in_order:  # the first regions are all alike: a sample says more
            keys, rejected = self._sampled(effort)
        return _some(keys, rejected, [key for key in known if valid_in(self.space, key) is not None])

    def _sampled(self, effort: Effort) -> tuple[list[str], Counter[str]]:
        """The default and candidates among sets that are drawn at random; what is against the others."""
        default = str(self.space.default)
        keys, rejected = [default], Counter[str]()
        for number, each in enumerate(self.space.drawn(min(effort.sample, len(self)), effort.seed), 1):
            reason = self.space.against(each)
            if reason is not None:
                rejected[reason] += 1
            elif (text := str(each)) != default:
                keys.append(text)
            if number % _BLOCK == 0 and not effort.go_on(len(keys)):
                break
        return keys, rejected


def _more(count: int, most: int | None) -> bool:
    return most is not None and count > most


def _some(keys: Sequence[str], rejected: Counter[str], known: Sequence[str]) -> Filtered:
    """Of some keys: the default first, then what is known beside."""
    return Filtered(tuple(dict.fromkeys([*keys, *known])), _by_kind(rejected), whole=False)


def _by_kind(rejected: Counter[str]) -> dict[str, int]:
    """Counts of reasons, those that differ in numbers only together, the most frequent first."""
    kinds = Counter[str]()
    for reason, count in rejected.items():
        kinds[_NUMBER.sub("#", reason)] += count
    return dict(kinds.most_common())


def features_of(family: Family, problem: Problem, model: DeviceModel, space: Space, keys: Sequence[str]) -> Features:
    """The features of sets of parameters of a space (texts): what their kernels do, else the parameters themselves."""
    columns = _columns(space, keys)
    found = dict(family.features(problem, model, columns))
    rough = found.pop("seconds", None)
    rows = list(found.values()) or [row for name in columns for row in _scaled(space, name, columns[name])]
    zeros = np.zeros(len(keys))
    return Features(np.stack(rows or [zeros], axis=1), zeros if rough is None else np.log(rough))


def valid_in(space: Space, text: str) -> Parameters | None:
    """The parameters of a text, in the order of a space, where they are valid in it; None where they are not."""
    try:
        parameters = Parameters.parse(text)
        space.check(parameters)
    except LithifyError:
        return None
    return Parameters({name: parameters[name] for name in space.choices})


def _columns(space: Space, keys: Sequence[str]) -> Columns:
    """The values of each parameter, one entry a key."""
    numbers: dict[str, int] = {}  # of each word that occurs
    codes = [numbers.setdefault(word, len(numbers)) for key in keys for word in key.split(",")]
    table = np.array(codes, int).reshape(len(keys), len(space.choices))
    texts = np.array([word.partition("=")[2] for word in numbers])
    found: dict[str, Column] = {}
    for column, (name, choices) in enumerate(space.choices.items()):
        used, places = np.unique(table[:, column], return_inverse=True)
        found[name] = texts[used].astype(float if isinstance(choices[0], int) else str)[places]
    return found


def _scaled(space: Space, name: str, values: Column) -> list[Numbers]:
    """A parameter as numbers: a number as its logarithm, a word as one number for each choice."""
    choices = space.choices[name]
    if len(choices) < 2:
        return []
    if isinstance(choices[0], int):
        return [np.log2(1.0 + values)]
    return [(values == choice).astype(float) for choice in choices]
