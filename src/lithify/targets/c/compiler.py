"""The system's C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lithify.lang.errors import LithifyError

WARNINGS = (
    *("-std=c11", "-Wall", "-Wextra"),
    # Programs may make comparisons whose result is known. (What one compiler does not know it is not to mention.)
    *("-Wno-type-limits", "-Wno-tautological-compare", "-Wno-bool-compare", "-Wno-unknown-warning-option"),
)
# -O3 takes up to ten times as long on unrolled kernels, for code that is not faster.
OPTIMISED = ("-O2", "-ftree-vectorize", "-march=native", "-ffp-contract=fast")
_PROBE = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"


class CompileError(LithifyError):
    """The C compiler refused a text that was generated for it, or there is no compiler."""


@cache
def find_compiler() -> str | None:
    """The compiler named by CC, or cc, gcc or clang; None where there is none."""
    named = os.environ.get("CC")
    candidates = ([shlex.split(named)[0]] if named else []) + ["cc", "gcc", "clang"]
    return next((path for name in candidates if (path := shutil.which(name))), None)


def compiler() -> str:
    """The compiler; raises CompileError where there is none."""
    found = find_compiler()
    if found is None:
        raise CompileError("there is no C compiler on this machine",
                           hint="install gcc or clang, or use the target cpu, which needs none")  # fmt: skip
    return found


@cache
def version() -> str:
    """The first line of the compiler's own description."""
    return _run([compiler(), "--version"]).splitlines()[0]


@cache
def openmp_options() -> tuple[str, ...]:
    """What turns OpenMP on, if the compiler has it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probe.c")
        path.write_text(_PROBE)
        try:
            _run([compiler(), "-fopenmp", str(path), "-o", str(Path(folder, "probe"))])
        except CompileError:
            return ()
    return ("-fopenmp",)


def user_options() -> tuple[str, ...]:
    """The options in the variable CFLAGS, as other tools take them."""
    return tuple(shlex.split(os.environ.get("CFLAGS", "")))


def shared_library(text: str, options: Sequence[str]) -> bytes:
    """The text as a shared library. Raises CompileError with the compiler's messages."""
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder, "program.c"), Path(folder, "program.so")
        path.write_text(text)
        _run([compiler(), *WARNINGS, *options, "-fPIC", "-shared", str(path), "-o", str(library), "-lm"], text)
        return library.read_bytes()


def _run(command: Sequence[str], text: str = "") -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        numbered = "\n".join(f"{n:4} {line}" for n, line in enumerate(text.splitlines(), 1))
        raise CompileError(
            f"{Path(command[0]).name} does not compile a generated program\n{done.stderr.strip()}\n{numbered}"
        )
    return done.stdout
