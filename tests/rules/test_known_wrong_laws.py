"""Where a law does not hold the rule refuses: cases that other systems got wrong, each with the rule that is right."""

from __future__ import annotations

import random

import pytest

from lithify.arith import size
from lithify.lang.build import (
    add,
    const,
    join,
    map_,
    mul,
    op,
    param,
    proj,
    reduce_,
    reindex,
    replicate,
    slide,
    split,
    transpose,
    zip_,
)  # fmt: skip
from lithify.lang.index_functions import index_function, reverse, stride
from lithify.lang.scalars import f32, i32
from lithify.lang.term import Term
from lithify.lang.types import Array, Tuple, array
from lithify.rewrite import Context, Failure, Rule, difference, topdown
from lithify.rewrite.strategy import Policy
from lithify.rules import all_rules
from lithify.rules.interchange import map_map_interchange, map_reduce_interchange, map_reduce_interchange_left
from lithify.rules.layout import reindex_both, reindex_inverse
from lithify.rules.reduction import (
    blocked_reduce,
    pad_reduce,
    partial_reduce,
    reduce_lanes,
    reduce_reorder,
    reduce_stride,
    split_reduce,
)  # fmt: skip
from lithify.rules.stencil import slide_rotate, slide_split, slide_tile, slide_tile_any
from tests.generators import COMPOSE, CROOKED, Terms


def total(operator: str, xs: Term, start: float = 0) -> Term:
    assert isinstance(xs.type, Array)
    return reduce_(lambda a, x: op(operator, a, x), const(start, xs.type.element), xs)


def holds(rule: Rule, term: Term, *arguments: object) -> Term:
    after = rule(*arguments).apply(term)
    assert difference(term, after) is None
    return after


def refuses(rule: Rule, term: Term, *arguments: object, policy: Policy = "reassociable") -> str:
    reason = rule(*arguments).explain(term, Context(policy))
    assert reason is not None
    return reason


# ---- floor and divisibility ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 6))
@pytest.mark.parametrize("length", range(9))
def test_split_join_of_every_length(length: int, n: int) -> None:
    xs = param("xs", array(length, i32))
    program = map_(lambda x: add(x, x), xs)
    after = all_rules()["split-join"](n).run(program, Context())
    assert not isinstance(after, Failure)
    assert difference(program, after) is None
    assert ("pad" in str(after)) == (length % n != 0)


def test_split_join_does_not_show_the_function_new_values() -> None:
    """1 / x is defined on the elements; a padding of zeros would divide by zero."""
    xs = param("xs", array(5, i32))
    shifted = map_(lambda x: op("div", const(1, i32), x), map_(lambda x: add(mul(x, x), const(1, i32)), xs))
    holds(all_rules()["split-join"], shifted, 4)


def test_a_symbolic_length_is_padded_by_its_remainder() -> None:
    n = size("n")
    xs = param("xs", array(n, i32))
    holds(all_rules()["split-join"], map_(lambda x: add(x, x), xs), 4)
    assert "not known to divide n" in refuses(split_reduce, total("add", xs), 4)
    assert "pad" not in str(holds(split_reduce, total("add", param("xs", array(4 * n, i32))), 4))


# ---- windows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("window", [1, 2, 3, 4])
@pytest.mark.parametrize("block", [1, 2, 3])
def test_slide_before_split_at_every_step(window: int, step: int, block: int) -> None:
    length = window + step * (2 * block - 1)
    xs = param("xs", array(length, i32))
    after = holds(slide_split, split(block, slide(window, step, xs)))
    assert difference(split(block, slide(window, step, xs)), after) is None


def test_overlapped_tiling_keeps_every_window_or_refuses() -> None:
    for window, step, length, tile in [(w, s, n, u) for w in (1, 2, 3) for s in (1, 2, 3) for n in range(3, 12)
                                       for u in range(1, 9)]:  # fmt: skip
        if window > length:
            continue
        program = slide(window, step, param("xs", array(length, i32)))
        windows, each = (length - window) // step + 1, tile + step - window
        legal = tile >= window and each % step == 0 and (windows * step) % each == 0 and tile <= length
        after = slide_tile(tile).run(program, Context())
        changed = not isinstance(after, Failure)
        assert changed == legal, (window, step, length, tile)
        if changed:
            assert difference(program, after) is None
        whole = slide_tile_any(tile).run(program, Context())
        if tile >= window and each % step == 0:
            assert not isinstance(whole, Failure)
            assert difference(program, whole) is None


def test_registers_rotate_for_step_1_only() -> None:
    xs = param("xs", array(9, i32))
    holds(slide_rotate, slide(3, 1, xs))
    assert "`s == 1` fails" in refuses(slide_rotate, slide(3, 2, xs))


# ---- reordering ----------------------------------------------------------------------------------------------------


def test_a_reordering_is_undone_by_its_declared_inverse_only() -> None:
    xs = param("xs", array(6, i32))
    there, back = stride(2, 6), stride(3, 6)
    holds(reindex_inverse, reindex(back, reindex(there, xs)))
    assert "not the declared inverse" in refuses(reindex_inverse, reindex(there, reindex(there, xs)))
    holds(reindex_inverse, reindex(reverse(6), reindex(reverse(6), xs)))


