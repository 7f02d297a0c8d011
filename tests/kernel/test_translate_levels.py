"""Loops at every level and every pair of levels: the right elements once each, or a refusal that says why."""

from __future__ import annotations

import itertools

import pytest

from lithify.kernel import ir
from lithify.kernel.walk import statements
from lithify.lang.build import (
    add,
    at,
    const,
    join,
    launch,
    let,
    map_,
    mul,
    param,
    proj,
    reduce_,
    replicate,
    scan,
    split,
    take,
    to,
    transpose,
    tuple_,
    zip_,
)
from lithify.lang.levels import OUT, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Level
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from tests.kernel.translated import ZERO, L, M, check, copied, matrix, rejected, vector

CPU = (SEQ, UNROLL, VEC, PAR)
GPU = tuple(map(L, ("group0", "group1", "item0", "item1", "global0", "global1", "item", "lane", "warp")))


def levels_may_nest(outer: Level, inner: Level) -> bool:
    if inner.name in ("seq", "unroll"):
        return True  # below a warp its first lane writes alone
    if outer.name in ("seq", "unroll"):
        return inner.name not in ("par", "group", "global")
    if outer.name == "vec" or inner.name == "par":
        return False
    if inner.name == "vec":
        return True
    if outer.name == "par":
        return False
    dims_differ = None not in (outer.dim, inner.dim) and outer.dim != inner.dim
    if outer.name == inner.name:
        return dims_differ
    if outer.name == "group":
        return inner.name in ("item", "lane", "warp")
    return outer.name == "warp" and inner.name == "lane"


@pytest.mark.parametrize("level", [*CPU, *GPU], ids=str)
@pytest.mark.parametrize("size", [1, 2, 7, 64, 70])
def test_one_level(level: Level, size: int) -> None:
    scaled = map_(lambda e: mul(param("a", f32), e), vector("x", size), level)
    check(scaled)  # at the level warp the first lane of each writes


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product((*CPU, *GPU), repeat=2)), ids=str)
def test_two_levels(outer: Level, inner: Level) -> None:
    doubled = map_(lambda row: map_(lambda e: add(e, e), row, inner), matrix("x", 3, 64), outer)
    if levels_may_nest(outer, inner):
        check(doubled)
    else:
        rejected(doubled, "cannot stand inside|below a loop|same hardware index|would write the same|whole warps")


@pytest.mark.parametrize("size", [1, 3, 31, 32, 33, 100])
def test_warps_of_lanes(size: int) -> None:
    rows = map_(lambda row: copied(row, L("lane")), matrix("x", 5, size), L("warp"))
    check(rows)
    check(launch((1,), (64,), map_(lambda row: copied(row, L("lane")), matrix("x", 5, size), L("warp"))))


@pytest.mark.parametrize("grid", [1, 2, 5])
@pytest.mark.parametrize("group", [1, 4, 6])
@pytest.mark.parametrize("size", [1, 4, 20, 23])
def test_a_launch_strides_and_guards(grid: int, group: int, size: int) -> None:
    check(launch((grid,), (group,), map_(lambda e: mul(e, e), vector("x", size), L("global0"))))
    tiles = map_(lambda row: copied(row, L("item0")), matrix("x", size, 5), L("group0"))
    check(launch((grid,), (group,), tiles))


def test_two_dimensions_of_a_launch() -> None:
    doubled = map_(lambda r: map_(lambda e: add(e, e), r, L("global0")), matrix("x", 9, 13), L("global1"))
    check(launch((2, 2), (4, 2), doubled))
    check(doubled)
    tiles = join(map_(lambda r: copied(r, L("item0")), split(3, matrix("x", 9, 13)), L("item1")))
    rejected(tiles, "array result is nowhere|every item1")


