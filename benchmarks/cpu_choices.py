"""The choices behind `lithify.targets.cpu.policy` and the default lowering for CPUs, measured one at a time.

For a sum and for y = a x: how many accumulators (vectors in flight), how wide the vectors, how many pieces a thread
takes in turn, whether results pass the caches, and from what size on threads pay. The kernels are what the lowered term
`map[par] (map[seq] (map[vec] ..))` translates to. Every column of a table ran side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from benchmarks.harness import Row, Timing, compare, cpu_name, record, table, usable_cores
from benchmarks.stream import aligned
from lithify.arith import Expr, as_variable, const, var
from lithify.kernel import ir
from lithify.lang.levels import HEAP, OUT, PAR, PRIVATE, SEQ
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import f32
from lithify.targets.cpu import CpuTarget, policy

ZERO = ir.Constant(0.0, f32)
_NEVER = 1 << 62


def _buffer(name: str, *shape: int, role: str = "input", memory: Any = HEAP) -> ir.Buffer:
    return ir.Buffer(name, f32, tuple(const(s) for s in shape), memory, role, 64)


def _loop(variable: Expr, extent: int, *body: ir.Statement, parallel: bool = False) -> ir.Statement:
    return ir.Loop(as_variable(variable), const(extent), PAR if parallel else SEQ, body)


def _lanes(width: int, body: Callable[[Expr], ir.Statement]) -> ir.Statement:
    lane = var("lane", width)
    return ir.Lanes(as_variable(lane), width, (body(lane),))


def _op(name: str, *operands: ir.Value) -> ir.Value:
    return ir.Apply(OPERATORS[name], operands, f32)


def scale(elements: int, parts: int, width: int, vectors: int) -> ir.Program:
    """out = 3 a, by `parts` tasks, `vectors` vectors of `width` lanes in a step."""
    a, out = _buffer("a", elements), _buffer("out", elements, role="output", memory=OUT)
    step, size = width * vectors, elements // parts
    p, i = var("p", parts), var("i", size // step)
    start = p * size + i * step

    def vector(at: Expr) -> Callable[[Expr], ir.Statement]:
        return lambda lane: ir.Store(out, (at + lane,), _op("mul", ir.Load(a, (at + lane,)), ir.Constant(3.0, f32)))

    steps = _loop(i, size // step, *[_lanes(width, vector(start + k * width)) for k in range(vectors)])
    kernel = ir.Kernel("scale", (_loop(p, parts, steps, parallel=True),))
    return ir.Program("scale", (a,), (out,), (), (kernel,))


def total(elements: int, parts: int, width: int, vectors: int) -> ir.Program:
    """The sum, by `parts` tasks with `vectors` accumulators of `width` lanes each."""
    a, out = _buffer("a", elements), _buffer("out", role="output", memory=OUT)
    partial = _buffer("partial", parts, role="temporary")
    sums = _buffer("sums", vectors * width, role="scratch", memory=PRIVATE)
    step, size = width * vectors, elements // parts
    p, i, j, q = var("p", parts), var("i", size // step), var("j", step), var("q", parts)
    start = p * size + i * step

    def clear(at: int) -> Callable[[Expr], ir.Statement]:
        return lambda lane: ir.Store(sums, (lane + at,), ZERO)

    def add(at: int) -> Callable[[Expr], ir.Statement]:
        return lambda lane: ir.Store(
            sums, (lane + at,), _op("add", ir.Load(sums, (lane + at,)), ir.Load(a, (start + at + lane,)))
        )

    places = range(0, step, width)
    task = (
        *[_lanes(width, clear(at)) for at in places],
        _loop(i, size // step, *[_lanes(width, add(at)) for at in places]),
        ir.Store(partial, (p,), ZERO),
        _loop(j, step, ir.Store(partial, (p,), _op("add", ir.Load(partial, (p,)), ir.Load(sums, (j,))))),
    )
    body = (
        _loop(p, parts, *task, parallel=True),
        ir.Store(out, (), ZERO),
        _loop(q, parts, ir.Store(out, (), _op("add", ir.Load(out, ()), ir.Load(partial, (q,))))),
    )
    return ir.Program("total", (a,), (out,), (partial,), (ir.Kernel("total", body, scratch=(sums,)),))


KERNELS = {"sum": (total, 4), "scal": (scale, 8)}  # bytes moved an element


def executable(
    kind: str, elements: int, *, parts: int, width: int = 16, vectors: int = 4, **numbers: int
) -> Callable[[], object]:
    """A call of the kernel under other numbers of `policy`, given by name."""
    with ExitStack() as stack:
        for name, value in numbers.items():
            stack.enter_context(patch.object(policy, name, value))
        run = CpuTarget().compile(KERNELS[kind][0](elements, parts, width, vectors))
    x = aligned(elements)
    if kind == "sum":
        return lambda: run(x)
    out = aligned(elements)
    return lambda: run(x, out=out)


def _rows(kind: str, elements: int, what: str, runs: dict[str, Callable[[], object]], rounds: int) -> Iterable[Row]:
    timings: dict[str, Timing] = compare(runs, rounds=rounds)
    moved = KERNELS[kind][1] * elements
    for name, timing in timings.items():
        row = timing.row(bytes=moved)
        del row["name"]
        yield {"kernel": kind, "elements": f"2^{elements.bit_length() - 1}", "choice": what, "value": name, **row}


def main(quick: bool) -> None:
    size, rounds = (1 << 18, 3) if quick else (1 << 24, 15)
    threads = usable_cores()
    parts = threads * policy.PIECES
    rows: list[Row] = []
    for kind in KERNELS:
        choices: dict[str, dict[str, Callable[[], object]]] = {
            "vectors in a step": {str(v): executable(kind, size, parts=parts, vectors=v) for v in (1, 2, 4, 8)},
            "lanes": {str(w): executable(kind, size, parts=parts, width=w, vectors=64 // w) for w in (8, 16, 64)},
            "pieces a thread": {
                str(k): executable(kind, size, parts=threads * k, PIECES=k) for k in (1, 2, 4, 8, 16, 64)
            },
        }
        for what, runs in choices.items():
            rows += _rows(kind, size, what, runs, rounds)
    for elements in [1 << s for s in ((18,) if quick else (20, 22, 23, 24, 26))]:
        runs = {
            name: executable("scal", elements, parts=parts, STREAMED_BYTES=least)
            for name, least in (("through the caches", _NEVER), ("past them", 1))
        }
        rows += _rows("scal", elements, "stores", runs, rounds)
    for elements in [1 << s for s in ((14,) if quick else range(14, 22))]:
        for kind in KERNELS:
            runs = {
                name: executable(kind, elements, parts=threads, LEAST_WORK=least)
                for name, least in (("one", _NEVER), ("all", 0))
            }
            rows += _rows(kind, elements, "threads", runs, 5 * rounds)
    print(table(rows))
    if not quick:
        record("cpu_choices", rows, device=cpu_name(), note="float32, warm arrays, results into out=.")
