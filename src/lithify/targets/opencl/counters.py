"""Memory in which groups count themselves: zeros when a call begins, and again when it ends."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_LEAST_BYTES = 16  # OpenCL has no empty buffers


class Counters:
    """The counters of one program's calls. `places` are their positions among the temporaries.

    Each call has its own, whatever thread and queue it runs in. They are kept for the next one, since filling a buffer
    takes as long as a kernel; a call that fails does not put back what may hold something else than zeros.
    """

    def __init__(self, context: Any, places: Iterable[int]) -> None:
        self.places = frozenset(places)
        self._context = context
        self._unused: defaultdict[int, list[Any]] = defaultdict(list)  # by bytes
        self._lock = threading.Lock()

    def take(self, size: int) -> Any:
        """A buffer of so many zero bytes."""
        import pyopencl as cl

        size = max(size, _LEAST_BYTES)
        with self._lock:
            unused = self._unused[size]
            if unused:
                return unused.pop()
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self._context, flags, hostbuf=np.zeros(size, np.uint8))

    def put_back(self, temporaries: Sequence[Any]) -> None:
        """The call that had these temporaries has ended."""
        with self._lock:
            for place in self.places:
                self._unused[temporaries[place].size].append(temporaries[place])
