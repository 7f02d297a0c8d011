"""From a program's text to its first result: in the first process, and in one that finds the kernel on disk.

Every time is of a process of its own. "first" reads, derives, translates, compiles, loads and runs; "second" loads and
runs. Both come on top of importing what they need, which has rows of its own: NumPy, LLVM's binding and what runs
programs, and for the first also what makes them. "call" is a whole call of the program object on a small array, beside
NumPy's own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import lithify as lf
from benchmarks.harness import Row, compare, cpu_name, record, table

SOURCE = Path(lf.__file__).resolve().parent.parent
_CHILD = """
import json, sys, time
start = time.perf_counter()
import llvmlite.binding
import numpy as np
import lithify as lf
import lithify.machine.host, lithify.program, lithify.targets.cpu
library, name, shape, numbers, compiles = json.loads(sys.argv[1])
if compiles:
    import lithify.evaluate, lithify.kernel.translate, lithify.lang.module, lithify.lowering, lithify.rules
    import lithify.program.declared, lithify.targets.cpu.module
imported = time.perf_counter()
arrays = [np.ones(s, np.float32) for s in shape]
made = time.perf_counter()
lf.library(library)[name](*arrays, *numbers)
done = time.perf_counter()
print(json.dumps([imported - start, done - made]))
"""
# library, program, shapes of the arrays, numbers behind them, and the bound of the first time in seconds
_PROGRAMS = (
    ("blas", "sum", [[1 << 20]], [], 0.3),
    ("blas", "dot", [[1 << 20], [1 << 20]], [], 0.3),
    ("blas", "asum", [[1 << 20]], [], 0.3),
    ("blas", "nrm2", [[1 << 20]], [], 0.3),
    ("rows", "softmax", [[512, 1024]], [], None),
    ("image", "gaussian", [[768, 1280]], [], None),
    ("image", "harris", [[768, 1280]], [0.05], 2.0),
)
_SECOND_BOUND = 0.05


def _child(cache: str, *problem: object) -> tuple[float, float]:
    """Seconds of importing and of the first call, in a new process."""
    environment = os.environ | {"LITHIFY_CACHE": cache, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", _CHILD, json.dumps(problem)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    importing, first = json.loads(done.stdout)
    return importing, first


def starts(rounds: int) -> list[Row]:
    """One row a program."""
    rows: list[Row] = []
    importing: dict[bool, list[float]] = {True: [], False: []}
    for library, name, shapes, numbers, bound in _PROGRAMS:
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as cache:
                for compiles in (True, False):
                    imported, first = _child(cache, library, name, shapes, numbers, compiles)
                    seconds[compiles].append(first)
                    importing[compiles].append(imported)
        first, second = statistics.median(seconds[True]), statistics.median(seconds[False])
        rows.append({
            "program": name,
            "first ms": round(first * 1e3, 1),
            "first at most": None if bound is None else bound * 1e3,
            "second ms": round(second * 1e3, 1),
            "second at most": _SECOND_BOUND * 1e3,
            "kept": second <= _SECOND_BOUND and (bound is None or first <= bound),
        })  # fmt: skip
    rows.append({
        "program": "(importing)",
        "first ms": round(statistics.median(importing[True]) * 1e3, 1),
        "second ms": round(statistics.median(importing[False]) * 1e3, 1),
    })  # fmt: skip
    return rows


def calls() -> list[Row]:
    """A call of a program object and of NumPy on 1000 elements."""
    xs, ys = np.ones(1000, np.float32), np.ones(1000, np.float32)
    dot, scal = lf.library("blas")["dot"], lf.library("blas")["scal"]
    runs = {
        "dot(xs, ys)": lambda: dot(xs, ys),
        "dot(xs=xs, ys=ys)": lambda: dot(xs=xs, ys=ys),
        "scal(2.0, xs)": lambda: scal(2.0, xs),
        "NumPy: xs @ ys": lambda: xs @ ys,
        "NumPy: 2 * xs": lambda: 2 * xs,
    }
    return [
        {"call": t.name, "µs": round(t.median * 1e6, 2), "spread": round(t.spread, 3)} for t in compare(runs).values()
    ]


def main(quick: bool) -> None:
    """Measure, print, and record unless `quick`."""
    rows, overhead = starts(1 if quick else 5), calls()
    print(table(rows), table(overhead), sep="\n\n")
    if not quick:
        note = 'Times of whole processes, medians of 5. "second" finds the kernel in the cache on disk.'
        record("program_start", rows, device=cpu_name(), note=note + "\n\n" + table(overhead), more={"calls": overhead})
