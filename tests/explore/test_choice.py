"""Which parameters a program is lowered by: the record of its problem, of a near one, or none."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path

import pytest

from lithify.explore.choice import chosen, distance
from lithify.explore.problems import read_problem
from lithify.explore.record import Measured, Record
from lithify.explore.records import Records
from lithify.lang.build import param
from lithify.lang.scalars import f32, f64
from lithify.lang.term import Term
from lithify.lang.types import Array
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Parameters
from lithify.machine import host
from lithify.program import parse
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


def test_what_was_whole_there_and_is_not_here_is_not_taken(records: Records) -> None:
    """A block of the whole sum of 512 packs once; of 768 it would pack anew for every six rows, five times slower."""

    def of(m: int, n: int, k: int) -> Term:
        read = read_problem(f"gemm -t f32 -m {m} -n {n} -k {k}")
        types = Array(m, Array(k, f32)), Array(k, Array(n, f32))
        return parse(read.text)[read.name].specialise(*map(str, types)).elaborated.term

    found = recognise(name_loops(of(512, 512, 512)))
    assert found is not None
    space = found[0].space(found[1], host())
    assert space is not None
    parameters = space.default.updated(mPerBlock=6, mPerThread=6, nPerBlock=256, nPerThread=64, kPerBlock=512,
                                       outer="n", packA="none", packB="thread")  # fmt: skip
    if space.against(parameters) is not None:
        pytest.skip("this machine has too few registers")
    problem = found[1]
    records.put(replace(HERE, problem=problem.line, family=problem.family, sizes=dict(problem.sizes),
                        scalars=dict(problem.scalars), parameters=str(parameters),
                        default_seconds=HERE.seconds * 1.3))  # fmt: skip
    assert chosen(of(512, 512, 512), host(), records=records) == parameters
    assert chosen(of(384, 512, 512), host(), records=records) == parameters
    assert chosen(of(384, 768, 768), host(), records=records) is None


# ---- the model's first choice --------------------------------------------------------------------------------------


def measure(records: Records, best: dict[int, int]) -> None:
    """Measurements of every set for some lengths, each with the block that is best for it."""
    family = Blocks()
    for n, block in best.items():
        problem = family.recognise(times(2.0, param("xs", Array(n, f32))))
        assert problem is not None
        space = family.space(problem, host())
        assert space is not None
        for parameters in space:
            apart = abs(log2(parameters.number("block")) - log2(block))
            seconds = 1e-9 * n * (1 + apart) * (1.0 if parameters["order"] == "up" else 1.3)
            records.add_measurement(
                problem.line, host().fingerprint, "build", Measured(str(parameters), "right", seconds)
            )
        default = 1e-9 * n * (1 + abs(log2(4) - log2(block)))
        records.put(record(n, f"block={block},order=up", seconds=1e-9 * n, default_seconds=default))


FAR = (3_000, 10_000, 30_000, 100_000)


def test_the_first_choice_of_a_model(records: Records) -> None:
    measure(records, dict.fromkeys(FAR, 64))
    assert choice(records, 400) == {"block": 64, "order": "up"}
    assert choice(records, 400) == choice(records, 400)


def test_the_default_stays_where_the_default_is_best(records: Records) -> None:
    measure(records, dict.fromkeys(FAR, 4))
    assert choice(records, 400) is None


def test_a_model_that_was_wrong_about_others_is_not_asked(records: Records) -> None:
    measure(records, dict(zip(FAR, (256, 1, 256, 1), strict=True)))
    assert choice(records, 400) is None


def test_a_model_of_few_problems_is_not_asked(records: Records) -> None:
    measure(records, dict.fromkeys(FAR[:2], 64))
    assert choice(records, 400) is None
