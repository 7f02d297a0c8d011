"""Values at the limits: the largest and the least numbers, infinities, what is no number, ties, constant rows.

What is no number spreads as IEEE 754's operators spread it: to whatever is computed from it, and no further.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import lithify as lf

f32 = np.float32
INF, NAN = np.inf, np.nan
LARGEST, NORMAL, LEAST = (float(x) for x in (np.finfo(f32).max, np.finfo(f32).tiny, np.finfo(f32).smallest_subnormal))
LENGTHS = (1, 3, 40, 1000)


def filled(n: int, *values: float, rest: float = 0) -> Any:
    """The values at the end of an array of n."""
    x = np.full(n, rest, f32)
    x[n - len(values) :] = values
    return x


@pytest.mark.parametrize("scale", [LARGEST / 64, 1e30, 1e-30, NORMAL, 1e-42])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_norm_neither_overflows_nor_vanishes(scale: float, dtype: Any) -> None:
    if dtype is np.float64:
        scale = scale**8 if 0 < scale**8 < INF else (1e300 if scale > 1 else 1e-300)
    x = (np.random.default_rng(1).random(1000) * scale).astype(dtype)
    exact = float(np.sqrt(np.square(x.astype(np.longdouble) / scale).sum()) * np.longdouble(scale))
    np.testing.assert_allclose(lf.library("blas")["nrm2"](x), exact, rtol=1e-4 if scale < NORMAL else 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 7, 300, 5_003])
@pytest.mark.parametrize("seed", range(4))
def test_the_norm_of_numbers_of_all_magnitudes(dtype: Any, n: int, seed: int) -> None:
    """From the least to the largest exponent, in windows of several widths: so also where two ways to sum meet."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    low, high = info.minexp - info.nmant, info.maxexp - 8
    for width in (1, 20, high - low):
        for start in rng.integers(low, high - width + 1, 12):
            x = np.ldexp(rng.uniform(-1, 1, n), rng.integers(start, start + width, n)).astype(dtype)
            largest = np.abs(x).max()
            if largest == 0:
                continue
            exact = np.sqrt(np.square(x.astype(np.longdouble) / largest).sum()) * np.longdouble(largest)
            np.testing.assert_allclose(
                lf.library("blas")["nrm2"](x), dtype(exact), rtol=n * info.eps, atol=info.smallest_subnormal
            )


@pytest.mark.parametrize("n", LENGTHS[1:])
@pytest.mark.parametrize(
    ("values", "expected"),
    [((0, 0), 0), ((3, -4), 5), ((LEAST, 0), LEAST), ((INF, 1), INF), ((-INF, -INF), INF), ((NAN, 0), NAN),
     ((0, NAN), NAN), ((NAN, NAN), NAN), ((INF, NAN), NAN), ((LARGEST, LARGEST), INF)],
)  # fmt: skip
def test_the_norm_of_special_values(n: int, values: tuple[float, ...], expected: float) -> None:
    np.testing.assert_allclose(lf.library("blas")["nrm2"](filled(n, *values)), f32(expected), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "asum", "dot"])
@pytest.mark.parametrize("values", [(INF, 1), (-INF, 1), (INF, -INF), (NAN, 1), (NAN, INF)])
def test_sums_of_special_values(name: str, values: tuple[float, ...]) -> None:
    for n in LENGTHS[1:]:
        x = filled(n, *values, rest=0.5)
        arguments = (x, np.ones_like(x)) if name == "dot" else (x,)
        with np.errstate(invalid="ignore"):
            expected = (np.abs(x) if name == "asum" else x).sum()
        np.testing.assert_array_equal(lf.library("blas")[name](*arguments), expected)


