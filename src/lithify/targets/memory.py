"""Aligned arrays, and blocks of working memory that are used again by later calls."""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np

ALIGNMENT = 64
_KEPT_BYTES = 1 << 28  # the most that is kept for later calls

Array = np.ndarray[Any, np.dtype[Any]]


def address_of(array: Array) -> int:
    """The address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array whose contents are undefined, starting at a multiple of 64 bytes."""
    size = prod(shape) * dtype.itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    skip = -address_of(raw) % ALIGNMENT
    return raw[skip : skip + size].view(dtype).reshape(shape)


class MemoryPool:
    """Blocks of aligned memory for temporaries. Each call takes its own, so that calls may run at the same time."""

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._free: list[Array] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> Array:
        """A block of at least `size` bytes: a kept one that is not more than twice as large, or a new one."""
        with self._lock:
            fitting = [b for b in self._free if size <= b.nbytes <= 2 * size + (1 << 16)]
            if fitting:
                block = min(fitting, key=lambda b: b.nbytes)
                self._free = [b for b in self._free if b is not block]
                return block
        return aligned_empty((size,), np.dtype(np.uint8))

    def give(self, block: Array) -> None:
        """Keep the block for a later call; the oldest kept blocks are let go when there is too much."""
        with self._lock:
            self._free.append(block)
            while sum(b.nbytes for b in self._free) > self._kept_bytes:
                self._free.pop(0)


WORKING_MEMORY = MemoryPool()
