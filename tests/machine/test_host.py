"""Reading a CPU from /proc and /sys: processors of several kinds, and systems that tell little."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.machine import Cache, cpu_model, read_cpu

AVX512 = "fpu sse2 fma avx avx2 avx512f avx512vl avx512bw"
AVX2 = "fpu sse2 fma avx avx2"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def system(root: Path, cpuinfo: str, caches: tuple[tuple[str, str, str, str], ...] = ()) -> Path:
    write(root / "proc/cpuinfo", cpuinfo)
    write(root / "proc/meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\n")
    for number, (level, kind, size, shared) in enumerate(caches):
        folder = root / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        for name, text in {"level": level, "type": kind, "size": size, "shared_cpu_list": shared}.items():
            write(folder / name, text + "\n")
        write(folder / "coherency_line_size", "64\n")
    return root


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "unit", "bytes", "registers"),
    [
        ("x86_64", f"model name\t: Big One\nflags\t\t: {AVX512}\n", "avx512", 64, 32),
        ("x86_64", f"model name\t: Small One\nflags\t\t: {AVX2}\n", "avx2", 32, 16),
        ("x86_64", "model name\t: Old One\nflags\t\t: fpu sse2 avx\n", "sse2", 16, 16),
        ("aarch64", "processor\t: 0\nFeatures\t: fp asimd evtstrm aes\n", "neon", 16, 32),
        ("aarch64", "", "neon", 16, 32),
        ("x86_64", "", "sse2", 16, 16),
        ("riscv64", "isa\t: rv64imafdc\n", "scalar", 8, 16),
    ],
)
def test_vector_units(tmp_path: Path, machine: str, cpuinfo: str, unit: str, bytes: int, registers: int) -> None:
    model = cpu_model(read_cpu(system(tmp_path, cpuinfo), machine))
    assert model.architecture == f"{machine} {unit}"
    assert (model.vector_bytes, model.registers.per_item) == (bytes, registers)
    assert model.vector_width(32) == bytes // 4
    assert model.memory("reg").bytes == bytes * registers


@pytest.mark.parametrize(
    ("machine", "flags", "words", "peaks"),
    [
        ("x86_64", f"flags : {AVX512} avx512_bf16 avx512_vnni", "avx512 avx512bf16 avx512vnni", {"bf16": 2, "i8": 4}),
        ("x86_64", f"flags : {AVX2} avx_vnni", "avx2 avxvnni", {}),
        ("aarch64", "Features : asimd asimddp bf16", "neon dotprod bf16", {"i8": 4, "bf16": 2}),
    ],
)
def test_dot_products(tmp_path: Path, machine: str, flags: str, words: str, peaks: dict[str, int]) -> None:
    model = cpu_model(read_cpu(system(tmp_path, flags + "\n"), machine))
    assert model.architecture == f"{machine} {words}"
    rate = model.arithmetic_peak("f32").rate
    assert {p.of: p.rate for p in model.arithmetic if p.of.startswith("matrix")} == {
        f"matrix {scalar}": times * rate for scalar, times in peaks.items()
    }


def test_caches_memory_and_clock(tmp_path: Path) -> None:
    caches = (
        ("1", "Data", "48K", "0"),
        ("1", "Instruction", "32K", "0"),
        ("2", "Unified", "1M", "0,64"),
        ("3", "Unified", "32768K", "0-7,64-71"),
    )
    root = system(tmp_path, f"model name : A\ncpu MHz : 3000.5\nflags : {AVX512}\n", caches)
    facts = read_cpu(root, "x86_64")
    assert facts.caches == (Cache(1, 48 << 10, 64, 1), Cache(2, 1 << 20, 64, 2), Cache(3, 32 << 20, 64, 16))
    assert facts.memory == 16 << 20
    assert facts.clock == pytest.approx(3000.5e6)
    assert cpu_model(facts).memory("thread").bytes == 1 << 20
    assert cpu_model(facts).memory("private").bytes == 48 << 10
    write(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4200000\n")
    assert read_cpu(root, "x86_64").clock == pytest.approx(4.2e9)


@pytest.mark.parametrize(("quota", "most"), [("max 100000", None), ("100000 100000", 1), ("150000 100000", 2)])
def test_a_container_may_have_fewer_cores(tmp_path: Path, quota: str, most: int | None) -> None:
    root = system(tmp_path, "")
    unlimited = read_cpu(root, "x86_64").cores
    write(root / "sys/fs/cgroup/cpu.max", quota + "\n")
    assert read_cpu(root, "x86_64").cores == (unlimited if most is None else min(most, unlimited))


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    facts = read_cpu(tmp_path, "x86_64")
    assert (facts.name, facts.caches, facts.clock, facts.memory) == ("x86_64 CPU", (), None, None)
    model = cpu_model(facts)
    assert model.memory("heap").line_bytes == 64
    assert model.bandwidth().source == "estimated"
    assert model.level("par").extent == facts.cores
