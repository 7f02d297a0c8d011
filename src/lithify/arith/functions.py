"""Operations on expressions beyond the ring: exclusive or, minimum and maximum, rounding up, loads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from lithify.arith import atoms, expr, proof
from lithify.arith.errors import ArithError

if TYPE_CHECKING:
    from lithify.arith.expr import Expr


def xor(a: Expr | int, b: Expr | int) -> Expr:
    """Bitwise exclusive or of two expressions, both provably >= 0 (ArithError otherwise)."""
    a, b = expr.as_expr(a), expr.as_expr(b)
    for e in (a, b):
        if not proof.proves(e):
            raise ArithError(f"xor({a}, {b}) needs operands >= 0, and {e} is not known to be")
    return combine_bits(a, b)


def combine_bits(a: Expr, b: Expr) -> Expr:
    """`xor` where the caller knows that both operands are >= 0."""
    if a is b:
        return expr.ZERO
    if not a.terms and not b.terms:
        return expr.const(a.offset ^ b.offset)
    if a is expr.ZERO or b is expr.ZERO:
        return b if a is expr.ZERO else a
    for x, y in ((a, b), (b, a)):
        inner = x.single
        if isinstance(inner, atoms.Xor) and y in inner.parts():  # xor(xor(p, q), q) = p
            return inner.left if y is inner.right else inner.right
        unit = x.alignment & -x.alignment  # bits below it are 0 in x
        if unit > 1:
            coarse, fine = _aligned(y, unit)
            if fine.lo >= 0 and fine.hi < unit:
                return combine_bits(x // unit, coarse) * unit + fine
    if expr.structure(b) < expr.structure(a):
        a, b = b, a
    return atoms.intern(atoms.Xor, a, b)


def _aligned(e: Expr, unit: int) -> tuple[Expr, Expr]:
    """(q, r) with e = q unit + r, term by term."""
    coarse = {m: k // unit for m, k in e.terms if k % unit == 0}
    fine = {m: k for m, k in e.terms if k % unit}
    return expr.from_dict(e.offset // unit, coarse), expr.from_dict(e.offset % unit, fine)


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    """The smaller of two expressions."""
    a, b = expr.as_expr(a), expr.as_expr(b)
    difference = b - a
    if proof.proves(difference):
        return a
    if proof.proves(-difference):
        return b
    if expr.structure(b) < expr.structure(a):
        a, b = b, a
    # min(x + p, y + p) = min(x, y) + p and min(g x, g y) = g min(x, y): the atom keeps what differs
    other = dict(b.terms)
    common = {m: k for m, k in a.terms if other.get(m) == k}
    shared = expr.from_dict(a.offset, common)
    a, b = a - shared, b - shared
    unit = difference.alignment
    if unit > 1 and a.alignment % unit == 0:
        return atoms.intern(atoms.Min, a // unit, b // unit) * unit + shared
    return atoms.intern(atoms.Min, a, b) + shared


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    """The larger of two expressions: a + b - min(a, b)."""
    return expr.as_expr(a) + b - minimum(a, b)


def clamp(e: Expr | int, lo: Expr | int, hi: Expr | int) -> Expr:
    """`e` limited to [lo, hi], for lo <= hi."""
    return minimum(maximum(e, lo), hi)


def ceil_div(a: Expr | int, b: Expr | int) -> Expr:
    """The smallest integer >= a / b, for b >= 1."""
    return (expr.as_expr(a) + b - 1) // b


def loaded(buffer: Hashable, index: Iterable[Expr | int], lo: Expr | int, hi: Expr | int) -> Expr:
    """The index that `buffer` holds at `index`, promised to lie in [lo, hi]."""
    position = tuple([expr.as_expr(i) for i in index])
    return atoms.intern(atoms.Loaded, buffer, position, expr.as_expr(lo), expr.as_expr(hi))
