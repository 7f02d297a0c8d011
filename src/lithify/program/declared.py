"""Operators that a program declares, tried out: what is said of them must hold on many values.

Rewriting believes the declared algebra: an operator that is called associative and is not gives wrong results without a
word. So each law is evaluated on both sides, over all triples of some values, when the operator is first used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Never

import numpy as np

from lithify.evaluate import evaluate
from lithify.explore.comparison import distance
from lithify.lang import build
from lithify.lang.errors import TypeMismatch
from lithify.lang.given import kind_of, text_given
from lithify.lang.operators import Operator
from lithify.lang.scalars import Kind, Scalar
from lithify.lang.spelling import choices
from lithify.lang.term import Term, apply
from lithify.lang.types import Array, Index, Tuple, Type
from lithify.program.arguments import flatten

_SAMPLES = 12  # values of the operands' type; all triples of them are tried
_EQUAL = 1e-9  # relative, in float64: rounding, and no more than that
# Whole numbers, so that sums and products are exact, with both signs and equal ones among them.
_FLOATS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -4.0, 7.0, -0.25, 16.0, -16.0)
_INTEGERS = (0, 1, 2, 3, 5, 7, 11, 13, 16, 31, 64, 100)


Side = Callable[[Term, Term, Term], Term]


@dataclass(frozen=True)
class _Law:
    """A property, and both sides of what it says of all values a, b, c."""

    name: str
    text: str
    left: Side
    right: Side


def _laws(o: Operator) -> Iterator[_Law]:
    """What is declared of an operator."""

    def f(a: Term, b: Term) -> Term:
        return build.op(o, a, b)

    if o.associative:
        yield _Law(
            "associative", "(a * b) * c == a * (b * c)", lambda a, b, c: f(f(a, b), c), lambda a, b, c: f(a, f(b, c))
        )
    if o.commutative:
        yield _Law("commutative", "a * b == b * a", lambda a, b, c: f(a, b), lambda a, b, c: f(b, a))
    if o.idempotent:
        yield _Law("idempotent", "a * a == a", lambda a, b, c: f(a, a), lambda a, b, c: a)
    e, z, undo = o.neutral_term, o.absorbing_term, o.inverse_term
    if e is not None:
        yield _Law(f"neutral {e}", "e * a == a", lambda a, b, c: f(e, a), lambda a, b, c: a)
        yield _Law(f"neutral {e}", "a * e == a", lambda a, b, c: f(a, e), lambda a, b, c: a)
    if z is not None:
        yield _Law(f"absorbing {z}", "z * a == z", lambda a, b, c: f(z, a), lambda a, b, c: z)
        yield _Law(f"absorbing {z}", "a * z == z", lambda a, b, c: f(a, z), lambda a, b, c: z)
    if undo is not None:
        undone = "undone by its inverse"
        yield _Law(undone, "inverse (a * b) b == a", lambda a, b, c: apply(undo, f(a, b), b), lambda a, b, c: a)


def operator(
    function: Callable[..., Any] | None = None,
    /,
    *,
    associative: bool = False,
    commutative: bool = False,
    idempotent: bool = False,
    neutral: Any = None,
    absorbing: Any = None,
    inverse: Callable[..., Any] | None = None,
    name: str | None = None,
    **unknown: Never,
) -> Any:
    """Decorator: a Python function of two operands as an operator, and what may be assumed of it.

        @lf.operator(associative=True, commutative=True, neutral=0)
        def both(a, b):
            return a + b + a * b

    The operands may be numbers or tuples; `neutral` and `absorbing` (None: there is none) are values of their type:
    neutral * a = a = a * neutral, absorbing * a = absorbing = a * absorbing. `inverse` is a function, or another
    operator, that undoes it: inverse(a * b, b) = a. What is declared is tried out on many values when the operator is
    first used on operands of some type: TypeMismatch is raised for a law that does not hold, and where the function
    does not give what it takes; at once for a law of another name.
    """
    from lithify.lang.frontend import operator as declared
    from lithify.lang.syntax import PARTS, PROPERTIES

    if unknown:
        laws = (*PROPERTIES, *PARTS)
        raise TypeMismatch(f"an operator declares no {', '.join(unknown)}", hint=choices(next(iter(unknown)), laws))
    claimed = dict(zip(PROPERTIES, (associative, commutative, idempotent), strict=True))
    for label, given in claimed.items():
        if not isinstance(given, bool):
            raise TypeMismatch(f"{label} is True or False, {kind_of(given)} is given")
    if name is not None:
        text_given(name, "the name of an operator", 'write name="plus"', TypeMismatch)

    def declare(function: Callable[..., Any]) -> Any:
        if isinstance(function, type) or not callable(function):
            hint = "decorate a function of two operands: @lf.operator(associative=True)"
            raise TypeMismatch(f"an operator is made of a function, {kind_of(function)} is given", hint=hint)
        given = str(name or getattr(function, "__name__", ""))
        label = given if given.isidentifier() else "unnamed"  # a lambda's name is none
        properties = [each for each, holds in claimed.items() if holds]
        parts = dict(zip(PARTS, (neutral, absorbing, inverse), strict=True))
        return declared(function, label, properties, check_declared, **parts)

    return declare if function is None else declare(function)


def check_declared(operator: Operator, type_: Type) -> None:
    """Try out every property of a declared operator on values of a type.

    Raises TypeMismatch with the law and the values for which it does not hold.
    """
    values = _triples(type_)
    for law in _laws(operator):
        _compare(operator, law, values, type_)


def _compare(operator: Operator, law: _Law, values: dict[str, Any], type_: Type) -> None:
    """Both sides for all triples at once."""
    size = _SAMPLES**3
    zipped = build.zip_(*[build.param(n, Array(size, type_)) for n in "abc"])

    def side(of: Side) -> list[np.ndarray[Any, Any]]:
        term = build.map_(lambda t: of(build.proj(0, t), build.proj(1, t), build.proj(2, t)), zipped)
        used = {n: values[n] for n in term.parameters}
        return [np.asarray(leaf) for leaf in flatten([evaluate(term, used)])]

    for got, wanted in zip(side(law.left), side(law.right), strict=True):
        apart = np.argwhere(distance(got, wanted) > _EQUAL * np.maximum(1.0, np.abs(np.nan_to_num(wanted))))
        if len(apart):
            k = int(apart[0][0])
            where = ", ".join(f"{n} = {_shown(values[n], k)}" for n in "abc" if n in law.text)
            raise TypeMismatch(
                f"operator {operator.name} is not {law.name}: {law.text} does not hold for {where}",
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
