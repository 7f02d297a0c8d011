"""The right side of a rule: built from the bindings, with de Bruijn indices counted on the way."""

from __future__ import annotations

from typing import Any

from lithify.arith import as_expr
from lithify.lang.build import at, copy, element_type
from lithify.lang.errors import TypeMismatch
from lithify.lang.levels import Level
from lithify.lang.patterns import Pattern
from lithify.lang.term import BOUND, Term, bound, lambda_, make, rebuild, shift
from lithify.lang.types import Index, Type, shape_of
from lithify.rewrite.matching import Bindings
from lithify.rewrite.metaterms import Applied, Bound, Copy, Formula, Lambda, MapName, Meta, Node, Nth

Scope = dict[str, tuple[int, Type]]
_SIZES = frozenset({"size", "step", "left", "right", "count"})


def build(template: Node, bindings: Bindings) -> Term:
    """The term of a right side; raises TypeMismatch when it has no type."""
    return _build(template, bindings, {}, 0)


def instantiate(function: Term, arguments: tuple[Term, ...], depth: int = 0) -> Term:
    """Beta reduction of all arguments at once, of a function that is moved under `depth` more lambdas."""
    count, body = len(arguments), function
    for _ in arguments:
        assert body.pattern.name == "lambda", f"not a function of {count} parameters: {function}"
        body = body.args[0]
    if body.open_depth == 0:
        return body

    def leaf(t: Term, d: int) -> Term | None:
        if t.open_depth <= d:
            return t
        if t.pattern.name == BOUND:
            index = t.attrs[0] - d
            if index < count:
                return shift(arguments[count - 1 - index], d)
            return bound(t.attrs[0] - count + depth, t.attrs[1])
        return None

    return rebuild(body, leaf)


def _build(node: Node, bindings: Bindings, scope: Scope, depth: int) -> Term:
    if isinstance(node, Applied):
        return _build_node(node, bindings, scope, depth)
    if isinstance(node, Bound):
        level, type_ = scope[node.name]
        return bound(depth - 1 - level, type_)
    if isinstance(node, Meta):
        value = bindings[node.name]
        if not node.arguments:
            return shift(value, depth)
        arguments = tuple([_build(a, bindings, scope, depth) for a in node.arguments])
        return instantiate(value, arguments, depth)
    if isinstance(node, Copy):
        return levelled_copy(_build(node.child, bindings, scope, depth), node.levels.evaluate(bindings))
    if isinstance(node, Nth):
        return at(_build(node.child, bindings, scope, depth), as_expr(node.index.evaluate(bindings)))
    raise AssertionError(f"a function stands where a value is needed: {node}")


def levelled_copy(value: Term, levels: tuple[Level, ...]) -> Term:
    """A copy that stays: one level a dimension. Raises TypeMismatch when levels are missing."""
    dimensions = len(shape_of(value.type)[0])
    if len(levels) != dimensions:
        raise TypeMismatch(
            f"a copy of {value.type} needs {dimensions} level(s), {len(levels)} given",
            hint="a copy without a level is the identity and would vanish",
        )
    return copy(value, *levels)


def _build_node(node: Applied, bindings: Bindings, scope: Scope, depth: int) -> Term:
    pattern = node.pattern
    attributes = tuple(
        [
            _attribute(attribute, name, bindings)
            for attribute, name in zip(node.attributes, pattern.attributes, strict=True)
        ]
    )
    children: list[Term | None] = [
        None if place in _FUNCTIONS.get(pattern.name, ()) else _build(child, bindings, scope, depth)
        for place, child in enumerate(node.children)
    ]
    for place in reversed(_FUNCTIONS.get(pattern.name, ())):  # pipe's load before its combining function
        parameters = _parameters(pattern, attributes, children, place)
        children[place] = _function(node.children[place], parameters, bindings, scope, depth)
    return make(pattern, attributes, tuple([c for c in children if c is not None]))


_FUNCTIONS: dict[str, tuple[int, ...]] = {
    "map": (0,),
    "reduce": (0,),
    "scan": (0,),
    "iterate": (0,),
    "generate": (0,),
    "let": (1,),
    "pipe": (0, 1),
}


def _parameters(
    pattern: Pattern, attributes: tuple[Any, ...], children: list[Term | None], place: int
) -> tuple[Type, ...]:
    """The types of the parameters of the function at a place, from the children that are built already."""
    kind = pattern.name
    if kind == "generate":
        return (Index(attributes[0]),)
    if kind == "let":
        return (_type(children[0]),)
    if kind == "iterate":
        return (_type(children[1]),)
    if kind == "map":
        return (_element(children[1]),)
    if kind == "pipe":
        if place == 1:
            return (_element(children[3]),)
        return _type(children[2]), _type(children[1]).result  # type: ignore[attr-defined]
    return _type(children[1]), _element(children[2])


def _type(term: Term | None) -> Type:
    assert term is not None
    return term.type


def _element(term: Term | None) -> Type:
    assert term is not None
    return element_type(term)


def _function(node: Node, parameters: tuple[Type, ...], bindings: Bindings, scope: Scope, depth: int) -> Term:
    if not isinstance(node, Lambda):
        return _build(node, bindings, scope, depth)
    types, inner = parameters[: len(node.names)], dict(scope)
    for offset, (name, type_) in enumerate(zip(node.names, types, strict=True)):
        inner[name] = (depth + offset, type_)
    body = _build(node.body, bindings, inner, depth + len(types))
    for type_ in reversed(types):
        body = lambda_(type_, body)
    return body


def _attribute(attribute: Formula | MapName, name: str, bindings: Bindings) -> Any:
    if isinstance(attribute, MapName):
        base = bindings.get(f"@{attribute.variable}") or bindings.get(f"@{attribute.otherwise}")
        if base is None or attribute.suffix is None:
            return base
        return f"{base}.{bindings.get(attribute.suffix, attribute.suffix)}"
    value = attribute.evaluate(bindings)
    return as_expr(value) if name in _SIZES else value