def test_linear_items_of_a_group_with_two_dimensions() -> None:
    def body(row: Term) -> Term:
        return let(
            to(M("local"), copied(row, L("item"))),
            lambda s: join(map_(lambda r: copied(r, L("item0")), split(4, s), L("item1"))),
        )

    check(map_(body, matrix("x", 3, 12), L("group0")))


def test_empty_nests_leave_nothing() -> None:
    empty = map_(lambda e: e, take(0, vector("x", 5)), SEQ)
    program = check(empty)
    assert not program.kernels
    check(reduce_(add, ZERO, take(0, vector("x", 5)), SEQ))
    check(scan(add, ZERO, take(0, vector("x", 5)), SEQ))
    check(map_(lambda row: copied(row), take(0, matrix("x", 3, 4)), PAR))
    check(map_(lambda row: reduce_(add, ZERO, take(0, row), SEQ), matrix("x", 3, 4), PAR))


def test_one_iteration_needs_no_loop() -> None:
    program = check(map_(lambda row: copied(row, VEC), matrix("x", 1, 1), SEQ))
    assert not any(isinstance(s, ir.Loop | ir.Lanes) for s in statements(program.kernels[0].body))


# ---- reductions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [SEQ, UNROLL], ids=str)
@pytest.mark.parametrize("memory", [None, PRIVATE, OUT, THREAD], ids=str)
@pytest.mark.parametrize("size", [0, 1, 6])
def test_reductions_and_scans(level: Level, memory: object, size: int) -> None:
    xs = take(size, vector("x", 8))
    check(reduce_(add, ZERO, xs, level, memory))  # type: ignore[arg-type]
    check(scan(add, ZERO, xs, level, memory))  # type: ignore[arg-type]
    dot = reduce_(lambda s, p: add(s, mul(proj(0, p), proj(1, p))), ZERO, zip_(xs, xs), level, memory)  # type: ignore[arg-type]
    check(dot)


@pytest.mark.parametrize("outer", [SEQ, PAR, VEC, UNROLL, L("global0"), L("group0")], ids=str)
@pytest.mark.parametrize("inner", [SEQ, UNROLL], ids=str)
def test_a_reduction_of_each_row(outer: Level, inner: Level) -> None:
    check(map_(lambda row: reduce_(add, ZERO, row, inner), matrix("x", 8, 5), outer))
    check(map_(lambda row: scan(add, ZERO, row, inner), matrix("x", 8, 5), outer))


def test_partial_sums_in_the_lanes_of_a_vector() -> None:
    partial = reduce_(
        lambda acc, v: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(acc, v), VEC),
        copied(replicate(8, ZERO), VEC),
        split(8, vector("x", 64)),
        SEQ,
        PRIVATE,
    )
    program = check(reduce_(add, ZERO, partial, SEQ))
    assert any(isinstance(s, ir.Lanes) for s in statements(program.kernels[0].body))


def test_accumulators_of_tuples_are_replaced_at_once() -> None:
    swap = reduce_(
        lambda acc, x: tuple_(proj(1, acc), add(proj(0, acc), x)),
        tuple_(ZERO, const(1.0, f32)),
        vector("x", 7),
        SEQ,
    )
    check(swap)


def test_a_register_tile() -> None:
    def outer_product(c: Term, ab: Term) -> Term:
        return map_(
            lambda r: map_(lambda s: add(proj(0, s), mul(proj(1, r), proj(1, s))), zip_(proj(0, r), proj(1, ab)), VEC),
            zip_(c, proj(0, ab)),
            UNROLL,
        )

    zeros = map_(lambda r: copied(r, VEC), replicate(2, replicate(4, ZERO)), UNROLL)
    tile = reduce_(outer_product, zeros, zip_(transpose(matrix("a", 2, 5)), matrix("b", 5, 4)), SEQ, OUT)
    check(map_(lambda _: tile, replicate(1, ZERO), SEQ))
    check(tile)


def test_an_element_at_a_constant() -> None:
    check(map_(lambda e: add(e, at(vector("y", 4), 2)), vector("x", 5), SEQ))
