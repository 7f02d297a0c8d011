"""`lithify doctor`: what works on this machine, tried out, and how to enable the rest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.cli.console import fitted, out, working
from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from lithify.program.devices import DeviceStatus

_EXTRAS = (
    ("pyopencl", "opencl", "OpenCL devices"),
    ("PIL", "images", "images as arguments and results"),
    ("z3", "verify", "proofs of the laws of arithmetic"),
    ("matplotlib", "plots", "pictures in reports"),
)
_TRIED = "tried = λ xs ys . reduce (+) 0 (map (*) (zip xs ys))"
_TRIED_SIZE = 1000


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `needed` says whether lithify is of use without it."""

    what: str
    works: bool
    text: str
    hint: str = ""
    needed: bool = False


def examine() -> int:
    """Print what was found; 0 if what is needed works."""
    from rich.text import Text

    from lithify.cli.main import BROKEN

    with working("looking around"):
        found = [*_system(), *_devices(), *_extras(), *_tools()]
    width = max(len(each.what) for each in found)
    for each in found:
        mark, style = ("ok  ", "green") if each.works else ("FAIL", "bold red") if each.needed else ("no  ", "yellow")
        line = Text.assemble((f"{mark} ", style), f"{each.what:{width}}  {fitted(each.text, width + 7, out())}")
        if each.hint and not each.works:
            line.append(f"\n     {'':{width}}  -> {each.hint}", style="cyan")
        out().print(line)
    return 0 if all(each.works for each in found if each.needed) else BROKEN


def _system() -> Iterator[Finding]:
    from lithify.machine import host
    from lithify.targets.cache import CACHE
    from lithify.version import __version__

    yield Finding(
        "lithify", True, f"{__version__}, Python {platform.python_version()}, {platform.platform()}", needed=True
    )
    for package in ("numpy", "llvmlite"):
        version = _version(package)
        yield Finding(package, version is not None, version or "missing", f"pip install {package}", needed=True)
    model = host()
    caches = ", ".join(f"L{c.level} {_size(c.bytes)}" for c in model.caches)
    yield Finding(
        "processor",
        True,
        f"{model.name}, {model.cores} cores, {model.architecture}" + (f", {caches}" if caches else ""),
    )
    folder = CACHE.directory
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    writable = os.access(existing, os.W_OK)
    hint = "set LITHIFY_CACHE to a directory that can be written; until then every process compiles anew"
    yield Finding("cache", writable, f"{folder}" + ("" if writable else " cannot be written"), hint)


def _devices() -> Iterator[Finding]:
    from lithify.program.devices import DEFAULT, devices

    for status in devices():
        needed = status.name == DEFAULT
        if status.device is None:
            yield Finding(status.name, False, status.reason, status.hint, needed)
        else:
            yield _tried(status, needed)


def _tried(status: DeviceStatus, needed: bool) -> Finding:
    """Whether the device computes a dot product rightly."""
    import numpy as np

    from lithify.program import parse

    assert status.device is not None
    xs = np.arange(_TRIED_SIZE, dtype=np.float32) / _TRIED_SIZE
    try:
        result = float(parse(_TRIED)["tried"].on(status.device)(xs, xs))
    except LithifyError as error:
        return Finding(status.name, False, f"{status.description}: {error.message}", error.hint or "", needed)
    expected = float(xs.astype(np.float64) @ xs)
    if abs(result - expected) > 1e-3 * expected:
        text = f"{status.description}: a dot product gives {result} instead of {expected}"
        return Finding(status.name, False, text, "do not trust this device", needed)
    return Finding(status.name, True, f"{status.description}: a dot product is right", needed=needed)


def _extras() -> Iterator[Finding]:
    for module, extra, purpose in _EXTRAS:
        there = importlib.util.find_spec(module) is not None
        yield Finding(module.lower(), there, purpose, f"pip install 'lithify[{extra}]'")


def _tools() -> Iterator[Finding]:
    there = shutil.which("oclgrind")
    yield Finding(
        "oclgrind", there is not None, "checks OpenCL kernels for races and bounds", "apt-get install oclgrind"
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
