"""What newcomers write as other notations have it: the error says what to write, and that can be written."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf
from lithify.lang.elsewhere import EXPRESSIONS
from lithify.lang.errors import LithifyError

XS = np.arange(6, dtype=np.float32)


def _hint(text: str) -> str:
    with pytest.raises(LithifyError) as error:
        lf.parse(text)["f"](XS)
    return f"{error.value.message}\nhint: {error.value.hint}"


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_names_of_other_notations(name: str) -> None:
    assert f"unknown name `{name}`\nhint: write {EXPRESSIONS[name]}" in _hint(f"f xs = {name} xs")
    rows = name == "matmul"
    xs = XS.reshape(2, 3) if rows or name == "flatten" else XS
    text = f"f xs ys = (λ f . {EXPRESSIONS[name]}) (λ a b . a + b)".replace("split n", "split 2")
    lf.parse(text.replace(" n ", " 3 "))["f"](xs, XS.reshape(3, 2) if rows else xs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f xs = filter (> 2) xs", "results whose size depends on values do not exist"),
        ("f xs = map (x => x + 1) xs", r"`=>` is no symbol of the language\nhint: a function is λ x . body"),
        ("f xs = xs ** 2", "hint: a power is x ^ 2"),
        ("f xs = sum xs // the sum", "hint: a comment begins with --"),
        ("f xs = sum xs # the sum", "hint: a comment begins with --"),
        ("f xs = map (λ x . x > 1 & x < 3) xs", "of two conditions && is the and"),
        ("f xs = map (λ x . x > 1 | x < 3) xs", "of two conditions || is the or"),
        ("f xs = map (λ x . !(x > 1)) xs", "hint: the opposite is `not x`"),
        ("f xs = sum xs; g xs = xs", "hint: each definition starts on a line of its own"),
        ("f xs = map (-1) xs", r"hint: (-1) is a number; as a function it is (λ x . x - 1)"),
        ("f xs = gather [0, 1] xs", "an index expected"),
    ],
)
def test_symbols_of_other_notations(text: str, said: str) -> None:
    assert said.replace("\\n", "\n") in _hint(text)


def test_what_is_defined_means_what_its_definition_says() -> None:
    assert lf.parse("len xs = sum xs\nf xs = len xs")["f"](XS) == 15
    assert lf.parse("f len = sum len")["f"](XS) == 15
    assert lf.parse("f xs = split len xs")["f"](XS, sizes={"len": 3}).shape == (2, 3)


def test_an_array_of_indices_needs_its_type_written() -> None:
    """The integers of an argument are indices only where the program says so; the error says how."""
    with pytest.raises(lf.TypeMismatch, match=r"an index expected, i64 given: .*\(ids : m\.idx\[n\]\)"):
        lf.parse("f ids xs = gather ids xs")["f"](np.array([0, 5, 2]), XS)
    text = "f (ids : m.idx[n]) (xs : n.f32) = gather ids xs"
    assert lf.parse(text)["f"](np.array([0, 5, 2]), XS).tolist() == [0, 5, 2]
