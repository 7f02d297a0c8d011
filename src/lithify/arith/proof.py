"""Proofs that an expression is never negative.

The newest atom (the one that depends on the others) is eliminated at the end of its range that hurts, until only
sizes are left; then every size is written as its lower bound plus something >= 0, and no coefficient may be negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TYPE_CHECKING

from lithify.arith import expr

if TYPE_CHECKING:
    from lithify.arith.expr import Atom, Expr, Monomial

_DEPTH = 16
_proved: dict[Expr, bool] = {}


def proves(e: Expr | int, facts: Iterable[Expr] = ()) -> bool:
    """True only if e >= 0 for all values of its variables (that make every fact >= 0)."""
    e = expr.as_expr(e)
    if e.lo >= 0:
        return True
    if _nonnegative(e, 0):
        return True
    facts = tuple(facts)
    return bool(facts) and _with_facts(e, facts)


def _with_facts(e: Expr, facts: tuple[Expr, ...]) -> bool:
    """e is a nonnegative combination of facts plus something nonnegative."""
    coefficients = dict(e.terms)
    for i, fact in enumerate(facts):
        rest = facts[:i] + facts[i + 1 :]
        for scale, own in sorted({(k, coefficients[m]) for m, k in fact.terms if k * coefficients.get(m, 0) > 0}):
            remaining = e * abs(scale) - fact * abs(own)
            if proves(remaining) or (rest and _with_facts(remaining, rest)):
                return True
    return False


def proves_equal(a: Expr | int, b: Expr | int) -> bool:
    """True only if a = b for all values."""
    difference = expr.as_expr(a) - expr.as_expr(b)
    return difference is expr.ZERO or (proves(difference) and proves(-difference))


def proves_divisible(e: Expr | int, d: Expr | int) -> bool:
    """True only if d divides e for all values; d >= 1."""
    e, d = expr.as_expr(e), expr.as_expr(d)
    return e % d is expr.ZERO


def _nonnegative(e: Expr, depth: int) -> bool:
    if e.lo >= 0:
        return True
    if e.hi < 0:
        return False
    found = _proved.get(e)
    if found is None:
        if depth > _DEPTH:
            return False
        found = _proved[e] = _eliminate(_primitive(e), depth + 1)
    return found


def _primitive(e: Expr) -> Expr:
    """e with the common factor of its coefficients divided out (the constant rounded down)."""
    common = 0
    for _, k in e.terms:
        common = gcd(common, k)
    if common <= 1:
        return e
    return expr.make(e.offset // common, tuple([(m, k // common) for m, k in e.terms]))


def _eliminate(e: Expr, depth: int) -> bool:
    atoms = {a for m, _ in e.terms for a in m if not (isinstance(a, expr.Variable) and a.last is None)}
    if not atoms:
        return _sizes(e)
    newest = max(atoms, key=lambda a: (a.level, a.key))
    slope: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, k in e.terms:
        if newest in m:
            left = list(m)
            left.remove(newest)
            if newest in left:
                return False
            slope[tuple(left)] = k
        else:
            rest[m] = k
    co, other = expr.from_dict(slope.pop((), 0), slope), expr.from_dict(e.offset, rest)
    if isinstance(newest, expr.Floor):
        return _floor(newest, co, other, atoms, depth)
    low, high = _ends(newest)
    up, down = _nonnegative(co, depth), _nonnegative(-co, depth)
    at_low = not down and all if not down else any
    del at_low
    lows = () if down else low
    highs = () if up else high
    return (down or _holds(lows, co, other, depth, isinstance(newest, expr.Min) and not down)) and (
        up or _holds(highs, co, other, depth, False)
    )


def _ends(atom: Atom) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Expressions that bound the atom below (all of them together) and above (each of them)."""
    if isinstance(atom, expr.Variable):
        assert atom.last is not None
        return (expr.const(int(atom.lo)),), (atom.last,)
    if isinstance(atom, expr.Loaded):
        return (atom.first,), (atom.last,)
    if isinstance(atom, expr.Min):
        return (atom.left, atom.right), (atom.left, atom.right)
    return (
        (expr.const(int(atom.lo)),) if abs(atom.lo) < 1e300 else (),
        (expr.const(int(atom.hi)),) if abs(atom.hi) < 1e300 else (),
    )


def _holds(ends: tuple[Expr, ...], co: Expr, other: Expr, depth: int, every: bool) -> bool:
    quantifier = all if every else any
    return bool(ends) and quantifier(_nonnegative(other + co * end, depth) for end in ends)


def _floor(atom: expr.Floor, co: Expr, other: Expr, atoms: set[Atom], depth: int) -> bool:
    """x/c - 1 < floor(x/c) <= x/c; exact for the coefficients 1 and -1."""
    x, c = atom.numerator, atom.divisor
    for a in atoms:  # floor(x / (b q)) = floor(floor(x / b) / q)
        if isinstance(a, expr.Floor) and a is not atom and a.numerator is x:
            q, r = c // a.divisor, c % a.divisor
            if r is expr.ZERO and q is not expr.ZERO:
                x, c = a.expr, q
                break
    if co.constant == 1:
        return _nonnegative(x + other * c, depth)
    if co.constant == -1:
        return _nonnegative((other + 1) * c - x - 1, depth)
    if _nonnegative(-co, depth):
        return _nonnegative(other * c + co * x, depth)
    if _nonnegative(co, depth):
        return _nonnegative(other * c + co * (x - c + 1), depth)
    return False


def _sizes(e: Expr) -> bool:
    """Every size is its lower bound plus something >= 0: are all coefficients >= 0 then?"""
    shifted = expr.const(e.offset)
    for m, k in e.terms:
        term = expr.const(k)
        for atom in m:
            term = term * (atom.expr + int(atom.lo))
        shifted = shifted + term
    return shifted.offset >= 0 and all(k >= 0 for _, k in shifted.terms)
