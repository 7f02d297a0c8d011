"""The machine that this process runs on: its CPU as a device model."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from lithify.machine import memory
from lithify.machine.levels import sequential_levels, thread_level, vector_level
from lithify.machine.memory import Cache, Registers
from lithify.machine.model import DeviceModel
from lithify.machine.roofline import Peak

# Longest map[vec]: a wide group stays one value until LLVM splits it into registers.
_VECTOR_LANES = 256
_LINE_BYTES = 64
# Assumed until measured: what one core streams, and how much more than one all of them do.
_CORE_BANDWIDTH = 12e9
_MOST_BANDWIDTH = 200e9
_CLOCK = 2.5e9
_CALL_SECONDS = 10e-6


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """A vector instruction set: bytes and number of its registers, and multiply-adds that start in a cycle."""

    name: str
    bytes: int
    registers: int
    fma_a_cycle: float


# Best first; the first whose flags the processor has all of is taken.
_VECTOR_UNITS = (
    (frozenset({"avx512f", "avx512vl"}), VectorUnit("avx512", 64, 32, 2)),
    (frozenset({"avx2", "fma"}), VectorUnit("avx2", 32, 16, 2)),
    (frozenset({"asimd"}), VectorUnit("neon", 16, 32, 2)),
    (frozenset({"sse2"}), VectorUnit("sse2", 16, 16, 1)),
)
# What an architecture has at least, where its flags cannot be read.
_BASELINE = {"x86_64": {"sse2"}, "amd64": {"sse2"}, "aarch64": {"asimd"}, "arm64": {"asimd"}}
_SCALAR_UNIT = VectorUnit("scalar", 8, 16, 1)
# Words of the architecture for products of small matrices, by the processor's flag: see `instructions`.
_DOT_PRODUCTS = {
    "avx512_bf16": "avx512bf16",
    "avx512_vnni": "avx512vnni",
    "avx_vnni": "avxvnni",
    "asimddp": "dotprod",
    "bf16": "bf16",
    "amx_bf16": "amxbf16",
    "amx_int8": "amxint8",
}
# How many multiply-adds of a type they do in the place of one in f32.
_DOT_RATES = {
    "avx512bf16": ("bf16", 2),
    "bf16": ("bf16", 2),
    "avx512vnni": ("i8", 4),
    "dotprod": ("i8", 4),
    "amxbf16": ("bf16", 16),
    "amxint8": ("i8", 32),
}
# Flags of the matrix unit, which a process may use only where the system grants it.
_TILE_FLAGS = frozenset({"amx_bf16", "amx_int8"})
# Linux on x86-64: the call arch_prctl, its request for a part of the processor's state, and the part that holds tiles.
_ARCH_PRCTL, _REQUEST_STATE, _TILE_DATA = 158, 0x1023, 18


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """What the system tells about its CPU; `clock` in Hz, `memory` in bytes, None where it does not tell."""

    name: str
    machine: str
    flags: frozenset[str]
    cores: int
    caches: tuple[Cache, ...]
    clock: float | None
    memory: int | None

    @property
    def vector_unit(self) -> VectorUnit:
        """The best vector instruction set that the processor has."""
        for needed, unit in _VECTOR_UNITS:
            if needed <= self.flags:
                return unit
        return _SCALAR_UNIT

    @property
    def dot_products(self) -> tuple[str, ...]:
        """The architecture's words for the dot products that the processor's vectors have."""
        return tuple(word for flag, word in _DOT_PRODUCTS.items() if flag in self.flags)


def read_cpu(root: Path = Path("/"), machine: str | None = None) -> CpuFacts:
    """What /proc and /sys below `root` say of the CPU, with fallbacks for all that is missing there."""
    machine = (machine or platform.machine()).lower()
    cpuinfo = _text(root / "proc/cpuinfo")
    flags = frozenset((_field(cpuinfo, "flags|Features") or "").split()) | _BASELINE.get(machine, set())
    name = _field(cpuinfo, "model name|Hardware|Processor") or f"{machine} CPU"
    caches = _caches(root / "sys/devices/system/cpu/cpu0/cache")
    memory_text = re.search(r"^MemTotal:\s*(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return CpuFacts(
        name=name,
        machine=machine,
        flags=flags,
        cores=usable_cores(root),
        caches=caches,
        clock=_clock(root, cpuinfo),
        memory=int(memory_text.group(1)) * 1024 if memory_text else None,
    )


def usable_cores(root: Path = Path("/")) -> int:
    """The cores that this process may use: its affinity, and the share that its container was given."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _text(root / "sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, max(1, math.ceil(int(quota[0]) / int(quota[1]))))
    return cores


