"""Programs of the library, lowered and translated: the same results from every target, nothing found by oclgrind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lithify
from lithify.machine import GENERIC_GPU
from lithify.program import Device, load
from lithify.program.devices import device
from lithify.targets.c import CTarget, find_compiler
from lithify.targets.opencl import OpenCLTarget
from lithify.targets.opencl.oclgrind import check

OPERATORS = Path(lithify.__file__).parent / "operators"


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "blas.axpy": (np.float32(2), random(50), random(50)),
    "blas.dot": (random(777), random(777)),
    "blas.gemv": (random(9, 21), random(21), random(9), np.float32(2), np.float32(0.5)),
    "blas.gemm": (random(17, 20), random(20, 9), random(17, 9), np.float32(2), np.float32(0.5)),
    "rows.softmax": (random(3, 37),),
    "image.binomial": (random(9, 22),),
    "layout.transpose2D": (random(9, 21),),
}


def program(name: str) -> Any:
    file, _, function = name.partition(".")
    return load(OPERATORS / f"{file}.lift")[function]


def gpu() -> Device:
    """What is generated for a usual GPU, run on whatever OpenCL device there is."""
    return Device("opencl", OpenCLTarget(), GENERIC_GPU)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_opencl(opencl_device: Any, name: str) -> None:
    arguments = ARGUMENTS[name]
    wanted = program(name).on("cpu")(*arguments)
    for where in (device("opencl"), gpu()):
        np.testing.assert_allclose(program(name).on(where)(*arguments), wanted, 1e-5, 1e-5)


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_c(name: str) -> None:
    arguments = ARGUMENTS[name]
    kernels = program(name).on("cpu").kernels(*arguments)
    got = CTarget().compile(kernels)(*arguments)
    np.testing.assert_allclose(got, program(name).on("cpu")(*arguments), 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["blas.dot", "blas.gemv", "image.binomial"])
def test_under_oclgrind(oclgrind: str, name: str) -> None:
    report = check(program(name).on(gpu()).kernels(*ARGUMENTS[name]), ARGUMENTS[name])
    assert not report.findings, "\n\n".join(map(str, report.findings))
