"""The default lowering for GPUs: stencils of several rows an item, copies in squares by way of local memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.module import Elaborated, read_file, read_text
from lithify.lang.scalars import f32
from lithify.lang.types import Index, Type, array
from lithify.lowering import Lowered, gpu_grid, gpu_windows, lower
from lithify.machine import H200_OPENCL
from lithify.operators import path
from lithify.targets.opencl import OpenCLTarget

MODEL = replace(H200_OPENCL, cores=1)
STENCILS: list[tuple[str, str, tuple[tuple[int, ...], ...]]] = [
    ("image", "binomial", ((35, 41),)),
    ("image", "gaussian", ((32, 40),)),
    ("stencil", "jacobi2D5", ((33, 41),)),
    ("stencil", "gradient2D", ((30, 41),)),
    ("stencil", "srad1", ((33, 40), ())),
    ("image", "unsharp", ((35, 22), ())),
    ("image", "harris", ((19, 21), ())),
    ("image", "separable", ((17,), (33, 20))),
    ("stencil", "jacobi3D7", ((5, 17, 18),)),
    ("stencil", "poisson3D19", ((4, 9, 18),)),
    ("image", "binomial", ((35, 44),)),
    ("image", "gaussian", ((33, 40),)),
    ("image", "unsharp", ((35, 24), ())),
    ("image", "harris", ((27, 32), ())),
    ("stencil", "jacobi2D5", ((33, 24),)),
    ("stencil", "srad1", ((33, 44), ())),
    ("stencil", "jacobi3D7", ((5, 17, 20),)),
]
COPIES: list[tuple[str, tuple[int, ...]]] = [
    ("transpose2D", (70, 45)),
    ("transpose2D", (64, 96)),
    ("transpose2D", (17, 200)),
    ("channelsLast", (2, 33, 4, 18)),
    ("reverseDims", (2, 33, 4, 18)),
    ("reverseDims", (33, 3, 4, 18)),
    ("channelsLast", (2, 17, 3, 33)),
    ("swapMiddle", (2, 3, 4, 40)),
]


def _program(file: str, name: str, shapes: tuple[tuple[int, ...], ...]) -> Elaborated:
    types: list[Type] = [array(*shape, f32) if shape else f32 for shape in shapes]
    return read_file(path(file))[name].elaborate(types)


def _check(program: Elaborated, shapes: tuple[tuple[int, ...], ...], device: Any) -> Lowered:
    """Every step, the kernels under the evaluator, and OpenCL C."""
    lowered = lower(program.term, MODEL, check=True)
    kernels = translate(lowered.term, program.parameters, device=MODEL)
    rng = np.random.default_rng(7)
    arguments = [rng.random(s).astype(np.float32) if s else np.float32(0.5) for s in shapes]
    named = dict(zip([name for name, _ in program.parameters], arguments, strict=True))
    expected = evaluate(program.term, named)
    (evaluated,) = run(kernels, named)
    np.testing.assert_allclose(evaluated, expected, rtol=1e-5, atol=1e-5)
    compiled = OpenCLTarget(device.platform.name).compile(kernels)(*arguments)
    np.testing.assert_allclose(compiled, expected, rtol=1e-5, atol=1e-5)
    return lowered


@pytest.mark.parametrize(("file", "name", "shapes"), STENCILS, ids=str)
def test_stencils(
    opencl_device: Any, monkeypatch: pytest.MonkeyPatch, file: str, name: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    """Small grids count as large ones, so that each item gets several rows."""
    monkeypatch.setattr(gpu_windows, "ITEMS_TO_BE_BUSY", 16)
    lowered = _check(_program(file, name, shapes), shapes, opencl_device)
    assert any(step.startswith("split-join(") for step in lowered.derivation.names())


def test_small_grids_are_spread_as_widely_as_they_go() -> None:
    lowered = lower(_program("image", "binomial", ((35, 41),)).term, H200_OPENCL)
    assert not any(step.startswith("split-join(") for step in lowered.derivation.names())


@pytest.mark.parametrize(("name", "shape"), COPIES, ids=[f"{name} {shape}" for name, shape in COPIES])
def test_copies(opencl_device: Any, name: str, shape: tuple[int, ...]) -> None:
    _check(_program("layout", name, (shape,)), (shape,), opencl_device)


def test_a_transpose_goes_through_padded_local_memory() -> None:
    program = _program("layout", "transpose2D", ((512, 256),))
    lowered = lower(program.term, H200_OPENCL)
    assert lowered.derivation.names() == ["copy-tiles-shared-across(group1, group0, item, 128, 32, local+1)"]
    (kernel,) = translate(lowered.term, program.parameters, device=H200_OPENCL).kernels
    (tile,) = kernel.scratch
    assert [size.constant for size in tile.shape] == [32, 33]


NESTS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("more", ((7, 16),)),
    ("more3", ((3, 2, 8),)),
    ("more4", ((3, 2, 2, 4),)),
    ("more4", ((3, 2, 4, 5),)),
    ("outer", ((6, 12), (6,), (12,))),
    ("normed", ((3, 7),)),
]
_OWN = read_text("""
more = λ a . map (map (λ x . x + 1)) a
more3 = λ a . map (map (map (λ x . x + 1))) a
more4 = λ a . map (map (map (map (λ x . x + 1)))) a
outer = λ a xs ys . map (λ (row, x) . map (λ (y, z) . x * y + z) (zip ys row)) (zip a xs)
normed = λ a . map (λ row . let s = reduce (+) 0 row in map (λ x . x / s) row) a
""")


@pytest.mark.parametrize(("name", "shapes"), NESTS, ids=str)
def test_nests(
    opencl_device: Any, monkeypatch: pytest.MonkeyPatch, name: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    monkeypatch.setattr(gpu_grid, "WORTH_VECTORS", 2)
    _check(_OWN[name].elaborate([array(*shape, f32) for shape in shapes]), shapes, opencl_device)


@pytest.mark.parametrize("kind", ["reduce", "scan"])
def test_a_histogram_that_each_item_keeps_is_cleared_by_each(kind: str) -> None:
    """Outside of all groups every item has an accumulator of its own, all of which it sets to the neutral element."""
    text = f"p ids xs ys = {kind} (λ s y . map (+ y) s) (scatter[add] ids xs) ys"
    program = read_text(text)["p"].elaborate([array(5, Index(3)), array(5, f32), array(4, f32)])
    kernels = translate(lower(program.term, MODEL).term, program.parameters, device=MODEL)
    named = {
        "ids": np.array([0, 2, 0, 2, 2], np.int32),
        "xs": np.arange(5, dtype=np.float32),
        "ys": np.arange(4, dtype=np.float32),
    }
    (evaluated,) = run(kernels, named)
    np.testing.assert_array_equal(evaluated, evaluate(program.term, named))


def test_a_barrier_for_local_memory_does_not_order_what_is_on_the_heap() -> None:
    """One group writes an array, adds something else up by way of local memory, and then reads the array."""
    text = """p ids xs ys = (max (reduce max 2 ys) (reduce (+) 0 (scatter ids xs)),
      if (let x = (reduce (+) 2 (take 0 xs), generate 1 (λ j . xs[2])) in min x.0 x.0) >= 3
      then 0 else (reduce max 0 ys))"""
    program = read_text(text)["p"].elaborate([array(16, Index(16)), array(16, f32), array(33, f32)])
    kernels = translate(lower(program.term, MODEL).term, program.parameters, device=MODEL)
    named = {
        "ids": np.arange(16, dtype=np.int32)[::-1].copy(),
        "xs": np.arange(16, dtype=np.float32),
        "ys": np.arange(33, dtype=np.float32),
    }
    assert [float(leaf) for leaf in run(kernels, named)] == [120, 32]
