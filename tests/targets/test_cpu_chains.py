"""Sums that take turns: which ones may, and that the results are the same."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.kernel.walk import statements
from lithify.lang.levels import OUT, PRIVATE
from lithify.lang.scalars import f32
from lithify.program import library
from lithify.program.module import parse
from lithify.targets.cpu import CpuTarget
from lithify.targets.cpu.chains import in_turn
from tests.targets.handmade import buffer, index, op, random

LINES, WIDTH = 3, 16
X, Y = buffer("x", LINES + 3, WIDTH), buffer("y", LINES, WIDTH, role="output", memory=OUT)
LANE = index("l", WIDTH)


def own(k: int) -> ir.Buffer:
    return buffer(f"t{k}", WIDTH, role="scratch", memory=PRIVATE)


def line(k: int, t: ir.Buffer, *, result: ir.Buffer = Y, source: ir.Buffer = X, steps: int = 3) -> tuple[ir.Store, ...]:
    """t := 0; t := t + source[k + j] for some j; result[k] := t"""
    body = [ir.Store(t, (LANE,), ir.Constant(0.0, f32))]
    for j in range(steps):
        at = (LANE,) if len(source.shape) == 1 else (LANE * 0 + k + j, LANE)
        body.append(ir.Store(t, (LANE,), op("add", ir.Load(t, (LANE,)), ir.Load(source, at))))
    where = (LANE,) if len(result.shape) == 1 else (LANE * 0 + k, LANE)
    return (*body, ir.Store(result, where, ir.Load(t, (LANE,))))


def turns(*lines: tuple[ir.Store, ...]) -> ir.Block:
    """A step of each line, then the next of each."""
    return tuple(step for steps in zip(*lines, strict=True) for step in steps)


def test_lines_of_a_block_take_turns() -> None:
    lines = [line(k, own(k)) for k in range(LINES)]
    assert in_turn((*lines[0], *lines[1], *lines[2])) == turns(*lines)


def test_what_lies_between_lines_stays_there() -> None:
    """Runs of lines begin anew after what is no chain, and where they are of another length."""
    (a, b), (c, d) = ([line(k, own(k + s), steps=s) for k in (0, 1)] for s in (3, 5))
    fill = ir.Store(own(20), (LANE,), ir.Constant(1.0, f32))
    assert in_turn((*a, *b, *c, *d)) == (*turns(a, b), *turns(c, d))
    assert in_turn((*a, *b, fill, *b, *a)) == (*turns(a, b), fill, *turns(b, a))
    assert in_turn((*a, fill, *b)) == (*a, fill, *b)
    assert in_turn((*a[:-1], *b)) == (*a[:-1], *b)  # a sum that nothing is made of yet


T, KEPT, OTHER = own(7), own(8), own(9)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((line(0, T), line(1, T)), id="one memory for both"),
        pytest.param((line(0, OTHER), line(1, T, source=Y)), id="the second reads what the first makes"),
        pytest.param(
            (line(0, OTHER, source=KEPT), line(1, T, result=KEPT)), id="the first reads what the second makes"
        ),
        pytest.param((line(0, OTHER, source=T), line(1, T)), id="the first reads the memory of the second"),
        pytest.param((line(0, T, result=KEPT), line(1, KEPT)), id="the first makes what the second begins anew"),
        pytest.param((line(0, T), line(1, OTHER, steps=5)), id="of different lengths"),
        pytest.param((line(0, T, steps=1), line(1, OTHER, steps=1)), id="too short"),
        pytest.param((line(0, buffer("a", WIDTH)), line(1, buffer("b", WIDTH))), id="in memory that is not private"),
    ],
)
def test_what_may_not_take_turns_keeps_its_order(lines: tuple[tuple[ir.Store, ...], ...]) -> None:
    block = (*lines[0], *lines[1])
    assert in_turn(block) == block


def test_lines_of_the_separable_convolution_take_turns() -> None:
    """As it is lowered for CPUs: in the lines of the rows' pass and in those of the columns'."""
    weights, image = np.zeros(17, np.float32), np.zeros((64, 512), np.float32)
    program = library("image")["separable"].on("cpu").kernels(weights, image)
    bodies = [s.body for kernel in program.kernels for s in statements(kernel.body) if isinstance(s, ir.Lanes)]
    moved = {body[-1].buffer.name: in_turn(body) != body for body in bodies if isinstance(body[-1], ir.Store)}
    assert moved == {"heap": True, "out": True}


@pytest.mark.parametrize("shape", [(40, 100), (67, 33), (100, 130)])
def test_results_are_the_same(shape: tuple[int, int]) -> None:
    weights, image = random(17), random(shape[0] * shape[1]).reshape(shape)
    text = """f w img = map (λ rows . map (λ c . reduce (+) 0 (map (*) (zip w c))) (transpose rows)) (slide 17 1 img)"""
    program = parse(text)["f"].kernels(weights, image)
    rows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), 17, axis=0)
    np.testing.assert_allclose(CpuTarget(threads=2).compile(program)(weights, image), rows @ weights, atol=1e-4)
