"""What this machine's memory does when nothing else is asked of it, measured: the roof for memory-bound programs.

Two programs of the language stream arrays much larger than the caches: a sum (reads only) and a scaling (reads and
writes). The bound is the better of the two; bytes are counted as the program reads and writes them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lithify.program.devices import Device

_STREAMS = "total = λ xs. reduce (+) 0 xs\nscaled = λ xs. map (λ x. x * 2) xs\n"
_BYTES_AN_ELEMENT = {"total": 4, "scaled": 8}
_CPU_ELEMENTS, _GPU_ELEMENTS = 1 << 25, 1 << 27
_REPETITIONS = 15


@cache
def measured(device: Device) -> Device:
    """The device with what was measured now: its streaming bandwidth beyond its caches, and what a launch takes."""
    from lithify.program.module import parse

    elements = _GPU_ELEMENTS if device.model.kind == "gpu" else _CPU_ELEMENTS
    data = np.ones(elements, np.float32)
    streams = parse(_STREAMS, "<bandwidth>")
    best = 0.0
    for name, bytes_ in _BYTES_AN_ELEMENT.items():
        compiled = streams[name].on(device).specialise(data).compiled
        seconds = min(compiled.executable.time((data,), _REPETITIONS))
        best = max(best, bytes_ * elements / seconds)
    one = np.ones(1, np.float32)
    call = min(streams["scaled"].on(device).specialise(one).compiled.executable.time((one,), _REPETITIONS))
    return replace(device, model=device.model.with_measured(bandwidths={"heap": best}, launch_seconds=call))
