"""Elements that a combining function ignores: c with f a c = a for all a, found and proved from declared algebra.

A small symbolic evaluation: constants are folded, neutral elements disappear, absorbing ones remain alone, arrays with
the same element everywhere are followed through maps and views. What it cannot show is not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator

from lithify.evaluate import evaluate
from lithify.lang.algebra import absorbing_element, inverse_of, neutral_element, neutral_of
from lithify.lang.build import const, filled, param, proj, replicate, tuple_
from lithify.lang.errors import LithifyError
from lithify.lang.scalars import Kind, Scalar
from lithify.lang.term import Term, apply, rebuild
from lithify.lang.types import Array, Function, Tuple, Type

_SPREAD = frozenset({"split", "join", "transpose", "take", "drop", "slide", "reindex", "gather"})


def ignored_element(function: Term) -> Term | None:
    """A closed c with `function a c = a` for all a; None if none was found."""
    type_ = function.type
    assert isinstance(type_, Function) and isinstance(type_.result, Function)
    for candidate in _candidates(function, type_.result.parameter):
        if ignores(function, candidate):
            return candidate
    return None


def ignores(function: Term, element: Term) -> bool:
    """Is `function a element = a` provable?"""
    type_ = function.type
    assert isinstance(type_, Function) and isinstance(type_.result, Function)
    if element.type is not type_.result.parameter:
        return False
    accumulator = param("_accumulator", type_.parameter)
    return simplify(apply(function, accumulator, element)) is accumulator


def _candidates(function: Term, type_: Type) -> Iterator[Term]:
    neutral = neutral_of(function)
    if neutral is not None:
        yield neutral
    zero = _zero(type_)
    if zero is not None:
        yield zero


def _zero(type_: Type) -> Term | None:
    if isinstance(type_, Array):
        element = _zero(type_.element)
        return None if element is None else replicate(type_.size, element)
    if isinstance(type_, Tuple):
        parts = [_zero(item) for item in type_.items]
        known = [p for p in parts if p is not None]
        return tuple_(*known) if len(known) == len(parts) else None
    return const(0, type_) if isinstance(type_, Scalar) and type_.kind is not Kind.BOOL else None


def simplify(term: Term) -> Term:
    """An equal term with constants folded, neutral elements gone, and absorbing ones alone."""
    return rebuild(term, lambda t, _d: _simpler(t))


def _simpler(t: Term) -> Term | None:
    """None: nothing to do at a leaf; otherwise the simplified term."""
    if not t.args:
        return t
    t = t.with_args(tuple([a if a.kind == "lambda" else simplify(a) for a in t.args]))
    if t.kind == "op":
        return _operator(t)
    if t.kind == "tuple" and t.args[0].kind == "proj":  # (p.0, p.1, ..) is p
        whole = t.args[0].args[0]
        same = whole.type is t.type and all(part is proj(i, whole) for i, part in enumerate(t.args))
        return whole if same else t
    if t.kind == "map" and t["level"] is None:
        return _map(t)
    if t.kind in _SPREAD and isinstance(t.type, Array):
        scalar = _uniform(t.args[-1])
        return t if scalar is None else filled(t.type, scalar)
    return t


def _operator(t: Term) -> Term:
    operator, args = t.attrs[0], t.args
    if isinstance(t.type, Scalar) and all(a.kind == "const" for a in args):
        try:
            return const(evaluate(t).item(), t.type)
        except (LithifyError, OverflowError, ValueError):
            return t
    if len(args) != 2:
        return t
    neutral, absorbing = neutral_element(operator, t.type), absorbing_element(operator, t.type)
    for value, other in (args, args[::-1]):
        if other is neutral:
            return value
        if other is absorbing:
            return other
    undone = inverse_of(operator)
    if undone is not None and args[1] is neutral_element(undone, t.type):  # a - 0
        return args[0]
    return t


def _map(t: Term) -> Term:
    """A map over a zip, some of whose components are the same everywhere, that gives back another component."""
    function, xs = t.args
    assert isinstance(xs.type, Array)
    element = _constant_element(xs)
    if element is not None:
        return replicate(xs.type.size, simplify(apply(function, element)))
    if xs.kind != "zip":
        return t
    parts = [_constant_element(a) for a in xs.args]
    unknown = [
        param(f"_part{place}", _element(array)) if part is None else part
        for place, (part, array) in enumerate(zip(parts, xs.args, strict=True))
    ]
    result = simplify(apply(function, tuple_(*unknown)))
    for part, array, known in zip(unknown, xs.args, parts, strict=True):
        if known is None and result is part:
            return array
    return t


def _element(xs: Term) -> Type:
    assert isinstance(xs.type, Array)
    return xs.type.element


def _constant_element(xs: Term) -> Term | None:
    """The element at every position of an array, where it is known to be the same."""
    if xs.kind == "replicate":
        return xs.args[0]
    if xs.kind == "zip":
        parts = [_constant_element(a) for a in xs.args]
        known = [p for p in parts if p is not None]
        return tuple_(*known) if len(known) == len(parts) else None
    if xs.kind == "proj" and xs.args[0].kind == "unzip":
        inner = _constant_element(xs.args[0].args[0])
        return None if inner is None else proj(xs.attrs[0], inner)
    return None


def _uniform(value: Term) -> Term | None:
    """The scalar constant that a value holds everywhere."""
    while value.kind == "replicate":
        value = value.args[0]
    return value if value.kind == "const" and isinstance(value.type, Scalar) else None
