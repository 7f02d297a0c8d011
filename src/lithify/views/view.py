"""Maps between two spaces, stacks of maps (views), and what reading through them means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lithify.arith import Expr, as_expr, proves, proves_equal, var
from lithify.views import space as spaces
from lithify.views.errors import ViewError
from lithify.views.space import Dims
from lithify.views.transforms import Coordinates, Transform

if TYPE_CHECKING:
    from lithify.views.builders import BottomUp, TopDown


@dataclass(frozen=True)
class TransformMap:
    """Transforms side by side: each upper dim is used by exactly one, each lower dim produced by exactly one."""

    upper: Dims
    lower: Dims
    transforms: tuple[Transform, ...]

    def __post_init__(self) -> None:
        spaces.check(self.upper)
        spaces.check(self.lower)
        for side, space in (("upper", self.upper), ("lower", self.lower)):
            used = [d for t in self.transforms for d in getattr(t, side)]
            if sorted(used, key=str) != sorted(space, key=str):
                raise ViewError(
                    f"a map's transforms must use each {side} dim once: the dims are [{spaces.show(space)}], "
                    f"the transforms use [{spaces.show(tuple(used))}]"
                )

    @cached_property
    def _sources(self) -> dict[str, int]:
        return {d.name: i for i, d in enumerate(self.upper)}

    def index(self, u: Sequence[Expr]) -> Coordinates:
        """The lower coordinates of upper ones."""
        return self.step(u)[0]

    def step(self, u: Sequence[Expr]) -> tuple[Coordinates, tuple[Guard, ...]]:
        """The lower coordinates, and the conditions of this map, tested at this map's level."""
        found: dict[str, Expr] = {}
        guards: list[Guard] = []
        for t in self.transforms:
            l = t.index(tuple([u[self._sources[d.name]] for d in t.upper]))  # noqa: E741
            found.update(zip([d.name for d in t.lower], l, strict=True))
            conditions = t.conditions(l)
            if conditions:
                guards.append(Guard(conditions, t.fill))
        return tuple([found[d.name] for d in self.lower]), tuple(guards)

    def inverse(self) -> TransformMap:
        """The map from lower to upper coordinates. Raises ViewError where a transform has none."""
        inverses = []
        for t in self.transforms:
            inverse = t.inverse()
            if inverse is None:
                raise ViewError(f"{t} has no inverse: a result cannot be written through it")
            inverses.append(inverse)
        return TransformMap(self.lower, self.upper, tuple(inverses))

    def __str__(self) -> str:
        return "\n".join(map(str, self.transforms))


@dataclass(frozen=True, slots=True)
class Guard:
    """Forms that must all be >= 0 for an element to be real, and what is read where one is not."""

    conditions: Coordinates
    fill: Any


@dataclass(frozen=True, slots=True)
class Access:
    """What one read through a view is: lower coordinates, real where all guards hold.

    The first guard (from the top) that fails gives the fill; a write is dropped where any fails.
    """

    index: Coordinates
    guards: tuple[Guard, ...]

    @property
    def conditions(self) -> Coordinates:
        """All forms that must be >= 0."""
        return tuple([c for guard in self.guards for c in guard.conditions])

    def address(self, strides: Sequence[Expr | int]) -> Expr:
        """The linear position: sum of index times stride."""
        total = as_expr(0)
        for i, stride in zip(self.index, strides, strict=True):
            total = total + i * stride
        return total


@dataclass(frozen=True)
class View:
    """A stack of maps, uppermost first; without maps, the space itself."""

    upper: Dims
    maps: tuple[TransformMap, ...] = ()

    def __post_init__(self) -> None:
        above = self.upper
        for level, m in enumerate(self.maps):
            if len(above) != len(m.upper) or not all(
                a.name == b.name and proves_equal(a.size, b.size) for a, b in zip(above, m.upper, strict=True)
            ):
                raise ViewError(
                    f"map {level} of a view takes [{spaces.show(m.upper)}], but above it stands [{spaces.show(above)}]"
                )
            above = m.lower

    @property
    def lower(self) -> Dims:
        """The space at the bottom."""
        return self.maps[-1].lower if self.maps else self.upper

    def above(self) -> BottomUp:
        """A bottom-up builder of the next map on top."""
        from lithify.views.builders import BottomUp

        return BottomUp(self.upper, self)

    def below(self) -> TopDown:
        """A top-down builder of the next map at the bottom."""
        from lithify.views.builders import TopDown

        return TopDown(self.lower, self)

    def over(self, other: View) -> View:
        """This view on top of another one, whose upper space is this one's lower space."""
        return View(self.upper, self.maps + other.maps)

    def variables(self) -> Coordinates:
        """Fresh coordinates of the upper space, over the whole of it."""
        return tuple([var(d.name, d.size) for d in self.upper])

    def coordinates(self, at: Sequence[Expr | int] | Mapping[str, Expr | int] | None) -> Coordinates:
        """Upper coordinates in order: all fresh for None; those missing in a mapping are fresh."""
        if at is None:
            return self.variables()
        if isinstance(at, Mapping):
            names = {d.name for d in self.upper}
            if not names.issuperset(at):
                raise ViewError(f"no upper dims {sorted(set(at) - names)} in [{spaces.show(self.upper)}]")
            return tuple([as_expr(at[d.name]) if d.name in at else var(d.name, d.size) for d in self.upper])
        if len(at) != len(self.upper):
            raise ViewError(f"{len(at)} coordinates for [{spaces.show(self.upper)}]")
        return tuple([as_expr(i) for i in at])

    def path(self, at: Sequence[Expr | int] | Mapping[str, Expr | int] | None = None) -> Iterator[Coordinates]:
        """The coordinates at every level, uppermost first."""
        u = self.coordinates(at)
        yield u
        for m in self.maps:
            u = m.index(u)
            yield u

    def access(self, at: Sequence[Expr | int] | Mapping[str, Expr | int] | None = None) -> Access:
        """The lower coordinates and the conditions of a read; conditions that ranges or others imply are dropped."""
        u = self.coordinates(at)
        guards: list[Guard] = []
        for m in self.maps:
            u, found = m.step(u)
            guards += found
        return Access(u, needed(guards))

    def index(self, at: Sequence[Expr | int] | Mapping[str, Expr | int] | None = None) -> Coordinates:
        """The lower coordinates of upper ones."""
        return self.access(at).index

    def inverse(self) -> View:
        """The view from the lower space to the upper one. Raises ViewError where a transform has no inverse."""
        return View(self.lower, tuple([m.inverse() for m in reversed(self.maps)]))

    def strides(self) -> Coordinates:
        """The strides of the lower space when it is stored densely, the last dim fastest."""
        found: list[Expr] = []
        stride = as_expr(1)
        for d in reversed(self.lower):
            found.append(stride)
            stride = stride * d.size
        return tuple(reversed(found))

    def __str__(self) -> str:
        lines = [f"[{spaces.show(self.upper)}]"]
        for m in self.maps:
            lines += [f"  {line}" for line in str(m).splitlines()]
            lines.append(f"[{spaces.show(m.lower)}]")
        return "\n".join(lines)


def needed(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """The guards without the conditions that the ranges of variables or the conditions before them imply."""
    known: list[Expr] = []
    found = []
    for guard in guards:
        kept = [c for c in guard.conditions if not proves(c)]
        kept = [c for i, c in enumerate(kept) if c not in kept[:i] and not (known and proves(c, known))]
        if kept:
            found.append(Guard(tuple(kept), guard.fill))
            known += kept
    return tuple(found)
