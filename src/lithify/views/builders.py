"""Builders of maps, top-down (the upper space is given) and bottom-up (the lower space is given).

Both take the given dims by name or by position, and put what a dim becomes in that dim's place; `get(order)` freezes
the map (in another order, if one is given) and returns the whole view. Every given dim must be used exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from lithify.arith import Expr, as_expr
from lithify.lang.index_functions import IndexFunction
from lithify.views import space as spaces
from lithify.views import transforms as t
from lithify.views.errors import ViewError
from lithify.views.space import Dim, Dims
from lithify.views.view import TransformMap, View

Size = Expr | int
Name = str | int
Sizes = Mapping[str, Size]


class _Builder:
    """What both builders share: the given dims, the transforms so far, and where the new dims will stand."""

    def __init__(self, given: Dims, base: View | None = None) -> None:
        self._given = given
        self._base = base
        self._transforms: list[t.Transform] = []
        self._made: list[tuple[float, Dim]] = []  # (place, dim)
        self._used: set[str] = set()

    def dim(self, name: Name) -> Dim:
        """A given dim, by its name or position."""
        if isinstance(name, int):
            if not -len(self._given) <= name < len(self._given):
                raise ViewError(f"no dim at position {name} in [{spaces.show(self._given)}]")
            return self._given[name]
        for d in self._given:
            if d.name == name:
                return d
        raise ViewError(f"no dim {name!r} in [{spaces.show(self._given)}]")

    def xor(self, row: Name, chunk: Name, period: int = 1) -> Self:
        """Swizzle: `chunk` xored with (row div period) mod size.; the same in both directions."""
        used = self._use((row, chunk))
        self._add(t.Xor(used, used, period), (), 0.0)
        self._made += [(self._place((d,)), d) for d in used]
        return self

    def _use(self, names: Sequence[Name]) -> Dims:
        found = tuple([self.dim(name) for name in names])
        for d in found:
            if d.name in self._used:
                raise ViewError(f"dim {d.name!r} of [{spaces.show(self._given)}] is used twice")
            self._used.add(d.name)
        return found

    def _add(self, transform: t.Transform, made: Dims, place: float) -> Self:
        self._transforms.append(transform)
        self._made += [(place, d) for d in made]
        return self

    def _place(self, used: Dims, position: int | None = None) -> float:
        if position is not None:
            return position - 0.5  # before the dim that stands there
        return min([float(self._given.index(d)) for d in used], default=float(len(self._given)))

    def _finish(self, order: Sequence[str] | None) -> Dims:
        unused = [d for d in self._given if d.name not in self._used]
        if unused:
            raise ViewError(f"dims [{spaces.show(tuple(unused))}] are not used by any transform")
        made = tuple([d for _, d in sorted(self._made, key=lambda entry: entry[0])])
        spaces.check(made)
        if order is None:
            return made
        by_name = {d.name: d for d in made}
        if sorted(order) != sorted(by_name):
            raise ViewError(f"order {list(order)} does not name each of [{spaces.show(made)}] once")
        return tuple([by_name[name] for name in order])


def _names(dim: Name | Sequence[Name]) -> tuple[Name, ...]:
    return (dim,) if isinstance(dim, (str, int)) else tuple(dim)


def _renamed(used: Dims, names: Sequence[str] | str | None) -> tuple[str, ...]:
    if names is None:
        return tuple([d.name for d in used])
    found = (names,) if isinstance(names, str) else tuple(names)
    if len(found) != len(used):
        raise ViewError(f"names {list(found)} for [{spaces.show(used)}]")
    return found


class BottomUp(_Builder):
    """Builds the map above a given lower space: each method says what some lower dims look like from above."""

    def get(self, order: Sequence[str] | None = None) -> View:
        """Freeze the map; the view with it on top."""
        upper = self._finish(order)
        m = TransformMap(upper, self._given, tuple(self._transforms))
        return View(upper, (m, *(self._base.maps if self._base else ())))

    def passthrough(self, *names: Name, upper: Sequence[str] | str | None = None) -> Self:
        """Dims as they are; `upper` renames them."""
        for d, new in zip(used := self._use(names), _renamed(used, upper), strict=True):
            made = (Dim(new, d.size),)
            self._add(t.PassThrough(made, (d,)), made, self._place((d,)))
        return self

    def pad(
        self,
        name: Name | Sequence[Name],
        left: Size | tuple[Size, ...],
        right: Size | tuple[Size, ...],
        upper: Sequence[str] | str | None = None,
        mode: str = "fill",
        value: Any = 0,
    ) -> Self:
        """`left` and `right` more elements."""
        used = self._use(_names(name))
        lefts, rights = t.amounts(left, len(used)), t.amounts(right, len(used))
        for d, new, before, after in zip(used, _renamed(used, upper), lefts, rights, strict=True):
            made = (Dim(new, d.size + before + after),)
            self._add(t.Pad(made, (d,), (before,), (after,), mode, value), made, self._place((d,)))
        return self

    def slice(self, name: Name, begin: Size, end: Size, upper: str | None = None) -> Self:
        """The elements begin <= i < end."""
        used = self._use((name,))
        made = (Dim(upper or used[0].name, as_expr(end) - begin),)
        return self._add(t.Slice(made, used, (as_expr(begin),)), made, self._place(used))

    def embed(self, name: Name, upper: Sizes, coefficients: Sequence[Size], offset: Size = 0, value: Any = 0) -> Self:
        """The dim as offset + sum coefficient u over several upper dims."""
        used, made = self._use((name,)), spaces.dims(upper)
        embed = t.Embed(made, used, tuple(map(as_expr, coefficients)), as_expr(offset), value)
        return self._add(embed, made, self._place(used))

    def unmerge(self, name: Name, upper: Sizes) -> Self:
        """The dim as several, the last one fastest."""
        used, made = self._use((name,)), spaces.dims(upper)
        return self._add(t.Unmerge(made, used), made, self._place(used))

    def merge(self, upper: str, names: Sequence[Name], position: int | None = None) -> Self:
        """Several dims as one, the last one fastest; it stands where the first of them stands."""
        used = self._use(names)
        made = (Dim(upper, spaces.product(used)),)
        return self._add(t.Merge(made, used), made, self._place(used, position))

    def add_dim(self, upper: str, size: Size, position: int | None = None) -> Self:
        """A dim that shows the same everywhere; last, or before the given dim at `position`."""
        made = (Dim(upper, as_expr(size)),)
        return self._add(t.AddDim(made, ()), made, self._place((), position))

    def broadcast(self, name: Name, size: Size, upper: str | None = None) -> Self:
        """The dim repeated up to `size`."""
        used = self._use((name,))
        made = (Dim(upper or used[0].name, as_expr(size)),)
        return self._add(t.Broadcast(made, used), made, self._place(used))

    def reindex(self, name: Name, function: IndexFunction, upper: str | None = None) -> Self:
        """The dim read through an index function."""
        used = self._use((name,))
        made = (Dim(upper or used[0].name, function.extent),)
        return self._add(t.Reindex(made, used, function), made, self._place(used))


class TopDown(_Builder):
    """Builds the map below a given upper space: each method says what some upper dims mean below."""

    def get(self, order: Sequence[str] | None = None) -> View:
        """Freeze the map; the view with it at the bottom."""
        lower = self._finish(order)
        m = TransformMap(self._given, lower, tuple(self._transforms))
        upper, maps = (self._base.upper, self._base.maps) if self._base else (self._given, ())
        return View(upper, (*maps, m))

    def passthrough(self, *names: Name, lower: Sequence[str] | str | None = None) -> Self:
        """Dims as they are; `lower` renames them."""
        for d, new in zip(used := self._use(names), _renamed(used, lower), strict=True):
            made = (Dim(new, d.size),)
            self._add(t.PassThrough((d,), made), made, self._place((d,)))
        return self

    def pad(
        self,
        name: Name | Sequence[Name],
        left: Size | tuple[Size, ...],
        right: Size | tuple[Size, ...],
        lower: Sequence[str] | str | None = None,
        mode: str = "fill",
        value: Any = 0,
    ) -> Self:
        """The dims are padded views of dims that have `left` and `right` fewer elements."""
        used = self._use(_names(name))
        lefts, rights = t.amounts(left, len(used)), t.amounts(right, len(used))
        for d, new, before, after in zip(used, _renamed(used, lower), lefts, rights, strict=True):
            made = (Dim(new, d.size - before - after),)
            self._add(t.Pad((d,), made, (before,), (after,), mode, value), made, self._place((d,)))
        return self

    def embed(
        self, lower: str, size: Size, names: Sequence[Name], coefficients: Sequence[Size], offset: Size = 0,
        value: Any = 0,
    ) -> Self:  # fmt: skip
        """A lower dim of `size` at offset + sum coefficient u."""
        used, made = self._use(names), (Dim(lower, as_expr(size)),)
        embed = t.Embed(used, made, tuple(map(as_expr, coefficients)), as_expr(offset), value)
        return self._add(embed, made, self._place(used))

    def unmerge(self, lower: str, names: Sequence[Name]) -> Self:
        """Several upper dims are parts of one lower dim, the last one fastest."""
        used = self._use(names)
        made = (Dim(lower, spaces.product(used)),)
        return self._add(t.Unmerge(used, made), made, self._place(used))

    def merge(self, name: Name, lower: Sizes) -> Self:
        """An upper dim runs over several lower dims of the given sizes, the last one fastest."""
        used, made = self._use((name,)), spaces.dims(lower)
        return self._add(t.Merge(used, made), made, self._place(used))

    def ignore(self, *names: Name) -> Self:
        """Dims that mean nothing below."""
        for d in self._use(names):
            self._add(t.AddDim((d,), ()), (), 0.0)
        return self

    def const_dim(self, lower: str, value: Size, size: Size, position: int | None = None) -> Self:
        """A lower dim held at one coordinate; last, or before what becomes of the dim at `position`."""
        made = (Dim(lower, as_expr(size)),)
        return self._add(t.ConstDim((), made, (as_expr(value),)), made, self._place((), position))

    def reindex(self, name: Name, function: IndexFunction, lower: str | None = None) -> Self:
        """The dim means f(u) below."""
        used = self._use((name,))
        made = (Dim(lower or used[0].name, function.source),)
        return self._add(t.Reindex(used, made, function), made, self._place(used))


def bottom_up(sizes: Sizes | Sequence[tuple[str, Size]] | None = None, **named: Size) -> BottomUp:
    """A bottom-up builder over a lower space: `bottom_up(k=64, c=32)` or `bottom_up([("k", 64), ("c", 32)])`."""
    return BottomUp(spaces.dims(named if sizes is None else sizes))


def top_down(sizes: Sizes | Sequence[tuple[str, Size]] | None = None, **named: Size) -> TopDown:
    """A top-down builder under an upper space."""
    return TopDown(spaces.dims(named if sizes is None else sizes))
