"""The measuring library: what is called how often and in which order, and what is written."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import cpu_programs
from benchmarks.cpu_cases import cases
from benchmarks.harness import Timing, compare, machine_facts, ratio, record, table, usable_cores
from benchmarks.stream import BYTES, aligned, bandwidths, best, beyond_caches, llvm_loop
from lithify.machine import host
from lithify.machine.memory import Cache, heap


def test_runs_are_interleaved_in_orders_that_are_drawn() -> None:
    calls: list[str] = []
    runs = {name: lambda name=name: calls.append(name) for name in "abc"}
    timings = compare(runs, rounds=12, warm_up=0, sample_seconds=0)
    assert list(timings) == ["a", "b", "c"]
    assert all(len(timing.rounds) == 12 for timing in timings.values())
    measured = "".join(calls[3:])  # the first three calibrate
    rounds = [measured[k : k + 3] for k in range(0, len(measured), 3)]
    assert all(sorted(each) == ["a", "b", "c"] for each in rounds)
    assert {each[each.index("c") - 1] for each in rounds if each[0] != "c"} == {"a", "b"}  # nobody always goes before c


def test_short_calls_are_repeated_to_fill_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    now, count = 0.0, 0

    def run() -> None:
        nonlocal now, count
        now, count = now + 1e-4, count + 1

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    (timing,) = compare({"run": run}, rounds=2, warm_up=1, sample_seconds=2e-3).values()
    assert count == 1 + 1 + 2 * 20
    assert timing.rounds == pytest.approx((1e-4, 1e-4))


def test_device_times_are_taken_as_they_are_returned() -> None:
    timings = compare({"fast": lambda: 0.5, "slow": lambda: 2.0}, rounds=2, sample_seconds=0, device_timed=True)
    assert timings["fast"].rounds == (0.5, 0.5)
    assert ratio(timings["fast"], timings["slow"]) == 4.0


def test_no_round_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one round"):
        compare({"run": lambda: None}, rounds=0)


def test_ratio_pairs_the_rounds() -> None:
    # both slow down by 10 in two rounds out of four: the ratio does not move
    a, b = Timing("a", (1, 10, 1, 10)), Timing("b", (3, 30, 3, 30))
    assert ratio(a, b) == 3


def test_row_of_a_timing() -> None:
    timing = Timing("copy", (0.9e-3, 1e-3, 1.1e-3))
    row = timing.row(bytes=2e6, operations=4e6, note="x")
    assert (row["ms"], row["GB/s"], row["GF/s"], row["note"]) == (1.0, 2.0, 4.0, "x")
    assert 0 < timing.spread < 0.3
    assert Timing("once", (1.0,)).spread == 0


def test_table_alignment_and_missing_cells() -> None:
    text = table([{"name": "a", "ms": 1.25}, {"name": "b", "ok": True}])
    assert text.splitlines() == [
        "| name | ms | ok |",
        "|---|--:|--:|",
        "| a | 1.25 |  |",
        "| b |  | yes |",
    ]


def test_record_writes_both_forms_and_no_path_of_this_machine(tmp_path: Path) -> None:
    path = record("sum", [{"name": "a", "ms": 1.5}], device="Some CPU (2x)", note="A note.", folder=tmp_path)
    assert path.name == "sum-some-cpu-2x.json"
    content = json.loads(path.read_text())
    assert content["results"] == [{"name": "a", "ms": 1.5}]
    assert content["machine"]["cores"] == usable_cores()
    markdown = path.with_suffix(".md").read_text()
    assert "# sum on Some CPU (2x)" in markdown
    assert "| a | 1.5 |" in markdown
    assert str(Path.home()) not in path.read_text() + markdown


def test_machine_facts_name_the_versions() -> None:
    versions = machine_facts()["versions"]
    assert isinstance(versions, dict)
    assert {"numpy", "llvmlite"} <= set(versions)


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_llvm_streams_do_what_they_say(blocks: int) -> None:
    n = 64 * blocks
    a, b, c = aligned(n), aligned(n), aligned(n)
    b[:] = range(n)
    addresses = [each.ctypes.data for each in (a, b, c)]
    llvm_loop("copy")(*addresses, 0, n)
    assert (a == b).all()
    llvm_loop("triad")(*addresses, 0, n)
    assert (a == b + 3 * c).all()
    llvm_loop("read")(*addresses, 0, n)
    assert math.isclose(a[0], float(b.sum()), rel_tol=1e-6)


def test_bandwidths_cover_every_stream() -> None:
    rows = bandwidths(1 << 14, rounds=1)
    assert {row["kind"] for row in rows} == set(BYTES)
    assert all(row["GB/s"] > 0 for row in rows)
    assert best(rows, "copy") == 1e9 * max(row["GB/s"] for row in rows if row["kind"] == "copy")


@pytest.mark.parametrize(
    ("caches", "memory", "elements"),
    [
        ((1 << 20, 300 << 20), 24 << 30, 1 << 28),  # 1 GiB: 512 MiB is less than twice the cache
        ((1 << 20, 32 << 20), 24 << 30, 1 << 24),  # twice the cache exactly
        ((300 << 20,), 12 << 30, 1 << 27),  # a sixteenth of the memory is 768 MiB
        ((2 << 20,), None, 1 << 20),
    ],
)
def test_arrays_beyond_the_caches(caches: tuple[int, ...], memory: int | None, elements: int) -> None:
    model = replace(
        host(),
        caches=tuple(Cache(level, bytes, 64) for level, bytes in enumerate(caches, 1)),
        memories=(heap(memory, 64),),
    )
    assert beyond_caches(model) == elements


def test_only_the_last_sizes_are_beyond_the_caches() -> None:
    most = [group.elements for group in cases(False)]
    assert most == sorted(most)
    assert set(most) == {min(most), max(min(most), beyond_caches(host()))}
    assert len({group.elements for group in cases(True)}) == 1


def test_the_command_finds_the_benchmarks() -> None:
    from benchmarks.__main__ import benchmark_names

    assert {"stream", "baseline.reduction_printed"} <= set(benchmark_names())


def test_the_readme_names_every_benchmark() -> None:
    from benchmarks.__main__ import HERE, benchmark_names

    text = (HERE / "README.md").read_text(encoding="utf-8")
    assert [name for name in benchmark_names() if f"`{name}`" not in text] == []


def test_rows_of_no_program_are_refused() -> None:
    with pytest.raises(SystemExit, match="no row is named nothing"):
        cpu_programs.run(True, {"nothing"})
