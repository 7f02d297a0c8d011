"""The identities that division, ranges and proofs rest on, proved for all integers and all divisors."""

from __future__ import annotations

import pytest

z3 = pytest.importorskip("z3")

a, b, c, d, e, g, k, n, p, q, r, s, v, x, y = z3.Ints("a b c d e g k n p q r s v x y")


class Floors:
    """Floors as fresh integers: q = floor(n / d) means d q <= n < d q + d."""

    def __init__(self, *divisors):
        self.bounds = [divisor >= 1 for divisor in divisors]

    def __call__(self, numerator, divisor):
        quotient = z3.FreshInt("quotient")
        self.bounds += [divisor * quotient <= numerator, numerator < divisor * quotient + divisor]
        return quotient


def proved(claim, bounds=()):
    solver = z3.Solver()
    solver.set("timeout", 10_000)
    solver.add(*bounds, z3.Not(claim))
    return solver.check() == z3.unsat


def smaller(left, right):
    return z3.If(left < right, left, right)


def test_the_checker_can_fail():
    floor = Floors(c)
    assert not proved(floor(e + 1, c) == floor(e, c), floor.bounds)


def test_whole_multiples_come_out():
    floor = Floors(c)
    assert proved(floor(e + c * q, c) == floor(e, c) + q, floor.bounds)


def test_the_part_finer_than_a_common_factor():
    floor = Floors(g, d)
    whole = floor(g * x + y, g * d)
    assert proved(whole == floor(x + floor(y, g), d), floor.bounds)
    assert proved(whole == floor(x, d), [*floor.bounds, y >= 0, y < g])


def test_nested_floors_join():
    floor = Floors(b, c)
    assert proved(floor(floor(a, b) + x, c) == floor(a + b * x, b * c), floor.bounds)


def test_remainders_found_in_sums():
    floor = Floors(b, c)
    remainder = floor(n, b) - c * floor(n, b * c)
    assert proved(z3.And(remainder >= 0, remainder < c), floor.bounds)


def test_a_small_numerator():
    floor = Floors(c)
    assert proved(z3.Implies(z3.And(e >= 0, e <= c - 1), floor(e, c) == 0), floor.bounds)
    assert proved(z3.Implies(z3.And(e <= -1, e + c >= 0), floor(e, c) == -1), floor.bounds)


def test_an_integer_above_a_fraction():
    """e >= x / d proves e >= 0 when x + d - 1 >= 0; for floors of coefficient 1 and -1 that is exact."""
    assert proved(e >= 0, [d >= 1, d * e >= x, x + d - 1 >= 0])
    floor = Floors(c)
    quotient = floor(x, c)
    assert proved((r + quotient >= 0) == (c * r + (x - c + 1) + c - 1 >= 0), floor.bounds)
    assert proved((r - quotient >= 0) == (c * r - x + c - 1 >= 0), floor.bounds)


def test_bounds_of_a_floor():
    floor = Floors(c)
    quotient = floor(x, c)
    assert proved(z3.And(c * quotient <= x, c * quotient >= x - c + 1), floor.bounds)


def test_residues():
    floor = Floors(c)
    nearest = -floor(c - 2 * k, 2 * c)
    assert proved(z3.And(2 * (k - nearest * c) <= c, 2 * (k - nearest * c) > -c), floor.bounds)
    floor = Floors(c)
    toward_zero = z3.If(k >= 0, floor(k, c), -floor(-k, c))
    left = k - toward_zero * c
    sign_kept = z3.And(z3.Implies(k >= 0, left >= 0), z3.Implies(k <= 0, left <= 0))
    assert proved(z3.And(left < c, left > -c, sign_kept), floor.bounds)


def test_primitive_part():
    floor = Floors(g)
    assert proved((g * x + k >= 0) == (x + floor(k, g) >= 0), floor.bounds)


def test_minima():
    assert proved(smaller(a + p, b + p) == smaller(a, b) + p)
    assert proved(smaller(g * a, g * b) == g * smaller(a, b), [g >= 1])
    assert proved(a + b - smaller(a, b) == z3.If(a < b, b, a))
    assert proved(a - smaller(a, b) == z3.If(a > b, a - b, 0))
    floor = Floors()
    assert proved(smaller(a, b) <= floor(a + b, 2), floor.bounds)


def test_a_sum_linear_in_a_minimum():
    assert proved(p + s * smaller(a, b) >= 0, [p + s * a >= 0, p + s * b >= 0])
    assert proved(p + s * smaller(a, b) >= 0, [s <= 0, p + s * a >= 0])


def test_a_sum_linear_in_a_range():
    """s v + r >= 0 at the ends lo / d <= v <= hi / e, written without denominators, holds inside."""
    for d, e in ((1, 1), (2, 3), (5, 4)):
        lower, upper = [d * v >= x, d * r + s * x >= 0], [e * v <= y, e * r + s * y >= 0]
        assert proved(s * v + r >= 0, [*lower, s >= 0])
        assert proved(s * v + r >= 0, [*upper, s <= 0])
        assert proved(s * v + r >= 0, [*lower, *upper])


def test_exclusive_or():
    a, b = z3.BitVecs("a b", 16)
    assert proved((a ^ b) ^ b == a)
    small = [z3.ULT(a, 1 << 14), z3.ULT(b, 1 << 14)]
    assert proved(z3.And(z3.ULE(a ^ b, a + b), z3.UGE((a ^ b) + b, a), z3.UGE((a ^ b) + a, b)), small)
    for bits in (1, 3, 5):
        unit = 1 << bits
        fine = z3.URem(b, unit)
        assert proved((a * unit) ^ b == (a ^ z3.UDiv(b, unit)) * unit + fine, [z3.ULT(a, 1 << 10)])
        assert proved(z3.UDiv(a ^ b, unit) == z3.UDiv(a, unit) ^ z3.UDiv(b, unit))
