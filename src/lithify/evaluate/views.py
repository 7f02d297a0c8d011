"""What the layout patterns mean: each is a function on a leaf whose array axis stands after the batch axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lithify.arith import Expr
from lithify.evaluate.values import Leaf
from lithify.lang.errors import EvaluationError
from lithify.lang.index_functions import IndexFunction, canonical_variable

SizeOf = Callable[[Expr], int]


def split(leaf: Leaf, axis: int, size: int) -> Leaf:
    """n.t -> (n / size).size.t."""
    count, rest = divmod(leaf.shape[axis], size)
    if rest:
        raise EvaluationError(f"split {size} of {leaf.shape[axis]} elements: it does not divide")
    return leaf.reshape(*leaf.shape[:axis], count, size, *leaf.shape[axis + 1 :])


def join(leaf: Leaf, axis: int) -> Leaf:
    """n.m.t -> (n m).t."""
    n, m = leaf.shape[axis : axis + 2]
    return leaf.reshape(*leaf.shape[:axis], n * m, *leaf.shape[axis + 2 :])


def transpose(leaf: Leaf, axis: int) -> Leaf:
    """n.m.t -> m.n.t."""
    return leaf.swapaxes(axis, axis + 1)


def take(leaf: Leaf, axis: int, size: int) -> Leaf:
    """The first `size` elements."""
    _within("take", size, leaf.shape[axis])
    return leaf[(slice(None),) * axis + (slice(0, size),)]


def drop(leaf: Leaf, axis: int, size: int) -> Leaf:
    """All but the first `size` elements."""
    _within("drop", size, leaf.shape[axis])
    return leaf[(slice(None),) * axis + (slice(size, None),)]


def _within(what: str, size: int, length: int) -> None:
    if not 0 <= size <= length:
        raise EvaluationError(f"{what} {size} of {length} elements")


def slide(leaf: Leaf, axis: int, size: int, step: int) -> Leaf:
    """n.t -> ((n - size) / step + 1).size.t."""
    n = leaf.shape[axis]
    if step < 1 or size > n + step:
        raise EvaluationError(f"slide {size} {step} of {n} elements")
    count = (n - size) // step + 1
    return read(leaf, axis, np.arange(count)[:, None] * step + np.arange(size)[None, :], "slide")


def pad_positions(length: int, left: int, right: int, mode: str) -> Leaf:
    """The element that each position of a padded array shows, for the modes that show elements.

    clamp: the nearest; mirror: reflected with the edge included, with period 2 n; wrap: with period n.
    """
    positions = np.arange(-left, length + right)
    if length == 0:
        if left or right:
            raise EvaluationError(f"pad {mode} of an empty array has no element to show")
        return positions
    if mode == "clamp":
        return positions.clip(0, length - 1)
    if mode == "wrap":
        return positions % length
    position = positions % (2 * length)
    return np.where(position < length, position, 2 * length - 1 - position)


def pad(leaf: Leaf, axis: int, left: int, right: int, mode: str, fill: Leaf | None) -> Leaf:
    """`left` and `right` more elements; `fill` is a leaf of the element type at the same batch depth."""
    if fill is None:
        return read(leaf, axis, pad_positions(leaf.shape[axis], left, right, mode), "pad")
    batch = np.broadcast_shapes(leaf.shape[:axis], fill.shape[:axis])
    rest = leaf.shape[axis + 1 :]
    padded = np.empty((*batch, left + leaf.shape[axis] + right, *rest), leaf.dtype)
    padded[...] = np.expand_dims(fill, axis)
    padded[(slice(None),) * axis + (slice(left, left + leaf.shape[axis]),)] = leaf
    return padded


def read(leaf: Leaf, axis: int, positions: Leaf, what: str) -> Leaf:
    """The elements at constant positions; every one is checked."""
    check(positions, leaf.shape[axis], what)
    return np.take(leaf, positions, axis=axis)


def check(positions: Leaf, length: int, what: str) -> None:
    """Raise EvaluationError unless all positions lie in [0, length)."""
    if positions.size:
        low, high = int(positions.min()), int(positions.max())
        if low < 0 or high >= length:
            raise EvaluationError(f"{what} reads index {low if low < 0 else high} of an array of {length}")


def reindex(leaf: Leaf, axis: int, function: IndexFunction, size_of: SizeOf, sizes: dict[Any, int]) -> Leaf:
    """Element function(i) at position i."""
    extent = size_of(function.extent)
    values: dict[Any, Any] = dict(sizes)
    for variable in canonical_variable(function.extent).variables() - sizes.keys():
        values[variable] = np.arange(extent)
    positions = np.asarray(function.forward.evaluate(values)) if extent else np.zeros(0, np.int64)
    return read(leaf, axis, np.broadcast_to(positions, (extent,)), f"reindex {function}")


def swizzle(leaf: Leaf, axis: int, width: int, item_bytes: int) -> Leaf:
    """The 16-byte chunks of each row, exchanged by an exclusive or with the row number, within `width` bytes.

    Rows of `width` bytes that lie one after another have byte addresses whose bits 4.. are xored with bits 7.. (128: 3
    bits, 64: 2 bits, 32: 1 bit): chunk c of row r shows chunk c ^ ((r width / 128) mod (width / 16)). A longer row is
    several such rows side by side. It is its own inverse.
    """
    rows, columns = leaf.shape[axis : axis + 2]
    if width not in (128, 64, 32) or columns * item_bytes % width:
        raise EvaluationError(
            f"swz {width} of rows of {columns} elements of {item_bytes} bytes",
            hint="a row is a multiple of the width, which is 128, 64 or 32 bytes",
        )
    per_chunk = 16 // item_bytes
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    chunk = (column // per_chunk) ^ ((row * width // 128) % (width // 16))
    source = chunk * per_chunk + column % per_chunk
    return read(join(leaf, axis), axis, row * columns + source, "swz")
