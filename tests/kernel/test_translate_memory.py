"""Memories: where a value is kept, which kernel it belongs to, who may touch it, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import lithify as lf
from lithify.kernel import ir
from lithify.kernel.show import show
from lithify.kernel.translate import translate
from lithify.kernel.walk import statements
from lithify.lang.build import (
    add,
    concat,
    const,
    drop,
    iterate,
    join,
    launch,
    let,
    map_,
    mul,
    op,
    param,
    pipe,
    proj,
    reduce_,
    reindex,
    replicate,
    scan,
    slide,
    split,
    take,
    to,
    transpose,
    tuple_,
    zip_,
)
from lithify.lang.errors import Rejected
from lithify.lang.index_functions import reverse
from lithify.lang.levels import HEAP, INLINE, LOCAL, OUT, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.machine import catalogue
from lithify.machine.host import host
from tests.kernel.tiles import matmul_by_groups
from tests.kernel.translated import ZERO, L, M, check, copied, matrix, rejected, vector

GROUP, ITEM = L("group0"), L("item0")


def square(x: Term) -> Term:
    return mul(x, x)


def both(p: Term) -> tuple[Term, Term]:
    return proj(0, p), proj(1, p)


# ---- let and to ----------------------------------------------------------------------------------------------------


def test_a_scalar_is_evaluated_once() -> None:
    a = param("a", f32)
    program = check(let(op("sqrt", square(a)), lambda r: map_(lambda e: mul(e, mul(r, r)), vector("x", 6), SEQ)))
    roots = [s for s in statements(program.kernels[0].body) if isinstance(s, ir.Store) and "sqrt" in repr(s.value)]
    assert len(roots) == 1


def test_threads_read_what_was_computed_before_their_loop() -> None:
    x = vector("x", 6)
    program = check(let(reduce_(add, ZERO, x, SEQ), lambda s: map_(lambda e: add(e, s), x, PAR)))
    assert [b.memory.name for b in program.temporaries] == ["heap"]
    check(
        let(to(PRIVATE, map_(square, x, SEQ)), lambda y: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(x, y), PAR))
    )


@pytest.mark.parametrize("memory", [PRIVATE, THREAD, HEAP], ids=str)
@pytest.mark.parametrize("level", [SEQ, UNROLL, VEC], ids=str)
def test_intermediate_arrays(memory: object, level: object) -> None:
    y = to(memory, map_(square, vector("x", 6), level))  # type: ignore[arg-type]
    check(let(y, lambda y: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(take(5, y), drop(1, y)), SEQ)))
    check(map_(lambda w: reduce_(add, ZERO, w, SEQ), slide(3, 1, y), SEQ))


def test_the_heap_separates_kernels() -> None:
    x = vector("x", 24)
    sums = to(HEAP, map_(lambda r: reduce_(add, ZERO, r, SEQ), split(6, x), GROUP))
    program = check(let(sums, lambda s: reduce_(add, ZERO, s, SEQ)))
    assert (len(program.kernels), len(program.temporaries)) == (2, 1)
    pair = tuple_(let(sums, lambda s: reduce_(add, ZERO, s, SEQ)), map_(square, x, PAR))
    assert len(check(pair).kernels) == 2
    below_a_layout = join(let(sums, lambda s: map_(lambda e: map_(square, replicate(2, e), SEQ), s, SEQ)))
    assert len(check(below_a_layout).kernels) == 2


def test_a_later_kernel_cannot_read_registers() -> None:
    x = vector("x", 6)
    total = reduce_(add, ZERO, x, SEQ)
    scaled = let(
        total, lambda s: let(to(HEAP, map_(lambda e: mul(e, s), x, SEQ)), lambda y: reduce_(add, ZERO, y, SEQ))
    )
    rejected(scaled, r"another one computes.*to\[heap\]")
    check(let(to(HEAP, total), lambda s: let(to(HEAP, map_(lambda e: mul(e, s), x, SEQ)), lambda y: copied(y, SEQ))))


@pytest.mark.parametrize("level", [PAR, VEC, GROUP, ITEM, L("global0")], ids=str)
def test_no_heap_below_parallel_levels(level: object) -> None:
    rows = map_(lambda r: let(to(HEAP, copied(r, SEQ)), lambda s: copied(s, SEQ)), matrix("x", 4, 8), level)  # type: ignore[arg-type]
    rejected(rows, r"to\[heap\] stands below map\[")


def test_local_memory_belongs_to_a_group() -> None:
    def through(memory: str, *levels: str) -> Term:
        def body(r: Term) -> Term:
            return let(to(M(memory), copied(r, SEQ)), lambda s: copied(s, SEQ))

        rows = matrix("x", 4, 8)
        return map_(body, rows, L(levels[0])) if len(levels) == 1 else map_(
            lambda _: map_(body, rows, L(levels[1])), replicate(2, ZERO), L(levels[0])
        )  # fmt: skip

    rejected(through("local", "seq"), "local memory is that of a work-group")
    rejected(through("local", "item0"), r"to\[local\] stands below map\[item0\]: one work-item")
    rejected(through("local", "group0", "item0"), "one work-item's own code")
    rejected(through("local", "global0"), "one work-item's own code")


def test_what_all_items_would_write_the_first_writes() -> None:
    rows = matrix("x", 4, 8)
    check(map_(lambda r: let(to(LOCAL, copied(r, SEQ)), lambda s: map_(lambda e: e, s, ITEM)), rows, GROUP))
    check(map_(lambda r: add(ZERO, reduce_(add, ZERO, to(LOCAL, copied(r, ITEM)), SEQ)), rows, GROUP))


def test_what_all_groups_would_write_the_first_writes() -> None:
    rows, total = matrix("x", 4, 8), reduce_(add, ZERO, vector("y", 5), SEQ)
    check(tuple_(map_(lambda r: copied(r, ITEM), rows, GROUP), total))
    check(tuple_(copied(vector("y", 5), L("global0")), map_(lambda r: copied(r, L("global0")), rows, L("global1"))))


def test_local_memory_of_each_warp() -> None:
    def warp(r: Term) -> Term:
        return let(to(LOCAL, copied(r, L("lane"))), lambda s: copied(reindex(reverse(32), s), L("lane")))

    program = check(map_(lambda g: map_(warp, g, L("warp")), split(2, matrix("x", 4, 32)), GROUP))
    (local,) = [b for b in program.kernels[0].scratch if b.memory.name == "local"]
    assert [s.constant for s in local.shape] == [2, 32]
    barriers = [s for s in statements(program.kernels[0].body) if isinstance(s, ir.Barrier)]
    assert [b.scope for b in barriers] == ["warp"]


def test_slots_are_taken_in_turn() -> None:
    def row(r: Term) -> Term:
        return let(to(M("local:2"), copied(r, ITEM)), lambda s: copied(reindex(reverse(8), s), ITEM))

    program = check(map_(lambda g: map_(row, g, SEQ), split(5, matrix("x", 10, 8)), GROUP))
    (local,) = [b for b in program.kernels[0].scratch if b.memory.name == "local"]
    assert [s.constant for s in local.shape] == [2, 8]
    check(map_(lambda g: map_(row, g, UNROLL), split(5, matrix("x", 10, 8)), GROUP))


def test_out_is_no_memory_to_read_from() -> None:
    rejected(let(to(OUT, copied(vector("x", 4), SEQ)), lambda y: copied(y, SEQ)), "memory `out`")
    check(to(OUT, copied(vector("x", 4), SEQ)))


# ---- what is recomputed --------------------------------------------------------------------------------------------


def test_a_map_without_level_is_read_lazily_once() -> None:
    x = vector("x", 6)
    check(reduce_(add, ZERO, map_(square, x), SEQ))
    check(map_(lambda e: add(e, e), map_(square, x), SEQ))
    check(map_(lambda r: copied(r, SEQ), transpose(map_(lambda r: map_(square, r), matrix("m", 3, 4))), SEQ))


def test_work_that_readers_repeat_is_refused() -> None:
    x = vector("x", 6)
    squares = map_(square, x)
    repeated = "computed again|several times|every reader"
    rejected(map_(lambda w: reduce_(add, ZERO, w, SEQ), slide(3, 1, squares), SEQ), repeated)
    rejected(copied(replicate(2, squares), SEQ, SEQ), repeated)
    rejected(let(squares, lambda y: copied(y, SEQ)), repeated)
    rows = map_(lambda r: map_(square, r), matrix("m", 3, 4))
    check(map_(lambda w: reduce_(add, ZERO, w, SEQ), rows, SEQ))
    for_each = map_(lambda w: map_(lambda e: reduce_(add, e, w, SEQ), x, SEQ), rows, SEQ)
    rejected(for_each, "computed again for every j")
    in_both = map_(
        lambda w: reduce_(lambda s, p: add(s, mul(proj(0, p), proj(1, p))), ZERO, zip_(w, w), SEQ), rows, SEQ
    )
    rejected(in_both, "several readers")


def test_inline_work_may_be_repeated() -> None:
    x = vector("x", 6)
    squares = map_(square, x, INLINE)
    check(map_(lambda w: reduce_(add, ZERO, w, SEQ), slide(3, 1, squares), SEQ))
    check(let(squares, lambda y: copied(concat(y, y), SEQ)))
    rejected(squares, "no level")


def test_loops_in_reading_position_are_refused() -> None:
    x = vector("x", 6)
    rejected(copied(map_(square, x, SEQ), SEQ), r"read where nobody has written it.*to\[private\]")
    rejected(reduce_(add, ZERO, map_(lambda r: reduce_(add, ZERO, r, SEQ), matrix("m", 3, 4)), SEQ), "holds loops")
    rejected(reduce_(add, ZERO, scan(add, ZERO, x, SEQ), SEQ), "nobody has written")


def test_what_a_body_mentions_several_times_is_computed_once() -> None:
    """Terms are shared, not copied: fifteen squarings of a value would else be 2^15 loads."""

    def power(e: Term) -> Term:
        for _ in range(15):
            e = op("min", mul(e, e), const(2.0, f32))
        return e

    program = check(map_(power, vector("x", 3), SEQ))
    assert len(show(program).splitlines()) < 40
    total = reduce_(add, ZERO, vector("x", 6), SEQ)
    assert show(check(mul(total, add(total, total)))).count("for[seq]") == 1
    squares = to(PRIVATE, map_(square, vector("x", 6), SEQ))
    twice = map_(lambda p: add(*both(p)), zip_(take(5, squares), drop(1, squares)), SEQ)
    assert show(check(twice)).count("for[seq]") == 2


# ---- what is left open ---------------------------------------------------------------------------------------------


def test_terms_that_do_not_say_how_they_run() -> None:
    x = vector("x", 6)
    rejected(map_(square, x), "a map has no level")
    rejected(reduce_(add, ZERO, x), "a reduce has no level")
    rejected(scan(add, ZERO, x), "a scan has no level")
    rejected(map_(lambda r: r, matrix("m", 2, 3), SEQ), "array result is nowhere told how to be written")
    rejected(split(2, x), "array result is nowhere")
    rejected(to(PRIVATE, copied(x, SEQ)), "the result is left in private memory")
    rejected(reduce_(add, ZERO, x, PAR), "cannot run at level par: its steps depend on each other.*split it")
    rejected(iterate(2, lambda y: map_(square, y, SEQ), x), "iterate over arrays")
    check(iterate(3, lambda s: add(s, s), param("a", f32)))


def test_errors_name_the_place() -> None:
    error = rejected(map_(lambda r: map_(square, r), matrix("m", 2, 3), PAR, "rows"), "no level")
    assert str(error.where).startswith("at map[par] rows > ")


# ---- accumulation in place -----------------------------------------------------------------------------------------


def rows_in_place(step: object, memory: object = OUT) -> Term:
    zeros = copied(replicate(4, ZERO), SEQ)
    return reduce_(step, zeros, matrix("x", 5, 4), SEQ, memory)  # type: ignore[arg-type]


def test_accumulation_in_place_reads_only_the_element_that_it_stores() -> None:
    pairwise = "updated in place.*double-buffer"

    def added(acc: Term, row: Term) -> Term:
        return map_(lambda p: add(proj(0, p), proj(1, p)), zip_(acc, row), SEQ)

    check(rows_in_place(added))
    rejected(rows_in_place(lambda acc, row: added(reindex(reverse(4), acc), row)), pairwise)
    rejected(rows_in_place(lambda acc, row: map_(lambda e: add(e, reduce_(add, ZERO, acc, SEQ)), row, SEQ)), pairwise)
    shifted = rows_in_place(lambda acc, row: added(concat(drop(1, acc), take(1, row)), row))
    rejected(shifted, pairwise)
    buffered = rows_in_place(lambda acc, row: let(to(PRIVATE, copied(acc, SEQ)),
                                                  lambda old: added(reindex(reverse(4), old), row)))  # fmt: skip
    check(buffered)


def test_an_accumulator_is_not_read_while_another_runs_in_it() -> None:
    def nested(acc: Term, row: Term) -> Term:
        return reduce_(lambda c, x: map_(lambda p: add(proj(0, p), mul(proj(1, p), x)), zip_(c, acc), SEQ),
                       acc, row, SEQ, OUT)  # fmt: skip

    rejected(rows_in_place(nested), "under another name")
    fine = rows_in_place(lambda acc, row: reduce_(lambda c, x: map_(lambda e: add(e, x), c, SEQ), acc, row, SEQ, OUT))
    check(fine)


def test_scans_of_rows_read_the_row_before() -> None:
    turned = scan(lambda acc, r: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(reindex(reverse(4), acc), r), SEQ),
                  replicate(4, ZERO), matrix("x", 5, 4), SEQ, OUT)  # fmt: skip
    check(turned)
    rejected(turned.replace(memory=PRIVATE), r"scan\[\.\., out\]")


# ---- distributed values, pipelines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_matrix_multiplication_by_groups(slots: int, asynchronous: bool) -> None:
    device = next(d for d in catalogue.known_models() if ("async" in d.copy_kinds) == asynchronous)
    program = check(matmul_by_groups(16, 32, 12, slots=slots), device=device)
    in_flight = any(isinstance(s, ir.Async) for s in statements(program.kernels[0].body))
    assert in_flight == (asynchronous and slots > 0)


def test_a_distributed_value_stays_with_its_item() -> None:
    def kept(read: object) -> Term:
        r = to(M("reg[item0,-]"), map_(lambda row: copied(row, UNROLL), matrix("x", 8, 3), ITEM))
        return map_(lambda _: let(r, read), replicate(1, ZERO), GROUP)  # type: ignore[arg-type]

    check(kept(lambda r: map_(lambda row: map_(square, row, UNROLL), r, ITEM)))
    exchange = r"explicit exchange needed: a value distributed over item0 is used at \["
    rejected(kept(lambda r: map_(lambda row: copied(row, UNROLL), reindex(reverse(8), r), ITEM)), exchange)
    rejected(kept(lambda r: map_(lambda row: copied(row, UNROLL), r, SEQ)), exchange)


def test_what_a_pipe_cannot_do() -> None:
    rows = pipe(lambda acc, t: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(acc, t), SEQ),
                lambda r: copied(r, SEQ), copied(replicate(4, ZERO), SEQ), matrix("x", 5, 4), 2)  # fmt: skip
    check(to(OUT, rows))
    rejected(rows.replace(roles="producer"), "no roles")
    rejected(copied(rows, SEQ), "array result is nowhere")
    total = pipe(lambda acc, t: add(acc, reduce_(add, ZERO, t, SEQ)), lambda r: copied(r, SEQ), ZERO,
                 matrix("x", 5, 4), 3)  # fmt: skip
    check(total)


# ---- what a device has ---------------------------------------------------------------------------------------------

CPU = host()
GPU = catalogue.known_models()[0]


def test_levels_that_the_device_lacks() -> None:
    x = vector("x", 6)
    rejected(map_(square, x, L("global0")), "has no level global0; it has .*seq", device=CPU)
    rejected(map_(square, x, PAR), "has no level par", device=GPU)
    check(map_(square, x, PAR), device=CPU)
    check(map_(square, x, L("global0")), device=GPU)


def test_limits_of_a_group() -> None:
    rejected(map_(square, vector("x", 5000), ITEM), "group of 5000 work-items is larger", device=GPU)
    check(launch((1,), (64,), map_(square, vector("x", 5000), ITEM)), device=GPU)
    rows = matrix("x", 3, 100_000)
    staged = map_(lambda r: let(to(LOCAL, copied(r, ITEM)), lambda s: copied(reindex(reverse(100_000), s), ITEM)), rows,
                  GROUP)  # fmt: skip
    rejected(launch((3,), (64,), staged), "needs 400000 bytes of local memory.* has ", device=GPU)


def test_launch_roots_a_kernel() -> None:
    x = vector("x", 6)
    rejected(map_(lambda r: launch((1,), (4,), map_(square, r, ITEM)), split(3, x), GROUP), "launch roots a kernel")
    rejected(reduce_(add, ZERO, launch((1,), (4,), map_(square, x, ITEM)), SEQ), "launch roots a kernel")


def test_unknown_parameters() -> None:
    with pytest.raises(Rejected, match="x is not a parameter of the program"):
        translate(copied(vector("x", 4), SEQ), [param("y", f32)])


# ---- local memory with padded rows, and tiles that are fetched ahead -------------------------------------------------


@pytest.mark.parametrize("text", ["local", "local:2", "local+4", "local:3+1"])
def test_the_text_of_local_memories(text: str) -> None:
    assert str(M(text)) == text
    assert M(str(M(text))) == M(text)


def test_rows_of_local_memory_lie_apart() -> None:
    staged = to(M("local+1"), copied(matrix("A", 4, 6), L("item1"), L("item0")))
    group = map_(lambda _: copied(transpose(staged), L("item1"), L("item0")), replicate(1, ZERO), GROUP)
    program = check(group)
    (tile,) = [b for kernel in program.kernels for b in kernel.scratch if b.memory.name == "local"]
    assert [size.constant for size in tile.shape] == [4, 7]


def test_plain_copies_are_loaded_before_the_tile_is_used_and_stored_after_it() -> None:
    rows = matrix("A", 5, 8)
    tile = pipe(
        lambda acc, row: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(acc, reindex(reverse(8), row)), ITEM),
        lambda row: to(M("local+2"), copied(row, ITEM)),
        copied(replicate(8, ZERO), ITEM),
        rows,
        2,
    )
    body = map_(lambda _: copied(to(M("reg[item0]"), tile), ITEM), replicate(2, ZERO), GROUP)
    program = check(body, device=catalogue.H200_OPENCL)
    loop = next(s for s in statements(program.kernels[0].body) if isinstance(s, ir.Loop))
    stores = [s.buffer.memory.name for s in statements(loop.body) if isinstance(s, ir.Store)]
    assert stores == ["private", "reg", "local"]


@pytest.mark.parametrize("device", ["cpu", "c", "opencl"])
@pytest.mark.parametrize("memory", ["private", "thread", "reg"])
@pytest.mark.parametrize(
    "text",
    [
        "f (xs : n.m.f32) = WHOLE map (map (λ x . x * 2)) xs END",
        "f (xs : n.m.f32) = map (λ row . WHOLE map (λ x . x * 2) row END) xs",
        "f (xs : n.m.f32) = reverse (WHOLE map (map (λ x . x * 2)) (reverse xs) END)",
    ],
)
def test_results_that_are_left_in_a_kernels_memory(
    text: str, memory: str, device: str, request: pytest.FixtureRequest
) -> None:
    """They are refused, and what the error says to write works."""
    if device == "opencl":
        request.getfixturevalue("opencl_device")
    xs = np.arange(6, dtype=np.float32).reshape(2, 3)
    left = text.replace("WHOLE", f"to[{memory}] (").replace("END", ")")
    with pytest.raises(lf.Rejected, match=rf"the result is left in {memory} memory") as error:
        lf.parse(left)["f"].on(device)(xs)
    copy = re.fullmatch(r"copy it, (.*) \(to\[\w+\] \.\.\), or leave out to\[\w+\]", error.value.hint or "")
    assert copy is not None
    copied = text.replace("WHOLE", f"{copy[1]} (to[private] (").replace("END", "))")
    for written in (copied, text.replace("WHOLE", "(").replace("END", ")")):
        np.testing.assert_array_equal(lf.parse(written)["f"].on(device)(xs), xs * 2)
