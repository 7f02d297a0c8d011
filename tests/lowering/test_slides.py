"""The lowered programs of the Lift slides: what they leave out is filled in, and they run as printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.errors import Rejected
from lithify.lang.module import read_file
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.machine import GENERIC_CPU, GENERIC_GPU, DeviceModel, host

SLIDES = Path(__file__).parents[2] / "examples" / "slides"
TILES = {"n": 4, "m": 8, "k": 4, "l": 2}


def _run(file: str, name: str, arrays: list[np.ndarray], sizes: dict[str, int], device: DeviceModel) -> np.ndarray:
    definition = read_file(SLIDES / f"{file}.lift")[name]
    program = definition.elaborate([array(*a.shape, f32) for a in arrays], sizes)
    lowered = lower(program.term, device, check=True)
    kernels = translate(lowered.term, program.parameters, device=device)
    names = [buffer.name for buffer in kernels.parameters]
    (result,) = run(kernels, dict(zip(names, arrays, strict=True)))
    return result


@pytest.mark.parametrize("device", [GENERIC_GPU], ids=str)
@pytest.mark.parametrize("block", [512, 1024])
def test_the_walkthrough_sums(device: DeviceModel, block: int) -> None:
    data = np.random.default_rng(block).integers(-8, 8, 4 * block).astype(np.float32)
    assert _run("walkthrough", "vecSum", [data], {"blockSize": block}, device) == data.sum()


def test_the_walkthrough_needs_groups() -> None:
    with pytest.raises(Rejected, match="group"):
        _run("walkthrough", "vecSum", [np.ones(2048, np.float32)], {"blockSize": 1024}, host())


@pytest.mark.parametrize("name", ["matMult", "tiled", "registerBlocked"])
@pytest.mark.parametrize("device", [host(), GENERIC_CPU], ids=str)
def test_products(name: str, device: DeviceModel) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 4, shape).astype(np.float32) for shape in ((16, 8), (8, 24)))
    np.testing.assert_array_equal(_run("matrix_multiplication", name, [a, b], TILES, device), a @ b)
