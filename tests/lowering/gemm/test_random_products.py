"""Random products, by default and by random parameters, on every target: exact results, and nothing is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.lang.errors import LithifyError
from lithify.lowering.tuning import Parameters, Space
from lithify.machine import GENERIC_GPU
from lithify.program.devices import Device, device
from lithify.program.tune import candidates_of
from lithify.targets.opencl import OpenCLTarget
from tests.lowering.gemm.random_products import random_product

_SIZES = ("mPerBlock", "nPerBlock", "kPerBlock", "mPerThread", "nPerThread")
_LARGEST_TILE = 128  # elements: what is written out for it takes long to compile


def where(name: str) -> Device:
    """A device; "gpu" is the kernels for one, run by whatever OpenCL there is."""
    if name == "gpu":
        return Device("opencl (as a GPU)", OpenCLTarget(), GENERIC_GPU)
    return device(name)


def drawn(space: Space, r: random.Random) -> Parameters:
    """Valid parameters, some of them of values that are not listed."""
    for _ in range(300):
        values = {name: r.choice(listed) for name, listed in space.choices.items()}
        if "outer" in values and r.random() < 0.5:
            values |= {name: r.randint(1, 40) for name in _SIZES if r.random() < 0.3}
            values |= {f"{d}PerBlock": int(values[f"{d}PerThread"]) * r.randint(1, 4) for d in "mn"}
        found = Parameters(values)
        if space.against(found) is None and found.number("mPerThread") * found.number("nPerThread") <= _LARGEST_TILE:
            return found
    return space.default


def run(program: lf.Program, arguments: list[Any], expected: Any) -> Any:
    """The result, in an array that held no numbers before; so did all memory of the call."""
    program.specialise(*arguments).compiled.executable.poisoned = True
    out = np.empty_like(expected, order="C")
    out.view(np.uint8)[...] = 0xFF
    return program(*arguments, out=out)


def check(seed: int, on: Device) -> None:
    case, r = random_product(seed), random.Random(seed)
    program, parameters = lf.parse(case.text)["main"].on(on), None
    if r.random() < 0.7:
        try:
            parameters = str(drawn(candidates_of(program.specialise(*case.arguments)).space, r))
        except LithifyError:  # nothing to tune
            parameters = None
    what = f"seed {seed}, {on.name}, {parameters}: {case.text} on {[f'{x.dtype}{x.shape}' for x in case.arguments]}"
    try:
        got = run(program.tuned_by(parameters), case.arguments, case.expected)
    except LithifyError as error:
        pytest.fail(f"{what}\n{error}")
    np.testing.assert_array_equal(got, case.expected, err_msg=what)


DEVICES = ("cpu", "opencl", "gpu")


@pytest.mark.parametrize("name", DEVICES)
def test_random_products(name: str, request: pytest.FixtureRequest) -> None:
    if name != "cpu":
        request.getfixturevalue("opencl_device")
    for seed in range(8 if name == "cpu" else 4):
        check(seed, where(name))


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(20))
@pytest.mark.parametrize("name", [*DEVICES, "c"])
def test_many_random_products(name: str, chunk: int, request: pytest.FixtureRequest) -> None:
    if name not in ("cpu", "c"):
        request.getfixturevalue("opencl_device")
    for seed in range(1_000 + 15 * chunk, 1_015 + 15 * chunk):
        check(seed, where(name))
