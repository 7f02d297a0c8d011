"""Derivations: steps, checks, printing, saving and replaying; and the macro rules of matrix multiplication."""

from __future__ import annotations

import json
import random

import pytest

from lithify.arith import size
from lithify.lang.build import (
    add,
    const,
    drop,
    join,
    length,
    map_,
    mul,
    param,
    proj,
    reduce_,
    reindex,
    replicate,
    slide,
    split,
    take,
    transpose,
    zip_,
)  # fmt: skip
from lithify.lang.errors import RewriteFailed
from lithify.lang.index_functions import index_function, reverse, stride
from lithify.lang.levels import LOCAL, PAR, PRIVATE, SEQ, UNROLL, VEC
from lithify.lang.scalars import f32
from lithify.lang.term import Term, contains
from lithify.lang.types import Array, array
from lithify.rewrite import (
    Context,
    Derivation,
    TooLarge,
    at,
    difference,
    everywhere,
    follow,
    innermost,
    mark_changes,
    normalize,
    replay,
    rule,
    save,
    steps_text,
)  # fmt: skip
from lithify.rules import all_rules
from lithify.rules.algorithmic import split_join
from lithify.rules.fusion import map_fusion, reduce_map_fusion
from lithify.rules.interchange import map_map_interchange
from lithify.rules.layout import coalesce, reindex_both
from lithify.rules.matrix import block_reduction, outer_product, register_blocking, register_blocking_2d, tile, tiling
from lithify.rules.memory import accumulate, stage_reduce_both
from lithify.rules.parallel import map_level, nest
from lithify.rules.stencil import tiled_stencil
from lithify.rules.vector import vectorise, vectorised_reduction
from tests.generators import Terms, element_of

XS = param("xs", array(12, f32))


def matmul(rows: int, columns: int, depth: int) -> Term:
    a, b = param("A", array(rows, depth, f32)), param("B", array(depth, columns, f32))

    def dot(row: Term, column: Term) -> Term:
        products = map_(lambda p: mul(proj(0, p), proj(1, p)), zip_(row, column))
        return reduce_(lambda s, x: add(s, x), const(0, f32), products, name="k")

    return map_(lambda row: map_(lambda column: dot(row, column), transpose(b), name="n"), a, name="m")


# ---- steps ---------------------------------------------------------------------------------------------------------


def test_steps_are_recorded_with_place_bindings_and_both_terms() -> None:
    d = Derivation(matmul(6, 4, 5), check=True).once(split_join(2), "m").once(map_map_interchange)
    assert d.names() == ["split-join(2)", "map-map-interchange"]
    first, second = d.steps
    assert first.path == ()
    assert first.before is d.start
    assert second.path == (0, 0, 0)
    assert second.bindings["A"] is second.before.args[1]
    assert [term for _, term in d.terms()][-1] is d.term


def test_a_failed_step_changes_nothing() -> None:
    d = Derivation(matmul(6, 4, 5)).once(split_join(2), "m")
    before = d.term
    with pytest.raises(RewriteFailed) as caught:
        d.once(split_join(2), "q")
    assert "the loops are named k, m.block, m.tile, n" in str(caught.value)
    assert "after 1 step(s); the last was split-join(2) at the root" in str(caught.value)
    assert d.term is before
    assert len(d.steps) == 1


def test_a_wrong_rule_is_found_where_it_fired() -> None:
    wrong = rule("wrong", "map f (map g xs) -> map (λx. g (f x)) xs", law="none")
    program = map_(lambda x: add(x, const(1, f32)), map_(lambda x: mul(x, x), XS))
    Derivation(program).once(wrong)
    with pytest.raises(RewriteFailed, match=r"wrong is wrong: the values differ at \[\d+\]"):
        Derivation(program, check=True).once(wrong)


