"""From OpenCL C to a program on a device; the build log in the error where the text is refused."""

from __future__ import annotations

import re
import warnings
from typing import Any

from lithify.lang.errors import LithifyError
from lithify.targets.opencl.devices import OpenCLDevice

MOST_COMPLAINTS = 5
MOST_CHARACTERS = 200
_DIVIDE_RIGHT = "-cl-fp32-correctly-rounded-divide-sqrt"


class BuildError(LithifyError):
    """The device's compiler refused a text that was generated for it."""


def build_options(device: OpenCLDevice) -> tuple[str, ...]:
    """What every program on the device is built with."""
    import pyopencl as cl

    options = ["-cl-std=CL1.2"]
    if device.handle.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append(_DIVIDE_RIGHT)
    return tuple(options)


def build(device: OpenCLDevice, text: str) -> Any:
    """The built program (pyopencl's). Raises BuildError with the compiler's log and the numbered text."""
    import pyopencl as cl

    missing = [e for e in ("cl_khr_fp64", "cl_khr_int64_base_atomics") if f"{e} : enable" in text
               and e not in device.extensions]  # fmt: skip
    if missing:
        raise BuildError(f"{device.description} lacks {' and '.join(missing)}, which the program needs",
                         hint="use f32 instead of f64, and 32-bit atomics")  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers that have nothing to complain about write logs, too
            return cl.Program(device.context, text).build(list(build_options(device)))
    except cl.RuntimeError as error:
        raise BuildError(_message(device, str(error), text)) from error


def load(device: OpenCLDevice, binary: bytes) -> Any:
    """The program from a binary that `binary_of` gave."""
    import pyopencl as cl

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cl.Program(device.context, [device.handle], [binary]).build()
    except (cl.RuntimeError, cl.LogicError) as error:
        raise BuildError(f"{device.description} does not take a binary that was made for it: {error}") from error


def binary_of(program: Any) -> bytes:
    """What the device's compiler made of the text."""
    import pyopencl as cl

    binary: bytes = program.get_info(cl.program_info.BINARIES)[0]
    return binary


def _message(device: OpenCLDevice, log: str, text: str) -> str:
    """The first complaints of the log, and the lines that they are about."""
    lines = text.splitlines()
    complaints = [line for line in log.splitlines() if "error" in line] or log.splitlines()
    numbers = {int(n) for line in complaints[:MOST_COMPLAINTS] for n in re.findall(r":(\d+):\d+", line)}
    shown = sorted({n + d for n in numbers for d in (-1, 0, 1)} & set(range(1, len(lines) + 1)))
    numbered = [f"{n:5} {_shortened(lines[n - 1])}" for n in shown]
    first = f"{device.description} does not compile the generated kernel; please report this"
    return "\n".join([first, *complaints[:MOST_COMPLAINTS], *numbered])


def _shortened(line: str) -> str:
    """A line of a kernel as errors show it: an expression may be thousands of characters long."""
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]} .."
