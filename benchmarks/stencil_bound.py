"""What binds the stencils: time of one core for 16 pixels where everything stays in its caches, and from memory.

Where the time from memory is near that of the same loop on rows that stay in the second cache, what the loop does
binds (loads across cache lines, arithmetic), not memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import lithify as lf
from benchmarks.harness import Row, compare, cpu_name, record, table
from lithify.targets.cpu import CpuTarget

LANES = 16
COLUMNS = 2560


def main(quick: bool) -> None:
    """Measure the image programs on few rows and on many."""
    rows: list[Row] = []
    for name, more in (("binomial", ()), ("gaussian", ()), ("unsharp", (0.5,)), ("harris", (0.04,))):
        rows.append(measure(name, more, (34, 64 if quick else 1536)))
    print(table(rows))
    if not quick:
        record("stencil_bound", rows, device=cpu_name(), note="ns for 16 pixels of 4 bytes, one thread.")


def measure(name: str, more: tuple[float, ...], heights: tuple[int, int]) -> Row:
    """One row: the times on a few rows and on a whole image, and their ratio."""
    program = lf.library("image")[name]
    runs: dict[str, Any] = {}
    for height in heights:
        image = np.random.default_rng(height).random((height, COLUMNS), dtype=np.float32)
        arguments = (image, *map(np.float32, more))
        executable = CpuTarget(threads=1).compile(program.kernels(*arguments))
        runs[str(height)] = partial(executable, *arguments, out=np.empty_like(image))
    timings = compare(runs, rounds=15)
    each = {label: t.median * 1e9 / (int(label) * COLUMNS / LANES) for label, t in timings.items()}
    few, many = (each[str(height)] for height in heights)
    return {
        "program": name,
        f"ns, {heights[0]} rows": round(few, 2),
        f"ns, {heights[1]} rows": round(many, 2),
        "from caches / from memory": round(few / many, 3),
    }
