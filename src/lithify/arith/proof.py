"""Proofs that an expression is never negative.

The newest atom (the one whose range depends on the others) is eliminated at the end of its range that hurts, until
only sizes are left; then each size is its lower bound plus something >= 0, and no coefficient may be negative.
What is known besides (the facts) gives further ends; a fact about an atom that is gone is weakened by the end
that helps. The method is sound and incomplete: False means "not proved".
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, inf
from typing import TYPE_CHECKING

from lithify.arith import atoms, expr

if TYPE_CHECKING:
    from lithify.arith.atoms import Atom
    from lithify.arith.expr import Expr, Monomial

_BUDGET = 800  # elimination steps of one proof

Facts = tuple["Expr", ...]
End = tuple["Expr", "Expr"]  # numerator and denominator (>= 1) of a bound
Ends = list[tuple[End, ...]]  # alternatives; a tuple of several bounds holds only as "one of them"


class _OutOfBudget(Exception):
    pass


class _Budget:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _BUDGET

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _OutOfBudget


def proves(e: Expr | int, facts: Iterable[Expr] = ()) -> bool:
    """True only if e >= 0 for all values of its variables in their ranges that make every fact >= 0."""
    e = expr.as_expr(e)
    facts = tuple(facts)
    if e.lo >= 0 or e in facts:
        return True
    if e.hi < 0:
        return False
    try:
        return _nonnegative(e, facts, _Budget())
    except _OutOfBudget:
        return False


def proves_equal(a: Expr | int, b: Expr | int) -> bool:
    """True only if a = b for all values."""
    difference = expr.as_expr(a) - expr.as_expr(b)
    return difference is expr.ZERO or (proves(difference) and proves(-difference))


def proves_divisible(e: Expr | int, d: Expr | int) -> bool:
    """True only if d divides e for all values. Raises ArithError when d is not provably >= 1."""
    return expr.as_expr(e) % expr.as_expr(d) is expr.ZERO


def _nonnegative(e: Expr, facts: Facts, budget: _Budget) -> bool:
    if e.lo >= 0:
        return True
    if e.hi < 0:
        return False
    if facts:
        facts = _relevant(e, facts)
    e = _primitive(e)
    table = e.table
    for fact in facts:
        if fact.table.serial > table.serial:
            table = fact.table
    key = (e, facts)
    found = table.proofs.get(key)
    if found is None:
        budget.spend()
        found = table.proofs[key] = _quotient_nonnegative(e, facts, budget) or _eliminate(e, facts, budget)
    return found


def _quotient_nonnegative(e: Expr, facts: Facts, budget: _Budget) -> bool:
    """Is what is left of e known to be >= 0 without a factor >= 0 that all its terms share? False where there is none.

    (Products are multiplied out, and ends taken term by term: of n floor(m / 2) - n they are worse than of
    floor(m / 2) - 1.)
    """
    if e.offset or len(e.terms) < 2:
        return False
    common = next((a for a in e.terms[0][0] if a.lo >= 0 and all(a in m for m, _ in e.terms)), None)
    if common is None:
        return False
    quotient: dict[Monomial, int] = {}
    for m, k in e.terms:
        left = list(m)
        left.remove(common)
        quotient[tuple(left)] = k
    return _nonnegative(expr.from_dict(quotient.pop((), 0), quotient), facts, budget)


def _primitive(e: Expr) -> Expr:
    """e with the common factor of its coefficients divided out, and the constant rounded down."""
    common = gcd(*[k for _, k in e.terms])
    if common <= 1:
        return e
    return expr.make(e.offset // common, tuple([(m, k // common) for m, k in e.terms]))


def _relevant(e: Expr, facts: Facts) -> Facts:
    """The facts that share variables with e, also through one another."""
    known, rest, kept = set(e.variables()), list(facts), []
    changed = True
    while changed:
        changed = False
        for fact in rest:
            if fact.terms and not known.isdisjoint(fact.variables()):
                known |= fact.variables()
                kept.append(fact)
                rest.remove(fact)
                changed = True
                break
    return tuple([f for f in facts if f in kept])


def _eliminate(e: Expr, facts: Facts, budget: _Budget) -> bool:
    candidates = {a for m, _ in e.terms for a in m if a.level}
    for fact in facts:
        candidates.update([a for m, _ in fact.terms for a in m])
    if not candidates:
        return _coefficients_nonnegative(e)
    newest = max(candidates, key=lambda a: (a.level, a.key))
    parts = _linear(e, newest)
    if parts is None:
        return _coefficients_nonnegative(e)
    slope, rest = parts
    lower, upper = _ends(newest, candidates)
    weaker: list[Expr] = []
    own_lower, own_upper = list(lower), list(upper)
    for fact in facts:
        split = _linear(fact, newest)
        if split is None:
            continue
        s, r = split
        if s is expr.ZERO:
            weaker.append(fact)
        elif _nonnegative(s - 1, (), budget):  # newest >= -r / s
            lower.append(((-r, s),))
            weaker += [r * d + s * n for alternative in own_upper if len(alternative) == 1 for n, d in alternative]
        elif _nonnegative(-1 - s, (), budget):  # newest <= r / -s
            upper.append(((r, -s),))
            weaker += [r * d + s * n for alternative in own_lower if len(alternative) == 1 for n, d in alternative]
    remaining = tuple(dict.fromkeys(weaker))
    if slope is expr.ZERO:
        return _nonnegative(e, remaining, budget)

    def holds(ends: Ends) -> bool:
        # e >= x / d and e is an integer: e >= 0 where x > -d. (Exact for floors of coefficient 1 and -1.)
        return any(
            all(_nonnegative(rest * d + slope * n + d - 1, remaining, budget) for n, d in alternative)
            for alternative in ends
        )

    if _nonnegative(slope, remaining, budget):
        return holds(lower)
    if _nonnegative(-slope, remaining, budget):
        return holds(upper)
    return holds(lower) and holds(upper)  # linear between the ends


def _linear(e: Expr, atom: Atom) -> tuple[Expr, Expr] | None:
    """(s, r) with e = s atom + r and no atom in s; None where there is none."""
    slope: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, k in e.terms:
        if atom in m:
            left = list(m)
            left.remove(atom)
            if atom in left:
                return None
            slope[tuple(left)] = k
        else:
            rest[m] = k
    return expr.from_dict(slope.pop((), 0), slope), expr.from_dict(e.offset, rest)


def _ends(atom: Atom, present: set[Atom]) -> tuple[Ends, Ends]:
    """Alternative lower and upper bounds of an atom, in terms of what it depends on."""
    one = expr.const(1)
    if isinstance(atom, atoms.Variable):
        low = expr.const(int(atom.lo))
        return [((low, one),)], [] if atom.last is None else [((atom.last, one),)]
    if isinstance(atom, atoms.Floor):
        fractions = _fractions(atom, present)
        return [((x - c + 1, c),) for x, c in fractions], [((x, c),) for x, c in fractions]
    if isinstance(atom, atoms.Loaded):
        return [((atom.first, one),)], [((atom.last, one),)]
    if isinstance(atom, atoms.Min):
        left, right = (atom.left, one), (atom.right, one)
        return [(left, right)], [(left,), (right,), (((atom.left + atom.right) // 2, one),)]
    assert isinstance(atom, atoms.Xor)
    a, b = atom.left, atom.right
    top: Ends = [] if atom.hi == inf else [((expr.const(int(atom.hi)), one),)]
    return [((expr.ZERO, one),), ((a - b, one),), ((b - a, one),)], [*top, ((a + b, one),)]


def _fractions(atom: atoms.Floor, present: set[Atom]) -> list[End]:
    """(x, c) with atom = floor(x / c): its own, and floor(n / (b q)) = floor(floor(n / b) / q) for divisors present."""
    n, d = atom.numerator, atom.divisor
    found = [(n, d)]
    for other in present:
        if isinstance(other, atoms.Floor) and other is not atom and other.divisor is not d:
            q = d // other.divisor
            if q is not expr.ZERO and q * other.divisor is d:
                x = n // other.divisor
                if (x, q) not in found and atom not in {a for m, _ in x.terms for a in m}:
                    found.append((x, q))
    return found


def _coefficients_nonnegative(e: Expr) -> bool:
    """With every atom written as its numeric lower bound plus something >= 0, is any coefficient negative?"""
    shifted = expr.const(e.offset)
    for m, k in e.terms:
        term = expr.const(k)
        for atom in m:
            if atom.lo == -inf:
                return False
            term = term * (atom.expr + int(atom.lo))
        shifted = shifted + term
    return shifted.offset >= 0 and all(k >= 0 for _, k in shifted.terms)
