"""Sums that take turns: which ones may, and that the results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.lang.levels import OUT, PRIVATE
from lithify.lang.scalars import f32
from lithify.program.module import parse
from lithify.targets.cpu import CpuTarget
from lithify.targets.cpu.chains import chains
from tests.targets.handmade import buffer, index, lanes, op, random

LINES, WIDTH = 3, 16
X, Y = buffer("x", LINES + 3, WIDTH), buffer("y", LINES, WIDTH, role="output", memory=OUT)


def own(k: int) -> ir.Buffer:
    return buffer(f"t{k}", WIDTH, role="scratch", memory=PRIVATE)


def line(k: int, t: ir.Buffer, *, result: ir.Buffer = Y, source: ir.Buffer = X, steps: int = 3) -> ir.Lanes:
    """t := 0; t := t + source[k + j] for some j; result[k] := t"""
    lane = index(f"l{k}", WIDTH)
    body = [ir.Store(t, (lane,), ir.Constant(0.0, f32))]
    for j in range(steps):
        body.append(ir.Store(t, (lane,), op("add", ir.Load(t, (lane,)), ir.Load(source, (lane * 0 + k + j, lane)))))
    where = (lane,) if len(result.shape) == 1 else (lane * 0 + k, lane)
    return lanes(lane, WIDTH, *body, ir.Store(result, where, ir.Load(t, (lane,))))


def test_lines_of_a_block_take_turns() -> None:
    block = tuple(line(k, own(k)) for k in range(LINES))
    assert {at: len(run) for at, run in chains(block).items()} == {0: LINES}


def test_what_depends_on_another_waits_for_it() -> None:
    shared, kept = own(7), own(8)
    assert not chains((line(0, shared), line(1, shared)))  # one memory for both
    assert not chains((line(0, own(0)), line(1, own(1), source=Y)))  # the second reads what the first writes
    assert not chains((line(0, own(0), result=kept), line(1, kept)))
    assert not chains((line(0, own(0)), line(1, own(1), steps=5)))  # of different lengths
    first, second, third, fourth = line(0, own(0)), line(1, own(1)), line(2, own(2), steps=4), line(0, own(3), steps=4)
    assert {at: len(run) for at, run in chains((first, second, third, fourth)).items()} == {0: 2, 2: 2}


@pytest.mark.parametrize("shape", [(40, 100), (67, 33), (100, 130)])
def test_results_are_the_same(shape: tuple[int, int]) -> None:
    weights, image = random(17), random(shape[0] * shape[1]).reshape(shape)
    text = """f w img = map (λ rows . map (λ c . reduce (+) 0 (map (*) (zip w c))) (transpose rows)) (slide 17 1 img)"""
    program = parse(text)["f"].kernels(weights, image)
    rows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), 17, axis=0)
    np.testing.assert_allclose(CpuTarget(threads=2).compile(program)(weights, image), rows @ weights, atol=1e-4)
