"""Context holes: finding a subterm that could stand outside, and replacing it."""

from __future__ import annotations

from collections.abc import Callable

from lithify.lang.term import BOUND, LAMBDA, Term, bound, dangling, mentions, rebuild, shift


def find(term: Term, wanted: Callable[[Term], bool], binders: int = 0) -> Term | None:
    """The first subterm (outermost, leftmost) that satisfies `wanted` and mentions no variable bound above it.

    With `binders` = n, the term is the body of n lambdas whose variables may not be mentioned either. The result is
    valid outside of all these lambdas.
    """
    seen: set[tuple[int, int]] = set()

    def go(t: Term, depth: int) -> Term | None:
        if (t.id, depth) in seen:
            return None
        seen.add((t.id, depth))
        if wanted(t) and not any(i < depth for i in dangling(t)):
            return shift(t, -depth)
        inner = depth + 1 if t.pattern.name == LAMBDA else depth
        for argument in t.args:
            found = go(argument, inner)
            if found is not None:
                return found
        return None

    return go(term, binders)


def plug(term: Term, old: Term, new: Term, binders: int = 0) -> Term:
    """Every occurrence of `old` in the term replaced by `new`; both are valid outside of `binders` lambdas above it."""

    def leaf(t: Term, d: int) -> Term | None:
        if t.type is old.type and t is shift(old, d + binders):
            return shift(new, d + binders)
        return None

    return rebuild(term, leaf)


def carve(
    body: Term, wanted: Callable[[Term], bool] | None = None, *, without: tuple[int, ...] = (), whole: bool
) -> tuple[Term, Term] | None:
    """Split a function's body at a subterm that mentions its variable 0: (g, rest) with body = rest[0 := g].

    g is the largest proper subterm that mentions no variable bound inside the body and none of the indices `without`,
    that satisfies `wanted`. In `rest`, index 0 stands for the value of g and the body's own indices
    are moved up by one. With `whole`, only g may mention variable 0, so that `rest` does not mention index 1.
    """
    stack = [(body, 0)]
    while stack:
        t, depth = stack.pop()
        name, free = t.pattern.name, dangling(t)
        if t is not body and name not in (BOUND, LAMBDA) and depth in free and (wanted is None or wanted(t)):
            if not any(i < depth or i - depth in without for i in free):
                g = shift(t, -depth)
                rest = plug(shift(body, 1), shift(g, 1), bound(0, g.type))
                if not whole or not mentions(rest, 1):
                    return g, rest
        inner = depth + 1 if name == LAMBDA else depth
        stack.extend((a, inner) for a in reversed(t.args) if inner in dangling(a))
    return None
