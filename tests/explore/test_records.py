"""Tuning records: kept, found, merged, read by several processes at once."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from lithify.explore import records as module
from lithify.explore.place import state_of_records
from lithify.explore.record import Measured, Record
from lithify.explore.records import Records, read_file
from lithify.lang.errors import LithifyError

RECORD = Record(
    problem="blocks -n 100", device="cpu-here", family="blocks", parameters="block=8,order=up", seconds=1e-3,
    low=0.9e-3, high=1.2e-3, default_seconds=2e-3, bound_seconds=5e-4, measured=12, state="warm", sizes={"n": 100},
    scalars={"c": "f32"}, versions={"lithify": "0.1.0"}, date="2026-01-02T03:04:05+00:00", derivation='{"steps": []}',
)  # fmt: skip


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "folder" / "records.sqlite")


def test_a_record_is_found_again(records: Records) -> None:
    assert records.find(RECORD.problem, RECORD.device) is None
    records.put(RECORD)
    assert records.find(RECORD.problem, RECORD.device) == RECORD
    assert records.find(RECORD.problem, "gpu-there") is None
    assert records.of_family("blocks", RECORD.device) == [RECORD]
    assert records.of_family("gemm", RECORD.device) == []
    assert records.all() == [RECORD]
    better = replace(RECORD, seconds=5e-4)
    records.put(better)
    assert records.all() == [better]
    assert RECORD.gain == 2


def test_measurements_are_kept_by_build(records: Records) -> None:
    first = Measured("block=8", "right", 1e-3, (1e-3, 1.5e-3), "", 0.25)
    second = Measured("block=7", "failed", None, (), "no luck", 0.125)
    for each in (first, second):
        records.add_measurement("blocks -n 100", "cpu-here", "build 1", each)
    assert records.measurements("blocks -n 100", "cpu-here", "build 1") == [first, second]
    assert records.measurements("blocks -n 100", "cpu-here", "build 2") == []
    records.put(RECORD)
    records.forget("blocks -n 100", "cpu-here")
    assert records.measurements("blocks -n 100", "cpu-here", "build 1") == []
    assert records.all() == []


def test_exported_lines(records: Records, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text(RECORD.as_line() + "\n\n", encoding="utf-8")
    assert read_file(path) == [RECORD]
    records.put(RECORD)
    records.close()
    assert records.path is not None
    assert read_file(records.path) == [RECORD]


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"format": 1}', '{"format": 99}', '{"format": 1, "problem": "x"}'])
def test_lines_that_are_none(line: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(f"{RECORD.as_line()}\n{line}\n", encoding="utf-8")
    with pytest.raises(LithifyError, match="tuning record") as caught:
        read_file(path)
    assert caught.value.where == f"{path}, line 2"


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LithifyError, match="cannot be read: it is neither"):
        read_file(tmp_path / "bytes")
    with pytest.raises(LithifyError, match="cannot be read: No such file"):
        read_file(tmp_path / "nothing")
    (tmp_path / "broken.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(200))
    with pytest.raises(LithifyError, match="cannot be used"):
        read_file(tmp_path / "broken.sqlite")


def test_merging(records: Records) -> None:
    records.put(RECORD)
    slower = replace(RECORD, seconds=1.5e-3)
    faster = replace(RECORD, seconds=0.5e-3)
    elsewhere = replace(RECORD, device="cpu-there")
    assert records.merge([slower]) == 0
    assert records.merge([faster, elsewhere]) == 2
    assert records.find(RECORD.problem, RECORD.device) == faster
    # another machine of the same kind, where everything is twice as fast: the later one is kept
    earlier = replace(RECORD, default_seconds=1e-3, seconds=0.4e-3, date="2025-01-01T00:00:00+00:00")
    assert records.merge([earlier]) == 0
    assert records.merge([replace(earlier, date="2027-01-01T00:00:00+00:00")]) == 1


def test_the_file_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITHIFY_RECORDS", str(tmp_path / "here.sqlite"))
    assert Records().path == tmp_path / "here.sqlite"
    assert state_of_records(RECORD.device) == ""
    Records().put(RECORD)
    before = state_of_records(RECORD.device)
    assert before
    Records().put(replace(RECORD, problem="blocks -n 200"))
    assert state_of_records(RECORD.device) != before


def test_records_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITHIFY_RECORDS", "")
    off = Records()
    off.put(RECORD)
    off.add_measurement("p", "d", "b", Measured("c", "right"))
    assert off.path is None
    assert off.all() == []
    assert state_of_records(RECORD.device) == ""


def test_shipped_records_stand_behind_the_users(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(RECORD, problem="blocks -n 7")
    monkeypatch.setattr(module, "shipped", lambda: (RECORD, other))
    assert records.find(RECORD.problem, RECORD.device) == RECORD
    own = replace(RECORD, seconds=5e-4)
    records.put(own)
    assert records.find(RECORD.problem, RECORD.device) == own
    assert records.of_family("blocks", RECORD.device) == [own, other]
    assert records.all() == [own, other]
    assert records.own() == [own]


def _writer(path: Path, name: str) -> None:
    records = Records(path)
    for k in range(20):
        records.add_measurement("p", "d", "b", Measured(f"{name}={k}", "right", 1.0, (1.0,)))


def test_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_writer, args=(path, name)) for name in "abcd"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(Records(path).measurements("p", "d", "b")) == 80


def test_a_file_that_can_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that is, there is no place for what sqlite writes beside it: it is read all the same."""
    path = tmp_path / "records #1?.sqlite"
    writer = Records(path)
    writer.check_writable()
    writer.put(RECORD)
    writer.close()
    monkeypatch.setattr(module, "_is_writable", lambda path: False)
    reader = Records(path)
    assert reader.own() == [RECORD]
    assert reader.find(RECORD.problem, RECORD.device) == RECORD
    for write in (reader.check_writable, lambda: reader.put(RECORD), lambda: reader.forget("p", "d")):
        with pytest.raises(LithifyError, match="cannot be used: attempt to write a readonly database"):
            write()
    assert not list(tmp_path.glob("*-wal"))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    path.write_text("this is no database, but it is long enough to be looked at as one" * 20)
    with pytest.raises(LithifyError, match="cannot be used") as caught:
        Records(path).all()
    assert "LITHIFY_RECORDS" in str(caught.value)


