"""Elementary functions against wider arithmetic, over dense samples of the whole range, special values included."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lithify.kernel.translate import translate
from lithify.lang import read_text
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import Scalar, bf16, f16, f32, f64
from lithify.targets.cpu import CpuTarget
from lithify.targets.cpu.engine import host
from tests.targets.handmade import elementwise

TARGET = CpuTarget(threads=1)
WIDE = np.longdouble
EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "erf": lambda x: np.vectorize(math.erf)(x.astype(np.float64)),
}  # fmt: skip
# units in the last place; the references are f64 for f32, and for f64 long double or the C library
BOUNDS = {
    "exp": 1.5,
    "log": 1.5,
    "sin": 1.5,
    "cos": 1.5,
    "tan": 3.0,
    "tanh": 2.0,
    "erf": 2.0,
    "sqrt": 0.51,
    "rsqrt": 1.5,
}
_LEAST = {f32: -149, f64: -1074}


def samples(scalar: Scalar, name: str) -> Any:
    """Numbers spread over all exponents, over moderate sizes, and around the points where formulas change."""
    rng = np.random.default_rng(7)
    bits = 8 * scalar.bytes
    everything = rng.integers(0, 1 << (bits - 1), 40000, dtype=np.uint64)
    everything |= rng.integers(0, 2, 40000, dtype=np.uint64) << np.uint64(bits - 1)
    x = [everything.astype(f"u{scalar.bytes}").view(scalar.dtype)]
    x += [(rng.uniform(-s, s, 20000)).astype(scalar.dtype) for s in (1e-3, 0.6, 1, 1.1, 4, 7, 30, 110, 760, 1e5, 3e8)]
    x.append((1 + rng.uniform(-1e-3, 1e-3, 5000)).astype(scalar.dtype))
    if name in ("sin", "cos", "tan"):  # next to multiples of pi/2
        near = (np.arange(1, 5000) * (math.pi / 2)).astype(scalar.dtype)
        x += [near, np.nextafter(near, np.array(0, scalar.dtype)), np.nextafter(near, np.array(np.inf, scalar.dtype))]
    special = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, np.finfo(scalar.dtype).max, np.finfo(scalar.dtype).tiny]
    x.append(np.array(special, scalar.dtype))
    return np.concatenate(x)


def ulps(got: Any, exact: Any, scalar: Scalar) -> Any:
    """The error in units in the last place of the exact value, 0 where both are the same infinity or NaN."""
    exact = exact.astype(WIDE)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(exact)
        unit = np.ldexp(WIDE(1), np.maximum(exponent - np.finfo(scalar.dtype).nmant - 1, _LEAST[scalar]))
        error = np.abs(got.astype(WIDE) - exact) / unit
        rounded = exact.astype(scalar.dtype)
    same = (got == rounded) | (np.isnan(got) & np.isnan(exact))
    return np.where(same, np.where(np.isfinite(error), error, 0), np.where(np.isnan(error), np.inf, error))


@pytest.mark.parametrize("scalar", [f32, f64], ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_unary(name: str, scalar: Scalar) -> None:
    x = samples(scalar, name)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if scalar is f32 else WIDE)
        exact = EXACT[name](wide)
    for width in (16, 1):
        part = x if width > 1 else x[::37]
        got = TARGET.compile(elementwise(name, len(part), width, [scalar], scalar))(part)
        error = ulps(got, exact if width > 1 else exact[::37], scalar)
        worst = int(np.argmax(error))
        assert error[worst] <= BOUNDS[name], f"{name}({part[worst]!r}) = {got[worst]!r}: {error[worst]} units"


@pytest.mark.parametrize("scalar", [f32, f64], ids=str)
@pytest.mark.parametrize("name", ["exp", "rsqrt"])
def test_a_value_does_not_depend_on_its_place(name: str, scalar: Scalar) -> None:
    """In registers of any width, in several, and what is left over one by one: the same to the last bit."""
    x = samples(scalar, name)[::29]
    alone = TARGET.compile(elementwise(name, len(x), 1, [scalar], scalar))(x)
    for width in (4, 8, 16, 32, 64) if scalar is f32 else (2, 4, 8, 16, 32):
        got = TARGET.compile(elementwise(name, len(x), width, [scalar], scalar))(x)
        np.testing.assert_array_equal(got, alone, err_msg=f"{width} lanes")


def test_the_sign_of_zero_is_kept() -> None:
    x = np.array([-0.0, 0.0] * 16, np.float32)
    for name in ("sin", "tan", "tanh", "erf", "sqrt"):
        got = TARGET.compile(elementwise(name, 32, 16, [f32], f32))(x)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


@pytest.mark.parametrize("scalar", [f32, f64], ids=str)
def test_pow(scalar: Scalar) -> None:
    rng = np.random.default_rng(3)
    special = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e30, -1e30, 16777215.0]
    x, y = (g.ravel() for g in np.meshgrid(special, special))
    x = np.concatenate([x, np.exp(rng.uniform(-40, 40, 20000)), -rng.uniform(0, 9, 5000)]).astype(scalar.dtype)
    y = np.concatenate([y, rng.uniform(-3, 3, 20000), rng.integers(-9, 9, 5000)]).astype(scalar.dtype)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(WIDE), y.astype(WIDE)) if scalar is f64 else np.power(x.astype(np.float64), y)
    got = TARGET.compile(elementwise("pow", len(x), 16, [scalar, scalar], scalar))(x, y)
    error = ulps(got, exact, scalar)
    worst = int(np.argmax(error))
    assert error[worst] <= 1.5, f"{x[worst]} ^ {y[worst]} = {got[worst]}: {error[worst]} units"


@pytest.mark.parametrize("scalar", [f16, bf16], ids=str)
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sqrt"])
def test_narrow_floats_exhaustively(name: str, scalar: Scalar) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(scalar.dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32).astype(np.float64)
        exact = EXACT[name](wide)
        rounded = exact.astype(np.float32).astype(scalar.dtype)
    got = TARGET.compile(elementwise(name, len(x), 16, [scalar], scalar))(x)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    # rounding to f32 first may differ by one unit in rare ties
    neighbours = np.abs(got.view(np.int16).astype(int) - rounded.view(np.int16).astype(int)) <= 1
    assert np.all(same | neighbours)
    assert np.mean(same) > 0.999


@pytest.mark.parametrize("scalar", [f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "rsqrt", "floor", "round", "min", "max", "add"])
def test_no_lane_goes_through_the_c_library(name: str, scalar: Scalar) -> None:
    """A call for every lane would be slower by an order of magnitude than what the tests above check."""
    if not any(f in host()[2] for f in ("+fma", "+neon", "+v")):
        pytest.skip("a processor without fused multiply-add")
    assembly = TARGET.assembly(elementwise(name, 64, 16, [scalar] * OPERATORS[name].arity, scalar))
    assert "lithify_run" in assembly
    library = r"[$\s](exp|log|tanh|erf|sqrt|floor|rint|roundeven|fmin|fmax|fma)f?(?:@PLT)?,?\s"
    assert not re.findall(library, assembly)


@pytest.mark.parametrize("scalar", [f32, f64, f16])
def test_squares_are_products(scalar: Scalar) -> None:
    """As `**` writes them in Python: to the last bit, and without logarithms."""
    term = read_text(f"f = λ (xs : 64.{scalar}) . map[vec] (λ x . x ^ 2) xs")["f"].elaborate()
    program = translate(term.term, term.parameters)
    x = np.concatenate([np.random.default_rng(0).normal(size=60), [0.0, -0.0, np.inf, np.nan]]).astype(scalar.dtype)
    np.testing.assert_array_equal(TARGET.compile(program)(x), x * x)
    assert len(TARGET.assembly(program).splitlines()) < 120
