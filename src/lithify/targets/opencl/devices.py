"""The OpenCL devices of this machine, over all installed platforms."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any

from lithify.lang.errors import LaunchError

# What every OpenCL device gives the buffers that it allocates: the size of its largest vector type.
DEVICE_ALIGNMENT = 128


@dataclass(frozen=True)
class OpenCLDevice:
    """A device: `name` is `opencl:0`, `opencl:1`, .. in the order of the platforms; `handle` is pyopencl's device.

    `process` is the one that asked the drivers for it, who then started their threads there.
    """

    name: str
    platform: str
    description: str
    handle: Any
    process: int = field(default_factory=os.getpid, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name} ({self.description}; {self.platform})"

    @property
    def shares_memory(self) -> bool:
        """Whether the device works on the memory of the host, so that nothing needs to be copied.

        oclgrind takes host memory, too, but does not know that it was initialised.
        """
        import pyopencl as cl

        return bool(self.handle.type & cl.device_type.CPU) and not self.is_oclgrind

    @cached_property
    def alignment(self) -> int:
        """The alignment of every buffer that programs see: memory of the host is used where it lies."""
        return 1 if self.shares_memory else DEVICE_ALIGNMENT

    @property
    def is_oclgrind(self) -> bool:
        """Whether this is the checker oclgrind."""
        return "oclgrind" in self.platform.lower()

    @property
    def extensions(self) -> frozenset[str]:
        """What the device has beyond OpenCL 1.2's core."""
        return frozenset(self.handle.extensions.split())

    @cached_property
    def context(self) -> Any:
        """The context that all programs on the device share."""
        import pyopencl as cl

        return cl.Context([self.handle])

    @cached_property
    def queue(self) -> Any:
        """The queue for calls."""
        import pyopencl as cl

        return cl.CommandQueue(self.context)

    def check_process(self) -> None:
        """Raises LaunchError in a fork of a process that has loaded OpenCL: the driver's threads stayed behind, and a
        call would wait for them for ever.
        """
        if os.getpid() != self.process:
            raise LaunchError(
                f"{self.name} does not work in a fork of a process that used OpenCL or listed its devices",
                hint='use OpenCL after the fork only, or start processes by multiprocessing.get_context("spawn")',
            )

    @cached_property
    def timed_queue(self) -> Any:
        """The queue for measurements."""
        import pyopencl as cl

        return cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)

    def fingerprint(self) -> str:
        """Device, driver and versions."""
        d = self.handle
        return "; ".join(str(part).strip() for part in (d.platform.name, d.platform.version, d.name, d.version,
                                                       d.driver_version, d.opencl_c_version))  # fmt: skip


@cache
def devices() -> tuple[OpenCLDevice, ...]:
    """All devices; none where pyopencl or every platform is missing."""
    try:
        import pyopencl as cl
    except ImportError:
        return ()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # no platform is installed
        return ()
    found = []
    for platform in platforms:
        try:
            found += [(platform.name.strip(), handle) for handle in platform.get_devices()]
        except cl.Error:  # a platform may be installed without a device behind it
            continue
    return tuple(OpenCLDevice(f"opencl:{i}", p, h.name.strip(), h) for i, (p, h) in enumerate(found))


def select(wish: str | None = None) -> OpenCLDevice:
    """The device named `opencl:1`, or the first whose platform or description contains the wish; default: the first.

    Raises LaunchError, listing what there is.
    """
    found = devices()
    if not found:
        if find_spec("pyopencl") is None:
            raise LaunchError("pyopencl, which OpenCL devices need, is not installed", hint="pip install pyopencl")
        raise LaunchError(
            "this machine has no OpenCL device",
            hint="for the CPU on Debian and Ubuntu: apt-get install pocl-opencl-icd",
        )
    if wish is None or wish == "opencl":
        return found[0]
    for device in found:
        if device.name == wish or (wish.isdigit() and device.name == f"opencl:{wish}"):
            return device
    for device in found:
        if wish.lower() in f"{device.platform} {device.description}".lower():
            return device
    raise LaunchError(f"there is no OpenCL device {wish}", hint="there are: " + _listed(found))


def _listed(found: Sequence[OpenCLDevice]) -> str:
    return ", ".join(map(str, found))
