"""Dimensions of a space: a name and a size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lithify.arith import Expr, as_expr, const
from lithify.views.errors import ViewError


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension: its coordinates are 0 <= i < size."""

    name: str
    size: Expr

    def __str__(self) -> str:
        return f"{self.name} {self.size}"


Dims = tuple[Dim, ...]


def dims(sizes: Mapping[str, Expr | int] | Iterable[tuple[str, Expr | int]]) -> Dims:
    """The dims of names and sizes, in order. Raises ViewError where a name occurs twice or a size may be negative."""
    pairs = sizes.items() if isinstance(sizes, Mapping) else sizes
    found = tuple([Dim(name, as_expr(size)) for name, size in pairs])
    check(found)
    return found


def check(space: Dims) -> None:
    """Raise ViewError where a name occurs twice or a size may be negative."""
    seen: set[str] = set()
    for dim in space:
        if dim.name in seen:
            raise ViewError(f"dim {dim.name!r} occurs twice in [{show(space)}]")
        if dim.size.lo < 0:
            raise ViewError(f"dim {dim.name!r} has size {dim.size}, which may be negative")
        seen.add(dim.name)


def show(space: Dims) -> str:
    """The dims as text."""
    return ", ".join(map(str, space))


def product(space: Dims) -> Expr:
    """The number of elements of the space."""
    total = const(1)
    for d in space:
        total = total * d.size
    return total


def quoted(space: Dims) -> str:
    """The names as a list in brackets: ``["c", "y", "x"]``."""
    return "[" + ", ".join([f'"{d.name}"' for d in space]) + "]"
