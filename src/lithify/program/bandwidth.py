"""What this machine does when nothing else is asked of it, measured: the roofs for programs.

Two programs of the language stream arrays much larger than the caches: a sum (reads only) and a scaling (reads and
writes). The bound is the better of the two; bytes are counted as the program reads and writes them. A third keeps the
arithmetic units busy: as many independent chains of multiplications and additions as they need, in registers.
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
_CHAINS = """
chains = λ (xs : p.n.{scalar}) (a : {scalar}) (b : {scalar}) .
  map[{level}] (λ row . map[vec] (λ x . x)
    (reduce[seq, private] (λ acc i . map[vec] (λ x . x * a + b) acc) (map[vec] (λ x . x) row)
      (generate steps (λ i . i32 i)))) xs
"""
# Vectors that are worked on side by side: additions take four cycles, two start in each.
_VECTORS, _STEPS = 8, 20_000
# Each run takes some 25 microseconds; of 15 the best was a tenth below that of 400, and swung from process to process.
_BUSY_REPETITIONS = 400
_BUSY_TYPES = {"f32": np.float32, "f64": np.float64}
# A work-group of a CPU is one of its threads; some more of them than there are cores come to all cores.
_ROWS_A_CORE = {"par": 1, "group0": 4}


@cache
def measured(device: Device) -> Device:
    """The device with what was measured now: streaming bandwidth beyond its caches, arithmetic, what a launch takes."""
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
    model = device.model.with_measured(bandwidths={"heap": best}, arithmetic=_arithmetic(device), launch_seconds=call)
    return replace(device, model=model)


def _arithmetic(device: Device) -> dict[str, float]:
    """Operations a second by type; none where the device is no CPU that runs explicit vectors on its cores."""
    from lithify.lang.levels import VEC, Level
    from lithify.program.module import parse

    model = device.model
    level = next((name for name in _ROWS_A_CORE if model.has_level(Level.parse(name))), None)
    if level is None or model.kind != "cpu" or not model.has_level(VEC):
        return {}
    found = {}
    for name, dtype in _BUSY_TYPES.items():
        if not model.computes(name):
            continue
        shape = (model.cores * _ROWS_A_CORE[level], _VECTORS * model.vector_width(8 * np.dtype(dtype).itemsize))
        arguments = (np.ones(shape, dtype), dtype(0.999), dtype(0.5))
        program = parse(_CHAINS.format(scalar=name, level=level), "<arithmetic>")["chains"].on(device)
        executable = program.specialise(*arguments, sizes={"steps": _STEPS}).compiled.executable
        found[name] = 2.0 * shape[0] * shape[1] * _STEPS / min(executable.time(arguments, _BUSY_REPETITIONS))
    return found
