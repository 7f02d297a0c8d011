"""Which parameters a program is lowered by: the record of its problem, of a near one, or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lithify.explore.choice import chosen, distance
from lithify.explore.records import Record, Records
from lithify.lang.build import param
from lithify.lang.scalars import f32, f64
from lithify.lang.types import Array
from lithify.lowering.tuning import Parameters
from lithify.machine import host
from tests.explore.test_records import RECORD
from tests.explore.toy import Blocks, times

HERE = replace(RECORD, device=host().fingerprint)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records.sqlite")


def choice(records: Records, n: int) -> Parameters | None:
    return chosen(times(2.0, param("xs", Array(n, f32))), host(), records=records, families=(Blocks(),))


def record(n: int, parameters: str, **more: object) -> Record:
    given = {"problem": f"blocks -n {n}", "sizes": {"n": n}, "parameters": parameters} | more
    return replace(HERE, **given)  # type: ignore[arg-type]


def test_nothing_measured_is_the_default(records: Records) -> None:
    assert choice(records, 100) is None


def test_exactly_this_problem(records: Records) -> None:
    records.put(record(100, "block=8,order=up"))
    records.put(record(128, "block=16,order=up"))
    assert choice(records, 100) == {"block": 8, "order": "up"}


def test_the_nearest_problem(records: Records) -> None:
    records.put(record(64, "block=8,order=up"))
    records.put(record(300, "block=16,order=up"))
    assert choice(records, 100) == {"block": 8, "order": "up"}
    assert choice(records, 200) == {"block": 16, "order": "up"}
    assert choice(records, 10_000) is None  # none is near


def test_parameters_have_to_be_valid(records: Records) -> None:
    records.put(record(400, "block=256,order=up"))  # longer than the array below
    records.put(record(100, "block=8"))  # of a version that knew no order
    records.put(record(120, "block=16,order=sideways,more=1"))
    assert choice(records, 100) is None
    records.put(record(50, "block=4,order=down"))
    assert choice(records, 100) == {"block": 4, "order": "down"}


def test_another_problem_is_believed_only_where_it_gained(records: Records) -> None:
    records.put(record(64, "block=8,order=up", default_seconds=HERE.seconds * 1.01))
    assert choice(records, 100) is None
    assert choice(records, 64) == {"block": 8, "order": "up"}


def test_other_types_and_devices_do_not_count(records: Records) -> None:
    records.put(record(100, "block=8,order=up", scalars={"c": "f64"}, problem="blocks -n 100 -t f64"))
    records.put(record(100, "block=8,order=up", device="gpu-there"))
    assert choice(records, 100) is None


def test_programs_of_no_family(records: Records) -> None:
    xs = param("xs", Array(100, f64))
    assert chosen(xs, host(), records=records, families=(Blocks(),)) is None


def test_a_broken_file_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    path.write_text("this is no database, but it is long enough to be looked at as one" * 20)
    assert choice(Records(path), 100) is None


def test_distances() -> None:
    problem = Blocks().recognise(times(2.0, param("xs", Array(100, f32))))
    assert problem is not None
    assert distance(problem, record(100, "")) == 0
    assert distance(problem, record(200, "")) == distance(problem, record(50, "")) == 1
    assert distance(problem, record(0, "")) == float("inf")
    assert distance(problem, replace(HERE, sizes={"m": 1})) == float("inf")
