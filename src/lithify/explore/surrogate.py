"""A cost model from few measurements: a Gaussian process over what candidates do (C. Rasmussen and C. Williams,
"Gaussian Processes for Machine Learning" (2006), algorithm 2.1 and section 5.4).

It predicts the logarithm of a time, with how sure it is: what has not been tried and may be good is tried next.
Measurements may be of several problems: what they have in common is learned from all of them, and each problem's own
deviation (its level too) from its own (C. Bonilla and others, "Multi-task Gaussian Process Prediction" (2007), with one
common task).

Fitting is cheap by schedule: the lengths of the features are chosen on few rows, and taken over (`Shape`) until there
are clearly more; between, a fit is one factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.floating[Any]]]
Groups = np.ndarray[Any, np.dtype[np.integer[Any]]]

_LENGTHS = (0.7, 1.5, 3.0, 6.0, 12.0, 40.0)  # of features whose deviation is 1
_FIRST_LENGTH = 6.0
_NOISES = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1)  # variances relative to that of the values
_COMMON = (0.3, 0.6, 0.9, 0.98)  # the part of the variance that all problems share
_LEVEL = 0.3  # variance of a problem's level
_MOST_CHOSEN_BY = 120  # rows that lengths are chosen by


@dataclass(frozen=True)
class Shape:
    """What is chosen by the likelihood: a length for each feature, the noise, and what problems have in common.

    `rows` is how many measurements there were.
    """

    lengths: tuple[float, ...]
    noise: float = 1e-2
    common: float = 0.6
    rows: int = 0

    @staticmethod
    def choose(features: Array, values: Array, groups: Groups, start: Shape | None) -> Shape:
        """By coordinate descent from `start`."""
        count, width = features.shape
        kept = np.unique(np.linspace(0, count - 1, min(count, _MOST_CHOSEN_BY)).astype(int))
        rows, given, same = features[kept], values[kept], groups[kept][:, None] == groups[kept][None, :]
        best = start or Shape((_FIRST_LENGTH,) * width)
        apart = (rows.T[:, :, None] - rows.T[:, None, :]) ** 2
        squares = np.tensordot(1.0 / np.square(best.lengths), apart, axes=1)

        def likelihood(squares: Array, noise: float, common: float) -> float:
            factor = _factored(_kernel(squares, same, common), noise)
            half = np.linalg.solve(factor, given)
            return float(-0.5 * half @ half - np.log(np.diag(factor)).sum())

        found = likelihood(squares, best.noise, best.common)
        for feature in range(width):
            if not apart[feature].any():
                continue
            for length in _LENGTHS:
                old = best.lengths[feature]
                moved = squares + apart[feature] * (length**-2 - old**-2)
                value = likelihood(np.maximum(moved, 0.0), best.noise, best.common)
                if value > found:
                    lengths = (*best.lengths[:feature], length, *best.lengths[feature + 1 :])
                    found, squares, best = value, np.maximum(moved, 0.0), Shape(lengths, best.noise, best.common)
        for noise in _NOISES:
            for common in _COMMON if not same.all() else (best.common,):
                value = likelihood(squares, noise, common)
                if value > found:
                    found, best = value, Shape(best.lengths, noise, common)
        return Shape(best.lengths, best.noise, best.common, count)


class Surrogate:
    """Fitted to features (n x d, of deviation about 1) and values (n) of some problems (`groups`: their numbers).

    Problem 0 is predicted.
    """

    def __init__(self, features: Array, values: Array, groups: Groups, shape: Shape) -> None:
        self._mean, self._scale = float(values.mean()), float(values.std()) or 1.0
        self._shape, self._groups = shape, groups
        self._rows = features / np.array(shape.lengths)
        same = groups[:, None] == groups[None, :]
        factor = _factored(_kernel(_squares(self._rows, self._rows), same, shape.common), shape.noise)
        self._inverse = np.linalg.inv(factor)
        self._weights = self._inverse.T @ (self._inverse @ ((values - self._mean) / self._scale))

    def predict(self, features: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the value of problem 0 at each row of `features`."""
        cross = self._cross(features)
        variance = 1.0 + _LEVEL - np.square(cross @ self._inverse.T).sum(axis=1)
        return self._mean + self._scale * (cross @ self._weights), self._scale * np.sqrt(np.maximum(variance, 1e-12))

    def gain(self, features: Array, over: Array) -> tuple[Array, Array]:
        """How much lower the value at each row is than at the row `over`: mean and standard deviation."""
        cross, other = self._cross(features), self._cross(over[None])
        apart = other - cross
        squares = _squares(features / np.array(self._shape.lengths), over[None] / np.array(self._shape.lengths))
        prior = 2.0 * (1.0 - _matern(squares)[:, 0])
        variance = prior - np.square(apart @ self._inverse.T).sum(axis=1)
        return self._scale * (apart @ self._weights), self._scale * np.sqrt(np.maximum(variance, 1e-12))

    def _cross(self, features: Array) -> Array:
        squares = _squares(features / np.array(self._shape.lengths), self._rows)
        return _kernel(squares, (self._groups == 0)[None, :], self._shape.common)


def _kernel(squares: Array, same: np.ndarray[Any, np.dtype[np.bool_]], common: float) -> Array:
    """The covariance of points: of one problem (`same`), or of two."""
    kernel: Array = _matern(squares) * np.where(same, 1.0, common) + _LEVEL * same
    return kernel


def _factored(kernel: Array, noise: float) -> Array:
    kernel[np.diag_indices_from(kernel)] += noise
    return np.linalg.cholesky(kernel)


def _squares(a: Array, b: Array) -> Array:
    """Squared distances of the rows of two matrices."""
    found: Array = np.maximum((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * (a @ b.T), 0.0)
    return found


def _matern(squares: Array) -> Array:
    """The Matern kernel of order 5/2: smooth, but not so smooth that cliffs between caches ring."""
    scaled = np.sqrt(5.0 * squares)
    kernel: Array = (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)
    return kernel
