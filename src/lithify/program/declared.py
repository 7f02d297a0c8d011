"""Operators that a program declares, tried out: what is said of them must hold on many values.

Rewriting believes the declared algebra: an operator that is called associative and is not gives wrong results without a
word. So each law is evaluated on both sides, over all triples of some values, when the operator is first used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lithify.evaluate import evaluate
from lithify.explore.comparison import distance
from lithify.lang import build
from lithify.lang.errors import TypeMismatch
from lithify.lang.given import kind_of, text_given
from lithify.lang.operators import Operator
from lithify.lang.scalars import Kind, Scalar
from lithify.lang.term import Term
from lithify.lang.types import Array, Index, Tuple, Type
from lithify.program.arguments import flatten

_SAMPLES = 12  # values of the operands' type; all triples of them are tried
_EQUAL = 1e-9  # relative, in float64: rounding, and no more than that
# Whole numbers, so that sums and products are exact, with both signs and equal ones among them.
_FLOATS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -4.0, 7.0, -0.25, 16.0, -16.0)
_INTEGERS = (0, 1, 2, 3, 5, 7, 11, 13, 16, 31, 64, 100)

Combine = Callable[[Term, Term], Term]


@dataclass(frozen=True)
class _Law:
    """A property, and both sides of what it says of values a, b, c and the neutral element e."""

    name: str
    text: str
    declared: Callable[[Operator], bool]
    left: Callable[[Combine, Term, Term, Term], Term]
    right: Callable[[Combine, Term, Term, Term], Term]


_LAWS = (
    _Law("associative", "(a * b) * c == a * (b * c)", lambda o: o.associative,
         lambda f, a, b, c: f(f(a, b), c), lambda f, a, b, c: f(a, f(b, c))),
    _Law("commutative", "a * b == b * a", lambda o: o.commutative,
         lambda f, a, b, c: f(a, b), lambda f, a, b, c: f(b, a)),
    _Law("idempotent", "a * a == a", lambda o: o.idempotent,
         lambda f, a, b, c: f(a, a), lambda f, a, b, c: a),
)  # fmt: skip


def operator(
    function: Callable[..., Any] | None = None,
    /,
    *,
    associative: bool = False,
    commutative: bool = False,
    idempotent: bool = False,
    neutral: Any = None,
    name: str | None = None,
) -> Any:
    """Decorator: a Python function of two operands as an operator, and what may be assumed of it.

        @lf.operator(associative=True, commutative=True, neutral=0)
        def both(a, b):
            return a + b + a * b

    The operands may be numbers or tuples; `neutral` (None: there is none) is a value of their type. What is declared is
    tried out on many values when the operator is first used on operands of some type: TypeMismatch is raised for a law
    that does not hold, and where the function does not give what it takes.
    """
    from lithify.lang.frontend import operator as declared
    from lithify.lang.parser import PROPERTIES

    for label, given in {"associative": associative, "commutative": commutative, "idempotent": idempotent}.items():
        if not isinstance(given, bool):
            raise TypeMismatch(f"{label} is True or False, {kind_of(given)} is given")
    if name is not None:
        text_given(name, "the name of an operator", 'write name="plus"', TypeMismatch)
    claimed = dict(zip(PROPERTIES, (associative, commutative, idempotent), strict=True))

    def declare(function: Callable[..., Any]) -> Any:
        if isinstance(function, type) or not callable(function):
            hint = "decorate a function of two operands: @lf.operator(associative=True)"
            raise TypeMismatch(f"an operator is made of a function, {kind_of(function)} is given", hint=hint)
        given = str(name or getattr(function, "__name__", ""))
        label = given if given.isidentifier() else "unnamed"  # a lambda's name is none
        return declared(function, label, [each for each, holds in claimed.items() if holds], neutral, check_declared)

    return declare if function is None else declare(function)


def check_declared(operator: Operator, type_: Type) -> None:
    """Try out every property of a declared operator on values of a type.

    Raises TypeMismatch with the law and the values for which it does not hold.
    """
    values = _triples(type_)

    def combine(a: Term, b: Term) -> Term:
        return build.op(operator, a, b)

    for law in _LAWS:
        if law.declared(operator):
            _compare(operator, law.name, law.text, values, type_, combine, law.left, law.right)
    neutral = operator.neutral_term
    if neutral is not None:
        for text, left in (
            ("e * a == a", lambda f, a, b, c: f(neutral, a)),
            ("a * e == a", lambda f, a, b, c: f(a, neutral)),
        ):
            _compare(operator, f"neutral {neutral}", text, values, type_, combine, left, lambda f, a, b, c: a)


def _compare(
    operator: Operator,
    name: str,
    law: str,
    values: dict[str, Any],
    type_: Type,
    combine: Combine,
    left: Callable[[Combine, Term, Term, Term], Term],
    right: Callable[[Combine, Term, Term, Term], Term],
) -> None:
    """Both sides for all triples at once."""
    size = _SAMPLES**3
    zipped = build.zip_(*[build.param(n, Array(size, type_)) for n in "abc"])

    def side(of: Callable[[Combine, Term, Term, Term], Term]) -> list[np.ndarray[Any, Any]]:
        term = build.map_(lambda t: of(combine, build.proj(0, t), build.proj(1, t), build.proj(2, t)), zipped)
        used = {n: values[n] for n in term.parameters}
        return [np.asarray(leaf) for leaf in flatten([evaluate(term, used)])]

    for got, wanted in zip(side(left), side(right), strict=True):
        apart = np.argwhere(distance(got, wanted) > _EQUAL * np.maximum(1.0, np.abs(np.nan_to_num(wanted))))
        if len(apart):
            k = int(apart[0][0])
            where = ", ".join(f"{n} = {_shown(values[n], k)}" for n in "abc" if n in law)
            raise TypeMismatch(
                f"operator {operator.name} is not {name}: {law} does not hold for {where}",
                hint=f"here * stands for {operator.name}: correct its definition, or declare less of it",
            )


def _triples(type_: Type) -> dict[str, Any]:
    """Values a, b, c such that all triples of some samples occur."""
    positions = np.array(list(itertools.product(range(_SAMPLES), repeat=3)))
    return {name: _values(type_, positions[:, k], 0) for k, name in enumerate("abc")}


def _values(type_: Type, positions: np.ndarray[Any, Any], turn: int) -> Any:
    """Sample number `positions` of the type, counted from `turn`.

    The components of a tuple are equal at different times: ties in one are where an order goes wrong.
    """
    if isinstance(type_, Tuple):
        parts = (positions % 3, positions // 3, *[positions * 5 % _SAMPLES] * (len(type_.items) - 2))
        return tuple([_values(item, parts[k], turn + k) for k, item in enumerate(type_.items)])
    if isinstance(type_, Array):
        size = type_.size.constant or 0
        columns = [_values(type_.element, positions, turn + k) for k in range(size)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(positions), 0))
    positions = (positions + turn) % _SAMPLES
    if isinstance(type_, Index):
        return positions % (type_.size.constant or 1)
    assert isinstance(type_, Scalar)
    if type_.kind is Kind.BOOL:
        return positions % 2 == 0
    if type_.is_integer:
        return np.array(_INTEGERS)[positions].astype(type_.dtype)
    reals = np.array(_FLOATS)[positions]
    return reals + 1j * np.array(_FLOATS)[(positions * 7 + 1) % _SAMPLES] if type_.is_complex else reals


def _shown(value: Any, position: int) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_shown(part, position) for part in value) + ")"
    return str(value[position])
