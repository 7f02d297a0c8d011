"""The seven OpenCL reductions of the well-known case study, written by hand: opponents of the derived ones.

M. Harris, "Optimizing Parallel Reduction in CUDA" (2007), in the OpenCL form in which the Lift talks show it.
The kernels share their parts, so they are put together here from three choices (what a work-item loads, how a
work-group adds up, how it ends) instead of being written seven times.

Not all of them are right, and that is part of the study:

* 5 and 6 let the last 32 work-items go on without a barrier and count on them moving in lockstep. Nothing in
  OpenCL promises that: PoCL runs the work-items between two barriers one after another, and the sums are wrong.
* 7 adds two elements a step, one group-width apart, but steps by only one group-width per group: unless there
  is one group alone, elements are added more than once. "7 repaired" steps by two and ends with barriers.
* PoCL 3.1 miscompiles 1 with its default way of making work-group functions: a divergent `if` before the
  barrier of a loop bounded by get_local_size(0). (With POCL_WORK_GROUP_METHOD=workitemrepl it is right.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks.harness import Row, compare, record, table

GROUP = 256
LOCKSTEP = 32


@dataclass(frozen=True)
class Version:
    """One reduction kernel: its parts, and where its sum is known to be wrong.

    `step` is how many group-widths per group a work-item of the grid-stride load advances.
    """

    name: str
    what: str
    load: Literal["one", "two", "grid"]
    tree: Literal["modulo", "strided", "halves", "unrolled"]
    lockstep_tail: bool = False
    step: int = 2
    wrong: Literal["never", "on PoCL", "always"] = "never"

    def known_wrong(self, platform: str) -> bool:
        """Whether a wrong sum on an OpenCL platform of this name is no news."""
        pocl = "Portable Computing Language" in platform
        return self.wrong == "always" or (self.wrong == "on PoCL" and pocl)


VERSIONS = (
    Version("1", "neighbours, chosen by a modulo", "one", "modulo", wrong="on PoCL"),
    Version("2", "neighbours, dense work-items", "one", "strided"),
    Version("3", "halves", "one", "halves"),
    Version("4", "first addition while loading", "two", "halves"),
    Version("5", "no barrier among the last 32", "two", "halves", lockstep_tail=True, wrong="on PoCL"),
    Version("6", "unrolled", "two", "unrolled", lockstep_tail=True, wrong="on PoCL"),
    Version("7", "many elements a work-item", "grid", "unrolled", lockstep_tail=True, step=1, wrong="always"),
    Version("7 repaired", "many elements a work-item", "grid", "unrolled"),
)

_LOADS = {
    "one": """
  uint at = get_global_id(0);
  part[me] = at < n ? in[at] : 0;""",
    "two": """
  uint at = get_group_id(0) * (get_local_size(0) * 2) + me;
  part[me] = at < n ? in[at] : 0;
  if (at + get_local_size(0) < n) part[me] += in[at + get_local_size(0)];""",
    # the accumulator stays in local memory, as in the original
    "grid": """
  part[me] = 0;
  for (uint at = get_group_id(0) * (GROUP * 2) + me; at < n; at += STEP * GROUP * get_num_groups(0)) {
    part[me] += in[at];
    if (at + GROUP < n) part[me] += in[at + GROUP];
  }""",
}

_TREES = {
    "modulo": """
  for (uint s = 1; s < get_local_size(0); s *= 2) {
    if (me % (2 * s) == 0) part[me] += part[me + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }""",
    "strided": """
  for (uint s = 1; s < get_local_size(0); s *= 2) {
    uint left = 2 * s * me;
    if (left < get_local_size(0)) part[left] += part[left + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }""",
    "halves": """
  for (uint s = get_local_size(0) / 2; s > LAST; s >>= 1) {
    if (me < s) part[me] += part[me + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }""",
}


def _halvings(group: int, last: int) -> list[int]:
    """The powers of two below `group`, downwards, that are greater than `last`."""
    return [1 << k for k in reversed(range(group.bit_length() - 1)) if 1 << k > last]


def source(version: Version, group: int = GROUP) -> str:
    """OpenCL C of one version, for work-groups of `group` items (a power of two, at least 64).

    `reduce(in, out, n, part)`: `out` receives a sum for each work-group, `part` is local memory for `group`
    floats.
    """
    last = LOCKSTEP if version.lockstep_tail else 0
    if version.tree == "unrolled":
        tree = "".join(
            f"\n  if (me < {s}) part[me] += part[me + {s}];\n  barrier(CLK_LOCAL_MEM_FENCE);"
            for s in _halvings(group, last)
        )
    else:
        tree = _TREES[version.tree]
    tail = "".join(f" part[me] += part[me + {s}];" for s in _halvings(2 * last, 0))
    end = f"\n  if (me < {LOCKSTEP}) {{{tail} }}" if version.lockstep_tail else ""
    volatile = "volatile " if version.lockstep_tail else ""
    body = f"{_LOADS[version.load]}\n  barrier(CLK_LOCAL_MEM_FENCE);{tree}{end}"
    for name, value in {"GROUP": group, "STEP": version.step, "LAST": last}.items():
        body = body.replace(name, str(value))
    parameters = f"global const float *in, global float *out, uint n, local {volatile}float *part"
    return f"""kernel void reduce({parameters}) {{
  uint me = get_local_id(0);{body}
  if (me == 0) out[get_group_id(0)] = part[0];
}}
"""


def groups_needed(version: Version, n: int, group: int, persistent_groups: int) -> int:
    """How many work-groups a launch over `n` elements has; `persistent_groups` where an item takes many."""
    if version.load == "grid":
        return persistent_groups
    per_group = group * (2 if version.load == "two" else 1)
    return -(-n // per_group)


@dataclass(frozen=True)
class Launch:
    """A compiled version, ready to run: `run()` returns the kernel's seconds, `total()` runs and returns the sum.

    `buffers` keeps alive what the kernel's arguments refer to: OpenCL does not.
    """

    version: Version
    run: Callable[[], float]
    total: Callable[[], float]
    buffers: tuple[Any, ...]


def prepare(device: Any, data: Any, group: int = GROUP) -> list[Launch]:
    """Every version compiled for an OpenCL device (`pyopencl.Device`), over float32 `data`."""
    import pyopencl as cl

    context = cl.Context([device])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    flags = cl.mem_flags
    source_buffer = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=data)
    result = cl.Buffer(context, flags.READ_WRITE, 4 * (-(-data.size // group)))
    persistent = min(8 * device.max_compute_units, -(-data.size // (2 * group)))
    launches = []
    for version in VERSIONS:
        kernel = cl.Program(context, source(version, group)).build().reduce
        groups = groups_needed(version, data.size, group, persistent)
        kernel.set_args(source_buffer, result, np.uint32(data.size), cl.LocalMemory(4 * group))
        run = partial(_run, queue, kernel, groups * group, group)
        total = partial(_total, queue, result, groups, run)
        launches.append(Launch(version, run, total, (source_buffer, result)))
    return launches


def _run(queue: Any, kernel: Any, items: int, group: int) -> float:
    import pyopencl as cl

    event = cl.enqueue_nd_range_kernel(queue, kernel, (items,), (group,))
    event.wait()
    return float(event.profile.end - event.profile.start) * 1e-9


def _total(queue: Any, result: Any, groups: int, run: Callable[[], float]) -> float:
    import pyopencl as cl

    parts = np.full(groups, np.nan, dtype=np.float32)  # what a broken kernel leaves unwritten must show
    cl.enqueue_copy(queue, result, parts)
    run()
    cl.enqueue_copy(queue, parts, result)
    return float(parts.sum(dtype=np.float64))


def small_integers(n: int) -> Any:
    """`n` float32 values from {0, 1, 2, 3}: all partial sums are exact, so a sum is right or wrong."""
    return np.random.default_rng(1).integers(0, 4, n).astype(np.float32)


def measure(device: Any, n: int, *, rounds: int = 15) -> list[dict[str, Any]]:
    """Rows (name, ms, spread, GB/s, sum) for every version over `n` elements, timed by the device's own
    clock."""
    data = small_integers(n)
    right = float(data.sum(dtype=np.float64))
    launches = prepare(device, data)
    runs = {launch.version.name: launch.run for launch in launches}
    timings = compare(runs, rounds=rounds, device_timed=True)
    rows = []
    for launch, timing in zip(launches, timings.values(), strict=True):
        verdict = "right"
        if launch.total() != right:
            verdict = "wrong, as known" if launch.version.known_wrong(device.platform.name) else "WRONG"
        rows.append(timing.row(bytes=4 * n, sum=verdict, what=launch.version.what))
    return rows


def main(quick: bool) -> None:
    import pyopencl as cl

    n = 1 << (16 if quick else 26)
    for platform in cl.get_platforms():
        for device in platform.get_devices():
            rows: list[Row] = list(measure(device, n, rounds=3 if quick else 15))
            print(f"{platform.name.strip()}: {device.name.strip()}, {n} float32\n{table(rows)}")
            if not quick:
                note = f"{platform.name.strip()} ({platform.version.strip()}), {n} float32, groups of {GROUP}."
                record("reduction_printed", rows, device=f"OpenCL {device.name.strip()}", note=note)