def test_the_same_rewrite_at_several_places_is_shown_once() -> None:
    """Steps that follow one another and do the same are shown together; what is saved and replayed is each of them."""
    total = reduce_(add, const(0, f32), map_(lambda x: mul(x, x), XS))
    other = reduce_(add, const(0, f32), map_(lambda x: add(x, x), XS))
    program = add(add(total, total), add(other, total))
    d = Derivation(program).everywhere(reduce_map_fusion)
    assert len(d.steps) == 4
    shown = str(d).splitlines()
    assert len(shown) == 3
    assert shown[0].split() == ["1-2.", "reduce-map-fusion", "at", "2", "places:", "0/0,", "0/1"]
    assert shown[1].split() == ["3.", "reduce-map-fusion", "at", "1/0"]
    assert shown[2].split() == ["4.", "reduce-map-fusion", "at", "1/1"]
    texts = list(steps_text(d))
    assert [text.split("    ")[0] for text in texts[1:]] == [
        "1-2. reduce-map-fusion at 2 places: 0/0, 0/1",
        "3. reduce-map-fusion",
        "4. reduce-map-fusion",
    ]
    groups = list(d.shown_terms())
    assert groups[-1][2] is d.term
    assert groups[0][2] is list(d.terms())[1][1]
    again = replay(program, save(d), all_rules())
    assert again.term is d.term
    assert len(again.steps) == 4
    assert list(Derivation(program).shown_terms()) == []


def test_what_is_too_large_to_check_is_said() -> None:
    with pytest.raises(TooLarge, match=r"cannot be compared at this size.*\n.*smaller arguments"):
        Derivation(matmul(1024, 1024, 1024), check=True).once(split_join(32), "m")


def test_symbolic_sizes_are_checked_at_small_ones() -> None:
    n = size("n")
    program = map_(lambda x: add(x, x), param("xs", array(n, f32)))
    d = Derivation(program, check=True).once(split_join(4)).once(map_level(SEQ))
    assert d.term.type is program.type


def test_the_policy_is_part_of_the_derivation() -> None:
    total = reduce_(lambda a, x: add(a, x), const(0, f32), XS)
    Derivation(total).once(all_rules()["reduce-lanes"](4))
    with pytest.raises(RewriteFailed, match="the policy is exact"):
        Derivation(total, policy="exact").once(all_rules()["reduce-lanes"](4))


def test_values_that_differ_are_told_apart() -> None:
    """The check itself: it must see a difference in any component, at any position, in any type."""
    doubled, squared = map_(lambda x: add(x, x), XS), map_(lambda x: mul(x, x), XS)
    assert difference(doubled, doubled) is None
    assert difference(doubled, squared) is not None
    pairs = zip_(XS, doubled), zip_(XS, squared)
    assert "component 1" in str(difference(*pairs))
    assert difference(XS, reindex(reverse(12), XS)) is not None


# ---- replaying -----------------------------------------------------------------------------------------------------

STRATEGIES = {
    "everywhere": lambda: everywhere(map_fusion),
    "normalize": lambda: normalize(map_fusion),
    "innermost": lambda: innermost(map_fusion),
    "views and fusion": lambda: normalize(all_rules()["transpose-map-map"]) >> normalize(map_fusion),
    "many rules": lambda: normalize(
        all_rules()["map-join"] | all_rules()["map-take"] | all_rules()["map-drop"] | map_fusion | reduce_map_fusion
    ),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_following_the_steps_gives_the_same_program(name: str) -> None:
    """On random terms, with the always-on laws making things simpler in between."""
    rng, fired = random.Random(name), 0
    for _ in range(400):
        d = Derivation(pipeline(Terms(rng)))
        try:
            d.apply(STRATEGIES[name]())
        except RewriteFailed:
            continue
        fired += bool(d.steps)
        assert replay(d.start, save(d), all_rules()).term is d.term
        if d.steps:
            assert [term for _, term in d.terms()][-1] is d.term
    assert fired > 40


def pipeline(terms: Terms) -> Term:
    """A random sequence of maps and views over a matrix."""
    t = terms.input(array(2, 3, terms.scalar))
    for _ in range(terms.rng.randrange(8)):
        choice = terms.rng.randrange(7)
        element = element_of(t.type)
        if choice < 3:
            same = Array(3, terms.scalar) if isinstance(element, Array) else terms.scalar
            t = map_(terms.function([element], same), t)
        elif choice == 3 and isinstance(element, Array):
            t = map_(lambda row: map_(lambda x: terms.using(x, terms.scalar, (), 1), row), t)
        elif choice == 4:
            t = transpose(t) if isinstance(element, Array) else split(1, t)
        elif choice == 5 and isinstance(element, Array):
            t = join(t)
        else:
            t = terms.rng.choice((take, drop))(terms.rng.randrange(2), t) if length(t).lo > 1 else t
    return t


def test_a_saved_derivation_is_replayed_on_its_program_only() -> None:
    d = Derivation(matmul(6, 4, 5)).apply(register_blocking("m", 3)).apply(block_reduction("k", 2))
    text = save(d)
    assert replay(matmul(6, 4, 5), text, all_rules(), check=True).term is d.term
    with pytest.raises(RewriteFailed, match="made for another program"):
        replay(matmul(6, 4, 6), text, all_rules())
    record = json.loads(text)
    record["steps"][0]["with"]["n"] = 2
    with pytest.raises(RewriteFailed):
        replay(matmul(6, 4, 5), json.dumps(record), all_rules())
    record["steps"][0]["rule"] = "no-such-rule"
    with pytest.raises(RewriteFailed, match="a rule that is not known: no-such-rule"):
        replay(matmul(6, 4, 5), json.dumps(record), all_rules())
    record["format"] = 99
    with pytest.raises(RewriteFailed, match="format 99"):
        replay(matmul(6, 4, 5), json.dumps(record), all_rules())


def test_all_kinds_of_parameters_are_saved() -> None:
    program = map_(lambda x: add(x, x), XS)
    for step in (reindex_both(reverse(12)), reindex_both(stride(3, 12)), coalesce(4), map_level(VEC), split_join(4)):
        d = Derivation(program).once(step)
        assert replay(program, save(d), all_rules()).term is d.term
    matrix = param("A", array(3, 4, f32))
    zeros = replicate(4, const(0, f32))
    total = reduce_(lambda a, x: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(a, x)), zeros, matrix)
    d = Derivation(total).once(accumulate(SEQ, PRIVATE, (UNROLL,), (SEQ,)))
    assert replay(total, save(d), all_rules()).term is d.term
    rotate = index_function("rotate", 12, 12, lambda i: (i + 1) % 12, lambda i: (i + 11) % 12)
    with pytest.raises(RewriteFailed, match="has no text, so the derivation cannot be saved"):
        save(Derivation(program).once(reindex_both(rotate)))


