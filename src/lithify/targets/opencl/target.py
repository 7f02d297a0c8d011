"""The target `opencl`: OpenCL C through pyopencl, on any platform."""

from __future__ import annotations

import pickle

from lithify.kernel.ir import Program
from lithify.targets.base import Interface, Target, interface_of
from lithify.targets.opencl import compiler
from lithify.targets.opencl.devices import DEVICE_ALIGNMENT, OpenCLDevice, devices, select
from lithify.targets.opencl.executable import OpenCLExecutable
from lithify.targets.opencl.source import Source, program_source


class OpenCLTarget(Target):
    """An OpenCL device: `opencl:0`, part of a device's or platform's name, or None for the first one."""

    name = "opencl"

    def __init__(self, device: str | OpenCLDevice | None = None) -> None:
        self._wish = device

    @property
    def device(self) -> OpenCLDevice:
        """The device; looked for when it is first needed, so that text can be made on machines without one."""
        if not isinstance(self._wish, OpenCLDevice):
            self._wish = select(self._wish)
        return self._wish

    def source(self, program: Program) -> str:
        """OpenCL C 1.2; for a usual GPU where this machine has no device."""
        alignment = self.device.alignment if self._wish is not None or devices() else DEVICE_ALIGNMENT
        return program_source(program, alignment=alignment).text

    def compile(self, program: Program) -> OpenCLExecutable:
        """Build the program on the device; raises `compiler.BuildError` where its compiler refuses the text."""
        return self._build(*self._texts(program))

    def prepare(self, program: Program) -> bytes:
        """The texts: the device's compiler runs in the process that has the device."""
        return pickle.dumps(self._texts(program))

    def finish(self, data: bytes) -> OpenCLExecutable:
        """Build what `prepare` made; raises `compiler.BuildError` where the device's compiler refuses the text."""
        return self._build(*pickle.loads(data))

    def _texts(self, program: Program) -> tuple[Interface, Source, Source | None]:
        alignment = self.device.alignment
        source = program_source(program, 32, alignment)
        wide = program_source(program, 64, alignment) if source.plan.limits else None
        return interface_of(program), source, wide

    def _build(self, interface: Interface, source: Source, wide: Source | None) -> OpenCLExecutable:
        built = compiler.build(self.device, source.text)
        return OpenCLExecutable(interface, source.plan, self.device, built, wide)

    def load(self, data: bytes) -> OpenCLExecutable:
        """What `OpenCLExecutable.serialize` wrote for a device with the same `fingerprint`."""
        return OpenCLExecutable.deserialize(data, self.device)

    def fingerprint(self) -> str:
        """Device, driver, versions and build options."""
        return " ".join((self.device.fingerprint(), *compiler.build_options(self.device)))
