"""What a matrix multiplication on a CPU does by many sets of parameters at once, for the cost model.

Nothing is derived. All that takes time is counted in cycles of a core for each cycle that multiply-adds alone would
take: 1.0 of something means that it alone takes as long as the arithmetic. It is rough, as a drawing is: what is wrong
with it is learned from measurements, and what matters is that kernels which differ in time differ here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lithify.lang.scalars import SCALARS
from lithify.lowering.tuning import Columns, Numbers, Problem
from lithify.machine import DeviceModel, instruction

# Cycles: of a multiply-add until its result is there, for one vector that the second, third cache or memory gives.
_LATENCY = 4.0
_L2_BYTES, _L3_BYTES, _HEAP_BYTES = 48.0, 10.0, 4.0  # a cycle of a core
_TILE, _MOVED, _GATHERED, _PAGE = 20.0, 1.0, 8.0, 4096
_LOADS, _PORTS = 2.0, 2.0  # a cycle
_CLOCK = 2.5e9
_NEW_PAGE = 4.0


@dataclass(frozen=True)
class _Machine:
    """Lanes of a vector, threads, and bytes of the caches that a thread has for itself (of the last: its share)."""

    lanes: int
    registers: int
    threads: int
    first: float
    second: float
    last: float
    line: int

    @staticmethod
    def of(problem: Problem, model: DeviceModel) -> _Machine:
        sum_ = SCALARS[problem.scalars["acc"]]
        parts = 2 if sum_.is_complex else 1
        own = {c.level: c.bytes / min(c.shared_by, model.cores) for c in model.caches}
        first = own.get(1, 32 << 10)
        second = own.get(2, 8 * first)
        line = max([c.line_bytes for c in model.caches], default=64)
        lanes, registers = model.vector_width(sum_.bits // parts), model.registers.per_item // parts
        return _Machine(lanes, registers, model.cores, first, second, max([second, *own.values()]), line)


def features(problem: Problem, model: DeviceModel, p: Columns) -> dict[str, Numbers]:
    """The causes of time, what is held in caches and registers, and words as 0 or 1; `seconds` is the rough sum."""
    machine = _Machine.of(problem, model)
    g, m, n, k = (float(problem.sizes[d]) for d in "gmnk")
    mb, nb, kb = (p[f"{d}PerBlock"].astype(float) for d in "mnk")
    mt, nt = p["mPerThread"].astype(float), p["nPerThread"].astype(float)
    by_rows = p["outer"] == "m"
    packed = {side: p[f"pack{side}"] != "none" for side in "AB"}
    on_heap = {side: p[f"pack{side}"] == "heap" for side in "AB"}
    element = {side: _element(problem, p, side) for side in "AB"}
    across = {side: f"-trans{side} {'true' if side == 'B' else 'false'}" in problem.line for side in "AB"}
    vectors = np.ceil(nt / machine.lanes)
    kb = np.minimum(kb, k)

    done = _up(k, kb)
    for size, block, tile, outside in ((m, mb, mt, by_rows), (n, nb, nt, ~by_rows)):
        done = done * np.where(outside | (block < size) | (kb < k), _up(size, block), _up(size, tile))
    padding = done / (m * n * k)
    faster = _at_once(p, machine)
    least = mt * vectors / _PORTS / faster  # cycles of a step of the register tile
    loads = (mt + vectors) / _LOADS / faster
    from_second = (mt * element["A"] + _streams(kb * nt * element["B"], machine.first) * nt * element["B"]) / _L2_BYTES
    step = np.maximum(np.maximum(least, loads), np.maximum(_LATENCY / faster, from_second)) + 0.2 * loads
    summed = np.where(kb < k, 4.0 * mt * vectors, 0.0)
    a_tile = (2.0 * mt * vectors + _TILE + summed) / kb

    # what crosses the second and the last cache, in bytes for each multiply-add
    a_block, b_block = mb * kb * element["A"], nb * kb * element["B"]
    whole = kb >= k
    keeps_a, keeps_b = a_block <= 0.7 * machine.second, b_block <= 0.7 * machine.second
    a_again = np.where(keeps_a, np.where(by_rows & whole, n, np.minimum(nb, n)), np.minimum(nt, n))
    b_again = np.where(keeps_b & ~by_rows & whole, m, np.minimum(mb, m))
    beyond = element["A"] / a_again + element["B"] / b_again + np.where(kb < k, 8.0 / kb, 0.0)
    held = g * (m * k * element["A"] + k * n * element["B"] + m * n * 4.0) / machine.threads
    from_last = beyond / np.where(held < machine.last, _L3_BYTES, _HEAP_BYTES)

    moved = {
        "A": np.where(on_heap["A"] | by_rows & whole, 1.0 / n, 1.0 / np.minimum(nb, n)),
        "B": np.where(on_heap["B"] | ~by_rows & whole, 1.0 / m, 1.0 / np.minimum(mb, m)),
    }
    packing = sum(packed[s] * moved[s] * _MOVED * (2.0 if across[s] else 0.5) for s in "AB")
    gathers = np.where(~packed["B"] & across["B"], _GATHERED / mt, 0.0)
    # an unpacked operand whose steps lie pages apart, more of them than the first cache has sets for
    pitch = {"A": k if across["A"] else m, "B": k if across["B"] else n}
    strides = {
        side: np.minimum(1.0, pitch[side] * element[side] / _PAGE)
        * _NEW_PAGE
        / (mt * nt)
        * ~(packed[side] | across[side])
        for side in "AB"
    }
    in_one_set = np.where(packed["A"] | (pitch["A"] * element["A"] % _PAGE != 0), 0.0, np.maximum(mb, 1.0))

    tasks = np.where(by_rows, np.ceil(m / mb), np.ceil(n / nb)) * np.where(p["parallel"] == "all", g, 1.0)
    tasks = np.where(p["parallel"] == "batch", g, tasks)
    waiting = np.ceil(tasks / machine.threads) * machine.threads / tasks

    ideal = 1.0 / machine.lanes / _PORTS  # cycles of a multiply-add, at best
    tile = mt * nt
    causes: dict[str, Numbers] = {
        "registers": step / least,
        "tiles": a_tile / least,
        "caches": from_last / ideal,
        "packing": np.asarray(packing / ideal),
        "gathers": gathers / ideal,
        "pages of A": strides["A"] / ideal,
        "pages of B": strides["B"] / ideal,
    }
    tiles = (step + a_tile) / tile
    cycles = done * (np.maximum(tiles, from_last) + 0.3 * np.minimum(tiles, from_last) + packing + gathers)
    cycles = cycles + done * (strides["A"] + strides["B"])
    seconds = g * cycles * waiting / machine.threads / _CLOCK + model.launch_seconds
    found = {f"cycles: {name}": np.log2(0.02 + value) for name, value in causes.items()}
    found |= {
        "padding": 4.0 * np.log2(padding),
        "waiting": 4.0 * np.log2(waiting),
        "tasks": np.log2(tasks / machine.threads),
        "row of a tile": np.log2(nt),
        "rows of a tile": np.log2(mt),
        "registers held": (mt * vectors + vectors + 1) / machine.registers,
        "terms of a block": np.log2(kb),
        "blocks of the sum": np.log2(np.ceil(k / kb)),
        "panel in the first cache": np.log2(kb * nt * element["B"] / machine.first),
        "A in the second cache": np.log2(a_block / machine.second),
        "B in the second cache": np.log2(b_block / machine.second),
        "rows in one set": np.log2(1.0 + in_one_set),
        "work": np.log2(g * m * n * k) + 0.0 * mt,
        "operands in the last cache": np.log2(held / machine.last) + 0.0 * mt,
        "seconds": seconds,
    }
    words = {"outer": ("m",), "packA": ("thread", "heap"), "packB": ("thread", "heap"), "parallel": ("all",)}
    found |= {f"{name}={w}": (p[name] == w).astype(float) for name, listed in words.items() for w in listed}
    found["instruction"] = np.log2(faster)
    return found


def _element(problem: Problem, p: Columns, side: str) -> Numbers:
    """Bytes of an operand's elements where they are multiplied: as stored for an instruction, else as the sum."""
    stored = SCALARS[problem.scalars[side.lower()]].bytes
    return np.where(p["instruction"] == "none", float(SCALARS[problem.scalars["acc"]].bytes), float(stored))


def _at_once(p: Columns, machine: _Machine) -> Numbers:
    """How many multiply-adds an instruction does in the place of one in a lane."""
    names = {name: _speed(str(name), machine) for name in np.unique(p["instruction"])}
    return np.array([names[name] for name in p["instruction"]], float)


def _speed(name: str, machine: _Machine) -> float:
    return 1.0 if name == "none" else max(1.0, instruction(name).operations / 2 / machine.lanes)


def _streams(bytes: Numbers, cache: float) -> Numbers:
    """How much of what is read again and again comes from beyond a cache: nothing of what fills less than its half."""
    return np.clip(2.0 * bytes / cache - 1.0, 0.0, 1.0)


def _up(size: float, tile: Numbers) -> Numbers:
    return np.ceil(size / tile) * tile
