"""Operators that users declare, in texts and in Python: made for the type of their operands where they are used."""

from __future__ import annotations

from collections.abc import Callable, Collection

from lithify.lang.coerce import as_term, lambda_of, operate
from lithify.lang.errors import LithifyError, TypeMismatch
from lithify.lang.operators import Operator, Typing
from lithify.lang.term import Term
from lithify.lang.types import Type
from lithify.lang.values import FunctionValue, Value

OperatorCheck = Callable[[Operator, Type], None]


def declare(
    name: str,
    type_: Type,
    function: Value,
    properties: Collection[str],
    neutral: Value | None,
    *,
    check: OperatorCheck | None = None,
    places: tuple[str, str] = ("", ""),
) -> Operator:
    """The operator of a function of two operands of a type, with its laws and perhaps a neutral element.

    `check` tries out what is declared; `places` are those of the function and of the neutral element, for errors.
    Raises TypeMismatch where one of them does not fit the type.
    """
    try:
        definition = lambda_of(function, (type_, type_), type_, f"operator {name}")
    except LithifyError as error:
        raise error.located(places[0]) from None
    element = None if neutral is None else as_term(neutral, type_)
    if element is not None and (element.type is not type_ or element.parameters):
        raise TypeMismatch(
            f"the neutral element of {name} has type {element.type}, {type_} expected", where=places[1] or None
        )
    made = Operator(
        name,
        2,
        Typing.DEFINED,
        associative="associative" in properties,
        commutative="commutative" in properties,
        idempotent="idempotent" in properties,
        definition=definition,
        neutral_term=element,
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
