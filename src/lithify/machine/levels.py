"""The levels that a machine offers to the maps of a lowered program, and which may stand inside which.

A level is data: a name, a dimension where the machine has several (`item0`), and how many instances there can be.
Which levels may stand *around* it follows from its name. Maps at sequential levels have no limit; a map at a level of
the launch names hardware indices, so it can neither stand inside itself nor inside what is smaller than it.
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
    kind is "launch").
    """

    name: str
    dim: int | None
    kind: Kind
    extent: int | None

    def __str__(self) -> str:
        return self.name if self.dim is None else f"{self.name}{self.dim}"


class LevelError(LookupError):
    """A level was asked for that the machine does not have, or not there."""


# -- the tables ---------------------------------------------------------------------------------------------------

_LOOPS = ("seq", "unroll", "inline")
_LAUNCH = ("global", "group", "cluster", "warpgroup", "warp", "lane", "item")

# Which levels may stand around a level. The pool of CPU threads is the outermost: to start it inside a loop costs more
# than it brings. A loop around `group` or `global` would need the whole grid to wait for itself: no launch can do that.
_AROUND = {
    **dict.fromkeys(_LOOPS, (*_LOOPS, "vec", "par", *_LAUNCH)),
    "vec": (*_LOOPS, "par", *_LAUNCH),
    "par": (),
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
    return tuple(LevelSpec(name, None, "sequential", None) for name in _LOOPS)


def vector_level(lanes: int) -> LevelSpec:
    """The lanes of a vector, at most `lanes`."""
    return LevelSpec("vec", None, "vector", lanes)


def thread_level(threads: int) -> LevelSpec:
    """A pool of CPU threads."""
    return LevelSpec("par", None, "threads", threads)


def launch_level(name: str, extents: tuple[int | None, ...], total: int | None = None) -> tuple[LevelSpec, ...]:
    """A level of the launch: linear (without a dimension, `total` instances) and with one extent a dimension."""
    linear = LevelSpec(name, None, "launch", total)
    return (linear, *(LevelSpec(name, dim, "launch", extent) for dim, extent in enumerate(extents)))


def reason_against(outer: NamedLevel, inner: NamedLevel) -> str | None:
    """Why no machine takes a map at `inner` inside a map at `outer`, at any depth; None where one may."""
    around = _AROUND[inner.name]
    if outer.name not in around:
        places = ", ".join(sorted(around)) or "nothing"
        return f"map[{inner}] cannot stand inside map[{outer}]; around it may stand: {places}"
    same = outer.name == inner.name and inner.name in _LAUNCH
    if same and (outer.dim is None or inner.dim is None or outer.dim == inner.dim):
        return (
            f"map[{inner}] inside map[{outer}] would use the same hardware index twice; give them different dimensions"
        )
    return None
