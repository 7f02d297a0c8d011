"""What a call on the `cpu` device costs beside its work: checks, result array, native call, waking the threads.

Kernels that do next to nothing: 16 elements on the calling thread, and a parallel loop of two tiny tasks that is made
to use the pool. Prints microseconds a call, the median and the best of many.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.harness import Row, cpu_name, record, table
from lithify.arith import as_variable, const, var
from lithify.kernel import ir
from lithify.lang.levels import HEAP, OUT, PAR
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import f32
from lithify.targets.cpu import CpuTarget, policy

_WIDTH = 16


def addition(elements: int, inputs: int) -> ir.Program:
    """out = x0 + x1 + .., a parallel loop of vectors."""
    shape = (const(elements),)
    arrays = [ir.Buffer(f"x{k}", f32, shape, HEAP, "input", 64) for k in range(inputs)]
    out = ir.Buffer("out", f32, shape, OUT, "output", 64)
    p, lane = var("p", elements // _WIDTH), var("l", _WIDTH)
    at = (p * _WIDTH + lane,)
    total: ir.Value = ir.Load(arrays[0], at)
    for array in arrays[1:]:
        total = ir.Apply(OPERATORS["add"], (total, ir.Load(array, at)), f32)
    lanes = ir.Lanes(as_variable(lane), _WIDTH, (ir.Store(out, at, total),))
    loop = ir.Loop(as_variable(p), const(elements // _WIDTH), PAR, (lanes,))
    return ir.Program("add", tuple(arrays), (out,), (), (ir.Kernel("add", (loop,)),))


def microseconds(call: Callable[[], Any], calls: int) -> tuple[float, float]:
    """Median and least time of a call."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times), min(times)


def main(quick: bool) -> None:
    calls = 200 if quick else 20000
    rows: list[Row] = []
    for inputs in (1, 2, 4):
        arrays = [np.ones(32, np.float32) for _ in range(inputs)]
        out = np.empty(32, np.float32)
        run = CpuTarget().compile(addition(32, inputs))
        for name, call in (("new result", partial(run, *arrays)), ("out=", partial(run, *arrays, out=out))):
            median, best = microseconds(call, calls)
            rows.append(
                {"kernel": f"{inputs} arrays, {name}", "median us": round(median, 2), "best us": round(best, 2)}
            )
    with patch.object(policy, "LEAST_WORK", 0):
        run = CpuTarget(2).compile(addition(32, 1))
        x = np.ones(32, np.float32)
        median, best = microseconds(partial(run, x), calls)
        rows.append({"kernel": "1 array, two threads", "median us": round(median, 2), "best us": round(best, 2)})
    x, y = np.ones(32, np.float32), np.ones(32, np.float32)
    median, best = microseconds(partial(np.add, x, y), calls)
    rows.append({"kernel": "NumPy's add of 2 arrays", "median us": round(median, 2), "best us": round(best, 2)})
    print(table(rows))
    if not quick:
        record("call_overhead", rows, device=cpu_name(), note=f"{calls} calls each.")
