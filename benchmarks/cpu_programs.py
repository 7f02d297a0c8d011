"""Every program that lithify ships, on the CPU: time, share of the machine's streaming bandwidth, ratio to others.

A program, its competitors and the machine's own streams run side by side, round by round. The bound of a program is
what it reads and writes at least, at the best rate that a stream with the same mix of both reached beside it: a read
for programs that reduce, a triad where two are read for one that is written, else a copy (memory gives fewer bytes a
second to reads alone). The streams are lithify's own sum, axpy and scal, and `benchmarks.stream`'s loops, over arrays
of the program's size: a machine whose last cache holds the arrays of the first rows streams those faster than what
comes from memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

from benchmarks.harness import (
    PROGRAMS,
    Row,
    Timing,
    compare,
    cpu_name,
    own_kernels_of_openblas,
    ratio,
    record,
    table,
    usable_cores,
)
from benchmarks.stream import BYTES, aligned, jobs

# Seconds between two that are compared: OpenMP's threads go on waiting in a loop for about so long.
REST = 0.06


class Streams:
    """The machine's own streams as things to measure, by threads that stay each on a core."""

    def __init__(self, elements: int) -> None:
        import lithify as lf

        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(usable_cores())
        pools = [ThreadPoolExecutor(1, initializer=_stay_on, initargs=(core,)) for core in cores]
        arrays = [aligned(elements) for _ in range(3)]
        a, b, c = arrays
        blas = lf.library("blas")

        def by_all(parts: list[Callable[[], None]]) -> None:
            running = [pool.submit(part) for pool, part in zip(pools, parts, strict=True)]
            for each in running:
                each.result()

        def loops(kind: str) -> dict[str, Callable[[], object]]:
            found = jobs(kind, arrays, len(cores))
            return {by: partial(by_all, found[by]) for by in found if by.startswith("LLVM")}

        self.elements = elements
        own: dict[str, Callable[[], object]] = {
            "read": lambda: blas["sum"](b),
            "copy": lambda: blas["scal"](1.0, b, out=a),
            "triad": lambda: blas["axpy"](3.0, b, c, out=a),
        }
        self.kinds = {kind: loops(kind) | {"lithify": run} for kind, run in own.items()}

    def beside(self, kind: str) -> dict[str, Callable[[], object]]:
        """The streams of a kind."""
        return {f"stream {name}": run for name, run in self.kinds[kind].items()}

    def rate(self, timings: dict[str, Timing], kind: str) -> float:
        """The best rate of those streams, in bytes a second."""
        moved = self.elements * BYTES[kind]
        return max(t.per_second(moved) for name, t in timings.items() if name.startswith("stream "))


def stream_of(reads: int, writes: int) -> str:
    """The kind of stream whose mix of reads and writes is nearest."""
    return "read" if reads > 2 * writes else "triad" if 2 * reads > 3 * writes else "copy"


def _stay_on(core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def measure(case: Any, streams: Streams, rounds: int) -> Row:
    """One line of the table."""
    import lithify as lf

    program = lf.library(case.text)[case.program]
    out = program(*case.arguments) if case.result else None
    kind = stream_of(case.reads, case.writes)
    runs = {"lithify": partial(program, *case.arguments, out=out)} | case.others | streams.beside(kind)
    timings = compare(runs, rounds=rounds, rest=REST)
    ours = timings["lithify"]
    moved = 4 * (case.reads + case.writes)
    rate = streams.rate(timings, kind)
    ratios = {name: ratio(ours, timings[name]) for name in case.others}
    best = min(ratios, key=ratios.__getitem__, default=None)
    row: dict[str, Any] = {"program": case.program, "size": case.size, "ms": round(ours.median * 1e3, 4)}
    row |= {"spread": round(ours.spread, 3), "GB/s": round(ours.per_second(moved) / 1e9, 2)}
    row |= {"machine GB/s": round(rate / 1e9, 2), "share": round(ours.per_second(moved) / rate, 3)}
    if case.operations:
        row["GF/s"] = round(ours.per_second(case.operations) / 1e9, 1)
    if best is not None:
        row |= {"best other": best, "faster than it": round(ratios[best], 2)}
    row["others ms"] = ", ".join(f"{name} {timings[name].median * 1e3:.4g}" for name in case.others)
    return row


def main(quick: bool) -> None:
    own_kernels_of_openblas()
    rows = run(quick, set(PROGRAMS) or None)
    print(table(rows))
    if not quick and not PROGRAMS:
        note = (
            "float32, results into out= (an array that lithify made); rates count what is read and written at least; "
            f"a share is of the best stream beside it with such a mix of both. {_sizes()}"
        )
        record("cpu_programs", rows, device=cpu_name(), note=note)


def _of_group(group: Any, only: set[str] | None, streams: Callable[[int], Streams]) -> Iterator[Row]:
    """The lines of a group; its arrays are gone with this generator, before those of the next group come."""
    for case in group.cases():
        if only is None or case.program in only:
            yield measure(case, streams(group.elements), group.rounds)


def _sizes() -> str:
    """What a reader must know of the sizes: which of them the last cache holds."""
    from benchmarks.cpu_cases import cases
    from lithify.lowering.facts import last_cache
    from lithify.machine import host

    first, *last = dict.fromkeys(group.elements for group in cases(False))
    text = f"The last cache is of {last_cache(host()) >> 20} MiB, each array of the streams of {first >> 18} MiB"
    return (
        text
        + "".join(f"; at the end, where names come again, of {n >> 18} MiB, like those of the programs" for n in last)
        + "."
    )


def run(quick: bool, only: set[str] | None = None) -> list[Row]:
    """The lines of all programs, or of those named."""
    from benchmarks.cpu_cases import cases

    streams = lru_cache(maxsize=1)(Streams)
    rows: list[Row] = []
    for group in cases(quick):
        for row in _of_group(group, only, streams):
            rows.append(row)
            print(table([row]).splitlines()[-1], flush=True)
    if not rows and only is not None:
        raise SystemExit(f"no row is named {', '.join(sorted(only))}; the names are those of the library's programs")
    return rows
