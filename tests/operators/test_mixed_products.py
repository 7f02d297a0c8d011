"""Products of matrices in every scalar type: sums in wider types, results cast down, against NumPy in the widest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lithify as lf
from lithify import operators

BLAS = operators.path("blas").read_text()
LOW = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
# m, n, k: around vectors, register tiles and groups of products; k that is no whole number of groups; whole tiles.
SIZES = [(1, 1, 1), (3, 5, 7), (17, 33, 19), (64, 129, 128), (64, 96, 64)]
LARGE = (200, 260, 301)
SOME = [(17, 33, 19), (70, 66, 45)]
TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]


def numbers(rng: np.random.Generator, dtype: Any, *shape: int) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def wide(x: Any) -> Any:
    kind = np.dtype(x.dtype).kind
    return x.astype(np.int64 if kind in "iu" else np.complex128 if kind == "c" else np.float64)


def close(got: Any, wanted: Any, epsilon: float) -> None:
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(np.asarray(got).astype(wanted.dtype), wanted, rtol=0, atol=20 * epsilon * scale)


def product(name: str, transposed: tuple[bool, bool], after: str = "{}") -> Callable[..., Any]:
    """A program of the library on matrices that lie transposed or not."""
    a, b = (f"(transpose {x})" if t else x for x, t in zip("ab", transposed, strict=True))
    text = after.format(f"({name} {a} {b})")
    return lf.parse(f"{BLAS}\nmain = λ a b . {text}")["main"]


def operands(dtype: Any, size: tuple[int, int, int], transposed: tuple[bool, bool]) -> tuple[Any, Any, Any]:
    """Two matrices as they lie in memory, and their product."""
    m, n, k = size
    rng = np.random.default_rng(m + n + k)
    a, b = numbers(rng, dtype, m, k), numbers(rng, dtype, k, n)
    lying = [np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), transposed, strict=True)]
    return lying[0], lying[1], wide(a) @ wide(b)


@pytest.mark.parametrize("scalar", LOW)
@pytest.mark.parametrize("transposed", TRANSPOSES, ids=str)
def test_low_precision_with_sums_in_f32(scalar: str, transposed: tuple[bool, bool]) -> None:
    program = product("matmulF32", transposed)
    for size in SOME if any(transposed) else (*SIZES, LARGE):
        a, b, wanted = operands(LOW[scalar], size, transposed)
        got = program(a, b)
        assert got.dtype == np.float32
        close(got, wanted, 1.2e-7)


@pytest.mark.parametrize("scalar", LOW)
def test_results_in_low_precision_are_rounded_once(scalar: str) -> None:
    program = product("matmulF32", (False, False), f"map (map {scalar}) {{}}")
    for size in ((17, 33, 19), (64, 129, 128)):
        a, b, wanted = operands(LOW[scalar], size, (False, False))
        got = program(a, b)
        assert got.dtype == LOW[scalar]
        close(got, wanted, float(ml_dtypes.finfo(LOW[scalar]).eps) / 16)


@pytest.mark.parametrize("transposed", TRANSPOSES, ids=str)
def test_bytes_are_exact(transposed: tuple[bool, bool]) -> None:
    """All values of i8, the least one too: no partial sum saturates."""
    program = product("matmulI32", transposed)
    for size in SOME if any(transposed) else (*SIZES, LARGE):
        a, b, wanted = operands(np.int8, size, transposed)
        got = program(a, b)
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("extreme", [(-128, -128), (-128, 127), (127, 127)], ids=str)
def test_extreme_bytes(extreme: tuple[int, int]) -> None:
    a, b = (np.full(shape, value, np.int8) for shape, value in zip(((17, 515), (515, 33)), extreme, strict=True))
    np.testing.assert_array_equal(product("matmulI32", (False, False))(a, b), wide(a) @ wide(b))


@pytest.mark.parametrize(
    "pair", [("u8", "i8"), ("i8", "u8"), ("u8", "u8"), ("i16", "i16"), ("i8", "i16")], ids="x".join
)
def test_integers_wrap_around(pair: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    types = {"u8": np.uint8, "i8": np.int8, "i16": np.int16}
    a, b = numbers(rng, types[pair[0]], 19, 301), numbers(rng, types[pair[1]], 301, 37)
    got = product("matmulI32", (False, False))(a, b)
    np.testing.assert_array_equal(got, (wide(a) @ wide(b)).astype(np.int32))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.float64], ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("transposed", TRANSPOSES, ids=str)
def test_complex_and_double_precision(dtype: Any, transposed: tuple[bool, bool]) -> None:
    program = product("matmul", transposed)
    for size in SOME if any(transposed) else (*SIZES, LARGE):
        a, b, wanted = operands(dtype, size, transposed)
        close(program(a, b), wanted, 1.2e-7 if dtype == np.complex64 else 2.3e-16)


def test_sums_are_scaled_and_added_to_a_matrix_in_f32() -> None:
    rng = np.random.default_rng(3)
    a, b = numbers(rng, ml_dtypes.bfloat16, 33, 40), numbers(rng, ml_dtypes.bfloat16, 40, 50)
    c, α, β = numbers(rng, np.float32, 33, 50), np.float32(1.5), np.float32(-0.5)
    close(lf.library("blas")["gemmF32"](a, b, c, α, β), 1.5 * wide(a) @ wide(b) - 0.5 * wide(c), 1.2e-7)


def test_work_on_an_operand_before_the_product() -> None:
    """More than a conversion: no instruction of the machine does it."""
    rng = np.random.default_rng(4)
    a, b = numbers(rng, ml_dtypes.bfloat16, 33, 41), numbers(rng, ml_dtypes.bfloat16, 41, 50)
    text = f"{BLAS}\nmain = λ a b . matmul (map (map (λ x . max 0 (f32 x))) a) (map (map f32) b)"
    close(lf.parse(text)["main"](a, b), np.maximum(wide(a), 0) @ wide(b), 1.2e-7)
    ints = [numbers(rng, np.int8, *shape) for shape in ((33, 41), (41, 50))]
    text = f"{BLAS}\nmain = λ a b . matmul (map (map i32) a) (map (map (λ x . i32 x * 3 + 1)) b)"
    np.testing.assert_array_equal(lf.parse(text)["main"](*ints), wide(ints[0]) @ (wide(ints[1]) * 3 + 1))


def test_batches() -> None:
    rng = np.random.default_rng(5)
    text = f"{BLAS}\nmain = λ a b . map (λ (x, y) . matmulI32 x y) (zip a b)"
    a, b = numbers(rng, np.int8, 3, 17, 21), numbers(rng, np.int8, 3, 21, 40)
    np.testing.assert_array_equal(lf.parse(text)["main"](a, b), wide(a) @ wide(b))
    text = text.replace("matmulI32 x", "matmulF32 x")
    a, b = numbers(rng, ml_dtypes.bfloat16, 3, 17, 21), numbers(rng, ml_dtypes.bfloat16, 3, 21, 40)
    close(lf.parse(text)["main"](a, b), wide(a) @ wide(b), 1.2e-7)


def test_empty_products() -> None:
    for size in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        a, b, wanted = operands(ml_dtypes.bfloat16, size, (False, False))
        np.testing.assert_array_equal(product("matmulF32", (False, False))(a, b), wanted)
        a, b, wanted = operands(np.int8, size, (False, False))
        np.testing.assert_array_equal(product("matmulI32", (False, False))(a, b), wanted)
