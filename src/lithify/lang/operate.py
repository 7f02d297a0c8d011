"""Scalar operators on values: numbers take the other operands' type, indices have their own arithmetic, and operators
spread over arrays.
"""

from __future__ import annotations

from lithify.arith import as_expr
from lithify.lang import build
from lithify.lang.coerce import as_term, in_context, is_array
from lithify.lang.errors import TypeMismatch
from lithify.lang.operators import OPERATORS, Operator, Typing
from lithify.lang.positions import ARITHMETIC, Position, choose, combine, compare, is_index, raised
from lithify.lang.scalars import SCALARS, Scalar, bool_
from lithify.lang.term import Term
from lithify.lang.types import Array
from lithify.lang.values import (
    NUMERAL_OPERATORS,
    Arithmetic,
    Choice,
    FunctionValue,
    Numeral,
    Resolve,
    TupleValue,
    Value,
    describe,
    whole_power,
)


def operate(operator: Operator, *operands: Value, resolve: Resolve | None = None) -> Value:
    """An operator on values: numbers take the type of the other operands, arrays are combined element by element.

    `resolve` gives meaning to free names of sizes, where they meet indices.
    """
    if len(operands) != operator.arity:
        raise TypeMismatch(f"{operator.name} takes {operator.arity} operand(s), {len(operands)} given")
    if all(isinstance(o, Numeral) for o in operands):
        first = operands[0]
        if operator.name == "neg" and isinstance(first, Numeral) and isinstance(first.value, int | float):
            return Numeral(-first.value)
        if operator.name in NUMERAL_OPERATORS:
            return Numeral(Arithmetic(operator.name, tuple(o for o in operands if isinstance(o, Numeral))))
        if operator.typing is Typing.CONVERT:
            return _conversion(operator, operands[0])
        default = _default_type(operands)
        return build.op(operator, *[as_term(o, default) for o in operands])
    found = _of_indices(operator, operands, resolve)
    if found is not None:
        return found
    power = _whole_power(operator, operands)
    if power is not None:
        return power
    if operator.typing is Typing.CONVERT and isinstance(operands[0], TupleValue):
        return _conversion(operator, operands[0])
    if operator.typing is Typing.DEFINED:
        return build.op(operator, *[as_term(o) for o in operands])
    operands = in_context(operands)
    arrays = [o.type for o in operands if isinstance(o, Term) and isinstance(o.type, Array)]
    if arrays:
        return _elementwise(operator, operands, arrays)
    if operator.typing is Typing.SELECT:
        return _select(operands)
    known = next((o.type for o in operands if isinstance(o, Term)), None)
    return build.op(operator, *[as_term(o, known) for o in operands])


def _whole_power(operator: Operator, operands: tuple[Value, ...]) -> Term | None:
    """A whole power of an integer or a complex number, which have no others."""
    if operator.name != "pow":
        return None
    base, exponent = operands
    if not isinstance(base, Term) or not isinstance(base.type, Scalar) or base.type.is_float or base.type is bool_:
        return None
    if not isinstance(exponent, Numeral) or not isinstance(exponent.value, int):
        hint = "convert both: `f32 x ^ f32 y`" if base.type.is_integer else None
        raise TypeMismatch(f"a power of {base.type} has a whole number as its exponent", hint=hint)
    return whole_power(base, exponent.value)


def _of_indices(operator: Operator, operands: tuple[Value, ...], resolve: Resolve | None) -> Value | None:
    """An operator on indices, and numbers among them; None where it is none of these."""
    if not any(map(is_index, operands)) or not all(is_index(o) or isinstance(o, Numeral) for o in operands):
        return None
    if operator.typing is Typing.CONVERT and isinstance(operands[0], Position):
        return operands[0].converted(operator)
    arithmetic = operator.name in ARITHMETIC or operator.name in ("neg", "pow")
    if operator.typing is not Typing.COMPARE and not arithmetic:
        return None
    positions = [_position(o, resolve) for o in operands]
    if operator.typing is Typing.COMPARE:
        return compare(operator, *positions)
    if operator.name == "neg":
        return combine("sub", Position.of(as_expr(0)), *positions)
    return raised(*positions) if operator.name == "pow" else combine(operator.name, *positions)


