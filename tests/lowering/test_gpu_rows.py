"""Work on rows on GPUs: a group, a warp or an item a row, of lengths that are known and of lengths that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.arith import size
from lithify.evaluate import evaluate
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.kernel.walk import statements
from lithify.lang.module import Definition, read_file, read_text
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.lowering import Lowered, gpu_grid, gpu_parts, gpu_scans, lower
from lithify.machine import H200_OPENCL, DeviceModel
from lithify.operators import path
from lithify.targets.opencl import OpenCLTarget

_OWN = read_text("""
sums = λ rows . map (λ row . reduce (+) 0 row) rows
norms = λ rows . map (λ row . sqrt (reduce (+) 0 (map (λ x . x * x) row))) rows
largest = λ rows . map (λ row . reduce max (-inf) row) rows
columns = λ rows . map (λ column . reduce (+) 0 column) (transpose rows)
prefixes = λ rows . map (λ row . scan (+) 0 row) rows
beside = λ xs rows . concat (map (λ row . reduce max (-inf) row) rows) xs
""")
_ROWS = ((3, 1100), (2, 2048), (9, 200), (16, 64), (17, 100), (130, 12), (129, 13), (256, 16), (140, 48), (70, 128))
# What a platform computes wrongly now and then has to show: a group with items that had no row did.
_CALLS = 20
_PROGRAMS = ("sums", "norms", "largest", "variance", "softmax", "layernorm", "gemv", "prefixes")


def _definition(name: str) -> Definition:
    if name in ("sums", "norms", "largest", "prefixes", "columns"):
        return _OWN[name]
    return read_file(path("blas" if name.startswith("gemv") else "rows"))[name]


def _shapes(name: str, n: Any, m: Any) -> list[tuple[Any, ...]]:
    more: dict[str, list[tuple[Any, ...]]] = {
        "layernorm": [(m,), (m,), ()],
        "gemv": [(m,), (n,), (), ()],
        "gemvT": [(n,), (m,), (), ()],
    }
    return [(n, m), *more.get(name, [])]


def _check(
    name: str,
    shape: tuple[int, int],
    device: Any,
    *,
    symbolic: tuple[Any, ...] | None = None,
    model: DeviceModel = H200_OPENCL,
) -> Lowered:
    """Every step where sizes are known, the kernels under the evaluator, and OpenCL C."""
    dims: tuple[Any, ...] = symbolic or shape
    types = [array(*s, f32) if s else f32 for s in _shapes(name, *dims)]
    program = _definition(name).elaborate(types)
    lowered = lower(program.term, model, check=symbolic is None and shape[0] * shape[1] < 3000)
    kernels = translate(lowered.term, program.parameters, device=model)
    rng = np.random.default_rng(7)
    arguments = [rng.random(s).astype(np.float32) if s else np.float32(0.5) for s in _shapes(name, *shape)]
    named = dict(zip([parameter for parameter, _ in program.parameters], arguments, strict=True))
    exact = _definition(name).elaborate([array(*s, f32) if s else f32 for s in _shapes(name, *shape)])
    expected = evaluate(exact.term, named)
    (evaluated,) = run(kernels, named)
    np.testing.assert_allclose(evaluated, expected, rtol=1e-4, atol=1e-5)
    compiled = OpenCLTarget(device.platform.name).compile(kernels)
    for _ in range(_CALLS):
        np.testing.assert_allclose(compiled(*arguments), expected, rtol=1e-4, atol=1e-5)
    return lowered


@pytest.mark.parametrize("shape", _ROWS, ids=str)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_rows(opencl_device: Any, name: str, shape: tuple[int, int]) -> None:
    _check(name, shape, opencl_device)


@pytest.mark.parametrize("shape", [(3, 1500), (2, 5001)], ids=str)
@pytest.mark.parametrize("name", ["sums", "variance", "softmax", "layernorm", "gemv", "columns", "gemvT", "prefixes"])
def test_rows_in_parts(opencl_device: Any, monkeypatch: pytest.MonkeyPatch, name: str, shape: tuple[int, int]) -> None:
    for constant, value in (("_LEAST", 1), ("_LEAST_OF_GROUP", 256), ("_LEAST_OF_ITEM", 8)):
        monkeypatch.setattr(gpu_parts, constant, value)
    monkeypatch.setattr(gpu_scans, "_BLOCK", 1)
    monkeypatch.setattr(gpu_grid, "PIECE", 1024)
    monkeypatch.setattr(gpu_grid, "LONG_PIECES", 1024)
    lowered = _check(name, shape[::-1] if name in ("columns", "gemvT") else shape, opencl_device)
    named = lowered.derivation.names().count("hoist-let-expanded(heap)")
    assert named == {"variance": 1, "softmax": 2, "layernorm": 3}.get(name, 0)
    assert any(step.startswith("hoist-expanded") for step in lowered.derivation.names())


@pytest.mark.parametrize("shape", [(3, 2500), (11, 700), (5, 31), (2, 1)], ids=str)
@pytest.mark.parametrize("name", [p for p in _PROGRAMS if p != "prefixes"])
def test_rows_of_any_length(opencl_device: Any, name: str, shape: tuple[int, int]) -> None:
    _check(name, shape, opencl_device, symbolic=lf.sizes("n m"))


def test_no_rows_at_all_have_no_parts() -> None:
    """Beside other results: the loop over the rows stays in the program."""
    lowered = lower(_OWN["beside"].elaborate([array(3, f32), array(0, 2, f32)]).term, H200_OPENCL)
    assert not any(step.startswith("partial-reduce") for step in lowered.derivation.names())


@pytest.mark.parametrize("least", [65, 257])
def test_items_whose_elements_lie_apart_do_not_wait_between_rounds(least: int) -> None:
    """Rounds of a warp over a row of unknown length, which the heap is written in."""
    program = _definition("softmax").elaborate([array(lf.size("n"), size("m", least), f32)])
    kernels = translate(lower(program.term, H200_OPENCL).term, program.parameters, device=H200_OPENCL).kernels
    barriers = [s for kernel in kernels for s in statements(kernel.body) if isinstance(s, ir.Barrier)]
    assert barriers
    assert not any("heap" in barrier.memory for barrier in barriers)


def test_values_of_short_rows_are_computed_first_and_rows_by_all_items() -> None:
    program = _definition("softmax").elaborate([array(4096, 64, f32)])
    lowered = lower(program.term, H200_OPENCL)
    assert lowered.derivation.names().count("hoist-let-expanded(local)") == 2
    assert "flatten" in lowered.derivation.names()
    (kernel,) = translate(lowered.term, program.parameters, device=H200_OPENCL).kernels
    assert sorted(elements.constant for b in kernel.scratch if b.memory.name == "local" for elements in b.shape) == [
        64,
        64,
        64,
        65,
    ]


@pytest.mark.parametrize("length", [16, 100])
@pytest.mark.parametrize("name", ["variance", "softmax", "gemv", "prefixes"])
def test_any_number_of_rows(opencl_device: Any, name: str, length: int) -> None:
    _check(name, (131, length), opencl_device, symbolic=(lf.size("n"), length))


@pytest.mark.parametrize(("least", "length"), [(2, 5), (63, 70), (65, 65), (257, 300), (2048, 2500)])
@pytest.mark.parametrize("name", ["norms", "variance", "softmax"])
def test_rows_of_at_least_a_length(opencl_device: Any, name: str, least: int, length: int) -> None:
    _check(name, (11, length), opencl_device, symbolic=(lf.size("n"), size("m", least)))


@pytest.mark.parametrize("length", [4096, 5001])
@pytest.mark.parametrize("name", ["sums", "variance", "softmax", "layernorm"])
def test_long_rows_of_any_length_in_parts(
    opencl_device: Any, monkeypatch: pytest.MonkeyPatch, name: str, length: int
) -> None:
    monkeypatch.setattr(gpu_parts, "_LEAST_OPEN", 4096)
    monkeypatch.setattr(gpu_grid, "LONG_PIECES", 4096)
    lowered = _check(name, (3, length), opencl_device, symbolic=(lf.size("n"), size("m", 4096)))
    assert any(step.startswith("hoist-expanded") for step in lowered.derivation.names())
