"""Right kernels written in the kernel language by hand: what the evaluator must accept, and mutants start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lithify.arith import Expr, Variable, as_variable, const, var
from lithify.kernel import ir
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, Level, Memory
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import Scalar, f32, i32

GROUP, ITEM = Level("group", 0), Level("item", 0)


@dataclass(frozen=True)
class Case:
    """A program, random inputs for it, and what it must compute."""

    program: ir.Program
    inputs: Callable[[np.random.Generator], dict[str, Any]]
    expected: Callable[..., Any]


def buffer(name: str, *shape: int, memory: Memory = HEAP, role: str = "scratch", scalar: Scalar = f32) -> ir.Buffer:
    return ir.Buffer(name, scalar, tuple(map(const, shape)), memory, role, 64)


def given(name: str, *shape: int, scalar: Scalar = f32) -> ir.Buffer:
    return buffer(name, *shape, role="input", scalar=scalar)


def result(*shape: int, scalar: Scalar = f32) -> ir.Buffer:
    return buffer("out", *shape, role="output", scalar=scalar)


def load(source: ir.Buffer, *index: Expr | int, guard: ir.Guard = (), fill: float | None = None) -> ir.Load:
    return ir.Load(source, exprs(index), guard, None if fill is None else number(fill, source.scalar))


def exprs(index: tuple[Expr | int, ...]) -> ir.Index:
    return tuple(const(i) if isinstance(i, int) else i for i in index)


def number(value: float, scalar: Scalar = f32) -> ir.Constant:
    return ir.Constant(value, scalar)


def apply(name: str, *operands: ir.Value) -> ir.Apply:
    return ir.Apply(OPERATORS[name], operands, operands[0].scalar)


def store(target: ir.Buffer, index: Expr | int | tuple[Expr | int, ...], value: ir.Value, *guard: Expr) -> ir.Store:
    return ir.Store(target, exprs(index if isinstance(index, tuple) else (index,)), value, guard)


def loop(name: str, extent: int, body: Callable[[Expr], ir.Block], level: Level = SEQ) -> ir.Loop:
    index = var(name, extent)
    return ir.Loop(as_variable(index), const(extent), level, body(index), name)


def lanes(name: str, width: int, body: Callable[[Expr], ir.Block]) -> ir.Lanes:
    index = var(name, width)
    return ir.Lanes(as_variable(index), width, body(index), name)


def on_groups(
    groups: int, items: int, body: Callable[[Expr, Expr], ir.Block], *scratch: ir.Buffer, name: str = "kernel"
) -> ir.Kernel:
    """A kernel over `groups` of `items` work-items; the body is given both indices."""
    group, item = var("group", groups), var("item", items)
    hardware: dict[Level, Variable] = {}
    for level, index in ((GROUP, group), (ITEM, item)):
        if index.constant is None:
            hardware[level] = as_variable(index)
    return ir.Kernel(name, body(group, item), (const(groups),), (const(items),), hardware, scratch)


def on_cpu(*body: ir.Statement, scratch: tuple[ir.Buffer, ...] = (), name: str = "kernel") -> ir.Kernel:
    return ir.Kernel(name, body, scratch=scratch)


def program(
    inputs: tuple[ir.Buffer, ...], out: ir.Buffer, *kernels: ir.Kernel, temporaries: tuple[ir.Buffer, ...] = ()
) -> ir.Program:
    return ir.Program("program", inputs, (out,), temporaries, kernels)


def floats(**shapes: tuple[int, ...]) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda rng: {name: rng.uniform(0.5, 2, shape).astype(np.float32) for name, shape in shapes.items()}


def reversed_in_groups() -> Case:
    """Each group turns its eight elements around through local memory."""
    x, out, tile = given("x", 32), result(32), buffer("tile", 8, memory=LOCAL)
    kernel = on_groups(
        4, 8,
        lambda g, i: (
            store(tile, i, load(x, g * 8 + i)),
            ir.Barrier(),
            store(out, g * 8 + i, load(tile, 7 - i)),
        ), tile,
    )  # fmt: skip
    return Case(program((x,), out, kernel), floats(x=(32,)), lambda x: x.reshape(4, 8)[:, ::-1].reshape(32))


def tree_sum() -> Case:
    """Each group adds its eight elements in a tree."""
    x, out, s = given("x", 24), result(3), buffer("s", 8, memory=LOCAL)

    def body(g: Expr, i: Expr) -> ir.Block:
        steps: list[ir.Statement] = [store(s, i, load(x, g * 8 + i)), ir.Barrier()]
        for half in (4, 2, 1):
            add = store(s, i, apply("add", load(s, i), load(s, i + half)))
            steps += [ir.If((half - 1 - i,), (add,)), ir.Barrier()]
        return (*steps, ir.If((-i,), (store(out, g, load(s, 0)),)))

    return Case(program((x,), out, on_groups(3, 8, body, s)), floats(x=(24,)), lambda x: x.reshape(3, 8).sum(1))


def ring(slots: int = 3, tiles: int = 6) -> Case:
    """A pipeline: asynchronous copies into a ring of tiles, each tile read by other work-items than copied it."""
    x, out = given("x", 2, tiles, 4), result(2, 4)
    tile = buffer("tile", slots, 4, memory=Memory("local", slots))
    acc = buffer("acc", 1, memory=PRIVATE)

    def body(g: Expr, i: Expr) -> ir.Block:
        def fetch(k: Expr | int) -> ir.Async:
            k = const(k) if isinstance(k, int) else k
            return ir.Async((store(tile, (k % slots, i), load(x, g, k, i)),))

        prologue = [s for k in range(slots - 1) for s in (fetch(k), ir.Commit())]

        def step(k: Expr) -> ir.Block:
            ahead = k + slots - 1
            return (
                ir.Wait(slots - 2),
                ir.Barrier(),
                ir.If((tiles - 1 - ahead,), (fetch(ahead),)),
                ir.Commit(),
                store(acc, 0, apply("add", load(acc, 0), load(tile, k % slots, 3 - i))),
            )

        return (store(acc, 0, number(0)), *prologue, loop("k", tiles, step), store(out, (g, i), load(acc, 0)))

    return Case(
        program((x,), out, on_groups(2, 4, body, tile, acc)),
        floats(x=(2, tiles, 4)),
        lambda x: x.sum(axis=1)[:, ::-1],
    )


def double_buffer(tiles: int = 5) -> Case:
    """The next tile is copied to one half of local memory while the other half is read."""
    x, out = given("x", tiles, 4), result(4)
    tile, acc = buffer("tile", 2, 4, memory=Memory("local", 2)), buffer("acc", 1, memory=PRIVATE)

    def body(_g: Expr, i: Expr) -> ir.Block:
        def step(k: Expr) -> ir.Block:
            return (
                ir.If((tiles - 2 - k,), (store(tile, ((k + 1) % 2, i), load(x, k + 1, i)),)),
                store(acc, 0, apply("add", load(acc, 0), load(tile, k % 2, 3 - i))),
                ir.Barrier(),
            )

        return (
            store(acc, 0, number(0)),
            store(tile, (0, i), load(x, 0, i)),
            ir.Barrier(),
            loop("k", tiles, step),
            store(out, i, load(acc, 0)),
        )

    return Case(program((x,), out, on_groups(1, 4, body, tile, acc)), floats(x=(tiles, 4)), lambda x: x.sum(0)[::-1])


def stencil() -> Case:
    """The sum of three neighbours with zeros outside; the last group is not full."""
    x, out = given("x", 10), result(10)

    def body(g: Expr, i: Expr) -> ir.Block:
        p = g * 4 + i
        left = load(x, p - 1, guard=(p - 1,), fill=0)
        right = load(x, p + 1, guard=(8 - p,), fill=0)
        return (ir.If((9 - p,), (store(out, p, apply("add", apply("add", left, load(x, p)), right)),)),)

    def expected(x: Any) -> Any:
        padded = np.pad(x, 1)
        return padded[:-2] + padded[1:-1] + padded[2:]

    return Case(program((x,), out, on_groups(3, 4, body)), floats(x=(10,)), expected)


def threads_and_lanes() -> Case:
    """Matrix times vector on CPU threads, with vectors of four lanes and a masked tail."""
    a, b, out = given("a", 5, 10), given("b", 10), result(5)
    partial, total = buffer("partial", 4, memory=PRIVATE), buffer("total", 1, memory=PRIVATE)

    def row(r: Expr) -> ir.Block:
        def step(k: Expr) -> ir.Block:
            def lane(v: Expr) -> ir.Block:
                inside = 9 - 4 * k - v
                product = apply("mul", load(a, r, 4 * k + v, guard=(inside,), fill=0),
                                load(b, 4 * k + v, guard=(inside,), fill=0))  # fmt: skip
                return (store(partial, v, apply("add", load(partial, v), product)),)

            return (lanes("v", 4, lane),)

        return (
            lanes("w", 4, lambda v: (store(partial, v, number(0)),)),
            loop("k", 3, step),
            store(total, 0, number(0)),
            loop("j", 4, lambda j: (store(total, 0, apply("add", load(total, 0), load(partial, j))),)),
            store(out, r, load(total, 0)),
        )

    kernel = on_cpu(loop("r", 5, row, PAR), scratch=(partial, total))
    return Case(program((a, b), out, kernel), floats(a=(5, 10), b=(10,)), lambda a, b: a @ b)


def histogram() -> Case:
    """Atomic counts of the values 0 .. 4, in a second kernel after one that clears them."""
    x, out = given("x", 16, scalar=i32), result(5, scalar=i32)
    clear = on_groups(1, 5, lambda _g, i: (store(out, i, number(0, i32)),), name="clear")

    from lithify.arith import loaded

    def count(g: Expr, i: Expr) -> ir.Block:
        bin_ = loaded(x, (g * 4 + i,), 0, 4)
        return (ir.AtomicUpdate(OPERATORS["add"], out, (bin_,), number(1, i32)),)

    kernels = (clear, on_groups(4, 4, count, name="count"))
    return Case(
        program((x,), out, *kernels),
        lambda rng: {"x": rng.integers(0, 5, 16).astype(np.int32)},
        lambda x: np.bincount(x, minlength=5),
    )


def warp_sums() -> Case:
    """Two warps of four add their elements in a tree, with barriers of the warp only."""
    x, out, s = given("x", 16), result(4), buffer("s", 8, memory=LOCAL)
    group, warp, lane = var("group", 2), var("warp", 2), var("lane", 4)
    item = 4 * warp + lane
    steps: list[ir.Statement] = [store(s, item, load(x, group * 8 + item)), ir.Barrier("warp")]
    for half in (2, 1):
        add = store(s, item, apply("add", load(s, item), load(s, item + half)))
        steps += [ir.If((half - 1 - lane,), (add,)), ir.Barrier("warp")]
    steps.append(ir.If((-lane,), (store(out, group * 2 + warp, load(s, item)),)))
    levels = {GROUP: group, Level("warp"): warp, Level("lane"): lane}
    hardware = {level: as_variable(index) for level, index in levels.items()}
    kernel = ir.Kernel("kernel", tuple(steps), (const(2),), (const(8),), hardware, (s,))
    return Case(program((x,), out, kernel), floats(x=(16,)), lambda x: x.reshape(4, 4).sum(1))


def two_kernels() -> Case:
    """Partial sums of threads on the heap, added by a second kernel."""
    x, out = given("x", 4, 3), result(1)
    partial = buffer("partial", 4, role="temporary")
    acc = buffer("acc", 1, memory=PRIVATE)
    total = buffer("acc2", 1, memory=PRIVATE)

    def add_all(target: ir.Buffer, n: int, element: Callable[[Expr], ir.Load]) -> ir.Block:
        step = loop("k", n, lambda k: (store(target, 0, apply("add", load(target, 0), element(k))),))
        return (store(target, 0, number(0)), step)

    first = on_cpu(
        loop("i", 4, lambda i: (*add_all(acc, 3, lambda k: load(x, i, k)), store(partial, i, load(acc, 0))), PAR),
        scratch=(acc,), name="partials",
    )  # fmt: skip
    second = on_cpu(
        *add_all(total, 4, lambda k: load(partial, k)), store(out, 0, load(total, 0)), scratch=(total,), name="total"
    )
    return Case(
        program((x,), out, first, second, temporaries=(partial,)), floats(x=(4, 3)), lambda x: np.array([x.sum()])
    )


def counter(*shape: int) -> ir.Buffer:
    return buffer("arrived", *shape, role="counter", scalar=i32)


def last_group() -> Case:
    """Sums of groups on the heap, added up by the last of six groups."""
    x, out, p, arrived = given("x", 24), result(1), buffer("p", 6, role="temporary"), counter(1)
    s, t = buffer("s", 4, memory=LOCAL), buffer("t", 3, memory=LOCAL)

    def added(target: ir.Buffer, place: Expr | int, source: ir.Buffer, n: int) -> ir.Store:
        total: ir.Value = load(source, 0)
        for k in range(1, n):
            total = apply("add", total, load(source, k))
        return store(target, place, total)

    def body(g: Expr, i: Expr) -> ir.Block:
        pair = apply("add", load(p, i), load(p, i + 3))
        return (
            store(s, i, load(x, g * 4 + i)),
            ir.Barrier(),
            ir.If((-i,), (added(p, g, s, 4),)),
            ir.LastGroup(arrived, (const(0),), const(6), (
                ir.If((2 - i,), (store(t, i, pair),)),
                ir.Barrier(),
                ir.If((-i,), (added(out, 0, t, 3),)),
            )),
        )  # fmt: skip

    return Case(
        program((x,), out, on_groups(6, 4, body, s, t), temporaries=(p, arrived)),
        floats(x=(24,)),
        lambda x: np.array([x.sum()]),
    )


def last_groups() -> Case:
    """Sums of columns: three groups for each two columns, of a third of the rows; the last of them adds."""
    x, out, p, arrived = given("x", 6, 4), result(4), buffer("p", 3, 4, role="temporary"), counter(2)

    def body(g: Expr, i: Expr) -> ir.Block:
        half, part = g // 3, g % 3
        column = half * 2 + i
        total = apply("add", apply("add", load(p, 0, column), load(p, 1, column)), load(p, 2, column))
        return (
            store(p, (part, column), apply("add", load(x, part * 2, column), load(x, part * 2 + 1, column))),
            ir.LastGroup(arrived, (half,), const(3), (
                store(out, column, total),
            )),
        )  # fmt: skip

    return Case(
        program((x,), out, on_groups(6, 2, body), temporaries=(p, arrived)), floats(x=(6, 4)), lambda x: x.sum(axis=0)
    )


CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (reversed_in_groups, tree_sum, ring, double_buffer, stencil, threads_and_lanes, histogram, warp_sums,
              two_kernels, last_group, last_groups)
}  # fmt: skip
