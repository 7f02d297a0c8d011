"""Arguments for the programs that lithify ships, by sizes and dtype, and how far results may be from the exact ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Arguments = tuple[Any, ...]

# Relative to the largest term of a sum: a few units in the last place, times what a longer sum may add.
_EPSILON = {
    np.dtype(t): float(ml_dtypes.finfo(t).eps) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
}


class Maker:
    """Random arguments of one dtype."""

    def __init__(self, dtype: Any, seed: int = 0) -> None:
        self.dtype = np.dtype(dtype)
        self.rng = np.random.default_rng(seed)

    def array(self, *shape: int) -> Any:
        """Numbers of both signs, small enough for sums of integers not to overflow."""
        kind = self.dtype.kind
        if kind in "iu":
            low = -3 if kind == "i" else 0
            return self.rng.integers(low, 4, shape).astype(self.dtype)
        x = self.rng.standard_normal(shape)
        if kind == "c":
            x = x + 1j * self.rng.standard_normal(shape)
        return x.astype(self.dtype)

    def positive(self, *shape: int) -> Any:
        """Numbers in [1, 2)."""
        return (self.rng.random(shape) + 1).astype(self.dtype)

    def number(self, value: complex) -> Any:
        """A scalar of the dtype."""
        return self.dtype.type(value)


def arguments(name: str, shape: tuple[int, ...], make: Maker) -> Arguments:
    """Arguments for a program; `shape` is that of its main array."""
    x, number = make.array(*shape), make.number
    n, last = shape[0], shape[-1]
    match name:
        case "scal":
            return number(3), x
        case "axpy":
            return number(3), x, make.array(*shape)
        case "dot" | "phiMag":
            return x, make.array(*shape)
        case "gemv":
            return x, make.array(last), make.array(n), number(1.5), number(-0.5)
        case "gemvT":
            return x, make.array(n), make.array(last), number(1.5), number(-0.5)
        case "ger":
            return x, make.array(n), make.array(last), number(1.5)
        case "gesummv":
            return x, make.array(*shape), make.array(last), number(1.5), number(-0.5)
        case "matmul":
            return x, make.array(last, n)
        case "gemm" | "gemmNT" | "gemmTN" | "gemmTT":
            return gemm(name, shape, make)
        case "layernorm":
            return x, make.array(last), make.array(last), number(1e-5)
        case "rmsnorm":
            return x, make.array(last), number(1e-5)
        case "unsharp" | "harris":
            return make.positive(*shape), number(0.06)
        case "separable" | "alongRow" | "alongColumn":
            return make.positive(17) / make.number(17), make.positive(*shape)
        case "srad1":
            return make.positive(*shape), number(0.05)
        case "srad2":
            return make.positive(*shape), make.positive(*shape), number(0.5)
        case "nn":
            return x, make.array(*shape), number(0.3), number(-0.2)
        case "mriQ":
            samples = [make.array(shape[1]) for _ in range(4)]
            return (*[make.array(n) for _ in range(3)], *samples)
        case _:
            return (x,)


def gemm(name: str, shape: tuple[int, ...], make: Maker) -> Arguments:
    m, n, k = shape
    a = make.array(k, m) if name[4:5] == "T" else make.array(m, k)
    b = make.array(n, k) if name[5:6] == "T" else make.array(k, n)
    return a, b, make.array(m, n), make.number(1.5), make.number(-0.5)


def tolerance(dtype: Any, terms: int) -> float:
    """For results of moderate size that are sums of `terms` terms of moderate size."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return 0.0
    epsilon = _EPSILON[np.dtype(np.float32 if kind.itemsize == 8 else np.float64) if kind.kind == "c" else kind]
    return float(epsilon * (20 + 2 * np.sqrt(terms)))


def agree(got: Any, wanted: Any, dtype: Any, terms: int) -> None:
    """Compare results, or tuples of them, with those in the widest type."""
    if isinstance(wanted, tuple):
        for g, w in zip(got, wanted, strict=True):
            agree(g, w, dtype, terms)
        return
    got = np.asarray(got)
    assert got.shape == np.shape(wanted)
    if got.dtype.kind not in "fciu":
        got = got.astype(np.float32)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(
        got.astype(np.asarray(wanted).dtype), wanted, rtol=0, atol=tolerance(dtype, terms) * scale
    )
