"""How much there is to do: scalar operations and elements read or written, counted from a term without running it."""

from __future__ import annotations

from lithify.arith import Expr
from lithify.lang.levels import INLINE
from lithify.lang.term import Term, below_parameters
from lithify.lang.types import Array, Tuple, Type, shape_of

# What a size counts for that is not known before the call: large enough for all that large sizes are worth.
SYMBOLIC_SIZE = 1 << 20
# A size with a bound counts for so many times the bound, unless that is less than this: such a bound says what a
# program needs (two rows, say, to have a difference), not what it is called with.
_TYPICAL, _TELLING = 4, 32
# Roughly how many vector additions one takes, on machines without an instruction for it.
_COSTLY = {"exp": 8, "log": 8, "sin": 12, "cos": 12, "tan": 16, "tanh": 12, "erf": 12, "pow": 20, "div": 4, "sqrt": 4,
           "rsqrt": 6}  # fmt: skip


def count(size: Expr) -> int:
    """A size as a number: where it is not known, what it comes to if those that it is made of are large, or some times
    the bounds that they have, where these tell something.

    So a part of a large size (the number of its blocks) is less than it is, and what is about as large counts the same.
    """
    if size.constant is not None:
        return size.constant
    value = size.evaluate({v: _TYPICAL * int(v.lo) if v.lo >= _TELLING else SYMBOLIC_SIZE for v in size.variables()})
    return SYMBOLIC_SIZE if value > SYMBOLIC_SIZE // 2 else max(1, int(value))


def size_of(t: Term) -> Expr:
    """The length of an array term."""
    assert isinstance(t.type, Array)
    return t.type.size


def length_of(t: Term) -> int:
    """The length of an array term, as a number."""
    assert isinstance(t.type, Array)
    return count(t.type.size)


def is_constant(t: Term) -> bool:
    """Is the length of an array term known before the call?"""
    assert isinstance(t.type, Array)
    return t.type.size.constant is not None


def is_at_most(t: Term, most: int) -> bool:
    """Is the length of an array term known before the call, and at most so many?

    (`length_of` makes a small number of a length that only has a small bound: it tells what pays, not what fits.)
    """
    return is_constant(t) and length_of(t) <= most


def is_bounded(type_: Type) -> bool:
    """Are all lengths of arrays in a type known before the call?"""
    sizes, element = shape_of(type_)
    inside = all(map(is_bounded, element.items)) if isinstance(element, Tuple) else True
    return inside and all(s.constant is not None for s in sizes)


def elements(type_: Type) -> int:
    """How many scalars a value of the type holds."""
    sizes, element = shape_of(type_)
    total = sum(map(elements, element.items)) if isinstance(element, Tuple) else 1
    for size in sizes:
        total *= count(size)
    return total


def work(t: Term) -> int:
    """Scalar operations that computing the value takes; a copied element counts as one.

    What is computed by those who read it (`map[inline]`) is left out.
    """
    memo: dict[int, int] = {}

    def go(u: Term) -> int:
        found = memo.get(u.id)
        if found is None:
            memo[u.id] = found = _own(u) + sum(go(a) for a in u.args if a.kind != "lambda")
        return found

    def _own(u: Term) -> int:
        kind = u.kind
        if kind == "op":
            return _COSTLY.get(u["operator"].name, 1)
        if kind == "map" and u["level"] == INLINE:
            return 0
        if kind in ("map", "reduce", "scan"):
            return length_of(u.args[-1]) * max(1, go(body_of(u.args[0])))
        if kind == "generate":
            return count(u["size"]) * max(1, go(body_of(u.args[0])))
        if kind == "iterate":
            return count(u["count"]) * max(1, go(body_of(u.args[0])))
        if kind == "pipe":
            return length_of(u.args[3]) * (go(body_of(u.args[0])) + go(body_of(u.args[1])))
        if kind == "let":
            return go(body_of(u.args[1]))
        return 0

    return go(t)


def body_of(function: Term) -> Term:
    """A function's body, below all its parameters."""
    return below_parameters(function)[0]
