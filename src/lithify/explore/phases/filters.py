"""The heuristics that keep a space small enough to be searched: named filters with their thresholds, all of them here.

(Lift: nesting depth, distance of addition and multiplication, how often a rule is applied; fixed parallelism and few
choices of memory; amounts of memory and of parallelism.)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Filter:
    """What is dropped, by a number: `limit` is the last one that is kept. `name` is what the funnel prints."""

    name: str
    limit: float
    what: str

    def __str__(self) -> str:
        return f"{self.name} ({self.what} {self.limit:g})"


# ---- macro rules ---------------------------------------------------------------------------------------------------

RULES = Filter("macro rules", 4, "at most")
PROGRAMS = Filter("programs enumerated", 20_000, "at most")
REPEATED = Filter("a macro rule at parts of one loop", 2, "at most")
SHORTEST = Filter("iterations of a loop that is cut", 8, "at least")
DEPTH = Filter("nesting depth", 7, "at most")
DISTANCE = Filter("loops between a sum and its summands", 0, "more than the least that any has, by at most")
BLOCKED = Filter("dimensions that a sum is blocked in, where any is", 2, "at least")

VANISHED = Filter("loops that are cut and then gone", 0, "at most")

# ---- mapping to the machine ----------------------------------------------------------------------------------------

PACKED = Filter("operands packed", 2, "at most")
MAPPED = Filter("programs mapped", 1_000, "at most")

# ---- parameters ----------------------------------------------------------------------------------------------------

VALUES = (2, 4, 6, 8, 12, 16, 32, 64, 128, 256)
PADDING = Filter("iterations that padding adds", 0.15, "at most a share of")
REGISTERS = Filter("registers for accumulators", 0.9, "at most a share of")
STRAIGHT = Filter("operations of straight code", 256, "at most")
SCRATCH = Filter("memory of a thread or group", 1.0, "at most a share of the cache or local memory:")
LANES = Filter("lanes", 1, "a multiple of the vector, from")
VECTORS = Filter("vectors of a loop", 1.0, "at most the device's share:")
PARALLEL = Filter("iterations for each core", 1.0, "at least")
ITEMS = Filter("work-items of a group", 1.0, "a multiple of the warp, at most the device's share:")
POINTS = Filter("points", 50_000, "at most")
