"""Kernels for work-groups, written by hand, with their arguments and what they must give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from lithify.arith import Expr, as_variable, ceil_div, const, minimum, size, var
from lithify.arith import loaded as loaded_index
from lithify.kernel import ir
from lithify.kernel.passes.last_group import finish_in_last_groups
from lithify.kernel.walk import Substitution
from lithify.lang.levels import LOCAL, OUT, PRIVATE, Level
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import Scalar, bool_, f16, f32, i32
from lithify.machine import GENERIC_GPU
from tests.targets.handmade import buffer, lanes, loop, op


@dataclass(frozen=True)
class Case:
    """A program, the arguments of a call, and the results expected."""

    program: ir.Program
    arguments: tuple[Any, ...]
    expected: tuple[Any, ...]


def launch(
    name: str,
    body: tuple[ir.Statement, ...],
    grid: tuple[Expr | int, ...],
    group: tuple[int, ...],
    hardware: dict[str, Expr],
    scratch: tuple[ir.Buffer, ...] = (),
) -> ir.Kernel:
    """A kernel; hardware levels by their text, for instance `group0`."""
    levels = {Level.parse(text): as_variable(v) for text, v in hardware.items() if v.terms}
    extents = tuple(const(e) if isinstance(e, int) else e for e in grid)
    return ir.Kernel(name, body, extents, tuple(map(const, group)), levels, scratch)


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def transpose(m: int, n: int, tile: int = 8, scalar: Scalar = f32) -> Case:
    """Through a padded tile in local memory, with a barrier; partial tiles are guarded."""
    x = buffer("x", m, n, scalar=scalar)
    y = buffer("y", n, m, scalar=scalar, role="output", memory=OUT)
    part = buffer("tile", tile, tile + 1, scalar=scalar, role="scratch", memory=LOCAL)
    gi, gj = var("gi", -(-m // tile)), var("gj", -(-n // tile))
    a, b = var("a", tile), var("b", tile)
    row, column = gi * tile + a, gj * tile + b
    read = ir.Store(part, (a, b), ir.Load(x, (row, column)), (m - 1 - row, n - 1 - column))
    out_row, out_column = gj * tile + a, gi * tile + b
    written = ir.Store(y, (out_row, out_column), ir.Load(part, (b, a)), (n - 1 - out_row, m - 1 - out_column))
    kernel = launch("transpose", (read, ir.Barrier(), written), (-(-n // tile), -(-m // tile)), (tile, tile),
                    {"group0": gj, "group1": gi, "item0": b, "item1": a}, (part,))  # fmt: skip
    data = random(m, n).astype(scalar.dtype)
    return Case(ir.Program("transpose", (x,), (y,), (), (kernel,)), (data,), (data.T,))


def tree_sum(n: int, width: int = 64) -> Case:
    """A partial sum a group by a tree in local memory, then one group adds the partial sums: two kernels."""
    groups = -(-n // width)
    x, total = buffer("x", n), buffer("total", role="output", memory=OUT)
    partial = buffer("partial", groups, role="temporary")
    kernels = (_tree("tree", x, partial, n, width, groups), _tree_end("last", partial, total, groups))
    data = random(n)
    expected = np.float32(data.astype(np.float64).sum())
    return Case(ir.Program("tree_sum", (x,), (total,), (partial,), kernels), (data,), (expected,))


def in_one_launch(case: Case) -> Case:
    """The last group of a kernel does what the next kernel would."""
    return replace(case, program=finish_in_last_groups(case.program, device=GENERIC_GPU))


def column_sums(m: int, n: int, parts: int = 4, width: int = 16, share: int = 1) -> Case:
    """Sums of columns, in parts of rows by a group for each `width` columns; then of `share` times as many columns by
    each item of a group."""
    rows = -(-m // parts)
    x, total = buffer("x", m, n), buffer("total", n, role="output", memory=OUT)
    partial = buffer("partial", parts, n, role="temporary")
    acc, acc2 = (buffer(name, *shape, role="scratch", memory=PRIVATE) for name, shape in (("a", ()), ("b", (share,))))
    g, p, i, k = var("g", -(-n // width)), var("p", parts), var("i", width), var("k", rows)
    row, column = p * rows + k, g * width + i
    more = op("add", ir.Load(acc, ()), ir.Load(x, (row, column), (m - 1 - row,), ir.Constant(0.0, f32)))
    first = launch("parts", (
        ir.If((n - 1 - column,), (
            ir.Store(acc, (), ir.Constant(0.0, f32)),
            loop(k, rows, ir.Store(acc, (), more)),
            ir.Store(partial, (p, column), ir.Load(acc, ())),
        )),
    ), (-(-n // width), parts), (width,), {"group0": g, "group1": p, "item0": i}, (acc,))  # fmt: skip
    h, j, lane, q = var("h", -(-n // (width * share))), var("j", width), var("lane", share), var("q", parts)
    place = h * width * share + j * share + lane
    again = op("add", ir.Load(acc2, (lane,)), ir.Load(partial, (q, place)))
    body = (
        ir.Store(acc2, (lane,), ir.Constant(0.0, f32)),
        *(
            s
            for part in range(parts)
            for s in Substitution({as_variable(q): const(part)}).statement(ir.Store(acc2, (lane,), again))
        ),
        ir.Store(total, (place,), ir.Load(acc2, (lane,))),
    )
    inner: tuple[ir.Statement, ...] = (lanes(lane, share, *body),) if share > 1 else body
    guarded = (ir.If((n - 1 - place.substitute({lane: share - 1}) if share > 1 else n - 1 - place,), inner),)
    second = launch("sums", guarded, (-(-n // (width * share)),), (width,), {"group0": h, "item0": j}, (acc2,))
    data = random(m, n)
    return Case(ir.Program("columns", (x,), (total,), (partial,), (first, second)), (data,), (data.sum(axis=0),))


def _tree(name: str, x: ir.Buffer, out: ir.Buffer, n: int, width: int, groups: int) -> ir.Kernel:
    g, i = var("g", groups), var("i", width)
    part = buffer("part", width, role="scratch", memory=LOCAL)
    at = g * width + i
    body: list[ir.Statement] = [ir.Store(part, (i,), ir.Load(x, (at,), (n - 1 - at,), ir.Constant(0.0, f32)))]
    half = width // 2
    while half:
        body.append(ir.Barrier())
        pair = op("add", ir.Load(part, (i,)), ir.Load(part, (i + half,)))
        body.append(ir.If((half - 1 - i,), (ir.Store(part, (i,), pair),)))
        half //= 2
    body.append(ir.If((-i,), (ir.Store(out, (g,), ir.Load(part, (const(0),))),)))
    return launch(name, tuple(body), (groups,), (width,), {"group0": g, "item0": i}, (part,))


def _tree_end(name: str, partial: ir.Buffer, total: ir.Buffer, groups: int) -> ir.Kernel:
    k = var("k", groups)
    accumulator = buffer("acc", role="scratch", memory=PRIVATE)
    more = op("add", ir.Load(accumulator, ()), ir.Load(partial, (k,)))
    body = (
        ir.Store(accumulator, (), ir.Constant(0.0, f32)),
        loop(k, groups, ir.Store(accumulator, (), more)) if k.terms else ir.Store(accumulator, (), more),
        ir.Store(total, (), ir.Load(accumulator, ())),
    )
    return launch(name, body, (1,), (1,), {}, (accumulator,))


def stencil(m: int, n: int) -> Case:
    """Sum of the 3 x 3 neighbours; outside the edge 0 above and below, the nearest element to the left and right."""
    x, y = buffer("x", m, n), buffer("y", m, n, role="output", memory=OUT)
    i, j = var("i", 8 * -(-m // 8)), var("j", 16 * -(-n // 16))
    terms: list[ir.Value] = []
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            row = i + di
            guard = tuple(e for e, needed in ((row, di < 0), (m - 1 - row, di > 0)) if needed)
            column = minimum(j + dj, n - 1) if dj > 0 else j + dj
            column = column - minimum(column, 0) if dj < 0 else column
            terms.append(ir.Load(x, (row, column), guard, ir.Constant(0.0, f32) if guard else None))
    value = terms[0]
    for term in terms[1:]:
        value = op("add", value, term)
    body = (ir.If((m - 1 - i, n - 1 - j), (ir.Store(y, (i, j), value),)),)
    kernel = launch("stencil", body, (-(-n // 16), -(-m // 8)), (16, 8), {"global0": j, "global1": i})
    data = random(m, n)
    padded = np.pad(np.pad(data, ((0, 0), (1, 1)), "edge"), ((1, 1), (0, 0)))
    expected = sum(padded[a : a + m, b : b + n].astype(np.float64) for a in range(3) for b in range(3))
    return Case(ir.Program("stencil", (x,), (y,), (), (kernel,)), (data,), (expected,))


def symbolic_axpy(n_value: int, group: int = 32) -> Case:
    """alpha x + y for any length, alpha a scalar parameter."""
    n = size("n", 0)
    alpha = buffer("alpha", role="scalar")
    x, y = buffer("x", n), buffer("y", n)
    z = buffer("z", n, role="output", memory=OUT)
    groups = ceil_div(n, group)
    g, i = var("g", ceil_div(size("n"), group)), var("i", group)
    at = g * group + i
    value = op("add", op("mul", ir.Load(alpha, ()), ir.Load(x, (at,))), ir.Load(y, (at,)))
    body = (ir.Store(z, (at,), value, (n - 1 - at,)),)
    kernel = launch("axpy", body, (groups,), (group,), {"group0": g, "item0": i})
    program = ir.Program("axpy", (alpha, x, y), (z,), (), (kernel,), (as_variable(n),))
    a, b = random(n_value), random(n_value)[::-1].copy()
    return Case(program, (1.5, a, b), (np.float32(1.5) * a + b,))


def lane_blocks(n: int, width: int, scalar: Scalar = f32) -> Case:
    """Blocks of lanes with a tail: a private vector is filled, changed in a loop, and stored backwards."""
    x, y = buffer("x", n, scalar=scalar), buffer("y", n, scalar=scalar, role="output", memory=OUT)
    acc = buffer("acc", 2, width, scalar=scalar, role="scratch", memory=PRIVATE)
    blocks = -(-n // width)
    g, lane, k = var("g", blocks), var("lane", width), var("k", 3)
    at = g * width + lane
    guard = (n - 1 - at,) if n % width else ()
    load = ir.Load(x, (at,), guard, ir.Constant(1.0, scalar) if guard else None)
    zero = const(0)
    body = (
        lanes(lane, width, ir.Store(acc, (zero, lane), load), ir.Store(acc, (zero + 1, lane), load)),
        loop(k, 3, lanes(lane, width, ir.Store(
            acc, (zero, lane), op("add", ir.Load(acc, (zero, lane)), ir.Load(acc, (zero + 1, lane)))))),
        lanes(lane, width, ir.Store(y, (n - 1 - at,), ir.Load(acc, (zero, lane)), guard)),
    )  # fmt: skip
    kernel = launch("blocks", body, (blocks,), (1,), {"group0": g}, (acc,))
    data = np.random.default_rng(n).integers(-8, 9, n).astype(scalar.dtype)
    expected = (data.astype(np.float64) * 4)[::-1].astype(scalar.dtype)
    return Case(ir.Program("blocks", (x,), (y,), (), (kernel,)), (data,), (expected,))


def halves(n: int) -> Case:
    """The sum of each block of 16, added up through vectors of 16, 8, 4 and 2 lanes and single elements."""
    x, y = buffer("x", n, 16), buffer("y", n, role="output", memory=OUT)
    part = [buffer(f"part{w}", w, role="scratch", memory=PRIVATE) for w in (16, 8, 4, 2)]
    g = var("g", n)
    first = var("v", 16)
    body: list[ir.Statement] = [lanes(first, 16, ir.Store(part[0], (first,), ir.Load(x, (g, first))))]
    for whole, half in pairwise(part):
        width = 16 >> part.index(half)
        v = var("v", width)
        pair = op("add", ir.Load(whole, (v,)), ir.Load(whole, (v + width,)))
        body.append(lanes(v, width, ir.Store(half, (v,), pair)))
    last = op("add", ir.Load(part[3], (const(0),)), ir.Load(part[3], (const(1),)))
    kernel = launch("halves", (*body, ir.Store(y, (g,), last)), (n,), (1,), {"group0": g}, tuple(part))
    data = np.random.default_rng(3).integers(-8, 9, (n, 16)).astype(np.float32)
    return Case(ir.Program("halves", (x,), (y,), (), (kernel,)), (data,), (data.sum(1),))


def tail_under_if(n: int, width: int) -> Case:
    """Lanes under a condition that differs from lane to lane: nothing may be read or written beyond the end.

    One lane-independent element, y[0], is read only where a lane is active; the other branch writes -1 at the start.
    """
    x, y = buffer("x", n), buffer("y", n, role="output", memory=OUT)
    z = buffer("z", n + width, role="output", memory=OUT)
    blocks = n // width + 2  # the last one has no active lane
    g, lane = var("g", blocks), var("lane", width)
    at = g * width + lane
    value = op("add", ir.Load(x, (at,)), ir.Load(x, (g * width,)))
    inside = (ir.Store(y, (at,), value), ir.Store(z, (at,), ir.Constant(1.0, f32), (n + width - 1 - at,)))
    outside = (ir.Store(z, (at,), ir.Constant(-1.0, f32), (n + width - 1 - at,)),)
    body = (lanes(lane, width, ir.If((n - 1 - at,), inside, outside)),)
    kernel = launch("tail", body, (blocks,), (1,), {"group0": g})
    data = random(n)
    first = data[np.arange(n) // width * width]
    signs = np.where(np.arange(n + width) < n, 1, -1)
    return Case(ir.Program("tail", (x,), (y, z), (), (kernel,)), (data,), (data + first, signs))


def truths(n: int, width: int) -> Case:
    """Truth values in lanes: compared, kept in a private vector and in a private array, combined, stored backwards."""
    x, y = buffer("x", n), buffer("y", n, scalar=bool_, role="output", memory=OUT)
    kept = buffer("kept", width, scalar=bool_, role="scratch", memory=PRIVATE)
    turned = buffer("turned", width, scalar=bool_, role="scratch", memory=PRIVATE)
    blocks = -(-n // width)
    g, lane = var("g", blocks), var("lane", width)
    at = g * width + lane
    guard = (n - 1 - at,) if n % width else ()
    positive = op("gt", ir.Load(x, (at,)), ir.Constant(0.0, f32), result=bool_)
    even = op("eq", op("and", ir.IndexValue(at, i32), ir.Constant(1, i32)), ir.Constant(0, i32), result=bool_)
    body = (
        lanes(lane, width, ir.Store(kept, (lane,), ir.Constant(False, bool_))),
        lanes(lane, width, ir.Store(kept, (lane,), positive, guard)),
        lanes(lane, width, ir.Store(turned, (width - 1 - lane,), op("xor", ir.Load(kept, (lane,)), even))),
        lanes(lane, width, ir.Store(y, (n - 1 - at,), ir.Load(turned, (width - 1 - lane,)), guard)),
    )
    kernel = launch("truths", body, (blocks,), (1,), {"group0": g}, (kept, turned))
    data = random(n)
    expected = ((data > 0) ^ (np.arange(n) % 2 == 0))[::-1]
    return Case(ir.Program("truths", (x,), (y,), (), (kernel,)), (data,), (expected,))


def gather_lanes(n: int, width: int) -> Case:
    """y[i] = x[ids[i]] + x[3 i mod n] + i in lanes, only where i is not 2 mod 5; the rest is -1."""
    x, ids = buffer("x", n), buffer("ids", n, scalar=i32)
    y = buffer("y", n, role="output", memory=OUT)
    blocks = -(-n // width)
    g, lane = var("g", blocks), var("lane", width)
    at = minimum(g * width + lane, n - 1)
    chosen = loaded_index(ids, (at,), 0, n - 1)
    remainder = at % 5
    value: ir.Value = op("add", ir.Load(x, (chosen,)), ir.Load(x, ((at * 3) % n,)))
    value = op("add", value, op("f32", ir.IndexValue(at, i32), result=f32))
    # remainder != 2: not (remainder - 2 >= 0 and 2 - remainder >= 0)
    value = ir.Choose((remainder - 2, 2 - remainder), ir.Constant(-1.0, f32), value)
    body = (lanes(lane, width, ir.Store(y, (at,), value, (n - 1 - (g * width + lane),))),)
    kernel = launch("gather", body, (blocks,), (1,), {"group0": g})
    data = random(n)
    order = np.random.default_rng(1).integers(0, n, n).astype(np.int32)
    i = np.arange(n)
    expected = np.where(i % 5 == 2, np.float32(-1), data[order] + data[i * 3 % n] + i.astype(np.float32))
    return Case(ir.Program("gather", (x, ids), (y,), (), (kernel,)), (data, order), (expected.astype(np.float32),))


def histogram(n: int, bins: int, scalar: Scalar = i32, operator: str = "add") -> Case:
    """Atomic updates: out[i mod bins] := operator(out, x[i]), from zeros that the kernel before has written."""
    x, out = buffer("x", n, scalar=scalar), buffer("out", bins, scalar=scalar, role="output", memory=OUT)
    b, i = var("b", bins), var("i", 64 * -(-n // 64))
    clear = launch("clear", (ir.Store(out, (b,), ir.Constant(0, scalar)),), (bins,), (1,), {"group0": b})
    update = ir.AtomicUpdate(OPERATORS[operator], out, (i % bins,), ir.Load(x, (i,)))
    count = launch("count", (ir.If((n - 1 - i,), (update,)),), (-(-n // 64),), (64,), {"global0": i})
    data = np.random.default_rng(2).integers(-9, 9, n).astype(scalar.dtype)
    expected = np.zeros(bins, scalar.dtype)
    ufunc: Any = {"add": np.add, "max": np.maximum}[operator]
    ufunc.at(expected, np.arange(n) % bins, data)
    return Case(ir.Program("histogram", (x,), (out,), (), (clear, count)), (data,), (expected,))


CASES: dict[str, Callable[[], Case]] = {
    "transpose": lambda: transpose(37, 21),
    "transpose of one row": lambda: transpose(1, 9),
    "transpose of f16": lambda: transpose(12, 17, scalar=f16),
    "tree sum": lambda: tree_sum(1000),
    "tree sum of one": lambda: tree_sum(1),
    "tree sum in one launch": lambda: in_one_launch(tree_sum(1000)),
    "column sums in one launch": lambda: in_one_launch(column_sums(21, 40)),
    "column sums of four in one launch": lambda: in_one_launch(column_sums(21, 144, share=4)),
    "stencil": lambda: stencil(19, 33),
    "symbolic": lambda: symbolic_axpy(100),
    "symbolic, one": lambda: symbolic_axpy(1),
    "symbolic, none": lambda: symbolic_axpy(0),
    **{f"{w} lanes of {n} {s}": (lambda w=w, n=n, s=s: lane_blocks(n, w, s))
       for w, n, s in ((16, 64, f32), (16, 50, f32), (8, 8, f16), (8, 27, f16), (4, 7, i32), (2, 1, f32), (3, 10, f32),
                       (64, 130, f32), (12, 30, f32))},
    **{f"gather {w} of {n}": (lambda w=w, n=n: gather_lanes(n, w)) for w, n in ((4, 20), (8, 21), (16, 33), (5, 12))},
    **{f"tail of {n} under if": (lambda n=n: tail_under_if(n, 8)) for n in (16, 19)},
    **{f"{n} truth values": (lambda n=n: truths(n, 8)) for n in (16, 19)},
    "halves": lambda: halves(5),
    "histogram": lambda: histogram(300, 7),
    "histogram f32": lambda: histogram(200, 3, f32),
    "largest f32": lambda: histogram(100, 3, f32, "max"),
}  # fmt: skip


def close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(expected, np.float64), 2e-6, 2e-5)
