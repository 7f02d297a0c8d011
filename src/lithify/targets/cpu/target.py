"""The target `cpu`: LLVM IR, compiled for the machine at hand.

The emission is imported when something is compiled: a process that finds its programs compiled only loads them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lithify.targets.base import Target, interface_of
from lithify.targets.cache import CACHE
from lithify.targets.cpu import engine, runtime
from lithify.targets.cpu.executable import CpuExecutable
from lithify.targets.cpu.pool import Pool, pool_of, thread_count

if TYPE_CHECKING:
    from lithify.kernel.ir import Program


class CpuTarget(Target):
    """This machine's CPU. `threads`: how many a parallel loop uses (LITHIFY_THREADS, or one for each CPU)."""

    name = "cpu"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def source(self, program: Program) -> str:
        """The LLVM IR of the program."""
        from lithify.targets.cpu.module import emit

        return emit(program, streaming=False)[0]

    def assembly(self, program: Program) -> str:
        """The machine code of the program as assembly text."""
        return engine.assembly(self.source(program))

    def compile(self, program: Program) -> CpuExecutable:
        """Machine code for this CPU."""
        from lithify.targets.cpu.module import emit, has_streams

        text, layout = emit(program, streaming=False)
        plain = engine.compile_text(text)
        streaming = engine.compile_text(emit(program, streaming=True)[0]) if has_streams(program) else None
        return CpuExecutable(interface_of(program), layout, plain, streaming, self._pool())

    def load(self, data: bytes) -> CpuExecutable:
        """What `CpuExecutable.serialize` wrote, on a machine with the same `fingerprint`."""
        return CpuExecutable.deserialize(data, self._pool())

    def fingerprint(self) -> str:
        """Triple, CPU, features and LLVM's version."""
        return " ".join(engine.host())

    def _pool(self) -> partial[Pool] | None:
        return partial(pool_of, self.threads, self._runtime) if self.threads > 1 else None

    def _runtime(self) -> bytes:
        """The object code of the pool's functions."""
        text = runtime.source(engine.host()[0].partition("-")[0])
        key = CACHE.key("cpu-runtime", self.fingerprint(), text)
        code = CACHE.get(key)
        if code is None:
            code = engine.compile_text(text)
            CACHE.put(key, code)
        return code
