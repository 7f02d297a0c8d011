"""Matching and building: what a metavariable may mention, names, levels, sizes, and substitution."""

from __future__ import annotations

import random

import pytest

from lithify.lang.build import add, const, map_, mul, param, reduce_, split, zip_
from lithify.lang.levels import LOCAL, SEQ, UNROLL
from lithify.lang.scalars import f32
from lithify.lang.term import Term, abstract, apply, bound
from lithify.lang.types import array
from lithify.rewrite.matching import Mismatch, match
from lithify.rewrite.notation import read_rule
from lithify.rewrite.template import build, instantiate
from tests.generators import Terms

XS = param("xs", array(6, f32))
YS = param("ys", array(4, f32))


def matched(pattern: str, term: Term) -> dict[str, object] | None:
    left, _ = read_rule(f"{pattern} -> xs")
    found: dict[str, object] = {}
    return found if match(left, term, found) else None


def reason(pattern: str, term: Term) -> str:
    left, _ = read_rule(f"{pattern} -> xs")
    why = Mismatch()
    assert not match(left, term, {}, why)
    return why.reason


def nest(body: object, outer: Term = XS, inner: Term | None = None) -> Term:
    return map_(lambda a: map_(lambda b: body(a, b), YS if inner is None else inner), outer)  # type: ignore[operator]


def test_a_metavariable_is_a_function_of_the_variables_it_is_applied_to() -> None:
    found = matched("map (λa. map (λb. e a b) B) A", nest(lambda a, b: add(mul(a, a), b)))
    assert found is not None
    assert found["B"] is YS
    assert found["A"] is XS
    assert found["e"] is abstract(f32, lambda a: abstract(f32, lambda b: add(mul(a, a), b)))


def test_the_order_of_arguments_counts() -> None:
    found = matched("map (λa. map (λb. e b a) B) A", nest(lambda a, b: add(mul(a, a), b)))
    assert found is not None
    assert found["e"] is abstract(f32, lambda b: abstract(f32, lambda a: add(mul(a, a), b)))


def test_it_may_mention_no_other_variable() -> None:
    term = nest(lambda a, b: add(a, b))
    assert matched("map (λa. map (λb. e b) B) A", term) is None
    assert reason("map (λa. map (λb. e b) B) A", term) == "`e b` may not mention all of b, a, but the term does"
    only_inner = matched("map (λa. map (λb. e b) B) A", nest(lambda a, b: add(b, b)))
    assert only_inner is not None
    assert only_inner["e"] is abstract(f32, lambda b: add(b, b))


def test_the_same_metavariable_twice_is_the_same_term() -> None:
    assert matched("zip xs xs", map_(lambda x: x, XS, SEQ)) is None
    assert matched("zip xs xs", zip_(XS, XS)) is not None
    assert reason("zip xs xs", zip_(XS, param("zs", array(6, f32)))) == "`xs` stands for two different terms"


def test_levels_are_matched_and_names_ignored() -> None:
    plain = map_(lambda x: add(x, x), XS, name="m")
    assert matched("map f xs", plain) is not None
    assert matched("map@a f xs", plain)["@a"] == "m"  # type: ignore[index]
    levelled = map_(lambda x: add(x, x), XS, SEQ)
    assert matched("map f xs", levelled) is None
    assert reason("map f xs", levelled) == "the map has level seq, the rule is for none"
    assert matched("map[seq] f xs", levelled) is not None
    assert matched("map[unroll] f xs", levelled) is None
    assert matched("map[l] f xs", levelled)["l"] is SEQ  # type: ignore[index]
    assert matched("map[l] f xs", plain)["l"] is None  # type: ignore[index]
    memory = reduce_(lambda a, x: add(a, x), const(0, f32), XS, UNROLL, LOCAL)
    assert matched("reduce[l, m] f z xs", memory)["m"] is LOCAL  # type: ignore[index]
    assert matched("reduce[unroll] f z xs", memory) is None


def test_sizes_are_bound_and_compared() -> None:
    rows = split(3, XS)
    assert matched("split n xs", rows)["n"].constant == 3  # type: ignore[index, attr-defined]
    assert matched("split 3 xs", rows) is not None
    assert matched("split 2 xs", rows) is None


def test_an_open_term_is_matched_where_it_stands() -> None:
    """Dangling indices of the term itself stay what they are, seen from the root of the match."""
    outside = bound(0, f32)
    found = matched("map (λa. e a) A", map_(lambda a: add(a, outside), XS))
    assert found is not None
    value = found["e"]
    assert isinstance(value, Term)
    assert apply(value, param("p", f32)) is add(param("p", f32), outside)


@pytest.mark.parametrize("seed", range(60))
def test_instantiating_all_at_once_is_beta_reduction(seed: int) -> None:
    terms = Terms(random.Random(seed))
    parameters = [terms.value_type() for _ in range(1 + seed % 3)]
    function = terms.function(parameters, terms.type(), depth=3)
    arguments = tuple(terms.term(p) for p in parameters)
    assert instantiate(function, arguments) is apply(function, *arguments)


@pytest.mark.parametrize("seed", range(60))
def test_rebuilding_the_left_side_gives_the_term_back(seed: int) -> None:
    terms = Terms(random.Random(seed))
    xs = terms.rows(terms.size())
    f = terms.function([xs.type.element], terms.value_type(), depth=3)  # type: ignore[attr-defined]
    term = map_(f, xs, name="m")
    for pattern in ("map@a f xs", "map@a (λx. f x) xs"):
        left, _ = read_rule(f"{pattern} -> xs")
        found: dict[str, object] = {}
        assert match(left, term, found) or term is xs
        if found:
            assert build(left, found) is term
