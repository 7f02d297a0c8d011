"""Aligned arrays, and blocks of memory that are used again by later calls.

Fresh memory is slow: the system clears each page when it is first touched, which takes longer than most kernels need
to fill it. So large results and temporaries come from blocks that are kept, up to a bound, when nobody uses them.
"""

from __future__ import annotations

import threading
from collections import deque
from math import prod
from typing import Any

import numpy as np

ALIGNMENT = 64
_KEPT_BYTES = 1 << 29  # the most that is kept for later calls
LEASED_BYTES = 1 << 20  # smaller results are ordinary arrays

Array = np.ndarray[Any, np.dtype[Any]]


def address_of(array: Array) -> int:
    """The address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array whose contents are undefined, starting at a multiple of 64 bytes. Raises MemoryError."""
    size = prod(shape) * dtype.itemsize
    try:
        raw = np.empty(size + ALIGNMENT, np.uint8)
    except ValueError as error:  # more bytes than NumPy counts
        raise MemoryError(f"unable to allocate {size} bytes for an array of {shape} {dtype}") from error
    skip = -address_of(raw) % ALIGNMENT
    return raw[skip : skip + size].view(dtype).reshape(shape)


class MemoryPool:
    """Blocks of aligned memory. Each call takes its own, so that calls may run at the same time."""

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._free: list[Array] = []
        self._returned: deque[Array] = deque()
        self._lock = threading.Lock()

    def take(self, size: int) -> Array:
        """A block of at least `size` bytes: a kept one that is not more than twice as large, or a new one."""
        with self._lock:
            self._sort_in()
            fitting = [b for b in self._free if size <= b.nbytes <= 2 * size + (1 << 16)]
            if fitting:
                block = min(fitting, key=lambda b: b.nbytes)
                self._free = [b for b in self._free if b is not block]
                return block
        return aligned_empty((size,), np.dtype(np.uint8))

    def give(self, block: Array) -> None:
        """Keep the block for a later call; those kept longest are let go when there is too much.

        May be called by the garbage collector at any place, so it never waits for the lock.
        """
        self._returned.append(block)
        if self._lock.acquire(blocking=False):
            try:
                self._sort_in()
            finally:
                self._lock.release()

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A new array of undefined contents, whose memory comes back when the last view of it is gone."""
        size = prod(shape) * dtype.itemsize
        if size < LEASED_BYTES:
            return aligned_empty(shape, dtype)
        return np.asarray(_Lease(self, self.take(size)))[:size].view(dtype).reshape(shape)

    @property
    def kept(self) -> int:
        """Bytes in blocks that nobody uses."""
        with self._lock:
            self._sort_in()
            return sum(b.nbytes for b in self._free)

    def _sort_in(self) -> None:
        while self._returned:
            self._free.append(self._returned.popleft())
        while sum(b.nbytes for b in self._free) > self._kept_bytes:
            self._free.pop(0)


class _Lease:
    """The owner of an array's memory, as NumPy knows owners; gives the block back when it is collected."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, pool: MemoryPool, block: Array) -> None:
        self._pool, self._block = pool, block
        self.__array_interface__ = {
            "shape": block.shape,
            "typestr": "|u1",
            "data": (address_of(block), False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._pool.give(self._block)


MEMORY = MemoryPool()
