"""A compiled program on an OpenCL device: buffers, launches, measurements."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lithify.lang.errors import LaunchError, LithifyError
from lithify.lang.scalars import SCALARS, Kind, Scalar
from lithify.targets.arguments import Arguments, Call
from lithify.targets.base import Executable, Interface, Resident, size_function
from lithify.targets.cdialect.dialect import computed
from lithify.targets.memory import ALIGNMENT, Array, address_of
from lithify.targets.opencl import compiler
from lithify.targets.opencl.devices import OpenCLDevice
from lithify.targets.plan import KernelLaunch, LaunchPlan

_FORMAT = 1  # of the serialised form
_LEAST_BYTES = 16  # OpenCL has no empty buffers


@dataclass(frozen=True, eq=False)
class DeviceArray(Resident):
    """An array in a device's memory; pass it where the array itself would be passed."""

    shape: tuple[int, ...]
    dtype: Any
    buffer: Any
    device: OpenCLDevice


class _Kernel:
    """One kernel with the functions that give its launch for given sizes."""

    def __init__(self, program: Any, launch: KernelLaunch, names: Sequence[str]) -> None:
        import pyopencl as cl

        self.launch = launch
        self.handle = cl.Kernel(program, launch.name)
        self._grid = size_function(launch.grid, names)
        self._group = size_function(launch.group, names)
        self._size_types = [np.int32 if bits == 32 else np.int64 for bits in launch.size_bits]

    def extents(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Work-items in all, and in a group."""
        grid, group = self._grid(sizes), self._group(sizes)
        dims = max(len(grid), len(group), 1)
        grid, group = grid + (1,) * (dims - len(grid)), group + (1,) * (dims - len(group))
        return tuple(g * w for g, w in zip(grid, group, strict=True)), group

    def arguments(self, slots: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """What the function takes."""
        values = [slots[i] for i in self.launch.arguments]
        return values + [t(sizes[n]) for t, n in zip(self._size_types, self.launch.sizes, strict=True)]


class OpenCLExecutable(Executable):
    """A program compiled for one OpenCL device."""

    def __init__(self, interface: Interface, plan: LaunchPlan, device: OpenCLDevice, program: Any) -> None:
        self.interface = interface
        self.device = device
        self._plan = plan
        self._program = program
        self._arguments = Arguments(interface)
        self._kernels = [_Kernel(program, launch, interface.sizes) for launch in plan.kernels]
        self._temporaries = size_function(plan.temporaries, interface.sizes)
        self._lock = threading.Lock()  # a kernel's arguments are set and then launched
        self._check_limits()

    # ---- calls ------------------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, out: Any = None, sizes: Mapping[str, int] | None = None) -> Any:
        call = self._arguments.check(arguments, sizes)
        results, copies = self._arguments.results(out, call)
        inputs = [self._input(value, p.role) for value, p in zip(call.values, self.interface.parameters, strict=True)]
        outputs = [self._output(array) for array in results]
        self._run(self.device.queue, [*inputs, *outputs, *self._temporary_buffers(call)], call.sizes)
        for array, buffer in zip(results, outputs, strict=True):
            self._fetch(array, buffer)
        self.device.queue.finish()
        for target, source in copies:
            target[...] = source
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

    def upload(self, *arguments: Any, sizes: Mapping[str, int] | None = None) -> tuple[Any, ...]:
        """The arguments of a call with arrays in the device's memory, for calls and measurements that repeat."""
        call = self._arguments.check(arguments, sizes)
        return tuple(
            self._resident(v) if isinstance(v, np.ndarray) and p.role != "scalar" else v
            for v, p in zip(call.values, self.interface.parameters, strict=True)
        )

    def time(self, arguments: Sequence[Any], repetitions: int) -> list[float]:
        """Seconds on the device from the start of the first kernel to the end of the last, by its own clock.

        Arguments are uploaded first; results stay on the device. One run that is not counted goes first.
        """
        call = self._arguments.check(self.upload(*arguments))
        inputs = [self._input(value, p.role) for value, p in zip(call.values, self.interface.parameters, strict=True)]
        results, _ = self._arguments.results(None, call)
        outputs = [self._buffer(array.nbytes) for array in results]
        slots = [*inputs, *outputs, *self._temporary_buffers(call)]
        queue = self.device.timed_queue
        self._run(queue, slots, call.sizes)
        queue.finish()
        seconds = []
        for _ in range(repetitions):
            events = self._run(queue, slots, call.sizes)
            queue.finish()
            seconds.append((events[-1].profile.end - events[0].profile.start) * 1e-9 if events else 0.0)
        return seconds

    def _run(self, queue: Any, slots: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """Launch the kernels; those without work-items are left out."""
        import pyopencl as cl

        events = []
        try:
            with self._lock:
                for kernel in self._kernels:
                    extents, group = kernel.extents(sizes)
                    if prod(extents):
                        events.append(kernel.handle(queue, extents, group, *kernel.arguments(slots, sizes)))
        except cl.Error as error:
            raise LaunchError(f"{self.device.description} refuses to run {self.interface.name}: {error}") from error
        return events

    # ---- memory -----------------------------------------------------------------------------------------------

    def _input(self, value: Any, role: str) -> Any:
        import pyopencl as cl

        if role == "scalar":
            return _passed(value)
        if isinstance(value, DeviceArray):
            if value.device != self.device:
                raise LaunchError(f"an argument lies on {value.device}, the program runs on {self.device}")
            return value.buffer
        flags = cl.mem_flags
        if self._usable(value):
            return cl.Buffer(self.device.context, flags.READ_ONLY | flags.USE_HOST_PTR, hostbuf=value)
        return self._resident(value).buffer

    def _usable(self, array: Array) -> bool:
        """Whether the device can work on the array where it lies."""
        return self.device.shares_memory and array.nbytes > 0 and address_of(array) % ALIGNMENT == 0

    def _resident(self, array: Array) -> DeviceArray:
        import pyopencl as cl

        buffer = self._buffer(array.nbytes)
        if array.nbytes:
            cl.enqueue_copy(self.device.queue, buffer, array.view(np.uint8) if array.ndim else array, is_blocking=True)
        return DeviceArray(array.shape, array.dtype, buffer, self.device)

    def _buffer(self, size: int) -> Any:
        import pyopencl as cl

        try:
            return cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, max(size, _LEAST_BYTES))
        except cl.Error as error:
            raise LaunchError(f"{self.device.description} has no room for {size} bytes: {error}") from error

    def _output(self, array: Array) -> Any:
        import pyopencl as cl

        flags = cl.mem_flags
        if self._usable(array):
            return cl.Buffer(self.device.context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=array)
        return self._buffer(array.nbytes)

    def _fetch(self, array: Array, buffer: Any) -> None:
        import pyopencl as cl

        if not array.nbytes:
            return
        queue = self.device.queue
        if self._usable(array):  # mapping makes what the device wrote visible here
            mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0, array.shape, array.dtype)
            mapped.base.release(queue)
        else:
            cl.enqueue_copy(queue, array, buffer, is_blocking=True)

    def _temporary_buffers(self, call: Call) -> list[Any]:
        return [self._buffer(size) for size in self._temporaries(call.sizes)]

    # ---- limits and bytes -------------------------------------------------------------------------------------

    def _check_limits(self) -> None:
        import pyopencl as cl

        device = self.device.handle
        for kernel in self._kernels:
            items = prod(int(d) for d in kernel.launch.group)
            most = kernel.handle.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device)
            local = kernel.handle.get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, device)
            if items > most:
                raise LaunchError(f"{kernel.launch.name} has groups of {items} work-items; {self.device.description} "
                                  f"runs at most {most} of this kernel")  # fmt: skip
            if local > device.local_mem_size:
                raise LaunchError(f"{kernel.launch.name} takes {local} bytes of local memory; "
                                  f"{self.device.description} has {device.local_mem_size}")  # fmt: skip

    def serialize(self) -> bytes:
        head = {"format": _FORMAT, "interface": self.interface.as_data(), "plan": self._plan.as_data()}
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "little") + text + compiler.binary_of(self._program)

    @staticmethod
    def deserialize(data: bytes, device: OpenCLDevice) -> OpenCLExecutable:
        """The inverse of `serialize`; raises LithifyError for bytes that it did not write."""
        try:
            length = int.from_bytes(data[:8], "little")
            head = json.loads(data[8 : 8 + length])
            interface, plan = Interface.from_data(head["interface"]), LaunchPlan.from_data(head["plan"])
            if head["format"] != _FORMAT:
                raise ValueError(head["format"])
        except (ValueError, KeyError, TypeError) as error:
            raise LithifyError("these bytes are not a compiled OpenCL program of this version") from error
        return OpenCLExecutable(interface, plan, device, compiler.load(device, data[8 + length :]))


def _passed(value: Any) -> Any:
    """A scalar as it is passed: bytes for truth values, f32 for narrower floats."""
    scalar = _SCALARS[value.dtype]
    if scalar.kind is Kind.BOOL:
        return np.uint8(value)
    return value.astype(computed(scalar).dtype)


_SCALARS: dict[np.dtype[Any], Scalar] = {s.dtype: s for s in SCALARS.values()}
