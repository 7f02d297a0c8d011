"""What a kernel that won on one device reaches on the others.

Every winner that `exploration` has recorded, on this machine or another, runs on this machine's devices (or those that
`--device` names), the result compared with NumPy's. Nothing is searched: winners are lines of text, mapped to each
device anew. The rows of several machines make one matrix: `lithify report pictures` draws it.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks import harness
from benchmarks.exploration import DEVICES, QUICK_SIZE, label, operands, recorded_as
from benchmarks.funnel import SLIDES
from benchmarks.harness import RESULTS, Row, Value, record, table
from lithify.explore.phases import lower_by
from lithify.kernel.translate import translate
from lithify.lang.errors import LithifyError
from lithify.program import Device, Program, device
from lithify.program.module import load
from lithify.targets.base import Executable

ROUNDS, RUNS, REST = 6, 6, 0.1


def winners(size: int | None) -> Iterator[tuple[str, str, int]]:
    """Where each recorded winner was found, its text, and for which size (`size`, if one is given)."""
    for path in sorted(RESULTS.glob("exploration-*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for name, key in content.get("winners", {}).items():
            yield name, key, size or content["size"]


def compiled(program: Program, on: Device, key: str, size: int) -> Executable:
    """A way to compute the product, compiled and checked. Raises LithifyError where it does not run there."""
    arguments = operands(size)
    elaborated = program.specialise(*arguments).elaborated
    lowered = lower_by(key, elaborated.term, on.model)
    executable = on.target.compile(translate(lowered.term, tuple(elaborated.parameters), device=on.model))
    expected = np.einsum("ik,kj->ij", *[a.astype(np.float64) for a in arguments])  # no threads that go on waiting
    if not np.allclose(np.asarray(executable(*arguments)), expected, atol=1e-2):
        raise LithifyError("the result is wrong")
    return executable


def measured(found: list[tuple[Executable, int]]) -> list[float]:
    """Seconds of each (medians), measured in turn, after a rest: another library's threads may still be waiting."""
    samples: list[list[float]] = [[] for _ in found]
    for turn in range(ROUNDS):
        for position in range(len(found)):
            which = (position + turn) % len(found)
            executable, size = found[which]
            time.sleep(REST)
            samples[which] += executable.time(tuple(operands(size)), RUNS)[1:]
    return [statistics.median(each) for each in samples]


def main(quick: bool) -> None:
    """Run every winner on every device, and record."""
    program, rows, labels = load(str(SLIDES))["matMult"], list[Row](), list[str]()
    for name in harness.ONLY or DEVICES:
        try:
            on = device(name)
        except LithifyError as error:
            print(f"{name}: {error.message}")
            continue
        labels.append(label(on))
        found: list[tuple[Executable, int]] = []
        entries: list[dict[str, Value]] = []
        for origin, key, size in winners(QUICK_SIZE if quick else None):
            entries.append({"tuned for": origin, "run on": label(on), "size": size, "ms": None, "why": ""})
            try:
                found.append((compiled(program.on(on), on, key, size), size))
            except LithifyError as error:
                entries[-1]["why"] = error.message
        seconds = iter(measured(found))
        rows += [entry if entry["why"] else {**entry, "ms": round(next(seconds) * 1e3, 4)} for entry in entries]
    print(table(rows))
    if not quick and rows:
        record("portability", rows, device=recorded_as(labels), note="Winners of `exploration`; f32.")
