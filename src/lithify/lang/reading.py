"""What reading a term costs, before anything has been written to memory."""

from __future__ import annotations

from lithify.lang.levels import LevelKind
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array

_NAMES = frozenset({"param", "bound", "const"})
_PARTS = frozenset({"proj", "tuple", "at", "index"})


def is_view(t: Term) -> bool:
    """Nothing but views of what lies in memory: whoever reads an element finds it there."""
    return t.kind in _NAMES or ((t.pattern.layout or t.kind in _PARTS) and all(map(is_view, t.args)))


def is_only_element(t: Term) -> bool:
    """The element of an array of one that is computed: who writes the array writes the element."""
    if t.kind != "at" or not isinstance(t.args[0].type, Array):
        return False
    return t.args[0].type.size.constant == 1 and not is_view(t.args[0])


def is_written(t: Term) -> bool:
    """Is an array written on the way to the value: for an only element, wherever it stands in a tuple or under lets?"""
    if t.kind == "tuple":
        return any(map(is_written, t.args))
    return is_written(t.args[1].args[0]) if t.kind == "let" else is_only_element(t)


def has_work(t: Term) -> bool:
    """Does reading an element compute anything? (Maps marked inline declare that it may be computed again.)"""
    seen: set[int] = set()
    stack = [t]
    while stack:
        u = stack.pop()
        if u.id in seen:
            continue
        seen.add(u.id)
        if u.kind == "op":
            return True
        inline = u.kind == "map" and u["level"] is not None and u["level"].kind is LevelKind.INLINE
        stack.extend(u.args[1:] if inline else u.args)
    return False


def permutations_of(t: Term) -> set[str]:
    """The parameters that say, as they are, where a permutation takes the elements."""
    scattered = (u for u in subterms(t) if u.kind == "scatter" and u["mode"] == "permutation")
    return {u.args[0]["name"] for u in scattered if u.args[0].kind == "param"}
