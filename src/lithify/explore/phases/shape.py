"""What the filters of the first phase look at: the loops of a program, how deep they nest, what lies between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lithify.lang.term import Term, subterms
from lithify.lang.types import shape_of
from lithify.lowering.needs import is_layout_map

_LOOPS = ("map", "reduce", "scan")


@dataclass(frozen=True)
class Nest:
    """A loop that does something, and the loops directly inside of it, views aside: outermost first."""

    loop: Term
    inside: tuple[Term, ...]

    def names(self, depth: int) -> tuple[str, ...]:
        """The names of the loop and the next `depth - 1` inside of it."""
        return tuple(t["name"] for t in (self.loop, *self.inside[: depth - 1]))


def nests(program: Term) -> Iterator[Nest]:
    """Every loop that is no mere view, once, with the maps directly inside of it."""
    for term in subterms(program):
        if is_loop(term):
            inside, body = [], term.args[0].args[0]
            while term.kind == "map" and is_loop(body) and body.kind == "map":
                inside.append(body)
                body = body.args[0].args[0]
            yield Nest(term, tuple(inside))


def is_loop(term: Term) -> bool:
    """A map, reduction or scan that computes: no map that only shows elements otherwise."""
    return term.kind in _LOOPS and not is_layout_map(term) and not _is_view_map(term)


def _is_view_map(term: Term) -> bool:
    """A map of views of the element, padding and windows included."""
    if term.kind != "map" or term["level"] is not None:
        return False
    body = term.args[0].args[0]
    while body.pattern.layout and body.kind not in ("zip", "unzip", "concat", "gather"):
        body = body.args[0]
    return body.kind == "bound" or (body.kind == "map" and _is_view_map(body) and body.args[1].kind == "bound")


def nesting_depth(program: Term) -> int:
    """How many loops stand one inside of the other, at most."""
    memo: dict[int, int] = {}

    def depth(term: Term) -> int:
        found = memo.get(term.id)
        if found is None:
            below = max([depth(a) for a in term.args], default=0)
            memo[term.id] = found = below + is_loop(term)
        return found

    return depth(program)


def distance(program: Term) -> int:
    """How many loops lie between a reduction's combination and the operations that make what it combines.

    0 where each element is combined as soon as it is made, in the same loop body; 1 where a loop of its own makes them;
    the largest over all such operations. (For matrix multiplication: between the addition and the multiplication.)
    """
    combinations: list[tuple[Term, ...]] = []
    others: list[tuple[Term, ...]] = []
    for is_combination, around in _operations(program, (), ()):
        (combinations if is_combination else others).append(around)
    if not combinations:
        return 0
    return max([min(_between(o, c) for c in combinations) for o in others], default=0)


def _between(a: tuple[Term, ...], b: tuple[Term, ...]) -> int:
    """Loops that stand around one of two places only."""
    common = 0
    while common < min(len(a), len(b)) and a[common] is b[common]:
        common += 1
    return len(a) + len(b) - 2 * common


# A variable (its index) or a component of it that holds an accumulator.
_Held = tuple[tuple[int, tuple[int, ...]], ...]


def _operations(t: Term, held: _Held, around: tuple[Term, ...]) -> Iterator[tuple[bool, tuple[Term, ...]]]:
    """Every operation: whether an operand of it is an accumulator, and the loops around it."""
    if t.kind == "op":
        yield any(_holds(a, held) for a in t.args), around
    if t.kind not in _LOOPS:
        for child in t.args:
            yield from _operations(child, _below(held, 1) if t.kind == "lambda" else held, around)
        return
    inner = (*around, t) if is_loop(t) else around
    function, *operands = t.args
    if t.kind == "map":
        (xs,) = operands
        parts = xs.args if xs.kind == "zip" else ()
        own: _Held = tuple((0, (i,)) for i, part in enumerate(parts) if _holds(part, held))
        if _holds(xs, held):
            own = ((0, ()),)
        yield from _operations(function.args[0], (*own, *_below(held, 1)), inner)
    else:
        yield from _operations(function.args[0].args[0], ((1, ()), *_below(held, 2)), inner)
    for operand in operands:
        yield from _operations(operand, held, inner)


def _below(held: _Held, binders: int) -> _Held:
    return tuple((index + binders, components) for index, components in held)


def _holds(t: Term, held: _Held) -> bool:
    """Is a term an accumulator, or a view of one?"""
    components: list[int] = []
    while t.kind == "proj" or (t.pattern.layout and len(t.args) == 1):
        if t.kind == "proj":
            components.insert(0, t["component"])
        t = t.args[0]
    return t.kind == "bound" and (t["index"], tuple(components)) in held


def blocked_dimensions(program: Term) -> int:
    """The most dimensions of what an innermost reduction accumulates: 0 for a sum of scalars, 2 for register tiles."""
    found = 0
    for term in subterms(program):
        if term.kind == "reduce" and not any(t.kind == "reduce" for t in subterms(term.args[0])):
            found = max(found, len(shape_of(term.type)[0]))
    return found
