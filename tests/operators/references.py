"""What every program that lithify ships means, in NumPy and SciPy in the widest type; nothing of lithify is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage as nd
import scipy.special

A = Any


def wide(x: A) -> A:
    """The same numbers in float64, complex128 or int64."""
    x = np.asarray(x)
    kind = x.dtype.kind
    return x.astype(np.complex128 if kind == "c" else np.int64 if kind in "iu" else np.float64)


def clamped(x: A, offsets: tuple[int, ...]) -> A:
    """The array shifted, with the nearest element beyond its ends."""
    indices = [np.clip(np.arange(n) + o, 0, n - 1) for n, o in zip(x.shape, offsets, strict=True)]
    return x[np.ix_(*indices)]


def weighted(x: A, weights: dict[tuple[int, ...], float]) -> A:
    return sum(w * clamped(x, offset) for offset, w in weights.items())


def nrm2(x: A) -> A:
    """Exactly rounded up to the last operations, whatever the exponents: in extended precision, scaled."""
    largest = np.abs(x).max(initial=0)
    return largest * np.sqrt(np.square(x / largest).sum()) if 0 < largest < np.inf else largest


def gemm(transpose_a: bool, transpose_b: bool) -> Callable[..., A]:
    return lambda a, b, c, α, β: α * (a.T if transpose_a else a) @ (b.T if transpose_b else b) + β * c


def layernorm(x: A, scale: A, shift: A, eps: A) -> A:
    mean = x.mean(1, keepdims=True)
    return (x - mean) / np.sqrt(x.var(1, keepdims=True) + eps) * scale + shift


GAUSSIAN = np.array([[2, 4, 5, 4, 2], [4, 9, 12, 9, 4], [5, 12, 15, 12, 5], [4, 9, 12, 9, 4], [2, 4, 5, 4, 2]]) / 159


def gaussian(x: A) -> A:
    return nd.correlate(x, GAUSSIAN, mode="nearest")


def harris(x: A, kappa: A) -> A:
    # the products are clamped, not what they are made of: the border of `structure` is the border of the image
    ix, iy = nd.sobel(x, 1, mode="nearest") / 12, nd.sobel(x, 0, mode="nearest") / 12
    box = np.ones((3, 3))
    xx, xy, yy = (nd.correlate(p, box, mode="nearest") for p in (ix * ix, ix * iy, iy * iy))
    return xx * yy - xy * xy - kappa * (xx + yy) ** 2


def separable(weights: A, x: A) -> A:
    return nd.correlate1d(nd.correlate1d(x, weights, 1, mode="nearest"), weights, 0, mode="nearest")


def gradient(x: A) -> A:
    return x + 1 / np.sqrt(1e-4 + sum((x - clamped(x, o)) ** 2 for o in ((-1, 0), (1, 0), (0, -1), (0, 1))))


def poisson(x: A) -> A:
    by_distance = {0: 2.666, 1: -0.166, 2: -0.0833}
    offsets = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]
    return weighted(x, {o: by_distance[sum(map(abs, o))] for o in offsets if sum(map(abs, o)) < 3})


def srad1(x: A, q0: A) -> A:
    """Eq. 31 to 33 of Yu and Acton in the form of the Rodinia benchmark."""
    differences = [clamped(x, o) - x for o in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    g2 = sum(d**2 for d in differences) / x**2
    laplace = sum(differences) / x
    q = (g2 / 2 - laplace**2 / 16) / (1 + laplace / 4) ** 2
    return np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)


def srad2(x: A, c: A, rate: A) -> A:
    south, east = clamped(c, (1, 0)), clamped(c, (0, 1))
    north_flow, south_flow = c * (clamped(x, (-1, 0)) - x), south * (clamped(x, (1, 0)) - x)
    west_flow, east_flow = c * (clamped(x, (0, -1)) - x), east * (clamped(x, (0, 1)) - x)
    return x + 0.25 * rate * (north_flow + south_flow + west_flow + east_flow)


def mri_q(x: A, y: A, z: A, kx: A, ky: A, kz: A, mag: A) -> A:
    phase = np.exp(2j * np.pi * (np.outer(x, kx) + np.outer(y, ky) + np.outer(z, kz)))
    q = phase @ mag
    return q.real, q.imag


REFERENCES: dict[str, dict[str, Callable[..., A]]] = {
    "blas": {
        "scal": lambda a, x: a * x,
        "axpy": lambda a, x, y: a * x + y,
        "asum": lambda x: np.abs(x).sum(),
        "sum": lambda x: x.sum(),
        "dot": lambda x, y: (x * y).sum(),
        "nrm2": nrm2,
        "amax": lambda x: np.abs(x).argmax(),
        "gemv": lambda a, x, y, α, β: α * (a @ x) + β * y,
        "gemvT": lambda a, x, y, α, β: α * (x @ a) + β * y,
        "ger": lambda a, x, y, α: a + α * np.outer(x, y),
        "gesummv": lambda a, b, x, α, β: α * (a @ x) + β * (b @ x),
        "gemm": gemm(False, False),
        "gemmNT": gemm(False, True),
        "gemmTN": gemm(True, False),
        "gemmTT": gemm(True, True),
        "matmul": lambda a, b: a @ b,
    },
    "layout": {
        "transpose2D": np.transpose,
        "swapMiddle": lambda x: x.transpose(0, 2, 1, 3),
        "channelsLast": lambda x: x.transpose(0, 2, 3, 1),
        "reverseDims": lambda x: x.transpose(3, 2, 1, 0),
        "inclusiveScan": np.cumsum,
        "exclusiveScan": lambda x: np.concatenate([x[:0], np.zeros(min(len(x), 1), x.dtype), np.cumsum(x)[:-1]]),
    },
    "rows": {
        "softmaxRow": scipy.special.softmax,
        "softmax": lambda x: scipy.special.softmax(x, axis=1),
        "layernorm": layernorm,
        "rmsnorm": lambda x, scale, eps: x / np.sqrt(np.square(x).mean(1, keepdims=True) + eps) * scale,
        "variance": lambda x: x.var(1),
    },
    "image": {
        "binomial": lambda x: nd.correlate(x, np.outer([1, 2, 1], [1, 2, 1]) / 16, mode="nearest"),
        "gaussian": gaussian,
        "alongRow": lambda weights, x: nd.correlate1d(x, weights, 1, mode="nearest"),
        "alongColumn": lambda weights, x: nd.correlate1d(x, weights, 0, mode="nearest"),
        "separable": separable,
        "unsharp": lambda x, amount: x + amount * (x - gaussian(x)),
        "harris": harris,
    },
    "stencil": {
        "jacobi2D5": lambda x: weighted(x, {(-1, 0): 5, (0, -1): 12, (0, 0): 15, (1, 0): 5, (0, 1): 12}) / 118,
        "jacobi2D9": lambda x: nd.correlate(x, np.array([[7, 5, 9], [12, 15, 12], [9, 5, 7]]) / 118, mode="nearest"),
        "gradient2D": gradient,
        "jacobi3D7": lambda x: weighted(x, {(0, 0, 1): 0.161, (0, 0, -1): 0.162, (0, 1, 0): 0.163, (0, -1, 0): 0.164,
                                            (1, 0, 0): 0.165, (-1, 0, 0): 0.166, (0, 0, 0): -1.67}),
        "poisson3D19": poisson,
        "srad1": srad1,
        "srad2": srad2,
    },
    "science": {
        "nn": lambda x, y, lat, lng: np.hypot(lat - x, lng - y),
        "phiMag": lambda re, im: np.abs(re + 1j * im) ** 2,
        "mriQ": mri_q,
    },
}  # fmt: skip


def reference(text: str, name: str, arguments: tuple[A, ...]) -> A:
    """The result in the widest type."""
    return REFERENCES[text][name](*map(wide, arguments))
