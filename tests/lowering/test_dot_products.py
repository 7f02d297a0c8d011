"""Dot products of rows with one vector on CPUs: several rows at a time where they share it, and the same sums."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.lang.term import subterms
from lithify.lowering import dot_products
from lithify.machine import host
from lithify.program.module import parse
from lithify.targets.cpu import CpuTarget
from tests.targets.handmade import random

TEXTS = {
    "product": "λ A x y . map (λ r . reduce (+) 0 (map (*) (zip r x))) A",
    "other way round": "λ A x y . map (λ r . reduce (+) 0 (map (*) (zip x r))) A",
    "and more": "λ A x y . map (λ (r, b) . 2 * reduce (+) 0 (map (*) (zip r x)) + 3 * b) (zip A y)",
    "from a start": "λ A x y . map (λ r . reduce (+) 5 (map (*) (zip r x))) A",
    "largest": "λ A x y . map (λ r . reduce max 0 (map (*) (zip r x))) A",
    "distances": "λ A x y . map (λ r . reduce (+) 0 (map (λ (u, v) . (u - v) * (u - v)) (zip r x))) A",
    "from each start": "λ A x y . map (λ (r, b) . reduce (+) b (map (*) (zip r x))) (zip A y)",
}
NOT_SHARED = {
    "sums": "λ A x y . map (λ r . reduce (+) 0 r) A",
    "squares": "λ A x y . map (λ r . reduce (+) 0 (map (*) (zip r r))) A",
    "two sums": "λ A x y . map (λ r . reduce (+) 0 r * reduce (+) 0 (map (*) (zip r x))) A",
}


def expected(name: str, a: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a, x, y = (v.astype(np.float64) for v in (a, x, y))
    return {
        "product": lambda: a @ x, "other way round": lambda: a @ x, "and more": lambda: 2 * (a @ x) + 3 * y,
        "from a start": lambda: a @ x + 5, "largest": lambda: np.maximum((a * x).max(1), 0),
        "distances": lambda: ((a - x) ** 2).sum(1), "sums": lambda: a.sum(1), "squares": lambda: (a * a).sum(1),
        "from each start": lambda: a @ x + y, "two sums": lambda: a.sum(1) * (a @ x),
    }[name]()  # fmt: skip


def together(name: str, rows: int, terms: int) -> bool:
    """Whether rows are taken together; checks the results."""
    a, x, y = random(rows * terms).reshape(rows, terms), random(terms), random(rows)
    program = parse(f"f = {(TEXTS | NOT_SHARED)[name]}")["f"]
    lowered = program.lowered(a, x, y)
    got = CpuTarget(threads=2).compile(program.kernels(a, x, y))(a, x, y)
    np.testing.assert_allclose(got, expected(name, a, x, y), rtol=1e-4, atol=1e-3)
    return any(t.kind == "map" and "tile.staged" in (t["name"] or "") for t in subterms(lowered))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("rows", "terms"), [(256, 512), (403, 320), (401, 480), (256, 448 + 16)])
def test_rows_that_share_a_vector_are_taken_together(name: str, rows: int, terms: int) -> None:
    assert together(name, rows, terms)


@pytest.mark.parametrize("name", NOT_SHARED)
def test_others_are_not(name: str) -> None:
    assert not together(name, 256, 512)


def test_sums_that_do_not_end_with_a_vector_are_not() -> None:
    assert not together("product", 256, 513)


def test_few_rows_are_left_to_the_threads() -> None:
    assert not together("product", 4 * host().cores - 1, 1 << 14)


def test_what_comes_from_far_is_asked_for_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert together("product", 256, 512)
    monkeypatch.setattr(dot_products, "_MOST", 0)
    assert not together("product", 256, 512)
