"""From values to typed terms: literals take their context's type, functions become lambdas, reductions' results are
one-element arrays where one is needed.

Lift's `reduce` yields a one-element array; the core's yields the element. The reader keeps the element, and treats
it as an array of one where an array is needed: `map f` of it is `f` of it, `join` over such elements is the identity.
An array of one, in turn, is its element where a scalar is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lithify.lang import build
from lithify.lang.errors import LithifyError, TypeMismatch
from lithify.lang.positions import Position
from lithify.lang.scalars import Scalar, bool_
from lithify.lang.term import LAMBDA, Term, abstract, apply
from lithify.lang.types import Array, Function, Index, Tuple, Type, shape_of
from lithify.lang.values import (
    FunctionValue,
    LiteralArray,
    Numeral,
    TupleValue,
    Value,
    describe,
)

FOLDS = ("reduce", "scan")


# ---- values to terms -------------------------------------------------------------------------------------------------


def as_term(value: Value, type_: Type | None = None) -> Term:
    """The term of a value; numbers get `type_` (or their default), a one-element array is its element if need be.

    A term of another type is returned as it is: the pattern that takes it reports the mismatch.
    """
    if isinstance(value, Term):
        if isinstance(value.type, Function):
            raise TypeMismatch(f"a value expected, a function given: {value.type}")
        if isinstance(type_, Scalar | Index) and value.type is not type_ and _is_single(value.type, type_):
            return build.at(value, 0)
        if isinstance(type_, Index) and isinstance(value.type, Index) and value.type is not type_:
            found = Position.of(value)
            return found.index(type_.size) if found.at_most(type_.size - 1) else value
        return value
    if isinstance(value, Position):
        return value.index(type_.size if isinstance(type_, Index) else None)
    if isinstance(value, Numeral):
        return spread(value, value.default_type() if type_ is None else type_)
    if isinstance(value, LiteralArray):
        element = type_.element if isinstance(type_, Array) else None
        return typed_literal(value, value.default_type() if element is None else element)
    if isinstance(value, TupleValue):
        types: tuple[Type | None, ...] = (None,) * len(value.items)
        if isinstance(type_, Tuple) and len(type_.items) == len(value.items):
            types = type_.items
        return build.tuple_(*[as_term(item, t) for item, t in zip(value.items, types, strict=True)])
    raise TypeMismatch(f"a value expected, {describe(value)} given")


def typed_literal(literal: LiteralArray, element: Type) -> Term:
    """The array literal whose numbers have the innermost type of `element`."""
    inner = element.element if isinstance(element, Array) else element
    return build.array_literal(
        *[typed_literal(i, inner) if isinstance(i, LiteralArray) else as_term(i, element) for i in literal.items]
    )


def context_type(values: Iterable[Value]) -> Scalar | None:
    """The scalar type that numbers among the values take: that of the first typed value, inside its arrays."""
    for value in values:
        if isinstance(value, Term):
            type_ = shape_of(value.type)[1]
            while isinstance(type_, Tuple):
                type_ = shape_of(type_.items[0])[1]
            if isinstance(type_, Scalar):
                return type_
    return None


def in_context(values: Iterable[Value]) -> tuple[Value, ...]:
    """The values, with array literals typed by the others."""
    values = tuple(values)
    if not any(isinstance(v, LiteralArray) for v in values):
        return values
    context = context_type(values)
    return tuple(
        typed_literal(v, v.default_type() if context is None else context) if isinstance(v, LiteralArray) else v
        for v in values
    )


def spread(number: Numeral, type_: Type) -> Term:
    """The value of a type all of whose scalars are the number."""
    if isinstance(type_, Array):
        return build.replicate(type_.size, spread(number, type_.element))
    if isinstance(type_, Tuple):
        return build.tuple_(*[spread(number, item) for item in type_.items])
    if isinstance(type_, Scalar | Index):
        if type_ is bool_:
            raise TypeMismatch(f"a bool expected, {describe(number)} given", hint="write true or false")
        return number.as_term(type_)
    raise TypeMismatch(f"{type_} expected, {describe(number)} given")


def as_array(value: Value, what: str) -> Term:
    """The array of a value: a tuple of arrays is zipped, the result of a reduction is an array of one."""
    if isinstance(value, LiteralArray):
        return as_term(value)
    if isinstance(value, TupleValue) or (isinstance(value, Term) and isinstance(value.type, Tuple)):
        items = components(value)
        if items and all(is_array(i) for i in items):
            return build.zip_(*map(as_term, in_context(items)))
    if isinstance(value, Term):
        if isinstance(value.type, Array):
            return value
        if is_reduction(value):
            return build.replicate(1, value)
    raise TypeMismatch(f"{what} takes an array, {describe(value)} given")


def is_array(value: Value) -> bool:
    """Is the value an array, or the literal of one?"""
    return isinstance(value, LiteralArray) or (isinstance(value, Term) and isinstance(value.type, Array))


def components(value: Value) -> tuple[Value, ...]:
    """The components of a tuple; () for anything else."""
    if isinstance(value, TupleValue):
        return value.items
    if isinstance(value, Term) and isinstance(value.type, Tuple):
        return tuple(build.proj(i, value) for i in range(len(value.type.items)))
    return ()


def is_reduction(t: Term) -> bool:
    """Is the (scalar) value computed by a reduction? Then it may stand for Lift's one-element array."""
    if t.kind in ("op", "to", "proj", "tuple", "let"):
        return any(is_reduction(a.args[0] if a.kind == LAMBDA else a) for a in t.args)
    return t.kind == "reduce"


