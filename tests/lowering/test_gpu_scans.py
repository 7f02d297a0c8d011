"""Scans on GPUs: one group, pieces and their sums, several levels of sums, rows; sums, tuples, other types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.evaluate import evaluate
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.levels import Level
from lithify.lang.module import read_text
from lithify.lang.scalars import SCALARS
from lithify.lang.types import array
from lithify.lowering import gpu_scans, lower
from lithify.lowering.gpu_rows import Team
from lithify.machine import H200_OPENCL
from lithify.targets.opencl import OpenCLTarget

_MODULE = read_text("""
inclusive = λ xs . scan (+) 0 xs
exclusive = λ (xs : n._) . scan (+) 0 (take n (pad 1 0 0 xs))
squares = λ xs . scan (+) 0 (map (λ x . x * x) xs)
largest = λ xs . scan max (-inf) xs
from = λ xs a . scan (+) a xs

-- x -> a x + b, one after the other: associative, not commutative
operator after (λ p q . (p.0 * q.0, p.1 * q.0 + q.1)) associative neutral (1, 0)
recurrence = λ xs ys . map (λ p . p.1) (scan after (1, 0) (zip xs ys))
rows = λ rows . map (λ row . scan (+) 0 row) rows
squaresOfRows = λ rows . map (λ row . scan (+) 0 (map (λ x . x * x) row)) rows
""")


def _check(name: str, shapes: tuple[tuple[int, ...], ...], device: Any, scalar: str = "f32", types: Any = None) -> Any:
    """The kernels under the evaluator, and OpenCL C."""
    element = SCALARS[scalar]
    exact = _MODULE[name].elaborate([array(*s, element) if s else element for s in shapes])
    program = exact if types is None else _MODULE[name].elaborate([array(*t, element) for t in types])
    lowered = lower(program.term, H200_OPENCL)
    kernels = translate(lowered.term, program.parameters, device=H200_OPENCL)
    rng = np.random.default_rng(7)
    arguments = [np.asarray(rng.random(s) * (1 if element.name[0] == "f" else 9)).astype(element.dtype) for s in shapes]
    arguments = [a if a.ndim else a[()] for a in arguments]
    named = dict(zip([parameter for parameter, _ in program.parameters], arguments, strict=True))
    expected = evaluate(exact.term, named)
    (evaluated,) = run(kernels, named)
    np.testing.assert_allclose(evaluated, expected, rtol=2e-4, atol=1e-5)
    compiled = OpenCLTarget(device.platform.name).compile(kernels)(*arguments)
    np.testing.assert_allclose(compiled, expected, rtol=2e-4, atol=1e-5)
    return lowered


@pytest.mark.parametrize("n", [1, 20, 100, 300, 4096, 5000, 20_000])
@pytest.mark.parametrize("name", ["inclusive", "exclusive", "squares", "largest"])
def test_scans(opencl_device: Any, name: str, n: int) -> None:
    _check(name, ((n,),), opencl_device)


@pytest.mark.parametrize("n", [100, 5000])
def test_scans_of_pairs_in_order(opencl_device: Any, n: int) -> None:
    _check("recurrence", ((n,), (n,)), opencl_device)


@pytest.mark.parametrize("scalar", ["f64", "i32", "i64"])
def test_scans_of_other_types(opencl_device: Any, scalar: str) -> None:
    _check("inclusive", ((5000,),), opencl_device, scalar)


def test_a_scan_from_an_initial_value(opencl_device: Any) -> None:
    _check("from", ((5000,), ()), opencl_device)


@pytest.mark.parametrize("n", [1, 700, 9000])
def test_scans_of_any_length(opencl_device: Any, n: int) -> None:
    _check("inclusive", ((n,),), opencl_device, types=[(lf.size("n"),)])


@pytest.mark.parametrize("shape", [(5, 100), (20, 100), (9, 700), (3, 4096), (3, 9001)], ids=str)
def test_scans_of_rows(opencl_device: Any, shape: tuple[int, int]) -> None:
    _check("rows", (shape,), opencl_device)


def test_scans_of_long_rows_that_are_computed(opencl_device: Any) -> None:
    _check("squaresOfRows", ((2, 9001),), opencl_device)


def test_sums_of_sums_of_sums(opencl_device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_scans, "GROUP_TEAM", Team(Level("item", 0), 2))
    monkeypatch.setattr(gpu_scans, "_PIECES_OF_ONE_GROUP", 1)
    lowered = _check("inclusive", ((3000,),), opencl_device)
    assert sum(step.startswith("scan-of-sums") for step in lowered.derivation.names()) >= 2
