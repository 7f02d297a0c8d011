"""Strategies and traversals: where they apply, in which order, what they log, and what they say when they fail."""

from __future__ import annotations

import pytest

from lithify.lang.build import add, const, map_, mul, param, reduce_, transpose, zip_
from lithify.lang.errors import RewriteFailed
from lithify.lang.scalars import f32
from lithify.lang.term import Term, contains
from lithify.lang.types import array
from lithify.rewrite import (
    Context,
    Failure,
    all_,
    at,
    bottomup,
    everywhere,
    fail,
    first,
    id_,
    innermost,
    named,
    normalize,
    of_kind,
    one,
    outermost,
    repeat,
    rule,
    seq,
    some,
    topdown,
    try_,
)  # fmt: skip

XS = param("xs", array(6, f32))
rename = rule("add-to-mul", "add x y -> mul x y", law="none: for tests of order only.")
swap = rule("swap", "zip xs ys -> zip ys xs", law="none: for tests of order only.")
fusion = rule("fusion", "map f (map g xs) -> map (λx. f (g x)) xs", law="map fusion.")
X, Y, Z = (param(n, f32) for n in "xyz")
NESTED = add(add(X, Y), add(Y, Z))


def test_identity_and_failure() -> None:
    assert id_.apply(X) is X
    assert not fail.run(X, Context())
    with pytest.raises(RewriteFailed, match="fail does not apply"):
        fail.apply(X)


def test_sequence_and_choice() -> None:
    assert seq(rename, id_).apply(add(X, Y)) is mul(X, Y)
    assert (rename >> id_).apply(add(X, Y)) is mul(X, Y)
    assert isinstance(seq(rename, rename).run(add(X, Y), Context()), Failure)
    assert first(fail, rename).apply(add(X, Y)) is mul(X, Y)
    assert (fail | rename).apply(add(X, Y)) is mul(X, Y)
    assert try_(rename).apply(X) is X


def test_children() -> None:
    assert one(rename).apply(NESTED) is add(mul(X, Y), add(Y, Z))
    assert all_(rename).apply(NESTED) is add(mul(X, Y), mul(Y, Z))
    assert some(rename).apply(add(X, add(Y, Z))) is add(X, mul(Y, Z))
    assert not all_(rename).run(add(X, add(Y, Z)), Context())
    assert not some(rename).run(add(X, Y), Context())
    assert not one(rename).run(add(X, Y), Context())


def test_top_down_and_bottom_up_take_the_first_place() -> None:
    assert topdown(rename).apply(NESTED) is mul(add(X, Y), add(Y, Z))
    assert bottomup(rename).apply(NESTED) is add(mul(X, Y), add(Y, Z))


def test_everywhere_and_normalize() -> None:
    assert everywhere(rename).apply(NESTED) is mul(mul(X, Y), mul(Y, Z))
    assert not everywhere(rename).run(mul(X, Y), Context())
    assert normalize(rename).apply(NESTED) is mul(mul(X, Y), mul(Y, Z))
    assert outermost(rename).apply(NESTED) is innermost(rename).apply(NESTED)
    assert normalize(rename).apply(X) is X


def test_everywhere_does_not_search_what_it_made() -> None:
    grow = rule("grow", "map f xs -> map f (map g xs)", law="none.", parameters="g")
    t = map_(lambda x: add(x, x), XS)
    doubled = everywhere(grow(t.args[0])).apply(t)
    assert sum(1 for _ in _maps(doubled)) == 2


def _maps(term: Term) -> list[Term]:
    found = []
    while term.kind == "map":
        found.append(term)
        term = term.args[1]
    return found


def test_a_rule_that_feeds_itself_is_stopped() -> None:
    pairs = zip_(XS, param("ys", array(6, f32)))
    with pytest.raises(RewriteFailed, match=r"did not come to an end after 10 rounds"):
        repeat(swap, limit=10).apply(pairs)


def test_places_by_name_path_and_predicate() -> None:
    t = map_(lambda x: add(x, x), map_(lambda x: add(x, x), XS, name="inner"), name="outer")
    body = lambda term: term.args[0].args[0].kind == "op" and term.args[0].args[0].attrs[0].name  # noqa: E731
    for where in ("inner", (1,), lambda term: term.kind == "map" and term.args[1] is XS):
        result = at(where, topdown(rename)).apply(t)
        assert body(result) == "add"
        assert body(result.args[1]) == "mul"
    with pytest.raises(RewriteFailed, match="nothing is at middle; the loops are named inner, outer"):
        at("middle", rename).apply(t)
    with pytest.raises(RewriteFailed, match="there is no place 1/1/7"):
        at((1, 1, 7), rename).apply(t)
    assert named("inner")(t.args[1])
    assert of_kind("map", "reduce")(t)


def test_a_failure_names_the_closest_place_and_the_condition() -> None:
    halves = rule(
        "halves", "map f xs -> join (map (map f) (split n xs))", parameters="n", when=["n | length xs"], law=""
    )
    t = reduce_(lambda a, x: add(a, x), const(0, f32), map_(lambda x: add(x, x), XS, name="m"))
    with pytest.raises(RewriteFailed) as caught:
        topdown(halves(4)).apply(t)
    text = str(caught.value)
    assert text.startswith("topdown(halves(4)) does not apply: `n | length xs` fails: 4 is not known to divide 6")
    assert "at 2 (map m)" in text


def test_a_failed_strategy_leaves_no_trace() -> None:
    context = Context(log=[])
    assert not seq(topdown(rename), fail).run(NESTED, context)
    assert not all_(rename).run(add(add(X, Y), X), context)
    assert context.log == []
    assert context.path == []
    assert topdown(rename).run(NESTED, context)
    assert [e.path for e in context.log or []] == [()]


def test_paths_are_logged_from_the_root() -> None:
    context = Context(log=[])
    everywhere(rename).run(NESTED, context)
    assert [e.path for e in context.log or []] == [(0,), (1,), ()]


def test_what_is_known_to_fail_is_not_tried_again() -> None:
    tried: list[Term] = []

    class Count(type(id_)):  # type: ignore[misc]
        name = "count"

        def run(self, term: Term, context: Context) -> Term | Failure:
            tried.append(term)
            return Failure(self)

    context, search = Context(), topdown(Count())
    shared = add(NESTED, NESTED)
    assert not search.run(shared, context)
    assert len(tried) == len({t.id for t in tried})
    count = len(tried)
    assert not search.run(shared, context)
    assert len(tried) == count


def test_always_on_laws_make_the_result_simpler_on_the_way_up() -> None:
    matrix = param("A", array(2, 3, f32))
    t = transpose(transpose(matrix))
    assert t is matrix
    lifted = rule("lift", "map f X -> T X", law="none: for a square matrix.")
    square = param("S", array(3, 3, f32))
    term = transpose(map_(lambda row: map_(lambda x: add(x, x), row), square))
    context = Context(log=[])
    result = topdown(lifted).run(term, context)
    assert result is square
    assert [e.rule is None for e in context.log or []] == [False, True]


def test_fusion_reaches_a_normal_form() -> None:
    t = XS
    for _ in range(5):
        t = map_(lambda x: add(x, x), t)
    result = normalize(fusion).apply(t)
    assert len(_maps(result)) == 1
    assert contains(result, lambda u: u is XS)
