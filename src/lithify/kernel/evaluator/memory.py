"""The memory of one buffer: data, which elements hold something, and what is known of accesses to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lithify.evaluate import Numerics
from lithify.kernel import ir
from lithify.kernel.evaluator.active import Integers
from lithify.kernel.evaluator.races import Log

_POISON = {"f": np.nan, "c": complex(np.nan, np.nan), "b": True, "i": 0x5A, "u": 0x5A}


class Storage:
    """One or more instances of a buffer (one a group, one a thread) side by side.

    `depth` says whose memory it is: there is one instance for each owner at that depth, numbered from `base`.
    Elements are addressed by instance * count + row-major position.
    """

    __slots__ = ("base", "buffer", "count", "data", "depth", "logs", "shape", "sources", "strides", "targets", "valid")

    def __init__(self, buffer: ir.Buffer, shape: tuple[int, ...], depth: int) -> None:
        self.buffer = buffer
        self.shape = shape
        self.depth = depth
        self.count = int(np.prod(shape, dtype=np.int64))
        strides = [1]
        for size in reversed(shape[1:]):
            strides.append(strides[-1] * size)
        self.strides = tuple(reversed(strides)) if shape else ()
        self.base = 0
        self.data: NDArray[Any] = np.zeros(0)
        self.valid: NDArray[np.bool_] = np.zeros(0, bool)
        self.targets: NDArray[np.int32] | None = None  # asynchronous copies in flight to each element
        self.sources: NDArray[np.int32] | None = None  # and from it
        self.logs: dict[int, Log] = {}  # by depth, where accesses must be compared

    def allocate(self, numerics: Numerics, instances: int = 1, base: int = 0) -> None:
        """Fresh memory that nothing was written to."""
        dtype = numerics.dtype(self.buffer.scalar)
        self.data = np.full(instances * self.count, _POISON.get(dtype.kind, np.nan), dtype)
        self.valid = np.zeros(instances * self.count, bool)
        self.targets = self.sources = None
        self.base = base

    def load(self, values: NDArray[Any]) -> None:
        """Fill the one instance with an input."""
        self.data = values.reshape(-1)
        self.valid = np.ones(self.count, bool)

    def position(self, element: int) -> str:
        """An element as the program writes it: `tile[3, 4]`."""
        place = element % self.count if self.count else 0
        index = np.unravel_index(place, self.shape) if self.shape else ()
        return f"{self.buffer.name}[{', '.join(str(int(i)) for i in index)}]"

    def in_flight(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The counts of asynchronous copies to and from each element."""
        if self.targets is None or self.sources is None:
            self.targets = np.zeros(len(self.data), np.int32)
            self.sources = np.zeros(len(self.data), np.int32)
        return self.targets, self.sources

    def log(self, depth: int) -> Log:
        """The record of the current interval at a depth."""
        found = self.logs.get(depth)
        if found is None:
            found = self.logs[depth] = Log(depth)
        return found


def duplicate(threads: Integers, elements: Integers) -> int | None:
    """The position of an entry whose thread touches the element of another entry as well."""
    order = np.lexsort((elements, threads))
    same = (threads[order][1:] == threads[order][:-1]) & (elements[order][1:] == elements[order][:-1])
    return int(order[1:][same][0]) if same.any() else None
