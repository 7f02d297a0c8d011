"""What a matrix multiplication on a GPU does by many sets of parameters at once, for the cost model.

Nothing is derived. Counted for each multiply-add of the problem: what crosses each memory, barriers, cache lines that a
warp touches; and what a core holds at a time. What the causes cost together is learned from measurements.
"""

from __future__ import annotations

import numpy as np

from lithify.lang.scalars import SCALARS
from lithify.lowering.gemm.problem import lies_across
from lithify.lowering.tuning import Columns, Numbers, Problem
from lithify.machine import DeviceModel

_CLOCK, _BARRIER, _LATENCY = 1.6e9, 40.0, 600.0  # cycles a second; of a barrier, of a load from the heap
_FMAS, _LOCAL_BYTES = 128.0, 128.0  # a cycle of a core
_MOST_GROUPS, _OTHER_REGISTERS = 32.0, 24.0
_HIDDEN = 32.0  # warps on a core whose items have one sum each: so many hide what others wait for


def features(problem: Problem, model: DeviceModel, p: Columns) -> dict[str, Numbers]:
    """The causes of time, and what limits how many groups a core has; `seconds` is the rough sum."""
    g, m, n, k = (float(problem.sizes[d]) for d in "gmnk")
    mb, nb, kb = (p[f"{d}PerBlock"].astype(float) for d in "mnk")
    mt, nt = (p[f"{d}PerThread"].astype(float) for d in "mn")
    stages, split, row = (p[name].astype(float) for name in ("stages", "splitK", "nPerWave"))
    bytes_ = {side: float(SCALARS[problem.scalars[side.lower()]].bytes) for side in "AB"}
    sum_bytes = float(SCALARS[problem.scalars["acc"]].bytes)
    across, warp = lies_across(problem), float(model.warp_width)
    items = mb * nb / (mt * nt)
    words = max(1.0, sum_bytes / model.registers.bytes)
    registers = words * (mt * nt + mt + nt + (mb + nb) * kb / items) + _OTHER_REGISTERS
    local = stages * kb * sum((block + p[f"padding{side}"]) * bytes_[side] for side, block in (("A", mb), ("B", nb)))
    of_core = model.memory("local").bytes or 1 << 15
    resident = np.minimum(model.registers.per_core // (registers * items), np.maximum(of_core // local, 1.0))
    resident = np.clip(resident, 1.0, _MOST_GROUPS)

    groups = g * np.ceil(m / mb) * np.ceil(n / nb) * split
    padding = np.ceil(m / mb) * mb * np.ceil(n / nb) * nb * np.ceil(k / split / kb) * kb * split / (m * n * k)
    here = np.minimum(resident, np.ceil(groups / model.cores))
    rounds = np.ceil(groups / (model.cores * here))
    waiting = rounds * model.cores * here / groups
    warps = here * items / warp

    heap = (bytes_["A"] / nb + bytes_["B"] / mb) + sum_bytes * np.where(split > 1, 2.0 * split + 1.0, 1.0) / k
    own = bytes_["A"] / nt + bytes_["B"] / mt  # from local memory to registers
    barriers = np.where(stages > 1, 1.0, 2.0) / (kb * mb * nb)
    lines = sum(
        bytes_[side] / np.minimum(128.0, bytes_[side] * np.where(across[side.lower()], kb, block)) / other
        for side, block, other in (("A", mb, nb), ("B", nb, mb))
    )
    copies = sum(1.0 / (p[f"vector{side}"] * other) for side, other in (("A", nb), ("B", mb)))
    rows_of_warp = np.maximum(1.0, warp / row)
    local_lines = (row * nt * bytes_["B"] + rows_of_warp * mt * bytes_["A"]) / (warp * mt * nt)

    arithmetic = 1.0 / _FMAS
    a_core = {
        "arithmetic": arithmetic * (1.0 + (mt + nt) / (mt * nt)),
        "local": own / _LOCAL_BYTES / 4.0,
        "copies": copies / 32.0,
        "barriers": barriers * (_BARRIER + np.where(stages > 1, 0.0, _LATENCY)) / here,
    }
    busy = np.minimum(1.0, warps * np.sqrt(mt * nt) / _HIDDEN)
    together = sum(a_core.values()) * g * m * n * k * padding * waiting / busy / model.cores / _CLOCK
    from_heap = heap * g * m * n * k * padding / model.bandwidth().rate
    launches = model.launch_seconds * np.where(split > 1, 3.0, 1.0)
    found = {f"cycles: {name}": np.log2(0.02 + value / arithmetic) for name, value in a_core.items()}
    return {
        **found,
        "padding": 4.0 * np.log2(padding),
        "waiting": 4.0 * np.log2(waiting),
        "groups": np.log2(groups / model.cores),
        "groups on a core": np.log2(resident),
        "warps on a core": np.log2(warps),
        "items": np.log2(items),
        "registers": np.log2(registers),
        "local memory": np.log2(local / of_core),
        "heap": np.log2(heap),
        "lines of the heap": np.log2(lines),
        "lines of local memory": np.log2(local_lines),
        "tile": np.log2(mt * nt),
        "row of a tile": np.log2(nt),
        "row of a warp": np.log2(row),
        "step": np.log2(kb),
        "stages": stages,
        "padded A": (p["paddingA"] > 0).astype(float),
        "padded B": (p["paddingB"] > 0).astype(float),
        "split": np.log2(split),
        "work": np.log2(g * m * n * k) + 0.0 * mt,
        "seconds": np.maximum(together, from_heap) + 0.3 * np.minimum(together, from_heap) + launches,
    }  # fmt: skip
