"""Matrix multiplication on the CPU by scalar type, as the default lowers it, beside torch and OpenBLAS (NumPy).

Results are new arrays on all sides. torch needs seconds for f16 at 1024 cubed: one round.
Complex products are counted as the eight real operations that each multiply-add is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Row, Timing, compare, cpu_name, own_kernels_of_openblas, ratio, record, table

# type, program of `blas` (and what is done with its result), operations of a multiply-add
_TYPES = {
    "f32": ("matmul a b", 2),
    "f64": ("matmul a b", 2),
    "bf16": ("map (map bf16) (matmulF32 a b)", 2),
    "bf16, result in f32": ("matmulF32 a b", 2),
    "f16": ("map (map f16) (matmulF32 a b)", 2),
    "i8, result in i32": ("matmulI32 a b", 2),
    "complex64": ("matmul a b", 8),
}
_ROUNDS = {1024: 15, 2048: 11}  # by size
_SLOW = {("f16", 2048)}
_REST = 0.15  # seconds, for threads of others to come to rest


def main(quick: bool) -> None:
    own_kernels_of_openblas()
    _start_others()
    rows: list[Row] = []
    for n in (96,) if quick else tuple(_ROUNDS):
        real: Timing | None = None
        for name in _TYPES:
            timings, error = _measure(name, n, 3 if quick else 1 if name == "f16" and n > 512 else _ROUNDS[n])
            ours, operations = timings["lithify"], _TYPES[name][1] * n**3
            real = ours if name == "f32" else real
            for other, timing in timings.items():
                more: dict[str, Any] = {}
                if other == "lithify":
                    more = {f"times_{k.lower()}": round(ratio(ours, t), 3) for k, t in timings.items() if k != other}
                    more["error"] = error
                    if name == "complex64" and real is not None:
                        more["of_real_rate"] = round(4 * real.median / ours.median, 3)
                rows.append({"type": name, "n": n} | timing.row(operations=operations, **more))
    print(table(rows))
    if not quick:
        note = "`times_torch`, `times_openblas`: theirs over ours, in the same run, all with as many threads as cores. "
        note += (
            "error: largest, over the largest result in f64 (or int64). of_real_rate: operations a second over f32's."
        )
        record("gemm_types", rows, device=cpu_name(), note=note)


def _start_others() -> None:
    """Threads of other libraries start before ours are bound to cores: they would inherit that."""
    x = np.ones((512, 512), np.float32)
    x @ x
    for name in ("f32", "bf16"):
        run = _torch(name, x, x)
        if run is not None:
            run()


def _measure(name: str, n: int, rounds: int) -> tuple[dict[str, Timing], float]:
    import lithify as lf
    from lithify import operators

    a, b = (_matrix(name, n, seed) for seed in (0, 1))
    text = f"{operators.path('blas').read_text()}\nproduct = λ a b . {_TYPES[name][0]}"
    program = lf.parse(text)["product"]
    wanted = _wide(a) @ _wide(b)
    error = float(np.abs(_wide(program(a, b)) - wanted).max() / np.abs(wanted).max())
    runs: dict[str, Callable[[], object]] = {"lithify": lambda: program(a, b)}
    if name in ("f32", "f64", "complex64"):
        runs["OpenBLAS"] = lambda: a @ b
    torch_run = None if (name, n) in _SLOW else _torch(name, a, b)
    if torch_run is not None:
        runs["torch"] = torch_run
    return compare(runs, rounds=rounds, sample_seconds=0.02, rest=_REST), error


def _matrix(name: str, n: int, seed: int) -> Any:
    import ml_dtypes

    rng = np.random.default_rng(seed)
    if name.startswith("i8"):
        return rng.integers(-128, 128, (n, n)).astype(np.int8)
    x = rng.standard_normal((n, n))
    if name == "complex64":
        return (x + 1j * rng.standard_normal((n, n))).astype(np.complex64)
    types = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
    return x.astype(types[name.split(",")[0]])


def _wide(x: Any) -> Any:
    kind = x.dtype.kind
    return x.astype(np.complex128 if kind == "c" else np.float64)


def _torch(name: str, a: Any, b: Any) -> Callable[[], object] | None:
    """torch's product of the same matrices; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    if name.startswith("bf16"):
        x, y = (torch.from_numpy(z.astype(np.float32)).bfloat16() for z in (a, b))
    else:
        x, y = torch.from_numpy(a), torch.from_numpy(b)
    return (lambda: torch._int_mm(x, y)) if name.startswith("i8") else (lambda: x @ y)