def elements_are_reductions(xs: Term) -> bool:
    """Is each element of the array computed by a reduction?"""
    if xs.kind == "map":
        return is_reduction(xs.args[0].args[0])
    return xs.kind in ("to", "reindex", "take", "drop") and elements_are_reductions(xs.args[0])


def _is_single(type_: Type, element: Type) -> bool:
    return isinstance(type_, Array) and type_.size.constant == 1 and type_.element is element


# ---- functions -------------------------------------------------------------------------------------------------------


def as_function(value: Value, what: str) -> FunctionValue:
    """The function of a value; raises TypeMismatch."""
    if isinstance(value, FunctionValue):
        return value
    if isinstance(value, Term) and isinstance(value.type, Function):
        return function_of_term(value)
    hint = None
    if isinstance(value, Numeral) and isinstance(value.value, int | float) and value.value < 0:
        hint = f"({value}) is a number; as a function it is (λ x . x - {-value.value})"
    raise TypeMismatch(f"{what} takes a function, {describe(value)} given", hint=hint)


def function_of_term(f: Term) -> FunctionValue:
    """A lambda term as a function over values."""
    parameters: list[Type] = []
    type_ = f.type
    while isinstance(type_, Function):
        parameters.append(type_.parameter)
        type_ = type_.result

    def body(*arguments: Value) -> Value:
        return apply(f, *[as_term(a, t) for a, t in zip(arguments, parameters, strict=True)])

    return FunctionValue("function", len(parameters), body)


def call(function: Value, argument: Value) -> Value:
    """Apply a function to one argument; raises TypeMismatch when it is no function."""
    if isinstance(function, Term) and isinstance(function.type, Function):
        function = function_of_term(function)
    if not isinstance(function, FunctionValue):
        hint = "`>>` applies a function; a shift is `>>>` in texts, shr(x, n) in Python"
        raise TypeMismatch(
            f"{describe(function)} is no function: it cannot be applied to {describe(argument)}",
            hint=hint if isinstance(function, Numeral) else None,
        )
    return function(argument)


def call_with_element(function: Value, element: Value) -> Value:
    """Apply to an element: a function of several parameters takes the components of a tuple."""
    items = components(element)
    if isinstance(function, FunctionValue) and function.arity == len(items) > 1:
        for item in items:
            function = call(function, item)
        return function
    return call(function, element)


