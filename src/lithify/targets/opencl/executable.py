"""A compiled program on an OpenCL device: buffers, launches, measurements."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from lithify.lang.errors import LaunchError, LithifyError
from lithify.lang.scalars import SCALARS, Kind, Scalar
from lithify.targets.arguments import Arguments, Call
from lithify.targets.base import POISON, Executable, Interface, Resident, size_function
from lithify.targets.cdialect.dialect import computed
from lithify.targets.cdialect.width import LARGEST
from lithify.targets.memory import Array, address_of, aligned_empty
from lithify.targets.opencl import compiler
from lithify.targets.opencl.counters import Counters
from lithify.targets.opencl.devices import OpenCLDevice
from lithify.targets.opencl.source import Source
from lithify.targets.plan import KernelLaunch, LaunchPlan

_FORMAT = 2  # of the serialised form
_LEAST_BYTES = 16  # OpenCL has no empty buffers


@dataclass(frozen=True, eq=False)
class DeviceArray(Resident):
    """An array in a device's memory; pass it where the array itself would be passed."""

    shape: tuple[int, ...]
    dtype: Any
    buffer: Any
    device: OpenCLDevice
    below: int | None = None
    distinct: bool = False


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

    def check_limits(self, device: OpenCLDevice) -> None:
        """Raises LaunchError where the device cannot run groups of this kernel."""
        import pyopencl as cl

        info = cl.kernel_work_group_info
        name, handle = self.launch.name, device.handle
        items = prod(int(d) for d in self.launch.group)
        most = self.handle.get_work_group_info(info.WORK_GROUP_SIZE, handle)
        local = self.handle.get_work_group_info(info.LOCAL_MEM_SIZE, handle)
        if items > most:
            raise LaunchError(
                f"{name} has groups of {items} work-items; {device.description} runs at most {most} of this kernel"
            )
        if local > handle.local_mem_size:
            raise LaunchError(
                f"{name} takes {local} bytes of local memory; {device.description} has {handle.local_mem_size}"
            )

    def arguments(self, slots: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """What the function takes."""
        values = [slots[i] for i in self.launch.arguments]
        return values + [t(sizes[n]) for t, n in zip(self._size_types, self.launch.sizes, strict=True)]


class _Compiled:
    """A built program: its kernels, and for which sizes its index arithmetic is wide enough."""

    def __init__(self, plan: LaunchPlan, program: Any, device: OpenCLDevice, names: Sequence[str]) -> None:
        self.plan, self.program = plan, program
        self.kernels = [_Kernel(program, launch, names) for launch in plan.kernels]
        self._limits = size_function(plan.limits, names)
        for kernel in self.kernels:
            kernel.check_limits(device)

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Whether no index leaves 32 bits."""
        return all(limit <= LARGEST[32] for limit in self._limits(sizes))


class OpenCLExecutable(Executable):
    """A program compiled for one OpenCL device.

    A symbolic program is compiled with indices of 32 bits; `wide` is the same with 64 bits, compiled when sizes come
    that need it.
    """

    def __init__(
        self, interface: Interface, plan: LaunchPlan, device: OpenCLDevice, program: Any, wide: Source | None
    ) -> None:
        self.interface = interface
        self.device = device
        self._compiled = _Compiled(plan, program, device, interface.sizes)
        self._wide_source, self._wide = wide, None if wide is None else _once(self._compile_wide)
        self._arguments = Arguments(interface)
        count = len(interface.parameters)
        self._alignments = plan.alignments[:count], plan.alignments[count:]
        self._temporaries = size_function(plan.temporaries, interface.sizes)
        self._counters = Counters(device.context, plan.counters)
        self._lock = threading.Lock()  # a kernel's arguments are set and then launched

    def _compile_wide(self) -> _Compiled:
        assert self._wide_source is not None
        program = compiler.build(self.device, self._wide_source.text)
        return _Compiled(self._wide_source.plan, program, self.device, self.interface.sizes)

    def _for(self, sizes: Mapping[str, int]) -> _Compiled:
        if self._wide is None or self._compiled.fits(sizes):
            return self._compiled
        return self._wide()

    # ---- calls ------------------------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, out: Any = None, sizes: Mapping[str, int] | None = None) -> Any:
        self.device.check_process()
        call = self._arguments.check(arguments, sizes)
        results, copies = self._arguments.results(out, call)
        inputs = self._inputs(call)
        usable = [self._usable(array, alignment) for array, alignment in zip(results, self._alignments[1], strict=True)]
        outputs = [self._output(array, where) for array, where in zip(results, usable, strict=True)]
        temporaries = self._temporary_buffers(call)
        self._run(self.device.queue, [*inputs, *outputs, *temporaries], call.sizes)
        for array, buffer, where in zip(results, outputs, usable, strict=True):
            self._fetch(array, buffer, where)
        self.device.queue.finish()
        self._counters.put_back(temporaries)
        for target, source in copies:
            target[...] = source
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

    def upload(self, *arguments: Any, sizes: Mapping[str, int] | None = None) -> tuple[Any, ...]:
        """The arguments of a call with arrays in the device's memory, for calls and measurements that repeat."""
        self.device.check_process()
        call = self._arguments.check(arguments, sizes)
        return tuple(
            replace(self._resident(v), below=below, distinct=p.distinct)
            if isinstance(v, np.ndarray) and p.role != "scalar"
            else v
            for v, p, below in zip(call.values, self.interface.parameters, self._arguments.bounds(call), strict=True)
        )

    def time(self, arguments: Sequence[Any], repetitions: int) -> list[float]:
        """Seconds on the device from the start of the first kernel to the end of the last, by its own clock.

        Arguments are uploaded first; results stay on the device. One run that is not counted goes first.
        """
        call = self._arguments.check(self.upload(*arguments))
        inputs = self._inputs(call)
        results, _ = self._arguments.results(None, call)
        outputs = [self._buffer(array.nbytes) for array in results]
        temporaries = self._temporary_buffers(call)
        slots = [*inputs, *outputs, *temporaries]
        queue = self.device.timed_queue
        self._run(queue, slots, call.sizes)
        queue.finish()
        seconds = []
        for _ in range(repetitions):
            events = self._run(queue, slots, call.sizes)
            queue.finish()
            seconds.append((events[-1].profile.end - events[0].profile.start) * 1e-9 if events else 0.0)
        self._counters.put_back(temporaries)
        return seconds

    def _run(self, queue: Any, slots: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        """Launch the kernels; those without work-items are left out."""
        import pyopencl as cl

        launches = []
        try:
            with self._lock:
                for kernel in self._for(sizes).kernels:  # all arguments first: no kernel waits for those of the next
                    extents, group = kernel.extents(sizes)
                    if prod(extents):
                        kernel.handle.set_args(*kernel.arguments(slots, sizes))
                        launches.append((kernel.handle, extents, group))
                events = [cl.enqueue_nd_range_kernel(queue, *launch) for launch in launches]
        except cl.Error as error:
            raise LaunchError(f"{self.device.description} refuses to run {self.interface.name}: {error}") from error
        return events

    # ---- memory -----------------------------------------------------------------------------------------------

    def _inputs(self, call: Call) -> list[Any]:
        described = zip(call.values, self.interface.parameters, self._alignments[0], strict=True)
        return [self._input(value, parameter.role, alignment) for value, parameter, alignment in described]

    def _input(self, value: Any, role: str, alignment: int) -> Any:
        import pyopencl as cl

        if role == "scalar":
            return _passed(value)
        if isinstance(value, DeviceArray):
            if value.device != self.device:
                raise LaunchError(f"an argument lies on {value.device}, the program runs on {self.device}")
            return value.buffer
        if not self.device.shares_memory or not value.nbytes:
            return self._resident(value).buffer
        if not self._usable(value, alignment):
            moved = aligned_empty(value.shape, value.dtype)
            moved[...] = value
            value = moved
        flags = cl.mem_flags
        return cl.Buffer(self.device.context, flags.READ_ONLY | flags.USE_HOST_PTR, hostbuf=value)

    def _usable(self, array: Array, alignment: int) -> bool:
        """Whether the device can work on the array where it lies."""
        return self.device.shares_memory and array.nbytes > 0 and address_of(array) % alignment == 0

    def _resident(self, array: Array) -> DeviceArray:
        import pyopencl as cl

        buffer = self._buffer(array.nbytes)
        if array.nbytes:
            cl.enqueue_copy(self.device.queue, buffer, array.view(np.uint8) if array.ndim else array, is_blocking=True)
        return DeviceArray(array.shape, array.dtype, buffer, self.device)

    def _buffer(self, size: int) -> Any:
        import pyopencl as cl

        size = max(size, _LEAST_BYTES)
        try:
            buffer = cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, size)
            if self.poisoned:
                cl.enqueue_fill_buffer(self.device.queue, buffer, np.full(1, POISON, np.uint8), 0, size)
        except cl.Error as error:
            raise LaunchError(f"{self.device.description} has no room for {size} bytes: {error}") from error
        return buffer

    def _output(self, array: Array, in_place: bool) -> Any:
        import pyopencl as cl

        if in_place:
            flags = cl.mem_flags
            return cl.Buffer(self.device.context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=array)
        return self._buffer(array.nbytes)

    def _fetch(self, array: Array, buffer: Any, in_place: bool) -> None:
        import pyopencl as cl

        queue = self.device.queue
        if in_place:  # mapping makes what the device wrote visible here
            mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0, array.shape, array.dtype)
            mapped.base.release(queue)
        elif array.nbytes:
            cl.enqueue_copy(queue, array, buffer, is_blocking=True)

    def _temporary_buffers(self, call: Call) -> list[Any]:
        sizes = enumerate(self._temporaries(call.sizes))
        return [self._counters.take(size) if k in self._counters.places else self._buffer(size) for k, size in sizes]

    # ---- bytes ------------------------------------------------------------------------------------------------

    def serialize(self) -> bytes:
        compiled, wide = self._compiled, self._wide_source
        head = {
            "format": _FORMAT,
            "interface": self.interface.as_data(),
            "plan": compiled.plan.as_data(),
            "wide": None if wide is None else {"text": wide.text, "plan": wide.plan.as_data()},
        }
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "little") + text + compiler.binary_of(compiled.program)

    @staticmethod
    def deserialize(data: bytes, device: OpenCLDevice) -> OpenCLExecutable:
        """The inverse of `serialize`; raises LithifyError for bytes that it did not write."""
        try:
            length = int.from_bytes(data[:8], "little")
            head = json.loads(data[8 : 8 + length])
            if head["format"] != _FORMAT:
                raise ValueError(head["format"])
            interface, plan = Interface.from_data(head["interface"]), LaunchPlan.from_data(head["plan"])
            wide = head["wide"]
            source = None if wide is None else Source(wide["text"], LaunchPlan.from_data(wide["plan"]))
        except (ValueError, KeyError, TypeError) as error:
            raise LithifyError("these bytes are not a compiled OpenCL program of this version") from error
        return OpenCLExecutable(interface, plan, device, compiler.load(device, data[8 + length :]), source)


def _once(make: Callable[[], _Compiled]) -> Callable[[], _Compiled]:
    """A function that calls `make` at its first call only, by whatever thread."""
    lock = threading.Lock()
    made: list[_Compiled] = []

    def get() -> _Compiled:
        with lock:
            if not made:
                made.append(make())
        return made[0]

    return get


def _passed(value: Any) -> Any:
    """A scalar as it is passed: bytes for truth values, f32 for narrower floats."""
    scalar = _SCALARS[value.dtype]
    if scalar.kind is Kind.BOOL:
        return np.uint8(value)
    return value.astype(computed(scalar).dtype)


_SCALARS: dict[np.dtype[Any], Scalar] = {s.dtype: s for s in SCALARS.values()}
