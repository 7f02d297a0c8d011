"""Which programs are matrix multiplications, and which problem each is."""

from __future__ import annotations

import pytest

from lithify.lang.module import read_text
from lithify.lang.scalars import f16, f32
from lithify.lang.types import Type, array
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Problem

A, B, C = array(5, 3, f32), array(3, 4, f32), array(5, 4, f32)
MATMUL = "map (λ row . map (λ col . dot row col) (transpose b)) a"


def problem(text: str, *types: Type) -> Problem | None:
    term = read_text(f"x = λ {text}")["x"].elaborate(list(types)).term
    found = recognise(name_loops(term))
    return None if found is None else found[1]


@pytest.mark.parametrize(
    ("text", "types", "line"),
    [
        (f"a b . {MATMUL}", (A, B), "gemm -t f32 -transA false -transB false -g 1 -m 5 -n 4 -k 3"),
        (
            "a b . map (λ row . map (λ col . dot row col) b) (transpose a)",
            (array(3, 5, f32), array(4, 3, f32)),
            "gemm -t f32 -transA true -transB true -g 1 -m 5 -n 4 -k 3",
        ),
        (
            "a b . map (λ (p, q) . map (λ row . map (λ col . dot row col) (transpose q)) p) (zip a b)",
            (array(2, 5, 3, f32), array(2, 3, 4, f32)),
            "gemm -t f32 -transA false -transB false -g 2 -m 5 -n 4 -k 3",
        ),
        (
            "a b . map (λ pair . let p = pair.0 in let q = pair.1 in "
            "map (λ row . map (λ col . dot row col) (transpose q)) p) (zip a b)",
            (array(2, 5, 3, f32), array(2, 3, 4, f32)),
            "gemm -t f32 -transA false -transB false -g 2 -m 5 -n 4 -k 3",
        ),
        (
            "a b . map (λ row . map (λ col . dot (map f32 row) (map f32 col)) (transpose b)) a",
            (array(5, 3, f16), array(3, 4, f16)),
            "gemm -t f16 -transA false -transB false -g 1 -m 5 -n 4 -k 3 -out_datatype f32",
        ),
    ],
    ids=["plain", "transposed", "batched", "batched with names", "converted"],
)
def test_problem_lines(text: str, types: tuple[Type, ...], line: str) -> None:
    found = problem(text, *types)
    assert found is not None
    assert str(found) == line


@pytest.mark.parametrize(
    "text",
    [
        "a b . map (λ row . map (λ col . max 0 (dot row col)) (transpose b)) a",
        f"a b . map (map (λ x . max 0 x)) ({MATMUL})",
        f"a b c . map (λ (r, s) . map (+) (zip r s)) (zip ({MATMUL}) c)",
        "a b c . map (λ (row, s) . map (λ (col, x) . 2 * dot row col + x) (zip (transpose b) s)) (zip a c)",
        f"a b . transpose ({MATMUL})",
    ],
)
def test_work_around_the_product_is_part_of_it(text: str) -> None:
    found = problem(text, *(A, B, C)[: text.partition(".")[0].count(" ")])
    assert found is not None
    assert (found.sizes, found.scalars["acc"]) == ({"g": 1, "m": 5, "n": 4, "k": 3}, "f32")


@pytest.mark.parametrize(
    "text",
    [
        "a . map (λ row . map (λ x . x * reduce (+) 0 row) row) a",  # nothing is read along the inner loop
        "a . map (reduce (+) 0) a",
        "a b . map (λ row . reduce (+) 0 row) a",
        "a . map (λ row . map (λ w . reduce (+) 0 w) (slide 2 1 row)) a",  # not a reduction of pairs
        "a b . map[seq] (λ row . map (λ col . dot row col) (transpose b)) a",  # has a level already
    ],
)
def test_other_programs_are_none(text: str) -> None:
    assert problem(text, *(A, B)[: text.partition(".")[0].count(" ")]) is None
