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
    waiting: list[Mapping[str, tuple[Value, ...]]] = [space.choices] if all(space.choices.values()) else []
    while waiting:
        choices = waiting.pop()
        watched = _Watched({name: values[0] for name, values in choices.items()})
        reason = space.against(watched)
        for name in watched.read:
            if len(choices[name]) > 1:  # split it by the first parameter that was read and is not fixed
                waiting += [{**choices, name: (value,)} for value in reversed(choices[name])]
                break
        else:
            yield Region(choices, reason)


class _Watched(Parameters):
    """Parameters that note which of them were read, in order."""

    __slots__ = ("read",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self.read: dict[str, None] = {}

    def __getitem__(self, name: str) -> Value:
        value = self._values[name]  # asked for one that there is not, all sets answer the same
        self.read[name] = None
        return value

    def number(self, name: str) -> int:
        self.read[name] = None
        return super().number(name)

    def __iter__(self) -> Iterator[str]:  # whoever asks for the names reads them all
        self.read |= dict.fromkeys(self._values)
        return super().__iter__()

    def __str__(self) -> str:
        return ",".join(f"{name}={self[name]}" for name in self)
