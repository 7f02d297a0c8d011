"""Arrays of a kernel whose length only a call knows: memory of the call holds them, a part for each group or item."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.passes.lengths import arrays_of_the_call
from lithify.machine import GENERIC_GPU
from lithify.program.devices import Device
from lithify.targets.opencl import OpenCLTarget

GPU = Device("a usual GPU", OpenCLTarget(), GENERIC_GPU)

PROGRAMS = lf.parse("""
shares (xs : n.m.f32) = map (λ row . let c = scan (+) 0 row in map (λ x . x / sum c) c) xs
softmax (xs : n.m.f32) = map (λ row .
  let e = map (λ x . exp (x - reduce max (-inf) row)) row in map (λ x . x / sum e) e) xs
back (xs : n.m.f32) = map (λ row . let c = scan (+) 0 row in scan max 0 (reverse c)) xs
""")


def _reference(name: str, xs: np.ndarray) -> np.ndarray:
    x = xs.astype(np.float64)
    if name == "softmax":
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)
    c = np.cumsum(x, axis=1)
    return c / c.sum(axis=1, keepdims=True) if name == "shares" else np.maximum.accumulate(c[:, ::-1], axis=1)


def _rows(n: int, m: int) -> np.ndarray:
    return np.random.default_rng(n * m).random((n, m), dtype=np.float32)


@pytest.mark.parametrize("device", ["cpu", "c", "opencl"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_of_any_length_between_two_steps(name: str, device: str, request: pytest.FixtureRequest) -> None:
    if device == "opencl":
        request.getfixturevalue("opencl_device")
    program = PROGRAMS[name].on(device).for_any_size()
    for n, m in ((5, 7), (3, 257), (1, 1), (7, 2050), (2, 40_001)):
        xs = _rows(n, m)
        out = np.full((n, m), np.nan, np.float32)
        program(xs, out=out)
        np.testing.assert_allclose(out, _reference(name, xs), rtol=2e-4)


@pytest.mark.parametrize(("name", "memory"), [("shares", "local"), ("softmax", "local"), ("back", "private")])
def test_parts_are_not_shared(name: str, memory: str) -> None:
    """The kernel evaluator reports races, barriers that are missing, and what is read before it is written."""
    program = PROGRAMS[name].on(GPU).for_any_size().kernels("3.300.f32")
    assert [b.memory.name for b in _unknown(program)] == [memory]
    moved = arrays_of_the_call(program)
    assert not _unknown(moved)
    assert len(moved.temporaries) == 1
    xs = _rows(3, 300)
    (result,) = run(moved, {"xs": xs})
    np.testing.assert_allclose(result, _reference(name, xs), rtol=2e-4)


def _unknown(program: ir.Program) -> list[ir.Buffer]:
    return [b for k in program.kernels for b in k.scratch if any(size.constant is None for size in b.shape)]


def test_known_lengths_stay_where_they_are() -> None:
    program = PROGRAMS["shares"].on(GPU).kernels("3.300.f32")
    assert arrays_of_the_call(program) is program


def test_a_thread_of_c_has_its_rows_in_memory_of_its_own() -> None:
    text = PROGRAMS["shares"].on("c").for_any_size().source("3.300.f32")
    assert "workspace + (size_t)thread_number()" in text
    assert "(size_t)thread_count() * (size_t)workspace_bytes" in text
