"""`x ^ n` with whole exponents that are known: products, with what the power function means at all values."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf
from lithify.lang import build as b
from lithify.lang import elaborate_term, parse_expression
from lithify.lang.errors import TypeMismatch
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import SCALARS, Scalar, f32, f64, i32
from lithify.lang.term import subterms

FLOATS = [s for s in SCALARS.values() if s.is_float]
VALUES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 3.0, np.inf, -np.inf, np.nan, 0.25, 1e-19, 2e19, -7e-13, 3e12]
X = b.param("x", f32)


def power(exponent: object) -> object:
    return elaborate_term(parse_expression(f"x ^ {exponent}"), {"x": X})


def test_small_whole_powers_are_products() -> None:
    for exponent in range(-4, 5):
        found = power(exponent)
        assert not any(t.kind == "op" and t["operator"].name == "pow" for t in subterms(found))  # type: ignore[arg-type]
        assert found is power(float(exponent))
    assert power(2) is b.mul(X, X)
    assert power(1) is X
    assert power(0) is b.const(1, f32)
    for exponent in (5, -5, 0.5, 2.5, "inf", "nan"):
        assert power(exponent).attrs[0] is OPERATORS["pow"]  # type: ignore[attr-defined]


def test_exponents_that_are_found_later() -> None:
    """By substitution, in a definition's parameter, in Python."""
    y = b.param("y", f32)
    from lithify.lang.term import substitute_parameters

    assert substitute_parameters(b.op("pow", X, y), {"y": b.const(2.0, f32)}) is b.mul(X, X)
    text = lf.parse("power k x = x ^ k\nf (xs : n.f32) = map (power 2) xs")["f"]
    program = lf.program(lambda xs: lf.map(lambda x: x**2, xs))
    assert str(text.term("8.f32")) == str(program.term("8.f32")) == "map (λx. x * x) xs"


@pytest.mark.parametrize("scalar", FLOATS, ids=str)
@pytest.mark.parametrize("exponent", range(-4, 5))
def test_values(exponent: int, scalar: Scalar, pocl_device: object) -> None:
    """Zeros of both signs, infinities and what is no number, as of C's pow; the rest to a few roundings."""
    program = lf.parse(f"p (xs : n.{scalar}) = map (^ {exponent}) xs")["p"]
    with np.errstate(all="ignore"):
        xs = np.array(VALUES, np.float64).astype(scalar.dtype)
        wanted = np.power(xs.astype(np.float64), float(exponent)).astype(scalar.dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        unit = float(abs(np.spacing(np.array(1, scalar.dtype)))) if scalar.bits > 8 else 0.25
        least = float(np.finfo(scalar.dtype).tiny) if scalar.bits > 16 else 1e-2
    for device in ("cpu", "c", "opencl:0"):
        got = program.on(device)(xs).astype(np.float64)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted), err_msg=device)
        if scalar.bits > 16:
            np.testing.assert_allclose(got, wanted, rtol=4 * unit, atol=least, err_msg=device)
            np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(wanted[:2]), err_msg=device)


@pytest.mark.parametrize("name", ["i8", "u8", "i16", "i32", "i64", "u64"])
def test_integers_wrap(name: str, pocl_device: object) -> None:
    xs = np.array([0, 1, 2, 3, 7, 100, 127], SCALARS[name].dtype)
    for exponent in (0, 1, 2, 3, 5, 10, 64):
        program = lf.parse(f"p (xs : n.{name}) = map (^ {exponent}) xs")["p"]
        with np.errstate(all="ignore"):
            wanted = np.array([pow(int(x), exponent, 2 ** SCALARS[name].bits) for x in xs], np.uint64)
        for device in ("cpu", "c", "opencl:0"):
            np.testing.assert_array_equal(program.on(device)(xs), wanted.astype(xs.dtype), err_msg=device)


def test_complex_numbers() -> None:
    xs = np.array([1 + 2j, -0.5j, 3], np.complex128)
    for exponent in (-2, -1, 0, 1, 2, 3, 6):
        program = lf.parse(f"p (xs : n.complex128) = map (^ {exponent}) xs")["p"]
        np.testing.assert_allclose(program(xs), xs**exponent, rtol=1e-14)


def test_numbers_and_sizes() -> None:
    xs = np.arange(8, dtype=np.int32)
    program = lf.parse("p (xs : n.i32) = map (λ row . row[2 ^ 1 - 1] + 2 ^ 5) (split (2 ^ 2) xs)")["p"]
    np.testing.assert_array_equal(program(xs), [33, 37])
    squares = lf.parse("p (xs : n.i32) = generate 3 (λ i . xs[i ^ 2])")["p"]
    np.testing.assert_array_equal(squares(xs), [0, 1, 4])
    assert b.power(b.param("i", i32), 3).type is i32
    assert b.power(b.param("d", f64), -1).attrs[0] is OPERATORS["div"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("map (^ -1) xs", "a power of i32 has an exponent from 0 to 64, not -1"),
        ("map (^ 65) xs", "a power of i32 has an exponent from 0 to 64, not 65"),
        ("map (λ x . x ^ x) xs", "a power of i32 has a whole number as its exponent"),
        ("map (^ 0.5) xs", "a power of i32 has a whole number as its exponent"),
        ("generate 8 (λ i . xs[i ^ -1])", "a power of an index has an exponent from 0 to 8, not -1"),
        ("generate 8 (λ i . xs[i ^ 2])", "an index from 0 to 49 is not within an array of 8"),
    ],
)
def test_wrong_powers(text: str, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        lf.parse(f"p (xs : n.i32) = {text}")["p"].term("8.i32")
