"""Each check of the kernel evaluator: the smallest kernel that breaks it, the report, and the nearest right kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lithify.arith import Expr, as_variable, const, loaded, size, var
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.lang.errors import EvaluationError, UnboundSize
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, Level
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import bool_, f16, f32, i8, i32
from tests.kernel.hand_written import (
    GROUP,
    ITEM,
    apply,
    buffer,
    given,
    lanes,
    load,
    loop,
    number,
    on_cpu,
    on_groups,
    program,
    result,
    store,
)

X8 = np.arange(8, dtype=np.float32)


def on_items(
    body: Any, *scratch: ir.Buffer, out: ir.Buffer, x: ir.Buffer | None = None, groups: int = 1, items: int = 4
):  # type: ignore[no-untyped-def]
    return program((x,) if x else (), out, on_groups(groups, items, body, *scratch))


# ---- bounds --------------------------------------------------------------------------------------------------------


def test_out_of_bounds_names_statement_and_coordinates() -> None:
    x, out = given("x", 8), result(8)
    bad = on_items(lambda g, i: (store(out, g * 4 + i, load(x, g * 4 + i + 1)),), out=out, x=x, groups=2)
    with pytest.raises(EvaluationError) as caught:
        run(bad, {"x": X8})
    assert caught.value.message == "out of bounds: reads index 8 of dimension 0 of x, which has 8"
    assert "in kernel: out[" in str(caught.value)
    assert "at group = 1, item = 3" in str(caught.value)


def test_every_dimension_is_checked_for_itself() -> None:
    """x[0, 4] would be x[1, 0] of the memory."""
    x, out = given("x", 2, 4), result(1)
    bad = program((x,), out, on_cpu(store(out, 0, load(x, 0, 4))))
    with pytest.raises(EvaluationError, match="index 4 of dimension 1 of x, which has 4"):
        run(bad, {"x": X8.reshape(2, 4)})


def test_a_failing_guard_reads_nothing() -> None:
    x, out = given("x", 4), result(6)
    guarded = loop("i", 6, lambda i: (store(out, i, load(x, i, guard=(3 - i,), fill=-1)),))
    assert run(program((x,), out, on_cpu(guarded)), {"x": X8[:4]})[0].tolist() == [0, 1, 2, 3, -1, -1]


def test_conditions_after_a_failing_one_are_not_evaluated() -> None:
    """The second condition reads an index from a buffer, at a place that only the first makes safe."""
    x, ids, out = given("x", 3), given("ids", 3, scalar=i32), result(5)

    def body(i: Expr) -> ir.Block:
        where = loaded(ids, (i,), 0, 2)
        return (store(out, i, load(x, where, guard=(2 - i, where - 1), fill=9)),)

    values = {"x": X8[:3], "ids": np.array([2, 0, 1], np.int32)}
    good = program((x, ids), out, on_cpu(loop("i", 5, body)))
    assert run(good, values)[0].tolist() == [2, 9, 1, 9, 9]
    bad = program((x, ids), out, on_cpu(loop("i", 5, lambda i: (store(out, i, load(x, loaded(ids, (i,), 0, 2))),))))
    with pytest.raises(EvaluationError, match="index 3 of dimension 0 of ids"):
        run(bad, values)


def test_an_index_from_a_buffer_keeps_its_promise() -> None:
    x, ids, out = given("x", 8), given("ids", 2, scalar=i32), result(2)
    gather = loop("i", 2, lambda i: (store(out, i, load(x, loaded(ids, (i,), 0, 3))),))
    kernel = program((x, ids), out, on_cpu(gather))
    assert run(kernel, {"x": X8, "ids": np.array([3, 1], np.int32)})[0].tolist() == [3, 1]
    with pytest.raises(EvaluationError, match=r"ids\[1\] holds 4, not an index from 0 to 3"):
        run(kernel, {"x": X8, "ids": np.array([3, 4], np.int32)})


# ---- memory that nothing wrote -------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [LOCAL, PRIVATE])
def test_scratch_memory_holds_nothing_at_first(memory: Any) -> None:
    out, t = result(4), buffer("t", 4, memory=memory)
    bad = on_items(lambda _g, i: (store(out, i, load(t, i)),), t, out=out)
    with pytest.raises(EvaluationError, match=r"reads t\[0\], which nothing wrote"):
        run(bad, {})


def test_local_memory_is_fresh_for_each_group() -> None:
    """Only one group writes; on a device the others would read what it left behind."""
    out, t = result(4), buffer("t", 2, memory=LOCAL)
    bad = on_items(
        lambda g, i: (ir.If((-g,), (store(t, i, number(1)),)), store(out, g * 2 + i, load(t, i))),
        t, out=out, groups=2, items=2,
    )  # fmt: skip
    with pytest.raises(EvaluationError, match=r"reads t\[0\], which nothing wrote") as caught:
        run(bad, {})
    assert "group = 1" in str(caught.value)


def test_private_memory_is_fresh_for_each_iteration_over_threads() -> None:
    """The accumulator is set in the first iteration only."""
    out, acc = result(4), buffer("acc", 1, memory=PRIVATE)
    bad = loop("r", 4, lambda r: (ir.If((-r,), (store(acc, 0, number(1)),)), store(out, r, load(acc, 0))), PAR)
    with pytest.raises(EvaluationError, match=r"reads acc\[0\], which nothing wrote"):
        run(program((), out, on_cpu(bad, scratch=(acc,))), {})
    in_order = loop("r", 4, lambda r: (ir.If((-r,), (store(acc, 0, number(1)),)), store(out, r, load(acc, 0))))
    assert run(program((), out, on_cpu(in_order, scratch=(acc,))), {})[0].tolist() == [1] * 4


def test_memory_of_all_threads_is_written_before_their_loop() -> None:
    """A buffer that is also used outside the loop over threads is one buffer, shared by them."""
    out, t = result(4), buffer("t", 1, memory=PRIVATE)
    good = on_cpu(store(t, 0, number(3)), loop("r", 4, lambda r: (store(out, r, load(t, 0)),), PAR), scratch=(t,))
    assert run(program((), out, good), {})[0].tolist() == [3] * 4
    bad = on_cpu(
        store(t, 0, number(3)),
        loop("r", 4, lambda r: (store(t, 0, number(1)), store(out, r, load(t, 0))), PAR),
        scratch=(t,),
    )
    with pytest.raises(EvaluationError, match="race on t"):
        run(program((), out, bad), {})


def test_a_result_is_written_everywhere() -> None:
    out = result(4)
    with pytest.raises(EvaluationError, match=r"the result out\[3\] is never written \(1 of 4"):
        run(program((), out, on_cpu(loop("i", 3, lambda i: (store(out, i, number(0)),)))), {})


def test_accumulation_needs_an_initial_value() -> None:
    out = result(1)
    add = store(out, 0, apply("add", load(out, 0), number(1)))
    with pytest.raises(EvaluationError, match=r"accumulates into out\[0\], which nothing initialised"):
        run(program((), out, on_cpu(add)), {})
    update = ir.AtomicUpdate(OPERATORS["add"], out, (const(0),), number(1))
    with pytest.raises(EvaluationError, match=r"accumulates into out\[0\], which nothing initialised"):
        run(program((), out, on_cpu(update)), {})
    assert run(program((), out, on_cpu(store(out, 0, number(1)), add, update)), {})[0] == [3]


def test_a_value_that_nobody_uses_may_be_missing_but_not_outside() -> None:
    """Both sides of a choice are computed on a device: they must stay inside memory, and need not be written."""
    x, out, t = given("x", 4), result(4), buffer("t", 4, memory=PRIVATE)

    i = var("i", 4)

    def kernel(value: ir.Value, *before: ir.Statement) -> ir.Program:
        body = ir.Loop(as_variable(i), const(4), SEQ, (store(out, i, value),), None)
        return program((x,), out, on_cpu(*before, body, scratch=(t,)))

    written = loop("j", 2, lambda j: (store(t, j + 2, number(5)),))
    choice = ir.Choose((i - 2,), load(t, i), number(7))
    assert run(kernel(choice, written), {"x": X8[:4]})[0].tolist() == [7, 7, 5, 5]
    with pytest.raises(EvaluationError, match=r"reads t\[3\], which nothing wrote"):
        run(kernel(choice, store(t, 2, number(5))), {"x": X8[:4]})
    with pytest.raises(EvaluationError, match="reads index -2 of dimension 0 of x"):
        run(kernel(ir.Choose((i - 2,), load(x, i - 2), number(7))), {"x": X8[:4]})
    unguarded = ir.Choose((i - 2,), load(x, i - 2, guard=(i - 2,)), number(7))
    assert run(kernel(unguarded), {"x": X8[:4]})[0].tolist() == [7, 7, 0, 1]
    with pytest.raises(EvaluationError, match="has no fill, and its value is used"):
        run(kernel(load(x, i - 2, guard=(i - 2,))), {"x": X8[:4]})


# ---- races ---------------------------------------------------------------------------------------------------------


def test_groups_do_not_write_what_others_touch() -> None:
    x, out = given("x", 8), result(4)
    same = on_items(lambda _g, i: (store(out, i, load(x, i)),), out=out, x=x, groups=2)
    with pytest.raises(
        EvaluationError, match=r"race on out\[\d\]: written by one thread, written by another"
    ) as caught:
        run(same, {"x": X8})
    assert "group = 0" in str(caught.value)
    assert "group = 1" in str(caught.value)
    assert run(on_items(lambda _g, i: (store(out, i, load(x, i)),), out=out, x=x), {"x": X8})[0].tolist() == [
        0,
        1,
        2,
        3,
    ]


def test_a_barrier_does_not_order_groups() -> None:
    out, other = result(8), buffer("t", 8, role="temporary")

    def body(g: Expr, i: Expr) -> ir.Block:
        p = g * 4 + i
        everything = ir.Barrier("group", ("local", "heap"))
        return (store(other, p, number(1)), everything, store(out, p, load(other, 7 - p)))

    bad = program((), out, on_groups(2, 4, body), temporaries=(other,))
    with pytest.raises(EvaluationError, match=r"race on t\[\d\]"):
        run(bad, {})
    one = on_groups(2, 4, lambda g, i: (store(other, g * 4 + i, number(1)),))
    two = on_groups(2, 4, lambda g, i: (store(out, g * 4 + i, load(other, 7 - g * 4 - i)),))
    assert run(program((), out, one, two, temporaries=(other,)), {})[0].tolist() == [1] * 8


@pytest.mark.parametrize(("memory", "fine"), [(("local",), False), (("heap",), True), (("local", "heap"), True)])
def test_a_barrier_orders_the_memory_that_it_names(memory: tuple[str, ...], fine: bool) -> None:
    out, t = result(4), buffer("t", 4, role="temporary")
    kernel = on_groups(
        1, 4, lambda _g, i: (store(t, i, number(2)), ir.Barrier("group", memory), store(out, i, load(t, 3 - i)))
    )
    subject = program((), out, kernel, temporaries=(t,))
    if fine:
        assert run(subject, {})[0].tolist() == [2] * 4
    else:
        with pytest.raises(EvaluationError, match="race on t"):
            run(subject, {})


def test_reading_together_is_no_race_and_writing_alone_is_none() -> None:
    out, s = result(4), buffer("s", 1, memory=LOCAL)
    kernel = on_items(
        lambda _g, i: (ir.If((-i,), (store(s, 0, number(5)),)), ir.Barrier(), store(out, i, load(s, 0))), s, out=out
    )
    assert run(kernel, {})[0].tolist() == [5] * 4


def test_equal_values_written_by_all_are_a_race_all_the_same() -> None:
    out, s = result(4), buffer("s", 1, memory=LOCAL)
    kernel = on_items(lambda _g, i: (store(s, 0, number(5)), ir.Barrier(), store(out, i, load(s, 0))), s, out=out)
    with pytest.raises(EvaluationError, match=r"race on s\[0\]: written by one thread, written by another"):
        run(kernel, {})


def test_a_write_after_a_read_by_another_needs_a_barrier() -> None:
    """The back edge of a loop: the next iteration overwrites what this one still reads."""
    x, out = given("x", 3, 4), result(4)
    s, acc = buffer("s", 4, memory=LOCAL), buffer("acc", 1, memory=PRIVATE)

    def kernel(*last: ir.Statement) -> ir.Program:
        def body(_g: Expr, i: Expr) -> ir.Block:
            step = loop("k", 3, lambda k: (
                store(s, i, load(x, k, i)), ir.Barrier(), store(acc, 0, apply("add", load(acc, 0), load(s, 3 - i))),
                *last,
            ))  # fmt: skip
            return (store(acc, 0, number(0)), step, store(out, i, load(acc, 0)))

        return on_items(body, s, acc, out=out, x=x)

    x34 = np.arange(12.0).reshape(3, 4)
    assert run(kernel(ir.Barrier()), {"x": x34})[0].tolist() == x34.sum(0)[::-1].tolist()
    with pytest.raises(EvaluationError, match="race on s") as caught:
        run(kernel(), {"x": x34})
    assert "k = 0" in str(caught.value)
    assert "k = 1" in str(caught.value)


def test_iterations_over_threads_are_unordered() -> None:
    x, out = given("x", 4), result(4)
    shift = loop("i", 3, lambda i: (store(out, i + 1, load(out, i)),), PAR)
    first = store(out, 0, number(1))
    rest = loop("j", 3, lambda j: (store(out, j + 1, number(0)),))
    with pytest.raises(EvaluationError, match="race on out"):
        run(program((x,), out, on_cpu(first, rest, shift)), {"x": X8[:4]})
    in_order = ir.Loop(shift.variable, shift.extent, SEQ, shift.body)
    assert run(program((x,), out, on_cpu(first, rest, in_order)), {"x": X8[:4]})[0].tolist() == [1] * 4


def test_nested_loops_over_threads() -> None:
    """The end of the inner loop orders its iterations for their own outer iteration only."""
    out, t = result(2, 3), buffer("t", 2, 3, role="temporary")

    def kernel(row: Any) -> ir.Program:
        def outer(i: Expr) -> ir.Block:
            return (
                loop("j", 3, lambda j: (store(t, (i, j), number(1)),), PAR),
                loop("l", 3, lambda j: (store(out, (i, j), load(t, row(i), 2 - j)),), PAR),
            )

        return program((), out, on_cpu(loop("i", 2, outer, PAR)), temporaries=(t,))

    assert run(kernel(lambda i: i), {})[0].tolist() == [[1] * 3] * 2
    with pytest.raises(EvaluationError, match="race on t"):
        run(kernel(lambda i: 1 - i), {})


def test_atomic_updates_are_unordered_among_each_other_only() -> None:
    out, total = result(4), buffer("total", 1, memory=LOCAL)
    update = ir.AtomicUpdate(OPERATORS["add"], total, (const(0),), number(1))

    def kernel(*between: ir.Statement) -> ir.Program:
        return on_items(
            lambda _g, i: (ir.If((-i,), (store(total, 0, number(0)),)), ir.Barrier(), update, update, *between,
                           store(out, i, load(total, 0))),
            total, out=out,
        )  # fmt: skip

    assert run(kernel(ir.Barrier()), {})[0].tolist() == [8] * 4
    with pytest.raises(EvaluationError, match=r"race on total\[0\]: (read|updated atomically) .*(updated|read)"):
        run(kernel(), {})


def test_warp_barriers_order_their_own_warp() -> None:
    out, s = result(8), buffer("s", 8, memory=LOCAL)
    warp, lane = var("warp", 2), var("lane", 4)
    item = 4 * warp + lane

    def kernel(scope: str, read: Expr) -> ir.Program:
        body = (store(s, item, number(1)), ir.Barrier(scope), store(out, item, load(s, read)))
        hardware = {Level("warp"): as_variable(warp), Level("lane"): as_variable(lane)}
        return program((), out, ir.Kernel("kernel", body, (const(1),), (const(8),), hardware, (s,)))

    within, across = 4 * warp + 3 - lane, 4 * (1 - warp) + lane
    assert run(kernel("warp", within), {})[0].tolist() == [1] * 8
    assert run(kernel("group", across), {})[0].tolist() == [1] * 8
    with pytest.raises(EvaluationError, match="race on s"):
        run(kernel("warp", across), {})


def test_a_warp_barrier_is_exact_between_a_read_and_a_later_write() -> None:
    """Read by the other warp, then a barrier of the own warp only: still a race; by the own warp: none."""
    out, s = result(4), buffer("s", 2, memory=LOCAL)
    warp, lane = var("warp", 2), var("lane", 2)
    item = 2 * warp + lane
    hardware = {Level("warp"): as_variable(warp), Level("lane"): as_variable(lane)}

    def kernel(read: Expr) -> ir.Program:
        first = ir.If((-lane,), (store(s, warp, number(3)),))
        again = ir.If((-lane,), (store(s, warp, number(4)),))
        body = (first, ir.Barrier(), store(out, item, load(s, read)), ir.Barrier("warp"), again)
        return program((), out, ir.Kernel("kernel", body, (const(1),), (const(4),), hardware, (s,)))

    assert run(kernel(warp), {})[0].tolist() == [3] * 4
    with pytest.raises(EvaluationError, match="race on s"):
        run(kernel(1 - warp), {})


# ---- barriers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["group", "warp"])
def test_a_barrier_is_reached_by_all_or_none(scope: str) -> None:
    out = result(4)

    def kernel(condition: Any) -> ir.Program:
        return on_items(
            lambda g, i: (ir.If((condition(g, i),), (ir.Barrier(scope),)), store(out, g * 2 + i, number(0))),
            out=out, groups=2, items=2,
        )  # fmt: skip

    with pytest.raises(EvaluationError, match=f"a barrier of scope {scope} is reached by 1 of its 2 work-items"):
        run(kernel(lambda _g, i: -i), {}, warp=2)
    run(kernel(lambda g, _i: -g), {}, warp=2)  # one whole group goes there: fine


def test_a_barrier_in_a_loop_of_unequal_length() -> None:
    out, i = result(3), var("item", 3)
    k = var("k", i + 1)
    body = (ir.Loop(as_variable(k), i + 1, SEQ, (ir.Barrier(),)), store(out, i, number(0)))
    kernel = ir.Kernel("kernel", body, (const(1),), (const(3),), {ITEM: as_variable(i)})
    with pytest.raises(EvaluationError, match="reached by 2 of its 3") as caught:
        run(program((), out, kernel), {})
    assert "k = 1" in str(caught.value)


def test_barriers_need_groups() -> None:
    out = result(1)
    with pytest.raises(EvaluationError, match="outside the work-items of a group"):
        run(program((), out, on_cpu(ir.Barrier(), store(out, 0, number(0)))), {})


# ---- lanes ---------------------------------------------------------------------------------------------------------


def test_lanes_write_different_elements() -> None:
    x, out = given("x", 8), result(4)
    good = on_cpu(lanes("v", 4, lambda v: (store(out, v, load(x, 2 * v)),)))
    assert run(program((x,), out, good), {"x": X8})[0].tolist() == [0, 2, 4, 6]
    bad = on_cpu(lanes("v", 8, lambda v: (store(out, v // 2, load(x, v)),)))
    with pytest.raises(EvaluationError, match=r"two lanes write out\[0\]"):
        run(program((x,), out, bad), {"x": X8})


def test_lanes_run_statement_by_statement() -> None:
    """All lanes have loaded before one of them stores."""
    x, t, out = given("x", 4), buffer("t", 4, memory=PRIVATE), result(4)
    kernel = on_cpu(
        lanes("v", 4, lambda v: (store(t, v, load(x, v)), store(t, 3 - v, load(t, v)), store(out, v, load(t, v)))),
        scratch=(t,),
    )
    assert run(program((x,), out, kernel), {"x": X8[:4]})[0].tolist() == [3, 2, 1, 0]


def test_lanes_do_not_nest_and_have_no_barriers() -> None:
    out = result(4)
    nested = on_cpu(lanes("v", 2, lambda v: (lanes("w", 2, lambda w: (store(out, 2 * v + w, number(0)),)),)))
    with pytest.raises(EvaluationError, match="lanes inside lanes"):
        run(program((), out, nested), {})
    waits = on_cpu(lanes("v", 2, lambda _v: (ir.Wait(0),)))
    with pytest.raises(EvaluationError, match="stands inside lanes"):
        run(program((), out, waits), {})


# ---- asynchronous copies -------------------------------------------------------------------------------------------


def staged(*middle: ir.Statement, before: tuple[ir.Statement, ...] = (), read_at: int = 0) -> ir.Program:
    """One work-item copies two elements asynchronously, then reads one of them."""
    x, out = given("x", 2), result(1)
    t = buffer("t", 2, memory=LOCAL)
    fetch = ir.Async((loop("j", 2, lambda j: (store(t, j, load(x, j)),)),))
    kernel = on_groups(1, 1, lambda _g, _i: (*before, fetch, *middle, store(out, 0, load(t, read_at))), t)
    return program((x,), out, kernel)


def test_a_wait_covers_committed_copies() -> None:
    inputs = {"x": X8[:2]}
    for seed in range(8):
        assert run(staged(ir.Commit(), ir.Wait(0), read_at=1), inputs, seed=seed)[0] == [1]
        for middle in ((ir.Commit(),), (ir.Wait(0), ir.Commit()), (ir.Commit(), ir.Wait(1)), ()):
            with pytest.raises(EvaluationError, match=r"t\[0\] is read while it is the target"):
                run(staged(*middle), inputs, seed=seed)


def test_the_source_of_a_copy_in_flight_is_not_written() -> None:
    x, out = given("x", 1), result(1)
    t, u = buffer("t", 1, memory=PRIVATE), buffer("u", 1, memory=PRIVATE)
    fetch = (store(u, 0, load(x, 0)), ir.Async((store(t, 0, load(u, 0)),)), ir.Commit())
    over = store(u, 0, number(9))

    def kernel(*rest: ir.Statement) -> ir.Program:
        return program((x,), out, on_cpu(*fetch, *rest, store(out, 0, load(t, 0)), scratch=(t, u)))

    with pytest.raises(EvaluationError, match=r"u\[0\] is written while it is the source"):
        run(kernel(over, ir.Wait(0)), {"x": X8[:1]})
    assert run(kernel(ir.Wait(0), over), {"x": X8[:1]})[0] == [0]
    with pytest.raises(EvaluationError, match=r"t\[0\] is written while it is the target"):
        run(kernel(store(t, 0, number(1)), ir.Wait(0)), {"x": X8[:1]})


def test_what_another_copied_needs_a_wait_and_a_barrier() -> None:
    x, out, t = given("x", 4), result(4), buffer("t", 4, memory=LOCAL)

    def kernel(*middle: ir.Statement) -> ir.Program:
        return on_items(
            lambda _g, i: (ir.Async((store(t, i, load(x, i)),)), ir.Commit(), *middle, store(out, i, load(t, 3 - i))),
            t, out=out, x=x,
        )  # fmt: skip

    assert run(kernel(ir.Wait(0), ir.Barrier()), {"x": X8[:4]})[0].tolist() == [3, 2, 1, 0]
    for middle in ((ir.Wait(0),), (ir.Barrier(), ir.Wait(0))):
        with pytest.raises(EvaluationError, match="race on t"):
            run(kernel(*middle), {"x": X8[:4]})
    with pytest.raises(EvaluationError, match="in flight"):
        run(kernel(ir.Barrier()), {"x": X8[:4]})


def test_copies_are_waited_for_and_are_copies() -> None:
    x, out = given("x", 1), result(1)
    with pytest.raises(EvaluationError, match="an asynchronous copy is never waited for"):
        run(program((x,), out, on_cpu(ir.Async((store(out, 0, load(x, 0)),)), ir.Commit())), {"x": X8[:1]})
    double = store(out, 0, apply("add", load(x, 0), load(x, 0)))
    with pytest.raises(EvaluationError, match="only copies"):
        run(program((x,), out, on_cpu(ir.Async((double,)))), {"x": X8[:1]})


def test_a_copy_may_fill() -> None:
    x, out, t = given("x", 3), result(4), buffer("t", 4, memory=PRIVATE)
    fetch = loop("j", 4, lambda j: (store(t, j, load(x, j, guard=(2 - j,), fill=0)),))
    copy = loop("l", 4, lambda j: (store(out, j, load(t, j)),))
    kernel = on_cpu(ir.Async((fetch,)), ir.Commit(), ir.Wait(0), copy, scratch=(t,))
    for seed in range(6):
        assert run(program((x,), out, kernel), {"x": X8[1:4]}, seed=seed)[0].tolist() == [1, 2, 3, 0]


# ---- ranges --------------------------------------------------------------------------------------------------------


def test_a_hardware_index_stays_in_its_range() -> None:
    out = result(8)
    narrow = as_variable(var("item", 4))
    kernel = ir.Kernel("kernel", (store(out, narrow.expr, number(0)),), (const(1),), (const(8),), {ITEM: narrow})
    with pytest.raises(
        EvaluationError, match="hardware index item0 reaches 7 and its variable item is declared below 4"
    ):
        run(program((), out, kernel), {})


def test_all_hardware_levels_have_their_meaning() -> None:
    levels = [GROUP, Level("group", 1), ITEM, Level("item", 1), Level("item"), Level("global", 0), Level("global", 1),
              Level("warp"), Level("lane")]  # fmt: skip
    extents = [2, 3, 4, 2, 8, 8, 6, 2, 4]
    variables = [var(str(level), extent) for level, extent in zip(levels, extents, strict=True)]
    g0, g1, i0, i1, linear, global0, global1, warp, lane = variables
    out = buffer("out", 3, 2, 2, 4, 5, role="output", scalar=i32)
    values = [linear, global0, global1, warp, lane]
    body = tuple(store(out, (g1, g0, i1, i0, k), ir.IndexValue(value, i32)) for k, value in enumerate(values))
    hardware = {level: as_variable(v) for level, v in zip(levels, variables, strict=True)}
    kernel = ir.Kernel("kernel", body, (const(2), const(3)), (const(4), const(2)), hardware)
    (found,) = run(program((), out, kernel), {}, warp=4)
    for b1, b0, t1, t0 in np.ndindex(3, 2, 2, 4):
        item = t0 + 4 * t1
        assert found[b1, b0, t1, t0].tolist() == [item, b0 * 4 + t0, b1 * 2 + t1, item // 4, item % 4]


def test_a_loop_variable_stays_in_its_range_and_in_its_loop() -> None:
    out, i = result(4), var("i", 4)
    body = (store(out, i, number(0)),)
    with pytest.raises(EvaluationError, match="i runs to 5 and is declared below 4"):
        run(program((), out, on_cpu(ir.Loop(as_variable(i), const(5), SEQ, body))), {})
    with pytest.raises(EvaluationError, match="i has no value here"):
        run(program((), out, on_cpu(*body)), {})


def test_an_index_as_a_value_fits_its_type() -> None:
    out = buffer("out", 200, role="output", scalar=i8)
    kernel = on_cpu(loop("i", 200, lambda i: (store(out, i, ir.IndexValue(i, i8)),)))
    with pytest.raises(EvaluationError, match="index i is 128, beyond i8"):
        run(program((), out, kernel), {})


# ---- the program as a whole ----------------------------------------------------------------------------------------


def test_inputs_are_not_written_and_buffers_do_not_alias() -> None:
    x, out = given("x", 1), result(1)
    with pytest.raises(EvaluationError, match="kernel writes its input x"):
        run(program((x,), out, on_cpu(store(x, 0, number(0)))), {"x": X8[:1]})
    with pytest.raises(EvaluationError, match="two buffers of program are called x"):
        run(program((x,), x, on_cpu()), {"x": X8[:1]})
    values = X8[:1].copy()
    run(program((x,), out, on_cpu(store(out, 0, number(5)))), {"x": values})
    assert values == X8[:1]


def test_inputs_that_do_not_fit() -> None:
    x, out = given("x", 4), result(1)
    kernel = program((x,), out, on_cpu(store(out, 0, load(x, 3))))
    with pytest.raises(EvaluationError, match="no value is given for x"):
        run(kernel, {})
    with pytest.raises(EvaluationError, match="length 3, its type says 4"):
        run(kernel, {"x": X8[:3]})


def test_symbolic_sizes() -> None:
    n = size("n")
    x = ir.Buffer("x", f32, (n,), HEAP, "input", 4)
    out = ir.Buffer("out", f32, (2 * n,), HEAP, "output", 4)
    i = var("i", 2 * n)
    body = (ir.Loop(as_variable(i), 2 * n, PAR, (store(out, i, load(x, i // 2)),)),)
    kernel = ir.Program("program", (x,), (out,), (), (ir.Kernel("kernel", body),), (as_variable(n),))
    assert run(kernel, {"x": X8[:3]})[0].tolist() == [0, 0, 1, 1, 2, 2]
    unknown = ir.Program("program", (), (out,), (), (), (as_variable(n),))
    with pytest.raises(UnboundSize, match="size n is not bound"):
        run(unknown, {})
    with pytest.raises(EvaluationError, match=r"out\[0\] is never written \(10 of 10"):
        run(unknown, {}, sizes={"n": 5})


def test_arithmetic_is_exact_or_that_of_the_types() -> None:
    x, out = given("x", 1, scalar=f16), result(1, scalar=f16)
    kernel = program((x,), out, on_cpu(store(out, 0, apply("mul", load(x, 0), load(x, 0)))))
    value = np.array([1.001], np.float16)
    wide = float(value[0]) ** 2
    assert run(kernel, {"x": value})[0] == [wide]
    (stored,) = run(kernel, {"x": value}, exact=False)
    assert stored.dtype == np.float16
    assert stored == [np.float16(wide)]


def test_conditionals_have_two_sides() -> None:
    out = result(6)
    kernel = on_groups(1, 6, lambda _g, i: (
        ir.If((i - 2, 4 - i), (store(out, i, number(1)),), (store(out, i, number(2)),)),
    ))  # fmt: skip
    assert run(program((), out, kernel), {})[0].tolist() == [2, 2, 1, 1, 1, 2]


def test_constants_that_compare_equal_are_different_values() -> None:
    out = result(2)
    kernel = on_cpu(store(out, 0, number(0.0)), store(out, 1, number(-0.0)))
    assert np.signbit(run(program((), out, kernel), {})[0]).tolist() == [False, True]
    flags = buffer("out", 1, role="output", scalar=bool_)
    kernel = on_cpu(store(flags, 0, ir.Constant(True, bool_)))
    assert run(program((), flags, kernel), {})[0].dtype == bool
