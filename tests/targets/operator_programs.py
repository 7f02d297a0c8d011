"""One program that applies every operator to columns of numbers, for targets that compile slowly.

Among the numbers are all pairs of those on which machines differ: the limits of the types, zeros, infinities, NaN,
divisors that are 0, counts of shifts and conversions that are out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lithify.evaluate.numerics import STORED, Numerics
from lithify.kernel import ir
from lithify.lang.levels import OUT
from lithify.lang.operators import OPERATORS, Operator, Typing
from lithify.lang.scalars import SCALARS, Scalar, bool_, f32, f64
from tests.targets.handmade import buffer, index, lanes, loop, op, program

# functions whose last bits differ from library to library
INEXACT = {"pow", "exp", "log", "sin", "cos", "tan", "tanh", "erf", "rsqrt"}
TOLERANCE = {8: 0.13, 16: 1e-2, 32: 2e-6, 64: 2e-14}
RANDOM = 16
_WIDTHS = (7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)


def hostile(scalar: Scalar) -> list[Any]:
    """The numbers of a type on which machines differ."""
    if scalar is bool_:
        return [False, True]
    if scalar.is_integer:
        low, high = scalar.limits
        wanted = [0, 1, 2, 3, -1, -2, -7, low, low + 1, high, high - 1, high // 2, *_WIDTHS]
        return sorted({n for n in wanted if low <= n <= high})
    if scalar.is_complex:
        return [0, 1, 1j, -1, -1j, 3 - 4j, -0.5 + 2j, 1e30 - 1e30j, 1e-30 + 1e-30j, 300.5 + 1j, -2.5e10 + 0.5j]
    parts = [0.0, 0.5, 0.75, 1.0, 1.5, 2.5, 3.0, 7.0, 127.0, 127.5, 128.0, 200.0, 255.5, 256.0]
    parts += [2.0**k for k in (15, 16, 31, 32, 63, 64, 100)] + [2.0**31 - 64, 3e9, 1e-3, np.inf]
    with np.errstate(all="ignore"):
        numbers = np.array([*parts, *(-x for x in parts)]).astype(scalar.dtype).astype(np.float64).tolist()
    found = {(x, bool(np.signbit(x))): x for x in numbers if x == x}
    return [*found.values(), np.nan]


def moderate(scalar: Scalar, seed: int) -> list[Any]:
    """Random numbers of moderate size."""
    rng = np.random.default_rng(seed)
    if scalar is bool_:
        return list(rng.integers(0, 2, RANDOM).astype(bool))
    if scalar.is_integer:
        low, high = scalar.limits
        return list(rng.integers(max(low, -100), min(high, 100), RANDOM, endpoint=True))
    if scalar.is_complex:
        return list(rng.standard_normal(RANDOM) + 1j * rng.standard_normal(RANDOM))
    return list(rng.standard_normal(RANDOM) * 4)


def cases(scalar: Scalar) -> list[tuple[Operator, list[Scalar], Scalar]]:
    """The operators on a scalar type, with the types of operands and result. Conversions go from the type to all."""
    found: list[tuple[Operator, list[Scalar], Scalar]] = []
    for operator in OPERATORS.values():
        if operator.typing is Typing.MAKE_COMPLEX and scalar not in (f32, f64):
            continue
        if operator.typing is Typing.SINGLE and scalar is not f32:
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
    """Columns of one length: moderate numbers, then all pairs of hostile ones (with some third operand)."""
    numbers = hostile(scalar)
    if operator.arity == 1:
        columns = [numbers]
    else:
        columns = [list(column) for column in zip(*[(a, b) for a in numbers for b in numbers], strict=True)]
    if operator.arity == 3:
        columns.append([numbers[(3 * k + 1) % len(numbers)] for k in range(len(columns[0]))])
    if operator.typing is Typing.SELECT:
        columns = [[k % 2 == 0 for k in range(len(columns[0]))], *columns[:2]]
    return [
        np.array([*moderate(t, k), *column], np.float64 if t.is_float else t.dtype).astype(t.dtype)
        for k, (t, column) in enumerate(zip(types, columns, strict=True))
    ]


def all_operators(scalar: Scalar, width: int) -> tuple[ir.Program, list[Any]]:
    """A program with one result an operator, and its arguments."""
    inputs: list[ir.Buffer] = []
    outputs: list[ir.Buffer] = []
    body: list[ir.Statement] = []
    arguments: list[Any] = []
    for number, (operator, types, result) in enumerate(cases(scalar)):
        xs = operands(operator, types, scalar)
        n = len(xs[0])
        blocks = -(-n // width)
        i, lane = index(f"i{number}", blocks), index(f"l{number}", width)
        at = i * width + lane
        guard = (index("z", 1) + (n - 1) - at,) if n % width else ()
        mine = [buffer(f"x{number}_{k}", n, scalar=t) for k, t in enumerate(types)]
        out = buffer(f"{operator.name}_out", n, scalar=result, role="output", memory=OUT)
        loads = [ir.Load(x, (at,), guard, ir.Constant(1, x.scalar) if guard else None) for x in mine]
        store = ir.Store(out, (at,), op(operator.name, *loads, result=result), guard)
        body.append(loop(i, blocks, lanes(lane, width, store) if width > 1 else store))
        inputs, outputs, arguments = [*inputs, *mine], [*outputs, out], [*arguments, *xs]
    return program(inputs, outputs, *body), arguments


def expected(scalar: Scalar, numerics: Numerics = STORED) -> list[Any]:
    """The results by the reference's arithmetic."""
    results = []
    for operator, types, result in cases(scalar):
        xs = operands(operator, types, scalar)
        with np.errstate(all="ignore"):
            inputs = tuple([np.asarray(x, numerics.dtype(t)) for x, t in zip(xs, types, strict=True)])
            results.append(numerics.apply(operator, inputs, result))
    return results


def compare(scalar: Scalar, results: Sequence[Any]) -> None:
    """Equal, NaN where NaN is, but for the functions that libraries round differently and for fused multiply-adds.

    Complex results are compared where they are finite: what overflows on the way depends on the order.
    """
    for (operator, _, result), got, wanted in zip(cases(scalar), results, expected(scalar), strict=True):
        message = f"{operator.name} on {scalar}"
        if not (result.is_float or result.is_complex):
            np.testing.assert_array_equal(got, wanted, err_msg=message)
            continue
        bits = result.bits // 2 if result.is_complex else result.bits
        wide = np.complex128 if result.is_complex else np.float64
        got, wanted = got.astype(wide), wanted.astype(wide)
        if scalar.is_complex:
            finite = np.isfinite(wanted) & np.isfinite(got)
            got, wanted = got[finite], wanted[finite]
        rounds = operator.name in INEXACT or scalar.is_complex or operator.name in ("fma", "div", "sqrt")
        tolerance = TOLERANCE[bits] if rounds else 0
        np.testing.assert_allclose(got, wanted, tolerance, tolerance, err_msg=message)


ALL_SCALARS = tuple(SCALARS.values())
