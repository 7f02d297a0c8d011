"""Vectors on GPUs made of parts of aligned ones: which lanes lie together, and nothing is read beyond arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lithify.arith import const, var
from lithify.kernel.evaluator import run
from lithify.kernel.ir import Program
from lithify.kernel.translate import translate
from lithify.lang.module import read_file
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.lowering import gpu_windows, lower
from lithify.machine import H200_OPENCL
from lithify.operators import path
from lithify.targets.base import interface_of
from lithify.targets.cdialect.blocks import Part, parts_of
from lithify.targets.opencl.devices import DEVICE_ALIGNMENT
from lithify.targets.opencl.oclgrind import check_source
from lithify.targets.opencl.source import program_source

ROW = var("i", const(10))


def test_neighbours_in_one_aligned_vector_are_one_part() -> None:
    assert parts_of([4 * ROW + k for k in range(4)], 4) == [Part(4 * ROW, 0, 4)]
    assert parts_of([4 * ROW + k for k in range(2, 6)], 4) == [Part(4 * ROW, 2, 2), Part(4 * ROW + 4, 0, 2)]
    assert parts_of([4 * ROW - 1 + k for k in range(4)], 4) == [Part(4 * ROW - 4, 3, 1), Part(4 * ROW, 0, 3)]


def test_what_may_lie_anywhere_is_alone() -> None:
    assert parts_of([2 * ROW, 2 * ROW + 1], 4) == [Part(2 * ROW, None, 1), Part(2 * ROW + 1, None, 1)]
    assert parts_of([ROW, 4 * ROW + 1, 4 * ROW + 2, 4 * ROW], 4) == [
        Part(ROW, None, 1),
        Part(4 * ROW, 1, 2),
        Part(4 * ROW, 0, 1),
    ]


def _gaussian(monkeypatch: pytest.MonkeyPatch, *shape: int) -> Program:
    monkeypatch.setattr(gpu_windows, "ITEMS_TO_BE_BUSY", 1)
    program = read_file(path("image"))["gaussian"].elaborate([array(*shape, f32)])
    return translate(lower(program.term, H200_OPENCL).term, program.parameters, device=H200_OPENCL)


@pytest.mark.parametrize("shape", [(19, 16), (16, 24)], ids=str)
def test_only_elements_are_read(oclgrind: str, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int]) -> None:
    kernels = _gaussian(monkeypatch, *shape)
    source = program_source(kernels, 64, DEVICE_ALIGNMENT)
    assert "(*(__global const float4 *)(" in source.text
    image: Any = np.random.default_rng(1).random(shape, dtype=np.float32)
    report = check_source(source, interface_of(kernels), [image])
    assert not report.findings, "\n\n".join(map(str, report.findings))
    (expected,) = run(kernels, {"img": image})
    np.testing.assert_allclose(report.results, expected, rtol=1e-5)


def test_rows_that_are_no_whole_vectors_have_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "float4" not in program_source(_gaussian(monkeypatch, 16, 21), 64, DEVICE_ALIGNMENT).text