def cpu_model(facts: CpuFacts) -> DeviceModel:
    """The device model of a CPU. Rates are estimates until `with_measured` replaces them."""
    unit = facts.vector_unit
    last = facts.caches[-1] if facts.caches else Cache(2, 1 << 20, _LINE_BYTES)
    first = facts.caches[0] if facts.caches else Cache(1, 32 << 10, _LINE_BYTES)
    own = [each for each in facts.caches if each.level <= 2] or [first]
    registers = Registers(unit.registers, unit.registers, unit.bytes)
    line = last.line_bytes
    per_core = (facts.clock or _CLOCK) * unit.fma_a_cycle * 2
    rates = {scalar: max(1, unit.bytes // bytes) for scalar, bytes in {"f32": 4, "f64": 8, "i32": 4, "i64": 8}.items()}
    for word in facts.dot_products:
        if word in _DOT_RATES:
            scalar, times = _DOT_RATES[word]
            rates[f"matrix {scalar}"] = rates["f32"] * times
    return DeviceModel(
        name=facts.name,
        api="cpu",
        kind="cpu",
        architecture=" ".join((facts.machine, unit.name, *facts.dot_products)),
        cores=facts.cores,
        levels=(*sequential_levels(), vector_level(_VECTOR_LANES), thread_level(facts.cores)),
        memories=(
            memory.out(),
            memory.heap(facts.memory, line),
            memory.per_thread(own[-1].bytes, line),
            *memory.private(first.bytes, registers),
        ),
        registers=registers,
        vector_bytes=unit.bytes,
        access_bytes=unit.bytes,
        vector_lanes=_VECTOR_LANES,
        caches=facts.caches,
        no_arithmetic=frozenset({"bf16", "f16", "f8e4m3", "f8e5m2"}),
        bandwidths=(Peak("heap", min(facts.cores * _CORE_BANDWIDTH, _MOST_BANDWIDTH), "estimated"),),
        arithmetic=tuple(Peak(scalar, facts.cores * per_core * rate, "estimated") for scalar, rate in rates.items()),
        launch_seconds=_CALL_SECONDS,
    )


@cache
def host() -> DeviceModel:
    """The model of this machine's CPU, looked up once."""
    facts = read_cpu()
    if facts.flags & _TILE_FLAGS and not _tiles_granted():
        facts = replace(facts, flags=facts.flags - _TILE_FLAGS)
    return cpu_model(facts)


def _tiles_granted() -> bool:
    """Ask the system to let this process use tile registers: it saves them only for those that do.

    (Linux, Documentation/arch/x86/xstate.rst.)
    """
    try:
        answer: int = ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_STATE, _TILE_DATA)
    except (OSError, AttributeError):
        return False
    return answer == 0


# -- reading /proc and /sys ---------------------------------------------------------------------------------------


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _field(cpuinfo: str, names: str) -> str | None:
    match = re.search(rf"^(?:{names})\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match.group(1).strip() if match else None


def _clock(root: Path, cpuinfo: str) -> float | None:
    khz = _text(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
    if khz.isdigit():
        return int(khz) * 1e3
    mhz = _field(cpuinfo, "cpu MHz")
    return float(mhz) * 1e6 if mhz else None


def _caches(folder: Path) -> tuple[Cache, ...]:
    """Data and unified caches of the first core, the smallest level first."""
    found = []
    for index in sorted(folder.glob("index*")):
        if _text(index / "type").strip() == "Instruction":
            continue
        size = re.fullmatch(r"(\d+)([KMG]?)", _text(index / "size").strip())
        level = _text(index / "level").strip()
        if size and level.isdigit():
            total = int(size.group(1)) * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[size.group(2)]
            line = _text(index / "coherency_line_size").strip()
            sharers = _cpu_count(_text(index / "shared_cpu_list").strip())
            found.append(Cache(int(level), total, int(line) if line.isdigit() else _LINE_BYTES, sharers))
    return tuple(sorted(found, key=lambda cache: cache.level))


def _cpu_count(cpu_list: str) -> int:
    """How many CPUs a list such as 0-3,8 names; 1 where it is empty."""
    count = 0
    for part in filter(None, cpu_list.split(",")):
        low, _, high = part.partition("-")
        count += int(high or low) - int(low) + 1
    return max(1, count)