WRONG = {
    "parameters": 3, "sizes": {"n": "many"}, "scalars": None, "seconds": 0, "low": "x", "default_seconds": 0.0,
    "measured": None, "date": 3, "derivation": 3, "unknown": 1,
}  # fmt: skip


@pytest.mark.parametrize("field", WRONG)
def test_fields_of_other_kinds_are_refused(field: str, records: Records, tmp_path: Path) -> None:
    """In exported files, and in a database that something else has written."""
    data = json.loads(RECORD.as_line()) | {field: WRONG[field]}
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(LithifyError, match="this is no tuning record"):
        read_file(path)
    records.put(RECORD)
    records._write("UPDATE records SET data = ?", [(json.dumps({k: v for k, v in data.items() if k != "format"}),)])
    if field != "derivation":  # lies in a column of its own
        with pytest.raises(LithifyError, match="this is no tuning record"):
            records.find(RECORD.problem, RECORD.device)


@pytest.mark.parametrize(
    ("column", "value"), [("data", "{"), ("data", "null"), ("data", "[1]"), ("derivation", b"zip")]
)
def test_rows_that_are_no_records(column: str, value: str | bytes, records: Records) -> None:
    records.put(RECORD)
    records._write(f"UPDATE records SET {column} = ?", [(value,)])
    for read in (records.all, lambda: records.find(RECORD.problem, RECORD.device)):
        with pytest.raises(LithifyError, match="this is no tuning record"):
            read()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE records SET data = '{'",
        "UPDATE records SET data = '[1]'",
        "UPDATE records SET derivation = x'0102'",
        "UPDATE measurements SET samples = 'none'",
        "UPDATE measurements SET seconds = 'soon'",
        "UPDATE measurements SET cost = 'dear'",
        "PRAGMA user_version = 7",
    ],
)
def test_what_is_damaged_is_told_with_the_file_and_the_remedy(records: Records, damage: str) -> None:
    _with_all(records)
    _execute(records, damage)
    with pytest.raises(LithifyError, match=f"(?s){records.path}.*hint: .*LITHIFY_RECORDS names another file"):
        _read_all(records)


def test_a_file_with_more_columns_is_used(records: Records) -> None:
    """As a later version may add them: what is known of is read and written by name."""
    _with_all(records)
    for table in ("records", "measurements"):
        _execute(records, f"ALTER TABLE {table} ADD COLUMN more TEXT")
    _with_all(records)
    assert records.all() == [RECORD]
    assert len(records.measurements(RECORD.problem, RECORD.device)) == 1


def _read_all(records: Records) -> None:
    records.all()
    records.measurements(RECORD.problem, RECORD.device)


def _with_all(records: Records) -> None:
    records.put(RECORD)
    measured = Measured("block=8", "right", 1e-3, (1e-3, 1.5e-3), "", 0.25)
    records.add_measurement(RECORD.problem, RECORD.device, "build 1", measured)


def _execute(records: Records, text: str) -> None:
    import sqlite3

    records.close()
    assert records.path is not None
    with sqlite3.connect(records.path) as connection:
        connection.execute(text)
    connection.close()
