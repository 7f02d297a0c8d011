"""What kernels do, counted from their text, against what the kernel evaluator counts when it runs them."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.kernel.census import census
from lithify.kernel.evaluator import Counts, run
from lithify.kernel.translate import translate
from lithify.lang.build import add, const, map_, mul, param, reduce_, transpose
from lithify.lang.levels import PAR, SEQ, VEC, Level
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.machine import GENERIC_GPU, DeviceModel, host

X = param("x", array(8, 16, f32))


def kernels(term: Term, device: DeviceModel) -> ir.Program:
    return translate(term, [("x", X.type)], device=device)


def doubled(inner: Level) -> Term:
    return map_(lambda row: map_(lambda e: mul(e, const(2.0, f32)), row, inner), X, PAR)


def test_vectors_and_scalars_are_told_apart() -> None:
    vectors = census(kernels(doubled(VEC), host()))
    assert vectors.counts["vector loads"] == vectors.counts["vector stores"] == vectors.counts["vector operations"] == 8
    assert vectors.bytes["heap read"] == vectors.bytes["heap written"] == 8 * 16 * 4
    assert vectors.parallel == 8
    scalars = census(kernels(doubled(SEQ), host()))
    assert scalars.counts["scalar loads"] == scalars.counts["scalar operations"] == 8 * 16
    assert scalars.counts["vector loads"] == 0
    assert scalars.bytes == vectors.bytes


def test_gathers_and_splats() -> None:
    columns = map_(lambda row: map_(lambda e: add(e, e), row, VEC), transpose(X), PAR)
    found = census(kernels(columns, host()))
    assert found.counts["gathers"] == 2 * 16
    assert found.counts["vector stores"] == 16
    same = map_(lambda row: map_(lambda e: add(e, X_00), row, VEC), X, PAR)
    assert census(translate(same, [("x", X.type), ("y", f32)], device=host())).counts["vector loads"] == 8


X_00 = param("y", f32)


@pytest.mark.parametrize("device", [host(), GENERIC_GPU], ids=str)
def test_bytes_agree_with_the_evaluator(device: DeviceModel) -> None:
    """Where no condition fails (a whole group of items has work), what is counted is what is moved."""
    rows = param("x", array(64, 16, f32))
    sums = map_(lambda row: reduce_(add, const(0, f32), row), rows)
    program = translate(lower(sums, device).term, [("x", rows.type)], device=device)
    counts = Counts()
    run(program, {"x": np.ones((64, 16), np.float32)}, counts=counts)
    found = census(program)
    assert found.bytes["heap written"] == counts.bytes_written["out"] + counts.bytes_written["heap"]
    assert found.bytes["heap read"] == counts.bytes_read["heap"]
