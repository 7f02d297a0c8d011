"""Sums of products by matrix multiplication: the values of the definition, for every way in which factors vary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.lang.module import read_text
from lithify.lang.scalars import SCALARS
from lithify.lang.types import array

N, M, K, G = 3, 4, 5, 2
A, B = f"(a : {G}.{N}.{K}.f64)", f"(b : {G}.{M}.{K}.f64)"
DOT = "reduce (+) 0 (map (*) (zip x y))"
# programs over a and b, and what they are in einsum's notation
PROGRAMS = {
    f"map (λ (a, b). map (λx. map (λy. {DOT}) b) a) (zip a b)": "gnk,gmk->gnm",
    f"map (λ (a, b). map (λy. map (λx. {DOT}) a) b) (zip a b)": "gnk,gmk->gmn",
    f"map (λa. map (λb. map (λx. map (λy. {DOT}) b) a) b) a": "gnk,hmk->ghnm",
    f"map (λa. map (λx. map (λb. map (λy. {DOT}) b) b) a) a": "gnk,hmk->gnhm",
    f"map (λ (a, b). map (λx. let y = x in {DOT}) a) (zip a b)": "gnk,gnk,->gn",
    "map (λ (a, b). map (λx. map (λy. reduce (λacc p. acc + p.0 * p.1) 0 (zip x y)) b) a) (zip a b)": "gnk,gmk->gnm",
    "map (λ (a, b). map (λx. map (λy. reduce (λacc (u, v). acc + (u + u) * v) 0 (zip x y)) b) a) (zip a b)":
        "gnk,gmk,->gnm",
}  # fmt: skip


@pytest.mark.parametrize("body", PROGRAMS)
def test_values(body: str) -> None:
    random = np.random.default_rng(3)
    a, b = random.random((G, N, K)), random.random((G, M, K))
    program = read_text(f"f = λ {A} {B}. {body}")["f"].elaborate(None)
    subscripts = PROGRAMS[body]
    operands: list[Any] = [a, b]
    if subscripts == "gnk,gnk,->gn":
        operands = [a, a, 1.0]
    elif subscripts.count(",") == 2:
        operands.append(2.0)
    expected = np.einsum(subscripts, *operands)
    found = evaluate(program.term, {n: v for n, v in zip("ab", (a, b), strict=True) if n in program.term.parameters})
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("scalar", ["i8", "u16", "i32", "f16", "complex64"])
def test_other_types(scalar: str) -> None:
    random = np.random.default_rng(4)
    dtype = SCALARS[scalar].dtype
    a, b = ((random.random((n, 40)) * 100).astype(dtype) for n in (3, 4))
    text = "f = λ a b. map (λx. map (λy. reduce (+) 0 (map (*) (zip x y))) b) a"
    program = read_text(text)["f"].elaborate([array(3, 40, SCALARS[scalar]), array(4, 40, SCALARS[scalar])])
    found = evaluate(program.term, {"a": a, "b": b})
    kind = {"f16": np.float64, "complex64": np.complex128}.get(scalar, dtype)
    expected = a.astype(kind) @ b.astype(kind).T  # integers wrap around in NumPy, too
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_in_the_declared_types_sums_are_made_in_order() -> None:
    xs = np.array([2.0**12, 1.0, 1.0], np.float16)
    program = read_text("f = λ (x : 3.f16) (y : 3.f16). reduce (+) 0 (map (*) (zip x y))")["f"].elaborate(None)
    values = {"x": xs, "y": np.ones(3, np.float16)}
    assert evaluate(program.term, values) == 2**12 + 2
    assert evaluate(program.term, values, exact=False) == 2**12


def test_a_sum_that_starts_elsewhere() -> None:
    text = "f = λ (x : 3.f64) (y : 3.f64) (z : f64). reduce (+) z (map (*) (zip x y))"
    program = read_text(text)["f"].elaborate(None)
    assert evaluate(program.term, {"x": np.arange(3.0), "y": np.ones(3), "z": 0.5}) == 3.5


def test_sums_of_sums_of_products() -> None:
    """The sum of one block is what the next one starts with."""
    program = read_text(
        "f = λ (xs : 8.f32) (ys : 8.f32) . "
        "reduce (λ acc b . reduce (λ s p . s + p.0 * p.1) acc b) 0 (split 2 (zip xs ys))"
    )["f"]
    xs, ys = np.arange(8.0), np.arange(8.0) - 3
    assert evaluate(program.elaborate().term, {"xs": xs, "ys": ys}) == xs @ ys
