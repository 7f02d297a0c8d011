"""Two kernels in one launch: where that is done, that nothing is computed in another order, and where it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lithify.arith import Expr, as_variable, const, size, var
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.passes.barriers import insert_barriers
from lithify.kernel.passes.fetching import AT_ONCE
from lithify.kernel.passes.last_group import finish_in_last_groups
from lithify.kernel.translate import translate
from lithify.kernel.walk import statements
from lithify.lang.levels import LOCAL, PRIVATE, Level
from lithify.lang.module import read_text
from lithify.lang.scalars import f16, f32, i32
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.machine import GENERIC_GPU, H200_OPENCL
from lithify.machine import opencl as opencl_models
from tests.kernel.hand_written import GROUP, ITEM, apply, buffer, given, load, loop, on_groups, program, result, store

PROGRAMS = read_text("""
total = λ xs . reduce (+) 0 xs
norm = λ xs . sqrt (reduce (+) 0 (map (λ x . x * x) xs))
columns = λ rows . map (λ column . reduce (+) 0 column) (transpose rows)
prefixes = λ xs . scan (+) 0 xs
""")
# Name, shape, kernels where each is launched, and where groups count themselves.
CASES = (
    ("total", (3000,), 1, 1),
    ("total", (1 << 17,), 2, 1),
    ("total", ((1 << 17) + 1000,), 2, 1),
    ("norm", (1 << 21,), 3, 1),
    ("norm", (3000,), 2, 1),
    ("columns", (2048, 128), 2, 1),
)
# A model of few cores, so that small arrays are large.
SMALL = replace(H200_OPENCL, cores=4)


def kernels(name: str, shape: tuple[Any, ...], *, counting: bool, scalar: Any = f32) -> ir.Program:
    subject = PROGRAMS[name].elaborate([array(*shape, scalar)])
    lowered = lower(subject.term, SMALL, check=False)
    return translate(lowered.term, subject.parameters, device=replace(SMALL, counts_groups=counting), name=name)


@pytest.mark.parametrize(("name", "shape", "apart", "together"), CASES, ids=str)
def test_the_last_group_adds_in_the_same_order(name: str, shape: tuple[int, ...], apart: int, together: int) -> None:
    two, one = (kernels(name, shape, counting=counting) for counting in (False, True))
    assert (len(two.kernels), len(one.kernels)) == (apart, together)
    inputs = {two.parameters[0].name: np.random.default_rng(1).random(shape, np.float32)}
    (expected,) = run(two, inputs, exact=False)
    for seed in range(3):
        (got,) = run(one, inputs, exact=False, seed=seed)
        np.testing.assert_array_equal(got, expected)


def test_cpus_launch_each_kernel() -> None:
    assert not opencl_models.GENERIC_CPU.counts_groups
    assert GENERIC_GPU.counts_groups


def test_the_sums_of_the_pieces_of_a_scan() -> None:
    one, two = (kernels("prefixes", (1 << 20,), counting=counting) for counting in (True, False))
    assert len(one.kernels) == len(two.kernels) - 1


@pytest.mark.parametrize("least", [0, 1 << 17])
def test_no_group_may_be_none(least: int) -> None:
    """Where there may be no groups, none of them would be the last."""
    n = size("n", least)
    subject = PROGRAMS["total"].elaborate([array(n, f32)])
    lowered = lower(subject.term, SMALL, check=False)
    found = translate(lowered.term, subject.parameters, device=SMALL)
    for kernel in found.kernels:
        if any(isinstance(s, ir.LastGroup) for s in kernel.body):
            assert all(extent.lo >= 1 for extent in kernel.grid)


# ---- by hand -------------------------------------------------------------------------------------------------------


def pair(
    *,
    groups: int = 6,
    items: int = 8,
    theirs: int = 8,
    read: Callable[[Expr], Expr] = lambda k: k,
    reads: tuple[ir.Buffer, ...] = (),
    also: Callable[[ir.Buffer, ir.Buffer], ir.Block] = lambda p, x: (),
    scratch: tuple[ir.Buffer, ...] = (),
) -> ir.Program:
    """Each group writes a sum; one group of so many items adds them, reading them at `read`."""
    x, out, p = given("x", groups * items), result(1), buffer("p", groups, role="temporary")
    acc, acc2 = buffer("acc", memory=PRIVATE), buffer("acc2", memory=PRIVATE)

    def first(g: Expr, i: Expr) -> ir.Block:
        add = loop("k", items, lambda k: (store(acc, (), apply("add", load(acc), load(x, g * items + k))),))
        return (ir.If((-i,), (store(acc, (), ir.Constant(0, f32)), add, store(p, g, load(acc)))),)

    def second(_g: Expr, i: Expr) -> ir.Block:
        add = loop("k", groups, lambda k: (store(acc2, (), apply("add", load(acc2), load(p, read(k)))),))
        body = (store(acc2, (), ir.Constant(0, f32)), add, store(out, 0, load(acc2)))
        return (*also(p, x), *((ir.If((-i,), body),) if theirs > 1 else body))

    return program(
        (x,), out, on_groups(groups, items, first, acc, name="first"),
        on_groups(1, theirs, second, acc2, *scratch, name="second"), temporaries=(p,),
    )  # fmt: skip


def finished(subject: ir.Program) -> ir.Program:
    return insert_barriers(finish_in_last_groups(subject, device=SMALL))


@pytest.mark.parametrize("theirs", [1, 4, 8])
def test_fewer_items(theirs: int) -> None:
    one = finished(pair(theirs=theirs))
    assert len(one.kernels) == 1
    x = np.random.default_rng(1).random(48, np.float32)
    np.testing.assert_allclose(run(one, {"x": x})[0], x.sum(dtype=np.float64), rtol=1e-6)


def test_more_items_are_a_kernel_of_their_own() -> None:
    assert len(finished(pair(theirs=16)).kernels) == 2


def test_much_local_memory_is_a_kernel_of_its_own() -> None:
    for elements, count in ((256, 1), (4096, 2)):
        tile = buffer("tile", elements, memory=LOCAL)
        assert len(finished(pair(scratch=(tile,))).kernels) == count


def test_many_groups_that_do_little_are_not_asked() -> None:
    few, many = (finished(pair(groups=n, items=4, theirs=4)) for n in (128, 129))
    assert (len(few.kernels), len(many.kernels)) == (1, 2)
    assert len(finished(pair(groups=129, items=16, theirs=16)).kernels) == 1


def test_what_is_overwritten_keeps_kernels_apart() -> None:
    """A group that is not done yet may still read it, or write it."""
    written = pair(also=lambda p, x: (store(p, 0, load(x, 0)),))
    assert len(finished(written).kernels) == 2


def columns(read: Callable[[Expr], Expr], groups: int = 4) -> ir.Program:
    """Eight groups write sums of eight columns, of the upper or the lower rows; then groups add two for each column."""
    x, out, p = given("x", 4, 32), result(groups * 8), buffer("p", 2, 32, role="temporary")

    def first(g: Expr, i: Expr) -> ir.Block:
        column, part = (g % 4) * 8 + i, g // 4
        return (store(p, (part, column), apply("add", load(x, part * 2, column), load(x, part * 2 + 1, column))),)

    def second(g: Expr, i: Expr) -> ir.Block:
        column = read(g * 8 + i)
        return (store(out, g * 8 + i, apply("add", load(p, 0, column), load(p, 1, column))),)

    group, part, item = var("group", 4), var("part", 2), var("item", 8)
    hardware = {GROUP: as_variable(group), Level("group", 1): as_variable(part), ITEM: as_variable(item)}
    parts = ir.Kernel("first", first(part * 4 + group, item), (const(4), const(2)), (const(8), const(1)), hardware)
    return program((x,), out, parts, on_groups(groups, 8, second, name="second"), temporaries=(p,))


@pytest.mark.parametrize(
    ("read", "groups", "count"),
    [
        (lambda c: c, 4, 1),
        (lambda c: c // 8 * 8 + 7 - c % 8, 4, 1),
        (lambda c: c, 3, 2),
        (lambda c: 31 - c, 4, 2),
        (lambda c: (c + 8) % 32, 4, 2),
        (lambda c: (c + 4) % 32, 4, 2),
    ],
    ids=["its own", "its own backwards", "of three only", "backwards", "its neighbours", "half of its neighbours"],
)
def test_groups_read_what_certain_groups_wrote(read: Callable[[Expr], Expr], groups: int, count: int) -> None:
    """Others are not among those that have counted themselves."""
    one = finished(columns(read, groups))
    assert len(one.kernels) == count
    x = np.random.default_rng(1).random((4, 32), np.float32)
    place = [read(const(c)).constant for c in range(groups * 8)]
    np.testing.assert_allclose(run(one, {"x": x})[0], x.sum(axis=0)[place], rtol=1e-6)


def test_loads_stand_before_what_needs_them() -> None:
    one = kernels("total", (1 << 20,), counting=True)
    (last,) = (s for s in one.kernels[0].body if isinstance(s, ir.LastGroup))
    loads = [isinstance(s, ir.Store) and s.buffer.name == "fetched" for s in statements(last.body)]
    assert 1 < sum(loads) <= AT_ONCE * 4
    start = loads.index(True)
    assert all(loads[start : start + 4])


@pytest.mark.parametrize("count", [AT_ONCE, AT_ONCE + 1, 40])
def test_a_statement_that_needs_more_than_is_fetched_at_once(count: int) -> None:
    chosen = " + ".join(f"sums[{k}]" for k in range(count))
    text = f"""p = λ a xs .
  let sums = map (λ row . reduce (+) 0 row) a in reduce (+) 0 (map (λ x . x * ({chosen})) xs)"""
    subject = read_text(text)["p"].elaborate([array(40, 3000, f32), array(256, f32)])
    lowered = lower(subject.term, H200_OPENCL, check=False)
    one = translate(lowered.term, subject.parameters, device=H200_OPENCL)
    a, xs = (np.random.default_rng(k).random(shape, np.float32) for k, shape in enumerate([(40, 3000), (256,)]))
    expected = a[:count].sum(dtype=np.float64) * xs.sum(dtype=np.float64)
    np.testing.assert_allclose(run(one, {"a": a, "xs": xs})[0], expected, rtol=1e-5)


def test_what_one_group_hands_on_to_itself_is_waited_for() -> None:
    """Kernels of one group that follow each other through the heap are one, with a barrier for the heap between."""
    text = "p = λ b cs . map (λ row . reduce (+) 0 row + reduce max 0 cs) b"
    subject = read_text(text)["p"].elaborate([array(1, 3000, f32), array(3000, f32)])
    one = translate(lower(subject.term, SMALL, check=False).term, subject.parameters, device=SMALL)
    assert len(one.kernels) == 1
    b, cs = (np.random.default_rng(k).random(shape, np.float32) for k, shape in enumerate([(1, 3000), (3000,)]))
    np.testing.assert_allclose(run(one, {"b": b, "cs": cs})[0], b.sum(axis=1) + cs.max(), rtol=1e-5)


def test_types_of_sums() -> None:
    for scalar in (f16, i32):
        one = kernels("total", (1 << 16,), counting=True, scalar=scalar)
        x = np.ones(1 << 16, scalar.dtype)
        assert float(run(one, {"xs": x}, exact=True)[0]) == 1 << 16


def test_memory_of_both_kernels_is_shared() -> None:
    two, one = (kernels("total", (1 << 17,), counting=counting) for counting in (False, True))

    def held(kernel: ir.Kernel) -> int:
        return sum(e.shape[0].constant or 0 for e in kernel.scratch if e.memory.name == "local")

    assert held(one.kernels[0]) == max(map(held, two.kernels))
