"""What reading a term costs, before anything has been written to memory."""

from __future__ import annotations

from lithify.lang.levels import LevelKind
from lithify.lang.term import Term


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
