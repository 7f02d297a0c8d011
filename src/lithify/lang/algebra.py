"""What is declared of a combining function `λa b. ..`: recognised from its term, componentwise on tuples and arrays."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.build import const, param, proj, replicate, tuple_, zip_
from lithify.lang.operators import OPERATORS, Operator
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, apply
from lithify.lang.types import Array, Function, Tuple, Type


@dataclass(frozen=True, slots=True)
class Algebra:
    """The declared algebra of a binary function t -> t -> t.

    `neutral` is a closed term of type t, or None. `rounds`: on its floating-point type the laws hold up to rounding.
    """

    associative: bool
    commutative: bool
    idempotent: bool
    rounds: bool
    neutral: Term | None


UNKNOWN = Algebra(False, False, False, False, None)


def algebra_of(function: Term) -> Algebra:
    """The declared algebra of `λa b. body`; UNKNOWN when the function is not an operator applied to a and b in order.

    Recognised: `op a b`; tuples `(f a.0 b.0, ..)`; arrays `map (λp. f p.0 p.1) (zip a b)`.
    """
    type_ = function.type
    if not (isinstance(type_, Function) and isinstance(type_.result, Function)):
        return UNKNOWN
    if not (type_.parameter is type_.result.parameter is type_.result.result):
        return UNKNOWN

    a, b = param("_left", type_.parameter), param("_right", type_.parameter)
    return _of_body(apply(function, a, b), a, b)


def _of_body(body: Term, a: Term, b: Term) -> Algebra:
    if body.kind == "op" and body.args == (a, b):
        return _of_operator(body.attrs[0], body.type)
    if isinstance(body.type, Tuple) and body.kind == "tuple":
        parts = [_of_body(part, proj(i, a), proj(i, b)) for i, part in enumerate(body.args)]
        neutrals = [part.neutral for part in parts]
        present = [n for n in neutrals if n is not None]
        return Algebra(
            all(p.associative for p in parts),
            all(p.commutative for p in parts),
            all(p.idempotent for p in parts),
            any(p.rounds for p in parts),
            tuple_(*present) if len(present) == len(neutrals) else None,
        )
    if body.kind == "map" and isinstance(a.type, Array) and body.args[1] is zip_(a, b):
        element = a.type.element
        x, y = param("_x", element), param("_y", element)
        inner = _of_body(apply(body.args[0], tuple_(x, y)), x, y)
        neutral = None if inner.neutral is None else replicate(a.type.size, inner.neutral)
        return Algebra(inner.associative, inner.commutative, inner.idempotent, inner.rounds, neutral)
    return UNKNOWN


def neutral_element(operator: Operator, type_: Type) -> Term | None:
    """The declared neutral element of an operator on a type."""
    if operator.neutral is not None and isinstance(type_, Scalar):
        return const(operator.neutral(type_), type_)
    return operator.neutral_term


def absorbing_element(operator: Operator, type_: Type) -> Term | None:
    """The declared element z of an operator on a type with z * a = z = a * z."""
    if operator.absorbing is not None and isinstance(type_, Scalar):
        return const(operator.absorbing(type_), type_)
    return operator.absorbing_term


def inverse_of(operator: Operator) -> Operator | None:
    """The operator / that is declared to undo the second operand, (a * b) / b = a; None where it is no operator."""
    if operator.inverse is not None:
        return OPERATORS[operator.inverse]
    function = operator.inverse_term
    if function is None:
        return None
    body = function.args[0].args[0]
    in_order = [(a.kind, a.attrs[:1]) for a in body.args] == [("bound", (1,)), ("bound", (0,))]
    found: Operator | None = body.attrs[0] if body.kind == "op" and in_order else None
    return found


def _of_operator(operator: Operator, type_: Type) -> Algebra:
    neutral = neutral_element(operator, type_)
    rounds = operator.rounds and (not isinstance(type_, Scalar) or type_.is_float or type_.is_complex)
    return Algebra(operator.associative, operator.commutative, operator.idempotent, rounds, neutral)


def neutral_of(function: Term) -> Term | None:
    """The declared neutral element of a combining function."""
    return algebra_of(function).neutral
