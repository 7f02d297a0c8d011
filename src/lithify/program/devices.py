"""The devices of this machine by name: "cpu" (the default), "opencl:0", .., "c"; and why others are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from lithify.lang.errors import LaunchError, LithifyError
from lithify.lang.given import text_given
from lithify.lang.spelling import choices

if TYPE_CHECKING:
    from lithify.machine import DeviceModel, OpenCLFacts
    from lithify.targets.base import Target
    from lithify.targets.opencl import OpenCLDevice

DEFAULT = "cpu"


@dataclass(frozen=True, repr=False)
class Device:
    """A device: its name, the target that makes code for it, and its model."""

    name: str
    target: Target
    model: DeviceModel

    def __str__(self) -> str:
        return f"{self.name} ({self.model.name})"

    def __repr__(self) -> str:
        return f"<device {self}>"


@dataclass(frozen=True)
class DeviceStatus:
    """A device that is there (`device` is set), or a kind that is not: `reason` says why, `hint` what helps."""

    name: str
    description: str
    device: Device | None = None
    reason: str = ""
    hint: str = ""

    @property
    def available(self) -> bool:
        return self.device is not None


def device(name: str | Device | None = None) -> Device:
    """The device of a name: "cpu" if none is given; "opencl" is the first of OpenCL, "opencl:nvidia" one by its name.

    Raises LaunchError with what there is for a name that no device has, and with the remedy for one that is missing.
    """
    if isinstance(name, Device):
        return name
    hint = 'write "cpu", "opencl:0" or "c"; lf.devices() lists what there is'
    wanted = DEFAULT if name is None else text_given(name, "a device's name", hint, LaunchError)
    kind, _, which = wanted.partition(":")
    if kind not in _KINDS or (which and kind != "opencl"):
        known = [status.name for status in devices() if status.available]
        raise LaunchError(f"there is no device {name!r}", hint=choices(kind, known, "the devices of this machine are"))
    return _KINDS[kind](which)


def devices() -> list[DeviceStatus]:
    """Every device of this machine, and every kind that has none, with the reason."""
    return [status for look in (_look_cpu, _look_opencl, _look_c) for status in look()]


def for_source(target: str) -> Device:
    """A device whose code can be shown: one of this machine, or else a usual one of the kind.

    Raises LaunchError for an unknown kind.
    """
    if target.partition(":")[0] not in _KINDS:
        hint = f"{choices(target, _KINDS)}; p.lowered(..) and p.kernels(..) are the levels above them"
        raise LaunchError(f"there is no target {target!r}", hint=hint)
    try:
        return device(target)
    except (ImportError, LaunchError):
        if target.partition(":")[0] != "opencl":
            raise
    from lithify.machine import GENERIC_GPU
    from lithify.targets.opencl import OpenCLTarget

    return Device("opencl (a usual GPU)", OpenCLTarget(), GENERIC_GPU)


# ---- one function a kind ---------------------------------------------------------------------------------------------


@cache
def _cpu(which: str) -> Device:
    from lithify.machine.host import host
    from lithify.targets.cpu import CpuTarget

    return Device("cpu", CpuTarget(), host())


@cache
def _c(which: str) -> Device:
    from lithify.machine.host import host
    from lithify.targets.c import CTarget

    return Device("c", CTarget(), replace(host(), api="c"))


def _opencl(which: str) -> Device:
    from lithify.targets.opencl import select

    return _opencl_device(select(f"opencl:{which}" if which.isdigit() else which or None))


@cache
def _opencl_device(found: OpenCLDevice) -> Device:
    from lithify.machine import model_of
    from lithify.targets.opencl import OpenCLTarget

    return Device(found.name, OpenCLTarget(found), model_of(_facts(found.handle)))


def _facts(handle: Any) -> OpenCLFacts:
    """What an OpenCL device (pyopencl's) says of itself."""
    import pyopencl as cl

    from lithify.machine import OpenCLFacts

    extensions = handle.extensions.split()
    return OpenCLFacts(
        name=handle.name.strip(),
        is_gpu=bool(handle.type & cl.device_type.GPU),
        compute_units=handle.max_compute_units,
        group_items=handle.max_work_group_size,
        item_sizes=tuple(handle.max_work_item_sizes),
        local_bytes=handle.local_mem_size,
        global_bytes=handle.global_mem_size,
        line_bytes=handle.global_mem_cacheline_size or 64,
        float_width=max(1, handle.native_vector_width_float),
        half_arithmetic="cl_khr_fp16" in extensions,
        double_arithmetic="cl_khr_fp64" in extensions,
    )


_KINDS: dict[str, Callable[[str], Device]] = {"cpu": _cpu, "opencl": _opencl, "c": _c}


def _look_cpu() -> Iterator[DeviceStatus]:
    try:
        found = _cpu("")
    except ImportError as error:
        yield DeviceStatus("cpu", "this machine's CPU through LLVM", None, str(error), "pip install llvmlite")
        return
    model = found.model
    yield DeviceStatus("cpu", f"{model.name}, {_plural(model.cores, 'core')}, {model.architecture}", found)


def _look_opencl() -> Iterator[DeviceStatus]:
    from lithify.targets.opencl import devices as opencl_devices

    try:
        for each in opencl_devices():
            yield DeviceStatus(each.name, f"{each.description}, {each.platform}", _opencl_device(each))
        _opencl("")
    except LithifyError as error:
        yield DeviceStatus("opencl", "any OpenCL platform", None, error.message, error.hint or "")


def _look_c() -> Iterator[DeviceStatus]:
    from lithify.targets.c.compiler import version

    try:
        found = _c("")
        yield DeviceStatus("c", f"plain C11, compiled with {version()}", found)
    except LithifyError as error:
        yield DeviceStatus("c", "plain C11 through the system's compiler", None, error.message, error.hint or "")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
