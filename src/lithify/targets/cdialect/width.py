"""Which integer width index arithmetic needs: decided from the ranges of everything that is computed on the way."""

from __future__ import annotations

import math

from lithify.arith import Atom, Expr, Floor, Loaded, Variable, Xor, const

LARGEST = {32: 2**31 - 1, 64: 2**63 - 1}

Reach = tuple[Expr, frozenset[Expr]]


class Widths:
    """Bounds of index forms, and the width that they need.

    A form whose range depends on symbolic sizes is taken to fit into `size_bits`; `assumed` collects the expressions
    over sizes that must not exceed the largest number of that width for this to be true.
    """

    def __init__(self, size_bits: int) -> None:
        self.size_bits = size_bits
        self.assumed: set[Expr] = set()
        self._known: dict[Expr, Reach] = {}

    def bits(self, e: Expr) -> int:
        """32 or 64: the width of signed arithmetic in which `e` can be evaluated without overflow."""
        limits = self.limits(e)
        if any(limit.constant is not None and limit.constant > LARGEST[32] for limit in limits):
            return 64
        symbolic = {limit for limit in limits if limit.constant is None}
        if not symbolic:
            return 32
        if self.size_bits == 32:
            self.assumed |= symbolic
        return self.size_bits

    def limits(self, e: Expr) -> frozenset[Expr]:
        """Absolute values that nothing exceeds which evaluating `e` term by term, in any order, can meet."""
        return self._reach(e)[1]

    def _reach(self, e: Expr) -> Reach:
        """(a bound of the absolute value, the limits)."""
        found = self._known.get(e)
        if found is None:
            total = const(abs(e.offset))
            limits: frozenset[Expr] = frozenset()
            for monomial, coefficient in e.terms:
                term = const(abs(coefficient))
                limits |= {term}
                for atom in monomial:
                    value, inner = self._atom(atom)
                    limits |= inner
                    term = term * value
                total = total + term
            found = self._known[e] = total, _largest(limits | {total})
        return found

    def _atom(self, atom: Atom) -> Reach:
        if isinstance(atom, Variable) and atom.last is None:
            return atom.expr, frozenset((atom.expr,))
        reaches = [self._reach(part) for part in atom.parts()]
        limits = frozenset[Expr]().union(*(inner for _, inner in reaches))
        value = max(abs(atom.lo), abs(atom.hi))
        bound = self._of_parts(atom, [b for b, _ in reaches]) if math.isinf(value) else const(int(value))
        limits |= {bound}
        if isinstance(atom, Floor) and atom.numerator.lo < 0:
            # written as (n + k d) / d - k, with k d the least multiple of d that makes the numerator nonnegative
            limits |= {reaches[0][0] * 2 + reaches[1][0]}
        return bound, limits

    def _of_parts(self, atom: Atom, bounds: list[Expr]) -> Expr:
        """A bound for an atom whose range depends on sizes."""
        if isinstance(atom, Variable):
            assert atom.last is not None
            return self._reach(atom.last)[0]
        if isinstance(atom, Floor):
            return bounds[0] // max(1, int(atom.divisor.lo)) + 1
        if isinstance(atom, Xor):  # less than the next power of two of either
            return (bounds[0] + bounds[1]) * 2
        if isinstance(atom, Loaded):
            return bounds[-2] + bounds[-1]
        return bounds[0] + bounds[1]


def _largest(limits: frozenset[Expr]) -> frozenset[Expr]:
    """The limits, of numbers only the largest."""
    numbers = [limit.offset for limit in limits if limit.constant is not None]
    return frozenset(limit for limit in limits if limit.constant is None) | (
        {const(max(numbers))} if numbers else frozenset()
    )


def bits_needed(e: Expr) -> int:
    """32 or 64: the width that a form needs; 64 where its range depends on sizes."""
    return Widths(64).bits(e)
