"""The levels that a machine offers to the maps of a lowered program, and which may stand inside which.

A level is data: a name, a dimension where the machine has several (`item0`), how many instances there can be, and
the names of the levels that may stand *around* it. Maps at sequential levels have no limit; a map at a level of the
launch names hardware indices, so it can neither stand inside itself nor inside what is smaller than it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["sequential", "vector", "threads", "launch"]


class NamedLevel(Protocol):
    """What is asked about here: anything with a level's name and dimension (`lithify.lang.levels.Level` is one)."""

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """One level of a machine.

    `extent` is how many instances there can be at once (None: any number; a longer map is a strided loop where the
    kind is "launch"), `inside` the names of the levels that may stand around it.
    """

    name: str
    dim: int | None
    kind: Kind
    extent: int | None
    inside: frozenset[str]

    def __str__(self) -> str:
        return self.name if self.dim is None else f"{self.name}{self.dim}"


class LevelError(LookupError):
    """A level was asked for that the machine does not have, or not there."""


# -- the tables ---------------------------------------------------------------------------------------------------

_LOOPS = ("seq", "unroll", "inline")
_LAUNCH = ("global", "group", "cluster", "warpgroup", "warp", "lane", "item")

# Which levels may stand around a level of the launch. A loop around `group` or `global` would need the whole grid to
# wait for itself, which no launch can do.
_AROUND = {
    "global": ("global",),
    "group": ("group",),
    "cluster": ("group",),
    "warpgroup": ("group", "cluster", *_LOOPS),
    "warp": ("group", "cluster", "warpgroup", *_LOOPS),
    "lane": ("group", "cluster", "warpgroup", "warp", *_LOOPS),
    "item": ("group", "cluster", "item", *_LOOPS),
}


def sequential_levels() -> tuple[LevelSpec, ...]:
    """What every machine has: loops, unrolled loops, and bodies that their readers repeat. They stand anywhere."""
    anywhere = frozenset((*_LOOPS, "vec", "par", *_LAUNCH))
    return tuple(LevelSpec(name, None, "sequential", None, anywhere) for name in _LOOPS)


def vector_level(lanes: int) -> LevelSpec:
    """The lanes of a vector, at most `lanes`: inside anything but another vector."""
    return LevelSpec("vec", None, "vector", lanes, frozenset((*_LOOPS, "par", *_LAUNCH)))


def thread_level(threads: int) -> LevelSpec:
    """A pool of CPU threads. The outermost level: starting the pool inside a loop costs more than it brings."""
    return LevelSpec("par", None, "threads", threads, frozenset())


def launch_level(name: str, extents: tuple[int | None, ...], total: int | None = None) -> tuple[LevelSpec, ...]:
    """A level of the launch: linear (without a dimension, `total` instances) and with one extent a dimension."""
    around = frozenset(_AROUND[name])
    linear = LevelSpec(name, None, "launch", total, around)
    return (linear, *(LevelSpec(name, dim, "launch", extent, around) for dim, extent in enumerate(extents)))


def reason_against(outer: LevelSpec, inner: LevelSpec) -> str | None:
    """Why a map at `inner` cannot stand, at any depth, inside a map at `outer`; None where it can."""
    if outer.name not in inner.inside:
        places = ", ".join(sorted(inner.inside)) or "nothing"
        return f"{inner} cannot stand inside {outer}; around it may stand: {places}"
    same = outer.name == inner.name and inner.kind == "launch"
    if same and (outer.dim is None or inner.dim is None or outer.dim == inner.dim):
        return f"{inner} inside {outer} would use the same hardware index twice; give the two maps different dimensions"
    return None
