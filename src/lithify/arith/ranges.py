"""Numeric bounds of expressions, computed once when an expression is made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lithify.arith import atoms, expr

if TYPE_CHECKING:
    from lithify.arith.atoms import Floor, Min
    from lithify.arith.expr import Expr, Monomial, Terms


def _times(a: float, b: float) -> float:
    return a * b if a and b else 0  # 0 times infinity is 0


def _floored(a: float, b: float) -> float:
    """floor(a / b) of bounds, b >= 1."""
    if a in (math.inf, -math.inf):
        return a
    if b == math.inf:
        return 0 if a >= 0 else -1
    return a // b


def _monomial(factors: Monomial) -> tuple[float, float]:
    lo, hi = factors[0].lo, factors[0].hi
    previous = factors[0]
    for atom in factors[1:]:
        corners = (_times(lo, atom.lo), _times(lo, atom.hi), _times(hi, atom.lo), _times(hi, atom.hi))
        lo, hi = min(corners), max(corners)
        if atom is previous and len(factors) == 2:
            lo = max(lo, 0)
    return lo, hi


def polynomial(offset: int, terms: Terms) -> tuple[float, float]:
    """Bounds of a sum: interval arithmetic, tightened by the remainders and maxima that are found in it."""
    lo: float = offset
    hi: float = offset
    related: list[tuple[Floor | Min, int]] | None = None
    for m, c in terms:
        if len(m) == 1:
            atom = m[0]
            low, high = atom.lo, atom.hi
            if isinstance(atom, (atoms.Floor, atoms.Min)):
                if related is None:
                    related = []
                related.append((atom, c))
        else:
            low, high = _monomial(m)
        if c < 0:
            low, high = high, low
        lo += low * c if low else 0
        hi += high * c if high else 0
    if related is not None and len(terms) > 1:
        coefficients = dict(terms)
        for atom, k in related:
            for part, scale, bottom, top in _relations(atom, k, coefficients):
                rest = _without(offset, coefficients, atom, k, part, scale)
                if rest is not None:
                    lo, hi = max(lo, rest.lo + bottom), min(hi, rest.hi + top)
    return lo, hi


Found = tuple["Expr", int, float, float]  # (x, m, a, b): m x + k atom lies in [a, b]


def _relations(atom: Floor | Min, k: int, coefficients: dict[Monomial, int]) -> list[Found]:
    if isinstance(atom, atoms.Floor):
        return _remainders(atom, k, coefficients)
    return _extrema(atom, k, coefficients)


def _remainders(atom: Floor, k: int, coefficients: dict[Monomial, int]) -> list[Found]:
    """x - c floor(n / d) lies in [0, c) where x = floor(n / (d / c)): the remainder of x by c."""
    d = atom.divisor.constant
    if d is None:
        return []
    found: list[Found] = []
    scales = {abs(c) for c in coefficients.values()}
    scales.add(max(1, abs(k) // d))  # x may be the numerator itself
    for m in scales:
        c, left = divmod(abs(k), m)
        if left == 0 and c > 1 and d % c == 0:
            x = atom.numerator // (d // c)
            scale = m if k < 0 else -m
            end = scale * (c - 1)
            found.append((x, scale, min(0, end), max(0, end)))
    return found


def _extrema(atom: Min, k: int, coefficients: dict[Monomial, int]) -> list[Found]:
    """a + b - min(a, b) = max(a, b) and a - min(a, b) = max(0, a - b)."""
    a, b = atom.left, atom.right
    lo, hi = max(a.lo, b.lo), max(a.hi, b.hi)
    ends = (_times(-k, lo), _times(-k, hi))
    found: list[Found] = [(a + b, -k, min(ends), max(ends))]
    for x, y in ((a, b), (b, a)):
        difference = x - y
        ends = (_times(-k, max(0, difference.lo)), _times(-k, max(0, difference.hi)))
        found.append((x, -k, min(ends), max(ends)))
    return found


def _without(
    offset: int, coefficients: dict[Monomial, int], atom: Floor | Min, k: int, part: Expr, scale: int
) -> Expr | None:
    """The sum less ``scale part + k atom``, if that takes from terms and adds none."""
    left = dict(coefficients)
    del left[atom,]
    for m, y in part.terms:
        old = left.get(m, 0)
        new = old - scale * y
        if old * new < 0 or abs(new) > abs(old) or not old:
            return None
        left[m] = new
    return expr.from_dict(offset - scale * part.offset, left)


def floor(numerator: Expr, divisor: Expr) -> tuple[float, float]:
    """Bounds of floor(numerator / divisor), divisor >= 1."""
    least = max(1, divisor.lo)
    lo = _floored(numerator.lo, divisor.hi if numerator.lo >= 0 else least)
    hi = _floored(numerator.hi, least if numerator.hi >= 0 else divisor.hi)
    return lo, hi


def xor(left: Expr, right: Expr) -> tuple[float, float]:
    """Bounds of the exclusive or of two expressions >= 0."""
    top = max(left.hi, right.hi)
    return 0, top if top == math.inf else (1 << int(top).bit_length()) - 1
