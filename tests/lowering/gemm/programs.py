"""Products in many forms, with arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from lithify.lang.module import Elaborated, read_text
from lithify.lang.scalars import f32
from lithify.lang.types import array

FORMS = {
    "plain": "a b . map (λ row . map (λ col . dot row col) (transpose b)) a",
    "left transposed": "a b . map (λ row . map (λ col . dot row col) (transpose b)) (transpose a)",
    "right transposed": "a b . map (λ row . map (λ col . dot row col) b) a",
    "epilogue": "a b c . map (λ (r, s) . map (λ (q, x) . max 0 (2 * dot r q + x)) (zip (transpose b) s)) (zip a c)",
    "bias": "a b c . map (λ row . map (λ (col, x) . dot row col + x) (zip (transpose b) c)) a",
    "swapped pairs": "a b . map (λ row . map (λ col . dot col row) (transpose b)) a",
    "batched": "a b . map (λ (p, q) . map (λ row . map (λ col . dot row col) (transpose q)) p) (zip a b)",
}


def program_of(form: str, m: int, n: int, k: int, seed: int = 0) -> tuple[Elaborated, list[np.ndarray], np.ndarray]:
    """A form at a size, arguments for it (small integers, so that any order of summation is exact), and the result."""
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> np.ndarray:
        return rng.integers(-4, 5, shape).astype(np.float32)

    a, b = some(m, k), some(k, n)
    arguments, result = [a, b], a @ b
    if form == "left transposed":
        arguments = [np.ascontiguousarray(a.T), b]
    elif form == "right transposed":
        arguments = [a, np.ascontiguousarray(b.T)]
    elif form == "epilogue":
        c = some(m, n)
        arguments, result = [a, b, c], np.maximum(0, 2 * result + c)
    elif form == "bias":
        c = some(n)
        arguments, result = [a, b, c], result + c
    elif form == "batched":
        a, b = some(3, m, k), some(3, k, n)
        arguments, result = [a, b], a @ b
    definition = read_text(f"x = λ {FORMS[form]}")["x"]
    return definition.elaborate([array(*x.shape, f32) for x in arguments]), arguments, result


def by_name(program: Elaborated, arguments: list[np.ndarray]) -> dict[str, Any]:
    """The arguments by the names of the program's parameters."""
    return dict(zip([name for name, _ in program.parameters], arguments, strict=True))
