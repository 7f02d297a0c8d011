"""One program that applies every operator to columns of numbers, for targets that compile slowly."""

from __future__ import annotations

from typing import Any

import numpy as np

from lithify.evaluate.numerics import STORED
from lithify.kernel import ir
from lithify.lang.levels import OUT
from lithify.lang.operators import OPERATORS, Operator, Typing
from lithify.lang.scalars import SCALARS, Scalar, bool_, f32, f64
from tests.targets.handmade import buffer, index, lanes, loop, op, program

N = 2 * 8 + 5
# functions whose last bits differ from library to library
INEXACT = {"pow", "exp", "log", "sin", "cos", "tan", "tanh", "erf", "rsqrt"}
TOLERANCE = {8: 0.13, 16: 1e-2, 32: 2e-6, 64: 2e-14}


def numbers(scalar: Scalar, seed: int) -> Any:
    """Numbers of moderate size, with the limits of integer types and some special values among them."""
    rng = np.random.default_rng(seed)
    if scalar is bool_:
        return rng.integers(0, 2, N).astype(np.bool_)
    if scalar.is_integer:
        low, high = scalar.limits
        x = rng.integers(max(low, -100), min(high, 100), N, endpoint=True).astype(scalar.dtype)
        x[:6] = [low, high, 0, 1, high, low] if seed % 2 else [low, 3, high, 0, 1, high]
        return x
    if scalar.is_complex:
        return (rng.standard_normal(N) + 1j * rng.standard_normal(N)).astype(scalar.dtype)
    x = rng.standard_normal(N) * 4
    x[:3] = [0, 2.5, -0.5] if seed % 2 else [-1.5, 0.5, 300]
    return x.astype(np.float32 if scalar.bytes < 4 else scalar.dtype).astype(scalar.dtype)


def cases(scalar: Scalar) -> list[tuple[Operator, list[Scalar], Scalar]]:
    """The operators on a scalar type, with the types of operands and result. Conversions go from the type to all."""
    found: list[tuple[Operator, list[Scalar], Scalar]] = []
    for operator in OPERATORS.values():
        if operator.typing is Typing.MAKE_COMPLEX and scalar not in (f32, f64):
            continue
        if operator.typing is Typing.CONVERT:
            assert operator.target is not None
            found.append((operator, [scalar], operator.target))
        elif scalar.kind in operator.kinds:
            types = [bool_, scalar, scalar] if operator.typing is Typing.SELECT else [scalar] * operator.arity
            result = operator.result_type(tuple(types))
            assert isinstance(result, Scalar)
            found.append((operator, types, result))
    return found


def operands(operator: Operator, types: list[Scalar], scalar: Scalar) -> list[Any]:
    """Arguments for which the operator has a value."""
    xs = [numbers(t, k) for k, t in enumerate(types)]
    if operator.name in ("div", "rem") and scalar.is_integer:
        xs[1] = np.where(xs[1] == 0, np.array(3, scalar.dtype), xs[1])
    if operator.name in ("shl", "shr"):
        xs[1] = (np.arange(N) % (scalar.bits + 3)).astype(scalar.dtype)
    if operator.name in ("sqrt", "log", "rsqrt") and scalar.is_float:
        xs[0] = (np.abs(xs[0].astype(np.float64)) + 0.5).astype(scalar.dtype)
    if operator.name == "pow":
        xs = [(np.abs(x.astype(np.float64)) / 16 + 0.5).astype(scalar.dtype) for x in xs]
    target = operator.target
    if target is not None and target.is_integer and (scalar.is_float or scalar.is_complex):
        real = np.real(xs[0]).astype(np.float64)
        xs[0] = np.where(np.abs(real) < 100, np.abs(real), 5).astype(scalar.dtype)
    return xs


def all_operators(scalar: Scalar, width: int) -> tuple[ir.Program, list[Any], list[Any]]:
    """A program with one result an operator, its arguments, and the results to expect."""
    blocks = -(-N // width)
    i, lane = index("i", blocks), index("l", width)
    at = i * width + lane
    guard = (index("z", 1) + (N - 1) - at,) if N % width else ()
    inputs: list[ir.Buffer] = []
    outputs: list[ir.Buffer] = []
    stores: list[ir.Statement] = []
    arguments: list[Any] = []
    expected: list[Any] = []
    for number, (operator, types, result) in enumerate(cases(scalar)):
        xs = operands(operator, types, scalar)
        mine = [buffer(f"x{number}_{k}", N, scalar=t) for k, t in enumerate(types)]
        out = buffer(f"{operator.name}_out", N, scalar=result, role="output", memory=OUT)
        loads = [ir.Load(x, (at,), guard, ir.Constant(1, x.scalar) if guard else None) for x in mine]
        stores.append(ir.Store(out, (at,), op(operator.name, *loads, result=result), guard))
        inputs, outputs, arguments = [*inputs, *mine], [*outputs, out], [*arguments, *xs]
        with np.errstate(all="ignore"):
            expected.append(STORED.apply(operator, tuple(xs), result))
    body = [lanes(lane, width, *stores)] if width > 1 else stores
    return program(inputs, outputs, loop(i, blocks, *body)), arguments, expected


def compare(got: Any, wanted: Any, operator: Operator, operand: Scalar, result: Scalar) -> None:
    """Equal, but for the functions that libraries round differently and for what a fused multiply-add may change."""
    message = f"{operator.name} on {operand}"
    if not (result.is_float or result.is_complex):
        np.testing.assert_array_equal(got, wanted, err_msg=message)
        return
    bits = result.bits // 2 if result.is_complex else result.bits
    wide = np.complex128 if result.is_complex else np.float64
    rounds = operator.name in INEXACT or operand.is_complex or operator.name in ("fma", "div", "sqrt")
    tolerance = TOLERANCE[bits] if rounds else 0
    np.testing.assert_allclose(got.astype(wide), wanted.astype(wide), tolerance, tolerance, err_msg=message)


ALL_SCALARS = tuple(SCALARS.values())
