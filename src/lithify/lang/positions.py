"""Arithmetic on indices: what `i + 1` and `max (i - 1) 0` are while a program is read, and which types they get.

The sum of an index and an integer has no type of its own until something needs one: on the way an index may leave the
array, `max (i - 1) 0` does. Where it is used as an index it must provably lie in the array (TypeMismatch otherwise);
where nothing says what it is below, its type says the least bound that follows from those of its parts. What is proved
is proved of the normal form of the whole expression: `i / 2 * 2 + i % 2` is i. Quotients are rounded down, as those of
sizes are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Final

from lithify.arith import ArithError, Expr, as_expr, const, maximum, minimum, proves
from lithify.lang import build
from lithify.lang.assumptions import OpenCondition, is_assumed
from lithify.lang.errors import TypeMismatch
from lithify.lang.index_functions import IndexFormula, operand_variable
from lithify.lang.operators import Operator
from lithify.lang.scalars import Scalar, i32, i64
from lithify.lang.term import Term
from lithify.lang.types import Index

_HINT = "keep it inside, xs[max (i - 1) 0] or xs[min (i + 1) (n - 1)]; or read neighbours through pad and slide"


@dataclass(frozen=True, slots=True)
class Position:
    """An expression over indices: over one `operand_variable` for each of the operands. It lies in [low, high]."""

    expression: Expr
    operands: tuple[Term, ...]
    low: Expr
    high: Expr

    @staticmethod
    def of(value: Term | Expr) -> Position:
        """That of a term whose type is an index, or of a size."""
        if isinstance(value, Expr):
            return Position(value, (), value, value)
        assert isinstance(value.type, Index)
        high = value.type.size - 1
        if value.kind == "const":
            return Position.of(as_expr(build.constant_value(value)))
        if value.kind == "index":
            return Position(value["formula"].expression, value.args, const(0), high)
        return Position(operand_variable(0, value.type.size), (value,), const(0), high)

    @property
    def never(self) -> bool:
        """Whether there is no such index: one of the operands counts the elements of an empty array."""
        return any(extent.constant == 0 for extent in self._extents)

    @property
    def _extents(self) -> tuple[Expr, ...]:
        return tuple([o.type.size for o in self.operands if isinstance(o.type, Index)])

    def at_least(self, bound: Expr) -> bool:
        """Is it provably no less?"""
        return proves(self.expression - bound) or proves(self.low - bound) or self.never

    def at_most(self, bound: Expr) -> bool:
        """Is it provably no more?"""
        return proves(bound - self.expression) or proves(bound - self.high) or self.never

    def index(self, size: Expr | None = None, what: str = "") -> Term:
        """The index below a size, of `what`; without a size, below the least one that is known to be above it.

        Raises TypeMismatch where it may lie outside.
        """
        if len(self.operands) == 1 and self.expression is operand_variable(0, self._extents[0]):
            if size is None or size is self._extents[0]:
                return self.operands[0]
        limit = (const(1) if self.never else self.high + 1) if size is None else size
        if not self.at_least(const(0)) or not self.at_most(limit - 1):
            known = f" is not within {what or Index(limit)}" if self.low.constant is not None else " may be below 0"
            open_ = self.low.variables() | (self.high - limit).variables()
            condition = f"0 <= {self.low}" if not self.at_least(const(0)) else f"{self.high} < {limit}"
            if not open_:
                raise TypeMismatch(self.range() + known, hint=_HINT)
            if not is_assumed(condition):
                raise OpenCondition(self.range() + known, [condition], hint=_HINT)
        if self.never and self.expression.constant is not None and limit.lo >= 1:
            return build.const(0, Index(limit))  # nothing has it: any will do, if only it lies within
        return build.index(self.expression, self.operands, Index(limit))

    def integer(self, scalar: Scalar) -> Term:
        """Its value as an integer of a type that holds it."""
        if self.expression.constant is not None:
            return build.const(self.expression.constant, scalar)
        if self.at_least(const(0)):
            return build.convert(scalar, self.index())
        return build.index(self.expression, self.operands, scalar)

    def converted(self, operator: Operator) -> Term:
        """A conversion of it to a scalar type."""
        if self.at_least(const(0)):
            return build.op(operator, self.index())
        holds, target = _holds(self), operator.target
        if target is i64 or target is holds:
            return self.integer(target)
        return build.op(operator, self.integer(holds))

    def size_of(self, other: Position) -> Expr | None:
        """The size that a number takes from the index that it is compared with; None where it is not below that."""
        size = self.high + 1
        return size if self.operands and not other.operands and other.at_most(self.high) else None

    def range(self) -> str:
        """The range, for messages."""
        return f"an index from {self.low} to {self.high}"


def is_index(value: object) -> bool:
    """Is the value an index, by its type or computed from some?"""
    return isinstance(value, Position) or (isinstance(value, Term) and isinstance(value.type, Index))


def _holds(*positions: Position) -> Scalar:
    low = min(max(p.expression.lo, p.low.lo) for p in positions)
    high = max(min(p.expression.hi, p.high.hi) for p in positions)
    return i32 if low >= i32.limits[0] and high <= i32.limits[1] else i64


def compare(operator: Operator, a: Position, b: Position) -> Term:
    """A comparison."""
    if a.at_least(const(0)) and b.at_least(const(0)):
        first, second = a.index(b.size_of(a)), b.index(a.size_of(b))
        return build.op(operator, first, second)
    scalar = _holds(a, b)
    return build.op(operator, a.integer(scalar), b.integer(scalar))


def choose(condition: Term, a: Position, b: Position) -> Term:
    """One of two indices; both must be some."""
    size = maximum(a.high, b.high) + 1
    return build.select(condition, a.index(size), b.index(size))


def combine(name: str, a: Position, b: Position) -> Position:
    """An operator of ARITHMETIC on two. Raises TypeMismatch for a quotient by what may be below 1."""
    operands = a.operands + tuple([o for o in b.operands if o not in a.operands])
    places = [operand_variable(operands.index(o), n) for o, n in zip(b.operands, b._extents, strict=True)]
    right = IndexFormula(b.expression, b._extents).of(places)
    try:
        expression, low, high = ARITHMETIC[name](a, b, a.expression, right)
    except ArithError as error:
        raise TypeMismatch(str(error)) from error
    for k, operand in enumerate(operands):
        assert isinstance(operand.type, Index)
        if expression is operand_variable(k, operand.type.size):
            low, high = const(0), operand.type.size - 1
    if expression.constant is not None:
        low = high = expression
    if expression.lo > low.lo:
        low = const(int(expression.lo))
    if expression.hi < high.hi:
        high = const(int(expression.hi))
    return Position(expression, operands, low, high)


def raised(base: Position, exponent: Position) -> Position:
    """A power with a known exponent. Raises TypeMismatch for another."""
    times = exponent.expression.constant
    if times is None or not 0 <= times <= 8:
        raise TypeMismatch(f"a power of an index has an exponent from 0 to 8, not {exponent.expression}", hint=_CONVERT)
    result = Position.of(const(1))
    for _ in range(times):
        result = combine("mul", result, base)
    return result


Bounded = tuple[Expr, Expr, Expr]


def _product(a: Position, b: Position, x: Expr, y: Expr) -> Bounded:
    if a.at_least(const(0)) and b.at_least(const(0)):
        return x * y, maximum(a.low, 0) * maximum(b.low, 0), a.high * b.high
    first, *others = (p * q for p in (a.low, a.high) for q in (b.low, b.high))
    return x * y, reduce(minimum, others, first), reduce(maximum, others, first)


def _quotient(a: Position, b: Position, x: Expr, y: Expr) -> Bounded:
    _refuse_divisor(b)
    least, most = maximum(b.low, 1), b.high
    return x // y, minimum(a.low // least, a.low // most), maximum(a.high // least, a.high // most)


def _remainder(a: Position, b: Position, x: Expr, y: Expr) -> Bounded:
    _refuse_divisor(b)
    return x % y, const(0), minimum(a.high, b.high - 1) if a.at_least(const(0)) else b.high - 1


def _refuse_divisor(b: Position) -> None:
    if not b.at_least(const(1)):
        raise TypeMismatch(f"division by {b.range()}, which may be below 1", hint=_CONVERT)


_CONVERT = "integers of a fixed width have all arithmetic: convert it first, `i32 i`"

ARITHMETIC: Final[dict[str, Callable[[Position, Position, Expr, Expr], Bounded]]] = {
    "add": lambda a, b, x, y: (x + y, a.low + b.low, a.high + b.high),
    "sub": lambda a, b, x, y: (x - y, a.low - b.high, a.high - b.low),
    "mul": _product,
    "div": _quotient,
    "rem": _remainder,
    "min": lambda a, b, x, y: (minimum(x, y), minimum(a.low, b.low), minimum(a.high, b.high)),
    "max": lambda a, b, x, y: (maximum(x, y), maximum(a.low, b.low), maximum(a.high, b.high)),
}
"""What is defined between indices, and between an index and an integer."""
