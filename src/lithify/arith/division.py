"""Floor division of normal forms.

Three steps carry it: pull whole multiples of the divisor out; drop the part that is finer than a common factor of
the rest and the divisor; join nested floors. Each is an identity of integers (the tests prove them). Which whole
multiples are pulled out is a choice of residues: the nearest to 0 first, then those of the coefficient's own sign
(they keep ``x - c floor(x/c)`` together), then the nonnegative ones; a floor that no choice removes is written
with the nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, inf
from typing import TYPE_CHECKING, Any

from lithify.arith import atoms, expr, functions, proof
from lithify.arith.errors import ArithError

if TYPE_CHECKING:
    from lithify.arith.expr import Expr, Monomial


def floor_divide(e: Expr, c: Expr | int) -> Expr:
    """floor(e / c). Raises ArithError when c is not provably >= 1."""
    if isinstance(c, int):
        return _by_integer(e, c)
    if not isinstance(c, expr.Expr):
        raise TypeError(f"cannot divide {e} by {c!r}: the divisor must be an int or an Expr")
    if c.lo < 1 and not proof.proves(c - 1):
        raise ArithError(f"cannot divide {e} by {c}: the divisor is not known to be at least 1")
    return divide(e, c)


def divide(e: Expr, c: Expr) -> Expr:
    """floor(e / c) where the caller knows that c >= 1."""
    if not c.terms:
        return _by_integer(e, c.offset)
    table = e.table if e.table.serial > c.table.serial else c.table
    key = (e, c)
    found = table.quotients.get(key)
    if found is None:
        found = table.quotients[key] = _by_expression(e, c)
    return found


def _by_integer(e: Expr, c: int) -> Expr:
    if c <= 1:
        if c == 1:
            return e
        raise ArithError(f"cannot divide {e} by {c}: the divisor must be at least 1")
    if not e.terms:
        return expr.const(e.offset // c)
    key = (e, c)
    found = e.table.quotients.get(key)
    if found is None:
        found = e.table.quotients[key] = _by_number(e, c)
    return found


# How many whole multiples of c > 0 are pulled out of a coefficient k: the rule for the residue k - q c.


def _nearest(k: int, c: int) -> int:
    return -((c - 2 * k) // (2 * c))  # in (-c/2, c/2]


def _toward_zero(k: int, c: int) -> int:
    return k // c if k >= 0 else -(-k // c)  # of the sign of k


def _down(k: int, c: int) -> int:
    return k // c  # in [0, c)


Rounding = Callable[[int, int], int]
_ROUNDINGS: tuple[Rounding, ...] = (_nearest, _toward_zero, _down)


def _bucket(e: Expr, c: int) -> int | None:
    """floor(e / c) when it is known to be one number."""
    if e.lo > -inf and e.hi < inf:
        low = int(e.lo) // c
        return low if low == int(e.hi) // c else None
    return _small(e, expr.const(c))


def _small(e: Expr, c: Expr) -> int | None:
    """floor(e / c) when it is provably 0 or -1."""
    if proof.proves(e):
        return 0 if proof.proves(c - 1 - e) else None
    return -1 if proof.proves(-1 - e) and proof.proves(e + c) else None


def _by_number(e: Expr, c: int) -> Expr:
    value = _bucket(e, c)
    if value is not None:
        return expr.const(value)
    q, r = divmod(e.offset, c)
    tried: list[tuple[Expr, dict[Monomial, int]]] = []
    for rounding in _ROUNDINGS:
        whole: dict[Monomial, int] = {}
        residues: dict[Monomial, int] = {}
        for m, k in e.terms:
            whole[m] = n = rounding(k, c)
            residues[m] = k - n * c
        rest = expr.from_dict(r, residues)
        if any(rest is other for other, _ in tried):
            continue
        found = _simplified_by_number(rest, c)
        if found is not None:
            return expr.from_dict(q, whole) + found
        tried.append((rest, whole))
    rest, whole = tried[0]
    divisor = expr.const(c)
    if any(a.level > 1 for m, _ in rest.terms for a in m):  # intervals do not see how floors go together
        value = _small(rest, divisor)
        if value is not None:
            return expr.from_dict(q + value, whole)
    return expr.from_dict(q, whole) + atoms.intern(atoms.Floor, rest, divisor)


def _simplified_by_number(rest: Expr, c: int) -> Expr | None:
    """floor(rest / c) where no floor by c is needed; else None."""
    value = _bucket(rest, c)
    if value is not None:
        return expr.const(value)
    steps = {gcd(k, c) for _, k in rest.terms}
    common = c
    for g in sorted(steps, reverse=True):
        common = gcd(common, g)
        steps.add(common)
    for g in sorted(steps, reverse=True):
        if g == 1:
            break
        coarse: dict[Monomial, int] = {}
        fine: dict[Monomial, int] = {}
        for m, k in rest.terms:
            if k % g == 0:
                coarse[m] = k // g
            else:
                fine[m] = k
        q, r = divmod(rest.offset, g)
        value = _bucket(expr.from_dict(r, fine), g)
        if value is not None:
            return _by_integer(expr.from_dict(q + value, coarse), c // g)
    atom = rest.single
    if isinstance(atom, atoms.Xor) and c & (c - 1) == 0:  # bits shift alike on both sides
        return functions.combine_bits(atom.left // c, atom.right // c)
    return _joined(rest, expr.const(c))


def _joined(rest: Expr, c: Expr) -> Expr | None:
    """floor((floor(a / b) + x) / c) = floor((a + b x) / (b c)), for the only floor of coefficient 1."""
    inner = [m[0] for m, k in rest.terms if k == 1 and len(m) == 1 and isinstance(m[0], atoms.Floor)]
    if len(inner) != 1:
        return None
    atom = inner[0]
    assert isinstance(atom, atoms.Floor)
    return divide(atom.numerator + (rest - atom.expr) * atom.divisor, atom.divisor * c)


def _by_expression(e: Expr, c: Expr) -> Expr:
    """floor(e / c) for a divisor with sizes in it."""
    tried: list[tuple[Expr, Expr]] = []
    for rounding in _ROUNDINGS:
        whole, rest = _whole_multiples(e, c, rounding)
        if any(rest is other for other, _ in tried):
            continue
        found = _simplified(rest, c)
        if found is not None:
            return whole + found
        tried.append((rest, whole))
    rest, whole = tried[0]
    return whole + atoms.intern(atoms.Floor, rest, c)


def _simplified(rest: Expr, c: Expr) -> Expr | None:
    """floor(rest / c) where no floor by c is needed; else None."""
    value = _small(rest, c)
    if value is not None:
        return expr.const(value)
    for g in _common_factors(rest, c):
        coarse, fine = _split(rest, g)
        value = _small(fine, g)
        if value is not None:
            return divide(coarse + value, _split(c, g)[0])
    return _joined(rest, c)


def _rank(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    """Graded lexicographic order of monomials: division by the leading term ends."""
    return (len(term[0]), [a.key for a in reversed(term[0])])


def _whole_multiples(e: Expr, c: Expr, rounding: Rounding) -> tuple[Expr, Expr]:
    """(q, r) with e = q c + r: division of polynomials by the leading term of c."""
    lead, factor = max(c.terms, key=_rank)
    sign = 1 if factor > 0 else -1
    whole, rest = expr.ZERO, e
    progress = True
    while progress:
        progress = False
        for m, k in sorted(rest.terms, key=_rank, reverse=True):
            cofactor = _cofactor(m, lead)
            n = rounding(k * sign, factor * sign) if cofactor is not None else 0
            if cofactor is not None and n:
                part = _term(cofactor, n)
                whole, rest = whole + part, rest - part * c
                progress = True
                break
    return whole, rest


def _term(m: Monomial, k: int) -> Expr:
    return expr.make(0, ((m, k),)) if m else expr.const(k)


def _cofactor(m: Monomial, factor: Monomial) -> Monomial | None:
    """m / factor, or None."""
    if not factor:
        return m
    left = list(m)
    for atom in factor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _common(m: Monomial, other: Monomial) -> Monomial:
    """The greatest common factor of two monomials."""
    left = list(other)
    found = []
    for atom in m:
        if atom in left:
            left.remove(atom)
            found.append(atom)
    return tuple(found)


def _split(e: Expr, g: Expr) -> tuple[Expr, Expr]:
    """(q, r) with e = q g + r, term by term, for a g of one term."""
    lead, factor = g.terms[0] if g.terms else ((), g.offset)
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, k in e.terms:
        cofactor = _cofactor(m, lead)
        if cofactor is not None and k % factor == 0:
            whole[cofactor] = k // factor
        else:
            rest[m] = k
    q, r = (0, e.offset) if lead else divmod(e.offset, factor)
    return expr.from_dict(q + whole.pop((), 0), whole), expr.from_dict(r, rest)


def _common_factors(rest: Expr, c: Expr) -> list[Expr]:
    """Common factors (of one term) of c and of terms of rest, the largest first."""
    content = c.alignment
    shared: Monomial = () if c.offset else c.terms[0][0]
    for m, _ in c.terms:
        shared = _common(shared, m)
    found: dict[Expr, tuple[int, int]] = {}
    for m, k in rest.terms:
        g = gcd(k, content)
        lead = _common(m, shared)
        part = _term(lead, g)
        if part is not c and part.constant != 1:
            found[part] = (len(lead), g)
            if lead and g > 1:
                found[_term(lead, 1)] = (len(lead), 1)
    return sorted(found, key=found.__getitem__, reverse=True)
