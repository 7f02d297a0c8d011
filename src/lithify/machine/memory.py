"""The memories of a machine: how large, how banked, and one instance for whom."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemorySpec:
    """One memory.

    `bytes` is the size of one instance (None: no limit worth modelling), `banks` and `bank_bytes` how accesses of one
    cycle spread, `line_bytes` what one access fetches.
    """

    name: str
    bytes: int | None
    line_bytes: int
    banks: int = 1
    bank_bytes: int = 4


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of cache: total bytes of one instance, its line, and how many cores share it."""

    level: int
    bytes: int
    line_bytes: int
    shared_by: int = 1


@dataclass(frozen=True, slots=True)
class Registers:
    """The register file: `per_item` registers of `bytes` each for one thread or work-item, `per_core` for all.

    On a CPU these are the vector registers, and `per_core` equals `per_item`.
    """

    per_item: int
    per_core: int
    bytes: int


def heap(bytes: int | None, line_bytes: int) -> MemorySpec:
    """Memory that the whole device sees."""
    return MemorySpec("heap", bytes, line_bytes)


def local(bytes: int, *, banks: int = 1, line_bytes: int = 128) -> MemorySpec:
    """Memory shared by a work-group."""
    return MemorySpec("local", bytes, line_bytes, banks)


def per_thread(bytes: int | None, line_bytes: int) -> MemorySpec:
    """Memory of one CPU thread, kept between its iterations."""
    return MemorySpec("thread", bytes, line_bytes)


def private(bytes: int | None, registers: Registers) -> tuple[MemorySpec, MemorySpec]:
    """Memory of one work-item or loop body: `private`, which may spill, and `reg`, which is registers alone."""
    return MemorySpec("private", bytes, 4), MemorySpec("reg", registers.per_item * registers.bytes, registers.bytes)


def out() -> MemorySpec:
    """The place where the enclosing pattern wants its result: whatever memory that is."""
    return MemorySpec("out", None, 1)