def _position(value: Value, resolve: Resolve | None = None) -> Position:
    """The index that a value is; a number is one if it is an integer or a size."""
    if isinstance(value, Position):
        return value
    if isinstance(value, Term):
        return Position.of(value)
    assert isinstance(value, Numeral)
    try:
        return Position.of(value.as_size(resolve))
    except TypeMismatch:
        raise TypeMismatch(
            f"an index meets integers, sizes and other indices, not {value}",
            hint=f"convert the index first, for example `{value.default_type()} i`",
        ) from None


def _default_type(operands: tuple[Value, ...]) -> Scalar:
    types = [o.default_type() for o in operands if isinstance(o, Numeral)]
    return next((t for t in types if t.is_float), types[0])


def _conversion(operator: Operator, literal: Value) -> Term:
    """`f32 2`: the literal of that type; `complex64 (1, 2)` is 1 + 2i."""
    target = SCALARS[operator.name]
    if isinstance(literal, Numeral):
        return literal.as_term(target)
    assert isinstance(literal, TupleValue)
    parts = [i.value for i in literal.items if isinstance(i, Numeral)]
    if target.is_complex and len(parts) == len(literal.items) == 2 and all(isinstance(p, int | float) for p in parts):
        return build.const(complex(*parts), target)  # type: ignore[arg-type]
    raise TypeMismatch(f"{operator.name} converts a scalar, {describe(literal)} given")


def _select(operands: tuple[Value, ...]) -> Value:
    condition, then, otherwise = operands
    if isinstance(then, TupleValue) and isinstance(otherwise, TupleValue) and len(then.items) == len(otherwise.items):
        pairs = zip(then.items, otherwise.items, strict=True)
        return build.tuple_(*[as_term(_select((condition, a, b))) for a, b in pairs])
    test = as_term(condition, bool_)
    if test.type is not bool_:
        raise TypeMismatch(f"the condition has type {test.type}, bool expected", hint="compare it: `x != 0`")
    if any(map(is_index, (then, otherwise))) and all(is_index(o) or isinstance(o, Numeral) for o in (then, otherwise)):
        return choose(test, _position(then), _position(otherwise))
    if isinstance(then, Numeral) and isinstance(otherwise, Numeral):
        return Numeral(Choice(test, then, otherwise))
    known = next((o.type for o in (then, otherwise) if isinstance(o, Term)), None)
    first = as_term(then, known)
    second = as_term(otherwise, first.type)
    if first.type is not second.type:
        raise TypeMismatch(f"the branches have different types: {first.type} and {second.type}")
    return build.select(test, first, second)


def _elementwise(operator: Operator, operands: tuple[Value, ...], arrays: list[Array]) -> Value:
    """Operands that are arrays of one meet scalars as their elements; longer arrays are zipped, scalars repeated."""
    scalars = [o for o in operands if not (isinstance(o, Term) and isinstance(o.type, Array))]
    if all(a.size.constant == 1 and not isinstance(a.element, Array) for a in arrays) and (
        any(isinstance(o, Term) for o in scalars)
    ):
        return operate(operator, *[build.at(o, 0) if is_array(o) else o for o in operands])  # type: ignore[arg-type]
    terms = [o for o in operands if is_array(o)]

    def element(*items: Term) -> Value:
        rest = iter(items)
        return operate(operator, *[next(rest) if is_array(o) else o for o in operands])

    if len(terms) == 1:
        return build.map_(lambda x: as_term(element(x)), as_term(terms[0]))
    zipped = build.zip_(*[as_term(t) for t in terms])
    return build.map_(lambda p: as_term(element(*[build.proj(i, p) for i in range(len(terms))])), zipped)


def operator_function(name: str | Operator, resolve: Resolve | None = None) -> FunctionValue:
    """A scalar operator as a function over values."""
    operator = OPERATORS[name] if isinstance(name, str) else name
    label = operator.name if operator.symbol is None else f"({operator.symbol})"
    return FunctionValue(label, operator.arity, lambda *operands: operate(operator, *operands, resolve=resolve))
