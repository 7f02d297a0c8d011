"""Scans on CPUs: squares for threads, vectors in doubling steps or turned and side by side, and what is left over."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import lithify as lf
from lithify.kernel import ir
from lithify.kernel.walk import parts, statements
from lithify.lowering import cpu
from lithify.targets.cpu import CpuTarget

LATEST = """
operator latest (λ a b . if b == 0 then a else b) associative neutral 0
held = λ xs . scan latest 0 xs
started = λ (xs : n.f32) z . scan (+) z xs
rows = λ xs . map (scan (+) 0) xs
highest = λ (xs : n.f32) . scan max (-inf) xs
"""
LENGTHS = [1, 2, 15, 255, 256, 257, 511, 512, 5_001, 65_536, 99_999, 100_000, 100_001, 300_007]


def scalars(n: int) -> np.ndarray:
    return np.random.default_rng(n).random(n, dtype=np.float32) - np.float32(0.25)


@pytest.mark.parametrize("n", LENGTHS)
def test_sums(n: int) -> None:
    x = scalars(n)
    expected = np.cumsum(x.astype(np.float64))
    for name, wanted in (("inclusiveScan", expected), ("exclusiveScan", np.append(0, expected[:-1]))):
        out = np.full(n, np.nan, np.float32)
        lf.library("layout")[name](x, out=out)
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("n", [300, 100_001])
@pytest.mark.parametrize("scalar", [np.int8, np.int32, np.int64, np.float64, np.float16, np.complex64])
def test_sums_of_other_types(scalar: type[np.generic], n: int) -> None:
    x = (np.arange(n) % 3 - 1).astype(scalar)
    np.testing.assert_array_equal(lf.library("layout")["inclusiveScan"](x), np.cumsum(x, dtype=scalar))


@pytest.mark.parametrize("n", [256, 1_000, 100_003])
def test_the_order_is_kept(n: int) -> None:
    """The last number so far that is not 0: an operator that does not commute."""
    x = np.where(np.arange(n) % 7 == 3, np.arange(n), 0).astype(np.int32)
    places = np.maximum.accumulate(np.where(x != 0, np.arange(n), 0))
    np.testing.assert_array_equal(lf.parse(LATEST)["held"](x), x[places])


@pytest.mark.parametrize("n", [256, 1_000, 100_003])
def test_from_an_initial_value_and_with_another_operator(n: int) -> None:
    x, programs = scalars(n), lf.parse(LATEST)
    np.testing.assert_allclose(programs["started"](x, 3.0), 3 + np.cumsum(x.astype(np.float64)), rtol=1e-5)
    np.testing.assert_array_equal(programs["highest"](x), np.maximum.accumulate(x))


@pytest.mark.parametrize("shape", [(3, 5), (5, 256), (4, 1_000), (300, 700), (2, 70_001)])
def test_of_rows(shape: tuple[int, int]) -> None:
    x = scalars(shape[0] * shape[1]).reshape(shape)
    expected = np.cumsum(x.astype(np.float64), axis=1)
    np.testing.assert_allclose(lf.parse(LATEST)["rows"](x), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_long_ones_are_scanned_in_lanes() -> None:
    names = lf.library("layout")["inclusiveScan"].derivation("1000000.f32").names()
    assert any(name.startswith("scan-vectors") for name in names)
    assert any(name.startswith("scan-steps-16") for name in names)


@pytest.mark.parametrize("n", [256, 100_003])
def test_operators_that_cost_much_are_scanned_side_by_side(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "CHEAP_WORK", 0)
    x, highest = scalars(n), lf.parse(LATEST)["highest"]
    assert any(name.startswith("scan-lanes") for name in highest.derivation(x).names())
    np.testing.assert_array_equal(highest(x), np.maximum.accumulate(x))


def test_what_is_scanned_is_computed_once() -> None:
    """Long arrays are summed up in two levels; the lower sums are read twice, and must not be computed twice for it."""
    program = lf.library("layout")["inclusiveScan"].kernels("1000000.f32")
    values = [s.value for kernel in program.kernels for s in statements(kernel.body) if isinstance(s, ir.Store)]
    loads = [part for value in values for part in parts(value) if isinstance(part, ir.Load)]
    names = Counter((part.buffer.name, str(part.index)) for part in loads if part.buffer.role == "input")
    assert 1 <= max(names.values()) <= 2  # for a square's sum, and for its scan


@pytest.mark.parametrize("scalar", [np.int8, np.int32, np.int64, np.float32, np.float64])
def test_vectors_stay_in_registers(scalar: type[np.generic]) -> None:
    """Doubling steps read neighbours in private memory: as permuted vectors, not as masked loads from the stack."""
    text = CpuTarget().source(lf.library("layout")["inclusiveScan"].kernels(np.zeros(1 << 16, scalar)))
    assert "@llvm.masked" not in text
