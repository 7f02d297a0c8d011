"""A compiled program on the CPU: fills the frame and makes one native call.

From the second call on, plain arguments go through `native_call`; what follows here is the way for all others, which
also says what is wrong with them.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lithify.lang.errors import LithifyError
from lithify.targets.arguments import Arguments, Call
from lithify.targets.base import POISON, Executable, Interface, Quick, never, size_function
from lithify.targets.cpu import native_call, policy
from lithify.targets.cpu.engine import Library
from lithify.targets.cpu.frame import POOL, Layout
from lithify.targets.cpu.native_call import Kinds, Plan
from lithify.targets.cpu.pool import Pool
from lithify.targets.memory import MEMORY, Array, address_of

_FORMAT = 2  # of the serialised form


class CpuExecutable(Executable):
    """A program compiled for this machine's CPU.

    `plain` is the code that works for any result arrays; `streaming`, where there is one, writes results past the
    caches and needs them aligned.
    """

    def __init__(
        self,
        interface: Interface,
        layout: Layout,
        plain: bytes,
        streaming: bytes | None,
        pool: Callable[[], Pool] | None,
    ) -> None:
        self.interface = interface
        self._arguments = Arguments(interface)
        self._layout = layout
        self._codes = (plain, streaming)
        self._plain = _Entry(plain)
        self._streaming = _Entry(streaming) if streaming is not None else None
        self._pool = pool
        self._free: list[_Run] = []
        self._quick: Quick = never
        self._usual = native_call.usual_kinds(interface)
        self._quicks: dict[Kinds, Quick] = {}
        self._used_pool: Pool | None = None
        self._called = False
        self._poisoned = ctypes.c_int64(0)
        sizes = interface.sizes
        self._memory = size_function([b for _, b in (*layout.shared, *layout.threads)], sizes)
        self._work = size_function([layout.work], sizes)
        self._fixed = not sizes
        self._has_memory = bool(layout.shared or layout.threads)
        self._parallel = self._fixed and self._work({})[0] >= policy.LEAST_WORK
        self._by_value = [
            (k, slot)
            for k, (slot, p) in enumerate(zip(layout.parameters, interface.parameters, strict=True))
            if p.role == "scalar"
        ]
        self._by_address = [
            (k, slot)
            for k, (slot, p) in enumerate(zip(layout.parameters, interface.parameters, strict=True))
            if p.role != "scalar"
        ]

    def __call__(self, *arguments: Any, out: Any = None, sizes: Mapping[str, int] | None = None) -> Any:
        if not sizes:
            result = self._quick(arguments, out)
            if result is not NotImplemented:
                return result
        call = self._arguments.check(arguments, sizes)
        results, copies = self._arguments.results(out, call)
        run, block = self._prepare(call, results)
        run()
        self._finish(run, block)
        for target, source in copies:
            target[...] = source
        self._quick = self._quick_for(self._usual)
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

    def quick(self, arguments: Sequence[Any]) -> Quick:
        kinds = native_call.kinds_of(arguments)
        return never if kinds is None else self._quick_for(kinds)

    @property
    def poisoned(self) -> bool:
        return self._poisoned.value != 0

    @poisoned.setter
    def poisoned(self, value: bool) -> None:
        self._poisoned.value = int(value)

    def time(self, arguments: Sequence[Any], repetitions: int) -> list[float]:
        """Seconds that each run took, after one that is not counted."""
        call = self._arguments.check(arguments)
        results, _ = self._arguments.results(None, call)
        run, block = self._prepare(call, results)
        seconds = []
        run()
        for _ in range(repetitions):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        self._finish(run, block)
        return seconds

    def serialize(self) -> bytes:
        plain, streaming = self._codes
        head = {
            "format": _FORMAT,
            "interface": self.interface.as_data(),
            "layout": asdict(self._layout),
            "plain": len(plain),
            "streaming": None if streaming is None else len(streaming),
        }
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "little") + text + plain + (streaming or b"")

    @staticmethod
    def deserialize(data: bytes, pool: Callable[[], Pool] | None) -> CpuExecutable:
        """The inverse of `serialize`; raises LithifyError for bytes that it did not write."""
        try:
            length = int.from_bytes(data[:8], "little")
            head = json.loads(data[8 : 8 + length])
            if head["format"] != _FORMAT:
                raise LithifyError(f"a compiled kernel of format {head['format']}, this is {_FORMAT}")
            fields = dict(head["layout"])
            for name in ("parameters", "results", "sizes"):
                fields[name] = tuple(fields[name])
            for name in ("shared", "threads"):
                fields[name] = tuple((slot, size) for slot, size in fields[name])
            code = data[8 + length :]
            plain = code[: head["plain"]]
            streaming = None if head["streaming"] is None else code[head["plain"] :]
            if len(code) != head["plain"] + (head["streaming"] or 0):
                raise LithifyError("a compiled kernel that was cut short")
            interface = Interface.from_data(head["interface"])
            return CpuExecutable(interface, Layout(**fields), plain, streaming, pool)
        except (KeyError, TypeError, ValueError) as error:
            raise LithifyError(f"this is no compiled kernel: {error!r}") from error

    # ---- a call ------------------------------------------------------------------------------------------------

    def _prepare(self, call: Call, results: list[Array]) -> tuple[_Run, Array | None]:
        """A filled frame, and the memory for temporaries that it points to."""
        try:
            run = self._free.pop()
        except IndexError:
            run = _Run(self._layout.slots)
        layout, frame = self._layout, run.frame
        for k, slot in self._by_address:
            frame[slot] = address_of(call.values[k])
        for k, slot in self._by_value:
            value = call.values[k]
            ctypes.memmove(run.address + 8 * slot, value.tobytes(), value.nbytes)
        aligned = True
        for slot, result in zip(layout.results, results, strict=True):
            address = frame[slot] = address_of(result)
            aligned = aligned and address % policy.ALIGNMENT == 0
        for slot, name in zip(layout.sizes, self.interface.sizes, strict=True):
            frame[slot] = call.sizes[name]
        run.entry = self._streaming if self._streaming is not None and aligned else self._plain
        parallel = self._parallel or (not self._fixed and self._work(call.sizes)[0] >= policy.LEAST_WORK)
        run.pool = self._pool() if parallel and self._pool is not None else None
        return run, self._place_memory(run, call.sizes) if self._has_memory else None

    def _place_memory(self, run: _Run, sizes: Mapping[str, int]) -> Array:
        frame = run.frame
        total, places = self._places(sizes, run.pool)
        block = MEMORY.take(total)
        if self.poisoned:
            block.fill(POISON)
        start = address_of(block)
        for slot, offset, size in places:
            frame[slot] = start + offset
            if size >= 0:
                frame[slot + 1] = size
        return block

    def _places(self, sizes: Mapping[str, int], pool: Pool | None) -> tuple[int, list[tuple[int, int, int]]]:
        """The bytes of memory that a call needs, and what goes where: slot, offset, and the size for a thread or -1."""
        layout, threads = self._layout, pool.threads if pool is not None else 1
        own = [-(-n // policy.ALIGNMENT) * policy.ALIGNMENT for n in self._memory(sizes)]
        places, end = [], 0
        for k, (slot, _) in enumerate((*layout.shared, *layout.threads)):
            each = k >= len(layout.shared)
            places.append((slot, end, own[k] if each else -1))
            end += own[k] * (threads if each else 1)
        return end, places

    def _quick_for(self, kinds: Kinds) -> Quick:
        """The native call for arguments of such kinds, which needs a first call, and sizes that are known."""
        if not self._fixed:
            return never
        if not self._called:  # a process that calls once need not load it
            self._called = True
            return never
        if self._used_pool is not None and self._used_pool.closed:  # this is a child of the process that made it
            self._quicks.clear()
        found = self._quicks.get(kinds)
        if found is None:
            found = self._quicks[kinds] = self._bind(kinds)
        return found

    def _bind(self, kinds: Kinds) -> Quick:
        pool = self._used_pool = self._pool() if self._parallel and self._pool is not None else None
        total, places = self._places({}, pool)
        plan = Plan(
            self._plain.address,
            0 if self._streaming is None else self._streaming.address,
            0 if pool is None else pool.address,
            0 if pool is None else pool.entry,
            ctypes.addressof(self._poisoned),
            not self._layout.short,
            total,
            tuple(places),
        )
        return native_call.bind(
            self.interface, self._layout, plan, kinds, self._plain, self._streaming, pool, self._poisoned
        )

    def _finish(self, run: _Run, block: Array | None) -> None:
        """Keep frame and memory for later calls."""
        self._free.append(run)
        if block is not None:
            MEMORY.give(block)


class _Entry:
    """The native function of a module."""

    def __init__(self, code: bytes) -> None:
        self._library = Library(code, "lithify_run")
        self.address = self._library.addresses["lithify_run"]
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)


class _Run:
    """A frame, and what it is run with. Each call has its own; it is used again by later calls."""

    __slots__ = ("address", "entry", "frame", "pool")

    def __init__(self, slots: int) -> None:
        self.frame = (ctypes.c_int64 * slots)()
        self.address = ctypes.addressof(self.frame)
        self.entry: _Entry
        self.pool: Pool | None = None

    def __call__(self) -> None:
        pool = self.pool
        if pool is None:
            self.frame[POOL] = 0
            self.entry.function(self.address)
            return
        pool.run(self.entry.address, self.address)
