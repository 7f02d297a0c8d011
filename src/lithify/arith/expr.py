"""Integer polynomials over sizes and index variables: the one normal form of the compiler.

An `Expr` is ``offset + sum coefficient * monomial``; a monomial is a product of atoms. ``mod`` is not an
atom: ``e % c`` is ``e - c * (e // c)``, so that split and join, merge and unmerge cancel by addition alone.
Expressions are interned: structural equality is identity. The form decides equality one way only:
identical means equal, not identical means "not known to be equal".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import count
from math import gcd
from typing import Any

from lithify.arith import division, pretty, ranges
from lithify.arith.errors import ArithError

type_Bound = float  # an int, or +-math.inf
_serial = count(1)

INDEX, FLOOR, XOR, MIN, LOADED, SIZE = range(6)  # the order in which atoms are written in a sum


class Atom:
    """What a monomial is a product of. `key` orders atoms by structure, `level` by dependence."""

    __slots__ = ("key", "level", "lo", "hi", "expr", "_variables")

    key: tuple[Any, ...]
    level: int  # greater than the level of every atom that its value or range depends on
    lo: float  # numeric bounds: an int, or +-math.inf
    hi: float
    expr: Expr  # the atom as an expression
    _variables: frozenset[Variable]

    def parts(self) -> tuple[Expr, ...]:
        """The expressions this atom is made of."""
        return ()

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        """The same operation on other parts."""
        raise NotImplementedError

    def compute(self, values: tuple[int, ...], load: Callable[..., int] | None) -> int:
        """The value, given the values of the parts."""
        raise NotImplementedError

    def __str__(self) -> str:
        return pretty.atom(self)

    __repr__ = __str__


class Variable(Atom):
    """A size (``lo <= v``, unbounded) or an index (``0 <= v <= last``; `last` may be symbolic)."""

    __slots__ = ("name", "kind", "serial", "last")

    def __init__(self, name: str, kind: str, lo: int, last: Expr | None) -> None:
        self.name, self.kind, self.lo, self.last = name, kind, lo, last
        self.serial = next(_serial)
        self.hi = math.inf if last is None else last.hi
        self.level = 0 if last is None else 1 + _level(last)
        self.key = (SIZE, name, lo) if kind == "size" else (INDEX, self.serial)
        self._variables = frozenset((self,))
        self.expr = make(0, (((self,), 1),))

    @property
    def extent(self) -> Expr | None:
        """The number of values of an index variable (from 0); None for a size."""
        return None if self.last is None else self.last + 1


class Floor(Atom):
    """floor(numerator / divisor), divisor >= 1."""

    __slots__ = ("numerator", "divisor")

    def __init__(self, numerator: Expr, divisor: Expr) -> None:
        self.numerator, self.divisor = numerator, divisor
        self.lo, self.hi = ranges.floor(numerator, divisor)
        _finish(self, FLOOR)

    def parts(self) -> tuple[Expr, ...]:
        return (self.numerator, self.divisor)

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return parts[0] // parts[1]

    def compute(self, values: tuple[int, ...], load: Callable[..., int] | None) -> int:
        return values[0] // values[1]


class Xor(Atom):
    """Bitwise exclusive or of two expressions >= 0."""

    __slots__ = ("left", "right")

    def __init__(self, left: Expr, right: Expr) -> None:
        self.left, self.right = left, right
        self.lo, self.hi = ranges.xor(left, right)
        _finish(self, XOR)

    def parts(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return xor(*parts)

    def compute(self, values: tuple[int, ...], load: Callable[..., int] | None) -> int:
        return values[0] ^ values[1]


class Min(Atom):
    """The smaller of two expressions; the larger is ``a + b - min(a, b)``."""

    __slots__ = ("left", "right")

    def __init__(self, left: Expr, right: Expr) -> None:
        self.left, self.right = left, right
        self.lo, self.hi = min(left.lo, right.lo), min(left.hi, right.hi)
        _finish(self, MIN)

    def parts(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return minimum(*parts)

    def compute(self, values: tuple[int, ...], load: Callable[..., int] | None) -> int:
        return min(values)


class Loaded(Atom):
    """An index read from a buffer: ``buffer[index]``, known to lie in [first, last]."""

    __slots__ = ("buffer", "index", "first", "last", "serial")

    def __init__(self, buffer: Hashable, index: tuple[Expr, ...], first: Expr, last: Expr) -> None:
        self.buffer, self.index, self.first, self.last = buffer, index, first, last
        self.lo, self.hi = first.lo, last.hi
        self.serial = next(_serial)
        _finish(self, LOADED)
        self.key = (LOADED, self.serial)

    def parts(self) -> tuple[Expr, ...]:
        return (*self.index, self.first, self.last)

    def rebuild(self, parts: tuple[Expr, ...]) -> Expr:
        return loaded(self.buffer, parts[:-2], parts[-2], parts[-1])

    def compute(self, values: tuple[int, ...], load: Callable[..., int] | None) -> int:
        if load is None:
            raise ArithError(f"{self} cannot be evaluated: no way to load from {self.buffer} was given")
        return load(self.buffer, values[:-2])


Monomial = tuple[Atom, ...]
Terms = tuple[tuple[Monomial, int], ...]


class Expr:
    """An interned integer polynomial; see the module. Make one with `const`, `size`, `var` and operators."""

    __slots__ = ("offset", "terms", "lo", "hi", "_variables")

    offset: int
    terms: Terms
    lo: float
    hi: float
    _variables: frozenset[Variable] | None

    @property
    def constant(self) -> int | None:
        """The value if it is a constant, else None."""
        return None if self.terms else self.offset

    def __add__(self, other: Expr | int) -> Expr:
        if other.__class__ is not Expr:
            if not isinstance(other, int):
                return NotImplemented
            return make(self.offset + other, self.terms) if other else self
        if not other.terms:
            return make(self.offset + other.offset, self.terms) if other.offset else self
        if not self.terms:
            return make(self.offset + other.offset, other.terms) if self.offset else other
        sums = dict(self.terms)
        for monomial, coefficient in other.terms:
            sums[monomial] = sums.get(monomial, 0) + coefficient
        return from_dict(self.offset + other.offset, sums)

    __radd__ = __add__

    def __mul__(self, other: Expr | int) -> Expr:
        if other.__class__ is not Expr:
            if not isinstance(other, int):
                return NotImplemented
            return self._scaled(other)
        if not other.terms:
            return self._scaled(other.offset)
        if not self.terms:
            return other._scaled(self.offset)
        sums: dict[Monomial, int] = {}
        left = (*self.terms, ((), self.offset)) if self.offset else self.terms
        right = (*other.terms, ((), other.offset)) if other.offset else other.terms
        for a, x in left:
            for b, y in right:
                monomial = product(a, b)
                sums[monomial] = sums.get(monomial, 0) + x * y
        return from_dict(sums.pop((), 0), sums)

    __rmul__ = __mul__

    def _scaled(self, factor: int) -> Expr:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return make(self.offset * factor, tuple([(m, c * factor) for m, c in self.terms]))

    def __neg__(self) -> Expr:
        return self._scaled(-1)

    def __sub__(self, other: Expr | int) -> Expr:
        if self is other:
            return ZERO
        return self + -other

    def __rsub__(self, other: int) -> Expr:
        return self._scaled(-1) + other

    def __floordiv__(self, other: Expr | int) -> Expr:
        return division.floor_divide(self, other)

    def __rfloordiv__(self, other: int) -> Expr:
        return division.floor_divide(const(other), self)

    def __mod__(self, other: Expr | int) -> Expr:
        return self - division.floor_divide(self, other) * other

    def __rmod__(self, other: int) -> Expr:
        return const(other) % self

    def variables(self) -> frozenset[Variable]:
        """All variables, those inside floors, minima and indices of loads included."""
        if self._variables is None:
            self._variables = frozenset().union(*[_atom_variables(a) for m, _ in self.terms for a in m])
        return self._variables

    def coefficient(self, variable: Expr | Variable) -> int | None:
        """The coefficient of `variable`: 0 when absent, None when it occurs other than linearly."""
        atom = variable if isinstance(variable, Variable) else as_variable(variable)
        found = 0
        for monomial, coefficient in self.terms:
            if len(monomial) == 1 and monomial[0] is atom:
                found = coefficient
            elif any(atom in _atom_variables(a) for a in monomial):
                return None
        return found

    @property
    def alignment(self) -> int:
        """The greatest number known to divide every value: gcd of coefficients and constant; 0 for the zero form."""
        common = self.offset
        for _, coefficient in self.terms:
            common = gcd(common, coefficient)
        return abs(common)

    def substitute(self, values: Mapping[Any, Expr | int]) -> Expr:
        """Replace variables (keys: `Variable`, or its `Expr`) and normalise again."""
        bindings = {as_variable(v): as_expr(e) for v, e in values.items()}
        return _substitute(self, bindings, {}) if bindings else self

    def evaluate(self, values: Mapping[Any, int], load: Callable[..., int] | None = None) -> int:
        """The value for the given variables (keys: `Variable`, or its `Expr`).

        `load(buffer, index)` gives the value of indices read from buffers. Raises ArithError on an unbound variable.
        """
        return _evaluate(self, {as_variable(v): x for v, x in values.items()}, load, {})

    def __str__(self) -> str:
        return pretty.expression(self)

    __repr__ = __str__


_interned: dict[tuple[int, Terms], Expr] = {}
_atoms: dict[tuple[Any, ...], Atom] = {}


def make(offset: int, terms: Terms) -> Expr:
    """The interned expression of already normal terms: sorted by structure, no zero coefficient."""
    key = (offset, terms)
    found = _interned.get(key)
    if found is None:
        found = Expr()
        found.offset, found.terms, found._variables = offset, terms, None
        found.lo, found.hi = ranges.polynomial(offset, terms)
        _interned[key] = found
    return found


def _term_key(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    monomial = term[0]
    return (monomial[0].key,) if len(monomial) == 1 else tuple([a.key for a in monomial])


def from_dict(offset: int, sums: dict[Monomial, int]) -> Expr:
    """The interned expression of a sum given as monomial -> coefficient."""
    terms = [t for t in sums.items() if t[1]]
    if len(terms) > 1:
        terms.sort(key=_term_key)
    return make(offset, tuple(terms))


def product(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    if not a or not b:
        return a or b
    return tuple(sorted(a + b, key=_atom_key))


def _atom_key(atom: Atom) -> tuple[Any, ...]:
    return atom.key


def _level(e: Expr) -> int:
    return max((a.level for m, _ in e.terms for a in m), default=0)


def _expr_key(e: Expr) -> tuple[Any, ...]:
    return (tuple([(_term_key(t), t[1]) for t in e.terms]), e.offset)


def _finish(atom: Atom, kind: int) -> None:
    parts = atom.parts()
    atom.key = (kind, *[_expr_key(p) for p in parts])
    atom.level = 1 + max([_level(p) for p in parts], default=0)
    atom._variables = frozenset().union(*[p.variables() for p in parts])
    atom.expr = make(0, (((atom,), 1),))


def _atom_variables(atom: Atom) -> frozenset[Variable]:
    return atom._variables


def _intern(cls: type[Any], *fields: Any) -> Expr:
    key = (cls, *fields)
    atom = _atoms.get(key)
    if atom is None:
        atom = _atoms[key] = cls(*fields)
    return atom.expr


def floor_atom(numerator: Expr, divisor: Expr) -> Expr:
    """floor(numerator / divisor) as an atom, unsimplified: for `division` only."""
    return _intern(Floor, numerator, divisor)


def const(value: int) -> Expr:
    """The constant `value`."""
    return make(value, ())


def as_expr(e: Expr | int) -> Expr:
    """`e`, or the constant for an int. Raises TypeError for anything else."""
    if e.__class__ is Expr:
        return e  # type: ignore[return-value]
    if isinstance(e, int):
        return make(int(e), ())
    raise TypeError(f"a size or index is an int or an Expr, not {e!r} of type {type(e).__name__}")


def as_variable(e: Expr | Variable) -> Variable:
    """The variable that `e` is. Raises ArithError when it is another expression."""
    if isinstance(e, Variable):
        return e
    if isinstance(e, Expr) and e.offset == 0 and len(e.terms) == 1:
        (monomial, coefficient), = e.terms
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], Variable):
            return monomial[0]
    raise ArithError(f"{e} is not a variable")


_sizes: dict[tuple[str, int], Variable] = {}


def size(name: str, lo: int = 1) -> Expr:
    """The size variable `name`, known to be >= `lo`. The same name and bound give the same object."""
    found = _sizes.get((name, lo))
    if found is None:
        found = _sizes[name, lo] = Variable(name, "size", lo, None)
    return found.expr


def var(name: str, extent: Expr | int) -> Expr:
    """A fresh index variable in [0, extent); the constant 0 where extent is 1."""
    last = as_expr(extent) - 1
    if last is ZERO:
        return ZERO
    if last.hi < 0:
        raise ArithError(f"index variable {name} has no values: its extent is {last + 1}")
    return Variable(name, "index", 0, last).expr


def xor(a: Expr | int, b: Expr | int) -> Expr:
    """Bitwise exclusive or of two expressions, both provably >= 0 (ArithError otherwise)."""
    a, b = as_expr(a), as_expr(b)
    for e in (a, b):
        if e.lo < 0 and not division.proves(e):
            raise ArithError(f"{a} xor {b}: {e} is not known to be >= 0")
    if a is b:
        return ZERO
    if a is ZERO or b is ZERO:
        return a if b is ZERO else b
    if not a.terms and not b.terms:
        return const(a.offset ^ b.offset)
    for x, y in ((a, b), (b, a)):  # xor(xor(p, q), q) = p
        inner = x.terms[0][0][0] if x.terms and x is single_atom(x) else None
        if isinstance(inner, Xor) and y in inner.parts():
            return inner.left if y is inner.right else inner.right
    if _expr_key(b) < _expr_key(a):
        a, b = b, a
    return _intern(Xor, a, b)


def single_atom(e: Expr) -> Expr | None:
    """`e` itself when it is one atom, else None."""
    return e if not e.offset and len(e.terms) == 1 and e.terms[0][1] == 1 and len(e.terms[0][0]) == 1 else None


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    """The smaller of two expressions."""
    a, b = as_expr(a), as_expr(b)
    difference = b - a
    if difference.lo >= 0:
        return a
    if difference.hi <= 0:
        return b
    if division.proves(difference):
        return a
    if division.proves(-difference):
        return b
    if _expr_key(b) < _expr_key(a):
        a, b = b, a
    return _intern(Min, a, b)


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    """The larger of two expressions: -min(-a, -b)."""
    return as_expr(a) + as_expr(b) - minimum(a, b)


def clamp(e: Expr | int, lo: Expr | int, hi: Expr | int) -> Expr:
    """`e` limited to [lo, hi]."""
    return minimum(maximum(e, lo), hi)


def ceil_div(a: Expr | int, b: Expr | int) -> Expr:
    """The smallest integer >= a / b, for b >= 1."""
    b = as_expr(b)
    return (as_expr(a) + b - 1) // b


def loaded(buffer: Hashable, index: Iterable[Expr | int], lo: Expr | int, hi: Expr | int) -> Expr:
    """The index that `buffer` holds at `index`, promised to lie in [lo, hi]."""
    return _intern(Loaded, buffer, tuple(as_expr(i) for i in index), as_expr(lo), as_expr(hi))


def _substitute(e: Expr, bindings: dict[Variable, Expr], memo: dict[Atom, Expr]) -> Expr:
    if not e.terms or bindings.keys().isdisjoint(e.variables()):
        return e
    result = const(e.offset)
    for monomial, coefficient in e.terms:
        term = const(coefficient)
        for atom in monomial:
            if isinstance(atom, Variable):
                term = term * bindings.get(atom, atom.expr)
                continue
            value = memo.get(atom)
            if value is None:
                value = memo[atom] = atom.rebuild(tuple([_substitute(p, bindings, memo) for p in atom.parts()]))
            term = term * value
        result = result + term
    return result


def _evaluate(
    e: Expr, values: dict[Variable, int], load: Callable[..., int] | None, memo: dict[Atom, int]
) -> int:
    result = e.offset
    for monomial, coefficient in e.terms:
        for atom in monomial:
            value = values.get(atom) if isinstance(atom, Variable) else memo.get(atom)
            if value is None:
                if isinstance(atom, Variable):
                    raise ArithError(f"{e} cannot be evaluated: {atom} has no value")
                value = atom.compute(tuple([_evaluate(p, values, load, memo) for p in atom.parts()]), load)
                memo[atom] = value
            coefficient *= value
        result += coefficient
    return result


ZERO = const(0)
