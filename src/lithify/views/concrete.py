"""Views on NumPy arrays: every coordinate at once. The definition that everything else is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lithify.arith import Expr
from lithify.views.errors import ViewError
from lithify.views.space import Dims, show
from lithify.views.view import View

Array = npt.NDArray[Any]


def shape(space: Dims) -> tuple[int, ...]:
    """The sizes as numbers. Raises ViewError where one is symbolic."""
    sizes = [d.size.constant for d in space]
    if None in sizes:
        raise ViewError(f"[{show(space)}] has symbolic sizes: substitute them first")
    return tuple([size for size in sizes if size is not None])


@dataclass(frozen=True)
class Everywhere:
    """A view at every upper coordinate: lower coordinates, where they are real, and which guard failed first."""

    index: tuple[Array, ...]
    real: Array
    fill: Array  # of objects: the fill of the first guard that fails, None where the element is real


def everywhere(view: View) -> Everywhere:
    """All coordinates of a view of constant sizes, computed map by map (without the normal form of the whole)."""
    extents = shape(view.upper)
    u: tuple[Array, ...] = tuple(np.indices(extents, sparse=False).reshape(len(extents), -1))
    points = int(np.prod(extents))
    real = np.ones(points, bool)
    fill = np.full(points, None, object)
    for m in view.maps:
        names = View(m.upper).variables()
        values = {v: a for v, a in zip(names, u, strict=True) if v.terms}
        lower, guards = m.step(names)
        for guard in guards:
            ok = np.ones(points, bool)
            for condition in guard.conditions:
                ok &= _values(condition, values, points) >= 0
            fill[real & ~ok] = guard.fill
            real &= ok
        u = tuple([_values(e, values, points) for e in lower])
    return Everywhere(tuple([a.reshape(extents) for a in u]), real.reshape(extents), fill.reshape(extents))


def _values(e: Expr, values: dict[Expr, Array], points: int) -> Array:
    return np.broadcast_to(np.asarray(e.evaluate(values)), (points,))  # type: ignore[arg-type]


def read(view: View, array: Array) -> Array:
    """The upper array that a view shows of a lower one."""
    if array.shape != shape(view.lower):
        raise ViewError(f"an array of shape {array.shape} for [{show(view.lower)}]")
    all_ = everywhere(view)
    result = np.zeros(all_.real.shape, array.dtype)
    result[all_.real] = array[tuple([a[all_.real] for a in all_.index])]
    result[~all_.real] = all_.fill[~all_.real]
    return result


def write(view: View, array: Array, values: Array) -> None:
    """Store upper values through a view into a lower array; those at coordinates that are not real are dropped."""
    if array.shape != shape(view.lower) or values.shape != shape(view.upper):
        raise ViewError(
            f"arrays of shapes {values.shape} above and {array.shape} below for "
            f"[{show(view.upper)}] and [{show(view.lower)}]"
        )
    all_ = everywhere(view)
    array[tuple([a[all_.real] for a in all_.index])] = values[all_.real]
