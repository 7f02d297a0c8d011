"""The target `opencl` on the OpenCL devices of this machine, against NumPy."""

from __future__ import annotations

from typing import Any

import pytest

from lithify.lang.scalars import Scalar
from lithify.targets.opencl import OpenCLTarget, select
from tests.targets.group_programs import CASES, close
from tests.targets.operator_programs import ALL_SCALARS, all_operators, cases, compare


@pytest.fixture(scope="session")
def target(opencl_device: Any) -> OpenCLTarget:
    return OpenCLTarget(opencl_device.platform.name)


@pytest.mark.parametrize("scalar", ALL_SCALARS, ids=str)
@pytest.mark.parametrize("width", [1, 8])
def test_every_operator(target: OpenCLTarget, scalar: Scalar, width: int) -> None:
    program, arguments, expected = all_operators(scalar, width)
    results = target.compile(program)(*arguments)
    for (operator, _, result), got, wanted in zip(cases(scalar), results, expected, strict=True):
        compare(got, wanted, operator, scalar, result)


def test_a_device_that_is_not_there(opencl_device: Any) -> None:
    with pytest.raises(Exception, match="there is no OpenCL device opencl:99"):
        select("opencl:99")


@pytest.mark.parametrize("name", CASES)
def test_groups(target: OpenCLTarget, name: str) -> None:
    case = CASES[name]()
    executable = target.compile(case.program)
    got = executable(*case.arguments)
    for one, wanted in zip(got if isinstance(got, tuple) else (got,), case.expected, strict=True):
        close(one, wanted)
        assert one.shape == wanted.shape
