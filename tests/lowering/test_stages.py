"""Stencils over computed arrays become tiles: right at every size, one kernel, and only where it pays."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.module import read_file, read_text
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.lowering import cpu, lower
from lithify.machine import host
from lithify.operators import path

KAPPA = np.float32(0.04)
# A stage that costs more to compute again in every window than to store.
TWICE = f"{path('image').read_text(encoding='utf-8')}\ntwice = λ img . gaussian (gaussian img)\n"


@pytest.mark.parametrize(("rows", "columns"), [(160, 40), (201, 37)])
def test_tiles_are_right(rows: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "PARALLEL_WORK", 100)
    program = read_text(TWICE)["twice"].elaborate([array(rows, columns, f32)])
    lowered = lower(program.term, host())
    assert "slide-split" in lowered.derivation.names()
    kernels = translate(lowered.term, program.parameters, device=host())
    image = np.random.default_rng(rows).integers(-3, 3, (rows, columns)).astype(np.float32)
    inputs = {"img": image}
    (result,) = run(kernels, inputs)
    expected = evaluate(program.term, inputs)
    np.testing.assert_allclose(result, expected, atol=1e-5 * np.abs(expected).max())


def test_the_inner_stage_stays_in_memory_of_the_thread() -> None:
    program = read_text(TWICE)["twice"].elaborate([array(1536, 2560, f32)])
    lowered = lower(program.term, host())
    assert "slide-split" in lowered.derivation.names()
    kernels = translate(lowered.term, program.parameters, device=host())
    assert len(kernels.kernels) == 1
    assert not kernels.temporaries
    assert {b.memory.name for b in kernels.kernels[0].scratch} == {"thread"}


@pytest.mark.parametrize(("rows", "columns"), [(64, 40), (33, 70)])
def test_what_costs_little_is_computed_again_in_each_window(rows: int, columns: int) -> None:
    program = read_file(path("image"))["harris"].elaborate([array(rows, columns, f32), f32])
    lowered = lower(program.term, host())
    assert "map[inline]" in str(lowered.term)
    kernels = translate(lowered.term, program.parameters, device=host())
    assert {b.memory.name for kernel in kernels.kernels for b in kernel.scratch} == {"private"}
    image = np.random.default_rng(rows).integers(-3, 3, (rows, columns)).astype(np.float32)
    inputs = {"img": image, "kappa": KAPPA}
    (result,) = run(kernels, inputs)
    expected = evaluate(program.term, inputs)
    np.testing.assert_allclose(result, expected, atol=1e-5 * np.abs(expected).max())


def test_tall_windows_do_not_pay() -> None:
    """17 rows of which each needs 16 others would be computed again for a third of every tile."""
    program = read_file(path("image"))["separable"].elaborate([array(17, f32), array(1536, 2560, f32)])
    names = lower(program.term, host()).derivation.names()
    assert "slide-split" not in names
    assert "to-memory(heap)" in names
