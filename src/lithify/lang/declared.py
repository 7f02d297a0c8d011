"""Operators that users declare, in texts and in Python: made for the type of their operands where they are used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from lithify.lang.coerce import as_term, lambda_of
from lithify.lang.errors import LithifyError, TypeMismatch
from lithify.lang.operate import operate
from lithify.lang.operators import Operator, Typing
from lithify.lang.term import Term
from lithify.lang.types import Type
from lithify.lang.values import FunctionValue, Value

OperatorCheck = Callable[[Operator, Type], None]


@dataclass(frozen=True, slots=True)
class Claims:
    """What is declared of an operator *: names of laws; e with e * a = a = a * e, z with z * a = z = a * z, and the
    function f that undoes it, f (a * b) b = a.
    """

    properties: Collection[str] = ()
    neutral: Value | None = None
    absorbing: Value | None = None
    inverse: Value | None = None


def declare(
    name: str,
    type_: Type,
    function: Value,
    claims: Claims,
    *,
    check: OperatorCheck | None = None,
    places: Mapping[str, str] | None = None,
) -> Operator:
    """The operator of a function of two operands of a type, and what is declared of it.

    `check` tries that out; `places` are those of the function ("") and of the parts of the claims, for errors. Raises
    TypeMismatch where one of them does not fit the type.
    """
    where = places or {}

    def function_of(value: Value, part: str, what: str) -> Term:
        try:
            return lambda_of(value, (type_, type_), type_, what)
        except LithifyError as error:
            raise error.located(where.get(part, "")) from None

    def element(value: Value | None, part: str) -> Term | None:
        found = None if value is None else as_term(value, type_)
        if found is not None and (found.type is not type_ or found.parameters):
            raise TypeMismatch(
                f"the {part} element of {name} has type {found.type}, {type_} expected", where=where.get(part)
            )
        return found

    made = Operator(
        name,
        2,
        Typing.DEFINED,
        associative="associative" in claims.properties,
        commutative="commutative" in claims.properties,
        idempotent="idempotent" in claims.properties,
        definition=function_of(function, "", f"operator {name}"),
        neutral_term=element(claims.neutral, "neutral"),
        absorbing_term=element(claims.absorbing, "absorbing"),
        inverse_term=None
        if claims.inverse is None
        else function_of(claims.inverse, "inverse", f"the inverse of {name}"),
        meaning="declared by the program",
    )
    if check is not None:
        check(made, type_)
    return made


def as_function(name: str, operator_on: Callable[[Type], Operator]) -> FunctionValue:
    """A declared operator as a function: it is the operator on the type of what it is given."""

    def apply(left: Value, right: Value) -> Value:
        typed = next((v for v in (left, right) if isinstance(v, Term)), None) or as_term(left)
        type_ = typed.type
        return operate(operator_on(type_), as_term(left, type_), as_term(right, type_))

    return FunctionValue(name, 2, apply)
