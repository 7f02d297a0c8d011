"""Traversals: where in a term a strategy is applied.

`topdown`, `bottomup` and `at` apply it at one place, the first where it applies; `everywhere` at every place where it
applies; `outermost` and `innermost` until it applies nowhere. Terms are shared and never change, so a term in which a
strategy is known to fire nowhere is not searched again.
"""

from __future__ import annotations

from collections.abc import Callable

from lithify.lang.errors import RewriteFailed
from lithify.lang.term import Term, subterms
from lithify.rewrite.strategy import Context, Failure, Path, Strategy, loop_name, repeat

Predicate = Callable[[Term], bool]
Where = str | Path | Predicate


class only(Strategy):
    """s on terms that a predicate holds of; fails on others."""

    def __init__(self, predicate: Predicate, s: Strategy, name: str) -> None:
        self.predicate, self.part = predicate, s
        self.name = f"{name}({s.name})"
        self._failure = Failure(self)

    def run(self, term: Term, context: Context) -> Term | Failure:
        return self.part.run(term, context) if self.predicate(term) else self._failure

    def rules(self) -> tuple[Strategy, ...]:
        return (self.part,)

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        if not self.predicate(term):
            return None, f"{self.name} is for other terms"
        return self.part.diagnose(term, context)


class _Traversal(Strategy):
    """A strategy that applies another one further down."""

    word = ""

    def __init__(self, s: Strategy) -> None:
        self.part = s
        self.name = f"{self.word}({s.name})"
        self._failure = Failure(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _Traversal) and other.part == self.part

    def __hash__(self) -> int:
        return hash((self.word, self.part))

    def rules(self) -> tuple[Strategy, ...]:
        return (self.part,)

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        return closest(self.part, term, context)

    def child(self, term: Term, index: int, context: Context) -> Term | Failure:
        """The inner strategy on a child."""
        context.path.append(index)
        try:
            return self.part.run(term.args[index], context)
        finally:
            context.path.pop()


class all_(_Traversal):
    """s on every child; fails if it fails on one."""

    word = "all"

    def run(self, term: Term, context: Context) -> Term | Failure:
        mark, args = context.mark(), []
        for index in range(len(term.args)):
            result = self.child(term, index, context)
            if isinstance(result, Failure):
                context.back(mark)
                return self._failure
            args.append(result)
        return context.rebuild(term, tuple(args))


class some(_Traversal):
    """s on every child where it applies; fails if there is none."""

    word = "some"

    def run(self, term: Term, context: Context) -> Term | Failure:
        args, applied = list(term.args), False
        for index in range(len(args)):
            result = self.child(term, index, context)
            if not isinstance(result, Failure):
                args[index], applied = result, True
        return context.rebuild(term, tuple(args)) if applied else self._failure


class one(_Traversal):
    """s on the first child where it applies."""

    word = "one"

    def run(self, term: Term, context: Context) -> Term | Failure:
        for index in range(len(term.args)):
            result = self.child(term, index, context)
            if not isinstance(result, Failure):
                return context.rebuild(term, (*term.args[:index], result, *term.args[index + 1 :]))
        return self._failure


class topdown(_Traversal):
    """s at the first place where it applies, outermost and leftmost first."""

    word = "topdown"

    def run(self, term: Term, context: Context) -> Term | Failure:
        return self._search(term, context, context.failures(self)) or self._failure

    def _search(self, term: Term, context: Context, failed: set[int]) -> Term | None:
        if term.id in failed:
            return None
        result = self.part.run(term, context)
        if not isinstance(result, Failure):
            return result
        path = context.path
        for index, child in enumerate(term.args):
            if child.id in failed:
                continue
            path.append(index)
            found = self._search(child, context, failed)
            path.pop()
            if found is not None:
                return context.rebuild(term, (*term.args[:index], found, *term.args[index + 1 :]))
        failed.add(term.id)
        return None


class bottomup(_Traversal):
    """s at the first place where it applies, innermost and leftmost first."""

    word = "bottomup"

    def run(self, term: Term, context: Context) -> Term | Failure:
        return self._search(term, context, context.failures(self)) or self._failure

    def _search(self, term: Term, context: Context, failed: set[int]) -> Term | None:
        if term.id in failed:
            return None
        path = context.path
        for index, child in enumerate(term.args):
            path.append(index)
            found = self._search(child, context, failed)
            path.pop()
            if found is not None:
                return context.rebuild(term, (*term.args[:index], found, *term.args[index + 1 :]))
        result = self.part.run(term, context)
        if isinstance(result, Failure):
            failed.add(term.id)
            return None
        return result


class everywhere(_Traversal):
    """s once at every place where it applies, innermost first, without searching what it makes; fails if nowhere."""

    word = "everywhere"

    def run(self, term: Term, context: Context) -> Term | Failure:
        return self._sweep(term, context, context.failures(self)) or self._failure

    def _sweep(self, term: Term, context: Context, failed: set[int]) -> Term | None:
        if term.id in failed:
            return None
        path, args, applied = context.path, list(term.args), False
        for index, child in enumerate(args):
            path.append(index)
            found = self._sweep(child, context, failed)
            path.pop()
            if found is not None:
                args[index], applied = found, True
        rebuilt = context.rebuild(term, tuple(args)) if applied else term
        result = self.part.run(rebuilt, context)
        if not isinstance(result, Failure):
            return result
        if not applied:
            failed.add(term.id)
            return None
        return rebuilt


