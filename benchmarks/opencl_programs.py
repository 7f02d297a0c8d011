"""Programs as the default lowers them for OpenCL GPUs: time on the device's clock, and share of its copy bandwidth."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Row, compare, record, table
from benchmarks.reduction import device_copy, is_gpu, timed


def main(quick: bool) -> None:
    """Measure all OpenCL GPUs (with `quick` every OpenCL device, on small arrays)."""
    from lithify.targets.opencl.devices import devices

    for device in devices():
        if not (quick or is_gpu(device)):
            continue
        rows = measure(device, 64 if quick else 4096)
        name = device.handle.name.strip()
        print(f"{name}\n{table(rows)}\n")
        if not quick:
            note = "GB/s of what is read and written at least; f32; share of a device-to-device copy in the same run."
            record("opencl_programs", rows, device=f"OpenCL {name}", note=note)


def measure(device: Any, n: int, rounds: int = 9) -> list[Row]:
    """Rows for programs over n x n elements, and a copy of as many bytes as two such arrays."""
    import lithify as lf

    rng = np.random.default_rng(1)
    square, row, column = (rng.random(s, dtype=np.float32) for s in ((n, n), n, n))
    programs: dict[str, tuple[str, tuple[Any, ...], int]] = {
        "scal": ("blas", (np.float32(2.5), square.reshape(-1)), 2),
        "sum": ("blas", (square.reshape(-1),), 1),
        "dot": ("blas", (square.reshape(-1), square.reshape(-1)), 2),
        "gemv": ("blas", (square, row, column, np.float32(1.5), np.float32(0.5)), 1),
        "softmax": ("rows", (square,), 2),
        "layernorm": ("rows", (square, row, column, np.float32(1e-5)), 2),
        "transpose2D": ("layout", (square,), 2),
        "swapMiddle": ("layout", (square.reshape(-1, 8, 8, min(n, 64)),), 2),
        "channelsLast": ("layout", (square.reshape(-1, 32, 8, min(n, 64)),), 2),
        "inclusiveScan": ("layout", (square.reshape(-1),), 2),
        "gemvT": ("blas", (square, row, column, np.float32(1.5), np.float32(0.5)), 1),
        "binomial": ("image", (square,), 2),
        "gaussian": ("image", (square,), 2),
        "unsharp": ("image", (square, np.float32(0.5)), 2),
        "harris": ("image", (square, np.float32(0.04)), 2),
        "jacobi2D5": ("stencil", (square,), 2),
        "gradient2D": ("stencil", (square,), 2),
        "jacobi3D7": ("stencil", (square.reshape(-1, min(n, 256), min(n, 256)),), 2),
    }
    runs: dict[str, Any] = {}
    errors: dict[str, float] = {}
    for name, (file, arguments, _) in programs.items():
        program = lf.library(file)[name]
        executable = program.on(device.name).specialise(*arguments).compiled.executable
        expected = np.asarray(program.on("cpu")(*arguments), np.float64)
        errors[name] = float(np.abs(np.asarray(executable(*arguments)) - expected).max() / np.abs(expected).max())
        runs[name] = partial(timed, executable, executable.upload(*arguments))
    runs["copy"], _kept = device_copy(device, square)
    timings = compare(runs, rounds=rounds, device_timed=True)
    copied = timings["copy"].per_second(8 * n * n)
    rows: list[Row] = []
    for name, timing in timings.items():
        moved = 4 * n * n * (programs[name][2] if name in programs else 2)
        share = round(timing.per_second(moved) / copied, 3)
        rows.append(timing.row(bytes=moved, share_of_copy=share, difference_from_cpu=errors.get(name, 0.0)))
    return rows
