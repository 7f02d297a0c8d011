"""A cost model from few measurements: a Gaussian process over the candidates' features (C. Rasmussen and C. Williams,
"Gaussian Processes for Machine Learning" (2006), algorithm 2.1 and section 5.4).

It predicts the logarithm of the time, with how sure it is: what has not been tried and may be good is tried next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.floating[Any]]]

_LENGTHS = (0.15, 0.3, 0.6, 1.2, 2.4, 6.0)  # of features that lie in 0 .. 1
_NOISES = (1e-4, 1e-3, 1e-2, 1e-1)  # variances relative to that of the times
_SWEEPS = 2


class Surrogate:
    """Fitted to features (n x d) and values (n); the length of each feature is chosen by the likelihood."""

    def __init__(self, features: Array, values: Array) -> None:
        self._mean, self._scale = float(values.mean()), float(values.std()) or 1.0
        self._features = features
        self._standard = (values - self._mean) / self._scale
        self._squares = (features[:, None, :] - features[None, :, :]) ** 2
        self._choose()

    def predict(self, features: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the value at each row of `features`."""
        squares = ((features[:, None, :] / self._lengths - self._features[None, :, :] / self._lengths) ** 2).sum(axis=2)
        cross = _matern(squares)
        mean = cross @ self._weights
        half = np.linalg.solve(self._factor, cross.T)
        variance = np.maximum(1.0 - (half**2).sum(axis=0), 1e-12)
        return self._mean + self._scale * mean, self._scale * np.sqrt(variance)

    def _choose(self) -> None:
        """Lengths and noise by coordinate descent on the likelihood."""
        count = self._squares.shape[2]
        self._lengths, noise = np.full(count, 1.2), 1e-2
        best = self._likelihood(self._lengths, noise)
        for _ in range(_SWEEPS):
            for coordinate in range(count):
                for length in _LENGTHS:
                    lengths = self._lengths.copy()
                    lengths[coordinate] = length
                    found = self._likelihood(lengths, noise)
                    if found > best:
                        best, self._lengths = found, lengths
            for each in _NOISES:
                found = self._likelihood(self._lengths, each)
                if found > best:
                    best, noise = found, each
        self._factor = self._factored(self._lengths, noise)
        self._weights = np.linalg.solve(self._factor.T, np.linalg.solve(self._factor, self._standard))

    def _factored(self, lengths: Array, noise: float) -> Array:
        kernel = _matern(self._squares @ (1.0 / lengths**2))
        kernel[np.diag_indices_from(kernel)] += noise
        return np.linalg.cholesky(kernel)

    def _likelihood(self, lengths: Array, noise: float) -> float:
        factor = self._factored(lengths, noise)
        half = np.linalg.solve(factor, self._standard)
        return float(-0.5 * half @ half - np.log(np.diag(factor)).sum())


def _matern(squares: Array) -> Array:
    """The Matern kernel of order 5/2: smooth, but not so smooth that cliffs between caches ring."""
    scaled = np.sqrt(5.0 * squares)
    kernel: Array = (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)
    return kernel