class at(_Traversal):
    """s at one place: a path, the map of a name, or the first term (outermost first) that satisfies a predicate.

    Of several terms with the name, or that satisfy the predicate, the first is taken where s applies.
    """

    word = "at"

    def __init__(self, where: Where, s: Strategy) -> None:
        super().__init__(s)
        self.where = where
        self.name = f"at({_text(where)}, {s.name})"
        self.predicate = named(where) if isinstance(where, str) else where

    def __eq__(self, other: object) -> bool:
        return isinstance(other, at) and other.where == self.where and other.part == self.part

    def __hash__(self) -> int:
        return hash((self.where, self.part))

    def run(self, term: Term, context: Context) -> Term | Failure:
        if isinstance(self.predicate, tuple):
            return descend(term, self.predicate, self.part.run, context) or self._failure
        return self._search(term, self.predicate, context, context.failures(self)) or self._failure

    def _search(self, term: Term, predicate: Predicate, context: Context, failed: set[int]) -> Term | None:
        if term.id in failed:
            return None
        if predicate(term):
            result = self.part.run(term, context)
            if not isinstance(result, Failure):
                return result
        for index, child in enumerate(term.args):
            context.path.append(index)
            found = self._search(child, predicate, context, failed)
            context.path.pop()
            if found is not None:
                return context.rebuild(term, (*term.args[:index], found, *term.args[index + 1 :]))
        failed.add(term.id)
        return None

    def diagnose(self, term: Term, context: Context) -> tuple[Path | None, str]:
        where = self.predicate
        if isinstance(where, tuple):
            for index in where:
                if index >= len(term.args):
                    return None, f"there is no place {'/'.join(map(str, where))}"
                term = term.args[index]
            place, reason = self.part.diagnose(term, context)
            return (*where, *(place or ())), reason
        if any(where(t) for t in subterms(term)):
            return closest(self.part, term, context, where)
        names = sorted({name for t in subterms(term) if (name := loop_name(t))})
        known = f"; the loops are named {', '.join(names)}" if names and isinstance(self.where, str) else ""
        return None, f"nothing is at {_text(self.where)}{known}"


def descend(
    term: Term, path: Path, run: Callable[[Term, Context], Term | Failure | None], context: Context
) -> Term | None:
    """The term with what `run` makes of the subterm at a path; None if that fails or there is no such place."""
    if not path:
        return run(term, context) or None
    index = path[0]
    if index >= len(term.args):
        return None
    context.path.append(index)
    try:
        found = descend(term.args[index], path[1:], run, context)
    finally:
        context.path.pop()
    return None if found is None else context.rebuild(term, (*term.args[:index], found, *term.args[index + 1 :]))


def outermost(s: Strategy) -> Strategy:
    """s until it applies nowhere, outermost first; never fails."""
    return repeat(topdown(s))


def innermost(s: Strategy) -> Strategy:
    """s until it applies nowhere, innermost first; never fails."""
    return repeat(bottomup(s))


normalize = outermost


def named(name: str) -> Predicate:
    """Loops (map, reduce, scan, pipe) of that name."""

    def predicate(term: Term) -> bool:
        return loop_name(term) == name

    predicate.__name__ = name
    return predicate


def of_kind(*kinds: str) -> Predicate:
    """Terms made by one of the patterns."""

    def predicate(term: Term) -> bool:
        return term.kind in kinds

    predicate.__name__ = " or ".join(kinds)
    return predicate


def loop_of(name: str, kind: str) -> Predicate:
    """Loops of that name which a pattern made. (A reduction and what is mapped over its elements may share a name.)"""

    def predicate(term: Term) -> bool:
        return term.kind == kind and loop_name(term) == name

    predicate.__name__ = f"{kind} {name}"
    return predicate


def closest(s: Strategy, term: Term, context: Context, where: Predicate | None = None) -> tuple[Path | None, str]:
    """The place below where a strategy came closest to applying, and what stopped it."""
    best: tuple[int, Path | None, str] = (-1, None, "nothing in the term has its form")
    stack: list[tuple[Term, Path]] = [(term, ())]
    while stack:
        t, path = stack.pop()
        if where is None or where(t):
            near, place, reason = _nearness(s, t, context)
            if near > best[0]:
                best = (near, (*path, *(place or ())), reason)
        stack.extend((child, (*path, i)) for i, child in reversed(list(enumerate(t.args))))
    return best[1], best[2]


def _nearness(s: Strategy, term: Term, context: Context) -> tuple[int, Path | None, str]:
    near = getattr(s, "nearness", None)
    if near is not None:
        distance, reason = near(term, context)
        return distance, (), reason
    if s.rules():
        return max((_nearness(part, term, context) for part in s.rules()), key=lambda found: found[0])
    place, reason = s.diagnose(term, context)
    return 0, place, reason


def _text(where: Where) -> str:
    if isinstance(where, str):
        return where
    if isinstance(where, tuple):
        return "/".join(map(str, where)) or "the root"
    return getattr(where, "__name__", "a predicate")


__all__ = [
    "Predicate",
    "RewriteFailed",
    "Where",
    "all_",
    "at",
    "bottomup",
    "closest",
    "descend",
    "everywhere",
    "innermost",
    "loop_of",
    "named",
    "normalize",
    "of_kind",
    "one",
    "outermost",
    "some",
    "topdown",
]
