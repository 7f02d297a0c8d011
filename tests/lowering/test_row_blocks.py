"""Blocks of rows: right for every border, size and dimension, and only where neighbouring rows read the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.module import read_file, read_text
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.machine import host
from lithify.operators import path
from lithify.targets.cpu import CpuTarget

_PROLOGUE = """
windows = λ s img . map (λ rows . map transpose (slide s 1 (transpose rows))) (slide s 1 img)
total = map (map (λ w . reduce (+) 0 (join w)))
column = map (λ rows . map (λ w . w[0] + 2 * w[1] + w[2]) (transpose rows))
"""

# A program over an image (and what it shares between rows), for each way to continue an image beyond its border.
_BORDERS = {
    "clamp": "total (windows 3 (pad 1 1 clamp (map (pad 1 1 clamp) img)))",
    "mirror": "total (windows 3 (pad 1 1 mirror (map (pad 1 1 mirror) img)))",
    "wrap": "total (windows 3 (pad 1 1 wrap (map (pad 1 1 wrap) img)))",
    "zero": "total (windows 3 (transpose (map (pad 1 1 0) (transpose (map (pad 1 1 0) img)))))",
    "none": "total (windows 4 img)",
    "one side": "total (windows 3 (pad 2 0 clamp (map (pad 0 2 clamp) img)))",
    "columns": "column (slide 3 1 (pad 1 1 clamp img))",
    "stage": "total (windows 3 (total (windows 3 img)))",
}  # fmt: skip


def lowered(text: str, *shape: int, check: bool = False) -> Any:
    program = read_text(f"{_PROLOGUE}\nf = λ img . {text}", "<test>")["f"].elaborate([array(*shape, f32)])
    found = lower(program.term, host(), check=check)
    return program, found


def names_of(found: Any) -> set[str]:
    return {name.partition("(")[0] for name in found.derivation.names()}


@pytest.mark.parametrize("shape", [(20, 40), (23, 48), (41, 37)])
@pytest.mark.parametrize("border", _BORDERS)
def test_values_at_every_border_and_size(border: str, shape: tuple[int, int]) -> None:
    program, found = lowered(_BORDERS[border], *shape)
    assert "map-map-interchange-rows" in names_of(found) or "map-map-interchange-right" in names_of(found)
    image = np.random.default_rng(shape[0]).integers(-9, 9, shape).astype(np.float32)
    kernels = translate(found.term, program.parameters, device=host())
    expected = evaluate(program.term, {"img": image})
    (result,) = run(kernels, {"img": image})
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(CpuTarget(threads=2).compile(kernels)(image), expected)


@pytest.mark.parametrize("border", ["clamp", "zero", "columns", "stage"])
def test_every_step_keeps_the_values(border: str) -> None:
    lowered(_BORDERS[border], 17, 34, check=True)


@pytest.mark.parametrize("name", ["jacobi2D5", "jacobi2D9", "gradient2D", "jacobi3D7", "poisson3D19"])
def test_the_stencils_that_are_shipped(name: str) -> None:
    shape = (6, 19, 37) if "3D" in name else (27, 53)
    program = read_file(path("stencil"))[name].elaborate([array(*shape, f32)])
    found = lower(program.term, host())
    grid = np.random.default_rng(1).random(shape, dtype=np.float32)
    kernels = translate(found.term, program.parameters, device=host())
    expected = evaluate(program.term, {"grid" if "2D" in name else "volume": grid})
    np.testing.assert_allclose(CpuTarget(threads=2).compile(kernels)(grid), expected, rtol=1e-5, atol=1e-6)


def test_the_rows_of_a_block_share_their_loads() -> None:
    """Straight code for several rows: as many lines as a block has, all in one loop over vectors."""
    _, found = lowered(_BORDERS["clamp"], 258, 256)
    text = str(found.term)
    assert ".line" in text
    assert "reduce-window-rows" in names_of(found)


def test_rows_that_share_nothing_are_left_alone() -> None:
    _, found = lowered("map (map (λ x . x * 2)) img", 64, 64)
    assert ".strip" not in str(found.term)
    _, found = lowered("map (λ row . map (λ w . w[0] + w[1] + w[2]) (slide 3 1 row)) img", 64, 66)
    assert ".strip" not in str(found.term)


def test_code_that_would_be_too_long_is_not_repeated() -> None:
    long = " + ".join(f"sin (w[{k % 3}][{k % 2}] * {k})" for k in range(80))
    _, found = lowered(f"map (map (λ w . {long})) (windows 3 img)", 64, 66)
    assert ".strip" not in str(found.term)
