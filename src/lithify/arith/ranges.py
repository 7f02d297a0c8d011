"""Numeric bounds of expressions, computed once when an expression is made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lithify.arith import expr

if TYPE_CHECKING:
    from lithify.arith.expr import Expr, Monomial, Terms


def times(a: float, b: float) -> float:
    """The product of two bounds; 0 times infinity is 0."""
    return a * b if a and b else 0


def floored(a: float, b: float) -> float:
    """floor(a / b) of bounds, b >= 1."""
    if math.isinf(a):
        return a
    if math.isinf(b):
        return 0 if a >= 0 else -1
    return a // b


def monomial(factors: Monomial) -> tuple[float, float]:
    """Bounds of a product of atoms."""
    lo, hi = factors[0].lo, factors[0].hi
    for atom in factors[1:]:
        corners = (times(lo, atom.lo), times(lo, atom.hi), times(hi, atom.lo), times(hi, atom.hi))
        lo, hi = min(corners), max(corners)
    return lo, hi


def polynomial(offset: int, terms: Terms) -> tuple[float, float]:
    """Bounds of a sum: interval arithmetic, then the remainders ``e - c floor(e / c)`` found in it."""
    lo: float = offset
    hi: float = offset
    floors = []
    for m, c in terms:
        if len(m) == 1:
            atom = m[0]
            low, high = atom.lo, atom.hi
            if atom.key[0] == expr.FLOOR:
                floors.append((atom, c))
        else:
            low, high = monomial(m)
        if c > 0:
            lo += low * c if low else 0
            hi += high * c if high else 0
        else:
            lo += high * c if high else 0
            hi += low * c if low else 0
    if floors and len(terms) > 1:
        lo, hi = _remainders(offset, terms, floors, lo, hi)
    return lo, hi


def _remainders(offset: int, terms: Terms, floors: list, lo: float, hi: float) -> tuple[float, float]:
    """Tighten: m (e - c floor(e/c)) lies in m [0, c), m (floor(e/c) - q floor(e/(c q))) in m [0, q)."""
    coefficients = dict(terms)
    for atom, k in floors:
        c = atom.divisor.constant
        if c is None:
            continue
        x = atom.numerator
        if k % c == 0:
            m = -k // c
            if all(coefficients.get(mono, 0) == m * y for mono, y in x.terms):
                taken = {mono for mono, _ in x.terms}
                taken.add((atom,))
                lo, hi = _tighten(offset - m * x.offset, terms, taken, m * (c - 1), lo, hi)
        for other, m in floors:
            d = other.divisor.constant
            if d is not None and d < c and other.numerator is x and c % d == 0 and k == -m * (c // d):
                lo, hi = _tighten(offset, terms, {(atom,), (other,)}, m * (c // d - 1), lo, hi)
    return lo, hi


def _tighten(offset: int, terms: Terms, taken: set, end: int, lo: float, hi: float) -> tuple[float, float]:
    rest = expr.make(offset, tuple([t for t in terms if t[0] not in taken]))
    return max(lo, rest.lo + min(0, end)), min(hi, rest.hi + max(0, end))


def floor(numerator: Expr, divisor: Expr) -> tuple[float, float]:
    """Bounds of floor(numerator / divisor)."""
    lo = floored(numerator.lo, divisor.hi if numerator.lo >= 0 else max(1, divisor.lo))
    hi = floored(numerator.hi, max(1, divisor.lo) if numerator.hi >= 0 else divisor.hi)
    return lo, hi


def xor(left: Expr, right: Expr) -> tuple[float, float]:
    """Bounds of the exclusive or of two expressions >= 0."""
    top = max(left.hi, right.hi)
    return 0, top if math.isinf(top) else (1 << int(top).bit_length()) - 1