@pytest.mark.parametrize("n", [*LENGTHS, 100_003])
def test_the_largest_is_the_first_of_equals(n: int) -> None:
    amax = lf.library("blas")["amax"]
    rng = np.random.default_rng(n)
    for x in (
        np.zeros(n),
        np.full(n, -2),
        np.full(n, INF),
        np.where(np.arange(n) % 3 == 2, -1, 1),
        rng.integers(-5, 6, n),
    ):
        assert amax(x.astype(f32)) == np.abs(x).argmax()
    x = np.ones(n, f32)
    x[n // 2 :: 7] = NAN  # as for NumPy, what is no number is the largest
    x[-1] = INF if n > 1 else NAN
    assert amax(x) == np.abs(x).argmax()


@pytest.mark.parametrize("n", LENGTHS[1:])
@pytest.mark.parametrize(
    "values",
    [(LARGEST, -LARGEST), (1e4, -1e4, 0), (-INF, 0, 0), (-INF, -LARGEST), (-INF,), (INF, 0), (NAN, 0), (1e-40, -1e-40)],
)
def test_softmax(n: int, values: tuple[float, ...]) -> None:
    """As large as may be, and -inf (weight 0). Rows of nothing but -inf, or with inf, are no numbers."""
    rows = np.stack([filled(n, *values, rest=-INF), filled(n, *values), np.arange(n, dtype=f32)])
    with np.errstate(invalid="ignore"):
        expected = scipy.special.softmax(rows.astype(np.float64), axis=1)
    np.testing.assert_allclose(lf.library("rows")["softmax"](rows), expected, rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize("n", LENGTHS)
def test_constant_rows(n: int) -> None:
    """Their variance is (nearly) 0: eps keeps layernorm finite, and the result is the shift."""
    library = lf.library("rows")
    rows = np.repeat(np.array([[0], [0.1], [-3e3], [1e-30]], f32), n, axis=1)
    scale, shift = np.linspace(1, 2, n, dtype=f32), np.linspace(-1, 1, n, dtype=f32)
    wanted = np.broadcast_to(shift, rows.shape)
    np.testing.assert_allclose(
        library["layernorm"](rows, scale, shift, f32(1e-5)), wanted, atol=0.2 if n > 99 else 2e-3
    )
    np.testing.assert_allclose(library["variance"](rows), np.zeros(4), atol=1e-6)
    norm = library["rmsnorm"](rows, scale, f32(1e-5))
    np.testing.assert_allclose(norm[1:3], np.sign(rows[1:3]) * scale, rtol=1e-3)
    np.testing.assert_array_equal(norm[0], np.zeros(n))


def test_variance_of_rows_far_from_zero() -> None:
    """The mean is subtracted before squares are summed."""
    rows = np.random.default_rng(2).standard_normal((5, 1000)) + 1e4
    rows = rows.astype(f32)
    np.testing.assert_allclose(lf.library("rows")["variance"](rows), rows.astype(np.float64).var(1), rtol=1e-4)


@pytest.mark.parametrize(
    ("text", "name", "more", "reach"),
    [("image", "binomial", (), 1), ("image", "gaussian", (), 2), ("image", "unsharp", (f32(0.5),), 2),
     ("image", "harris", (f32(0.05),), 2), ("stencil", "jacobi2D9", (), 1)],
)  # fmt: skip
def test_what_is_no_number_spreads_as_far_as_the_windows(
    text: str, name: str, more: tuple[Any, ...], reach: int
) -> None:
    image = np.random.default_rng(3).random((40, 50), dtype=f32)
    clean = lf.library(text)[name](image, *more)
    image[20, 30] = NAN
    result = lf.library(text)[name](image, *more)
    far = np.ones(image.shape, bool)
    far[20 - reach : 21 + reach, 30 - reach : 31 + reach] = False
    np.testing.assert_array_equal(result[far], clean[far])
    assert np.isnan(result[20, 31])
    assert np.isnan(result[20 + reach, 30 - reach])


def test_scans_of_special_values() -> None:
    x = np.array([1, INF, 2, -INF, 3], f32)
    np.testing.assert_array_equal(lf.library("layout")["inclusiveScan"](x), [1, INF, INF, NAN, NAN])
    np.testing.assert_array_equal(lf.library("layout")["exclusiveScan"](x), [0, 1, INF, INF, NAN])


@pytest.mark.parametrize("n", [1_001, 100_003])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_the_norm_of_many_narrow_numbers(dtype: Any, n: int) -> None:
    """The sum of squares is above the largest f16, and its last bits are below the precision of both types."""
    x = np.random.default_rng(n).uniform(-30, 30, n).astype(dtype)
    found = lf.library("blas")["nrm2F32"](x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.linalg.norm(x.astype(np.float64)), rtol=1e-6)


NARROW = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("n", [1, 2, 1_001, 100_003])
def test_the_norm_is_right_wherever_the_type_holds_it(dtype: Any, n: int, pocl_device: object) -> None:
    """Of many numbers, of the largest that have such a norm, and of the least; infinite only beyond the largest."""
    rng = np.random.default_rng(n)
    info = ml_dtypes.finfo(dtype)
    largest, least = float(info.max), float(info.smallest_subnormal)
    for size in (1.0, least, 8 * least, largest / np.sqrt(n) / 1.5):
        x = (rng.uniform(-1, 1, n) * size).astype(dtype)
        exact = np.linalg.norm(x.astype(np.float64))
        if exact > largest:
            continue
        for device in ("cpu", "c", "opencl:0"):
            found = lf.library("blas")["nrm2"].on(device)(x)
            assert found.dtype == dtype
            np.testing.assert_allclose(float(found), exact, rtol=float(info.eps), atol=least, err_msg=device)


def test_a_norm_beyond_f16_is_infinite() -> None:
    x = np.full(4, 60000, np.float16)
    assert np.isinf(lf.library("blas")["nrm2"](x))
    np.testing.assert_allclose(lf.library("blas")["nrm2F32"](x), 120000, rtol=1e-3)
