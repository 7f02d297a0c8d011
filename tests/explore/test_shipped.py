"""The records that ship with the package: they can be read, are valid, gain clearly, and are found by calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.explore.candidates import valid_in
from lithify.explore.choice import chosen
from lithify.explore.place import shipped_files
from lithify.explore.problems import read_problem
from lithify.explore.record import Record
from lithify.explore.records import Records, read_file
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.machine import CpuFacts, DeviceModel, cpu_model, known_models
from lithify.machine.memory import Cache
from lithify.program import parse

# What the machines say of themselves that records were made on. Where the package learns to use more of a processor
# (words of the architecture), defaults change, and with them what a record is worth: then it is time to measure again.
INSTRUCTIONS = ("avx_vnni", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_bf16", "amx_int8", "amx_tile")
SAPPHIRE_RAPIDS = CpuFacts(
    name="Intel(R) Xeon(R) Processor",
    machine="x86_64",
    flags=frozenset({"sse2", "fma", "avx2", "avx512f", "avx512vl", *INSTRUCTIONS}),
    cores=2,
    caches=(Cache(1, 48 << 10, 64), Cache(2, 2 << 20, 64), Cache(3, 300 << 20, 64, 2)),
    clock=None,
    memory=None,
)
MODELS = {model.fingerprint: model for model in (*known_models(), cpu_model(SAPPHIRE_RAPIDS))}
RECORDS = [record for path in shipped_files() for record in read_file(path)]
_CLEARLY = 1.05


def test_some_ship() -> None:
    assert RECORDS
    assert len({(r.problem, r.device) for r in RECORDS}) == len(RECORDS)


def test_files_are_named_by_device_and_small() -> None:
    for path in shipped_files():
        assert {r.device for r in read_file(path)} == {path.stem}
        assert path.stat().st_size < 100_000


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r.problem} on {r.device}")
def test_a_shipped_record(record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model: DeviceModel = MODELS[record.device]
    assert record.gain is not None
    assert record.gain > _CLEARLY
    assert record.low <= record.seconds <= record.high < (record.default_seconds or 0.0)
    named = read_problem(record.problem)
    term = name_loops(parse(named.text)[named.name].term())
    found = recognise(term)
    assert found is not None
    assert found[1].line == record.problem
    space = found[0].space(found[1], model)
    assert space is not None
    assert valid_in(space, record.parameters) is not None
    assert record.parameters != str(space.default)
    monkeypatch.setenv("LITHIFY_RECORDS", str(tmp_path / "none.sqlite"))
    assert str(chosen(term, model, records=Records())) == record.parameters
