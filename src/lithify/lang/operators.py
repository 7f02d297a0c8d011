"""Scalar operators: one table of names, typing and declared algebra.

Rules ask an operator what it *declares* (associative, commutative, neutral element, ...); nothing is assumed. Users
declare their own operators, on tuples too (argmax, online softmax); those carry a definition in the language.

Operators are total and mean the same in the evaluators and on every target:

* Integers wrap around: add, sub, mul, neg, abs, shl, and the least value divided by -1.
* Integer div and rem by zero give 0.
* A shift by the width or more shifts everything out: shl gives 0, shr 0 or -1. A negative count is such a one.
* min and max of a NaN and a number give the number (minNum and maxNum of IEEE 754-2008, C's fmin and fmax); which of
  0 and -0 they give is not said. Their neutral elements are so for numbers: the least of nothing but NaN is one.
* Conversion of floats to integers truncates towards zero, and saturates outside the type's range; NaN gives 0.
  Conversion of integers to integers wraps. Complex to real takes the real part; to bool, anything but 0 is true.
* The rest of floating point is IEEE 754's, results rounded to nearest even; the mathematical functions may differ in
  the last places, and complex results that overflow on the way may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from lithify.lang.errors import TypeMismatch
from lithify.lang.scalars import SCALARS, Kind, Scalar, bool_, f32, f64
from lithify.lang.types import Index, Type

if TYPE_CHECKING:
    from lithify.lang.term import Term


class Typing(Enum):
    """How an operator's result type follows from its operands' types."""

    SAME = "all operands and the result have one type"
    COMPARE = "operands have one type or are indices, the result is bool"
    SELECT = "(bool, t, t) -> t"
    CONVERT = "any scalar or index -> the target"
    DEFINED = "that of the definition"
    MAKE_COMPLEX = "(f, f) -> complex of f"
    PART = "complex of f -> f"
    SINGLE = "f32 -> f32"


ORDERED = frozenset({Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT})
NUMBERS = ORDERED | {Kind.COMPLEX}
FRACTIONS = frozenset({Kind.FLOAT, Kind.COMPLEX})
INTEGERS = frozenset({Kind.SIGNED, Kind.UNSIGNED})
SIGNED_NUMBERS = frozenset({Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX})
LOGICAL = INTEGERS | {Kind.BOOL}
ANY = frozenset(Kind)


@dataclass(frozen=True, eq=False, slots=True)
class Operator:
    """A scalar operator, or a user-declared operator on scalars and tuples.

    The algebra is a declaration that rules rely on: `associative`, `commutative`, `idempotent` (a.a = a), `neutral`
    and `absorbing` (the element, by scalar type), `inverse` (the operator that undoes the second operand). Those of an
    operator that a program declares are terms: the elements, and the function of two that undoes it. `rounds`
    says that on floating point the laws hold up to rounding only: they are used under the policy "reassociable"
    (the default) and refused under "exact".
    """

    name: str
    arity: int
    typing: Typing = Typing.SAME
    kinds: frozenset[Kind] = NUMBERS
    symbol: str | None = None
    associative: bool = False
    commutative: bool = False
    idempotent: bool = False
    rounds: bool = False
    neutral: Callable[[Scalar], Any] | None = None
    absorbing: Callable[[Scalar], Any] | None = None
    inverse: str | None = None
    target: Scalar | None = None
    definition: Term | None = None
    neutral_term: Term | None = None
    absorbing_term: Term | None = None
    inverse_term: Term | None = None
    meaning: str = ""

    def __repr__(self) -> str:
        return f"Operator({self.name})"

    def result_type(self, operands: tuple[Type, ...]) -> Type:
        """The result type for operands of the given types; raises TypeMismatch."""
        if len(operands) != self.arity:
            raise TypeMismatch(f"{self.name} takes {self.arity} operand(s), {len(operands)} given")
        if self.typing is Typing.DEFINED:
            return self._defined_type(operands)
        if self.typing is Typing.CONVERT:
            assert self.target is not None
            if not isinstance(operands[0], Scalar | Index):
                raise TypeMismatch(f"{self.name} converts scalars and indices, not {operands[0]}")
            return self.target
        if self.typing is Typing.SELECT:
            condition, then, otherwise = operands
            if condition is not bool_ or then is not otherwise or not isinstance(then, Scalar | Index):
                raise TypeMismatch(
                    f"select takes (bool, t, t) for a scalar or index type t, not ({', '.join(map(str, operands))})"
                )
            return then
        first = operands[0]
        if self.typing is Typing.COMPARE and all(isinstance(t, Index) for t in operands):
            return bool_
        if any(t is not first for t in operands):
            raise TypeMismatch(
                f"the operands of {self.name} have different types: {' and '.join(map(str, operands))}",
                hint=_to_convert(operands),
            )
        if not isinstance(first, Scalar):
            hint = "convert the index first, for example `i32 i`" if isinstance(first, Index) else "use map"
            raise TypeMismatch(f"{self.name} works on scalars, not on {first}", hint=hint)
        if self.typing is Typing.SINGLE and first is not f32:
            raise TypeMismatch(f"{self.name} takes an f32, not {first}", hint=f"convert it: `{self.name} (f32 x)`")
        if first.kind not in self.kinds:
            raise TypeMismatch(f"{self.name} is not defined on {first} ({first.kind.value})", hint=self._instead(first))
        if self.typing is Typing.COMPARE:
            return bool_
        if self.typing is Typing.PART:
            return f32 if first.bits == 64 else f64
        if self.typing is Typing.MAKE_COMPLEX:
            if first not in (f32, f64):
                raise TypeMismatch(f"complex takes two f32 or two f64, not {first}")
            return SCALARS["complex64" if first is f32 else "complex128"]
        return first

    def _instead(self, scalar: Scalar) -> str | None:
        """What to write for an operator that a type does not have."""
        if scalar.is_complex:
            if self.name == "abs":
                return "the modulus of z is `sqrt (re z * re z + im z * im z)`"
            if self.kinds == ORDERED:
                return "complex numbers have no order: take `re z`, or the modulus `sqrt (re z * re z + im z * im z)`"
        if self.typing is Typing.MAKE_COMPLEX and scalar.is_integer:
            return "a literal is written `complex64 (1, 2)`; convert what is no literal: `complex (f32 a) (f32 b)`"
        if scalar.is_integer and Kind.FLOAT in self.kinds:
            return "convert it: `f32 x`"
        return None

    def _defined_type(self, operands: tuple[Type, ...]) -> Type:
        from lithify.lang.types import Function

        assert self.definition is not None
        type_ = self.definition.type
        for operand in operands:
            assert isinstance(type_, Function)
            if operand is not type_.parameter:
                raise TypeMismatch(f"{self.name} takes a {type_.parameter} here, {operand} given")
            type_ = type_.result
        return type_


def _to_convert(operands: tuple[Type, ...]) -> str:
    scalar = next((t for t in operands if isinstance(t, Scalar)), None)
    if scalar is not None and any(isinstance(t, Index) for t in operands):
        return f"convert the index first: `{scalar} i`"
    return "convert one of them, for example `f32 x`"


def _const(value: Any) -> Callable[[Scalar], Any]:
    return lambda _scalar: value


def _least(scalar: Scalar) -> Any:
    return scalar.limits[0]


def _greatest(scalar: Scalar) -> Any:
    return scalar.limits[1]


def _all_ones(scalar: Scalar) -> Any:
    if scalar.kind is Kind.BOOL:
        return True
    return scalar.limits[1] if scalar.kind is Kind.UNSIGNED else -1


def _zero_or_false(scalar: Scalar) -> Any:
    return False if scalar.kind is Kind.BOOL else 0


_SAME, _COMPARE = Typing.SAME, Typing.COMPARE
_TABLE = (
    Operator("add", 2, _SAME, NUMBERS, "+", True, True, rounds=True, neutral=_const(0), inverse="sub", meaning="a + b"),
    Operator("sub", 2, _SAME, NUMBERS, "-", inverse="add", meaning="a - b"),
    Operator("mul", 2, _SAME, NUMBERS, "*", True, True, rounds=True, neutral=_const(1), meaning="a b"),
    Operator("div", 2, _SAME, NUMBERS, "/", meaning="a / b; on integers truncated towards zero, 0 where b is 0"),
    Operator("rem", 2, _SAME, INTEGERS, "%", meaning="a - b (a / b), with the sign of a; 0 where b is 0"),
    Operator("min", 2, _SAME, ORDERED, None, True, True, True, neutral=_greatest, absorbing=_least,
             meaning="the smaller; of a NaN and a number, the number"),
    Operator("max", 2, _SAME, ORDERED, None, True, True, True, neutral=_least, absorbing=_greatest,
             meaning="the larger; of a NaN and a number, the number"),
    Operator("pow", 2, _SAME, frozenset({Kind.FLOAT}), "^", meaning="a to the power b"),
    Operator("fma", 3, _SAME, frozenset({Kind.FLOAT}), meaning="a b + c, rounded once"),
    Operator("and", 2, _SAME, LOGICAL, "&&", True, True, True, neutral=_all_ones, absorbing=_zero_or_false,
             meaning="logical and; bitwise on integers"),
    Operator("or", 2, _SAME, LOGICAL, "||", True, True, True, neutral=_zero_or_false, absorbing=_all_ones,
             meaning="logical or; bitwise on integers"),
    Operator("xor", 2, _SAME, LOGICAL, None, True, True, neutral=_zero_or_false, inverse="xor",
             meaning="exclusive or; bitwise on integers"),
    Operator("shl", 2, _SAME, INTEGERS, "<<", meaning="a 2^b, wrapped to the width; 0 where b is not below it"),
    Operator("shr", 2, _SAME, INTEGERS, ">>>", meaning="floor(a / 2^b); 0 or -1 where b is not below the width"),
    Operator("neg", 1, _SAME, SIGNED_NUMBERS, meaning="-a"),
    Operator("abs", 1, _SAME, ORDERED, meaning="absolute value"),
    Operator("not", 1, _SAME, LOGICAL, meaning="logical not; bitwise on integers"),
    *(Operator(name, 1, _SAME, FRACTIONS, meaning=meaning) for name, meaning in (
        ("sqrt", "square root"), ("exp", "e to the power a"), ("log", "natural logarithm"),
        ("sin", "sine, radians"), ("cos", "cosine, radians"))),
    *(Operator(name, 1, _SAME, frozenset({Kind.FLOAT}), meaning=meaning) for name, meaning in (
        ("rsqrt", "1 / sqrt a"), ("tan", "tangent, radians"), ("tanh", "hyperbolic tangent"), ("erf", "error function"),
        ("floor", "largest integer value <= a"), ("ceil", "least integer value >= a"),
        ("round", "nearest integer value, ties to even"))),
    *(Operator(name, 2, _COMPARE, ANY if name in ("eq", "ne") else ORDERED, symbol, commutative=name in ("eq", "ne"),
               meaning=f"a {symbol} b") for name, symbol in (
        ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))),
    Operator("select", 3, Typing.SELECT, ANY, meaning="b where a holds, else c; both are evaluated"),
    Operator("tf32", 1, Typing.SINGLE, frozenset({Kind.FLOAT}),
             meaning="the f32 rounded to 11 significant bits, ties to even: what TF32 multiplies"),
    Operator("complex", 2, Typing.MAKE_COMPLEX, frozenset({Kind.FLOAT}), meaning="a + i b"),
    Operator("re", 1, Typing.PART, frozenset({Kind.COMPLEX}), meaning="real part"),
    Operator("im", 1, Typing.PART, frozenset({Kind.COMPLEX}), meaning="imaginary part"),
    Operator("conj", 1, _SAME, frozenset({Kind.COMPLEX}), meaning="complex conjugate"),
    *(Operator(s.name, 1, Typing.CONVERT, ANY, target=s,
               meaning=f"conversion to {s.name}" + ("; floats truncate and saturate, integers wrap" * s.is_integer))
      for s in SCALARS.values()),
)  # fmt: skip

OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}
BY_SYMBOL: dict[str, Operator] = {operator.symbol: operator for operator in _TABLE if operator.symbol}


def convert_to(scalar: Scalar) -> Operator:
    """The conversion to a scalar type: floats to integers truncate and saturate, integers wrap."""
    return OPERATORS[scalar.name]
