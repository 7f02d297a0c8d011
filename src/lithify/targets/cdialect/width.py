"""Which integer width index arithmetic needs: decided from the ranges of everything that is computed on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lithify.arith import Atom, Expr, Floor, Loaded, Min, Variable, Xor

LARGEST = {32: 2**31 - 1, 64: 2**63 - 1}


def peak(e: Expr, sizes: Mapping[Variable, int] | None = None) -> float:
    """The largest absolute value that evaluating `e` term by term, in any order, can meet.

    With values for the sizes, of expressions in them too; without, an expression whose range is not known has an
    infinite peak.
    """
    return _reach(e, sizes or {})[1]


def bits_needed(e: Expr, sizes: Mapping[Variable, int] | None = None) -> int:
    """32 or 64: the width of signed arithmetic in which `e` can be evaluated without overflow."""
    return 32 if peak(e, sizes) <= LARGEST[32] else 64


def _reach(e: Expr, sizes: Mapping[Variable, int]) -> tuple[float, float]:
    """(bound of the absolute value of e by its terms, peak)."""
    total: float = abs(e.offset)
    top = total
    for monomial, coefficient in e.terms:
        term: float = abs(coefficient)
        top = max(top, term)
        for atom in monomial:
            value, inner = _atom(atom, sizes)
            top = max(top, inner)
            term = term * value if value else 0.0 if math.isinf(term) else 0
        total += term
    return total, max(top, total)


def _atom(atom: Atom, sizes: Mapping[Variable, int]) -> tuple[float, float]:
    """(bound of the absolute value, peak)."""
    if isinstance(atom, Variable):
        if atom in sizes:
            return abs(sizes[atom]), abs(sizes[atom])
        if atom.last is None:
            return math.inf, math.inf
        value = max(abs(atom.lo), _reach(atom.last, sizes)[0] if sizes else abs(atom.hi))
        return value, value
    reaches = [_reach(part, sizes) for part in atom.parts()]
    top = max((inner for _, inner in reaches), default=0)
    value = max(abs(atom.lo), abs(atom.hi))
    if math.isinf(value):
        value = _of_parts(atom, [bound for bound, _ in reaches], sizes)
    if isinstance(atom, Floor) and atom.numerator.lo < 0:
        # written as (n + k d) / d - k, with k d the least multiple of d that makes the numerator nonnegative
        top = max(top, 2 * reaches[0][0] + reaches[1][0])
    return value, max(top, value)


def _of_parts(atom: Atom, bounds: list[float], sizes: Mapping[Variable, int]) -> float:
    if isinstance(atom, Floor):
        return bounds[0] / max(1, atom.divisor.lo) + 1
    if isinstance(atom, Xor):
        top = max(bounds)
        return top if math.isinf(top) else (1 << int(top).bit_length()) - 1
    if isinstance(atom, Loaded):
        return max(bounds[-2:])
    assert isinstance(atom, Min)
    return max(bounds)
