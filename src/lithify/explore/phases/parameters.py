"""The third phase: lengths for what the cuts leave open, filtered by what a point takes before anything is derived."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lithify.explore.phases import filters
from lithify.explore.phases.anatomy import Anatomy, Lengths
from lithify.explore.phases.filters import Filter
from lithify.lowering.facts import core_cache
from lithify.machine import DeviceModel

_BITS = 32


@dataclass(frozen=True)
class Limits:
    """What a device gives, in the units of the filters."""

    register_bytes: float
    scratch_bytes: float
    lanes: int
    longest_vector: int
    cores: int
    warp: int
    group_items: int

    @staticmethod
    def of(model: DeviceModel) -> Limits:
        """The limits of a device."""
        registers = model.registers
        local = model.memory("local").bytes if model.has_memory("local") else None
        return Limits(
            registers.per_item * registers.bytes,
            core_cache(model) if local is None else local,
            1 if model.kind == "gpu" else model.vector_width(_BITS),
            model.access_bytes * 8 // _BITS if model.kind == "gpu" else model.vector_lanes,
            model.cores,
            model.warp_width,
            model.group_items,
        )


Check = tuple[Filter, NDArray[np.bool_]]


def checks(anatomy: Anatomy, lengths: Lengths, limits: Limits) -> list[Check]:
    """Each filter of the phase, and which rows of lengths it keeps."""
    registers = anatomy.total(anatomy.registers, lengths) / limits.register_bytes
    scratch = anatomy.total(anatomy.scratch, lengths) / limits.scratch_bytes
    parallel = anatomy.product(anatomy.parallel, lengths)
    found: list[Check] = [
        (filters.PADDING, anatomy.padding(lengths) <= filters.PADDING.limit),
        (filters.REGISTERS, registers <= filters.REGISTERS.limit),
        (filters.SCRATCH, scratch <= filters.SCRATCH.limit),
    ]
    if anatomy.parallel:
        found.append((filters.PARALLEL, parallel >= filters.PARALLEL.limit * limits.cores))
    tiles = anatomy.tiles(lengths)
    for product in anatomy.lanes:
        lanes = product.of(lengths, tiles)
        found.append((filters.LANES, lanes % limits.lanes == 0))
        found.append((filters.VECTORS, lanes <= limits.longest_vector))
    for product in anatomy.straight:
        found.append((filters.STRAIGHT, product.of(lengths, tiles) / limits.lanes <= filters.STRAIGHT.limit))
    if anatomy.items:
        items = anatomy.product(anatomy.items, lengths)
        whole = (items % limits.warp == 0) & (items <= filters.ITEMS.limit * limits.group_items)
        found.append((filters.ITEMS, whole))
    return found


def all_lengths(anatomy: Anatomy) -> Lengths:
    """Every combination of values for the open lengths, one a row. Tiles are no longer than their loops."""
    choices = []
    for part in anatomy.cuts.parts:
        extent = anatomy.extents.get(part.partition(".")[0], max(filters.VALUES))
        choices.append([float(v) for v in filters.VALUES if v <= max(extent, filters.VALUES[0])])
    rows = list(itertools.product(*choices))
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(choices))


def against(anatomy: Anatomy, values: Mapping[str, int], limits: Limits) -> str | None:
    """Why a point is none, by the first filter that drops it."""
    row = np.array([[float(values[part]) for part in anatomy.cuts.parts]])
    for each, kept in checks(anatomy, row, limits):
        if not kept[0]:
            return str(each)
    return None


def survivors(anatomy: Anatomy, limits: Limits) -> tuple[Lengths, dict[str, int], int]:
    """The rows that every filter keeps; how many each filter dropped first; how many there were."""
    lengths = all_lengths(anatomy)
    there = lengths.shape[0]
    dropped: dict[str, int] = {}
    alive = np.ones(there, dtype=bool)
    for each, kept in checks(anatomy, lengths, limits):
        lost = int(np.count_nonzero(alive & ~kept))
        if lost:
            dropped[str(each)] = dropped.get(str(each), 0) + lost
        alive &= kept
    return lengths[alive], dropped, there


def sample(counts: Sequence[int], most: int, seed: int) -> list[NDArray[np.intp]]:
    """Which rows of each program go on when there are more than `most`: as many of each as there are, up to a level."""
    rng = np.random.default_rng(seed)
    low, high = 0, max(counts, default=0)
    while low < high:  # the largest number a program that keeps the sum within the limit
        middle = (low + high + 1) // 2
        if sum(min(n, middle) for n in counts) <= most:
            low = middle
        else:
            high = middle - 1
    return [np.sort(rng.permutation(n)[: min(n, low)]) for n in counts]
