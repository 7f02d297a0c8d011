"""The target `c`: compiled with the system's compiler, warnings as errors, against NumPy."""

from __future__ import annotations

import pytest

from lithify.lang.scalars import Scalar
from lithify.targets.c import CTarget, find_compiler
from tests.targets.operator_programs import ALL_SCALARS, all_operators, cases, compare

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
PLAIN = CTarget(("-O1",), openmp=False)


@pytest.mark.parametrize("scalar", ALL_SCALARS, ids=str)
@pytest.mark.parametrize("width", [1, 8])
def test_every_operator(scalar: Scalar, width: int) -> None:
    program, arguments, expected = all_operators(scalar, width)
    results = PLAIN.compile(program)(*arguments)
    for (operator, _, result), got, wanted in zip(cases(scalar), results, expected, strict=True):
        compare(got, wanted, operator, scalar, result)
