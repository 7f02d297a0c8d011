"""A stack of maps as a chain of the language's layout views: split, join, transpose, pad, take, drop, slide, ...

Dims are nested arrays, the first outermost. Each transform is applied where its lower dims stand next to each other;
transposes under maps bring them there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lithify.arith import Expr, ceil_div, maximum, proves
from lithify.lang import build
from lithify.lang.index_functions import index_function
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term
from lithify.lang.types import shape_of
from lithify.views import transforms as t
from lithify.views.errors import ViewError
from lithify.views.space import Dim, product, show
from lithify.views.view import TransformMap, View

Step = Callable[[Term], Term]


def as_term(view: View, below: Term) -> Term:
    """The term that shows `below`, an array over the view's lower dims, as an array over its upper dims."""
    sizes, _ = shape_of(below.type)
    if len(sizes) < len(view.lower) or any(a is not d.size for a, d in zip(sizes, view.lower, strict=False)):
        raise ViewError(f"a term of type {below.type} does not have the dims [{show(view.lower)}]")
    for m in reversed(view.maps):
        below = _map(m, below)
    return below


def inside(depth: int, step: Step, xs: Term) -> Term:
    """Apply a layout `depth` dims further in: map (map .. step)."""
    return step(xs) if depth == 0 else build.map_(lambda row: inside(depth - 1, step, row), xs)


def permuted(xs: Term, order: list[int]) -> Term:
    """Dims of nested arrays in another order: result dim i is dim order[i]; by transposes of neighbours."""
    current = list(range(len(order)))
    for target, wanted in enumerate(order):
        place = current.index(wanted)
        while place > target:
            place -= 1
            xs = inside(place, build.transpose, xs)
            current[place], current[place + 1] = current[place + 1], current[place]
    return xs


def _map(m: TransformMap, xs: Term) -> Term:
    # Transform by transform, lower dims become upper dims; a label is (side, name) while both are about.
    labels: list[tuple[str, str]] = [("lower", d.name) for d in m.lower]
    for transform in reversed(m.transforms):  # the first one's padding is seen first
        lower = [("lower", d.name) for d in transform.lower]
        upper = [("upper", d.name) for d in transform.upper]
        depth = min([labels.index(label) for label in lower]) if lower else _depth_of_new(m, transform, labels)
        rest = [label for label in labels if label not in lower]
        order = [*rest[:depth], *lower, *rest[depth:]]
        xs = permuted(xs, [labels.index(label) for label in order])
        xs = inside(depth, partial(_STEPS[type(transform)], transform), xs)
        labels = [*rest[:depth], *upper, *rest[depth:]]
    return permuted(xs, [labels.index(("upper", d.name)) for d in m.upper])


def _depth_of_new(m: TransformMap, transform: t.Transform, labels: list[tuple[str, str]]) -> int:
    """Where a dim with nothing below goes: after the dims that stand before it and are made already."""
    before = {d.name for d in m.upper[: m.upper.index(transform.upper[0])]}
    places = [i for i, (side, name) in enumerate(labels) if side == "upper" and name in before]
    return max(places, default=-1) + 1


def _same(_: t.Transform, xs: Term) -> Term:
    return xs


def _each_dim(step: Callable[[t.Transform, int, Term], Term]) -> Callable[[t.Transform, Term], Term]:
    """A transform of n dims to n dims, dim by dim."""

    def apply(transform: t.Transform, xs: Term) -> Term:
        for depth in range(len(transform.lower)):
            xs = inside(depth, partial(step, transform, depth), xs)
        return xs

    return apply


def _pad(transform: t.Transform, dim: int, xs: Term) -> Term:
    assert isinstance(transform, t.Pad)
    left, right = transform.left[dim], transform.right[dim]
    if transform.mode != "fill":
        return build.pad_mode(transform.mode, left, right, xs)
    return _filled(left, right, transform.value, xs)


def _filled(left: Expr, right: Expr, value: object, xs: Term) -> Term:
    scalar = shape_of(xs.type)[1]
    if not isinstance(scalar, Scalar):
        raise ViewError(f"padding of elements of type {scalar}: only scalars are padded with a value")
    return build.pad(left, right, build.const(value, scalar), xs)


