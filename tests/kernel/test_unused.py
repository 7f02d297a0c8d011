"""Dead code goes, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.passes.unused import drop_unused
from lithify.kernel.walk import statements
from lithify.lang.levels import LOCAL, PRIVATE
from tests.kernel.hand_written import (
    CASES,
    buffer,
    given,
    load,
    loop,
    number,
    on_cpu,
    on_groups,
    program,
    result,
    store,
)


@pytest.mark.parametrize("name", CASES)
def test_nothing_goes_from_a_kernel_that_uses_everything(name: str) -> None:
    subject = CASES[name]().program
    assert drop_unused(subject) == subject


def test_what_only_dead_stores_read_goes_too() -> None:
    x, out = given("x", 4), result(4)
    a, b, s = buffer("a", 4, memory=PRIVATE), buffer("b", 4, memory=PRIVATE), buffer("s", 4, memory=LOCAL)
    live = loop("i", 4, lambda i: (store(out, i, load(x, i)),))
    kernel = on_groups(
        1, 1,
        lambda _g, _i: (
            loop("j", 4, lambda j: (store(a, j, load(x, j)), ir.If((j - 1,), (store(s, j, load(a, j)),)))),
            loop("k", 4, lambda k: (store(b, k, load(a, k)),)),
            live,
        ), a, b, s,
    )  # fmt: skip
    slim = drop_unused(program((x,), out, kernel))
    assert slim.kernels[0].body == (live,)
    assert slim.kernels[0].scratch == ()
    assert run(slim, {"x": np.arange(4.0)})[0].tolist() == [0, 1, 2, 3]


def test_kernels_and_temporaries_that_nobody_reads() -> None:
    out, t, u = result(1), buffer("t", 1, role="temporary"), buffer("u", 1, role="temporary")
    first = on_cpu(store(t, 0, number(1)), name="first")
    second = on_cpu(store(u, 0, load(t, 0)), name="second")
    last = on_cpu(store(out, 0, number(3)), name="last")
    slim = drop_unused(program((), out, first, second, last, temporaries=(t, u)))
    assert [k.name for k in slim.kernels] == ["last"]
    assert slim.temporaries == ()


def test_indices_count_as_reads() -> None:
    from lithify.arith import loaded
    from lithify.lang.scalars import i32

    x, out, ids = given("x", 4), result(1), buffer("ids", 1, memory=PRIVATE, scalar=i32)
    kernel = on_cpu(store(ids, 0, number(2, i32)), store(out, 0, load(x, loaded(ids, (0,), 0, 3))), scratch=(ids,))
    subject = program((x,), out, kernel)
    assert drop_unused(subject) == subject
    assert len(list(statements(kernel.body))) == 2


def test_elements_of_private_arrays_go_by_themselves() -> None:
    x, out, t = given("x", 4), result(2), buffer("t", 3, memory=PRIVATE)
    fill = tuple(store(t, k, load(x, k)) for k in range(3))
    kernel = on_cpu(*fill, store(out, 0, load(t, 0)), store(out, 1, load(t, 2)), scratch=(t,))
    slim = drop_unused(program((x,), out, kernel))
    assert slim.kernels[0].body == (fill[0], fill[2], *kernel.body[3:])
    assert run(slim, {"x": np.arange(4.0)})[0].tolist() == [0, 2]


def test_a_read_at_any_index_keeps_all_elements() -> None:
    x, out, t = given("x", 4), result(3), buffer("t", 3, memory=PRIVATE)
    fill = tuple(store(t, k, load(x, k)) for k in range(3))
    kernel = on_cpu(*fill, loop("i", 3, lambda i: (store(out, i, load(t, i)),)), scratch=(t,))
    subject = program((x,), out, kernel)
    assert drop_unused(subject) == subject
