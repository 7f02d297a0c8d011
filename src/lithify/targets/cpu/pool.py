"""The pool of worker threads: one for the process, made when it is first needed.

Worker k stays on the k-th of the process's CPUs, and a caller that is not on the first is moved there while it works
(its own set of CPUs is restored afterwards): a woken thread otherwise shares a core with its waker for tens of
milliseconds. Pools of fewer threads than CPUs are left to the system, so that several processes do not meet on the
first CPUs. A pool does one thing at a time; a call that finds it busy runs on its own thread.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterable

from lithify.lang.errors import LithifyError
from lithify.targets.cpu import policy, runtime
from lithify.targets.cpu.engine import Library

_FUNCTIONS = ("lithify_pool_init", "lithify_worker", "lithify_pool_run", "lithify_pool_stop")


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
        self._state = (ctypes.c_int64 * (runtime.words(threads) + 8))()
        self.address = -(-ctypes.addressof(self._state) // 64) * 64
        self.entry = self._library.addresses["lithify_pool_run"]
        self._run = self._native("lithify_pool_run", ctypes.c_void_p, ctypes.c_void_p)
        cpus = usable_cpus()
        self._places = cpus if hasattr(os, "sched_setaffinity") and threads == len(cpus) else []
        self._sets = (_cpu_set(self._places), _cpu_set(self._places[:1]))
        self._set(runtime.THREADS, threads)
        self._set(runtime.SPIN, policy.SPIN_NANOSECONDS if threads <= len(cpus) else 0)
        self._set(runtime.PLACE, self._places[0] if self._places and max(cpus) < 8 * runtime.SET_BYTES else -1)
        self._set(runtime.ALL_CPUS, ctypes.addressof(self._sets[0]))
        self._set(runtime.ONE_CPU, ctypes.addressof(self._sets[1]))
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

    def run(self, entry: int, frame: int) -> None:
        """Run a compiled program: addresses of its function and its frame."""
        self._run(self.address, entry, frame)

    @property
    def closed(self) -> bool:
        """Whether its workers are gone; what runs with it then runs on the calling thread."""
        return self._word(runtime.CLOSED).value != 0

    def close(self) -> None:
        """End the workers."""
        self._set(runtime.CLOSED, 1)
        self._native("lithify_pool_stop")(self.address)
        for worker in self._workers:
            worker.join()

    def abandon(self) -> None:
        """Note that the workers are gone, in a process that does not have them."""
        self._set(runtime.CLOSED, 1)
        self._set(runtime.BUSY, 1)

    def _word(self, word: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.address + 8 * word)

    def _set(self, word: int, value: int) -> None:
        self._word(word).value = value


def _cpu_set(cpus: Iterable[int]) -> ctypes.Array[ctypes.c_uint8]:
    """The system's set of CPUs: bits, the first in the lowest place."""
    bits = sum(1 << cpu for cpu in cpus if cpu < 8 * runtime.SET_BYTES)
    return (ctypes.c_uint8 * runtime.SET_BYTES)(*bits.to_bytes(runtime.SET_BYTES, sys.byteorder))


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
    for pool in _pools.values():
        pool.abandon()
    _pools.clear()
    _making = threading.Lock()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
