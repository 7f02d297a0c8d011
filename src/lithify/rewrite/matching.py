"""Matching the left side of a rule against a term: higher-order patterns in Miller's sense, one solution or none.

Terms are typed and alpha-equivalent terms are identical, so a metavariable that occurs twice is an identity check.
The value of a metavariable applied to n bound variables is a function of n parameters, valid where the rule stands.
"""

from __future__ import annotations

from typing import Any

from lithify.arith import Expr, as_expr
from lithify.lang.term import BOUND, Term, bound, dangling, lambda_, rebuild, shift
from lithify.lang.types import Type
from lithify.rewrite.metaterms import Applied, Bound, Formula, Lambda, MapName, Meta, Node

Bindings = dict[str, Any]


class Mismatch:
    """Why a pattern does not match, for messages: how far matching came (nodes) and what stopped it."""

    __slots__ = ("depth", "reason")

    def __init__(self) -> None:
        self.depth = 0
        self.reason = "it is another pattern"

    def at(self, depth: int, reason: str) -> None:
        """Remember the reason."""
        self.depth, self.reason = depth, reason


def match(pattern: Node, term: Term, bindings: Bindings, mismatch: Mismatch | None = None) -> bool:
    """Bind the pattern's metavariables so that it equals the term; False if that cannot be."""
    return _match(pattern, term, (), (), bindings, mismatch, 0)


def _match(
    pattern: Node,
    term: Term,
    names: tuple[str, ...],
    types: tuple[Type, ...],
    bindings: Bindings,
    why: Mismatch | None,
    progress: int,
) -> bool:
    if isinstance(pattern, Meta):
        value = _close(pattern, term, names, types)
        if value is None:
            if why is not None:
                missing = ", ".join(n for i, n in enumerate(reversed(names)) if i in dangling(term))
                arguments = "".join(f" {a.name}" for a in pattern.arguments if isinstance(a, Bound))
                why.at(progress, f"`{pattern.name}{arguments}` may not mention all of {missing}, but the term does")
            return False
        known = bindings.setdefault(pattern.name, value)
        if known is not value and why is not None:
            why.at(progress, f"`{pattern.name}` stands for two different terms")
        return known is value
    if isinstance(pattern, Applied):
        if term.pattern is not pattern.pattern or len(term.args) != len(pattern.children):
            if why is not None:
                why.at(progress, f"{pattern.pattern.name} expected, {term.kind} found")
            return False
        for attribute, value, name in zip(pattern.attributes, term.attrs, term.pattern.attributes, strict=True):
            if not _match_attribute(attribute, value, bindings):
                if why is not None:
                    why.at(progress + 1, _attribute_mismatch(term.kind, name, attribute, value, bindings))
                return False
        for child, argument in zip(pattern.children, term.args, strict=True):
            if not _match(child, argument, names, types, bindings, why, progress + 1):
                return False
        return True
    if isinstance(pattern, Lambda):
        for name in pattern.names:
            if term.pattern.name != "lambda":
                if why is not None:
                    why.at(progress, "a function expected")
                return False
            names, types = (*names, name), (*types, term.attrs[0])
            term = term.args[0]
        return _match(pattern.body, term, names, types, bindings, why, progress)
    if isinstance(pattern, Bound):
        index = names[::-1].index(pattern.name)
        if term.pattern.name == BOUND and term.attrs[0] == index:
            return True
        if why is not None:
            why.at(progress, f"the variable {pattern.name} expected, {term.kind} found")
        return False
    raise AssertionError(f"{pattern} cannot stand left of the arrow")


def _match_attribute(attribute: Formula | MapName, value: Any, bindings: Bindings) -> bool:
    if isinstance(attribute, MapName):
        if attribute.variable is not None:
            bindings.setdefault("@" + attribute.variable, value)
        return True
    if attribute.name is not None:
        known = bindings.setdefault(attribute.name, value)
        return bool(known is value or (as_expr(known) if isinstance(value, Expr) else known) == value)
    if attribute.code is not None:
        expected = attribute.evaluate(bindings)
        return bool((as_expr(expected) if isinstance(value, Expr) else expected) == value)
    return bool(attribute.constant == value)


def _attribute_mismatch(kind: str, name: str, attribute: Formula | MapName, value: Any, bindings: Bindings) -> str:
    assert isinstance(attribute, Formula)
    expected = bindings.get(attribute.name) if attribute.name else attribute.constant
    if name in ("level", "memory"):
        return f"the {kind} has {name} {value or 'none'}, the rule is for {expected or 'none'}"
    return f"the {kind}'s {name} is {value}, not {expected}"


def _close(meta: Meta, term: Term, names: tuple[str, ...], types: tuple[Type, ...]) -> Term | None:
    """The term as a function of the metavariable's arguments; None if it mentions another variable of the rule."""
    depth, count = len(names), len(meta.arguments)
    if depth == 0:
        return term
    positions = [names.index(a.name) for a in meta.arguments if isinstance(a, Bound)]
    if term.open_depth:
        allowed = {depth - 1 - p for p in positions}
        if any(i < depth and i not in allowed for i in dangling(term)):
            return None
        if positions != list(range(depth)):
            term = _renumber(term, depth, {depth - 1 - p: count - 1 - k for k, p in enumerate(positions)})
    for position in reversed(positions):
        term = lambda_(types[position], term)
    return term


def _renumber(term: Term, depth: int, places: dict[int, int]) -> Term:
    if not places:
        return shift(term, -depth)
    offset = len(places) - depth

    def leaf(t: Term, d: int) -> Term | None:
        if t.open_depth <= d:
            return t
        if t.pattern.name == BOUND:
            index = t.attrs[0] - d
            return bound((places[index] if index < depth else index + offset) + d, t.attrs[1])
        return None

    return rebuild(term, leaf)
