"""One meaning for every scalar operator: all executors agree on hostile values of every type.

The kernel evaluator and the targets are compared with the reference evaluator's arithmetic, and that with Python's own
integers and with what is said of floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lithify.evaluate.numerics import EXACT, STORED, Numerics
from lithify.kernel.evaluator import run
from lithify.lang.operators import OPERATORS, Typing
from lithify.lang.scalars import SCALARS, Kind, Scalar, bool_
from lithify.targets.c import CTarget, find_compiler
from lithify.targets.cpu import CpuTarget
from lithify.targets.opencl import OpenCLTarget
from lithify.targets.opencl.dialect import OPENCL
from tests.targets.operator_programs import ALL_SCALARS, all_operators, cases, compare, expected, operands

VECTORS = [s for s in ALL_SCALARS if OPENCL.vectors is not None and s in OPENCL.vectors.scalars]
TRAPPING = ("-ffp-contract=off", "-fsanitize=undefined,float-cast-overflow", "-fsanitize-undefined-trap-on-error")


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("scalar", ALL_SCALARS, ids=str)
def test_cpu(scalar: Scalar, width: int) -> None:
    program, arguments = all_operators(scalar, width)
    compare(scalar, CpuTarget(threads=1).compile(program)(*arguments))


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("scalar", ALL_SCALARS, ids=str)
def test_c(scalar: Scalar, width: int) -> None:
    """What is undefined in C ends the process."""
    program, arguments = all_operators(scalar, width)
    compare(scalar, CTarget(("-O1", *TRAPPING), openmp=False).compile(program)(*arguments))


@pytest.mark.parametrize(("scalar", "width"), [*((s, 1) for s in ALL_SCALARS), *((s, 8) for s in VECTORS)], ids=str)
def test_opencl(opencl_device: Any, scalar: Scalar, width: int) -> None:
    program, arguments = all_operators(scalar, width)
    compare(scalar, OpenCLTarget(opencl_device.platform.name).compile(program)(*arguments))


@pytest.mark.parametrize("numerics", [EXACT, STORED], ids=["exact", "stored"])
@pytest.mark.parametrize("scalar", ALL_SCALARS, ids=str)
def test_kernel_evaluator(scalar: Scalar, numerics: Numerics) -> None:
    program, arguments = all_operators(scalar, 16)
    names = [b.name for b in program.parameters]
    results = run(program, dict(zip(names, arguments, strict=True)), exact=numerics.exact)
    for (operator, _, result), got, wanted in zip(cases(scalar), results, expected(scalar, numerics), strict=True):
        assert got.dtype == wanted.dtype
        if result.is_float:  # NumPy does not know the NaN of ml_dtypes
            got, wanted = got.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_array_equal(got, wanted, err_msg=f"{operator.name} on {scalar}")


# ---- the reference against Python's integers and the rules for floating point ---------------------------------------


def _divided(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shifted_left(a: int, b: int, bits: int) -> int:
    return a << b if 0 <= b < bits else 0


def _shifted_right(a: int, b: int, bits: int) -> int:
    return a >> b if 0 <= b < bits else -int(a < 0)


INTEGERS: dict[str, Callable[..., int]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "div": lambda a, b, _: _divided(a, b),
    "rem": lambda a, b, _: 0 if b == 0 else a - b * _divided(a, b),
    "min": lambda a, b, _: min(a, b),
    "max": lambda a, b, _: max(a, b),
    "shl": _shifted_left,
    "shr": _shifted_right,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "neg": lambda a, _: -a,
    "abs": lambda a, _: abs(a),
    "not": lambda a, _: ~a,
}


@pytest.mark.parametrize("scalar", [s for s in ALL_SCALARS if s.is_integer], ids=str)
def test_integers_are_pythons_wrapped(scalar: Scalar) -> None:
    for name, meaning in INTEGERS.items():
        operator = OPERATORS[name]
        if scalar.kind not in operator.kinds:
            continue
        xs = operands(operator, [scalar] * operator.arity, scalar)
        with np.errstate(all="ignore"):
            got = STORED.apply(operator, tuple(xs), scalar)
        low, _ = scalar.limits
        exact = [meaning(*map(int, row), scalar.bits) for row in zip(*xs, strict=True)]
        wanted = [(n - low) % (1 << scalar.bits) + low for n in exact]
        assert got.tolist() == wanted, name


@pytest.mark.parametrize("numerics", [EXACT, STORED], ids=["exact", "stored"])
@pytest.mark.parametrize("scalar", [s for s in ALL_SCALARS if s.is_float], ids=str)
def test_floats_become_the_nearest_integer_towards_zero(scalar: Scalar, numerics: Numerics) -> None:
    for target in (s for s in ALL_SCALARS if s.is_integer):
        operator = OPERATORS[target.name]
        (x,) = operands(operator, [scalar] * operator.arity, scalar)
        low, high = target.limits
        got = numerics.apply(operator, (np.asarray(x, numerics.dtype(scalar)),), target)
        wanted = [
            0 if math.isnan(v) else high if v >= high else low if v <= low else math.trunc(v)
            for v in x.astype(np.float64).tolist()
        ]
        assert got.tolist() == wanted, target


@pytest.mark.parametrize("numerics", [EXACT, STORED], ids=["exact", "stored"])
@pytest.mark.parametrize("scalar", [s for s in ALL_SCALARS if s.is_float], ids=str)
def test_a_nan_loses_against_a_number(scalar: Scalar, numerics: Numerics) -> None:
    for name, choose in (("min", min), ("max", max)):
        xs = operands(OPERATORS[name], [scalar, scalar], scalar)
        got = numerics.apply(OPERATORS[name], tuple(np.asarray(x, numerics.dtype(scalar)) for x in xs), scalar)
        for a, b, c in zip(*(x.astype(np.float64).tolist() for x in (*xs, got)), strict=True):
            numbers = [v for v in (a, b) if not math.isnan(v)]
            assert c == choose(numbers) if numbers else math.isnan(c), (name, a, b, c)


def test_every_operator_is_compared() -> None:
    """On every kind of scalar that it is declared for, by `cases`."""
    compared = {(o.name, s.kind) for s in ALL_SCALARS for o, _, _ in cases(s)}
    for operator in OPERATORS.values():
        kinds = {Kind.FLOAT} if operator.typing is Typing.MAKE_COMPLEX else operator.kinds
        assert {(operator.name, k) for k in kinds} <= compared
    assert set(ALL_SCALARS) == set(SCALARS.values())
    assert bool_ in ALL_SCALARS
