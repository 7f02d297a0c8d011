"""Floor division of normal forms.

Three steps carry it: pull whole multiples of the divisor out; drop the part that is finer than a common
factor of the rest and the divisor; join nested floors. Each is an identity of integers; see the lemmas in
the tests. Signs are kept at first (``8x + j - 8 floor(j/8)`` over 64 is 0) and coefficients are reduced
modulo the divisor only when that does not help.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from lithify.arith import expr, proof
from lithify.arith.errors import ArithError

if TYPE_CHECKING:
    from lithify.arith.expr import Expr, Monomial

_quotients: dict[tuple[Expr, Expr | int], Expr] = {}


def proves(e: Expr) -> bool:
    """See `proof.proves`."""
    return proof.proves(e)


def floor_divide(e: Expr, c: Expr | int) -> Expr:
    """floor(e / c). Raises ArithError when c is not provably >= 1."""
    if isinstance(c, int):
        divisor = c
    elif c.__class__ is not expr.Expr:
        raise TypeError(f"cannot divide {e} by {c!r}")
    elif c.terms:
        return _symbolic(e, c)
    else:
        divisor = c.offset
    if divisor < 1:
        raise ArithError(f"cannot divide {e} by {divisor}: the divisor must be at least 1")
    if divisor == 1:
        return e
    if not e.terms:
        return expr.make(e.offset // divisor, ())
    key = (e, divisor)
    found = _quotients.get(key)
    if found is None:
        found = _quotients[key] = _concrete(e, divisor)
    return found


def _bucket(e: Expr, c: int) -> int | None:
    """floor(e / c) when the range of e shows it to be one number."""
    if -1e300 < e.lo and e.hi < 1e300:
        low = int(e.lo) // c
        return low if low == int(e.hi) // c else None
    if proof.proves(e) and proof.proves(c - 1 - e):
        return 0
    return None


def _concrete(e: Expr, c: int) -> Expr:
    value = _bucket(e, c)
    if value is not None:
        return expr.make(value, ())
    whole: dict[Monomial, int] = {}
    signed: dict[Monomial, int] = {}  # remainders of the sign of their coefficient
    for m, k in e.terms:
        q = k // c if k >= 0 else -(-k // c)
        if q:
            whole[m] = q
        if k - q * c:
            signed[m] = k - q * c
    q, r = divmod(e.offset, c)
    rest = expr.from_dict(r, signed)
    found = _simplified(rest, c)
    if found is None and any(k < 0 for k in signed.values()):
        reduced: dict[Monomial, int] = {}
        for m, k in signed.items():
            if k < 0:
                whole[m] = whole.get(m, 0) - 1
                k += c
            reduced[m] = k
        rest = expr.from_dict(r, reduced)
        found = _simplified(rest, c)
    if found is None:
        found = expr.floor_atom(rest, expr.const(c))
    return expr.from_dict(q, whole) + found


def _simplified(rest: Expr, c: int) -> Expr | None:
    """floor(rest / c) if it is a constant, a coarser division or a joined floor; else None."""
    value = _bucket(rest, c)
    if value is not None:
        return expr.make(value, ())
    steps = sorted({gcd(k, c) for _, k in rest.terms}, reverse=True)
    common = 0
    for g in sorted({*steps, *[common := gcd(common, g) for g in steps]}, reverse=True):
        if g == 1:
            break
        coarse, fine = {}, {}
        for m, k in rest.terms:
            if k % g == 0:
                coarse[m] = k // g
            else:
                fine[m] = k
        q, r = divmod(rest.offset, g)
        value = _bucket(expr.from_dict(r, fine), g)
        if value is not None:
            return floor_divide(expr.from_dict(q + value, coarse), c // g)
    return _joined(rest, expr.const(c))


def _joined(rest: Expr, c: Expr) -> Expr | None:
    """floor((floor(a / b) + x) / c) = floor((a + b x) / (b c)), for the only floor of coefficient 1."""
    inner = [m[0] for m, k in rest.terms if k == 1 and len(m) == 1 and isinstance(m[0], expr.Floor)]
    if len(inner) != 1:
        return None
    atom = inner[0]
    return floor_divide(atom.numerator + (rest - atom.expr) * atom.divisor, atom.divisor * c)


def _symbolic(e: Expr, c: Expr) -> Expr:
    key = (e, c)
    found = _quotients.get(key)
    if found is None:
        if c.lo < 1 and not proof.proves(c - 1):
            raise ArithError(f"cannot divide {e} by {c}: the divisor is not known to be at least 1")
        found = _quotients[key] = _divide(e, c)
    return found


def _divide(e: Expr, c: Expr) -> Expr:
    lead, factor = max(c.terms, key=lambda t: len(t[0]))  # whole multiples of c, found by its leading term
    quotient, rest = expr.ZERO, e
    for m, k in e.terms:
        cofactor = _without(m, lead)
        if cofactor is not None and k // factor:
            part = expr.from_dict(0, {cofactor: k // factor}) if cofactor else expr.const(k // factor)
            quotient, rest = quotient + part, rest - part * c
    if _fits(rest, c):
        return quotient
    for g in _factors(rest, c):
        coarse, fine = _split(rest, g)
        if coarse is not expr.ZERO and _fits(fine, g):
            return quotient + floor_divide(coarse, _split(c, g)[0])
    joined = _joined(rest, c)
    return quotient + (expr.floor_atom(rest, c) if joined is None else joined)


def _fits(e: Expr, c: Expr) -> bool:
    return proof.proves(e) and proof.proves(c - 1 - e)


def _without(m: Monomial, factor: Monomial) -> Monomial | None:
    """m / factor, or None."""
    left = list(m)
    for atom in factor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _split(e: Expr, g: Expr) -> tuple[Expr, Expr]:
    """(q, r) with e = q g + r, term by term, for a g of one term."""
    if not g.terms:
        lead, factor = (), g.offset
    else:
        ((lead, factor),) = g.terms
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, k in (*e.terms, ((), e.offset)):
        cofactor = _without(m, lead)
        if cofactor is not None and k % factor == 0:
            whole[cofactor] = k // factor
        else:
            rest[m] = k
    return expr.from_dict(whole.pop((), 0), whole), expr.from_dict(rest.pop((), 0), rest)


def _factors(rest: Expr, c: Expr) -> list[Expr]:
    """Common factors of c (of one term) and of terms of rest, the largest first."""
    if c.offset or len(c.terms) != 1:
        return []
    ((lead, factor),) = c.terms
    found: dict[Expr, int] = {}
    for m, k in rest.terms:
        common = []
        left = list(m)
        for atom in lead:
            if atom in left:
                left.remove(atom)
                common.append(atom)
        g = gcd(k, factor)
        part = expr.from_dict(0, {tuple(common): g}) if common else expr.const(g)
        if part is not c and part.constant != 1:
            found[part] = len(common)
    return sorted(found, key=lambda g: -found[g])
