"""Running a program under oclgrind, which executes OpenCL kernels step by step and reports what they do wrong.

oclgrind takes the place of the OpenCL platform of a process, so the program runs in a child process. The kernels are
those of any other device. It is for small sizes: it executes some million instructions a second.
"""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lithify.kernel.ir import Program
from lithify.lang.errors import LaunchError
from lithify.targets.base import interface_of
from lithify.targets.opencl.source import Source, program_source

CHECKS = ("--data-races", "--uninitialized", "--check-api", "--max-errors", "200")

# Where components of a vector make a shorter one, oclgrind 21.10 loses track of what is initialised: it reports values
# that are, or crashes; so it does where components are assigned under conditions. Texts in which that happens are run
# without the check.
_UNINITIALIZED = "--uninitialized"
_SHORTER_VECTOR = re.compile(r"\.s[0-9a-f]{2,}")

# What last groups read was written before their counter said so: oclgrind does not know, and reports races. Those in
# local memory it reports rightly.
_ORDERED_BY_COUNTERS = "is_last("
_RACE_ON_HEAP = re.compile(r"data race at global memory")
_ALL_FINDINGS = ("--max-errors", "1000000")

_CHILD = """
import pickle, sys
sys.path[:0] = pickle.load(open(sys.argv[1] + "/path", "rb"))
from lithify.targets.opencl.oclgrind import child
child(sys.argv[1])
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One complaint: its first line (`kind`) and the lines that say where."""

    kind: str
    details: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((self.kind, *self.details))


@dataclass(frozen=True, slots=True)
class Report:
    """What came out, and what oclgrind found with the options given; no findings means that no check failed."""

    results: Any
    findings: tuple[Finding, ...]
    options: tuple[str, ...]


def is_available() -> bool:
    """Whether oclgrind is installed."""
    return shutil.which("oclgrind") is not None


def check(program: Program, arguments: Sequence[Any], options: Sequence[str] = CHECKS, timeout: float = 120) -> Report:
    """Run a program under oclgrind on the arguments of a call.

    Raises LaunchError when oclgrind is missing or the child process fails for another reason than a finding.
    """
    return check_source(program_source(program, 64), interface_of(program), arguments, options, timeout)


def check_source(
    source: Source, interface: Any, arguments: Sequence[Any], options: Sequence[str] = CHECKS, timeout: float = 120
) -> Report:
    """As `check`, for a text that may have been changed.

    Reads of what nothing wrote are left out where oclgrind cannot look for them; the report's options say so. So are
    races on global memory in programs whose groups count themselves.
    """
    if _SHORTER_VECTOR.search(source.text):
        options = [option for option in options if option != _UNINITIALIZED]
    counted = _ORDERED_BY_COUNTERS in source.text
    if not is_available():
        raise LaunchError("oclgrind is not installed", hint="on Debian and Ubuntu: apt-get install oclgrind")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "path").write_bytes(pickle.dumps(sys.path))
        job = (source.text, source.plan.as_data(), interface.as_data(), tuple(arguments))
        (place / "job").write_bytes(pickle.dumps(job))
        chosen = [*options, *(_ALL_FINDINGS if counted else ()), "--log", str(place / "log")]
        command = ["oclgrind", *chosen, sys.executable, "-c", _CHILD, folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired as error:
            raise LaunchError(f"oclgrind took more than {timeout} s for {interface.name}",
                              hint="give it smaller sizes") from error  # fmt: skip
        findings = _findings((place / "log").read_text() if (place / "log").exists() else "")
        if counted:
            findings = tuple(f for f in findings if not _RACE_ON_HEAP.search(f.kind))
        if _UNINITIALIZED in options and any("Unsupported instruction" in line for f in findings for line in f.details):
            others = [option for option in options if option != _UNINITIALIZED]
            return check_source(source, interface, arguments, others, timeout)
        if not (place / "results").exists():
            if findings:
                return Report(None, findings, tuple(options))
            if done.returncode < 0 and _UNINITIALIZED in options:  # it crashed
                others = [option for option in options if option != _UNINITIALIZED]
                return check_source(source, interface, arguments, others, timeout)
            words = done.stderr.strip()[-2000:]
            raise LaunchError(f"{interface.name} did not run under oclgrind (status {done.returncode})\n{words}")
        return Report(pickle.loads((place / "results").read_bytes()), findings, tuple(options))


def child(folder: str) -> None:
    """What the child process does: build, run, write the results."""
    from lithify.targets.base import Interface
    from lithify.targets.opencl import compiler
    from lithify.targets.opencl.devices import devices
    from lithify.targets.opencl.executable import OpenCLExecutable
    from lithify.targets.plan import LaunchPlan

    place = Path(folder)
    text, plan, interface, arguments = pickle.loads((place / "job").read_bytes())
    device = next(d for d in devices() if d.is_oclgrind)
    built = compiler.build(device, text)
    executable = OpenCLExecutable(Interface.from_data(interface), LaunchPlan.from_data(plan), device, built, None)
    results = executable(*arguments)
    (place / "results").write_bytes(pickle.dumps(results))


def _findings(log: str) -> tuple[Finding, ...]:
    """The blocks of a log; oclgrind separates them by empty lines."""
    blocks = [[line.strip() for line in block.splitlines() if line.strip()] for block in log.split("\n\n")]
    return tuple(Finding(lines[0], tuple(lines[1:])) for lines in blocks if lines)