def test_following_a_step_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(RewriteFailed, match="does not apply"):
        follow(XS, [(map_fusion(), ())], Context())
    with pytest.raises(RewriteFailed, match="has no child 4"):
        follow(map_(lambda x: add(x, x), XS), [(map_fusion(), (4,))], Context())


# ---- printing ------------------------------------------------------------------------------------------------------


def test_steps_are_printed_with_what_changed_marked() -> None:
    program = map_(lambda x: add(x, x), XS, name="m")
    texts = list(steps_text(Derivation(program).once(split_join(4)).once(map_level(SEQ), "m.block")))
    assert texts[0] == "map@m (λx. x + x) xs"
    assert texts[1].startswith("1. split-join(4)    map@a f xs -> ")
    assert texts[1].splitlines()[-1] == "`join (map@m.block` (λx. `map@m.tile (λx1. x1` + `x1)` x) `(split 4` xs`))`"
    assert "`map[seq]@m.block`" in texts[2]


def test_marks_do_not_run_over_lines() -> None:
    marked = mark_changes("a b", "a c\n  d e\nb", ("<", ">"))
    assert marked == "a <c>\n  <d e>\nb"


# ---- macro rules ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns", "depth"), [(6, 4, 5), (7, 5, 3), (1, 1, 1), (5, 3, 4)])
def test_tiles_of_matrix_multiplication(rows: int, columns: int, depth: int) -> None:
    d = Derivation(matmul(rows, columns, depth), check=True)
    d.apply(tile("m", "n", 3, 2)).apply(outer_product("m.tile", "n.tile")).apply(block_reduction("k", 2))
    order = [t["name"] for t in loops(d.term)]
    assert order == ["m.block", "n.block", "k.block", "k.tile", "m.tile", "n.tile"]
    assert difference(d.start, d.term) is None


def test_a_tile_of_reductions_reads_rows_and_columns_once() -> None:
    d = Derivation(matmul(6, 4, 5), check=True).apply(register_blocking_2d("m", "n", 3, 2))
    reductions = [t for t in loops(d.term) if t.kind == "reduce"]
    assert len(reductions) == 1
    operands = reductions[0].args[2]
    assert operands.kind == "zip"
    assert not contains(operands, lambda t: t.kind == "replicate"), "a shared operand was replicated"


def test_register_blocking_takes_the_steps_of_the_slides() -> None:
    d = Derivation(matmul(6, 4, 5), check=True).apply(register_blocking("m", 3))
    assert d.names() == [
        "split-join(3)",
        "map-map-interchange",
        "map-fission(map)",
        "map-reduce-interchange",
        "map-map-interchange-left",
        "reduce-map-fusion",
    ]


