"""Matrix multiplication on OpenCL GPUs, as the default lowers it: beside cuBLAS (torch) where the device is NVIDIA's.

cuBLAS runs without TF32, so that both compute with f32. Times are those of the device's clock; they come from runs in
turn, each several products long.

cuBLAS takes the matrix units for f64 and f16, which OpenCL C has no word for. Without them an H200's data sheet gives
34 of 67 TF/s in f64 and 67 of 989 TF/s in f16: half of cuBLAS, and a fifteenth, are the bounds there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Row, compare, ratio, record, table
from benchmarks.reduction import is_gpu, timed

_PLAIN = "map (λ row . map (λ col . dot row col) {b}) {a}"
FORMS = {
    "NN": "a b . " + _PLAIN.format(a="a", b="(transpose b)"),
    "NT": "a b . " + _PLAIN.format(a="a", b="b"),
    "TN": "a b . " + _PLAIN.format(a="(transpose a)", b="(transpose b)"),
    "bias, relu": "a b c . map (λ row . map (λ (col, x) . max 0 (dot row col + x)) (zip (transpose b) c)) a",
    "f16, sums in f32": "a b . map (λ row . map (λ col . dot (map f32 row) (map f32 col)) (transpose b)) a",
}
Problem = tuple[str, str, tuple[int, int, int]]
PROBLEMS: tuple[Problem, ...] = (
    *(("NN", "float32", (n, n, n)) for n in (256, 512, 1000, 1024, 2048, 4096, 8192)),
    ("NN", "float32", (4095, 4097, 4099)),
    ("NN", "float32", (1500, 896, 4864)),
    ("NN", "float32", (384, 2304, 768)),
    *((form, "float32", (4096, 4096, 4096)) for form in ("NT", "TN", "bias, relu")),
    ("NN", "float64", (2048, 2048, 2048)),
    ("f16, sums in f32", "float16", (4096, 4096, 4096)),
)


def main(quick: bool) -> None:
    """Measure all OpenCL GPUs (with `quick` every OpenCL device, on small matrices)."""
    from lithify.targets.opencl.devices import devices

    for device in devices():
        if not (quick or is_gpu(device)):
            continue
        problems = [(form, dtype, (64, 68, 60)) for form, dtype, _ in PROBLEMS] if quick else PROBLEMS
        rows = [row for problem in dict.fromkeys(problems) for row in measure(device, problem)]
        name = device.handle.name.strip()
        print(f"{name}\n{table(rows)}\n")
        if not quick:
            note = (
                "`times_cublas`: time of torch's product without TF32 over ours, in the same run; error: largest, over "
            )
            note += "the largest result of the same product in f64."
            record("gemm_opencl", rows, device=f"OpenCL {name}", note=note)


def measure(device: Any, problem: Problem, rounds: int = 9) -> list[Row]:
    """Rows for one problem: ours, and cuBLAS where there is one."""
    import lithify as lf

    form, dtype, (m, n, k) = problem
    rng = np.random.default_rng(1)
    shapes = [(k, m) if form == "TN" else (m, k), (n, k) if form == "NT" else (k, n)]
    arguments = [rng.standard_normal(shape, np.float32).astype(dtype) for shape in shapes]
    if form == "bias, relu":
        arguments.append(rng.standard_normal(n, np.float32))
    program = lf.parse(f"product = λ {FORMS[form]}")["product"]
    executable: Any = program.on(device.name).specialise(*arguments).compiled.executable
    found = np.asarray(executable(*arguments), np.float64)
    runs: dict[str, Any] = {"lithify": partial(timed, executable, executable.upload(*arguments))}
    reference, cublas = _torch(device, form, arguments)
    if cublas is not None:
        runs["cuBLAS"] = cublas
    timings = compare(runs, rounds=rounds, device_timed=True, sample_seconds=0.02)
    label = f"{form} {dtype} {m} x {n} x {k}"
    error = float(np.abs(found - reference).max() / np.abs(reference).max())
    rows: list[Row] = []
    for name, timing in timings.items():
        more = {"error": error} if name == "lithify" else {}
        if name == "lithify" and cublas is not None:
            more["times_cublas"] = round(ratio(timing, timings["cuBLAS"]), 3)
        rows.append({"problem": label} | timing.row(operations=2 * m * n * k, **more))
    return rows


def _torch(device: Any, form: str, arguments: list[Any]) -> tuple[Any, Callable[[], float] | None]:
    """The product in f64, and a function that times cuBLAS (None where there is none)."""
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    on_cuda = torch is not None and is_gpu(device) and torch.cuda.is_available()
    if not on_cuda:
        return _product(np, form, [a.astype(np.float64) for a in arguments], np.maximum), None
    torch.backends.cuda.matmul.allow_tf32 = False
    tensors = [torch.from_numpy(a).cuda() for a in arguments]
    reference = _product(torch, form, [t.double() for t in tensors], torch.clamp).cpu().numpy()

    def run() -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        for _ in range(_CALLS):
            _product(torch, form, tensors, torch.clamp)
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) * 1e-3 / _CALLS

    return reference, run


_CALLS = 5  # products between two events


def _product(library: Any, form: str, arguments: list[Any], at_least: Callable[[Any, Any], Any]) -> Any:
    a, b, *rest = arguments
    product = library.matmul(a.T if form == "TN" else a, b.T if form == "NT" else b)
    return at_least(product + rest[0], 0) if rest else product
