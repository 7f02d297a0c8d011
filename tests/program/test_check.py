"""The check of all levels: it finds what is wrong, and the work and bounds that an explanation is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.explore.comparison import relative_difference
from lithify.lang.errors import LithifyError
from lithify.lang.scalars import SCALARS, bf16, complex64, f16, f32, f64, i32
from lithify.lang.types import Tuple, array
from lithify.program import specialise
from lithify.program.check import compare, sample, tolerance_of
from lithify.program.explain import duration, summary
from lithify.program.work import bytes_of, work_of


def test_a_wrong_lowering_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a lowering that sums the squares although the program sums the elements."""
    right = specialise.Specialisation._lower
    wrong = lf.parse("f = λ xs . reduce (+) 0 (map (λ x . x * x) xs)")["f"]

    def lower(self: Any, check: bool) -> Any:
        return right(wrong.specialise(*[t for _, t in self.elaborated.parameters]), check)

    total = lf.parse("total = λ xs . reduce (+) 0 xs")["total"]
    monkeypatch.setattr(specialise.Specialisation, "_lower", lower)
    monkeypatch.setenv("LITHIFY_CACHE", "/nonexistent/never-written")
    found = total.check("10.f32")
    assert not found
    assert [level.right for level in found.levels] == [True, False, False, False]
    assert "WRONG the lowered program" in str(found)
    assert "instead of" in found.levels[1].problem


def test_it_says_on_what_it_ran() -> None:
    total = lf.parse("total = λ xs ys . reduce (+) 0 (map (*) (zip xs ys))")["total"]
    small = total.check("40.f32", "40.f32")
    assert str(small).startswith("total on 40.f32, 40.f32\n")
    large = total.check("1000.f32", "1000.f32")
    assert large.asked == (array(1000, f32), array(1000, f32))
    assert str(large).startswith("total on 13.f32, 13.f32, in place of 1000.f32, 1000.f32 (dimensions above 48")


def test_a_level_that_cannot_be_reached_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Any, check: bool) -> Any:
        raise LithifyError("no way down")

    total = lf.parse("total = λ xs . reduce (+) 0 (map (λ x . x + 3) xs)")["total"]
    monkeypatch.setattr(specialise.Specialisation, "_lower", refuse)
    monkeypatch.setenv("LITHIFY_CACHE", "/nonexistent/never-written")
    found = total.check("10.f32")
    assert not found
    assert found.levels[1].problem == "no way down"


def test_what_is_scattered_by_a_parameter_is_checked_with_a_permutation() -> None:
    program = lf.parse("p (ids : n.idx[n]) (xs : n.f32) = scatter ids (map (* 2) xs)")["p"]
    assert program.check("40.idx[40]", "40.f32").right


def test_sizes_that_must_stay_are_kept() -> None:
    text = "blocks = λ xs . map (λ b . reduce (+) 0 b) (split 64 xs)"
    found = lf.parse(text)["blocks"].check("128.f32")
    assert found
    assert [str(t) for t in found.types] == ["128.f32"]


@pytest.mark.parametrize(
    ("scalar", "low", "high"),
    [(f32, 1e-5, 1e-3), (f64, 1e-14, 1e-11), (f16, 1e-3, 0.1), (bf16, 1e-2, 0.1), (i32, 0, 0), (complex64, 1e-5, 1e-3)],
)
def test_tolerances(scalar: Any, low: float, high: float) -> None:
    assert low <= tolerance_of(scalar) <= high


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_samples_have_their_type(name: str) -> None:
    scalar = SCALARS[name]
    values = sample(array(3, 4, scalar), np.random.default_rng(1))
    assert values.dtype == scalar.dtype
    assert values.shape == (3, 4)
    pair = sample(Tuple(array(2, f32), scalar), np.random.default_rng(1))
    assert pair[0].shape == (2,)
    assert pair[1].shape == ()


def test_differences() -> None:
    a = np.array([1.0, 2.0, np.nan, np.inf])
    assert relative_difference(a, a) == 0
    assert relative_difference(np.array([1.0, 2.5]), np.array([1.0, 2.0])) == 0.25
    assert math.isinf(relative_difference(np.array([np.nan]), np.array([1.0])))
    assert relative_difference(np.zeros(0), np.zeros(0)) == 0
    assert not compare("level", [np.zeros(3)], [np.zeros(4)], [f32]).right
    assert "[1]" in compare("level", [np.array([1.0, 9.0])], [np.array([1.0, 2.0])], [f32]).problem


@pytest.mark.parametrize(
    ("text", "types", "operations"),
    [
        ("f = λ xs . (λ y . y * y * y) (reduce (+) 0 xs)", ["7.f32"], {"f32": 9}),
        ("f = λ xs . reduce (+) 0 xs", ["100.f32"], {"f32": 100}),
        ("f = λ xs ys . reduce (+) 0 (map (*) (zip xs ys))", ["100.f64", "100.f64"], {"f64": 200}),
        ("f = λ a b . map (λ r . map (λ c . dot r c) (transpose b)) a", ["4.8.f32", "8.2.f32"], {"f32": 2 * 4 * 8 * 2}),
        ("f = λ xs . map (λ w . reduce (+) 0 w) (slide 3 1 xs)", ["10.f32"], {"f32": 24}),
        ("f = λ xs . transpose xs", ["3.4.f32"], {}),
        ("f = λ xs . iterate 5 (λ v . map (λ x . x * 2) v) xs", ["7.f32"], {"f32": 35}),
        ("f = λ xs . map (λ x . f32 x + 1) xs", ["6.i32"], {"f32": 6}),
    ],
)
def test_operations_are_counted(text: str, types: list[str], operations: dict[str, int]) -> None:
    elaborated = lf.parse(text)["f"].specialise(*types).elaborated
    assert work_of(elaborated.term, [t for _, t in elaborated.parameters]).operations == operations


def test_what_is_shared_is_counted_once() -> None:
    text = "f = λ xs . let ys = map (λ x . x * x) xs in map (λ (a, b) . a + b) (zip ys ys)"
    elaborated = lf.parse(text)["f"].specialise("10.f32").elaborated
    assert work_of(elaborated.term, []).operations == {"f32": 20}


def test_bytes() -> None:
    assert bytes_of(Tuple(array(3, f32), array(2, 2, f64))) == 12 + 32
    with pytest.raises(LithifyError, match="the size n is not known"):
        work_of(lf.parse("f = λ (xs : n.f32) . xs")["f"].specialise().elaborated.term, [])


def test_texts() -> None:
    assert [duration(s) for s in (2.0, 0.0031, 42e-6, 5e-9)] == ["2 s", "3.1 ms", "42 µs", "5 ns"]
    assert summary(["a", "a", "b", "a"]) == "a x 2, b, a"
    assert summary([f"r({k})" for k in range(40)]) == "r x 40"
