"""Matrix multiplication on the CPU beside OpenBLAS (through NumPy), torch and Halide: squares, products of networks.

All use every core; results go into arrays that exist. What ran before is given time to come to rest: OpenBLAS's threads
go on waiting in a loop for about a tenth of a second.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Row, compare, cpu_name, own_kernels_of_openblas, ratio, record, table

_PROBLEMS = Path(__file__).resolve().parent / "data" / "gemm_f32.txt"
_SQUARES = ("256 256 256", "512 512 512", "1024 1024 1024", "1000 1001 1003", "2048 2048 2048", "4096 4096 4096")
_HOSTILE = ("7 7 7", "8 3200 3200", "16 200704 27", "1500 4864 896", "129 2049 513", "64 64 100000", "1000 3 1000")
_REST = 0.15
# Multiply-adds of a product that takes many seconds: one round, after one call to warm up. Of smaller ones at least 5
# rounds, and as many more as these multiply-adds allow: the clock swings, and the median of few rounds with it.
_LARGE, _LEAST_ROUNDS, _MOST_ROUNDS, _ROUNDS_TOGETHER = 1 << 40, 5, 9, 1 << 38

Runs = dict[str, Callable[[], object]]


def main(quick: bool) -> None:
    own_kernels_of_openblas()
    sections = {
        "squares f32": [_line("f32", sizes) for sizes in _SQUARES],
        "squares f64": [_line("f64", sizes) for sizes in ("1024 1024 1024", "2048 2048 2048")],
        "forms": [_line("f32", "1024 1024 1024", a, b) for a in (False, True) for b in (False, True)],
        "hostile": [_line("f32", sizes) for sizes in _HOSTILE],
        "networks": [line for line in _PROBLEMS.read_text().splitlines() if not line.startswith("#")],
    }
    if quick:
        sections = {"quick": [_line("f32", "64 64 64"), _line("f64", "65 33 17", True, True)]}
    rows: list[Row] = []
    for section, lines in sections.items():
        ratios = []
        for line in lines:
            row, best = _measure(line, halide=section.startswith("squares f32"))
            rows.append({"section": section} | row)
            ratios.append(best)
            print(table(rows[-1:]), flush=True)
        mean = statistics.geometric_mean(ratios)
        rows.append({"section": section, "problem": "geometric mean", "times best": round(mean, 3)})
        rows.append({"section": section, "problem": "least", "times best": round(min(ratios), 3)})
    print(table(rows))
    if not quick:
        note = "`times X`: X's time over ours, in one run; `times best`: the least of them, Halide apart. "
        note += "Parameters are what a call takes: those of a record that ships for this device, or else the default. "
        note += "error: largest, over the largest result in f64."
        record("gemm", rows, device=cpu_name(), note=note)


def _line(scalar: str, sizes: str, trans_a: bool = False, trans_b: bool = False) -> str:
    m, n, k = sizes.split()
    flags = f"-transA {str(trans_a).lower()} -transB {str(trans_b).lower()}"
    return f"gemm -t {scalar} {flags} -g 1 -m {m} -n {n} -k {k}"


def _measure(line: str, *, halide: bool) -> tuple[Row, float]:
    import lithify as lf
    from lithify.explore.problems import read_problem

    words = line.split()
    flags = dict(zip(words[1::2], words[2::2], strict=True))
    g, m, n, k = (int(flags[f"-{d}"]) for d in "gmnk")
    dtype = np.float32 if flags["-t"] == "f32" else np.float64
    rng = np.random.default_rng(m + n + k)

    def some(rows: int, columns: int, transposed: str) -> Any:
        shape = (columns, rows) if flags[transposed] == "true" else (rows, columns)
        return rng.standard_normal((g, *shape) if g > 1 else shape).astype(dtype)

    a, b = some(m, k, "-transA"), some(k, n, "-transB")
    left = a.swapaxes(-1, -2) if flags["-transA"] == "true" else a
    right = b.swapaxes(-1, -2) if flags["-transB"] == "true" else b
    named = read_problem(line)
    program = lf.parse(named.text)[named.name]
    out = np.empty((g, m, n) if g > 1 else (m, n), dtype)
    program(a, b, out=out)
    error = _error(out, left, right)
    theirs = np.empty_like(out)
    runs: Runs = {"lithify": lambda: program(a, b, out=out), "NumPy": lambda: np.matmul(left, right, out=theirs)}
    runs |= _torch(left, right, out) | (_halide(a, b) if halide else {})
    size = g * m * n * k
    seconds = 0.02 if size < 1 << 32 else 0.0
    rounds, warm_up = min(_MOST_ROUNDS, max(_LEAST_ROUNDS, _ROUNDS_TOGETHER // size)), 2
    if size > _LARGE:
        rounds, warm_up = 1, 0
    timings = compare(runs, rounds=rounds, sample_seconds=seconds, rest=_REST, warm_up=warm_up)
    ours = timings["lithify"]
    ratios = {name: ratio(ours, timing) for name, timing in timings.items() if name != "lithify"}
    best = min(value for name, value in ratios.items() if name != "Halide")
    row = {"problem": line.removeprefix("gemm "), "GF/s": round(ours.per_second(2.0 * g * m * n * k) / 1e9, 1)}
    row |= {f"times {name}": round(value, 3) for name, value in ratios.items()}
    return row | {"times best": round(best, 3), "error": f"{error:.1e}", "spread": round(ours.spread, 3)}, best


def _error(out: Any, left: Any, right: Any) -> float:
    """The largest error in some rows, over the largest result."""
    rows = np.linspace(0, out.shape[-2] - 1, min(out.shape[-2], 64)).astype(int)
    wanted = left[..., rows, :].astype(np.float64) @ right.astype(np.float64)
    return float(np.abs(out[..., rows, :] - wanted).max() / np.abs(wanted).max())


def _torch(left: Any, right: Any, out: Any) -> Runs:
    try:
        import torch
    except ImportError:
        return {}
    x, y, z = torch.from_numpy(left), torch.from_numpy(right), torch.from_numpy(np.empty_like(out))
    return {"torch": lambda: torch.matmul(x, y, out=z)}


def _halide(a: Any, b: Any) -> Runs:
    """Halide with a schedule by hand: blocks of 32 x 28 results a task, 14 rows of two vectors of them in registers.

    (The best of five such schedules with tiles of 6 x 64 and 14 x 32; packing the right operand was slower.)
    """
    try:
        import halide as hl  # type: ignore[import-untyped]
    except ImportError:
        return {}
    (m, k), n = a.shape, b.shape[1]
    left, right = hl.Buffer(a), hl.Buffer(b)
    x, y, xi, yi, row, task = (hl.Var(name) for name in ("x", "y", "xi", "yi", "row", "task"))
    r = hl.RDom([(0, k)])
    product, result = hl.Func("product"), hl.Func("result")
    product[x, y] = 0.0
    product[x, y] += left[r.x, y] * right[x, r.x]
    result[x, y] = product[x, y]
    result.bound(x, 0, n).bound(y, 0, m).tile(x, y, xi, yi, 32, 28).fuse(x, y, task).parallel(task)
    result.split(yi, yi, row, 14).vectorize(xi, 16).unroll(xi).unroll(row)
    product.compute_at(result, yi).vectorize(x, 16).unroll(x).unroll(y)
    product.update(0).reorder(x, y, r.x).vectorize(x, 16).unroll(x).unroll(y).unroll(r.x, 2)
    out = hl.Buffer(np.empty((m, n), np.float32))
    result.compile_jit()
    return {"Halide": lambda: result.realize(out)}
