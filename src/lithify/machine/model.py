"""The model of a device: all that lowering, translation, cost model and reports ask about a machine. Data only."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lithify.machine.levels import LevelError, LevelSpec, NamedLevel, reason_against
from lithify.machine.memory import Cache, MemorySpec, Registers
from lithify.machine.roofline import Peak

CopyKind = Literal["plain", "vector", "async", "bulk"]


@dataclass(frozen=True)
class DeviceModel:
    """A device as the compiler sees it.

    * `name`, `api` ("cpu", "opencl", "cuda", ...) and `architecture` ("x86-64 avx512f", "sm_90") say what it is;
    * `cores`: CPU cores or multiprocessors that work at the same time;
    * `levels`, `memories`, `caches`, `registers`: its structure, see `levels` and `memory`;
    * `warp_width`: items that share an instruction (by numbering alone: they must synchronise like any others);
    * `barrier_scopes`: whose items can wait for each other ("group", "warp", ...);
    * `counts_groups`: whether groups can count themselves indivisibly, and the last one sees what the others wrote;
    * `vector_bytes`: the widest vector register; `access_bytes`: the widest load or store of one item; `vector_lanes`:
      the longest map that the level `vec` takes;
    * `no_arithmetic`: scalar types that can be stored but not computed with;
    * `copy_kinds`: how tiles can travel;
    * `bandwidths` in bytes a second by memory, `arithmetic` in operations a second by scalar type (matrix units
      under the name "matrix f16" and so on), `launch_seconds`: what a launch costs at least.
    """

    name: str
    api: str
    kind: Literal["cpu", "gpu"]
    architecture: str
    cores: int
    levels: tuple[LevelSpec, ...]
    memories: tuple[MemorySpec, ...]
    registers: Registers
    vector_bytes: int
    access_bytes: int
    vector_lanes: int
    caches: tuple[Cache, ...] = ()
    group_items: int = 1
    warp_width: int = 1
    barrier_scopes: frozenset[str] = frozenset()
    counts_groups: bool = False
    no_arithmetic: frozenset[str] = frozenset()
    copy_kinds: frozenset[CopyKind] = frozenset({"plain", "vector"})
    bandwidths: tuple[Peak, ...] = ()
    arithmetic: tuple[Peak, ...] = ()
    launch_seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} ({self.api})"

    # -- levels ---------------------------------------------------------------------------------------------------

    def level(self, name: str, dim: int | None = None) -> LevelSpec:
        """The level of this name and dimension; raises LevelError, listing what there is, where it is missing."""
        for spec in self.levels:
            if (spec.name, spec.dim) == (name, dim):
                return spec
        asked = name if dim is None else f"{name}{dim}"
        known = ", ".join(map(str, self.levels))
        raise LevelError(f"{self} has no level {asked}; it has {known}")

    def has_level(self, level: NamedLevel) -> bool:
        """Whether the machine has this level."""
        return any((spec.name, spec.dim) == (level.name, level.dim) for spec in self.levels)

    def may_nest(self, outer: NamedLevel, inner: NamedLevel) -> bool:
        """Whether a map at `inner` may stand, at any depth, inside a map at `outer`; False for levels it lacks."""
        return self.has_level(outer) and self.has_level(inner) and reason_against(outer, inner) is None

    # -- memories and vectors -------------------------------------------------------------------------------------

    def memory(self, name: str) -> MemorySpec:
        """The memory of this name; raises LookupError, listing what there is, where it is missing."""
        for spec in self.memories:
            if spec.name == name:
                return spec
        known = ", ".join(spec.name for spec in self.memories)
        raise LookupError(f"{self} has no memory {name}; it has {known}")

    def has_memory(self, name: str) -> bool:
        """Whether the machine has a memory of this name."""
        return any(spec.name == name for spec in self.memories)

    def vector_width(self, bits: int) -> int:
        """How many elements of `bits` bits the widest vector register holds (at least 1)."""
        return max(1, min(self.vector_lanes, self.vector_bytes * 8 // bits))

    def vector_widths(self, bits: int) -> tuple[int, ...]:
        """The lengths, ascending, that a map at the level `vec` may have for elements of `bits` bits.

        Longer ones than `vector_width` become several registers. The element type does not matter on a machine
        whose compiler splits vectors; `bits` is asked for because it does where one access is the limit.
        """
        limit = self.vector_lanes
        if self.kind == "gpu":
            limit = min(limit, max(1, self.access_bytes * 8 // bits))
        return tuple(1 << k for k in range(1, limit.bit_length()) if 1 << k <= limit)

    def computes(self, scalar: str) -> bool:
        """Whether the machine has arithmetic for the scalar type of this name (otherwise convert after loading)."""
        return scalar not in self.no_arithmetic

    # -- peaks ----------------------------------------------------------------------------------------------------

    def bandwidth(self, memory: str = "heap") -> Peak:
        """Bytes a second to and from `memory`, all cores together; raises LookupError where it is not known."""
        return self._peak(self.bandwidths, memory, "bandwidth")

    def arithmetic_peak(self, scalar: str) -> Peak:
        """Operations a second in this type, all cores together; raises LookupError where it is not known."""
        return self._peak(self.arithmetic, scalar, "arithmetic")

    def _peak(self, peaks: tuple[Peak, ...], name: str, what: str) -> Peak:
        for peak in peaks:
            if peak.of == name:
                return peak
        known = ", ".join(peak.of for peak in peaks) or "none"
        raise LookupError(f"the {what} peak for {name} of {self} is not known; known: {known}")

    def with_measured(
        self,
        bandwidths: Mapping[str, float] | None = None,
        arithmetic: Mapping[str, float] | None = None,
        launch_seconds: float | None = None,
    ) -> DeviceModel:
        """The same device with measured rates in place of what was assumed."""
        return replace(
            self,
            bandwidths=_updated(self.bandwidths, bandwidths or {}),
            arithmetic=_updated(self.arithmetic, arithmetic or {}),
            launch_seconds=self.launch_seconds if launch_seconds is None else launch_seconds,
        )

    # -- identity -------------------------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """A short name for the device as a key of caches and tuning records.

        It changes with everything about the device that changes which kernel is best: not with measured rates or the
        amount of heap, which a system reports anew after each update, and not with how this package models the rest.
        """
        memories = [(m.name, m.bytes, m.line_bytes, m.banks, m.bank_bytes) for m in self.memories if m.name != "heap"]
        caches = [(c.level, c.bytes, c.line_bytes, c.shared_by) for c in self.caches]
        registers = (self.registers.per_item, self.registers.per_core, self.registers.bytes)
        facts = (self.name, self.api, self.kind, self.architecture, self.cores, self.vector_bytes, self.access_bytes,
                 self.group_items, self.warp_width, registers, memories, caches)  # fmt: skip
        digest = hashlib.sha256(repr(facts).encode()).hexdigest()
        slug = re.sub(r"[^a-z0-9]+", "-", f"{self.api} {self.name}".lower()).strip("-")
        return f"{slug}-{digest[:10]}"


def _updated(peaks: tuple[Peak, ...], rates: Mapping[str, float]) -> tuple[Peak, ...]:
    kept = tuple(peak for peak in peaks if peak.of not in rates)
    return kept + tuple(Peak(name, rate, "measured") for name, rate in rates.items())
