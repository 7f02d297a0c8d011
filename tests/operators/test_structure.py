"""What the default lowering for CPUs makes of the programs: kernels, intermediate arrays, and memory reads."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
import pytest

import lithify as lf
from lithify.kernel import ir
from lithify.lowering.access import accesses
from tests.operators.inputs import Maker, arguments
from tests.operators.test_values import SHAPES

SIDE = 512
SHAPE_OF_DIMENSIONS = {1: (SIDE * SIDE,), 2: (SIDE, SIDE), 3: (64, 64, 64), 4: (16, 32, 16, 32)}
ELEMENTS = SIDE * SIDE


def kernels(text: str, name: str) -> ir.Program:
    shape = SHAPE_OF_DIMENSIONS[len(SHAPES[name][0])]
    return lf.library(text)[name].kernels(*arguments(name, shape, Maker(np.float32)))


def size(buffer: ir.Buffer) -> int:
    return prod(s.constant or 0 for s in buffer.shape)


def loads(program: ir.Program) -> Counter[str]:
    """How many elements of each array are loaded: what one iteration reads several times counts once."""
    found: Counter[str] = Counter()
    seen = set()
    for access in accesses(program):
        where = access.buffer, access.times, *((loop, access.places(loop)) for loop in access.strides)
        if not access.is_store and where not in seen:
            seen.add(where)
            found[access.buffer.name] += access.times
    return found


ONE_KERNEL = {
    "blas": ["scal", "axpy", "gemv", "gemvT", "ger", "gesummv", "gemm", "gemmTN"],
    "layout": ["transpose2D", "swapMiddle", "channelsLast", "reverseDims"],
    "rows": ["softmax", "layernorm", "rmsnorm", "variance"],
    "image": ["binomial", "gaussian", "alongRow", "alongColumn", "unsharp", "harris"],
    "stencil": ["jacobi2D5", "jacobi2D9", "gradient2D", "jacobi3D7", "poisson3D19", "srad1", "srad2"],
    "science": ["nn", "phiMag", "mriQ"],
}


@pytest.mark.parametrize(
    ("text", "name"), [(t, n) for t, names in ONE_KERNEL.items() for n in names], ids=lambda value: value
)
def test_one_kernel_without_intermediate_arrays(text: str, name: str) -> None:
    program = kernels(text, name)
    assert len(program.kernels) == 1
    assert program.temporaries == ()


@pytest.mark.parametrize("name", ["sum", "asum", "dot", "nrm2", "amax", "inclusiveScan", "exclusiveScan"])
def test_reductions_and_scans_keep_one_value_a_piece(name: str) -> None:
    program = kernels("layout" if name.endswith("Scan") else "blas", name)
    assert sum(map(size, program.temporaries)) < ELEMENTS / 100


@pytest.mark.parametrize(
    ("text", "name", "array", "times"),
    [("blas", "scal", "xs", 1), ("blas", "sum", "xs", 1), ("blas", "dot", "ys", 1), ("blas", "amax", "xs", 1),
     ("blas", "nrm2", "xs", 1), ("blas", "gemv", "mat", 1), ("blas", "gemvT", "mat", 1),
    ("layout", "transpose2D", "xs", 1),
     ("rows", "softmax", "rows", 2), ("rows", "variance", "rows", 2),
     ("rows", "layernorm", "rows", 3), ("science", "nn", "lats", 1)],
)  # fmt: skip
def test_how_often_an_array_is_read(text: str, name: str, array: str, times: int) -> None:
    """Rows are read again from the caches: for their maximum, or mean, before what follows from it."""
    assert loads(kernels(text, name))[array] <= times * ELEMENTS


def test_softmax_keeps_one_row_of_weights() -> None:
    (kernel,) = kernels("rows", "softmax").kernels
    assert sum(size(b) for b in kernel.scratch if b.memory.name == "thread") == SIDE


def test_harris_keeps_nothing_of_the_products() -> None:
    """They cost less to compute again than to store: no array, and the image is read by blocks of rows."""
    (kernel,) = kernels("image", "harris").kernels
    assert all(b.memory.name == "private" for b in kernel.scratch)


def test_unsharp_keeps_nothing_of_the_blurred_image() -> None:
    (kernel,) = kernels("image", "unsharp").kernels
    assert all(b.memory.name == "private" for b in kernel.scratch)


def test_separable_convolution_keeps_one_array_at_most() -> None:
    program = kernels("image", "separable")
    assert sum(map(size, program.temporaries)) <= ELEMENTS
