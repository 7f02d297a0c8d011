"""Every program through OpenCL, as the lowerings for CPUs and for GPUs make it, against NumPy and SciPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.machine import GENERIC_CPU, GENERIC_GPU, DeviceModel
from lithify.program.devices import Device
from lithify.targets.opencl import OpenCLTarget
from tests.operators.inputs import Maker, agree, arguments
from tests.operators.references import REFERENCES, reference
from tests.operators.test_values import PROGRAMS, terms

Shape = tuple[int, ...]

# One odd shape that needs several groups, with rests; compiling is what takes the time.
SHAPES: dict[str, Shape] = {
    **dict.fromkeys(REFERENCES["blas"], (40, 301)),
    **dict.fromkeys(("scal", "axpy", "asum", "sum", "dot", "nrm2", "amax"), (40_003,)),
    **dict.fromkeys(("gemm", "gemmNT", "gemmTN", "gemmTT"), (33, 17, 40)),
    "transpose2D": (65, 130),
    **dict.fromkeys(("swapMiddle", "channelsLast", "reverseDims"), (3, 16, 5, 17)),
    **dict.fromkeys(("inclusiveScan", "exclusiveScan"), (1003,)),
    "softmaxRow": (1003,),
    **dict.fromkeys(("softmax", "layernorm", "rmsnorm", "variance"), (9, 515)),
    **dict.fromkeys(REFERENCES["image"], (37, 70)),
    **dict.fromkeys(REFERENCES["stencil"], (37, 70)),
    **dict.fromkeys(("jacobi3D7", "poisson3D19"), (5, 17, 20)),
    **dict.fromkeys(("nn", "phiMag"), (40_003,)),
    "mriQ": (100, 33),
}


@pytest.fixture(params=[GENERIC_CPU, GENERIC_GPU], ids=["cpu", "gpu"])
def device(request: pytest.FixtureRequest, opencl_device: Any) -> Device:
    """The OpenCL device, lowered for as a CPU and as a GPU."""
    model: DeviceModel = request.param
    return Device(f"opencl ({model.kind})", OpenCLTarget(opencl_device.platform.name), model)


@pytest.mark.parametrize(("text", "name"), PROGRAMS, ids=lambda value: value)
def test_values(text: str, name: str, device: Device) -> None:
    program = lf.library(text)[name].on(device)
    smallest = tuple(1 for _ in SHAPES[name])
    for shape in (SHAPES[name], smallest) if device.model.kind == "gpu" else (SHAPES[name],):
        given = arguments(name, shape, Maker(np.float32, seed=sum(shape)))
        agree(program(*given), reference(text, name, given), np.float32, terms(name, shape))
