"""Matrix multiplication on the CPU through OpenCL beside the `cpu` device: one strategy, groups instead of threads.

Both times are of kernels alone: the device's clock, and the native code without the call.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from benchmarks.harness import Row, record, table
from benchmarks.reduction import is_gpu

_SIZES = ((512, 512, 512), (1024, 1024, 1024), (1000, 1001, 1003), (2048, 2048, 2048))


def main(quick: bool) -> None:
    """Measure all OpenCL CPUs."""
    from lithify.targets.opencl.devices import devices

    for device in devices():
        if is_gpu(device):
            continue
        rows = [_measure(device.name, *sizes) for sizes in (((64, 65, 66),) if quick else _SIZES)]
        name = device.handle.name.strip()
        print(f"{name}\n{table(rows)}\n")
        if not quick:
            note = (
                "`of cpu`: the rate of the `cpu` device's kernel that ran in turn with it; float32, medians of rounds."
            )
            record("gemm_opencl_cpu", rows, device=f"OpenCL {name}", note=note)


def _measure(device: str, m: int, n: int, k: int, rounds: int = 9) -> Row:
    import lithify as lf

    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    program = lf.library("blas")["matmul"]
    executables: dict[str, Any] = {
        name: program.on(name).specialise(a, b).compiled.executable for name in (device, "cpu")
    }
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    error = float(np.abs(executables[device](a, b) - wanted).max() / np.abs(wanted).max())
    seconds: dict[str, list[float]] = {name: [] for name in executables}
    for _ in range(rounds):
        for name, executable in executables.items():
            seconds[name].append(statistics.median(executable.time([a, b], 5)))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    rate = 2.0 * m * n * k / medians[device] / 1e9
    shares = [c / o for o, c in zip(seconds[device], seconds["cpu"], strict=True)]
    return {
        "m x n x k": f"{m} x {n} x {k}",
        "GF/s": round(rate, 1),
        "cpu GF/s": round(2.0 * m * n * k / medians["cpu"] / 1e9, 1),
        "of cpu": round(statistics.median(shares), 3),
        "error": f"{error:.1e}",
    }
