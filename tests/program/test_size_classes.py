"""What a program for any size is compiled for: classes of row lengths, each once."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf
from lithify.lang.errors import LithifyError, TypeMismatch
from lithify.program.size_classes import LEAST, LONGEST_EXACT

_TEXT = """
sums (rows : n.m.f32) = map (λ row . reduce (+) 0 row) rows
both (rows : n.m.f32) (xs : m.f32) = map (λ row . map (λ (a, x) . a + x) (zip row xs)) rows
ones (xs : n.f32) = map (λ x . x + 1) xs
fourth (rows : n.m.f32) = map (λ row . row[3]) rows
"""
_MODULE = lf.parse(_TEXT)


def _rows(n: int, m: int) -> np.ndarray:
    return np.random.default_rng(n + m).random((n, m), dtype=np.float32)


def test_a_short_length_is_known_and_a_long_one_has_a_bound() -> None:
    sums = _MODULE["sums"].for_any_size()
    exact = ("m", LONGEST_EXACT)
    for m, known, least in ((5, (("m", 5),), ()), (LONGEST_EXACT, (exact,), ()), (300, (), (("m", 257),))):
        found = sums.specialise(_rows(3, m))
        assert (found.sizes, found.least) == (known, least)
    longest = sums.specialise("1.4194304.f32")
    assert longest.least == (("m", LEAST[-1]),)


def test_a_class_is_compiled_once() -> None:
    sums = _MODULE["sums"].for_any_size()
    for n, m in ((1, 5), (9, 5), (2, 300), (3, 1000), (7, 2047), (3, 2048), (2, 40_000)):
        rows = _rows(n, m)
        np.testing.assert_allclose(sums(rows), rows.sum(axis=1, dtype=np.float64), rtol=1e-5)
    compiled = {id(sums.specialise(_rows(n, m)).compiled) for n, m in ((1, 5), (9, 5), (2, 300), (3, 1000), (7, 2047))}
    assert len(compiled) == 2


def test_vectors_have_no_classes() -> None:
    ones = _MODULE["ones"].for_any_size()
    assert len({id(ones.specialise(np.ones(n, np.float32)).compiled) for n in (1, 7, 1000)}) == 1


def test_arguments_that_disagree_are_refused() -> None:
    both = _MODULE["both"].for_any_size()
    with pytest.raises(LithifyError):
        both(_rows(3, 5), np.ones(6, np.float32))
    with pytest.raises(LithifyError):
        both(_rows(3, 5))
    with pytest.raises(LithifyError):
        both(np.ones(5, np.float32), np.ones(5, np.float32))
    np.testing.assert_allclose(both(_rows(3, 5), np.ones(5, np.float32)), _rows(3, 5) + 1, rtol=1e-6)


def test_sizes_that_are_given_and_known() -> None:
    sums = _MODULE["sums"].for_any_size()
    np.testing.assert_allclose(sums(_rows(3, 5), sizes={"m": 5, "n": 3}), _rows(3, 5).sum(axis=1), rtol=1e-6)
    with pytest.raises(LithifyError):
        sums(_rows(3, 5), sizes={"m": 6})


def test_what_is_wrong_for_some_sizes_is_wrong_in_every_class() -> None:
    with pytest.raises(TypeMismatch):
        _MODULE["fourth"].for_any_size()(_rows(3, 8))
