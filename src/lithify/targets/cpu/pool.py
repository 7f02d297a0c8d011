"""The pool of worker threads: one for the process, made when it is first needed.

Worker k stays on the k-th of the process's CPUs, and the caller on the first while it works (its own set of CPUs is
restored afterwards): a woken thread otherwise shares a core with its waker for tens of milliseconds. Pools of fewer
threads than CPUs are left to the system, so that several processes do not meet on the first CPUs. A pool does one thing
at a time; a call that finds it busy runs on its own thread.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lithify.lang.errors import LithifyError
from lithify.targets.cpu import runtime
from lithify.targets.cpu.engine import Library

_FUNCTIONS = ("lithify_pool_init", "lithify_worker", "lithify_dispatch", "lithify_pool_stop")


def usable_cpus() -> list[int]:
    """The CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def thread_count(threads: int | None = None) -> int:
    """How many threads a parallel loop uses: the argument, LITHIFY_THREADS, or one for each usable CPU."""
    if threads is None:
        text = os.environ.get("LITHIFY_THREADS")
        if text is None:
            return len(usable_cpus()) if os.name == "posix" else 1
        if not text.isdigit() or int(text) < 1:
            raise LithifyError(f"LITHIFY_THREADS is {text!r}; it must be a number of threads, at least 1")
        threads = int(text)
    if threads < 1:
        raise LithifyError(f"{threads} threads asked for; at least 1 is needed")
    return threads if os.name == "posix" else 1


class Pool:
    """`threads` - 1 workers and the caller."""

    def __init__(self, threads: int, code: bytes) -> None:
        self.threads = threads
        self._library = Library(code, *_FUNCTIONS)
        self.dispatch = self._library.addresses["lithify_dispatch"]
        self._state = (ctypes.c_int64 * (runtime.WORDS + 8))()
        self.address = -(-ctypes.addressof(self._state) // 64) * 64
        self._busy = threading.Lock()
        cpus = usable_cpus()
        self._cpus = frozenset(cpus)
        self._places = cpus if hasattr(os, "sched_setaffinity") and threads == len(cpus) else []
        ctypes.c_int64.from_address(self.address + 8 * runtime.THREADS).value = threads
        self._native("lithify_pool_init")(self.address)
        work = self._native("lithify_worker", ctypes.c_int64)
        self._workers = [
            threading.Thread(target=self._work, args=(work, k), name=f"lithify-{k}", daemon=True)
            for k in range(1, threads)
        ]
        for worker in self._workers:
            worker.start()

    def _native(self, name: str, *types: type) -> Callable[..., None]:
        function: Callable[..., None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *types)(self._library.addresses[name])
        return function

    def _work(self, work: Callable[..., None], worker: int) -> None:
        if self._places:
            os.sched_setaffinity(0, {self._places[worker]})
        work(self.address, worker)

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Have the pool to oneself, the calling thread pinned to its place; False where another call has it."""
        if not self._busy.acquire(blocking=False):
            yield False
            return
        try:
            if not self._places or os.sched_getaffinity(0) != self._cpus:  # the caller has a placement of its own
                yield True
                return
            os.sched_setaffinity(0, {self._places[0]})
            try:
                yield True
            finally:
                os.sched_setaffinity(0, self._cpus)
        finally:
            self._busy.release()

    def close(self) -> None:
        """End the workers."""
        with self._busy:
            self._native("lithify_pool_stop")(self.address)
            for worker in self._workers:
                worker.join()


_pools: dict[int, Pool] = {}
_making = threading.Lock()


def pool_of(threads: int, code: Callable[[], bytes]) -> Pool:
    """The process's pool of that many threads; `code` gives the object code of the runtime."""
    found = _pools.get(threads)
    if found is None:
        with _making:
            found = _pools.get(threads)
            if found is None:
                found = _pools[threads] = Pool(threads, code())
    return found


def _close_all() -> None:
    while _pools:
        _pools.popitem()[1].close()


def _after_fork() -> None:
    """A child process has none of its parent's threads: it makes its own pools."""
    global _making
    _pools.clear()
    _making = threading.Lock()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
