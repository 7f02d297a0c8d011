"""Sums down columns on CPUs: several rows at a time where the matrix is large, and the same sums."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.lowering import columns
from lithify.machine import host
from lithify.program.module import parse
from lithify.targets.cpu import CpuTarget
from tests.targets.handmade import random

TEXTS = {
    "sums": "λ A x y . map (λ c . reduce (+) 0 c) (transpose A)",
    "product": "λ A x y . map (λ c . reduce (+) 0 (map (*) (zip c x))) (transpose A)",
    "and more": "λ A x y . map (λ (c, b) . 2 * reduce (+) 0 (map (*) (zip c x)) + 3 * b) (zip (transpose A) y)",
    "largest": "λ A x y . map (λ c . reduce max 0 c) (transpose A)",
}


def expected(name: str, a: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a, x, y = (v.astype(np.float64) for v in (a, x, y))
    return {
        "sums": a.sum(0), "product": x @ a, "and more": 2 * (x @ a) + 3 * y, "largest": np.maximum(a.max(0), 0),
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("rows", [128, 136, 1000, 130])
def test_results(name: str, parts: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_LARGE", 0)
    shape = (rows, 512 * parts * host().cores)
    a, x, y = random(shape[0] * shape[1]).reshape(shape), random(rows), random(shape[1])
    program = parse(f"f = {TEXTS[name]}")["f"].kernels(a, x, y)
    assert any(b.memory.name == "thread" for k in program.kernels for b in k.scratch) == (rows % 4 == 0)
    got = CpuTarget(threads=2).compile(program)(a, x, y)
    np.testing.assert_allclose(got, expected(name, a, x, y), rtol=1e-4, atol=1e-4)


def test_what_the_cores_hold_is_summed_in_registers() -> None:
    a, x, y = random(128 * 1024).reshape(128, 1024), random(128), random(1024)
    program = parse(f"f = {TEXTS['product']}")["f"].kernels(a, x, y)
    assert not any(b.memory.name == "thread" for k in program.kernels for b in k.scratch)