@pytest.mark.parametrize(("columns", "depth"), [(4, 6), (5, 5)])
def test_tiling_takes_the_form_of_the_slides(columns: int, depth: int) -> None:
    d = Derivation(matmul(6, columns, depth), check=True).apply(tiling("m", "n", "k", (3, 2, 2)))
    blocks = next(t for t in loops(d.term) if t["name"] == "k.block")
    assert [t["name"] for t in loops(blocks.args[0]) if t.kind == "map"][:2] == ["m.tile", "n.tile"]
    assert contains(blocks.args[0], lambda t: t.kind == "reduce" and t["name"] == "k.tile")
    assert blocks.args[2].kind == "zip"
    assert not contains(blocks.args[2], lambda t: t.kind == "op"), "products were computed outside of the tiles"
    assert replay(d.start, save(d), all_rules()).term is d.term


@pytest.mark.parametrize("length", [0, 1, 7, 8, 37])
def test_a_vectorised_reduction_of_any_length(length: int) -> None:
    xs, ys = param("xs", array(length, f32)), param("ys", array(length, f32))
    products = map_(lambda p: mul(proj(0, p), proj(1, p)), zip_(xs, ys))
    program = reduce_(lambda a, x: add(a, x), const(0, f32), products, name="k")
    d = Derivation(program, check=True).apply(vectorised_reduction("k", 8))
    step = next(t for t in loops(d.term) if t["name"] == "k.step")
    assert (step["level"], step["memory"]) == (SEQ, PRIVATE)
    assert not contains(step.args[2], lambda t: t.kind == "op"), "the products are an array of their own"


@pytest.mark.parametrize("length", range(4, 12))
def test_a_stencil_in_tiles(length: int) -> None:
    xs = param("xs", array(length, f32))
    sums = map_(lambda w: reduce_(lambda a, x: add(a, x), const(0, f32), w), slide(3, 1, xs))
    d = Derivation(sums, check=True).apply(tiled_stencil(4))
    assert d.names()[0] == ("slide-tile(4)" if (length - 2) % 2 == 0 else "slide-tile-any(4)")
    assert d.names()[-1] == "map-fusion"


def test_a_nest_of_levels_is_recorded() -> None:
    matrix = param("A", array(2, 3, f32))
    program = transpose(map_(lambda row: map_(lambda x: add(x, x), row), matrix))
    d = Derivation(program, check=True).apply(nest(PAR, SEQ))
    assert d.names() == ["map-level(par)", "map-level(seq)"]
    assert [s.path for s in d.steps] == [(0,), (0, 0, 0)]
    assert replay(program, save(d), all_rules()).term is d.term


def test_a_derivation_for_a_gpu() -> None:
    """Two levels of tiles, both operands staged in local memory, vectors in the innermost loop."""
    d = Derivation(matmul(8, 8, 6), check=True)
    d.apply(tile("m", "n", 4, 4)).apply(tile("m.tile", "n.tile", 2, 2))
    d.apply(outer_product("m.tile.tile", "n.tile.tile")).apply(block_reduction("k", 3))
    with pytest.raises(RewriteFailed, match=r"a copy of 3\.2\.f32 needs 2 level\(s\), 1 given"):
        d.once(stage_reduce_both(LOCAL, (SEQ,), (SEQ,)), "k.block")
    d.once(stage_reduce_both(LOCAL, (SEQ, SEQ), (SEQ, SEQ)), "k.block")
    d.once(vectorise(2), lambda t: t.kind == "map" and t["name"] == "n.tile.tile")
    assert difference(d.start, d.term) is None
    assert contains(d.term, lambda t: t.kind == "to" and t["memory"] is LOCAL)
    assert replay(d.start, save(d), all_rules()).term is d.term


def loops(term: Term) -> list[Term]:
    """The named loops of a nest, from the outside in."""
    found = []
    stack = [term]
    while stack:
        t = stack.pop()
        if t.kind in ("map", "reduce") and t["name"]:
            found.append(t)
        stack.extend(reversed(t.args))
    return found


def test_at_keeps_to_its_place() -> None:
    two = zip_(map_(lambda x: add(x, x), XS, name="a"), map_(lambda x: mul(x, x), XS, name="b"))
    d = Derivation(two, check=True).apply(at("b", map_level(SEQ)))
    assert [a["level"] for a in d.term.args] == [None, SEQ]
