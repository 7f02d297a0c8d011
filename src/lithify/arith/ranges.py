"""Numeric bounds of expressions, computed once when an expression is made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lithify.arith import atoms, expr, functions

if TYPE_CHECKING:
    from lithify.arith.atoms import Floor, Min, Xor
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
    try:
        return _polynomial(offset, terms)
    except OverflowError:  # coefficients that no float can hold met a bound that is not known: nothing is
        return -math.inf, math.inf


def _polynomial(offset: int, terms: Terms) -> tuple[float, float]:
    lo: float = offset
    hi: float = offset
    related: list[tuple[Floor | Min | Xor, int]] | None = None
    for m, c in terms:
        if len(m) == 1:
            atom = m[0]
            low, high = atom.lo, atom.hi
            if isinstance(atom, (atoms.Floor, atoms.Min, atoms.Xor)):
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
            for x, scale, step, bottom, top in _relations(atom, k, coefficients):
                rest = _without(offset, coefficients, atom, x, scale, step)
                if rest is not None:
                    lo, hi = max(lo, rest.lo + bottom), min(hi, rest.hi + top)
    return lo, hi


Found = tuple["Expr", int, int, float, float]  # (x, m, c, a, b): m (x - c atom) lies in [a, b]


def _relations(atom: Floor | Min | Xor, k: int, coefficients: dict[Monomial, int]) -> list[Found]:
    if isinstance(atom, atoms.Floor):
        return _remainders(atom, k, coefficients)
    if isinstance(atom, atoms.Xor):
        return _low_bits(atom, k, coefficients)
    return _extrema(atom, k)


def _remainders(atom: Floor, k: int, coefficients: dict[Monomial, int]) -> list[Found]:
    """x - c floor(n / d) lies in [0, c) where x = floor(n / (d / c)): the remainder of x by c."""
    d = atom.divisor.constant
    if d is None:
        return []
    candidates = {d: atom.numerator}
    for monomial in coefficients:
        other = monomial[0] if len(monomial) == 1 else None
        if isinstance(other, atoms.Floor) and other is not atom:
            inner = other.divisor.constant
            if inner is not None and inner < d and d % inner == 0 and d // inner not in candidates:
                candidates[d // inner] = atom.numerator // inner
    found: list[Found] = []
    for c, x in candidates.items():
        if not x.terms:
            continue
        monomial, y = x.terms[0]
        whole = coefficients.get(monomial, 0) // y  # as much as there is of x
        if whole * y != coefficients.get(monomial, 0):
            continue
        part = -k // c if k < 0 else -(k // c)  # as much as there is of the floor
        for m in {whole, part} if part * whole > 0 and abs(part) < abs(whole) else {whole}:
            found.append((x, m, c, min(0, m * (c - 1)), max(0, m * (c - 1))))
    return found


def _extrema(atom: Min, k: int) -> list[Found]:
    """a + b - min(a, b) = max(a, b) and a - min(a, b) = max(0, a - b)."""
    a, b = atom.left, atom.right
    found: list[Found] = []
    for x, lo, hi in (
        (a + b, max(a.lo, b.lo), max(a.hi, b.hi)),
        (a, max(0, (a - b).lo), max(0, (a - b).hi)),
        (b, max(0, (b - a).lo), max(0, (b - a).hi)),
    ):
        ends = (_times(-k, lo), _times(-k, hi))
        found.append((x, -k, 1, min(ends), max(ends)))
    return found


def _low_bits(atom: Xor, k: int, coefficients: dict[Monomial, int]) -> list[Found]:
    """xor(a, b) - u xor(floor(a / u), floor(b / u)) lies in [0, u) for powers of two u."""
    found: list[Found] = []
    for unit in {abs(c) // abs(k) for c in coefficients.values()}:
        if unit > 1 and unit & (unit - 1) == 0:
            high = functions.combine_bits(atom.left // unit, atom.right // unit)
            found.append((-unit * high, k, -1, min(0, k * (unit - 1)), max(0, k * (unit - 1))))
    return found


def _without(
    offset: int, coefficients: dict[Monomial, int], atom: Floor | Min | Xor, x: Expr, m: int, c: int
) -> Expr | None:
    """The sum less ``m (x - c atom)`` if that leaves fewer terms, and no greater or opposite ones for those of x."""
    left = dict(coefficients)
    for monomial, y in x.terms:
        old = left.get(monomial, 0)
        new = old - m * y
        if not old or old * new < 0 or abs(new) > abs(old):
            return None
        left[monomial] = new
    left[atom,] += m * c
    if all(left.values()):
        return None
    return expr.from_dict(offset - m * x.offset, left)


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
