"""The notation of rules: what is read, and what is refused."""

from __future__ import annotations

import pytest

from lithify.lang.levels import SEQ
from lithify.rewrite.metaterms import Applied, Bound, Lambda, MapName, Meta
from lithify.rewrite.notation import NotationError, read_formula, read_rule


def test_metavariables_and_bound_variables() -> None:
    left, right = read_rule("map (λa. map (λb. e a b) B) A -> T (map (λb. map (λa. e a b) A) B)")
    assert isinstance(left, Applied)
    function, array = left.children
    assert array == Meta("A")
    assert isinstance(function, Lambda)
    inner = function.body
    assert isinstance(inner, Applied)
    assert inner.children == (Lambda(("b",), Meta("e", (Bound("a"), Bound("b")))), Meta("B"))
    assert isinstance(right, Applied)
    assert right.pattern.name == "transpose"


def test_a_function_without_its_last_argument() -> None:
    left, _ = read_rule("map (split n) xs -> xs")
    assert isinstance(left, Applied)
    function = left.children[0]
    assert isinstance(function, Lambda)
    assert isinstance(function.body, Applied)
    assert function.body.pattern.name == "split"
    assert function.body.children == (Bound(function.names[0]),)


def test_levels_names_and_projections() -> None:
    left, right = read_rule("map[seq]@a (λx. x.1) xs -> map[l]@a/b.tile (λx. x.1) xs")
    assert isinstance(left, Applied)
    assert left.attributes[0].constant == SEQ  # type: ignore[union-attr]
    assert left.attributes[1] == MapName("a")
    assert isinstance(right, Applied)
    assert right.attributes[0].name == "l"  # type: ignore[union-attr]
    assert right.attributes[1] == MapName("a", "b", "tile")


def test_formulas() -> None:
    assert read_formula("n").name == "n"
    assert read_formula("2*n + 1").evaluate({"n": 3}) == 7


@pytest.mark.parametrize(
    "text",
    [
        "map f xs",
        "map f xs -> ",
        "map f xs -> (map f xs",
        "reduce f xs z w -> xs",
        "λa b -> a",
        "map f xs -> map f xs)",
        "let x e in x -> e",
        "pad l r (c) xs -> xs",
        "(λa. a) x -> x",
    ],
)
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(NotationError) as caught:
        read_rule(text)
    assert repr(text) in str(caught.value)
