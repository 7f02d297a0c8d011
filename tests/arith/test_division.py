"""Division: what must cancel, and the cases that other systems got wrong."""

from __future__ import annotations

import gc
from itertools import product

import pytest

from lithify.arith import (
    ArithError,
    Expr,
    ceil_div,
    const,
    proves_divisible,
    proves_equal,
    size,
    var,
    xor,
)

ZERO = const(0)
n, m, k, w = size("n"), size("m"), size("k"), size("w")


@pytest.mark.parametrize(
    "sizes", [(6, 8, 10, 12), (1, 7, 1, 3), (2, 1, 1, 5), (3, 3, 3, 3), (n, m, k, w), (4, n, 1, m)]
)
def test_split_after_join_is_the_identity(sizes):
    indices = [var(f"i{d}", s) for d, s in enumerate(sizes)]
    linear = ZERO
    for i, s in zip(indices, sizes, strict=True):
        linear = linear * s + i
    back = []
    for s in reversed(sizes):
        back.append(linear % s)
        linear = linear // s
    assert linear is ZERO
    assert all(a is b for a, b in zip(back[::-1], indices, strict=True))


@pytest.mark.parametrize("sizes", [(4, 6, 10), (1, 5, 1), (n, m, k), (n, 4, m)])
def test_join_after_split_is_the_identity(sizes):
    total = const(1)
    for s in sizes:
        total = total * s
    p = var("p", total)
    parts, rest = [], p
    for s in reversed(sizes):
        parts.append(rest % s)
        rest = rest // s
    linear = ZERO
    for i, s in zip(reversed(parts), sizes, strict=True):
        linear = linear * s + i
    assert linear is p


def test_remainder_of_one_is_not_one_where_the_divisor_is_one():
    remainder = const(1) % n
    assert remainder.constant is None
    assert [remainder.evaluate({n: value}) for value in (1, 2, 3)] == [0, 1, 1]


def test_sizes_less_an_index_divided_by_the_size():
    j = var("j", m) + 1  # 0 < j <= m
    assert (m - j) // m is ZERO
    assert (m - j) % m is m - j


def test_floors_of_negatives():
    j = var("j", m)
    assert const(-1) // n is const(-1)
    assert (-1 - j) // m is const(-1)
    assert (-1 - var("i", 7)) // 7 is const(-1)
    i = var("i", 9)
    assert [((-3 * i - 1) // 4).evaluate({i: value}) for value in range(9)] == [(-3 * v - 1) // 4 for v in range(9)]


def test_signs_are_kept_until_the_range_is_seen():
    x, j = var("x", 8), var("j", 64)
    assert (8 * x + j - 8 * (j // 8)) // 64 is ZERO
    y = var("y", n)
    assert (m * y + var("i", m)) // (n * m) is ZERO


def test_remainders_have_their_range():
    i, j = var("i", 100), var("j", 7)
    for e, c in product((i, i + j, 3 * i + j, 5 * i - 2 * j), (2, 5, 8, 12)):
        assert ((e % c).lo, (e % c).hi) == (0, c - 1)
        assert ((e // 3 % c).lo, (e // 3 % c).hi) == (0, c - 1)
        assert (4 * (e % c) + 3).hi == 4 * c - 1


def test_joined_division_in_two_steps():
    p = var("p", 1000)
    y = var("y", 3)
    assert p // 4 // 6 is p // 24
    assert ceil_div(ceil_div(n, 4), 8) is ceil_div(n, 32)
    assert (p // 14 + y) // 2 is (p + 14 * y) // 28
    assert p // n // m is p // (n * m)


def test_divisors_that_are_sums():
    hp, wp = n + 2, m + 2
    c, y, x = var("c", k), var("y", hp), var("x", wp)
    linear = (c * hp + y) * wp + x
    assert linear // wp is c * hp + y
    assert linear % wp is x
    assert linear // wp % hp is y
    assert linear // (hp * wp) is c
    assert ((m + 1) * (n + 1)) // (n + 1) is m + 1


def test_tiles_that_do_not_divide():
    t = size("t")
    b, r = var("b", ceil_div(n, t)), var("r", t)
    assert (b * t + r) // t is b
    assert (b * t + r) % t is r


def test_convolution_addresses_lose_their_divisions():
    image = var("p", n * m)
    y, x = image // m, image % m
    plane = var("c", k)
    assert (plane * n + y - 1) * m + x - 1 is plane * n * m + image - m - 1


def test_a_patch_read_is_contiguous_across_image_rows():
    """3x3 filter, padding 1, 14x14 image, 16 channels: the address has coefficient 1 in the pixel."""
    p, r = var("p", 14 * 14), var("r", 16 * 9)
    c, dy, dx = r // 9, r // 3 % 3, r % 3
    y, x = p // 14 + dy - 1, p % 14 + dx - 1
    address = (c * 14 + y) * 14 + x
    assert address.coefficient(p) == 1


def test_divisibility():
    assert proves_divisible(4 * n * m, 2 * m)
    assert proves_divisible(6 * n + 3, 3)
    assert not proves_divisible(n, 2)
    assert not proves_divisible(6 * n + 2, 3)
    assert proves_divisible((m + 1) * n + 3 * m + 3, m + 1)
    assert proves_equal(n * (m + 1), n * m + n)


def test_exclusive_or():
    row, col = var("row", 8), var("col", 8)
    swizzled = xor(row, col)
    assert xor(swizzled, row) is col
    assert xor(swizzled, col) is row
    assert xor(row, row) is ZERO
    assert (swizzled.lo, swizzled.hi) == (0, 7)
    byte = var("byte", 16)
    address = (row * 8 + swizzled) * 16 + byte
    assert address // 128 is row
    assert address % 16 is byte
    assert address // 16 % 8 is swizzled
    assert xor(address % 128, 16 * row) is col * 16 + byte
    assert xor(4 * row, 4 * col) is 4 * swizzled
    low = xor(var("bit", 2), row) % 2
    assert (low.lo, low.hi) == (0, 1)
    assert low // 2 is ZERO


@pytest.mark.parametrize("divisor", [0, -3, n - 1, n - m, -n, size("z", 0), var("i", n)])
def test_divisors_that_may_not_be_positive(divisor):
    with pytest.raises(ArithError) as error:
        n * m // divisor
    assert str(n * m) in str(error.value)
    assert str(divisor) in str(error.value)


def test_divisors_that_are_positive():
    assert ((n + 1) * m) // (n + 1) is m
    i = var("i", n)
    assert ((n - i) * m) // (n - i) is m


def test_tables_go_with_their_variables():
    def alive() -> int:
        gc.collect()
        return sum(isinstance(x, Expr) for x in gc.get_objects())

    def work() -> None:
        for _ in range(200):
            p, q = var("p", 4096), var("q", n)
            (p // 64 * 64 + p % 64 + p % 7) // 5 * n + q

    work()
    before = alive()
    kept = var("kept", 64)
    assert alive() > before
    before = alive()
    work()
    assert alive() <= before + 5
    assert kept // 64 is ZERO


def test_brute_force_of_one_variable():
    """Every floor of an affine form of one variable, all small coefficients, offsets and divisors."""
    checked = 0
    for extent in (1, 2, 5, 9):
        i = var("i", extent)
        for a, b, c in product(range(-7, 8), range(-9, 10, 2), (1, 2, 3, 4, 6, 8)):
            quotient = (a * i + b) // c
            for value in range(extent):
                assert quotient.evaluate({i: value} if i.terms else {}) == (a * value + b) // c
                checked += 1
            assert quotient.lo <= min((a * value + b) // c for value in range(extent))
    assert checked > 15_000