def call_binary(function: Value, left: Value, right: Value) -> Value:
    """Apply a combining function: curried, or on a pair (`λ(acc, x). ..`)."""
    if isinstance(function, FunctionValue) and function.arity == 1:
        return call(function, TupleValue((left, right)))
    return call_with_element(call(function, left), right)


def lambda_of(function: Value, parameters: tuple[Type, ...], result: Type | None, what: str) -> Term:
    """The core lambda of a function over parameters of the given types; numbers in its result become `result`."""
    f = as_function(function, what)
    if len(parameters) == 1:
        return abstract(parameters[0], lambda x: _result(call_with_element(f, x), result))
    first, second = parameters
    return abstract(first, lambda a: abstract(second, lambda x: _result(call_binary(f, a, x), result)))


def _result(value: Value, type_: Type | None) -> Term:
    if isinstance(value, FunctionValue):
        raise TypeMismatch(f"an argument is missing: the result is {describe(value)}", hint=missing_hint(value))
    term = as_term(value, type_)
    if type_ is not None and term.type is not type_:
        raise TypeMismatch(f"the function gives {term.type}, {type_} expected")
    return term


def missing_hint(function: FunctionValue) -> str | None:
    """What is left out, where it is likely: the initial value of `reduce (+) xs`."""
    if function.name in FOLDS and len(function.given) == 2 and is_array(function.given[1]):
        return f"the initial value is missing: `{function.name} f initial xs`, such as `{function.name} (+) 0 xs`"
    return None


def combining(function: Value, initial: Value, element: Type, what: str) -> tuple[Term, Term]:
    """The lambda and the initial value of a reduction; when the initial value has no type, the function tells.

    A literal over scalars has the elements' type if the function agrees; otherwise the type of the first step
    `f initial x` is the accumulator's.
    """
    f = as_function(function, what)

    def from_type(accumulator: Type) -> tuple[Term, Term]:
        return lambda_of(f, (accumulator, element), accumulator, what), as_term(initial, accumulator)

    if isinstance(initial, Term):
        return from_type(initial.type)
    if isinstance(initial, Numeral) and isinstance(element, Scalar):
        try:
            return from_type(element)
        except TypeMismatch as mismatch:
            failure = mismatch
        try:
            return from_type(_first_step(f, initial, element))
        except LithifyError:
            raise failure from None
    return from_type(_first_step(f, initial, element))


def _first_step(function: FunctionValue, initial: Value, element: Type) -> Type:
    step = abstract(element, lambda x: as_term(call_binary(function, initial, x)))
    assert isinstance(step.type, Function)
    return step.type.result


# ---- let ------------------------------------------------------------------------------------------------------------


def let(value: Value, body: Callable[[Value], Value]) -> Value:
    """`let x = value in body x`: terms are shared in the core; what has no type yet, and functions, are substituted."""
    if isinstance(value, TupleValue):
        if _is_typed(value):
            value = as_term(value)
        else:
            return _let_each(value.items, (), body)
    if not isinstance(value, Term):
        return body(value)
    term = value

    def inner(x: Term) -> Term:
        result = body(x)
        if isinstance(result, FunctionValue):
            raise _BodyIsFunction(result)
        return as_term(result)

    try:
        return build.let(term, inner)
    except _BodyIsFunction as body_is:
        f = body_is.function
        return FunctionValue(f.name, f.arity, lambda *arguments: let(term, lambda x: _call_all(body(x), arguments)))


class _BodyIsFunction(Exception):
    def __init__(self, function: FunctionValue) -> None:
        self.function = function


def _is_typed(value: Value) -> bool:
    return all(map(_is_typed, value.items)) if isinstance(value, TupleValue) else isinstance(value, Term)


def _let_each(items: tuple[Value, ...], done: tuple[Value, ...], body: Callable[[Value], Value]) -> Value:
    if not items:
        return body(TupleValue(done))
    return let(items[0], lambda x: _let_each(items[1:], (*done, x), body))


def _call_all(function: Value, arguments: tuple[Value, ...]) -> Value:
    for argument in arguments:
        function = call(function, argument)
    return function
