"""What parametrised strategies are made of: families of programs, problems, parameters and the spaces they span.

A family (matrix multiplication, convolution, ..) recognises its programs, says which parameters there are for a problem
on a device and why a set of them is invalid, and lowers a program by a set: by the default where nothing was measured.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from lithify.lang.errors import RewriteFailed
from lithify.lang.term import Term
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation

_DRAWN = 1024  # random numbers at a time

Value = int | str
Numbers = np.ndarray[Any, np.dtype[np.float64]]
# The values of a parameter in many sets, one entry a set: numbers, or words as texts; and of each parameter.
Column = np.ndarray[Any, np.dtype[Any]]
Columns = Mapping[str, Column]


class Parameters(Mapping[str, Value]):
    """A set of tuning parameters, immutable; its text is `key=value,key=value`, in the order that they are given in."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = MappingProxyType(dict(values))

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self._values.items())

    def __repr__(self) -> str:
        return f"Parameters({self})"

    def number(self, name: str) -> int:
        """A parameter that is a number."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def updated(self, **values: Value) -> Parameters:
        """The same set with other values."""
        return Parameters({**self._values, **values})

    @staticmethod
    def parse(text: str) -> Parameters:
        """Read `key=value,key=value`. Raises RewriteFailed for anything else."""
        values: dict[str, Value] = {}
        for part in filter(None, text.split(",")):
            name, equals, value = (word.strip() for word in part.partition("="))
            if not (name and equals and value):
                raise RewriteFailed(f"{part!r} is no tuning parameter", hint="write key=value,key=value")
            if name in values:
                raise RewriteFailed(f"{name} is given twice: {values[name]} and {value}")
            values[name] = int(value) if re.fullmatch(r"-?[0-9]+", value) else value
        return Parameters(values)


@dataclass(frozen=True, slots=True)
class Problem:
    """What a program of a family computes: `line` names it in the field's spelling, `sizes` and `scalars` by name.

    Programs of one family with the same line are lowered alike by the same parameters.
    """

    family: str
    line: str
    sizes: Mapping[str, int]
    scalars: Mapping[str, str]

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True)
class Space:
    """All sets of parameters for a problem on a device.

    `choices` gives each parameter's values; `against` says why a set is invalid (None where it is valid), from the
    numbers alone: nothing is derived or compiled for it. `default` is valid.
    """

    choices: Mapping[str, tuple[Value, ...]]
    default: Parameters
    against: Callable[[Parameters], str | None]

    def __len__(self) -> int:
        """How many sets there are, valid or not."""
        return prod(len(values) for values in self.choices.values())

    def __iter__(self) -> Iterator[Parameters]:
        """All sets, valid or not."""
        for values in itertools.product(*self.choices.values()):
            yield Parameters(dict(zip(self.choices, values, strict=True)))

    def drawn(self, count: int, seed: int) -> Iterator[Parameters]:
        """So many different sets at random, all equally likely, valid or not. Of more the first are the same."""
        random, seen = np.random.default_rng(seed), set[int]()
        while len(seen) < min(count, len(self)):
            for number in random.integers(0, len(self), _DRAWN).tolist():
                if number not in seen and len(seen) < count:
                    seen.add(number)
                    values: dict[str, Value] = {}
                    for name, choices in self.choices.items():
                        number, place = divmod(number, len(choices))
                        values[name] = choices[place]
                    yield Parameters(values)

    def check(self, parameters: Parameters) -> None:
        """Raises RewriteFailed, with the reason, for a set that is invalid or has other names than this space."""
        if set(parameters) != set(self.choices):
            raise RewriteFailed(
                f"the parameters are {', '.join(parameters)}", hint=f"they should be {', '.join(self.choices)}"
            )
        for name, value in parameters.items():
            listed = self.choices[name]
            alike = isinstance(value, str) == isinstance(listed[0], str)
            if value not in listed and not (alike and isinstance(value, int) and value > 0):
                raise RewriteFailed(f"{name}={value} is no value of {name}", hint=f"such as {listed[0]}")
        reason = self.against(parameters)
        if reason is not None:
            raise RewriteFailed(f"{parameters} is invalid: {reason}")


class Family(ABC):
    """A family of programs that one parametrised strategy lowers."""

    name: str

    @abstractmethod
    def recognise(self, program: Term) -> Problem | None:
        """Which problem of the family a program is; None where it is none."""

    @abstractmethod
    def space(self, problem: Problem, model: DeviceModel) -> Space | None:
        """The parameters for a problem on a device; None where the default lowering is as good as it gets."""

    def features(self, problem: Problem, model: DeviceModel, columns: Columns) -> Mapping[str, Numbers]:
        """What kernels by many sets of parameters do, by name, one entry a set: what a cost model tells times from.

        Cheap: nothing is derived. Numbers that mean the same for all problems of the family, such as logarithms of the
        bytes that cross a cache for each operation; `seconds` is a rough time. Empty where nothing is known.
        """
        return {}

    @abstractmethod
    def derive(self, derivation: Derivation, problem: Problem, parameters: Parameters, model: DeviceModel) -> None:
        """Take a program of the family down by rules; what is left open is for the device's strategist.

        Raises RewriteFailed where the parameters do not fit the program.
        """