def test_reordering_around_a_map_puts_results_back_with_the_inverse() -> None:
    program = map_(lambda x: add(x, x), param("xs", array(6, i32)))
    for function in (reverse(6), stride(2, 6), stride(3, 6)):
        holds(reindex_both, program, function)
    clamped = index_function("clamped", 6, 6, lambda i: i - i // 5)
    assert "has no declared inverse" in refuses(reindex_both, program, clamped)
    assert "`length xs == source(g)` fails" in refuses(reindex_both, program, reverse(5))


# ---- algebra -------------------------------------------------------------------------------------------------------


def test_a_non_commutative_operator_keeps_its_order() -> None:
    pair = Tuple(i32, i32)
    xs = param("xs", array(8, pair))
    start = param("z", pair)
    program = reduce_(lambda a, b: op(COMPOSE[i32], a, b), start, xs)
    holds(blocked_reduce, program, 4)
    holds(partial_reduce, program, 3)
    for rule, argument in ((reduce_lanes, 4), (reduce_stride, 4), (reduce_reorder, reverse(8))):
        assert "`commutative f` fails: it is not declared commutative" in refuses(rule, program, argument)


def test_a_non_associative_operator_keeps_its_grouping() -> None:
    xs = param("xs", array(8, i32))
    for operator in (CROOKED[i32], "sub"):
        program = reduce_(lambda a, b, operator=operator: op(operator, a, b), const(0, i32), xs)  # type: ignore[misc]
        holds(split_reduce, program, 4)
        for rule in (blocked_reduce, partial_reduce, reduce_lanes):
            assert "`associative f` fails: it is not declared associative" in refuses(rule, program, 4)


def test_blocks_start_with_the_neutral_element_and_not_with_the_initial_value() -> None:
    after = holds(partial_reduce, total("add", param("xs", array(8, i32)), start=5), 4)
    assert [t for t in after.args[2].args[0].args[0].args if t.kind == "const"] == [const(0, i32)]
    holds(partial_reduce, total("max", param("xs", array(7, i32)), start=-1), 4)


def test_floating_point_is_not_reassociated_under_the_exact_policy() -> None:
    floats = total("add", param("xs", array(8, f32)))
    for rule in (blocked_reduce, partial_reduce, reduce_lanes):
        assert "the policy is exact" in refuses(rule, floats, 4, policy="exact")
        holds(rule, floats, 4)
        assert rule(4).explain(total("add", param("xs", array(8, i32))), Context("exact")) is None
    assert split_reduce(4).explain(floats, Context("exact")) is None
    assert blocked_reduce(4).explain(total("max", param("xs", array(8, f32))), Context("exact")) is None


def test_a_fused_operator_has_no_algebra() -> None:
    pairs = zip_(param("xs", array(8, f32)), param("ys", array(8, f32)))
    dot = reduce_(lambda a, p: add(a, mul(proj(0, p), proj(1, p))), const(0, f32), pairs)
    assert "not declared associative" in refuses(partial_reduce, dot, 4)
    holds(split_reduce, dot, 4)


def test_padding_only_with_elements_that_change_nothing() -> None:
    xs, ys = param("xs", array(7, f32)), param("ys", array(7, f32))
    holds(pad_reduce, reduce_(lambda a, p: add(a, mul(proj(0, p), proj(1, p))), const(0, f32), zip_(xs, ys)), 4)
    holds(pad_reduce, total("max", xs), 4)
    holds(pad_reduce, reduce_(lambda a, x: add(a, op("abs", x)), const(0, f32), xs), 4)
    for body in (lambda a, x: add(a, op("exp", x)), lambda a, x: add(mul(a, const(2, f32)), x)):
        program = reduce_(body, const(0, f32), xs)
        assert "no element is known that it ignores" in refuses(pad_reduce, program, 4)


# ---- scopes and shapes ---------------------------------------------------------------------------------------------


def test_an_inner_array_that_depends_on_the_outer_element_is_not_interchanged() -> None:
    matrix = param("A", array(4, 3, f32))
    dependent = map_(lambda row: map_(lambda x: add(x, x), row), matrix)
    assert "`B` may not mention" in refuses(map_map_interchange, dependent)


def test_what_is_shared_must_not_depend_on_the_row() -> None:
    matrix = param("A", array(4, 3, f32))
    both = map_(
        lambda row: reduce_(lambda a, p: add(a, mul(proj(0, p), proj(1, p))), const(0, f32), zip_(row, row)), matrix
    )
    assert "`q` may not mention" in refuses(map_reduce_interchange_left, both)
    holds(map_reduce_interchange, both)


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("columns", [0, 1, 2])
def test_interchanges_of_oblong_arrays(rows: int, columns: int) -> None:
    a, b = param("A", array(rows, i32)), param("B", array(columns, i32))
    holds(map_map_interchange, map_(lambda x: map_(lambda y: op("sub", x, y), b), a))
    matrix = param("M", array(rows, columns, i32))
    holds(map_reduce_interchange, map_(lambda row: total("add", row, 1), matrix))
    holds(all_rules()["transpose-map-map"], transpose(map_(lambda row: map_(lambda x: add(x, x), row), matrix)))
    holds(all_rules()["split-transpose"], split(1, transpose(matrix)))


def test_replicated_rows_are_not_replicated_elements() -> None:
    x = param("x", i32)
    holds(all_rules()["join-replicate"], join(replicate(3, replicate(2, x))))
    rows = replicate(3, param("xs", array(2, i32)))
    assert all_rules()["join-replicate"].explain(join(rows)) is not None


def test_random_terms_stay_well_typed_under_every_rule_everywhere() -> None:
    """Rules fire at random places of random terms: the type is kept, and the value."""
    rng = random.Random(5)
    fired = 0
    rules = [r for r in all_rules().values() if not r.parameters]
    for number in range(300):
        term = Terms(rng).term(Terms(rng).type(2), depth=5)
        for rule in rng.sample(rules, 50):
            after = topdown(rule()).run(term, Context())
            if isinstance(after, Failure):
                continue
            fired += 1
            assert after.type is term.type
            assert difference(term, after, seed=number) is None, f"{rule.name}\n{term}\n{after}"
    assert fired > 50
