"""The programs that the Lift slides print are read as they stand, have the right type and the right value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.lang import Elaborated, Type, array, elaborate_term, parse_expression, read_file, show
from lithify.lang.build import param
from lithify.lang.scalars import Scalar, f32, f64
from lithify.lang.term import contains
from lithify.lang.types import Array

SLIDES = Path(__file__).parents[2] / "examples" / "slides"
RNG = np.random.default_rng(20170206)


def elaborate(file: str, name: str, *types: Type, **sizes: int) -> Elaborated:
    return read_file(SLIDES / f"{file}.lift")[name].elaborate(types, sizes)


def value_of(type_: Type) -> Any:
    shape = []
    while isinstance(type_, Array):
        assert type_.size.constant is not None
        shape.append(type_.size.constant)
        type_ = type_.element
    assert isinstance(type_, Scalar)
    return RNG.integers(-4, 5, shape).astype(type_.dtype) if shape else type_.dtype.type(RNG.integers(-4, 5))


def check(program: Elaborated, type_: str, expected: Callable[..., Any]) -> None:
    values = {name: value_of(t) for name, t in program.parameters}
    assert str(program.type) == type_
    inputs = {name: param(name, t) for name, t in program.parameters}
    assert elaborate_term(parse_expression(show(program.term)), inputs) is program.term
    np.testing.assert_array_equal(evaluate(program.term, values), expected(*[v.astype(float) for v in values.values()]))


@pytest.mark.parametrize("file", ["high_level", "high_level_pipes"])
@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_high_level_programs(file: str, n: int) -> None:
    xs, mat = array(n, f32), array(n, n + 2, f32)
    check(elaborate(file, "scal", f32, xs), f"{n}.f32", lambda a, x: a * x)
    check(elaborate(file, "asum", xs), "f32", lambda x: np.abs(x).sum())
    check(elaborate(file, "dotProduct", xs, xs), "f32", np.dot)
    check(
        elaborate(file, "gemv", mat, array(n + 2, f32), xs, f32, f32),
        f"{n}.f32",
        lambda m, x, y, alpha, beta: alpha * (m @ x) + beta * y,
    )
    check(elaborate(file, "mm", mat, array(3, n + 2, f32)), f"{n}.3.f32", lambda a, b: a @ b.T)


def test_both_notations_are_one_program() -> None:
    types = array(4, 6, f64), array(6, f64), array(4, f64), f64, f64
    assert elaborate("high_level", "gemv", *types).term is elaborate("high_level_pipes", "gemv", *types).term


def test_gemv_scales_a_number() -> None:
    """The one-element array of Lift's reduction is its element where `scal` scales it: no detour is left."""
    term = elaborate("high_level", "gemv", array(4, 6, f32), array(6, f32), array(4, f32), f32, f32).term
    assert not contains(term, lambda t: t.kind in ("at", "replicate", "array"))


@pytest.mark.parametrize(("n", "block"), [(512, 512), (1024, 256), (2048, 1024)])
def test_walkthrough(n: int, block: int) -> None:
    check(elaborate("walkthrough", "sum", array(n, f32)), "f32", np.sum)
    program = elaborate("walkthrough", "vecSum", array(n, f32), blockSize=block)
    check(program, "f32", np.sum)
    assert program.sizes["blockSize"].constant == block
    text = show(program.term, 10**6)
    assert text.startswith("reduce (+) 0 (join (map[group] (λx. join (to[heap] (map[item] (")
    assert text.count("map[lane]") == 6
    assert "to[local] (map[item] (λx1. reduce[seq] (+) 0 x1) (split " in text


@pytest.mark.parametrize(
    ("shape", "tile"),
    [((8, 6, 4), (2, 2, 2)), ((6, 4, 9), (3, 2, 3)), ((4, 4, 4), (4, 4, 4)), ((4, 3, 5), (2, 1, 1))],
)
def test_matrix_multiplication(shape: tuple[int, int, int], tile: tuple[int, int, int]) -> None:
    (rows, columns, depth), (n, m, k) = shape, tile
    types = array(rows, depth, f32), array(depth, columns, f32)
    result = f"{rows}.{columns}.f32"
    check(elaborate("matrix_multiplication", "matMult", *types), result, np.matmul)
    check(elaborate("matrix_multiplication", "tiled", *types, n=n, m=m, k=k), result, np.matmul)
    for block in [d for d in range(1, n + 1) if n % d == 0]:
        program = elaborate("matrix_multiplication", "registerBlocked", *types, n=n, m=m, k=k, l=block)
        check(program, result, np.matmul)


def square(x: Any) -> Any:
    return x * x


PRIMITIVES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "mapped": ("16.f32", square),
    "reduced": ("f32", np.sum),
    "parts": ("4.4.f32", lambda x: x.reshape(4, 4)),
    "iterated": ("16.f32", lambda x: x**8),
    "strided": ("16.f32", lambda x: x.reshape(4, 4).T.reshape(16)),
    "splitJoin": ("16.f32", square),
    "fused": ("16.f32", lambda x: square(x + 1)),
    "twoSteps": ("f32", np.sum),
    "reduceRule": ("f32", np.sum),
    "partial": ("f32", np.sum),
    "partsOfParts": ("f32", np.sum),
    "reordered": ("f32", np.sum),
    "halved": ("2.f32", lambda x: x.reshape(2, 8).sum(1)),
    "workgroups": ("16.f32", square),
    "globally": ("16.f32", square),
    "sequentially": ("16.f32", square),
    "inLocalMemory": ("16.f32", lambda x: square(x + 1)),
    "vectors": ("16.f32", square),
    "fusedReduction": ("f32", lambda x: np.sum(x + 1)),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives(name: str) -> None:
    check(elaborate("primitives", name, array(16, f32), n=4), *PRIMITIVES[name])


def test_primitives_of_several_arrays() -> None:
    xs, ys = np.arange(3.0), np.arange(3.0) + 7
    program = elaborate("primitives", "zipped", array(3, f64), array(3, f64))
    assert str(program.type) == "3.(f64, f64)"
    np.testing.assert_array_equal(evaluate(program.term, {"xs": xs, "ys": ys}), (xs, ys))
    program = elaborate("primitives", "joined", array(2, 3, f32))
    check(program, "6.f32", lambda x: x.reshape(6))


def test_every_example_is_tested() -> None:
    tested = {"high_level", "high_level_pipes", "walkthrough", "matrix_multiplication", "primitives"}
    assert {path.stem for path in SLIDES.glob("*.lift")} == tested
    names = set(read_file(SLIDES / "primitives.lift")) - {"f", "g", "zipped", "joined"}
    assert names == set(PRIMITIVES)
