"""From a program to its result: in a process that compiles it first, and in one that finds it compiled on disk.

Each measurement is a process of its own. It imports NumPy, lithify and what of lithify the call will need, makes the
arguments, and calls the program once. Reported are the import and the call: everything that it takes to read, derive,
translate and compile (first process), or to find and load what was compiled (second process).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.harness import Row, cpu_name, record, table

# Text, program, its arguments as Python text, and the time in ms that the first call may take.
PROGRAMS = (
    ("blas", "scal", "np.float32(2), x", 300),
    ("blas", "asum", "x", 300),
    ("blas", "dot", "x, x", 300),
    ("blas", "gemv", "a, a[0], a[0], np.float32(2), np.float32(3)", None),
    ("rows", "softmax", "a", None),
    ("image", "gaussian", "a", None),
    ("image", "harris", "a, np.float32(0.04)", 2000),
)
SECOND_MS = 50

_PROCESS = """
import importlib, json, sys, time
import numpy as np
start = time.perf_counter()
for name in {modules}:
    importlib.import_module(name)
import lithify as lf
imported = time.perf_counter()
known = set(sys.modules)
x, a = np.ones(1 << 20, np.float32), np.ones((1024, 1024), np.float32)
made = time.perf_counter()
lf.library("{text}")["{name}"]({arguments})
called = time.perf_counter()
loaded = sorted(m for m in set(sys.modules) - known if m.split(".")[0] in ("lithify", "llvmlite", "lark"))
print(json.dumps([(imported - start) * 1e3, (called - made) * 1e3, loaded]))
"""


def measured(text: str, name: str, arguments: str, cache: str, modules: list[str]) -> tuple[float, float, list[str]]:
    """ms of importing and of the first call in a new process with that cache, and what the call had to import."""
    code = _PROCESS.format(text=text, name=name, arguments=arguments, modules=modules)
    environment = os.environ | {"LITHIFY_CACHE": cache}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    imported, called, loaded = json.loads(done.stdout)
    return imported, called, loaded


def main(quick: bool) -> None:
    rows: list[Row] = []
    for text, name, arguments, most in PROGRAMS[:3] if quick else PROGRAMS:
        firsts, seconds, imports = [], [], []
        with tempfile.TemporaryDirectory() as cache:  # what is imported when all is to be done, and when nothing is
            every = measured(text, name, arguments, cache, [])[2]
            few = measured(text, name, arguments, cache, [])[2]
        for _ in range(1 if quick else 7):
            with tempfile.TemporaryDirectory() as cache:
                firsts.append(measured(text, name, arguments, cache, every)[1])
                imported, second, _ = measured(text, name, arguments, cache, few)
            imports.append(imported)
            seconds.append(second)
        row: dict[str, str | float | None] = {"program": name, "first call ms": round(statistics.median(firsts), 1)}
        row |= {"may take": most, "second process ms": round(statistics.median(seconds), 1), "may take then": SECOND_MS}
        rows.append(row | {"importing ms": round(statistics.median(imports), 1)})
    print(table(rows))
    if not quick:
        record("start_up", rows, device=cpu_name(), note="Medians of processes; float32, 2^20 elements.")
