"""What polynomials are made of: variables, floors, exclusive ors, minima and indices read from buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from lithify.arith import division, expr, functions, pretty, ranges
from lithify.arith.errors import ArithError
from lithify.arith.table import SIZES, Table, fresh

if TYPE_CHECKING:
    from lithify.arith.expr import Expr

Load = Callable[[Any, tuple[Any, ...]], Any]

_loads = count()  # tells buffers of the same name apart

INDEX, FLOOR, XOR, MIN, LOADED, SIZE = range(6)  # in this order atoms are written in a sum


class Atom:
    """A factor of a monomial."""

    __slots__ = ("expr", "hi", "key", "level", "lo", "table", "variables")

    key: tuple[Any, ...]  # orders atoms by structure
    level: int  # greater than the level of every atom that its value or its range depends on
    lo: float  # numeric bounds: an int, or +-math.inf
    hi: float
    table: Table
    variables: frozenset[Variable]
    expr: Expr  # the atom as an expression

    def _finish(self, key: tuple[Any, ...], parts: tuple[Expr, ...]) -> None:
        self.key = key
        self.level = 1 + max([level(p) for p in parts], default=0)
        self.table = max([p.table for p in parts], key=_serial, default=SIZES)
        self.variables = frozenset[Any]().union(*[p.variables() for p in parts])
        self.expr = expr.make(0, (((self,), 1),))

    def parts(self) -> tuple[Expr, ...]:
        """The expressions that the atom is made of."""
        return ()

    def operands(self) -> tuple[Expr, ...]:
        """The parts that the value is computed from."""
        return self.parts()

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        """The same operation on other parts."""
        raise NotImplementedError

    def compute(self, values: tuple[Any, ...], load: Load | None) -> Any:
        """The value, given the values of the operands."""
        raise NotImplementedError

    def __str__(self) -> str:
        return pretty.atom(self)

    __repr__ = __str__


class Variable(Atom):
    """A size (``lo <= v``, unbounded) or an index (``0 <= v <= last``; `last` may be symbolic)."""

    __slots__ = ("kind", "last", "name")

    def __init__(self, name: str, kind: str, lo: int, last: Expr | None) -> None:
        self.name = name
        self.kind = kind  # "size" or "index"
        self.lo = lo
        self.last = last
        self.hi = math.inf if last is None else last.hi
        self.level = 0 if last is None else 1 + level(last)
        self.table = SIZES if last is None else fresh()
        self.key = (SIZE, name, lo) if last is None else (INDEX, self.table.serial)
        self.variables = frozenset((self,))
        self.expr = expr.make(0, (((self,), 1),))

    @property
    def extent(self) -> Expr | None:
        """The number of values of an index variable; None for a size."""
        return None if self.last is None else self.last + 1


class Floor(Atom):
    """floor(numerator / divisor), divisor >= 1."""

    __slots__ = ("divisor", "numerator")

    def __init__(self, numerator: Expr, divisor: Expr) -> None:
        self.numerator = numerator
        self.divisor = divisor
        self.lo, self.hi = ranges.floor(numerator, divisor)
        self._finish((FLOOR, expr.structure(numerator), expr.structure(divisor)), self.parts())

    def parts(self) -> tuple[Expr, ...]:
        return (self.numerator, self.divisor)

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return division.divide(*parts)  # a divisor >= 1 stays so

    def compute(self, values: tuple[Any, ...], load: Load | None) -> Any:
        return values[0] // values[1]


class Xor(Atom):
    """Bitwise exclusive or of two expressions >= 0."""

    __slots__ = ("left", "right")

    def __init__(self, left: Expr, right: Expr) -> None:
        self.left = left
        self.right = right
        self.lo, self.hi = ranges.xor(left, right)
        self._finish((XOR, expr.structure(left), expr.structure(right)), self.parts())

    def parts(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return functions.combine_bits(*parts)  # operands >= 0 stay so

    def compute(self, values: tuple[Any, ...], load: Load | None) -> Any:
        return values[0] ^ values[1]


class Min(Atom):
    """The smaller of two expressions; the larger is ``left + right - min(left, right)``."""

    __slots__ = ("left", "right")

    def __init__(self, left: Expr, right: Expr) -> None:
        self.left = left
        self.right = right
        self.lo, self.hi = min(left.lo, right.lo), min(left.hi, right.hi)
        self._finish((MIN, expr.structure(left), expr.structure(right)), self.parts())

    def parts(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return functions.minimum(*parts)

    def compute(self, values: tuple[Any, ...], load: Load | None) -> Any:
        a, b = values
        smaller = a < b  # a number or an array of them
        return a * smaller + b * (1 - smaller)


class Loaded(Atom):
    """``buffer[index]``, promised to lie in [first, last]."""

    __slots__ = ("buffer", "first", "index", "last")

    def __init__(self, buffer: Hashable, index: tuple[Expr, ...], first: Expr, last: Expr) -> None:
        self.buffer = buffer
        self.index = index
        self.first = first
        self.last = last
        self.lo, self.hi = first.lo, last.hi
        key = (LOADED, str(buffer), next(_loads))
        self._finish(key, self.parts())

    def parts(self) -> tuple[Expr, ...]:
        return (*self.index, self.first, self.last)

    def operands(self) -> tuple[Expr, ...]:
        return self.index

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return functions.loaded(self.buffer, parts[:-2], parts[-2], parts[-1])

    def compute(self, values: tuple[Any, ...], load: Load | None) -> Any:
        if load is None:
            raise ArithError(f"{self} cannot be evaluated: no function that loads from {self.buffer} was given")
        return load(self.buffer, values)


def _serial(table: Table) -> int:
    return table.serial


def level(e: Expr) -> int:
    """The greatest level of an atom in `e`; 0 for constants and sums of sizes."""
    return max([a.level for m, _ in e.terms for a in m], default=0)


A = TypeVar("A", bound=Atom)


def intern(cls: type[A], *fields: Any) -> Expr:
    """The atom of a class with these fields, as an expression: one object for equal fields."""
    key = (cls, *fields)
    parts = [p for field in fields for p in (field if isinstance(field, tuple) else (field,))]
    table = max([p.table for p in parts if isinstance(p, expr.Expr)], key=_serial)
    atom = table.atoms.get(key)
    if atom is None:
        atom = table.atoms.setdefault(key, cls(*fields))
    return atom.expr


def as_variable(e: Expr | Variable) -> Variable:
    """The variable that `e` is. Raises ArithError when it is another expression."""
    if isinstance(e, Variable):
        return e
    atom = e.single
    if not isinstance(atom, Variable):
        raise ArithError(f"{e} is not a variable")
    return atom


def size(name: str, lo: int = 1) -> Expr:
    """The size variable `name`, known to be >= `lo`. The same name and bound give the same object."""
    key = (Variable, name, lo)
    atom = SIZES.atoms.get(key)
    if atom is None:
        atom = SIZES.atoms.setdefault(key, Variable(name, "size", lo, None))
    return atom.expr


def var(name: str, extent: Expr | int) -> Expr:
    """A fresh index variable in [0, extent); the constant 0 where the extent is 1.

    Raises ArithError when no value is possible.
    """
    last = expr.as_expr(extent) - 1
    if last is expr.ZERO:
        return expr.ZERO
    if last.hi < 0:
        raise ArithError(f"index variable {name} has no values: its extent is {last + 1}")
    return Variable(name, "index", 0, last).expr
