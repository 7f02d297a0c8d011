"""What a matrix multiplication on a CPU does by many sets of parameters at once, for the cost model.

Nothing is derived. All that takes time is counted in cycles of a core for each cycle that multiply-adds alone would
take: 1.0 of something means that it alone takes as long as the arithmetic. It is rough, as a drawing is: what is wrong
with it is learned from measurements, and what matters is that kernels which differ in time differ here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lithify.lang.scalars import SCALARS
from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.gemm.operands import NONE
from lithify.lowering.gemm.problem import lies_across
from lithify.lowering.tuning import Column, Columns, Numbers, Problem
from lithify.machine import DeviceModel, instruction

# Cycles: of a multiply-add until its result is there, for one vector that the second, third cache or memory gives.
_LATENCY = 4.0
_L2_BYTES, _L3_BYTES, _HEAP_BYTES = 48.0, 10.0, 4.0  # a cycle of a core
_TILE, _MOVED, _GATHERED, _PAGE = 20.0, 1.0, 8.0, 4096
_LOADS, _PORTS = 2.0, 2.0  # a cycle
_CLOCK = 2.5e9
_NEW_PAGE = 4.0


@dataclass(frozen=True)
class _Sets:
    """A product by many sets of parameters: sizes, blocks and register tiles as numbers, and how operands lie.

    By operand, "A" and "B": `element` is the bytes of one where it is multiplied, `across` says that it is contiguous
    along k. `faster`: how many multiply-adds an instruction does in the place of one in a lane.
    """

    machine: Machine
    g: float
    m: float
    n: float
    k: float
    mb: Numbers
    nb: Numbers
    kb: Numbers
    mt: Numbers
    nt: Numbers
    vectors: Numbers  # of a row of the register tile
    by_rows: Column  # is the loop over rows outside?
    packed: Mapping[str, Column]
    on_heap: Mapping[str, Column]
    element: Mapping[str, Numbers]
    across: Mapping[str, bool]
    faster: Numbers

    @staticmethod
    def of(problem: Problem, machine: Machine, p: Columns) -> _Sets:
        g, m, n, k = (float(problem.sizes[d]) for d in "gmnk")
        mb, nb, kb = (p[f"{d}PerBlock"].astype(float) for d in "mnk")
        mt, nt = p["mPerThread"].astype(float), p["nPerThread"].astype(float)
        return _Sets(
            machine, g, m, n, k, mb, nb, np.minimum(kb, k), mt, nt,
            vectors=np.ceil(nt / machine.lanes),
            by_rows=p["outer"] == "m",
            packed={side: p[f"pack{side}"] != NONE for side in "AB"},
            on_heap={side: p[f"pack{side}"] == "heap" for side in "AB"},
            element={side: _element(problem, p, side) for side in "AB"},
            across={side.upper(): across for side, across in lies_across(problem).items()},
            faster=_at_once(p, machine),
        )  # fmt: skip

    @property
    def whole(self) -> Column:
        """Is a sum added up in one block?"""
        return self.kb >= self.k

    @property
    def block(self) -> Mapping[str, Numbers]:
        """Bytes of a block of each operand."""
        return {"A": self.mb * self.kb * self.element["A"], "B": self.nb * self.kb * self.element["B"]}


def features(problem: Problem, model: DeviceModel, p: Columns) -> dict[str, Numbers]:
    """The causes of time, what is held in caches and registers, and words as 0 or 1; `seconds` is the rough sum."""
    machine = Machine.of(problem, model)
    sets = _Sets.of(problem, machine, p)
    least, step, around = _register_tile(sets)
    done, from_last, packing = _done(sets), _from_last(sets), _packing(sets)
    gathers = np.where(~sets.packed["B"] & sets.across["B"], _GATHERED / sets.mt, 0.0)
    pitch = {"A": sets.k if sets.across["A"] else sets.m, "B": sets.k if sets.across["B"] else sets.n}
    pages = {side: _pages(sets, side, pitch[side]) for side in "AB"}
    tasks = np.where(sets.by_rows, np.ceil(sets.m / sets.mb), np.ceil(sets.n / sets.nb))
    tasks = tasks * np.where(p["parallel"] == "all", sets.g, 1.0)
    tasks = np.where(p["parallel"] == "batch", sets.g, tasks)
    if "splitK" in p:
        parts = p["splitK"].astype(float)
        tasks = np.where(parts > 1, parts, tasks)
    waiting = np.ceil(tasks / machine.threads) * machine.threads / tasks

    ideal = 1.0 / machine.lanes / _PORTS  # cycles of a multiply-add, at best
    causes: dict[str, Numbers] = {
        "registers": step / least,
        "tiles": around / least,
        "caches": from_last / ideal,
        "packing": packing / ideal,
        "gathers": gathers / ideal,
        "pages of A": pages["A"] / ideal,
        "pages of B": pages["B"] / ideal,
    }
    tiles = (step + around) / (sets.mt * sets.nt)
    cycles = done * (np.maximum(tiles, from_last) + 0.3 * np.minimum(tiles, from_last) + packing + gathers)
    cycles = cycles + done * (pages["A"] + pages["B"])
    words = {"outer": ("m",), "packA": ("thread", "heap"), "packB": ("thread", "heap"), "parallel": ("all",)}
    return {
        **{f"cycles: {name}": np.log2(0.02 + value) for name, value in causes.items()},
        "padding": 4.0 * np.log2(done / (sets.m * sets.n * sets.k)),
        "waiting": 4.0 * np.log2(waiting),
        "tasks": np.log2(tasks / machine.threads),
        **_held(sets, pitch["A"]),
        "seconds": sets.g * cycles * waiting / machine.threads / _CLOCK + model.launch_seconds,
        **{f"{name}={w}": (p[name] == w).astype(float) for name, listed in words.items() for w in listed},
        "instruction": np.log2(sets.faster),
    }


def _done(s: _Sets) -> Numbers:
    """Multiply-adds of a product with those that fill up blocks and tiles."""
    done = _up(s.k, s.kb)
    for size, block, tile, outside in ((s.m, s.mb, s.mt, s.by_rows), (s.n, s.nb, s.nt, ~s.by_rows)):
        done = done * np.where(outside | (block < size) | ~s.whole, _up(size, block), _up(size, tile))
    return done


def _register_tile(s: _Sets) -> tuple[Numbers, Numbers, Numbers]:
    """Cycles of a step of the register tile, at best and as it is; and of what is around the steps, for each."""
    least = s.mt * s.vectors / _PORTS / s.faster
    loads = (s.mt + s.vectors) / _LOADS / s.faster
    again = _streams(s.kb * s.nt * s.element["B"], s.machine.first)
    from_second = (s.mt * s.element["A"] + again * s.nt * s.element["B"]) / _L2_BYTES
    step = np.maximum(np.maximum(least, loads), np.maximum(_LATENCY / s.faster, from_second)) + 0.2 * loads
    summed = np.where(s.whole, 0.0, 4.0 * s.mt * s.vectors)
    return least, step, (2.0 * s.mt * s.vectors + _TILE + summed) / s.kb


def _from_last(s: _Sets) -> Numbers:
    """Cycles of a multiply-add for what crosses the second and the last cache."""
    kept = {side: bytes <= 0.7 * s.machine.second for side, bytes in s.block.items()}
    inside = np.where(s.by_rows & s.whole, s.n, np.minimum(s.nb, s.n))
    a_again = np.where(kept["A"], inside, np.minimum(s.nt, s.n))
    b_again = np.where(kept["B"] & ~s.by_rows & s.whole, s.m, np.minimum(s.mb, s.m))
    sums = np.where(s.whole, 0.0, 8.0 / s.kb)
    beyond = s.element["A"] / a_again + s.element["B"] / b_again + sums
    return beyond / np.where(_operands(s) < s.machine.last, _L3_BYTES, _HEAP_BYTES)


def _operands(s: _Sets) -> Numbers:
    """Bytes of all operands and results, for each thread."""
    return s.g * (s.m * s.k * s.element["A"] + s.k * s.n * s.element["B"] + s.m * s.n * 4.0) / s.machine.threads


def _packing(s: _Sets) -> Numbers:
    """Cycles of a multiply-add for packing."""
    moved = {
        "A": np.where(s.on_heap["A"] | s.by_rows & s.whole, 1.0 / s.n, 1.0 / np.minimum(s.nb, s.n)),
        "B": np.where(s.on_heap["B"] | ~s.by_rows & s.whole, 1.0 / s.m, 1.0 / np.minimum(s.mb, s.m)),
    }
    return np.asarray(sum(s.packed[side] * moved[side] * _MOVED * (2.0 if s.across[side] else 0.5) for side in "AB"))


def _pages(s: _Sets, side: str, pitch: float) -> Numbers:
    """Cycles of a multiply-add for an operand that is not packed and whose steps, `pitch` elements apart, lie in pages
    of their own."""
    apart = np.minimum(1.0, pitch * s.element[side] / _PAGE)
    return apart * _NEW_PAGE / (s.mt * s.nt) * ~(s.packed[side] | s.across[side])


def _held(s: _Sets, pitch: float) -> dict[str, Numbers]:
    """What a core holds at a time, as shares of what there is; `pitch`: elements between the left operand's lines.

    "rows in one set": such lines share a few sets of the first cache where they are whole pages apart.
    """
    in_one_set = np.where(s.packed["A"] | (pitch * s.element["A"] % _PAGE != 0), 0.0, np.maximum(s.mb, 1.0))
    return {
        "row of a tile": np.log2(s.nt),
        "rows of a tile": np.log2(s.mt),
        "registers held": (s.mt * s.vectors + s.vectors + 1) / s.machine.registers,
        "terms of a block": np.log2(s.kb),
        "blocks of the sum": np.log2(np.ceil(s.k / s.kb)),
        "panel in the first cache": np.log2(s.kb * s.nt * s.element["B"] / s.machine.first),
        "A in the second cache": np.log2(s.block["A"] / s.machine.second),
        "B in the second cache": np.log2(s.block["B"] / s.machine.second),
        "rows in one set": np.log2(1.0 + in_one_set),
        "work": np.log2(s.g * s.m * s.n * s.k) + 0.0 * s.mt,
        "operands in the last cache": np.log2(_operands(s) / s.machine.last) + 0.0 * s.mt,
    }


def _element(problem: Problem, p: Columns, side: str) -> Numbers:
    """Bytes of an operand's elements where they are multiplied: as stored for an instruction, else as the sum."""
    stored = SCALARS[problem.scalars[side.lower()]].bytes
    return np.where(p["instruction"] == NONE, float(SCALARS[problem.scalars["acc"]].bytes), float(stored))


def _at_once(p: Columns, machine: Machine) -> Numbers:
    """How many multiply-adds an instruction does in the place of one in a lane."""
    names = {name: _speed(str(name), machine) for name in np.unique(p["instruction"])}
    return np.array([names[name] for name in p["instruction"]], float)


def _speed(name: str, machine: Machine) -> float:
    return 1.0 if name == NONE else max(1.0, instruction(name).operations / 2 / machine.lanes)


def _streams(bytes: Numbers, cache: float) -> Numbers:
    """How much of what is read again and again comes from beyond a cache: nothing of what fills less than its half."""
    return np.clip(2.0 * bytes / cache - 1.0, 0.0, 1.0)


def _up(size: float, tile: Numbers) -> Numbers:
    return np.ceil(size / tile) * tile
