"""The layout of an accumulator that is an array: chosen as its elements are made, put right in the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.arith import Expr
from lithify.lang.build import join, map_, pad_mode, proj, reduce_, split, take, transpose, zip_
from lithify.lang.term import Term, bound, lambda_, mentions, shift
from lithify.lang.types import Array
from lithify.rewrite.rule import Example, Refused, code_rule
from lithify.rewrite.strategy import Context

_ROWS = "λ (X : 3.2.4.f32). reduce (λacc x. map (+) (zip acc (join x))) (replicate 8 (f32 0)) X"


@code_rule(
    "accumulator-layout",
    "reduce (λacc x. **f (zip acc (L (e x)))) z xs -> L (reduce (λacc x. **f (zip acc (e x))) (R z) xs)",
    kinds="reduce",
    when=["L (R z) = z for L one of join, take n, T, or one of these inside of maps"],
    examples=[Example(_ROWS)],
    law="""A combination element by element does not ask where the elements lie: the accumulator is kept as its
    elements are made, and brought into order once, at the end.""",
)
def accumulator_layout(term: Term, context: Context) -> Term | None:
    """The nest of maps has as many dimensions as the accumulator, which no pattern of the notation matches."""
    del context
    function, initial, xs = term.args
    if term["level"] is not None or term["memory"] is not None:
        return None
    nest = _pointwise(function.args[0].args[0])
    if nest is None:
        return None
    layout = _layout(nest.operand)
    if layout is None:
        raise Refused("the new elements are not made by a join, a take or a transpose")
    names = layout.names(nest.names)
    if names is None:
        raise Refused("the combination is not element by element in every dimension that the layout moves")
    operand = layout.under

    def body(accumulator: Term) -> Term:
        return _nest(names, nest.combine, zip_(accumulator, operand))

    start = layout.inverse(initial)
    inner = lambda_(start.type, lambda_(function.args[0].attrs[0], body(bound(1, start.type))))
    return layout.forward(reduce_(inner, start, xs, name=term["name"]))


@dataclass(frozen=True)
class _Nest:
    """`**combine (zip acc operand)`: the maps' names from the outside in. Both terms are over acc and x."""

    names: tuple[str | None, ...]
    combine: Term
    operand: Term


def _pointwise(body: Term) -> _Nest | None:
    """The body of a reduction's function, over acc (index 1) and x (index 0), as a combination element by element."""
    if not _is_abstract_map(body) or body.args[1].kind != "zip" or len(body.args[1].args) != 2:
        return None
    accumulator, operand = body.args[1].args
    if accumulator.kind != "bound" or accumulator["index"] != 1 or mentions(operand, 1):
        return None
    names, combine, depth = [body["name"]], body.args[0], 0
    while True:
        inner = combine.args[0]
        if not (_is_abstract_map(inner) and _is_pair(inner.args[1]) and not mentions(inner.args[0], 0)):
            break
        names.append(inner["name"])
        combine, depth = inner.args[0], depth + 1
    combine = shift(combine, -depth)
    return None if mentions(combine, 1) else _Nest(tuple(names), combine, operand)


def _is_abstract_map(t: Term) -> bool:
    return t.kind == "map" and t["level"] is None


def _is_pair(t: Term) -> bool:
    """`zip r.0 r.1` of the innermost variable."""
    if t.kind != "zip" or len(t.args) != 2:
        return False
    return all(
        a.kind == "proj" and a["component"] == i and a.args[0].kind == "bound" and a.args[0]["index"] == 0
        for i, a in enumerate(t.args)
    )


def _nest(names: tuple[str | None, ...], combine: Term, pairs: Term) -> Term:
    """Maps of these names around the combination, over pairs of arrays."""
    if len(names) == 1:
        return map_(combine, pairs, name=names[0])
    return map_(
        lambda p: _nest(names[1:], combine, zip_(proj(0, p), proj(1, p))),
        pairs,
        name=names[0],
    )


@dataclass(frozen=True)
class _Layout:
    """A layout inside of `depth` maps and the array below; `size` is a join's width or the length before a take."""

    kind: str
    depth: int
    size: Expr
    kept: Expr
    under: Term

    def names(self, names: tuple[str | None, ...]) -> tuple[str | None, ...] | None:
        """The names of the nest over the array below; None where the nest has too few dimensions."""
        before, after = names[: self.depth], names[self.depth :]
        if len(after) < (2 if self.kind == "transpose" else 1):
            return None
        first = after[0]
        if self.kind == "join":
            parts = (f"{first}.block", f"{first}.tile") if first else (None, None)
            return (*before, *parts, *after[1:])
        return (*before, after[1], first, *after[2:]) if self.kind == "transpose" else names

    def forward(self, array: Term) -> Term:
        """The layout of an array."""
        one: dict[str, Callable[[Term], Term]] = {
            "join": join,
            "transpose": transpose,
            "take": lambda t: take(self.kept, t),
        }
        return _inside(self.depth, one[self.kind], array)

    def inverse(self, array: Term) -> Term:
        """An array whose layout is the given one."""
        one: dict[str, Callable[[Term], Term]] = {
            "join": lambda t: split(self.size, t),
            "transpose": transpose,
            "take": lambda t: pad_mode("clamp", 0, self.size - self.kept, t),
        }
        return _inside(self.depth, one[self.kind], array)


def _layout(operand: Term) -> _Layout | None:
    """The outermost layout of an array, below maps that contain nothing else."""
    depth, layout, under = 0, operand, operand
    while _is_abstract_map(layout):
        if depth == 0:
            under = layout.args[1]
        layout, depth = layout.args[0].args[0], depth + 1
    if layout.kind not in ("join", "take", "transpose"):
        return None
    source = layout.args[0]
    if depth == 0:
        under = source
    elif not _is_whole(operand, depth, source):
        return None
    row = source.type
    assert isinstance(row, Array)
    size = row.element.size if layout.kind == "join" and isinstance(row.element, Array) else row.size
    kept = layout.type.size if isinstance(layout.type, Array) else row.size
    return _Layout(layout.kind, depth, size, kept, under)


def _is_whole(operand: Term, depth: int, source: Term) -> bool:
    """Is the operand nothing but `depth` maps around the layout of their element?"""
    if source.kind != "bound" or source["index"] != 0:
        return False
    for _ in range(depth - 1):
        operand = operand.args[0].args[0]
        if operand.args[1].kind != "bound" or operand.args[1]["index"] != 0:
            return False
    return True


def _inside(depth: int, layout: Callable[[Term], Term], array: Term) -> Term:
    if depth == 0:
        return layout(array)
    return map_(lambda row: _inside(depth - 1, layout, row), array)
