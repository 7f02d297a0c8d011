"""Every program on the CPU, against NumPy and SciPy in float64, at sizes around vectors, pieces and borders."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lithify as lf
from tests.operators.inputs import Maker, agree, arguments
from tests.operators.references import REFERENCES, reference

Shape = tuple[int, ...]

VECTORS: list[Shape] = [(0,), (1,), (2,), (15,), (16,), (17,), (255,), (1000,), (100_003,)]
MATRICES: list[Shape] = [(1, 1), (1, 17), (17, 1), (7, 33), (64, 16), (65, 130), (300, 401)]
EMPTY_TOO = [(0, 3), (3, 0), *MATRICES]
PRODUCTS: list[Shape] = [(1, 1, 1), (3, 5, 7), (16, 16, 16), (33, 17, 40), (70, 65, 64)]
FOURS: list[Shape] = [(1, 1, 1, 1), (2, 3, 4, 5), (3, 16, 1, 17), (4, 33, 16, 64)]
IMAGES: list[Shape] = [(1, 1), (1, 20), (20, 1), (5, 4), (16, 16), (18, 35), (131, 300)]
VOLUMES: list[Shape] = [(1, 1, 1), (2, 3, 4), (5, 17, 16), (20, 40, 67)]

SHAPES: dict[str, list[Shape]] = {
    **dict.fromkeys(("scal", "axpy", "asum", "sum", "dot", "nrm2", "nn", "phiMag"), VECTORS),
    **dict.fromkeys(("inclusiveScan", "exclusiveScan"), VECTORS),
    **dict.fromkeys(("amax", "softmaxRow"), VECTORS[1:]),
    **{name: [(0, 3), (3, 0), *MATRICES] for name in ("gemv", "gemvT", "ger", "gesummv")},
    **dict.fromkeys(("gemm", "gemmNT", "gemmTN", "gemmTT"), PRODUCTS),
    "matmul": [(1, 1), (5, 3), (33, 20)],
    "transpose2D": [(0, 3), *MATRICES, (128, 256)],
    **dict.fromkeys(("swapMiddle", "channelsLast", "reverseDims"), FOURS),
    **dict.fromkeys(("softmax", "layernorm", "rmsnorm", "variance"), MATRICES),
    **dict.fromkeys(("binomial", "gaussian", "alongRow", "alongColumn", "separable", "unsharp", "harris"), IMAGES),
    **dict.fromkeys(("jacobi2D5", "jacobi2D9", "gradient2D", "srad1", "srad2"), IMAGES),
    **dict.fromkeys(("jacobi3D7", "poisson3D19"), VOLUMES),
    "mriQ": [(1, 1), (17, 5), (40, 100), (100, 33)],
}
# Terms of the longest sum in a result, by the shape.
_ALL = {"scal", "axpy", "asum", "sum", "dot", "nrm2", "inclusiveScan", "exclusiveScan", "softmaxRow"}
PROGRAMS = [(text, name) for text, programs in REFERENCES.items() for name in programs]


def terms(name: str, shape: Shape) -> int:
    return shape[0] if name in _ALL else max(shape)


def run(text: str, name: str, shape: Shape, dtype: Any) -> None:
    given = arguments(name, shape, Maker(dtype, seed=sum(shape)))
    kept = [np.array(a) for a in given]
    got = lf.library(text)[name](*given)
    agree(got, reference(text, name, given), dtype, terms(name, shape))
    for before, after in zip(kept, given, strict=True):
        np.testing.assert_array_equal(before, after)


def test_every_program_is_tested() -> None:
    auxiliary = {"larger", "windows", "border", "sum3", "sum5", "structure", "windows2", "windows3"}
    auxiliary |= {"matmulF32", "matmulI32", "gemmF32"}  # see test_mixed_products
    auxiliary |= {"byRange", "scale", "leastSum", "scaledSquares", "norm", "nrm2F32"}  # see test_extremes
    shipped = {(text, name) for text in REFERENCES for name in lf.library(text) if name not in auxiliary}
    assert shipped == set(PROGRAMS)
    assert {name for _, name in PROGRAMS} == set(SHAPES)


@pytest.mark.parametrize(("text", "name"), PROGRAMS, ids=lambda value: value)
def test_values(text: str, name: str) -> None:
    for shape in SHAPES[name]:
        run(text, name, shape, np.float32)


@pytest.mark.parametrize(("text", "name"), PROGRAMS, ids=lambda value: value)
def test_values_in_double_precision(text: str, name: str) -> None:
    run(text, name, SHAPES[name][-2], np.float64)


_ANY_SCALAR = ("scal", "axpy", "sum", "dot", "transpose2D", "swapMiddle", "inclusiveScan", "exclusiveScan", "ger")
_SCALARS = (np.float16, ml_dtypes.bfloat16, np.int8, np.int32, np.int64, np.uint8, np.complex64, np.complex128)


@pytest.mark.parametrize("dtype", _SCALARS, ids=lambda t: np.dtype(t).name)
def test_values_of_other_scalars(dtype: Any) -> None:
    for text, name in PROGRAMS:
        if name in _ANY_SCALAR:
            shape = (37,) if len(SHAPES[name][0]) == 1 else SHAPES[name][3]
            run(text, name, shape, dtype)


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_every_permutation_of_four_dimensions(order: tuple[int, ...]) -> None:
    """Made of exchanges of neighbours; what is generated depends on which dimension ends up where."""
    now, steps = list(range(4)), []
    for place in range(4):
        for k in range(now.index(order[place]), place, -1):
            now[k - 1], now[k] = now[k], now[k - 1]
            steps.append("map (" * (k - 1) + "transpose" + ")" * (k - 1))
    program = lf.parse(f"permute = {' . '.join(reversed(steps)) or 'map (λ x . x)'}")["permute"]
    for shape in ((2, 3, 4, 5), (4, 8, 16, 32)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(program(x), x.transpose(order))
