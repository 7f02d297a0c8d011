"""What a program declares of its operators is tried out."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf
from lithify.lang.errors import TypeMismatch

RIGHT = [
    "operator plus (λ a b . a + b) associative commutative neutral 0",
    "operator larger (λ a b . max a b) associative commutative idempotent neutral (-inf)",
    "operator left (λ a b . a) associative idempotent",
    "operator mean (λ a b . (a + b) * 0.5) commutative idempotent",
    "operator minus (λ a b . a - b)",
]
WRONG = [
    (
        "operator minus (λ a b . a - b) associative",
        r"not associative: \(a \* b\) \* c == a \* \(b \* c\).*a = .*b = .*c = ",
    ),
    ("operator minus (λ a b . a - b) commutative", "not commutative.*a = .*b = "),
    ("operator minus (λ a b . a - b) neutral 0", r"not neutral .*e \* a == a.*a = "),
    ("operator plus (λ a b . a + b) idempotent", "not idempotent"),
    ("operator mean (λ a b . (a + b) * 0.5) associative", "not associative"),
    ("operator larger (λ a b . max a b) associative neutral 0", "not neutral"),
    ("operator left (λ a b . a) commutative", "not commutative"),
]


def program(declaration: str) -> lf.Program:
    name = declaration.split()[1]
    start = "(-inf)" if name == "larger" else "0"
    return lf.parse(f"{declaration}\nf = λ xs . reduce {name} {start} xs\n")["f"]


@pytest.mark.parametrize("declaration", RIGHT)
def test_what_holds_is_accepted(declaration: str) -> None:
    assert str(program(declaration).types("8.f32")[1]) == "f32"
    assert str(program(declaration).types("8.f64")[1]) == "f64"


@pytest.mark.parametrize(("declaration", "message"), WRONG)
def test_what_does_not_hold_is_refused(declaration: str, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        program(declaration).types("8.f32")


def test_operators_on_tuples() -> None:
    text = """
operator best (λ (a : (f32, i32)) (b : (f32, i32)) .
    if a.0 > b.0 then a else if b.0 > a.0 then b else if a.1 <= b.1 then a else b)
  associative commutative idempotent neutral (-inf, 2147483647)
f = λ (xs : n.f32) (ids : n.i32) . reduce best (-inf, 2147483647) (zip xs ids)
"""
    xs = np.array([1, 5, 3, 5], np.float32)
    value, position = lf.parse(text)["f"](xs, np.arange(4, dtype=np.int32))
    assert (value, position) == (5, 1)
    wrong = text.replace("if a.1 <= b.1 then a else b", "a")
    with pytest.raises(TypeMismatch, match=r"not commutative.*a = \("):
        lf.parse(wrong)["f"].types("4.f32", "4.i32")


def test_the_operators_that_the_package_ships() -> None:
    from pathlib import Path

    for path in sorted((Path(lf.__file__).parent / "operators").glob("*.lift")):
        text = path.read_text(encoding="utf-8")
        if "operator " in text:
            module = lf.load(path)
            assert module["amax"].types("9.f32")
