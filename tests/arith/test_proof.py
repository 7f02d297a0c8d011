"""What must be provable: the questions that translation, tiling, views and bounds checks ask."""

from __future__ import annotations

from itertools import product

import pytest

from lithify.arith import ceil_div, clamp, loaded, minimum, proves, proves_equal, size, var, xor

n, m, k, w, h, c, s = (size(name) for name in "nmkwhcs")
d = size("d", 0)


def below(e, bound):
    return proves(e) and proves(bound - 1 - e)


@pytest.mark.parametrize("tile", [1, 3, 16, s])
def test_tiling(tile):
    tiles = ceil_div(n, tile)
    b, r = var("b", tiles), var("r", tile)
    row = b * tile + r
    assert proves(tiles * tile - n)
    assert proves(n + tile - 1 - tiles * tile)
    assert below(row, tiles * tile)
    assert tile == 1 or not proves(n - 1 - row)
    assert proves(n - 1 - row, [n - 1 - row])
    assert proves(n + tile - 2 - row)


def test_linear_addresses():
    i, j, z = var("i", n), var("j", m), var("z", k)
    assert below((i * m + j) * k + z, n * m * k)
    assert not proves(n * m * k - 2 - ((i * m + j) * k + z))
    assert below(i + n * (j + m * z), n * m * k)


def test_reordering_with_a_stride():
    g = var("g", n * s)
    assert below(g // n + s * (g % n), n * s)


def test_convolution():
    p = var("p", h * w)
    y, x = p // w, p % w
    assert below(y, h)
    assert below(x, w)
    assert not proves(y - 1)
    address = (var("q", c) * h + y) * w + x
    assert below(address, c * h * w)


def test_windows():
    step = size("step")
    window, offset = var("window", d // step + 1), var("offset", w)
    assert below(window * step + offset, w + d)


def test_padding_by_index_functions():
    i, j = var("i", n), var("j", 2 * n)
    assert below(clamp(i - 1, 0, n - 1), n)
    assert below(clamp(i + 3, 0, n - 1), n)
    assert below(minimum(j, 2 * n - 1 - j), n)  # mirrored with the edge repeated
    assert below((i + n - 1) % n, n)


def test_gathers():
    ids = loaded("ids", (var("a", m),), 0, n - 1)
    assert below(ids * k + var("z", k), n * k)


def test_swizzles():
    row, col = var("row", 8), var("col", 8)
    assert below(8 * row + xor(row, col), 64)
    assert proves(row + col - xor(row, col))
    assert not proves(7 - xor(row, var("wide", 9)))


def test_facts_guard_a_partial_tile():
    b, r = var("b", ceil_div(n, 16)), var("r", 16)
    row, col = b * 16 + r, var("col", m)
    inside = n - 1 - row
    assert proves(n * m - 1 - (row * m + col), [inside])
    assert not proves(n * m - 1 - (row * m + col))
    assert proves(n - 1 - b * 16, [inside])
    assert proves(n - 1 - row // 2, [inside])


def test_facts_about_sizes():
    assert proves(n - k, [n - m, m - k])
    assert proves(n * k - m * k, [n - m])
    assert not proves(m * k - n * k, [n - m])
    assert not proves(n - k, [n - m])
    assert proves(n - m - w, [n - 2 * m, m - w])
    assert proves(2 * n - 3 * m, [2 * n - 3 * m])
    assert proves(n // 4 - m // 4, [n - m])


def test_rounding():
    assert proves(n - ceil_div(n, 4))
    assert proves(4 * ceil_div(n, 4) - n)
    assert proves(n + 3 - 4 * ceil_div(n, 4))
    assert proves(n - n // 4 * 4)
    assert proves(n // 4 * 4 + 3 - n)
    assert not proves(n // 4 * 4 + 2 - n)
    assert proves(n * m - n // 2 * m)


def test_products_of_sizes():
    assert proves(n * m - n)
    assert proves(n * n - n)
    assert proves(n * m + 1 - n - m)  # (n - 1)(m - 1) >= 0
    assert not proves(n * m - n - m)
    assert not proves(d * m - d - 1)


@pytest.mark.parametrize("least", [0, 1, 3])
def test_factors_that_all_terms_share(least: int):
    """floor((m - 1) / 8) is kept as floor((m + 7) / 8) - 1, and a product with it multiplied out."""
    rows, length = size("rows", least), size("length", 33)
    for q in ((length - 1) // 2048, length // 2 - 16, (length - 2) // 7):
        assert proves(rows * q)
        assert proves(rows * q * rows)
        assert proves(minimum(rows, rows * q))
        assert not proves(rows * (q - 5))
        assert not proves(-rows * q)


def test_equality():
    p = var("p", n * m)
    assert proves_equal(p // m * m + p % m, p)
    assert not proves_equal(p // m, p // n)
    assert proves_equal(ceil_div(n, 1), n)


def test_long_proofs_end():
    e = n
    for d in range(6):
        v = var(f"v{d}", n * m + d)
        e = e + (v // (m + d)) * (v // 3) - xor(v, v // 5) + minimum(v, m * d) * (d - 2)
    assert not proves(e)


def test_coefficients_that_no_float_can_hold():
    """They met bounds that are not known, and were to become floats."""
    e = 10**400 * n - 10**400 * m + 1
    assert not proves(e)
    assert not proves(-e)
    assert proves(10**400 * n)
    assert proves(10**400 * n - 1 - 10**399)


def test_facts_are_used_exactly():
    """All small linear facts of two indices: what is proved holds at every point, and the fact itself is proved."""
    x, y = var("x", 4), var("y", 3)
    points = list(product(range(4), range(3)))
    proved = 0
    for s, t, u in product((-2, -1, 1, 2), (-1, 0, 2), (-2, 0, 3)):
        fact = s * x + t * y + u
        inside = [(a, b) for a, b in points if s * a + t * b + u >= 0]
        assert proves(fact, [fact])
        for p, q in product((-2, -1, 1), (-1, 0, 2)):
            least = min([p * a + q * b for a, b in inside], default=0)
            for slack in (0, -1):
                if proves(p * x + q * y - least + slack, [fact]):
                    assert not inside or slack == 0
                    proved += slack == 0
    assert proved > 150
    assert not proves(n - m - 1, [n - m])
    assert not proves(m - n, [n - m])
