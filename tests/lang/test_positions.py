"""Arithmetic on indices: what it means, when it is an index of an array, and how it is written."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import lithify as lf
from lithify.evaluate import evaluate
from lithify.lang import parse_expression, show
from lithify.lang.errors import TypeMismatch
from lithify.lang.printer import show_program
from lithify.lang.term import subterms

n = lf.size("n")
N, M = 5, 3  # what i and j are below
OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": operator.floordiv, "%": operator.mod,
}  # fmt: skip


def grown(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    infix = st.tuples(leaves, st.sampled_from(sorted(OPERATORS)), leaves).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    least = st.tuples(st.sampled_from(["min", "max"]), leaves, leaves).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    return infix | least


EXPRESSIONS = st.recursive(st.sampled_from(["i", "j", "n", "m", "0", "1", "2", "3", "i", "j"]), grown, max_leaves=6)


def value(e: Any, names: dict[str, int]) -> int:
    """What Python makes of an expression."""
    kind = type(e).__name__
    if kind == "Name":
        return names[e.name]
    if kind == "Number":
        return int(e.value)
    if kind == "Infix":
        return OPERATORS[e.symbol](value(e.left, names), value(e.right, names))
    assert kind == "Application", e
    return {"min": min, "max": max}[e.function.name](*[value(a, names) for a in e.arguments])


def program(body: str) -> lf.Program:
    return lf.parse(f"p (x : n.f32) (y : m.f32) = {body}")["p"]


X, Y = np.arange(N, dtype=np.float32), np.arange(M, dtype=np.float32)


@settings(max_examples=300)
@given(text=EXPRESSIONS, symbolic=st.booleans())
def test_it_is_what_python_computes(text: str, symbolic: bool) -> None:
    """For all indices; what is refused are quotients by what may be below 1."""
    assume("i" in text.replace("min", "") or "j" in text)  # numbers alone are no indices
    made = program(f"generate n (λ i . generate m (λ j . i64 {text}))")
    try:
        term = made.term() if symbolic else made.term(X, Y)
    except TypeMismatch as error:
        refused = str(error)
        event(refused.splitlines()[0][:20])
        assert re.search("may be below 1|an index meets integers", refused), refused
        return
    wanted = [[value(parse_expression(text), {"i": i, "j": j, "n": N, "m": M}) for j in range(M)] for i in range(N)]
    np.testing.assert_array_equal(evaluate(term, {"x": X, "y": Y}, sizes={"n": N, "m": M}), wanted)
    again = lf.parse(f"p = {show_program(term, [('x', lf.Array[N, lf.f32]), ('y', lf.Array[M, lf.f32])])}")["p"]
    products = (m for t in subterms(term) if t.kind == "index" for m, _ in t["formula"].expression.terms if len(m) > 1)
    if not symbolic and not any(products):  # what a product is below may not follow from its normal form
        assert again.term(X, Y) is term, show(term)


@settings(max_examples=300)
@given(text=EXPRESSIONS, symbolic=st.booleans())
def test_an_index_is_inside(text: str, symbolic: bool) -> None:
    """What is accepted as an index of x is one for all i and j."""
    made = program(f"generate n (λ i . generate m (λ j . x[{text}]))")
    try:
        term = made.term() if symbolic else made.term(X, Y)
    except TypeMismatch:
        return
    np.testing.assert_array_equal(
        evaluate(term, {"x": X, "y": Y}, sizes={"n": N, "m": M}),
        [[value(parse_expression(text), {"i": i, "j": j, "n": N, "m": M}) for j in range(M)] for i in range(N)],
    )


INSIDE = [
    "x[n - 1 - i]", "x[max (i - 1) 0]", "x[min (i + 1) (n - 1)]", "x[i / 2]", "x[i / 2 * 2 + i % 2]", "x[(i + 3) % n]",
    "x[i % 3]", "x[i + 1 - 1]", "x[i * 1]", "x[if i < 3 then i else n - 1]", "(pad 1 1 0 x)[i + 2]", "x[-(-i)]",
    "x[(i + n - 1) % n]", "(slide 2 1 (pad 0 1 0 x))[i][1]", "x[if i > 0 then max (i - 1) 0 else n - 1]",
]  # fmt: skip


@pytest.mark.parametrize("text", INSIDE)
def test_what_is_inside_for_every_size(text: str) -> None:
    made = lf.parse(f"p (x : n.f32) = generate n (λ i . {text})")["p"]
    assert str(made.types()[1]) == "n.f32"
    x = np.arange(7, dtype=np.float32) + 10
    wanted = evaluate(made.term(x), {"x": x})
    for device in ("cpu", "c"):
        np.testing.assert_array_equal(made.on(device)(x), wanted)
    assert made.check(x)


DEVICES = """
shift (x : n.f32) = generate n (λ i . f32 (i - 2) * x[max (i - 1) 0])
pairs (x : n.f32) = generate (n / 2) (λ i . x[2 * i] - x[2 * i + 1])
table (x : n.f32) = generate n (λ i . generate 5 (λ j . i32 (i * 5 + j) + (if i == j || j * 2 > i then 100 else 0)))
largest (x : n.f32) = reduce (λ acc i . if x[i] > x[acc] then i else acc) 0 (generate n (λ i . i))
halves (x : n.f32) = gather (generate (n / 2) (λ i . 2 * i)) x
nearest (x : n.f32) (ids : m.idx[n]) = map (λ id . x[n - 1 - id] + f32 (id % 3) + f32 (id - n)) ids
twice (x : n.f32) (ids : m.idx[n]) = ids * 2 + 1
picked (x : n.f32) (ids : m.idx[n]) = map (λ id . x[if x[id] > 0 then id else n - 1]) ids
"""
WANTED: dict[str, Callable[..., Any]] = {
    "shift": lambda x: np.array([(i - 2) * x[max(i - 1, 0)] for i in range(len(x))]),
    "pairs": lambda x: x[0 : len(x) // 2 * 2 : 2] - x[1::2][: len(x) // 2],
    "table": lambda x: np.array(
        [[i * 5 + j + (100 if i == j or j * 2 > i else 0) for j in range(5)] for i in range(len(x))]
    ),
    "largest": np.argmax,
    "halves": lambda x: x[: len(x) // 2 * 2 : 2],
    "nearest": lambda x, ids: x[len(x) - 1 - ids] + ids % 3 + (ids - len(x)),
    "twice": lambda x, ids: ids * 2 + 1,
    "picked": lambda x, ids: np.where(x[ids] > 0, x[ids], x[-1]),
}


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("n", [1, 2, 37, 1000])
def test_on_devices(name: str, n: int, pocl_device: object) -> None:
    rng = np.random.default_rng(n)
    x = rng.permutation(n).astype(np.float32) - n // 3
    arguments = (x, rng.integers(0, n, 19)) if name in ("nearest", "twice", "picked") else (x,)
    made = lf.parse(DEVICES)[name]
    for device in ("cpu", "c", "opencl:0"):
        np.testing.assert_array_equal(made.on(device)(*arguments), WANTED[name](*arguments), err_msg=device)


def test_an_accumulator_that_is_an_index_is_read_anew() -> None:
    """Compiled for the CPU, an index in memory was read once for all the statements that write it."""
    made = lf.parse(DEVICES)["largest"]
    x = np.array([0, 3, 1, 2, 5, 4, 6, 7], np.float32)
    for values in (x, x[::-1].copy(), np.roll(x, 3)):
        assert made(values) == values.argmax()
        assert made.check(values)


def test_in_python() -> None:
    """As in the text; `//` divides indices, too."""

    @lf.program
    def smooth(xs: lf.Array[n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
        return lf.generate(
            n, lambda i: xs[lf.max(i - 1, 0)] + xs[lf.min(i + 1, n - 1)] + xs[i // 2] + lf.f32(1 - i) + lf.f32(i % 2)
        )

    x = np.arange(6, dtype=np.float32) ** 2
    i = np.arange(6)
    wanted = x[np.maximum(i - 1, 0)] + x[np.minimum(i + 1, 5)] + x[i // 2] + (1 - i) + i % 2
    np.testing.assert_array_equal(smooth(x), wanted)
    with pytest.raises(TypeMismatch, match="the operator // divides indices"):
        lf.program(lambda xs: xs[0] // 2)(x)


def test_one_index_has_one_form() -> None:
    """Formulas of formulas are one, and the same index is one operand."""
    a, b = (lf.parse(f"p (x : n.f32) = generate n (λ i . {body})")["p"].term("8.f32") for body in
            ("x[let k = n - 1 - i in n - 1 - k]", "x[i]"))  # fmt: skip
    assert a is b
    nested = lf.parse("p (ids : m.idx[8]) = map (λ k . k - k + 2) (map (λ i . i * 2 + 1) ids)")["p"].term("4.idx[8]")
    assert not any(t.kind == "index" and len(t.args) > 1 for t in subterms(nested))


@pytest.mark.parametrize("index", ["(j + 3) % 7", "j * 0 + 3", "(j * 2 + 3) % 4"])
def test_an_index_that_nothing_has_can_be_read_again(index: str) -> None:
    program = lf.parse(f"p (xs : n.f32) = gather (generate 0 (λ j . {index})) xs")["p"]
    elaborated = program.specialise("4.f32").elaborated
    again = lf.parse("q = " + show_program(elaborated.term, list(elaborated.parameters)))["q"]
    assert again.term("4.f32") is elaborated.term
