"""Kernels for CPU threads, written by hand: parallel loops with memory of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lithify.arith import as_variable, const, minimum, size, var
from lithify.kernel import ir
from lithify.lang.levels import HEAP, OUT, PAR, PRIVATE, THREAD
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import Scalar, bool_, complex64, f16, f32, f64, i32
from tests.targets.group_programs import Case
from tests.targets.handmade import buffer, lanes, loop, op, program


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def row_sums(m: int, n: int) -> Case:
    """Each row added up in its own accumulator."""
    x, y = buffer("x", m, n), buffer("y", m, role="output", memory=OUT)
    acc = buffer("acc", role="scratch", memory=PRIVATE)
    i, k = var("i", m), var("k", n)
    body = loop(
        i, m,
        ir.Store(acc, (), ir.Constant(0.0, f32)),
        loop(k, n, ir.Store(acc, (), op("add", ir.Load(acc, ()), ir.Load(x, (i, k))))),
        ir.Store(y, (i,), ir.Load(acc, ())),
        level=PAR,
    )  # fmt: skip
    data = _random(m, n)
    return Case(program([x], [y], body, scratch=(acc,)), (data,), (data.astype(np.float64).sum(1),))


def row_reversals(m: int, n: int) -> Case:
    """Each row through memory of the thread, too large for a stack; a heap temporary between two kernels."""
    x, y = buffer("x", m, n), buffer("y", m, n, role="output", memory=OUT)
    row = buffer("row", n, role="scratch", memory=THREAD)
    middle = buffer("middle", m, n, role="temporary", memory=HEAP)
    kernels = []
    for number, (source, target) in enumerate(((x, middle), (middle, y))):
        i, k = var("i", m), var("k", n)
        body = loop(i, m, loop(k, n, ir.Store(row, (k,), ir.Load(source, (i, k)))),
                    loop(k, n, ir.Store(target, (i, n - 1 - k), op("neg", ir.Load(row, (k,))))), level=PAR)  # fmt: skip
        kernels.append(ir.Kernel(f"reverse{number}", (body,), scratch=(row,)))
    data = _random(m, n)
    return Case(ir.Program("reverse", (x,), (y,), (middle,), tuple(kernels)), (data,), (data,))


def lane_sums(m: int, n: int, width: int) -> Case:
    """Sums of columns in lanes, the last lanes guarded; a private row of lanes with the mean and the largest."""
    x = buffer("x", m, n)
    mean = buffer("mean", n, role="output", memory=OUT)
    largest = buffer("largest", n, role="output", memory=OUT)
    acc = buffer("acc", 2, width, role="scratch", memory=PRIVATE)
    blocks = -(-n // width)
    b, v, k = var("b", blocks), var("v", width), var("k", m)
    column = b * width + v
    guard = (n - 1 - column,) if n % width else ()
    element = ir.Load(x, (k, column), guard, ir.Constant(0.0, f32) if guard else None)
    zero, one = const(0), const(1)
    body = loop(
        b, blocks,
        lanes(v, width, ir.Store(acc, (zero, v), ir.Constant(0.0, f32)),
              ir.Store(acc, (one, v), ir.Constant(float("-inf"), f32))),
        loop(k, m, lanes(v, width, ir.Store(acc, (zero, v), op("add", ir.Load(acc, (zero, v)), element)),
                         ir.Store(acc, (one, v), op("max", ir.Load(acc, (one, v)), element)))),
        lanes(v, width, ir.Store(mean, (column,), op("div", ir.Load(acc, (zero, v)), ir.Constant(m, f32)), guard),
              ir.Store(largest, (column,), ir.Load(acc, (one, v)), guard)),
        level=PAR,
    )  # fmt: skip
    data = _random(m, n)
    expected = (data.astype(np.float64).mean(0), data.max(0))
    return Case(program([x], [mean, largest], body, scratch=(acc,)), (data,), expected)


def counts(n: int, bins: int, scalar: Scalar, operator: str) -> Case:
    """Indivisible updates of a result by many threads."""
    x, out = buffer("x", n, scalar=scalar), buffer("out", bins, scalar=scalar, role="output", memory=OUT)
    b, i = var("b", bins), var("i", n)
    clear = ir.Kernel("clear", (loop(b, bins, ir.Store(out, (b,), ir.Constant(0, scalar))),))
    update = ir.AtomicUpdate(OPERATORS[operator], out, (i % bins,), ir.Load(x, (i,)))
    count = ir.Kernel("count", (loop(i, n, update, level=PAR),))
    data = np.random.default_rng(2).integers(-9, 9, n).astype(scalar.dtype)
    expected = np.zeros(bins, scalar.dtype)
    ufunc: Any = {"add": np.add, "max": np.maximum}[operator]
    ufunc.at(expected, np.arange(n) % bins, data)
    return Case(ir.Program("counts", (x,), (out,), (), (clear, count)), (data,), (expected,))


def shifted_in_place(n: int) -> Case:
    """y[i] := y[i + 1] for all lanes at once: all are read before any is written."""
    x, y = buffer("x", n), buffer("y", n, role="output", memory=OUT)
    v = var("v", n)
    after = minimum(v + 1, n - 1)
    body = (
        lanes(v, n, ir.Store(y, (v,), ir.Load(x, (v,)))),
        lanes(v, n, ir.Store(y, (n - 1 - v,), ir.Load(y, (n - 1 - after,)))),
    )
    data = _random(n)
    return Case(program([x], [y], *body), (data,), (np.concatenate([data[:1], data[:-1]]),))


def scalars() -> Case:
    """Every kind of scalar parameter."""
    kinds: tuple[tuple[Scalar, Any], ...] = ((i32, -7), (f64, 0.1), (f16, 1.5), (bool_, True), (complex64, 2 + 3j))
    inputs = [buffer(f"p{k}", scalar=s, role="scalar") for k, (s, _) in enumerate(kinds)]
    outputs = [buffer(f"q{k}", 2, scalar=s, role="output", memory=OUT) for k, (s, _) in enumerate(kinds)]
    i = var("i", 2)
    stores = [ir.Store(q, (i,), ir.Load(p, ())) for p, q in zip(inputs, outputs, strict=True)]
    expected = tuple(np.full(2, value, s.dtype) for s, value in kinds)
    return Case(program(inputs, outputs, loop(i, 2, *stores)), tuple(value for _, value in kinds), expected)


def symbolic_outer(m: int, n: int) -> Case:
    """x_i y_j for any lengths, with the outer loop in parallel."""
    rows, columns = size("m", 0), size("n", 0)
    x, y = buffer("x", rows), buffer("y", columns)
    z = buffer("z", rows, columns, role="output", memory=OUT)
    i, j = var("i", size("m")), var("j", size("n"))
    value = op("mul", ir.Load(x, (i,)), ir.Load(y, (j,)))
    body = loop(i, rows, loop(j, columns, ir.Store(z, (i, j), value)), level=PAR)
    a, b = _random(m), _random(n)
    both = (as_variable(rows), as_variable(columns))
    return Case(program([x, y], [z], body, sizes=both), (a, b), (np.outer(a, b),))


THREAD_CASES: dict[str, Callable[[], Case]] = {
    "row sums": lambda: row_sums(7, 13),
    "row reversals": lambda: row_reversals(3, 10_000),
    "lane sums": lambda: lane_sums(5, 32, 16),
    "lane sums with a tail": lambda: lane_sums(5, 29, 8),
    "counts": lambda: counts(1000, 3, i32, "add"),
    "counts f32": lambda: counts(1000, 3, f32, "add"),
    "largest f16": lambda: counts(100, 3, f16, "max"),
    "largest i32": lambda: counts(100, 3, i32, "max"),
    "in place": lambda: shifted_in_place(16),
    "scalars": scalars,
    "symbolic outer product": lambda: symbolic_outer(5, 9),
    "symbolic, empty": lambda: symbolic_outer(0, 9),
}
