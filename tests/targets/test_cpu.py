"""The cpu target on kernels written by hand: loops, lanes, guards, masks, memories, threads."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from lithify.arith import as_variable, ceil_div, const, loaded, maximum, minimum, size
from lithify.kernel import ir
from lithify.lang.errors import Rejected
from lithify.lang.levels import OUT, PAR, PRIVATE, THREAD
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import Scalar, bf16, bool_, complex64, complex128, f16, f32, f64, i32, u8
from lithify.program.module import parse
from lithify.targets.cpu import CpuTarget, policy
from tests.targets.handmade import buffer, index, lanes, loop, op, program, random

TARGET = CpuTarget(threads=2)


def test_vector_addition_in_parallel() -> None:
    n, w = 1 << 20, 16
    a, b, c = buffer("a", n), buffer("b", n), buffer("c", n, role="output", memory=OUT)
    p, lane = index("p", n // w), index("l", w)
    at = (p * w + lane,)
    body = loop(p, n // w, lanes(lane, w, ir.Store(c, at, op("add", ir.Load(a, at), ir.Load(b, at)))), level=PAR)
    run = TARGET.compile(program([a, b], [c], body))
    x, y = random(n), random(n)[::-1].copy()
    np.testing.assert_array_equal(run(x, y), x + y)


def test_a_tail_of_masked_lanes() -> None:
    n, w = 1003, 16
    a, c = buffer("a", n), buffer("c", n, role="output", memory=OUT)
    i, lane = index("i", 63), index("l", w)
    at = i * w + lane
    guard = (const(n - 1) - at,)
    body = loop(
        i, 63, lanes(lane, w, ir.Store(c, (at,), op("neg", ir.Load(a, (at,), guard, ir.Constant(0, f32))), guard))
    )
    run = TARGET.compile(program([a], [c], body))
    x = random(n)
    np.testing.assert_array_equal(run(x), -x)


@pytest.mark.parametrize("width", [2, 3, 8, 16, 64])
def test_dot_with_lanes_in_private_memory(width: int) -> None:
    n = width * 37
    a, b, c = buffer("a", n), buffer("b", n), buffer("c", role="output", memory=OUT)
    acc = buffer("acc", width, role="scratch", memory=PRIVATE)
    i, lane, lane2, j = index("i", 37), index("l", width), index("m", width), index("j", width)
    at = (i * width + lane,)
    zero = ir.Constant(0.0, f32)
    body = (
        lanes(lane2, width, ir.Store(acc, (lane2,), zero)),
        loop(i, 37, lanes(lane, width, ir.Store(acc, (lane,), op(
            "add", ir.Load(acc, (lane,)), op("mul", ir.Load(a, at), ir.Load(b, at)))))),
        ir.Store(c, (), zero),
        loop(j, width, ir.Store(c, (), op("add", ir.Load(c, ()), ir.Load(acc, (j,))))),
    )  # fmt: skip
    run = TARGET.compile(program([a, b], [c], *body, scratch=(acc,)))
    x, y = random(n), random(n)
    assert run(x, y).shape == ()
    np.testing.assert_allclose(run(x, y), np.dot(x.astype(np.float64), y), rtol=1e-5)


_NEARBY = {
    "clamped below": lambda lane, w: maximum(0, lane - 2),
    "clamped above": lambda lane, w: minimum(lane + 3, w - 1),
    "mirrored": lambda lane, w: minimum(lane, w - 1 - lane),
    "halved": lambda lane, w: lane // 2,
    "folded": lambda lane, w: lane - 3 * (lane // 3),
    "too far": lambda lane, w: 3 * lane - 2 * minimum(lane, 1),
}


@pytest.mark.parametrize("scalar", [f32, f64, u8, f16, complex64], ids=str)
@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("place", _NEARBY)
def test_loads_of_neighbours_in_another_order(place: str, width: int, scalar: Scalar) -> None:
    n = 4 * width
    a, c = buffer("a", 4, n, scalar=scalar), buffer("c", 4, width, scalar=scalar, role="output", memory=OUT)
    i, lane = index("i", 4), index("l", width)
    at = _NEARBY[place](lane, width)
    body = loop(i, 4, lanes(lane, width, ir.Store(c, (i, lane), ir.Load(a, (i, at)))))
    run = TARGET.compile(program([a], [c], body))
    x = (np.arange(4 * n) % 251).astype(scalar.dtype).reshape(4, n)
    places = [at.evaluate({as_variable(lane): k}) for k in range(width)]
    np.testing.assert_array_equal(run(x), x[:, places])


@pytest.mark.parametrize("stride", [-3, -1, 0, 1, 2, 5])
def test_lane_coefficients(stride: int) -> None:
    """Contiguous, reversed, strided and splat accesses."""
    w, n = 8, 64
    a, c = buffer("a", n), buffer("c", w, role="output", memory=OUT)
    lane = index("l", w)
    start = 40 if stride < 0 else 3
    body = lanes(lane, w, ir.Store(c, (lane,), ir.Load(a, (lane * stride + start,))))
    x = random(n)
    run = TARGET.compile(program([a], [c], body))
    np.testing.assert_array_equal(run(x), x[start + stride * np.arange(w)])


@pytest.mark.parametrize("stride", [-3, -1, 1, 2])
def test_stores_by_lane_coefficient(stride: int) -> None:
    w, n = 8, 32
    a, c = buffer("a", w), buffer("c", n, role="output", memory=OUT)
    i, lane = index("i", n), index("l", w)
    start = 29 if stride < 0 else 3
    body = (
        loop(i, n, ir.Store(c, (i,), ir.Constant(7.0, f32))),
        lanes(lane, w, ir.Store(c, (lane * stride + start,), ir.Load(a, (lane,)))),
    )
    x = random(w)
    expected = np.full(n, 7, np.float32)
    expected[start + stride * np.arange(w)] = x
    np.testing.assert_array_equal(TARGET.compile(program([a], [c], *body))(x), expected)


def test_all_lanes_writing_one_element_is_refused() -> None:
    a, c = buffer("a", 8), buffer("c", 1, role="output", memory=OUT)
    lane = index("l", 8)
    with pytest.raises(Rejected, match="all lanes of a map\\[vec\\] write the same element"):
        TARGET.compile(program([a], [c], lanes(lane, 8, ir.Store(c, (const(0),), ir.Load(a, (lane,))))))


def test_floor_division_of_negative_forms() -> None:
    n = 41
    c = buffer("c", n, 3, scalar=i32, role="output", memory=OUT)
    i = index("i", n)
    e = i - 20
    body = loop(i, n, *[
        ir.Store(c, (i, const(k)), ir.IndexValue(f, i32)) for k, f in enumerate((e // 8, e // 3, (e * 2 + 1) // 5))
    ])  # fmt: skip
    x = np.arange(n) - 20
    np.testing.assert_array_equal(
        TARGET.compile(program([], [c], body))(), np.stack([x // 8, x // 3, (2 * x + 1) // 5], 1)
    )


@pytest.mark.parametrize("vector", [False, True])
def test_gather_through_loaded_indices(vector: bool) -> None:
    n, w = 40, 8
    ids, a, c = buffer("ids", n, scalar=i32), buffer("a", 100), buffer("c", n, role="output", memory=OUT)
    i, lane = index("i", n // w), index("l", w)
    at = i * w + lane
    store = ir.Store(c, (at,), ir.Load(a, (loaded(ids, (at,), const(0), const(99)),)))
    body = loop(i, n // w, lanes(lane, w, store) if vector else loop(lane, w, store))
    k = np.random.default_rng(1).integers(0, 100, n).astype(np.int32)
    x = random(100)
    np.testing.assert_array_equal(TARGET.compile(program([ids, a], [c], body))(k, x), x[k])


def test_a_shared_element_under_a_guard_whose_fill_differs_from_lane_to_lane() -> None:
    n, w = 16, 8
    a, b, c = buffer("a", 2), buffer("b", n), buffer("c", n, role="output", memory=OUT)
    i, lane = index("i", n // w), index("l", w)
    at = i * w + lane
    value = ir.Load(a, (i * 5,), (-i,), ir.Load(b, (at,)))  # a[5] does not exist
    x, y = random(2), random(n)
    run = TARGET.compile(program([a, b], [c], loop(i, n // w, lanes(lane, w, ir.Store(c, (at,), value)))))
    np.testing.assert_array_equal(run(x, y), np.concatenate([np.repeat(x[:1], w), y[w:]]))


@pytest.mark.parametrize("vector", [False, True])
def test_if_with_both_branches(vector: bool) -> None:
    """In lanes an If becomes masks; the guarded load would leave the array elsewhere."""
    n, w = 32, 8
    a, c = buffer("a", 10), buffer("c", n, role="output", memory=OUT)
    i, lane = index("i", n // w), index("l", w)
    at = i * w + lane
    branch = ir.If(
        (const(9) - at,), (ir.Store(c, (at,), ir.Load(a, (at,))),), (ir.Store(c, (at,), ir.Constant(-1.0, f32)),)
    )
    body = loop(i, n // w, lanes(lane, w, branch) if vector else loop(lane, w, branch))
    x = random(10)
    np.testing.assert_array_equal(TARGET.compile(program([a], [c], body))(x), np.concatenate([x, -np.ones(22)]))


def test_parallel_loops_share_temporaries_and_outer_variables() -> None:
    """seq around par, a private value that crosses pieces, thread memory, and a scalar argument."""
    n, m = 64, 4096
    s = buffer("s", role="scalar")
    a, c = buffer("a", n, m), buffer("c", n, m, role="output", memory=OUT)
    total = buffer("total", 1, role="scratch", memory=PRIVATE)
    row = buffer("row", 64, 64, role="scratch", memory=THREAD)
    t = buffer("t", m, role="temporary")
    i, j, k, q, r = index("i", n), index("j", m), index("k", m), index("q", 64), index("r", 64)
    p = index("p", 64)
    body = loop(
        i, n,
        ir.Store(total, (const(0),), ir.Constant(0.0, f32)),
        loop(j, m, ir.Store(total, (const(0),), op("max", ir.Load(total, (const(0),)), ir.Load(a, (i, j))))),
        loop(k, m, ir.Store(t, (k,), op("mul", ir.Load(a, (i, k)), ir.Load(s, ()))), level=PAR),
        loop(p, 64,
             loop(q, 64, ir.Store(row, (p, q), ir.Load(t, (p * 64 + q,)))),
             loop(r, 64, ir.Store(c, (i, p * 64 + r), op("sub", ir.Load(row, (p, r)), ir.Load(total, (const(0),))))),
             level=PAR),
    )  # fmt: skip
    run = TARGET.compile(program([s, a], [c], body, scratch=(total, row), temporaries=(t,)))
    x = random(n, m)
    expected = x * np.float32(3) - np.maximum(x.max(1, keepdims=True), 0)
    for _ in range(3):
        np.testing.assert_array_equal(run(3.0, x), expected)


def test_a_symbolic_kernel() -> None:
    n, m = size("n", 0), size("m")
    a, c = buffer("a", n, m), buffer("c", m, n, role="output", memory=OUT)
    i, j = index("i", n), index("j", m)
    body = loop(i, n, loop(j, m, ir.Store(c, (j, i), ir.Load(a, (i, j)))), level=PAR)
    run = TARGET.compile(program([a], [c], body, sizes=(as_variable(n), as_variable(m))))
    for shape in ((3, 5), (1, 1), (0, 4), (300, 2000)):
        x = random(*shape)
        np.testing.assert_array_equal(run(x), x.T)


def test_symbolic_tails() -> None:
    n, w = size("n", 0), 8
    a, c = buffer("a", n), buffer("c", n, role="output", memory=OUT)
    blocks = ceil_div(n, const(w))
    i, lane = index("i", blocks), index("l", w)
    at = i * w + lane
    guard = (n - 1 - at,)
    body = loop(i, blocks, lanes(lane, w, ir.Store(c, (at,), ir.Load(a, (at,), guard), guard)))
    run = TARGET.compile(program([a], [c], body, sizes=(as_variable(n),)))
    for length in (*range(20), 1000):
        x = random(length)
        np.testing.assert_array_equal(run(x), x)


def test_serialised_executables_run_the_same() -> None:
    n, w = 1 << 19, 16
    a, c = buffer("a", n), buffer("c", n, role="output", memory=OUT)
    p, lane = index("p", n // w), index("l", w)
    at = (p * w + lane,)
    run = TARGET.compile(
        program([a], [c], loop(p, n // w, lanes(lane, w, ir.Store(c, at, op("abs", ir.Load(a, at)))), level=PAR))
    )
    again = TARGET.load(run.serialize())
    assert again.interface == run.interface
    x = random(n)
    np.testing.assert_array_equal(again(x), np.abs(x))
    assert len(again.time((x,), 3)) == 3


def test_calls_from_several_threads_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    n, w = 1 << 18, 16
    a, c, t = buffer("a", n), buffer("c", n, role="output", memory=OUT), buffer("t", n, role="temporary")
    p, lane, q, lane2 = index("p", n // w), index("l", w), index("q", n // w), index("m", w)
    at, back = (p * w + lane,), (const(n - 1) - (q * w + lane2),)
    body = (
        loop(p, n // w, lanes(lane, w, ir.Store(t, at, op("add", ir.Load(a, at), ir.Load(a, at)))), level=PAR),
        loop(q, n // w, lanes(lane2, w, ir.Store(c, (q * w + lane2,), ir.Load(t, back))), level=PAR),
    )
    run = TARGET.compile(program([a], [c], *body, temporaries=(t,)))
    inputs = [random(n) * k for k in range(8)]
    with ThreadPoolExecutor(4) as executor:
        for x, y in zip(inputs * 3, executor.map(run, inputs * 3), strict=True):
            np.testing.assert_array_equal(y, (x + x)[::-1])


def test_the_callers_cpus_are_restored() -> None:
    import os

    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this platform cannot place threads")
    before = os.sched_getaffinity(0)
    test_vector_addition_in_parallel()
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("width", [1, 8])
def test_a_histogram_of_atomic_updates(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In lanes, too, where several may hit one element."""
    monkeypatch.setattr("lithify.targets.cpu.policy.LEAST_WORK", 0)
    n = 1 << 12
    ids, c = buffer("ids", n, scalar=i32), buffer("c", 16, scalar=i32, role="output", memory=OUT)
    i, lane, z = index("i", n // width), index("l", width), index("z", 16)
    place = loaded(ids, (i * width + lane,), const(0), const(15))
    update = ir.AtomicUpdate(OPERATORS["add"], c, (place,), ir.Constant(1, i32))
    body = (
        loop(z, 16, ir.Store(c, (z,), ir.Constant(0, i32))),
        loop(i, n // width, lanes(lane, width, update) if width > 1 else update, level=PAR),
    )
    k = np.random.default_rng(1).integers(0, 16, n).astype(np.int32)
    np.testing.assert_array_equal(TARGET.compile(program([ids], [c], *body))(k), np.bincount(k, minlength=16))


ATOMIC = [
    *[(name, s) for name in ("add", "sub", "min", "max", "mul") for s in (f32, f64, i32, u8, f16, bf16)],
    *[(name, s) for name in ("and", "or", "xor") for s in (i32, bool_)],
    ("add", complex64), ("mul", complex64),
]  # fmt: skip


@pytest.mark.parametrize(("name", "scalar"), ATOMIC, ids=str)
def test_atomic_updates_of_every_kind(name: str, scalar: Scalar) -> None:
    """One after another, so that the result is determined; guarded by the position."""
    n = 12
    a, c = buffer("a", n, scalar=scalar), buffer("c", 1, scalar=scalar, role="output", memory=OUT)
    i = index("i", n)
    first = ir.Store(c, (const(0),), ir.Load(a, (const(0),)))
    update = ir.AtomicUpdate(OPERATORS[name], c, (const(0),), ir.Load(a, (i,)), (i - 1, const(9) - i))
    numbers = np.random.default_rng(2).integers(1, 3, n)
    x = (numbers % 2 == 0) if scalar is bool_ else numbers.astype(scalar.dtype)
    if scalar.is_complex:
        x = x + x[::-1] * 1j
    combine = {"min": np.minimum, "max": np.maximum, "add": np.add, "sub": np.subtract, "mul": np.multiply,
               "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]  # fmt: skip
    expected = x[0]
    for value in x[1:10]:
        expected = combine(expected, value)
    got = TARGET.compile(program([a], [c], first, loop(i, n, update)))(x.astype(scalar.dtype))
    np.testing.assert_array_equal(got, np.array([expected], scalar.dtype))


def test_atomic_updates_of_large_elements_are_refused() -> None:
    c = buffer("c", 1, scalar=complex128, role="output", memory=OUT)
    update = ir.AtomicUpdate(OPERATORS["add"], c, (const(0),), ir.Constant(1, complex128))
    with pytest.raises(Rejected, match="no atomic add on complex128"):
        TARGET.compile(program([], [c], update))


def test_group_levels_are_refused() -> None:
    c = buffer("c", 1, role="output", memory=OUT)
    kernel = ir.Kernel("k", (ir.Store(c, (const(0),), ir.Constant(0.0, f32)),), grid=(const(1),), group=(const(1),))
    with pytest.raises(Rejected, match="groups of work-items"):
        TARGET.compile(ir.Program("k", (), (c,), (), (kernel,)))


def test_sizes_and_strides_of_three_dimensions() -> None:
    shape = (3, 4, 5)
    a, c = buffer("a", *shape), buffer("c", 5, 3, 4, role="output", memory=OUT)
    i, j, k = (index(n, e) for n, e in zip("ijk", shape, strict=True))
    body = loop(i, 3, loop(j, 4, loop(k, 5, ir.Store(c, (k, i, j), ir.Load(a, (i, j, k))))))
    x = random(*shape)
    y = TARGET.compile(program([a], [c], body))(x)
    for p in itertools.product(*map(range, shape)):
        assert y[p[2], p[0], p[1]] == x[p]


@pytest.mark.parametrize(("n", "pieces"), [(1 << 17, 1), (1 << 21, 4), (1 << 25, policy.PIECES)])
def test_short_loops_are_cut_in_few_pieces(n: int, pieces: int) -> None:
    """So that each thread meets the same part of an array again."""
    source = CpuTarget().source(parse("f = map (λ x . x * 2)")["f"].kernels(f"{n}.f32"))
    found = re.findall(r"call void %\S+\(ptr %\S+, ptr @\S+, ptr %frame, i64 %?\S+, i64 (\d+), i64", source)
    assert set(map(int, found)) == {pieces}
