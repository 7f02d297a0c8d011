"""The devices of this machine by name: "cpu" (the default), "opencl:0", "opencl:1", .., "c"; and why others are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from lithify.lang.errors import LaunchError, LithifyError

if TYPE_CHECKING:
    from lithify.machine import DeviceModel
    from lithify.targets.base import Target

DEFAULT = "cpu"
_HOW_TO_OPENCL = "pip install 'lithify[opencl]', and a platform: on Debian and Ubuntu apt-get install pocl-opencl-icd"


@dataclass(frozen=True)
class Device:
    """A device: its name, the target that makes code for it, and its model."""

    name: str
    target: Target
    model: DeviceModel

    def __str__(self) -> str:
        return f"{self.name} ({self.model.name})"


@dataclass(frozen=True)
class DeviceStatus:
    """A device that is there (`device` is set), or a kind of device that is not: `reason` says why, `hint` what helps."""

    name: str
    description: str
    device: Device | None = None
    reason: str = ""
    hint: str = ""

    @property
    def available(self) -> bool:
        return self.device is not None


def device(name: str | Device | None = None) -> Device:
    """The device of a name ("cpu" if none is given; "opencl" is "opencl:0").

    Raises LaunchError with what there is for a name that no device has, and with the remedy for one that is missing.
    """
    if isinstance(name, Device):
        return name
    kind, _, number = (name or DEFAULT).partition(":")
    if kind not in _KINDS or (number and (kind != "opencl" or not number.isdigit())):
        known = ", ".join(status.name for status in devices() if status.available)
        raise LaunchError(f"there is no device {name!r}", hint=f"the devices of this machine are {known}")
    return _KINDS[kind](int(number or 0))


def devices() -> list[DeviceStatus]:
    """Every device of this machine, and every kind that has none, with the reason."""
    return [status for look in (_look_cpu, _look_opencl, _look_c) for status in look()]


def for_source(target: str) -> Device:
    """A device whose code can be shown: one of this machine, or else a usual one of the kind.

    Raises LaunchError for an unknown kind.
    """
    try:
        return device(target)
    except (ImportError, LaunchError):
        if target.partition(":")[0] != "opencl":
            raise
    from lithify.machine import GENERIC_GPU
    from lithify.targets.opencl import OpenCLTarget

    return Device("opencl (a usual GPU)", OpenCLTarget(None), GENERIC_GPU)


# ---- one function a kind -----------------------------------------------------------------------------------------------


@cache
def _cpu(number: int) -> Device:
    from lithify.machine.host import host
    from lithify.targets.cpu import CpuTarget

    return Device("cpu", CpuTarget(), host())


@cache
def _c(number: int) -> Device:
    from lithify.machine.host import host
    from lithify.targets.c import CTarget

    return Device("c", CTarget(), host())


@cache
def _opencl(number: int) -> Device:
    from lithify.targets.opencl import OpenCLTarget

    target = OpenCLTarget(number)
    return Device(f"opencl:{number}", target, target.model)


_KINDS: dict[str, Callable[[int], Device]] = {"cpu": _cpu, "opencl": _opencl, "c": _c}


def _look_cpu() -> Iterator[DeviceStatus]:
    try:
        found = _cpu(0)
    except ImportError as error:
        yield DeviceStatus("cpu", "this machine's CPU through LLVM", None, str(error), "pip install llvmlite")
        return
    model = found.model
    yield DeviceStatus("cpu", f"{model.name}, {model.cores} core(s), {model.architecture}", found)


def _look_c() -> Iterator[DeviceStatus]:
    try:
        found = _c(0)
        yield DeviceStatus("c", f"plain C11 through {found.target.fingerprint()}", found)
    except LithifyError as error:
        yield DeviceStatus("c", "plain C11 through the system's compiler", None, error.message, error.hint or "")


def _look_opencl() -> Iterator[DeviceStatus]:
    number = 0
    try:
        while True:
            found = _opencl(number)
            yield DeviceStatus(found.name, found.model.name, found)
            number += 1
    except ImportError as error:
        yield DeviceStatus("opencl:0", "any OpenCL platform", None, str(error), _HOW_TO_OPENCL)
    except LithifyError as error:
        if number == 0:
            yield DeviceStatus("opencl:0", "any OpenCL platform", None, error.message, error.hint or _HOW_TO_OPENCL)
