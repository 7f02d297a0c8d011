"""The normal form itself: interning, reading it, substituting, printing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lithify.arith import (
    ArithError,
    Floor,
    as_expr,
    as_variable,
    clamp,
    const,
    loaded,
    maximum,
    minimum,
    size,
    var,
    xor,
)

n, m = size("n"), size("m")
i, j = var("i", n), var("j", 8)


def test_equal_means_identical():
    assert size("n") is n
    assert size("n", 0) is not n
    assert var("i", n) is not i
    assert i + j is j + i
    assert (i + n) * (j - 1) is i * j - i + n * j - n
    assert i - i is const(0)
    assert 2 * i + 3 - i - 3 is i
    assert n * m is m * n


def test_reading_a_form():
    e = 4 * i + j - n * m + 6
    assert e.offset == 6
    assert e.constant is None
    assert const(-5).constant == -5
    assert e.coefficient(i) == 4
    assert e.coefficient(as_variable(j)) == 1
    assert e.coefficient(var("other", 4)) == 0
    assert e.coefficient(n) is None
    assert (i + j // 2).coefficient(j) is None
    assert (4 * i + 8 * (j // 2) + 12).alignment == 4
    assert const(0).alignment == 0
    assert e.variables() == {as_variable(x) for x in (i, j, n, m)}
    assert (j // 3).variables() == {as_variable(j)}
    assert {c for _, c in e.terms} == {4, 1, -1}
    assert isinstance((j // 3).single, Floor)
    assert as_variable(i).extent is n
    assert as_variable(n).extent is None


def test_bounds():
    assert (j.lo, j.hi) == (0, 7)
    assert (3 - 2 * j).lo == -11
    assert (n.lo, n.hi) == (1, math.inf)
    assert (i.lo, i.hi) == (0, math.inf)
    assert ((j - 4) * (j - 4)).hi >= 16
    assert (n * m).lo == 1
    assert (minimum(j, 5).lo, minimum(j, 5).hi) == (0, 5)
    assert (maximum(j, 5).lo, maximum(j, 5).hi) == (5, 7)
    assert (clamp(j - 2, 0, 5).lo, clamp(j - 2, 0, 5).hi) == (0, 5)


def test_variables_of_extent_one_and_none():
    assert var("i", 1) is const(0)
    with pytest.raises(ArithError, match="no values"):
        var("i", 0)


def test_substitution():
    assert (4 * i + j // 2).substitute({i: j, j: i * 2}) is 4 * j + i
    assert (i // 4).substitute({as_variable(i): 9}) is const(2)
    assert (i * n).substitute({n: 3, i: 2}).constant == 6
    assert xor(j, 5).substitute({j: 3}).constant == 6
    assert i.substitute({j: 3}) is i
    tiles = (n + 13) // 14
    assert tiles.substitute({n: 28}).constant == 2


def test_evaluation():
    assert (i // 4 - j).evaluate({i: 9, j: 1}) == 1
    np.testing.assert_array_equal(minimum(j, i).evaluate({i: np.arange(5), j: 2}), [0, 1, 2, 2, 2])
    with pytest.raises(ArithError, match="j has no value"):
        (i + j).evaluate({i: 1})


def test_indices_read_from_buffers():
    table = [5, 2, 7]
    ids = loaded("ids", (i,), 0, n - 1)
    assert loaded("ids", [i], 0, n - 1) is ids
    assert loaded("other", [i], 0, n - 1) is not ids
    assert (ids * 2 + i).evaluate({i: 2}, load=lambda buffer, index: table[index[0]]) == 16
    assert ids.substitute({i: 2}) is loaded("ids", [2], 0, n - 1)
    assert as_variable(i) in ids.variables()
    with pytest.raises(ArithError, match="ids"):
        ids.evaluate({i: 1})


def test_minima_keep_only_what_differs():
    assert minimum(i + 1, n) - minimum(i, n - 1) is const(1)
    assert minimum(i + m, n + m) is minimum(i, n) + m
    assert minimum(2 * i, 6 * m) is 2 * minimum(i, 3 * m)
    assert minimum(i, n) is i
    assert maximum(i, n) is n
    assert maximum(i, j) + minimum(i, j) is i + j


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (4 * i + j - n, "4*i + j - n"),
        (-i - 1, "-i - 1"),
        (const(0), "0"),
        ((n + 13) // 14, "(n + 13) / 14"),
        (14 * ((n + 13) // 14) + 1, "14*((n + 13) / 14) + 1"),
        (n * m * i, "i*m*n"),
        (var("p", n * m) // (n + m), "(p) / (m + n)"),
        (xor(j, 5), "xor(5, j)"),
        (minimum(j, n), "min(j, n)"),
        (loaded("ids", (j, 0), 0, 3), "ids[j, 0]"),
    ],
)
def test_text(e, text):
    assert str(e) == text


def test_misuse():
    with pytest.raises(TypeError):
        i + 1.5
    with pytest.raises(TypeError, match="an int or an Expr"):
        as_expr("n")
    with pytest.raises(TypeError):
        i // 2.0
    with pytest.raises(ArithError, match="is not a variable"):
        as_variable(i + 1)
    with pytest.raises(ArithError, match="not known to be"):
        xor(j - 1, 3)


def everywhere(e, expected, **extents):
    """Compare a form in variables with a NumPy computation on the grid of all their values."""
    names = {name: var(name, extent) for name, extent in extents.items()}
    grids = np.meshgrid(*[np.arange(extent) for extent in extents.values()], indexing="ij")
    values = dict(zip(names.values(), grids, strict=True))
    np.testing.assert_array_equal(e(*names.values()).evaluate(values), expected(*grids))


@pytest.mark.parametrize("extent", [3, 4, 5, 8, 9])
def test_exclusive_or_of_aligned_operands(extent):
    everywhere(lambda x, y: xor(4 * x, y), lambda x, y: (4 * x) ^ y, x=5, y=extent)
    everywhere(lambda x, y: xor(4 * x, 8 * y + 2), lambda x, y: (4 * x) ^ (8 * y + 2), x=5, y=extent)
    everywhere(lambda x, y: xor(2 * x, 6) // 4, lambda x, y: ((2 * x) ^ 6) // 4, x=9, y=2)


def test_minimum_of_congruent_operands():
    everywhere(lambda x, y: minimum(x, 3 * x - 2 * y), lambda x, y: np.minimum(x, 3 * x - 2 * y), x=5, y=7)
    everywhere(lambda x, y: maximum(2 * x + 1, 4 * y), lambda x, y: np.maximum(2 * x + 1, 4 * y), x=5, y=7)