def _slice(transform: t.Transform, dim: int, xs: Term) -> Term:
    assert isinstance(transform, t.Slice)
    return build.take(transform.upper[dim].size, build.drop(transform.begin[dim], xs))


def _broadcast(transform: t.Transform, dim: int, xs: Term) -> Term:
    size = transform.upper[dim].size
    return build.take(size, build.join(build.replicate(ceil_div(size, transform.lower[dim].size), xs)))


def _unmerge(transform: t.Transform, xs: Term) -> Term:
    for d in reversed(transform.upper[1:]):
        xs = build.split(d.size, xs)
    return xs


def _merge(transform: t.Transform, xs: Term) -> Term:
    for _ in transform.lower[1:]:
        xs = build.join(xs)
    return xs


def _add_dim(transform: t.Transform, xs: Term) -> Term:
    return build.replicate(transform.upper[0].size, xs)


def _const_dim(transform: t.Transform, xs: Term) -> Term:
    assert isinstance(transform, t.ConstDim)
    for value in transform.values:
        xs = build.at(xs, value)
    return xs


def _reindex(transform: t.Transform, xs: Term) -> Term:
    assert isinstance(transform, t.Reindex)
    return build.reindex(transform.function, xs)


def _xor(transform: t.Transform, xs: Term) -> Term:
    assert isinstance(transform, t.Xor)
    rows, chunks = [d.size for d in transform.lower]
    total = rows * chunks

    def swizzled(p: Expr) -> Expr:
        row, chunk = transform.index((p // chunks, p % chunks))
        return row * chunks + chunk

    function = index_function(f"xor {transform.period} {chunks}", total, total, swizzled, swizzled)
    return build.split(chunks, build.reindex(function, build.join(xs)))


def _embed(transform: t.Transform, xs: Term) -> Term:
    """Windows by slide where one coefficient is 1 and another is not negative; else an index function."""
    assert isinstance(transform, t.Embed)
    low, high = transform.interval()
    if low is None or high is None:
        raise ViewError(f"{transform}: the signs of the coefficients are not known")
    size = transform.lower[0].size
    before, after = maximum(-low, 0), maximum(high - size + 1, 0)
    if before.constant != 0 or after.constant != 0:
        xs = _filled(before, after, transform.value, xs)
    window = _window(transform)
    if window is not None:
        inner, outer = window
        step = transform.coefficients[outer]
        start = transform.offset + before
        extent, count = transform.upper[inner].size, transform.upper[outer].size
        xs = build.drop(start, xs)
        xs = build.take(count, build.slide(extent, step, xs))
        return xs if outer < inner else build.transpose(xs)
    return _by_function(transform, before, size + before + after, xs)


def _window(transform: t.Embed) -> tuple[int, int] | None:
    """(inner, outer) where the dim of coefficient 1 moves within a window and the other one moves the window."""
    if len(transform.upper) == 2:
        for inner, outer in ((0, 1), (1, 0)):
            if transform.coefficients[inner].constant == 1 and proves(transform.coefficients[outer] - 1):
                return inner, outer
    return None


def _by_function(transform: t.Embed, before: Expr, source: Expr, xs: Term) -> Term:
    coefficients = ", ".join(map(str, transform.coefficients))
    merge = t.Merge((Dim("all", product(transform.upper)),), transform.upper)

    def place(p: Expr) -> Expr:
        return transform.index(merge.index((p,)))[0] + before

    function = index_function(f"embed {coefficients} of {merge.parameters()}", merge.upper[0].size, source, place)
    return _unmerge(transform, build.reindex(function, xs))


_STEPS: dict[type[t.Transform], Callable[[t.Transform, Term], Term]] = {
    t.PassThrough: _same,
    t.Pad: _each_dim(_pad),
    t.Slice: _each_dim(_slice),
    t.Embed: _embed,
    t.Unmerge: _unmerge,
    t.Merge: _merge,
    t.AddDim: _add_dim,
    t.Broadcast: _each_dim(_broadcast),
    t.ConstDim: _const_dim,
    t.Xor: _xor,
    t.Reindex: _reindex,
}
