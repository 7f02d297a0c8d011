"""The layout patterns of the language as transforms: the other direction of `elaborate`.

`layout_of` says what one pattern does to the array below it; `view_of` gathers a whole chain of layouts, abstract maps
of layouts included, into one view of the array at the bottom.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from lithify.arith import Expr
from lithify.lang.build import constant_value
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term
from lithify.lang.types import shape_of
from lithify.views.builders import BottomUp
from lithify.views.errors import ViewError
from lithify.views.space import Dim
from lithify.views.view import View

Fresh = Callable[[], str]
Step = Callable[[Term, View, int, Fresh], View]


def layout_of(node: Term) -> View:
    """The view that a layout pattern is, over the dims of the array right below it.

    Raises ViewError for terms that are no layout of one array (zip, concat and gather are of several).
    """
    if not is_layout(node):
        raise ViewError(f"{node.kind} is not a layout of one array")
    return _stack([(node, 0)], node.args[0])


def view_of(term: Term) -> tuple[View, Term]:
    """A chain of layouts as a view, and the term at its bottom (the term itself where it is no layout)."""
    steps, bottom = _chain(term, 0)
    return _stack(steps, bottom), bottom


def is_layout(node: Term) -> bool:
    """Is the term a layout of one array, its padding (if any) a constant?"""
    if node.kind == "pad" and node["mode"] == "fill":
        return _fill(node) is not None
    return node.kind in _STEPS


def _fill(node: Term) -> object | None:
    """The constant that a pad fills with, or None; a scalar that is spread over rows stands under replicates."""
    fill = node.args[1]
    while fill.kind == "replicate":
        fill = fill.args[0]
    return constant_value(fill) if fill.kind == "const" else None


def _chain(term: Term, depth: int) -> tuple[list[tuple[Term, int]], Term]:
    """The layouts of a chain, uppermost first, each with the dim where it acts, and what stands below them."""
    steps: list[tuple[Term, int]] = []
    while True:
        if is_layout(term):
            steps.append((term, depth))
            term = term.args[0]
        elif term.kind == "map" and term["level"] is None:
            inner, bottom = _chain(term.args[0].args[0], depth + 1)
            if bottom.kind != "bound" or bottom["index"] != 0:
                return steps, term
            steps += inner
            term = term.args[1]
        else:
            return steps, term


def _stack(steps: list[tuple[Term, int]], bottom: Term) -> View:
    numbers = count()

    def fresh() -> str:
        return f"d{next(numbers)}"

    view = View(tuple([Dim(fresh(), size) for size in shape_of(bottom.type)[0]]))
    for node, depth in reversed(steps):
        view = _STEPS[node.kind](node, view, depth, fresh)
    return view


def _finish(builder: BottomUp, view: View, used: int, depth: int) -> View:
    """The other dims as they are: `used` dims from `depth` on have their transform already."""
    rest = [i for i in range(len(view.upper)) if not depth <= i < depth + used]
    return builder.passthrough(*rest).get()


def _split(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    size: Expr = node["size"]
    rows = view.upper[depth].size // size
    return _finish(view.above().unmerge(depth, {fresh(): rows, fresh(): size}), view, 1, depth)


def _join(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    return _finish(view.above().merge(fresh(), [depth, depth + 1]), view, 2, depth)


def _transpose(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    names = [d.name for d in view.upper]
    names[depth], names[depth + 1] = names[depth + 1], names[depth]
    return view.above().passthrough(*range(len(names))).get(names)


def _take(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    return _finish(view.above().slice(depth, 0, node["size"], fresh()), view, 1, depth)


def _drop(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    return _finish(view.above().slice(depth, node["size"], view.upper[depth].size, fresh()), view, 1, depth)


def _slide(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    size: Expr = node["size"]
    step: Expr = node["step"]
    windows = (view.upper[depth].size - size) // step + 1
    return _finish(view.above().embed(depth, {fresh(): windows, fresh(): size}, [step, 1]), view, 1, depth)


def _pad(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    left, right, mode = node.attrs
    value = _fill(node) if mode == "fill" else 0
    return _finish(view.above().pad(depth, left, right, fresh(), mode, value), view, 1, depth)


def _replicate(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    return _finish(view.above().add_dim(fresh(), node["size"], position=depth), view, 0, depth)


def _reindex(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    return _finish(view.above().reindex(depth, node["function"], fresh()), view, 1, depth)


def _swz(node: Term, view: View, depth: int, fresh: Fresh) -> View:
    """Columns as (row of `width` bytes, 16-byte chunk, element); the chunk xored; columns again."""
    scalar = shape_of(node.type)[1]
    if not isinstance(scalar, Scalar):
        raise ViewError(f"swz of elements of type {scalar}: chunks are of scalars")
    width: int = node["width"]
    each, chunks = 16 // scalar.bytes, width // 16
    columns = view.upper[depth + 1].size
    outer, chunk, element = fresh(), fresh(), fresh()
    parts: dict[str, Expr | int] = {outer: columns // (each * chunks), chunk: chunks, element: each}
    view = _finish(view.above().unmerge(depth + 1, parts), view, 1, depth + 1)
    swizzle = view.above().xor(depth, chunk, period=128 // width)
    view = swizzle.passthrough(*[d.name for i, d in enumerate(view.upper) if i != depth and d.name != chunk]).get()
    return _finish(view.above().merge(fresh(), [outer, chunk, element]), view, 3, depth + 1)


_STEPS: dict[str, Step] = {
    "split": _split,
    "join": _join,
    "transpose": _transpose,
    "take": _take,
    "drop": _drop,
    "slide": _slide,
    "pad": _pad,
    "replicate": _replicate,
    "reindex": _reindex,
    "swz": _swz,
}
