"""The target `c`: one self-contained C11 file and its header, compiled with the system's compiler if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lithify.kernel.ir import Program
from lithify.targets.base import Target, interface_of
from lithify.targets.c import compiler
from lithify.targets.c.executable import CExecutable
from lithify.targets.c.source import program_source
from lithify.targets.cpu import engine


class CTarget(Target):
    """C to ship. `options` are the compiler's; parallel loops use OpenMP where the compiler has it."""

    name = "c"

    def __init__(self, options: Sequence[str] = compiler.OPTIMISED, *, openmp: bool = True) -> None:
        self._options, self._openmp = tuple(options), openmp

    @property
    def options(self) -> tuple[str, ...]:
        """All options that programs are compiled with."""
        openmp = compiler.openmp_options() if self._openmp else ()
        return (*self._options, *openmp, *compiler.user_options())

    def source(self, program: Program) -> str:
        """The program as one text, the header included."""
        return program_source(program).standalone

    def compile(self, program: Program) -> CExecutable:
        """Compile with the system's compiler; raises `compiler.CompileError` with its messages."""
        source = program_source(program)
        library = compiler.shared_library(source.standalone, self.options)
        return CExecutable(interface_of(program), source.function, library)

    def load(self, data: bytes) -> CExecutable:
        """What `CExecutable.serialize` wrote, on a machine with the same `fingerprint`."""
        return CExecutable.deserialize(data)

    def fingerprint(self) -> str:
        """Compiler, options, and the CPU that `-march=native` stands for."""
        return " ".join((compiler.version(), *self.options, *engine.host()))


def write(program: Program, directory: str | Path) -> tuple[Path, Path]:
    """Write NAME.c and NAME.h for a program into a directory; returns both paths."""
    source = program_source(program)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    text, header = folder / f"{source.function}.c", folder / f"{source.function}.h"
    text.write_text(source.text)
    header.write_text(source.header)
    return text, header
