"""`tf32`: an f32 with the 11 significant bits that TF32 multiplies, on every device."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.lang.errors import TypeMismatch

TEXT = """
rounded (xs : n.f32) = map tf32 xs
product a b = map (λ row . map (λ col . dot (map tf32 row) (map tf32 col)) (transpose b)) a
"""
DEVICES = ("cpu", "c", "opencl:0")


def nearest(x: float) -> float:
    """The nearest number of TF32, of two the one with an even last bit: by fractions, without any bits."""
    if x == 0 or not np.isfinite(x):
        return x
    exponent = max(int(np.floor(np.log2(abs(x)))), -126)
    unit = Fraction(2) ** (exponent - 10)
    count = round(Fraction(x) / unit)  # ties to even
    return np.inf * np.sign(x) if abs(count * unit) >= Fraction(2) ** 128 else float(count * unit)


def numbers() -> Any:
    rng = np.random.default_rng(0)
    least, step = 2.0**-149, 2.0**-136  # of f32, and of TF32's subnormal numbers
    ties = [1 + k * 2.0**-11 for k in range(8)] + [(k + 0.5) * step for k in range(5)] + [1023.5 * step]
    beside = [np.nextafter(np.float32(t), np.float32(d)) for t in ties for d in (-np.inf, np.inf)]
    special = [
        0.0,
        np.inf,
        np.nan,
        3.4028235e38,
        3.4e38,
        (2 - 2.0**-11) * 2.0**127,
        least,
        2.0**-126,
        1.1754942e-38,
        0.1,
    ]
    bits = rng.integers(0, 2**32, 4001, dtype=np.uint64).astype(np.uint32).view(np.float32)
    payloads = np.array([0x7F800001, 0x7F801FFF, 0xFFBFFFFF], np.uint32).view(np.float32)  # no numbers
    positive = np.array([*ties, *beside, *special], np.float32)
    return np.concatenate([positive, -positive, bits, payloads])


def test_values(pocl_device: object) -> None:
    """Ties, infinities, what is no number, subnormal numbers, those that become infinite, and any bits."""
    xs = numbers()
    with np.errstate(all="ignore"):
        wanted = np.array([nearest(float(x)) for x in xs]).astype(np.float32)
    program = lf.parse(TEXT)["rounded"]
    for device in DEVICES:
        for part in (slice(None), slice(0, 7)):
            found = program.on(device)(xs[part])
            np.testing.assert_array_equal(found, wanted[part], err_msg=device)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(xs[part]), err_msg=device)
    np.testing.assert_array_equal(program(wanted), wanted)


def test_products_of_matrices(pocl_device: object) -> None:
    """Two numbers of 11 bits have a product that f32 holds: what is left of rounding is that of the sums."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(33, 70)).astype(np.float32), rng.normal(size=(70, 19)).astype(np.float32)
    module = lf.parse(TEXT)
    exact = module["rounded"](a.ravel()).reshape(a.shape).astype(float) @ module["rounded"](b.ravel()).reshape(b.shape)
    for device in DEVICES:
        np.testing.assert_allclose(module["product"].on(device)(a, b), exact, atol=1e-4, err_msg=device)
        assert not np.allclose(exact, a.astype(float) @ b, atol=1e-4)
    assert module["product"].check(a, b)
    assert module["rounded"].check(a[0])


def test_only_f32_is_rounded() -> None:
    xs = np.arange(8.0)
    with pytest.raises(TypeMismatch, match=r"tf32 takes an f32, not f64\n(.*\n)*hint: convert it: `tf32 \(f32 x\)`"):
        lf.parse("p xs = map tf32 xs")["p"](xs)
    np.testing.assert_array_equal(lf.program(lambda xs: lf.map(lambda x: lf.tf32(lf.f32(x)), xs))(xs), xs)


def test_a_check_allows_for_the_coarsest_rounding_on_the_way() -> None:
    """A result of f32 that was rounded to bf16 is not wrong."""
    xs = np.arange(13, dtype=np.float32)
    for text in ("map (λ x . f32 (bf16 x)) xs", "map (λ x . f64 (f16 x)) xs", "map tf32 xs"):
        assert lf.parse(f"p xs = {text}")["p"].check(xs), text
