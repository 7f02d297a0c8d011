"""What a kernel that won on one device reaches on the others.

Every winner that `exploration` has recorded, on this machine or another, runs on this machine's devices (or those that
`--device` names), the result compared with NumPy's. Nothing is searched: winners are lines of text, mapped to each
device anew. The rows of several machines make one matrix: `lithify report pictures` draws it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator

import numpy as np

from benchmarks import harness
from benchmarks.exploration import DEVICES, QUICK_SIZE, label, operands, recorded_as
from benchmarks.funnel import SLIDES
from benchmarks.harness import RESULTS, Row, record, table
from lithify.explore.phases import lower_by
from lithify.kernel.translate import translate
from lithify.lang.errors import LithifyError
from lithify.program import Device, Program, device
from lithify.program.module import load

RUNS = 15


def winners(size: int | None) -> Iterator[tuple[str, str, int]]:
    """Where each recorded winner was found, its text, and for which size (`size`, if one is given)."""
    for path in sorted(RESULTS.glob("exploration-*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for name, key in content.get("winners", {}).items():
            yield name, key, size or content["size"]


def seconds_of(program: Program, on: Device, key: str, size: int) -> float:
    """The median of some runs of a way to compute the product. Raises LithifyError where it does not run there."""
    arguments = operands(size)
    elaborated = program.specialise(*arguments).elaborated
    lowered = lower_by(key, elaborated.term, on.model)
    executable = on.target.compile(translate(lowered.term, tuple(elaborated.parameters), device=on.model))
    expected = arguments[0].astype(np.float64) @ arguments[1]
    if not np.allclose(np.asarray(executable(*arguments)), expected, atol=1e-2):
        raise LithifyError("the result is wrong")
    return statistics.median(executable.time(tuple(arguments), RUNS))


def main(quick: bool) -> None:
    """Run every winner on every device, and record."""
    program, rows, found = load(str(SLIDES))["matMult"], list[Row](), list[str]()
    for name in harness.ONLY or DEVICES:
        try:
            on = device(name)
        except LithifyError as error:
            print(f"{name}: {error.message}")
            continue
        found.append(label(on))
        for origin, key, size in winners(QUICK_SIZE if quick else None):
            row = {"tuned for": origin, "run on": label(on), "size": size}
            try:
                rows.append({**row, "ms": round(seconds_of(program.on(on), on, key, size) * 1e3, 4), "why": ""})
            except LithifyError as error:
                rows.append({**row, "ms": None, "why": error.message})
    print(table(rows))
    if not quick and rows:
        record("portability", rows, device=recorded_as(found), note="Winners of `exploration`; f32.")
