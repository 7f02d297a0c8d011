"""Programs that the phases are tried on: a product, a sum, a matrix by a vector, a stencil."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lithify.lang.module import Elaborated, read_file
from lithify.lang.scalars import f32
from lithify.lang.types import array

ROOT = Path(__file__).parents[3]
SLIDES = ROOT / "examples" / "slides" / "matrix_multiplication.lift"
OPERATORS = ROOT / "src" / "lithify" / "operators"


def product(rows: int, depth: int, columns: int) -> Elaborated:
    return read_file(SLIDES)["matMult"].elaborate([array(rows, depth, f32), array(depth, columns, f32)])


def dot(n: int) -> Elaborated:
    return read_file(OPERATORS / "blas.lift")["dot"].elaborate([array(n, f32), array(n, f32)])


def gemv(rows: int, columns: int) -> Elaborated:
    types = {"mat": array(rows, columns, f32), "xs": array(columns, f32), "ys": array(rows, f32)}
    return read_file(OPERATORS / "blas.lift")["gemv"].elaborate({**types, "α": f32, "β": f32})


def jacobi(rows: int, columns: int) -> Elaborated:
    return read_file(OPERATORS / "stencil.lift")["jacobi2D5"].elaborate([array(rows, columns, f32)])


def inputs(program: Elaborated, seed: int = 0) -> dict[str, np.ndarray]:
    """Small whole numbers for every parameter, so that sums are exact."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, type_ in program.parameters:
        shape = []
        while hasattr(type_, "element"):
            shape.append(type_.size.constant)
            type_ = type_.element
        found[name] = rng.integers(-4, 4, shape).astype(np.float32)
    return found
