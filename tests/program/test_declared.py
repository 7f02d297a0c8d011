"""What a program declares of its operators is tried out."""

from __future__ import annotations

from typing import Any

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


# ---- in Python -------------------------------------------------------------------------------------------------------


@lf.operator(associative=True, commutative=True, neutral=(-np.inf, 2**31 - 1))
def best(p, q):  # type: ignore[no-untyped-def]
    (a, i), (b, j) = p, q
    return lf.select((b > a) | ((b == a) & (j < i)), q, p)


@lf.program
def argmax(xs):  # type: ignore[no-untyped-def]
    ids = lf.generate(lf.length(xs), lambda i: lf.i32(i))
    return lf.zip(xs, ids) >> lf.reduce(best, (-np.inf, 2**31 - 1)) >> (lambda p: p[1])


@pytest.mark.parametrize("size", [1, 7, 33, 1000, 100_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_operator_in_python(size: int, dtype: type) -> None:
    xs = np.random.default_rng(size).integers(0, 50, size).astype(dtype)
    assert argmax(xs) == xs.argmax()
    if size >= 1000:  # what is declared is used: there are sums side by side
        assert any("lanes" in name or "partial" in name for name in argmax.derivation(xs).names())


@pytest.mark.parametrize(
    ("function", "properties", "message"),
    [
        (lambda a, b: a - b, {"associative": True}, "operator minus is not associative"),
        (lambda a, b: a - b, {"commutative": True}, "operator minus is not commutative"),
        (lambda a, b: a + b, {"neutral": 1}, "operator minus is not neutral f32 1"),
        (lambda a, b: (a, b), {}, r"the function gives \(f32, f32\), f32 expected"),
        (lambda a, b: a + b, {"neutral": (0, 0)}, r"the neutral element of minus has type \(i32, i32\), f32 expected"),
    ],
)
def test_what_does_not_hold_in_python_is_refused(function: Any, properties: Any, message: str) -> None:
    minus = lf.operator(function, name="minus", **properties)

    def total(xs):  # type: ignore[no-untyped-def]
        return lf.reduce(minus, 0, xs)

    with pytest.raises(TypeMismatch, match=message) as caught:
        lf.program(total)(np.ones(8, np.float32))
    assert "test_declared.py, line" in str(caught.value.where)


def test_operators_of_one_name_are_not_mixed_up() -> None:
    """Neither in one process nor by way of the kernels that are kept on disk."""
    xs = np.arange(1, 9, dtype=np.float32)
    for function, neutral, expected in (
        (lambda a, b: a + b, 0, xs.sum()),
        (lambda a, b: a * b, 1, xs.prod()),
        (lambda a, b: lf.max(a, b), -np.inf, 8),
    ):
        combine = lf.operator(function, associative=True, commutative=True, neutral=neutral, name="combine")
        assert lf.program(_reduced(combine, neutral))(xs) == expected


def _reduced(combine: Any, start: float) -> Any:
    def total(xs):  # type: ignore[no-untyped-def]
        return lf.reduce(combine, start, xs)

    return total
