"""What expressions mean while they are elaborated: typed terms, numbers without a type yet, functions, tuples.

The text reader and the Python front end share these values and the primitives over them (`lithify.lang.primitives`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from lithify.arith import ArithError, Expr, as_expr, maximum, minimum
from lithify.lang.build import const, convert, op, power
from lithify.lang.elsewhere import written_here
from lithify.lang.errors import LithifyError, ParseError, TypeMismatch
from lithify.lang.index_functions import IndexFunction
from lithify.lang.operators import INTEGERS, NUMBERS, OPERATORS, Typing
from lithify.lang.positions import Position
from lithify.lang.scalars import Scalar, f32, i32
from lithify.lang.spelling import meant
from lithify.lang.syntax import Span
from lithify.lang.term import Term
from lithify.lang.types import Index


@dataclass(frozen=True, slots=True)
class FreeName:
    """A name that nothing binds: a size parameter in size position, an error anywhere else."""

    name: str
    span: Span
    known: tuple[str, ...]  # what is in scope, for suggestions

    def unknown(self) -> ParseError:
        """The error of using the name as a value."""
        hint = written_here(self.name) or meant(self.name, self.known)
        return ParseError(f"unknown name `{self.name}`", where=str(self.span), hint=hint)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Arithmetic on numbers without a type."""

    operator: str
    operands: tuple[Numeral, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two numbers without a type, by a condition."""

    condition: Term
    then: Numeral
    otherwise: Numeral


Resolve = Callable[[FreeName], Expr]


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number without a type: a literal, a size, a free name, or arithmetic on them. `origin`: what bound the size."""

    value: int | float | complex | Expr | FreeName | Arithmetic | Choice
    origin: str | None = None

    def as_size(self, resolve: Resolve | None = None) -> Expr:
        """The size it denotes; `resolve` gives meaning to free names. Raises TypeMismatch for what is no integer."""
        value = self.value
        if isinstance(value, Expr):
            return value
        if isinstance(value, int):
            return as_expr(value)
        if isinstance(value, FreeName):
            if resolve is None:
                raise value.unknown()
            return resolve(value)
        if isinstance(value, Arithmetic) and value.operator in _SIZE_OPERATORS:
            operands = [operand.as_size(resolve) for operand in value.operands]
            try:
                return _SIZE_OPERATORS[value.operator](*operands)
            except ArithError as error:
                raise TypeMismatch(f"{self} is not a size: {error}") from error
        raise TypeMismatch(f"a size expected, {self} given")

    def as_term(self, type_: Scalar | Index) -> Term:
        """The constant of a type; arithmetic is done in that type."""
        value = self.value
        if isinstance(value, FreeName):
            raise value.unknown()
        if isinstance(type_, Index):
            return const(self.as_size(), type_)
        if isinstance(value, Arithmetic):
            base, *rest = value.operands
            if value.operator == "pow" and not type_.is_float and isinstance(rest[0].value, int):
                return whole_power(base.as_term(type_), rest[0].value)
            return op(value.operator, *[operand.as_term(type_) for operand in value.operands])
        if isinstance(value, Choice):
            return op("select", value.condition, value.then.as_term(type_), value.otherwise.as_term(type_))
        if isinstance(value, Expr):
            if value.constant is None:
                return convert(type_, const(value, Index(value + 1)))
            value = value.constant
        if isinstance(value, complex) and not type_.is_complex:
            raise TypeMismatch(f"{value} is not a value of {type_}")
        return const(value, type_)

    def default_type(self) -> Scalar:
        """The type where the context gives none: i32 for integers, f32 for the rest."""
        value = self.value
        if isinstance(value, FreeName):
            raise value.unknown()
        parts = value.operands if isinstance(value, Arithmetic) else ()
        if isinstance(value, Choice):
            parts = value.then, value.otherwise
        if parts:
            fraction = isinstance(value, Arithmetic) and not OPERATORS[value.operator].kinds & INTEGERS
            return f32 if fraction or any(part.default_type() is f32 for part in parts) else i32
        return i32 if isinstance(value, int | Expr) else f32

    def __str__(self) -> str:
        value = self.value
        if isinstance(value, FreeName):
            return value.name
        if isinstance(value, Arithmetic):
            symbol = OPERATORS[value.operator].symbol
            if symbol is None or len(value.operands) != 2:
                return f"{value.operator}({', '.join(map(str, value.operands))})"
            return f" {symbol} ".join(map(str, value.operands))
        if isinstance(value, Choice):
            return f"if .. then {value.then} else {value.otherwise}"
        return str(value)


def _size_power(base: Expr, exponent: Expr) -> Expr:
    times = exponent.constant
    if times is None or not 0 <= times <= _LARGEST_EXPONENT:
        raise ArithError(f"the exponent {exponent} is no number from 0 to {_LARGEST_EXPONENT}")
    result = as_expr(1)
    for _ in range(times):
        result *= base
    return result


_SIZE_OPERATORS: Final[dict[str, Callable[..., Expr]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b,
    "rem": lambda a, b: a % b,
    "neg": lambda a: -a,
    "pow": _size_power,
    "min": minimum,
    "max": maximum,
}
# Arithmetic and functions of numbers without a type have none either: the context decides it, as that of a literal.
NUMERAL_OPERATORS: Final = frozenset(
    name for name, operator in OPERATORS.items() if operator.typing is Typing.SAME and operator.kinds & NUMBERS
)


_LARGEST_EXPONENT: Final = 64


def whole_power(base: Term, exponent: int) -> Term:
    """A power of an integer or of a complex number, as a product. Raises TypeMismatch for an exponent that has none."""
    assert isinstance(base.type, Scalar)
    least = -_LARGEST_EXPONENT if base.type.is_complex else 0
    if not least <= exponent <= _LARGEST_EXPONENT:
        raise TypeMismatch(
            f"a power of {base.type} has an exponent from {least} to {_LARGEST_EXPONENT}, not {exponent}",
            hint=None if base.type.is_complex else f"convert it: `f32 x ^ {exponent}`",
        )
    return power(base, exponent)


@dataclass(frozen=True, slots=True)
class TupleValue:
    """A tuple some of whose components have no type yet, or are functions."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class LiteralArray:
    """An array literal all of whose elements are numbers without a type."""

    items: tuple[Numeral | LiteralArray, ...]

    def default_type(self) -> Scalar:
        """The elements' type where the context gives none."""
        types = [item.default_type() for item in self.items]
        return next((t for t in types if t.is_float), types[0])

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.items)) + "]"


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """An index function for any length: `stride s`, `reverse`; given to `reorder`."""

    name: str
    make: Callable[[Expr], IndexFunction]


