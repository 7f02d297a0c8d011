"""Values that are at hand are not computed again, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from lithify.arith import Expr, const, loaded
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.passes import repeated
from lithify.kernel.passes.barriers import insert_barriers
from lithify.kernel.passes.lanes import join_lanes
from lithify.kernel.passes.repeated import drop_repeated
from lithify.kernel.walk import statements
from lithify.lang.levels import LOCAL, PAR, PRIVATE
from lithify.lang.scalars import i32
from tests.kernel.hand_written import (
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

X = given("x", 8)
OUT = result(8)
A, B, C = PRIVATES = tuple(buffer(name, 8, memory=PRIVATE) for name in "abc")


def subject(*body: ir.Statement) -> ir.Program:
    return program((X,), OUT, on_cpu(*body, scratch=PRIVATES))


def values(subject: ir.Program, x: np.ndarray | None = None) -> list[float]:
    return run(subject, {"x": np.arange(1.0, 9.0, dtype=np.float32) if x is None else x})[0].tolist()


def stores(subject: ir.Program) -> list[str]:
    return [s.buffer.name for kernel in subject.kernels for s in statements(kernel.body) if isinstance(s, ir.Store)]


def doubled(i: Expr | int) -> ir.Apply:
    return apply("mul", load(X, i), number(2))


def all_of_out(value: Callable[[Expr], ir.Value]) -> ir.Loop:
    return loop("o", 8, lambda i: (store(OUT, i, value(i)),))


def test_a_value_is_computed_once() -> None:
    twice = subject(
        store(A, 0, doubled(3)),
        store(B, 0, doubled(3)),
        all_of_out(lambda _: apply("add", load(A, 0), load(B, 0))),
    )
    slim = drop_repeated(twice)
    assert stores(slim) == ["a", "out"]
    assert values(slim) == values(twice) == [16.0] * 8


def test_sums_of_the_same_are_one_sum() -> None:
    def total(target: ir.Buffer) -> list[ir.Statement]:
        return [
            store(target, 0, number(0)),
            *(store(target, 0, apply("add", load(target, 0), doubled(i))) for i in (1, 2)),
        ]

    slim = drop_repeated(subject(*total(A), *total(B), all_of_out(lambda _: apply("mul", load(A, 0), load(B, 0)))))
    assert stores(slim) == ["a", "a", "a", "out"]
    assert values(slim) == [100.0] * 8


def test_lines_of_a_strip_share_what_they_compute() -> None:
    def line(target: ir.Buffer, at: int) -> ir.Lanes:
        return lanes("l", 4, lambda i: (store(target, i, doubled(i)), store(OUT, i + at, load(target, i))))

    strip = subject(line(A, 0), line(B, 4))
    assert stores(drop_repeated(join_lanes(strip))) == ["a", "out", "out"]
    assert values(drop_repeated(join_lanes(strip))) == values(strip) == [2.0, 4.0, 6.0, 8.0] * 2


def test_lanes_of_items_that_wait_for_each_other_stay_apart() -> None:
    tile = buffer("tile", 8, memory=LOCAL)
    kernel = on_groups(
        1, 4,
        lambda _g, i: (
            lanes("v", 2, lambda v: (store(tile, 2 * i + v, load(X, 2 * i + v)),)),
            lanes("v", 2, lambda v: (store(OUT, 2 * i + v, load(tile, 7 - 2 * i - v)),)),
        ), tile,
    )  # fmt: skip
    code = program((X,), OUT, kernel)
    assert join_lanes(code) == code
    assert values(insert_barriers(join_lanes(code))) == [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


def test_what_was_overwritten_is_not_at_hand() -> None:
    overwritten = subject(
        store(A, 0, doubled(3)),
        store(A, 0, doubled(4)),
        store(B, 0, doubled(3)),
        all_of_out(lambda _: apply("add", load(A, 0), load(B, 0))),
    )
    assert drop_repeated(overwritten) == overwritten
    partly = subject(
        store(A, 0, doubled(3)),
        loop("i", 2, lambda i: (store(A, i, doubled(i)),)),
        store(B, 0, doubled(3)),
        all_of_out(lambda _: load(B, 0)),
    )
    assert values(drop_repeated(partly)) == values(partly) == [8.0] * 8


def test_iterations_see_what_the_ones_before_wrote() -> None:
    carried = subject(
        store(A, 0, doubled(0)),
        loop("i", 8, lambda i: (store(B, 0, doubled(0)), store(OUT, i, load(A, 0)), store(A, 0, doubled(i)))),
        store(C, 0, load(B, 0)),
    )
    assert values(drop_repeated(carried)) == values(carried) == [2.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]


def test_threads_compute_their_own() -> None:
    apart = subject(
        store(A, 0, doubled(0)),
        loop("t", 8, lambda i: (store(B, 0, doubled(0)), store(OUT, i, load(B, 0))), PAR),
        store(OUT, 0, load(A, 0)),
    )
    assert drop_repeated(apart) == apart


def test_branches_keep_what_they_compute_to_themselves() -> None:
    def body(i: Expr) -> ir.Block:
        return (
            ir.If((i - 4,), (store(A, 0, doubled(i)),), (store(A, 0, number(1)),)),
            store(B, 0, doubled(i)),
            store(OUT, i, apply("add", load(A, 0), load(B, 0))),
        )

    branches = subject(loop("i", 8, body))
    assert drop_repeated(branches) == branches


def test_indices_that_change_name_other_elements() -> None:
    ids = buffer("ids", 1, memory=PRIVATE, scalar=i32)
    place = loaded(ids, (const(0),), 0, 7)
    moving = program(
        (X,),
        OUT,
        on_cpu(
            store(ids, 0, number(2, i32)),
            store(A, 0, load(X, place)),
            store(ids, 0, number(5, i32)),
            store(B, 0, load(X, place)),
            all_of_out(lambda _: apply("sub", load(B, 0), load(A, 0))),
            scratch=(*PRIVATES, ids),
        ),
    )
    assert drop_repeated(moving) == moving
    assert values(moving) == [3.0] * 8


def test_what_the_kernel_writes_is_read_again() -> None:
    written = subject(
        store(OUT, 0, number(1)),
        store(A, 0, load(OUT, 0)),
        all_of_out(lambda i: apply("add", load(X, i), load(A, 0))),
        store(B, 0, load(OUT, 0)),
        store(OUT, 1, load(B, 0)),
    )
    assert drop_repeated(written) == written


# ---- random code ---------------------------------------------------------------------------------------------------

_indices = st.integers(0, 1)
_operands = st.one_of(
    st.builds(load, st.sampled_from(PRIVATES), _indices),
    st.builds(load, st.just(X), _indices),
    st.builds(number, st.sampled_from([0.0, 1.0, 2.0])),
)
_values = st.one_of(_operands, st.builds(apply, st.sampled_from(["add", "mul"]), _operands, _operands))
_stores = st.builds(store, st.sampled_from(PRIVATES), _indices, _values)


_vectors = st.builds(
    lambda target, source: lanes("l", 2, lambda i: (store(target, i, load(source, i)),)),
    st.sampled_from(PRIVATES),
    st.sampled_from([X, *PRIVATES]),
)
_lines = st.lists(st.one_of(_stores, _vectors), max_size=8)


def _around(inner: st.SearchStrategy[list[ir.Statement]]) -> st.SearchStrategy[ir.Statement]:
    return st.one_of(
        st.builds(lambda body, n: loop("i", n, lambda i: (*body, store(A, i, load(X, i)))), inner, st.integers(2, 3)),
        st.builds(
            lambda body, other, at: loop("j", 2, lambda j: (ir.If((j - at,), tuple(body), tuple(other)),)),
            inner,
            inner,
            _indices,
        ),
    )


_blocks = st.recursive(
    _lines, lambda inner: st.lists(st.one_of(_stores, _vectors, _around(inner)), max_size=6), max_leaves=12
)


@examples(_blocks)
def test_random_code_keeps_its_meaning(block: list[ir.Statement]) -> None:
    first = [store(p, i, number(0.5 * i)) for p in PRIVATES for i in range(8)]
    last = [store(OUT, 2 * n + i, load(p, i)) for n, p in enumerate(PRIVATES) for i in range(2)]
    rest = [store(OUT, i, load(X, i)) for i in (6, 7)]
    code = subject(*first, *block, *last, *rest)
    x = np.array([1.5, -2, 0.25, 3, -1, 0.5, 2, 7], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.array_equal(values(drop_repeated(join_lanes(code)), x), values(code, x), equal_nan=True)


def test_who_forgets_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    code = subject(
        store(A, 0, doubled(1)), store(A, 0, number(3)), store(B, 0, doubled(1)), all_of_out(lambda _: load(B, 0))
    )
    assert values(drop_repeated(code)) == values(code)
    monkeypatch.setattr(repeated._Held, "forget", lambda *_: None)
    assert values(drop_repeated(code)) != values(code)
