"""Work on rows of all lengths, and on columns, as the default lowers it for OpenCL GPUs, beside copies of as much.

The bound is the copy's bandwidth: every program reads its matrix once, and some write as much. Each is compiled for the
size at hand and, where that is a program of its own, once for any size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Row, compare, record, table
from benchmarks.reduction import device_copy, is_gpu, timed

TEXT = """
sums (rows : n.m.f32) = map (λ row . reduce (+) 0 row) rows
norms (rows : n.m.f32) = map (λ row . sqrt (reduce (+) 0 (map (λ x . x * x) row))) rows
variances (rows : n.m.f32) = map (λ row .
  let mean = reduce (+) 0 row / m in
  reduce (+) 0 (map (λ x . (x - mean) * (x - mean)) row) / m) rows
softmaxes (rows : n.m.f32) = map (λ row .
  let largest = reduce max (-inf) row in
  let weights = map (λ x . exp (x - largest)) row in
  let total = reduce (+) 0 weights in
  map (λ w . w / total) weights) rows
prefixes (rows : n.m.f32) = map (λ row . scan (+) 0 row) rows
columns (rows : n.m.f32) = map (λ column . reduce (+) 0 column) (transpose rows)
"""


def _softmaxes(a: Any) -> Any:
    weights = np.exp(a - a.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


# The meaning of each program in f64, how often it moves the matrix, and whether it is measured for any size, too.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], int, bool]] = {
    "sums": (lambda a: a.sum(axis=1), 1, True),
    "norms": (lambda a: np.sqrt((a * a).sum(axis=1)), 1, False),
    "variances": (lambda a: a.var(axis=1), 1, True),
    "softmaxes": (_softmaxes, 2, True),
    "prefixes": (lambda a: a.cumsum(axis=1), 2, False),
    "columns": (lambda a: a.sum(axis=0), 1, False),
}
LENGTHS = (16, 64, 100, 256, 1000, 4096, 65537, 1 << 22)


def main(quick: bool) -> None:
    """Measure all OpenCL GPUs (with `quick` every OpenCL device, on small arrays)."""
    from lithify.targets.opencl.devices import devices

    for device in devices():
        if not (quick or is_gpu(device)):
            continue
        rows = measure(device, 1 << (14 if quick else 26), LENGTHS[:4] if quick else LENGTHS)
        name = device.handle.name.strip()
        print(f"{name}\n{table(rows)}\n")
        if not quick:
            note = (
                "GB/s of what is read and written at least; f32, 256 MB a matrix; share of a device-to-device copy in "
                "the same run; error: largest, over the largest result in f64."
            )
            record("opencl_rows", rows, device=f"OpenCL {name}", note=note)


def measure(device: Any, count: int, lengths: tuple[int, ...], rounds: int = 7) -> list[Row]:
    """A table's rows for matrices of about `count` elements in rows of each length."""
    from lithify.program.module import parse

    programs = parse(TEXT, "opencl_rows")
    data = np.random.default_rng(1).random(count, dtype=np.float32)
    found: list[Row] = []
    for length in lengths:
        matrix = data[: count // length * length].reshape(-1, length)
        exact = matrix.astype(np.float64)
        runs: dict[str, Any] = {}
        errors: dict[str, float] = {}
        moved: dict[str, int] = {"copy": 2}
        for name, (meaning, times, any_size) in PROGRAMS.items():
            if name == "columns" and not 256 <= length <= 65537:
                continue
            expected = meaning(exact)
            program = programs[name].on(device.name)
            for label, chosen in ((name, program), (f"{name}, any size", program.for_any_size()))[: 1 + any_size]:
                executable = chosen.specialise(matrix).compiled.executable
                executable.poisoned = True
                result = np.asarray(executable(matrix), np.float64)
                errors[label] = float(np.abs(result - expected).max() / np.abs(expected).max())
                runs[label], moved[label] = partial(timed, executable, executable.upload(matrix)), times
        runs["copy"], _kept = device_copy(device, matrix)
        timings = compare(runs, rounds=rounds, device_timed=True)
        copied = timings["copy"].per_second(2 * matrix.nbytes)
        for label, timing in timings.items():
            size = moved[label] * matrix.nbytes
            share = round(timing.per_second(size) / copied, 3)
            line = timing.row(bytes=size, share_of_copy=share, error=errors.get(label, 0.0))
            found.append({"rows": f"{len(matrix)} x {length}", **line})
    return found
