"""The reduction case study: hand-written kernels beside derived ones, and a copy, on every OpenCL device.

The time of a hand-written version is that of its one kernel, which leaves a sum for each group; the time of a derived
version holds all its kernels and ends with the sum.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.baseline.reduction_printed import prepare, small_integers
from benchmarks.harness import Row, compare, record, table


def main(quick: bool) -> None:
    """Measure all devices."""
    from lithify.targets.opencl.devices import devices

    for device in devices():
        small, large = (1 << 16, 1 << 18) if quick else (1 << 26, 1 << (28 if is_gpu(device) else 26))
        name = device.handle.name.strip()
        for n, label, measure in ((small, "reduction", versions), (large, "sum_dot", streams)):
            rows = measure(device, n)
            print(f"{name}, {n} float32\n{table(rows)}\n")
            if not quick:
                note = f"{n} float32; GB/s of the input read, of a copy of what is read and written."
                record(label, rows, device=f"OpenCL {name}", note=note)


def versions(device: Any, n: int, rounds: int = 15) -> list[Row]:
    """Rows for the hand-written and the derived versions and for copies, run in turn.

    A copy of the input moves two bytes for each that is read here: what a launch costs counts half as much.
    """
    from lithify.lowering import strategies

    data = small_integers(n)
    right = float(data.sum(dtype=np.float64))
    launches = prepare(device.handle, data)
    runs: dict[str, Any] = {f"hand-written {launch.version.name}": launch.run for launch in launches}
    sums = {f"hand-written {launch.version.name}": launch.total() for launch in launches}
    for strategy in (*(name for name in strategies() if name.startswith("reduction-")), None):
        executable = _compiled("sum", device, [data], strategy)
        label = f"derived {strategy.removeprefix('reduction-')}" if strategy else "derived, default"
        sums[label] = float(executable(data))
        runs[label] = partial(timed, executable, executable.upload(data))
    moved = {"copy of the input": 8 * n, "copy of as many bytes": 4 * n}
    runs["copy of the input"], _kept = device_copy(device, data)
    runs["copy of as many bytes"], _half = device_copy(device, data[: n // 2])
    timings = compare(runs, rounds=rounds, device_timed=True)
    rows: list[Row] = []
    for label, timing in timings.items():
        off = abs(sums.get(label, right) - right) / right  # a float32 sum is rounded, a sum of its parts is not
        verdict = "" if label in moved else "right" if off < 1e-6 else "wrong"
        rows.append(timing.row(bytes=moved.get(label, 4 * n), sum=verdict))
    return rows


def streams(device: Any, n: int, rounds: int = 15) -> list[Row]:
    """Rows for sum and dot as the device's default lowers them, and for a copy."""
    x, y = (np.random.default_rng(k).random(n, dtype=np.float32) for k in (1, 2))
    runs: dict[str, Any] = {}
    errors: dict[str, float] = {}
    expected = {"sum": x.sum(dtype=np.float64), "dot": np.dot(x.astype(np.float64), y)}
    for name, data in (("sum", [x]), ("dot", [x, y])):
        executable = _compiled(name, device, data, None)
        errors[name] = abs(float(executable(*data)) / expected[name] - 1)
        runs[name] = partial(timed, executable, executable.upload(*data))
    runs["copy"], _kept = device_copy(device, x)
    timings = compare(runs, rounds=rounds, device_timed=True)
    copied = timings["copy"].per_second(8 * n)
    moved = {"sum": 4 * n, "dot": 8 * n, "copy": 8 * n}
    return [
        timing.row(
            bytes=moved[label],
            share_of_copy=round(timing.per_second(moved[label]) / copied, 3),
            error=errors.get(label, 0.0),
        )
        for label, timing in timings.items()
    ]


def _compiled(name: str, device: Any, data: list[Any], strategy: str | None) -> Any:
    from lithify.kernel.translate import translate
    from lithify.lang.module import read_file
    from lithify.lang.scalars import f32
    from lithify.lang.types import array
    from lithify.lowering import lower
    from lithify.operators import path
    from lithify.program.devices import device as device_of

    found = device_of(device.name)
    program = read_file(path("blas"))[name].elaborate([array(*a.shape, f32) for a in data])
    lowered = lower(program.term, found.model, strategy=strategy)
    return found.target.compile(translate(lowered.term, program.parameters, name=name, device=found.model))


def timed(executable: Any, arguments: Any) -> float:
    return float(executable.time(arguments, 1)[0])


def device_copy(device: Any, data: Any) -> tuple[Any, tuple[Any, Any]]:
    """A device-to-device copy, and the buffers that must live as long."""
    import pyopencl as cl

    source = cl.Buffer(device.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=data)
    target = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, data.nbytes)

    def run() -> float:
        event = cl.enqueue_copy(device.timed_queue, target, source, byte_count=data.nbytes)
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9

    return run, (source, target)


def is_gpu(device: Any) -> bool:
    """Is the OpenCL device a GPU?"""
    import pyopencl as cl

    return bool(device.handle.type & cl.device_type.GPU)