@dataclass(frozen=True, slots=True)
class PadMode:
    """`clamp`, `mirror`, `wrap` or `fill c`."""

    name: str
    fill: Value | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FunctionValue:
    """A curried function over values: `arity` more arguments complete it.

    `site` is where it was last applied, `definition` the name of the user's definition that it is.
    """

    name: str
    arity: int
    body: Callable[..., Value]
    given: tuple[Value, ...] = ()
    site: Span | None = None
    definition: str | None = None

    def at(self, site: Span) -> FunctionValue:
        """The same function, with the place where errors are reported."""
        return replace(self, site=site)

    def __call__(self, argument: Value) -> Value:
        """Apply to one argument."""
        given = (*self.given, argument)
        if self.arity > 1:
            return replace(self, arity=self.arity - 1, given=given)
        try:
            return self.body(*given)
        except LithifyError as error:
            if self.site is not None:
                used = error.where is not None and self.definition is not None and self.site.shown
                if used and str(self.site) not in str(error.where):
                    error.where = f"{error.where}\nin the use of `{self.definition}` at {self.site}"
                else:
                    error.located(str(self.site))
            raise


Value = Term | Position | Numeral | LiteralArray | TupleValue | FunctionValue | Rearrangement | PadMode


def describe(value: Value) -> str:
    """What a value is, for error messages; raises ParseError for an unknown name, which is the cause then."""
    if isinstance(value, Term):
        return str(value.type)
    if isinstance(value, Position):
        return value.range()
    if isinstance(value, Numeral):
        value.default_type()
        return f"the number {value}"
    if isinstance(value, LiteralArray):
        return f"the array {value}"
    if isinstance(value, TupleValue):
        return "(" + ", ".join(map(describe, value.items)) + ")"
    if isinstance(value, FunctionValue):
        given = len(value.given)
        missing = (
            f"{value.arity} more argument{'s' if value.arity > 1 else ''}"
            if given
            else (f"{value.arity} argument{'s' if value.arity > 1 else ''}")
        )
        return f"a function ({value.name} takes {missing})"
    return value.name
