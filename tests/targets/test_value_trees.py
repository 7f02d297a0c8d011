"""Random expressions of nested operators: as C and as OpenCL, on single elements and on lanes, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.arith import const, var
from lithify.evaluate.numerics import STORED
from lithify.kernel import ir
from lithify.lang.levels import OUT
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import Scalar, bool_, f16, f32, i8, i32, u32
from lithify.targets.base import Target
from lithify.targets.c import CTarget, find_compiler
from lithify.targets.opencl import OpenCLTarget
from tests.targets.handmade import buffer, lanes, loop, op, program

N = 24
TYPES: tuple[Scalar, ...] = (i32, u32, i8, f32, f16, bool_)
BLOCK, LANE = var("i", N // 8), var("lane", 8)
AT = BLOCK * 8 + LANE
INPUTS = {t: buffer(f"x_{t}", N, scalar=t) for t in TYPES}
# Those whose results are the same everywhere, to the last bit.
UNARY = {"neg": (i32, f32, f16), "not": (i32, u32, i8, bool_), "abs": (i32, i8, f32), "floor": (f32,)}
BINARY = {
    "add": (i32, u32, i8, f32, f16), "sub": (i32, u32, i8, f32, f16), "mul": (i32, u32, i8, f32, f16),
    "min": (i32, u32, i8, f32), "max": (i32, u32, f32, f16), "and": (i32, u32, i8, bool_), "or": (i32, u32, bool_),
    "xor": (i32, i8, bool_),
}  # fmt: skip
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
CONVERSIONS = ((i32, u32), (u32, i32), (i8, i32), (i32, i8), (bool_, i32), (bool_, f32), (i32, bool_), (i8, f32),
               (i8, f16), (f16, f32), (f32, bool_), (u32, i8))  # fmt: skip


@st.composite
def trees(draw: st.DrawFn, scalar: Scalar, depth: int = 3) -> ir.Value:
    """A value of a type."""
    kind = draw(st.integers(0, 7)) if depth else draw(st.integers(0, 1))
    inner = depth - 1
    if kind == 0:
        small = st.integers(0, 5) if scalar is u32 else st.integers(-5, 5)
        return ir.Constant(draw(st.booleans() if scalar is bool_ else small), scalar)
    if kind == 1:
        return ir.Load(INPUTS[scalar], (draw(st.sampled_from([AT, AT, N - 1 - AT, BLOCK * 8])),))
    if kind == 2 and (names := [n for n, types in UNARY.items() if scalar in types]):
        return op(draw(st.sampled_from(names)), draw(trees(scalar, inner)))
    if kind in (3, 4) and (names := [n for n, types in BINARY.items() if scalar in types]):
        return op(draw(st.sampled_from(names)), draw(trees(scalar, inner)), draw(trees(scalar, inner)))
    if kind == 5 and scalar is bool_:
        operand = draw(st.sampled_from(TYPES[:-1]))
        return op(
            draw(st.sampled_from(COMPARED)), draw(trees(operand, inner)), draw(trees(operand, inner)), result=bool_
        )
    if kind == 6 and (sources := [s for s, t in CONVERSIONS if t is scalar]):
        return op(scalar.name, draw(trees(draw(st.sampled_from(sources)), inner)), result=scalar)
    then, otherwise = draw(trees(scalar, inner)), draw(trees(scalar, inner))
    if draw(st.booleans()):
        guard = draw(st.sampled_from([(AT - 5,), (AT - 3, 17 - AT), (BLOCK - 1,), (12 - AT, BLOCK - 1)]))
        return ir.Choose(guard, then, otherwise)
    return op("select", draw(trees(bool_, inner)), then, otherwise, result=scalar)


def evaluated(value: ir.Value, data: dict[Scalar, Any]) -> Any:
    """The values for all elements."""
    at = np.arange(N)
    known = {BLOCK: at // 8, LANE: at % 8}
    match value:
        case ir.Constant():
            return np.full(N, value.value, value.scalar.dtype)
        case ir.Load():
            return data[value.scalar][value.index[0].evaluate(known)]
        case ir.Choose():
            holds = np.all([np.broadcast_to(e.evaluate(known) >= 0, N) for e in value.guard], axis=0)
            return np.where(holds, evaluated(value.then, data), evaluated(value.otherwise, data))
        case ir.Apply():
            with np.errstate(all="ignore"):
                operands = tuple(evaluated(v, data) for v in value.operands)
                return STORED.apply(OPERATORS[value.operator.name], operands, value.scalar)
    raise AssertionError(value)


def arguments() -> dict[Scalar, Any]:
    rng = np.random.default_rng(5)
    whole = rng.integers(-100, 100, N)
    data: dict[Scalar, Any] = {t: whole.astype(t.dtype) for t in (i32, u32, i8)}
    data |= {t: (whole / 8).astype(t.dtype) for t in (f32, f16)} | {bool_: whole > 0}
    data[i32][:2] = i32.limits
    return data


def check(target: Target, values: list[ir.Value], width: int) -> None:
    outputs = [buffer(f"out{k}", N, scalar=v.scalar, role="output", memory=OUT) for k, v in enumerate(values)]
    stores = [ir.Store(out, (AT,), v) for out, v in zip(outputs, values, strict=True)]
    inner = lanes(LANE, 8, *stores) if width > 1 else loop(LANE, 8, *stores)
    data = arguments()
    results = target.compile(program(list(INPUTS.values()), outputs, loop(BLOCK, const(N // 8), inner)))(*data.values())
    for got, value in zip(results if len(values) > 1 else (results,), values, strict=True):
        np.testing.assert_array_equal(got, evaluated(value, data), err_msg=str(value))


LISTS = st.lists(st.sampled_from(TYPES).flatmap(lambda t: trees(t)), min_size=1, max_size=25)


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
@settings(max_examples=15)
@given(LISTS, st.sampled_from([1, 8]))
def test_c(values: list[ir.Value], width: int) -> None:
    check(CTarget(("-O0", "-ffp-contract=off"), openmp=False), values, width)


@settings(max_examples=6)
@given(LISTS, st.sampled_from([1, 8]))
def test_opencl(opencl_device: Any, values: list[ir.Value], width: int) -> None:
    check(OpenCLTarget(opencl_device.platform.name), values, width)


@pytest.mark.parametrize("width", [1, 8])
def test_the_least_integer_has_no_positive_magnitude(opencl_device: Any, width: int) -> None:
    """Its magnitude is itself, as with two's complement everywhere: 0 < abs x was true for it."""
    magnitude = op("abs", ir.Load(INPUTS[i32], (AT,)))
    values: list[ir.Value] = [magnitude, op("lt", ir.Constant(0, i32), magnitude, result=bool_)]
    check(OpenCLTarget(opencl_device.platform.name), values, width)
