"""Each pass: what it changes, that it keeps the meaning, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from lithify.arith import Expr, as_variable, const, var
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.passes import PIPELINE, pipeline_for
from lithify.kernel.passes.barriers import _agrees, _bounds, _differs, insert_barriers
from lithify.kernel.passes.formulas import formulas
from lithify.kernel.passes.implied import drop_implied_conditions
from lithify.kernel.passes.reuse import reuse_memory
from lithify.kernel.passes.sharing import share_with_threads
from lithify.kernel.passes.splitting import split_index_sets
from lithify.kernel.show import show
from lithify.kernel.translate import translate
from lithify.kernel.walk import statements, with_blocks
from lithify.lang.build import (
    add,
    drop,
    join,
    launch,
    let,
    map_,
    mul,
    pad,
    pad_mode,
    proj,
    reduce_,
    reindex,
    scan,
    slide,
    split,
    take,
    to,
    transpose,
    zip_,
)
from lithify.lang.errors import EvaluationError
from lithify.lang.index_functions import reverse
from lithify.lang.levels import HEAP, LOCAL, OUT, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Level, Memory
from lithify.lang.term import Term
from lithify.machine import GENERIC_GPU, H200_CUDA
from tests.kernel import hand_written as hand
from tests.kernel.tiles import matmul_by_groups
from tests.kernel.translated import ZERO, L, check, copied, matrix, parameters_of, random_value, vector

GROUP, ITEM = L("group0"), L("item0")


def count(program: ir.Program, kind: type) -> int:
    return sum(isinstance(s, kind) for k in program.kernels for s in statements(k.body))


def conditions(program: ir.Program) -> int:
    """How often the text of a program tests something."""
    return show(program).count(">= 0")


# ---- barriers ------------------------------------------------------------------------------------------------------


def halved(s: Term, size: int) -> Term:
    """Sums of the two halves, by half of the items."""
    return map_(lambda p: add(proj(0, p), proj(1, p)), zip_(take(size, s), drop(size, s)), ITEM)


def tree(size: int) -> Term:
    """The sum of each row, halving in local memory."""

    def level(s: Term, n: int) -> Term:
        return copied(s, ITEM) if n == 0 else let(to(LOCAL, halved(s, n)), lambda h: level(h, n // 2))

    return map_(lambda r: let(to(LOCAL, copied(r, ITEM)), lambda s: level(s, size // 2)), matrix("x", 3, size), GROUP)


def reversed_rows(*levels: Level) -> Term:
    """Each row turned around through local memory."""
    outer, inner = levels

    def row(r: Term) -> Term:
        return let(to(LOCAL, copied(r, inner)), lambda s: copied(reindex(reverse(12), s), inner))

    return map_(lambda g: map_(row, g, SEQ), split(2, matrix("x", 4, 12)), outer)


def scan_of_rows() -> Term:
    return map_(
        lambda m: scan(
            lambda acc, r: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(reindex(reverse(8), acc), r), ITEM),
            join(take(1, m)),
            m,
            SEQ,
            OUT,
        ),
        split(5, matrix("x", 10, 8)),
        GROUP,
    )


SYNCHRONISED = {
    "tree of 2": (tree(2), 1),
    "tree of 8": (tree(8), 3),
    "tree of 64": (tree(64), 6),
    "rows in a loop": (reversed_rows(GROUP, ITEM), 2),
    "scan through memory": (scan_of_rows(), 1),
    "matrix multiplication": (matmul_by_groups(16, 16, 8, (8, 8, 4), (2, 2)), 2),
    "pipeline of 1": (matmul_by_groups(16, 16, 12, (8, 8, 4), (2, 2), 1), 2),
    "pipeline of 2": (matmul_by_groups(16, 16, 12, (8, 8, 4), (2, 2), 2), 2),
    "pipeline of 3": (matmul_by_groups(16, 16, 16, (8, 8, 4), (2, 2), 3), 2),
}


@pytest.mark.parametrize("name", SYNCHRONISED)
def test_barriers_are_inserted_and_no_more(name: str) -> None:
    term, expected = SYNCHRONISED[name]
    for seed in range(2):
        program = check(term, seed=seed)
    assert count(program, ir.Barrier) == expected


def without_one_barrier(block: ir.Block, number: list[int]) -> ir.Block:
    """The block without the n-th barrier, counting down."""
    result: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, ir.Barrier):
            number[0] -= 1
            if number[0] == -1:
                continue
        result.append(with_blocks(statement, lambda inner: without_one_barrier(inner, number)))
    return tuple(result)


def mutants(program: ir.Program) -> Iterator[ir.Program]:
    (kernel,) = program.kernels
    for number in range(count(program, ir.Barrier)):
        yield replace(program, kernels=(replace(kernel, body=without_one_barrier(kernel.body, [number])),))


@pytest.mark.parametrize("name", SYNCHRONISED)
def test_without_any_of_them_there_is_a_race(name: str) -> None:
    term, expected = SYNCHRONISED[name]
    program = check(term)
    rng = np.random.default_rng(0)
    inputs = {p["name"]: random_value(p.type, rng) for p in parameters_of(term)}
    found = 0
    for mutant in mutants(program):
        found += 1
        with pytest.raises(EvaluationError, match=r"race|unordered"):
            run(mutant, inputs)
    assert found == expected


def test_items_that_keep_to_their_elements_need_no_barrier() -> None:
    through = map_(
        lambda r: let(to(LOCAL, copied(r, ITEM)), lambda s: map_(lambda e: mul(e, e), s, ITEM)),
        matrix("x", 3, 8),
        GROUP,
    )
    assert count(check(through), ir.Barrier) == 0


def test_items_agree_where_the_rest_differs_by_more_than_they_reach() -> None:
    own, other, i, j = var("lane", const(32)), var("lane", const(32)), var("i", const(9)), var("i", const(9))
    lane = as_variable(own)
    assert _agrees(lane, other, own + 32 * i, other + 32 * j)
    assert _agrees(lane, other, own + 32 * i + 64, other + 32 * j)
    assert _agrees(lane, other, own + i, other + i)
    assert not _agrees(lane, other, own + 31 * i, other + 31 * j)
    assert not _agrees(lane, other, own + 32 * i + 1, other + 32 * j)
    assert not _agrees(lane, other, 2 * own + 32 * i, 2 * other + 32 * j)
    assert not _agrees(lane, other, own + i, other + j)
    assert not _agrees(lane, other, own + own // 8, other + other // 8)


def test_a_form_between_multiples_of_what_divides_its_rest_is_never_zero() -> None:
    w, v, small = var("w", const(8)), var("w", const(8)), var("x", const(28))
    assert _differs(117 * (w - v) + small + 1)
    assert _differs(6 * w - 4 * v + 3)
    assert not _differs(117 * (w - v) + small)
    assert not _differs(27 * (w - v) + small + 1)
    assert not _differs(6 * w - 4 * v + 2)


def test_conditions_bound_what_they_mention() -> None:
    x, y = (as_variable(var(name, const(256))) for name in "xy")
    assert _bounds((const(124) - x.expr,)) == {(x, 124)}
    assert _bounds((const(7) - x.expr - 2 * y.expr,)) == {(x, 7), (y, 3)}
    assert _bounds((x.expr - 3, const(9) - x.expr + y.expr)) == frozenset()


def test_rounds_of_some_items_of_a_group_need_no_barrier_in_between() -> None:
    """5 of 8 items copy 40 elements to rows of 9 each."""

    def group(row: Term) -> Term:
        five = map_(lambda r: map_(lambda x: x, r, ITEM), split(5, row), UNROLL)
        rows = to(Memory("local", padding=1), split(8, join(five)))
        return let(rows, lambda s: copied(s, ITEM, SEQ))

    program = check(launch((3,), (8,), map_(group, matrix("x", 3, 40), GROUP)))
    assert count(program, ir.Barrier) == 1


def test_an_if_that_diverges_is_split_around_a_barrier() -> None:
    """Three of four rows of items scan through local memory, each item reading what another one wrote."""

    def turned(acc: Term, r: Term) -> Term:
        return map_(lambda p: add(proj(0, p), proj(1, p)), zip_(reindex(reverse(8), acc), r), ITEM)

    def group(m: Term) -> Term:
        scans = to(LOCAL, map_(lambda rows: scan(turned, join(take(1, rows)), rows, SEQ, OUT), m, L("item1")))
        return let(scans, lambda s: copied(s, L("item1"), SEQ, ITEM))

    x = split(3, split(5, matrix("x", 30, 8)))
    program = check(launch((2, 1), (8, 4), map_(group, x, GROUP)))
    assert not any(
        isinstance(s, ir.If) and any(isinstance(i, ir.Barrier) for i in statements(s.body))
        for s in statements(program.kernels[0].body)
    )
    assert count(program, ir.Barrier) > 0


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("conditions", [1, 2, 3])
def test_an_if_with_an_else_is_split_for_any_number_of_conditions(conditions: int, nested: bool) -> None:
    """Some items turn round what they have through local memory; the others write something else, each once."""
    x, out, s = hand.given("x", 8), hand.result(8), hand.buffer("s", 8, memory=LOCAL)

    def body(_g: Expr, i: Expr) -> ir.Block:
        guard = (const(6) - i, i - 1, (i - 4) * (i - 4))[:conditions]
        turned = (hand.store(s, i, hand.load(x, i)), hand.store(out, i, hand.load(s, const(7) - i)))
        chosen = ir.If(guard, turned, (hand.store(out, i, hand.apply("add", hand.load(out, i), hand.number(5))),))
        around = ir.If((const(7) - 2 * i + 6,), (chosen,), (hand.store(out, i, hand.number(3)),)) if nested else chosen
        return (hand.store(s, i, hand.number(0)), hand.store(out, i, hand.number(1)), around)

    program = insert_barriers(hand.program((x,), out, hand.on_groups(1, 8, body, s)))
    chosen = [i <= 6 and (conditions < 2 or i >= 1) and (not nested or i <= 6) for i in range(8)]
    expected = [(7 - i if chosen[7 - i] else 0) if chosen[i] else 3 if nested and i > 6 else 6 for i in range(8)]
    assert run(program, {"x": np.arange(8, dtype=np.float32)})[0].tolist() == expected


# ---- splitting -----------------------------------------------------------------------------------------------------


def padded(mode: str, x: Term) -> Term:
    if mode == "fill":
        return map_(lambda row: pad(1, 1, ZERO, row), pad(1, 1, ZERO, x))
    return map_(lambda row: pad_mode(mode, 1, 1, row), pad_mode(mode, 1, 1, x))


def stencil(mode: str, outer: Level, lanes: int, rows: int = 8, columns: int = 20) -> Term:
    """The sum of the nine neighbours."""
    windows = slide(3, 1, map_(lambda row: slide(3, 1, row), padded(mode, matrix("x", rows, columns))))
    nine = map_(transpose, windows)

    def total(w: Term) -> Term:
        return reduce_(add, ZERO, join(w), UNROLL)

    def row(r: Term) -> Term:
        return join(map_(lambda b: map_(total, b, VEC), split(lanes, r), SEQ)) if lanes else map_(total, r, SEQ)

    return map_(row, nine, outer)


@pytest.mark.parametrize("mode", ["fill", "clamp", "mirror", "wrap"])
@pytest.mark.parametrize("outer", [SEQ, PAR], ids=str)
@pytest.mark.parametrize("lanes", [0, 4])
def test_stencils_have_no_conditions_in_their_main_part(mode: str, outer: Level, lanes: int) -> None:
    program = check(stencil(mode, outer, lanes))
    if mode != "wrap":
        assert clean_nest(program.kernels[0].body, 9), show(program)


def clean_nest(block: ir.Block, loads: int) -> bool:
    """Is there an innermost loop of a nest whose statements test nothing and take no minimum?"""
    for s in statements(block):
        if isinstance(s, ir.Loop) and not any(isinstance(i, ir.Loop) for i in statements(s.body)):
            text = repr(s)
            if text.count("Load(") >= loads and "min(" not in text and "guard=()" in text and not _guards(s.body):
                return True
    return False


def _guards(block: ir.Block) -> bool:
    return any(is_condition for _, is_condition in formulas(block))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 37])
@pytest.mark.parametrize("outer", [SEQ, PAR], ids=str)
def test_partial_blocks(size: int, outer: Level) -> None:
    blocks = split(8, pad_mode("clamp", 0, -size % 8, vector("x", size)))
    check(take(size, join(map_(lambda b: map_(lambda e: mul(e, e), b, VEC), blocks, outer))))
    check(take(size, join(map_(lambda b: map_(lambda e: mul(e, e), b, SEQ), blocks, outer))))


def test_loops_over_threads_stay_one_loop() -> None:
    program = check(stencil("clamp", PAR, 4))
    assert sum(isinstance(s, ir.Loop) and s.level == PAR for s in statements(program.kernels[0].body)) == 1


def test_small_main_parts_are_not_cut_out() -> None:
    small = stencil("fill", SEQ, 0, 3, 3)
    before = check(small, passes=(share_with_threads,))
    assert show(split_index_sets(before)) == show(before)


# ---- implied conditions --------------------------------------------------------------------------------------------


def test_a_stores_guard_decides_minima_in_its_value() -> None:
    blocks = split(8, pad_mode("clamp", 0, 3, vector("x", 13)))
    term = take(13, join(map_(lambda b: map_(lambda e: mul(e, e), b, L("item0")), blocks, GROUP)))
    raw = check(term, passes=())
    assert "min(" in show(raw)
    assert "min(" not in show(drop_implied_conditions(raw))
    check(term, passes=(drop_implied_conditions, insert_barriers))


def test_conditions_below_an_if_of_the_same_kind_vanish() -> None:
    term = take(13, copied(pad_mode("clamp", 0, 3, vector("x", 13)), L("global0")))
    program = check(term)
    assert conditions(program) <= 3


# ---- barriers ------------------------------------------------------------------------------------------------------


def test_warps_wait_where_the_device_lets_them() -> None:
    """A warp reads what its lanes wrote. Without a way to wait for a warp the whole group waits."""
    exchanged = map_(
        lambda r: map_(
            lambda w: let(to(LOCAL, copied(w, L("lane"))), lambda s: copied(reindex(reverse(32), s), L("lane"))),
            split(32, r),
            L("warp"),
        ),
        matrix("x", 2, 64),
        GROUP,
    )
    for device, scope in ((None, "warp"), (H200_CUDA, "warp"), (GENERIC_GPU, "group")):
        program = translate(exchanged, parameters_of(exchanged), device=device)
        scopes = {s.scope for k in program.kernels for s in statements(k.body) if isinstance(s, ir.Barrier)}
        assert scopes == {scope}
        check(exchanged, device=device, passes=pipeline_for(device))


# ---- memory --------------------------------------------------------------------------------------------------------


def test_local_memory_of_a_tree_is_reused() -> None:
    def bytes_of(program: ir.Program) -> int:
        sizes = [b for b in program.kernels[0].scratch if b.memory.name == "local"]
        return sum(int(np.prod([s.constant for s in b.shape])) for b in sizes)

    separate = check(tree(64), passes=(insert_barriers,))
    shared = check(tree(64))
    assert bytes_of(separate) == 64 + 32 + 16 + 8 + 4 + 2 + 1
    assert bytes_of(shared) == 64 + 32


def test_memory_that_is_alive_together_is_not_shared() -> None:
    x = vector("x", 6)

    def sums(a: Term) -> Term:
        return let(to(THREAD, copied(a, SEQ)), lambda b: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(a, b), SEQ))

    both = let(to(THREAD, copied(x, SEQ)), sums)
    program = check(both, passes=())
    assert len(reuse_memory(program).kernels[0].scratch) == 2
    check(both)


def test_temporaries_of_kernels_that_are_over_are_reused() -> None:
    chain: Term = vector("x", 8)
    for _ in range(4):
        chain = to(HEAP, map_(lambda e: add(e, e), chain, PAR))
    program = check(copied(chain, PAR))
    assert len(program.kernels) == 5
    assert len(program.temporaries) == 2


def test_an_accumulator_lives_as_long_as_its_loop() -> None:
    zeros = copied(map_(lambda _: ZERO, vector("z", 4)), SEQ)
    total = reduce_(
        lambda acc, r: let(
            to(THREAD, map_(lambda e: mul(e, e), r, SEQ)),
            lambda s: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(acc, s), SEQ),
        ),
        zeros,
        matrix("x", 5, 4),
        SEQ,
        THREAD,
    )
    check(copied(total, SEQ))


def test_what_threads_read_is_moved_to_the_heap_and_nothing_else() -> None:
    x = vector("x", 6)
    summed = let(reduce_(add, ZERO, x, SEQ), lambda s: map_(lambda e: mul(add(e, s), reduce_(add, e, x, SEQ)), x, PAR))
    program = check(summed)
    assert [b.name for b in program.temporaries] == ["t_shared"]
    array = let(to(PRIVATE, copied(x, SEQ)), lambda y: map_(lambda e: reduce_(add, e, y, SEQ), x, PAR))
    (kernel,) = check(array).kernels
    assert all(not b.shape for b in kernel.scratch)


def test_the_pipeline_keeps_the_meaning_at_every_stage() -> None:
    for term in (stencil("mirror", PAR, 4), tree(8), matmul_by_groups(16, 16, 8, (8, 8, 4), (2, 2))):
        for length in range(len(PIPELINE)):
            check(term, passes=(*PIPELINE[:length], share_with_threads, insert_barriers))
