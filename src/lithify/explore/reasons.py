"""Why sets of parameters are invalid, found out for a whole space with few questions.

A family's function `against` reads some parameters and answers. Which ones it reads is noted: all sets that agree in
these have the same answer. So a space falls into regions, each fixed by what was read, and one question is asked for
each: spaces of millions of sets take a second or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from lithify.lowering.tuning import Parameters, Space, Value


@dataclass(frozen=True)
class Region:
    """The sets with any of the given values for each parameter, and what is against all of them (None: nothing)."""

    choices: Mapping[str, tuple[Value, ...]]
    reason: str | None

    def __len__(self) -> int:
        """How many sets there are."""
        return prod(len(values) for values in self.choices.values())

    def texts(self) -> Iterator[str]:
        """The text of each set."""
        words = [[f"{name}={value}" for value in values] for name, values in self.choices.items()]
        return map(",".join, product(*words))


def regions(space: Space) -> Iterator[Region]:
    """The regions of a space: each set is in one of them."""
    yield from _split(space, space.choices)


def _split(space: Space, choices: Mapping[str, tuple[Value, ...]]) -> Iterator[Region]:
    """Ask about the first set of a region; split it by the first parameter that was read and is not fixed."""
    if not all(choices.values()):
        return
    watched = _Watched({name: values[0] for name, values in choices.items()})
    reason = space.against(watched)
    open_ = [name for name in watched.read if len(choices[name]) > 1]
    if not open_:
        yield Region(choices, reason)
        return
    name = open_[0]
    for value in choices[name]:
        yield from _split(space, {**choices, name: (value,)})


class _Watched(Parameters):
    """Parameters that note which of them were read, in order."""

    __slots__ = ("read",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self.read: list[str] = []

    def __getitem__(self, name: str) -> Value:
        if name not in self.read:
            self.read.append(name)
        return super().__getitem__(name)

    def number(self, name: str) -> int:
        value = self[name]
        assert isinstance(value, int)
        return value

    def __iter__(self) -> Iterator[str]:  # whoever asks for the names reads them all
        self.read += [name for name in super().__iter__() if name not in self.read]
        return super().__iter__()

    def __str__(self) -> str:
        return ",".join(f"{name}={self[name]}" for name in self)
