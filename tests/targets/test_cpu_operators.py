"""Every scalar operator on every scalar type that takes it, in vectors and one by one, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lithify.lang.operators import OPERATORS, Operator, Typing
from lithify.lang.scalars import SCALARS, Kind, Scalar, bf16, bool_, f16, f32, f64
from lithify.targets.cpu import CpuTarget
from tests.targets.handmade import elementwise

TARGET = CpuTarget(threads=1)
N = 2 * 8 + 5


def values(scalar: Scalar, seed: int, positive: bool = False) -> Any:
    """Numbers of moderate size, with the type's limits among them for integers."""
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
    x = np.abs(rng.standard_normal(N)) + 0.1 if positive else rng.standard_normal(N) * 4
    return x.astype(np.float32 if scalar.bytes < 4 else scalar.dtype).astype(scalar.dtype)


def wide(x: Any) -> Any:
    """Floats as f64 and complex numbers as complex128; the rest as it is."""
    scalar = next(s for s in SCALARS.values() if s.dtype == x.dtype)
    if scalar.is_float:
        return x.astype(np.float32).astype(np.float64) if scalar.bytes < 4 else x.astype(np.float64)
    return x.astype(np.complex128) if scalar.is_complex else x


def _quotient(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return x / y
    return np.array([_truncated(int(a), int(b)) for a, b in zip(x, y, strict=True)], object)


def _truncated(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(x: Any, y: Any) -> Any:
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    return np.array([0 if b == 0 else a - b * _truncated(a, b) for a, b in pairs], object)


def _integers(f: Any) -> Any:
    """Exact on Python integers."""
    return lambda *xs: np.array([f(*map(int, row)) for row in zip(*xs, strict=True)], object)


def _arithmetic(f: Any) -> Any:
    return lambda *xs: _integers(f)(*xs) if xs[0].dtype.kind in "iu" else f(*xs)


REFERENCE: dict[str, Any] = {
    "add": _arithmetic(lambda a, b: a + b), "sub": _arithmetic(lambda a, b: a - b),
    "mul": _arithmetic(lambda a, b: a * b), "div": _quotient, "rem": _remainder,
    "min": np.minimum, "max": np.maximum, "pow": lambda a, b: np.power(np.abs(a), b), "fma": lambda a, b, c: a * b + c,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "not": lambda a: ~a,
    "neg": _arithmetic(lambda a: -a), "abs": _arithmetic(abs), "sqrt": np.sqrt, "exp": np.exp, "log": np.log,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "rsqrt": lambda a: 1 / np.sqrt(a),
    "erf": np.vectorize(math.erf, otypes=[np.float64]), "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "select": np.where, "complex": lambda a, b: a + 1j * b,
    "re": np.real, "im": np.imag, "conj": np.conj,
}  # fmt: skip
_POSITIVE = {"sqrt", "log", "rsqrt", "pow"}
_TOLERANCE = {1: 0.13, 2: 1e-2, 4: 2e-6, 8: 1e-14}


def operand_types(operator: Operator, scalar: Scalar) -> list[Scalar]:
    if operator.typing is Typing.SELECT:
        return [bool_, scalar, scalar]
    return [scalar] * operator.arity


CASES = [
    (o.name, s)
    for o in OPERATORS.values()
    if o.typing not in (Typing.CONVERT, Typing.SINGLE)  # tf32: see tests/lang/test_tf32
    for s in SCALARS.values()
    if s.kind in o.kinds and not (o.typing is Typing.MAKE_COMPLEX and s not in (f32, f64))
]


@pytest.mark.parametrize(("name", "scalar"), CASES, ids=lambda v: str(v))
def test_operator(name: str, scalar: Scalar) -> None:
    operator = OPERATORS[name]
    types = operand_types(operator, scalar)
    result = operator.result_type(tuple(types))
    assert isinstance(result, Scalar)
    xs = [values(t, k, name in _POSITIVE) for k, t in enumerate(types)]
    if name in ("shl", "shr"):
        _check_shift(name, scalar, result, xs)
        return
    with np.errstate(all="ignore"):
        exact = REFERENCE[name](*(x if name == "select" and k == 0 else wide(x) for k, x in enumerate(xs)))
    for width in (1, 8):
        got = TARGET.compile(elementwise(name, N, width, types, result))(*xs)
        _compare(got, exact, result)


def _compare(got: Any, exact: Any, scalar: Scalar) -> None:
    if scalar.is_integer:
        bits = scalar.bits
        wrapped = np.array([int(v) % (1 << bits) for v in exact], object)
        np.testing.assert_array_equal(np.array([int(v) % (1 << bits) for v in got], object), wrapped)
    elif scalar is bool_:
        np.testing.assert_array_equal(got, exact)
    else:
        tolerance = _TOLERANCE[scalar.bytes // 2 if scalar.is_complex else scalar.bytes]
        limit = float(scalar.limits[1]) if scalar.is_float else np.inf
        if scalar.is_float and scalar.bytes < 4:  # overflow of narrow types: as the conversion of the exact result
            exact = exact.astype(np.float32).astype(scalar.dtype).astype(np.float64)
        assert limit > 0
        np.testing.assert_allclose(wide(got), exact, rtol=tolerance, atol=tolerance)


def _check_shift(name: str, scalar: Scalar, result: Scalar, xs: list[Any]) -> None:
    x, y = xs
    counts = [min(int(v) % (1 << scalar.bits), scalar.bits) for v in y]  # negative counts are large ones
    shift = (lambda a, n: a << n) if name == "shl" else (lambda a, n: a >> n)
    exact = np.array([shift(int(a), n) for a, n in zip(x, counts, strict=True)], object)
    for width in (1, 8):
        _compare(TARGET.compile(elementwise(name, N, width, [scalar, scalar], result))(x, y), exact, result)


@pytest.mark.parametrize("target", SCALARS.values(), ids=str)
@pytest.mark.parametrize("source", SCALARS.values(), ids=str)
def test_conversion(source: Scalar, target: Scalar) -> None:
    x = values(source, 1)
    if source.is_float and target.kind is Kind.UNSIGNED:
        x = np.abs(x.astype(np.float32)).astype(source.dtype)
    got = TARGET.compile(elementwise(target.name, N, 8, [source], target))(x)
    if source is target:
        np.testing.assert_array_equal(got, x)
        return
    exact = wide(x)
    if target.is_integer and not source.is_integer:
        exact = np.trunc(np.real(exact).astype(np.float64)) if source is not bool_ else exact.astype(np.int64)
        if source.is_complex and target.kind is Kind.UNSIGNED:
            exact = np.maximum(exact, 0)
        np.testing.assert_array_equal(got.astype(np.float64), exact)
    elif target is bool_:
        np.testing.assert_array_equal(got, exact != 0)
    elif target.is_float:
        exact = np.real(exact).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(wide(got), wide(exact.astype(target.dtype)))
    else:
        _compare(got, exact, target)


@pytest.mark.parametrize("target", [s for s in SCALARS.values() if s.is_float and s.bytes < 4], ids=str)
def test_narrowing_rounds_once(target: Scalar) -> None:
    """From f64: values next to the midpoints of neighbouring numbers, all magnitudes, subnormal results included."""
    bits = np.arange(1 << (8 * target.bytes), dtype=f"u{target.bytes}")
    numbers = bits.view(target.dtype).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    middle = (numbers[1:] + numbers[:-1]) / 2
    x = np.concatenate([numbers, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])
    x = np.concatenate([x, [np.inf, -np.inf, np.nan, 1e-300, 1e300]])
    got = TARGET.compile(elementwise(target.name, len(x), 8, [f64], target))(x).astype(np.float64)
    best = np.searchsorted(numbers, x).clip(1, len(numbers) - 1)
    inside = np.abs(x) <= numbers[-1]
    distance = np.minimum(np.abs(x - numbers[best - 1]), np.abs(x - numbers[best]))
    np.testing.assert_array_equal(np.abs(got - x)[inside], distance[inside])
    ties = inside & (np.abs(x - numbers[best - 1]) == np.abs(x - numbers[best]))
    assert np.count_nonzero(ties) > 100
    chosen = got[ties].astype(np.float32).astype(target.dtype).view(f"u{target.bytes}")
    assert not np.any(chosen & 1), "ties go to even"


@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
def test_vectors_round_to_bf16_as_numbers_do(lanes: int) -> None:
    """Processors round whole vectors, but take subnormal numbers for zeros: all upper halves, around ties."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = np.concatenate([upper | lower for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    few = np.full(4 * lanes, 0x3F800001, np.uint32)
    few[[1, lanes + lanes // 2, 4 * lanes - 1]] = 0x00018000, 0x80000001, 0x007FFFFF  # one subnormal number a vector
    x = np.concatenate([bits, few]).view(np.float32)
    got = TARGET.compile(elementwise("bf16", len(x), lanes, [f32], bf16))(x)
    wanted = x.astype(bf16.dtype)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(got.view(np.uint16)[number], wanted.view(np.uint16)[number])
    assert np.all(np.isnan(got[~number].astype(np.float32)))


@pytest.mark.parametrize("source", [s for s in SCALARS.values() if s.is_float and s.bytes < 4], ids=str)
def test_widening_is_exact(source: Scalar) -> None:
    x = np.arange(1 << (8 * source.bytes), dtype=f"u{source.bytes}").view(source.dtype)
    got = TARGET.compile(elementwise("f32", len(x), 16, [source], f32))(x)
    np.testing.assert_array_equal(got, x.astype(np.float32))


@pytest.mark.parametrize("scalar", [f32, f64, f16, bf16], ids=str)
def test_minimum_and_maximum_lose_nan(scalar: Scalar) -> None:
    x = np.array([np.nan, 1, np.nan, -np.inf] * 4, np.float32).astype(scalar.dtype)
    y = np.array([2, np.nan, np.nan, 3] * 4, np.float32).astype(scalar.dtype)
    for name, expected in (("min", np.fmin), ("max", np.fmax)):
        got = TARGET.compile(elementwise(name, 16, 8, [scalar, scalar], scalar))(x, y)
        np.testing.assert_array_equal(wide(got), expected(wide(x), wide(y)))


@pytest.mark.parametrize("target", [s for s in SCALARS.values() if s.is_integer], ids=str)
def test_floats_out_of_range_saturate(target: Scalar) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.9, -0.9, 1.0] * 2, np.float32)
    got = TARGET.compile(elementwise(target.name, 16, 8, [f32], target))(x)
    low, high = target.limits
    assert [int(v) for v in got] == [high, low, 0, high, low, 0, 0, 1] * 2
