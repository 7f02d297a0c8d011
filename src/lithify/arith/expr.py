"""Integer polynomials over sizes and index variables: the one normal form of the compiler.

An `Expr` is ``offset + sum coefficient * monomial``; a monomial is a product of atoms (`atoms`). ``mod`` is not
an atom: ``e % c`` is ``e - c * (e // c)``, so that split and join, merge and unmerge cancel by addition alone.
Expressions are interned: identical means equal, not identical means "not known to be equal", never "different".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import TYPE_CHECKING, Any

from lithify.arith import atoms, division, evaluation, pretty, ranges
from lithify.arith.table import SIZES, Table

if TYPE_CHECKING:
    from lithify.arith.atoms import Atom, Variable

Monomial = tuple["Atom", ...]
Terms = tuple[tuple[Monomial, int], ...]


class Expr:
    """An interned, immutable integer polynomial; made with `const`, `size`, `var` and the operators.

    ``//`` and ``%`` are floor division and its remainder; the divisor must be provably >= 1 (ArithError otherwise).
    Equality is identity.
    """

    __slots__ = ("_variables", "hi", "lo", "offset", "table", "terms")

    offset: int  # the constant part
    terms: Terms  # (monomial, coefficient), sorted by structure; no coefficient is 0
    lo: float  # numeric bounds of the value: an int, or +-math.inf
    hi: float
    table: Table
    _variables: frozenset[Variable] | None

    @property
    def constant(self) -> int | None:
        """The value if it is a constant, else None."""
        return None if self.terms else self.offset

    def __add__(self, other: Expr | int) -> Expr:
        if not isinstance(other, Expr):
            if not isinstance(other, int):
                return NotImplemented
            return _make(self.table, self.offset + other, self.terms) if other else self
        if not other.terms:
            return _make(self.table, self.offset + other.offset, self.terms) if other.offset else self
        if not self.terms:
            return _make(other.table, self.offset + other.offset, other.terms) if self.offset else other
        sums = dict(self.terms)
        for monomial, coefficient in other.terms:
            sums[monomial] = sums.get(monomial, 0) + coefficient
        return from_dict(self.offset + other.offset, sums)

    __radd__ = __add__

    def __mul__(self, other: Expr | int) -> Expr:
        if not isinstance(other, Expr):
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
        return _make(self.table, self.offset * factor, tuple([(m, c * factor) for m, c in self.terms]))

    def __neg__(self) -> Expr:
        return self._scaled(-1)

    def __sub__(self, other: Expr | int) -> Expr:
        return ZERO if self is other else self + -other

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
        """All variables, those inside floors, minima and the indices of loads included."""
        if self._variables is None:
            self._variables = frozenset[Any]().union(*[a.variables for m, _ in self.terms for a in m])
        return self._variables

    def coefficient(self, variable: Expr | Variable) -> int | None:
        """The coefficient of `variable`: 0 when absent, None when it occurs other than linearly."""
        atom = atoms.as_variable(variable)
        found = 0
        for monomial, coefficient in self.terms:
            if len(monomial) == 1 and monomial[0] is atom:
                found = coefficient
            elif any(atom in a.variables for a in monomial):
                return None
        return found

    @property
    def alignment(self) -> int:
        """The greatest number known to divide every value: gcd of coefficients and constant; 0 for the form 0."""
        return gcd(self.offset, *[coefficient for _, coefficient in self.terms])

    @property
    def single(self) -> Atom | None:
        """The atom that the expression is, or None when it is anything else."""
        if self.offset or len(self.terms) != 1:
            return None
        monomial, coefficient = self.terms[0]
        return monomial[0] if coefficient == 1 and len(monomial) == 1 else None

    def substitute(self, values: Mapping[Any, Expr | int]) -> Expr:
        """Replace variables (keys: `Variable`, or the `Expr` that is one) at once, and normalise again.

        The new values must lie in the variables' ranges: the form may have been simplified by them.
        """
        return evaluation.substitute(self, values)

    def evaluate(self, values: Mapping[Any, int], load: Callable[..., int] | None = None) -> int:
        """The value for given variables (keys as in `substitute`); `load(buffer, index)` reads indices from buffers.

        Values may also be NumPy integer arrays, which broadcast. Raises ArithError where a variable has no value.
        """
        value: int = evaluation.evaluate(self, values, load)
        return value

    def __str__(self) -> str:
        return pretty.expression(self)

    __repr__ = __str__


def _make(table: Table, offset: int, terms: Terms) -> Expr:
    key = (offset, terms)
    found = table.exprs.get(key)
    if found is None:
        found = Expr()
        found.offset, found.terms, found.table, found._variables = offset, terms, table, None
        found.lo, found.hi = ranges.polynomial(offset, terms)
        found = table.exprs.setdefault(key, found)  # atomic: two threads get the same object
    return found


def make(offset: int, terms: Terms) -> Expr:
    """The interned expression of already normal terms: sorted by structure, no zero coefficient."""
    table = SIZES
    for monomial, _ in terms:
        for atom in monomial:
            if atom.table.serial > table.serial:
                table = atom.table
    return _make(table, offset, terms)


def _term_key(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    monomial = term[0]
    return (monomial[0].key,) if len(monomial) == 1 else tuple([a.key for a in monomial])


def from_dict(offset: int, sums: dict[Monomial, int]) -> Expr:
    """The interned expression of a sum given as monomial -> coefficient (no empty monomial)."""
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


def structure(e: Expr) -> tuple[Any, ...]:
    """A key that orders expressions by structure, the same in every run."""
    return (tuple([(_term_key(t), t[1]) for t in e.terms]), e.offset)


def const(value: int) -> Expr:
    """The constant `value`."""
    return _make(SIZES, value, ())


def as_expr(e: Expr | int) -> Expr:
    """`e`, or the constant for an int. Raises TypeError for anything else."""
    if isinstance(e, Expr):
        return e
    if isinstance(e, int):
        return _make(SIZES, int(e), ())
    raise TypeError(f"a size or index is an int or an Expr, not {e!r} of type {type(e).__name__}")


ZERO = const(0)
