"""Values in the evaluator: structures of NumPy arrays under leading batch axes.

A map does not loop: its body runs once, on all elements, with one more *batch axis*. At batch depth D a value is

* of a scalar or index type: an array of D axes;
* of an array type: an array of D axes, then its own;
* of a tuple type: a tuple of values; and tuples inside arrays are moved outwards, so that an array of tuples is a tuple
  of arrays (as it is stored), and zip and unzip do nothing.

A batch axis has the length of its map, or 1 where the value does not depend on that map's variable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Leaf = NDArray[Any]
Value = Leaf | tuple["Value", ...]


def each(function: Callable[..., Leaf], value: Value, *others: Value) -> Value:
    """Apply a function to the corresponding leaves of values of one structure."""
    if isinstance(value, tuple):
        return tuple([each(function, *parts) for parts in zip(value, *others, strict=True)])
    return function(value, *others)


def leaves(value: Value) -> list[Leaf]:
    """The arrays that a value is made of, in order."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def lift(value: Value, bound_at: int, depth: int) -> Value:
    """A value of batch depth `bound_at` seen from the greater depth `depth`."""
    if bound_at == depth:
        return value
    key = (slice(None),) * bound_at + (None,) * (depth - bound_at)
    return each(lambda leaf: leaf[key], value)


def lower(value: Value, depth: int, target: int) -> Value:
    """Undo `lift` for a value that does not depend on the batch axes from `target` on (they all have length 1)."""
    if depth == target:
        return value
    key = (slice(None),) * target + (0,) * (depth - target) + (...,)
    return each(lambda leaf: leaf[key], value)


def element(value: Value, depth: int, position: int) -> Value:
    """Element `position` of an array value at a batch depth."""
    key = (slice(None),) * depth + (position, ...)
    return each(lambda leaf: leaf[key], value)


def widen(leaf: Leaf, axis: int, length: int) -> Leaf:
    """A leaf whose axis of length 1 is repeated to `length` (without a copy)."""
    if leaf.shape[axis] == length:
        return leaf
    return np.broadcast_to(leaf, (*leaf.shape[:axis], length, *leaf.shape[axis + 1 :]))


def together(values: list[Leaf], depth: int) -> list[Leaf]:
    """Leaves with their batch axes made equal; the other axes stay."""
    batch = np.broadcast_shapes(*[leaf.shape[:depth] for leaf in values])
    return [np.broadcast_to(leaf, batch + leaf.shape[depth:]) for leaf in values]


def stack(values: list[Value], depth: int) -> Value:
    """The array of the given elements."""
    return each(lambda *parts: np.stack(together(list(parts), depth), axis=depth), *values)


def concatenate(values: list[Value], depth: int) -> Value:
    """The arrays one after another."""
    return each(lambda *parts: np.concatenate(together(list(parts), depth), axis=depth), *values)
