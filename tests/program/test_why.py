"""Why a kernel won: rivals are found and counted, and their differences said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from lithify.explore.problems import read_problem
from lithify.explore.record import Measured
from lithify.explore.records import Records
from lithify.kernel.census import Census
from lithify.lowering.tuning import Parameters
from lithify.program import Program
from lithify.program.module import parse
from lithify.program.why import differences, rivals
from lithify.targets.cache import package_digest

LINE = "gemm -t f32 -transA false -transB false -g 1 -m 48 -n 64 -k 32"


def gemm() -> Program:
    found = read_problem(LINE)
    return parse(found.text, "<problem>")[found.name]


def test_differences_are_sorted_and_clear() -> None:
    mine = Census(
        Counter({"splats": 1000, "vector loads": 4000, "barriers": 1}), Counter({"heap read": 100}), parallel=4
    )
    other = Census(Counter({"splats": 8000, "vector loads": 4100}), Counter({"heap read": 200}), parallel=4)
    found = [str(d) for d in differences(mine, other)]
    assert found == ["splats: 1 k, 8 x fewer than 8 k", "bytes, heap read: 100, 2 x fewer than 200"]


def test_what_only_one_has_is_said() -> None:
    found = [str(d) for d in differences(Census(Counter({"splats": 10})), Census(Counter({"gathers": 10})))]
    assert sorted(found) == ["gathers: none (10)", "splats: 10 (none)"]


def test_the_next_best_comes_from_the_records(tmp_path: Path) -> None:
    program = gemm()
    specialisation = program.specialise(*program.types()[0])
    records = Records(tmp_path / "records.sqlite")
    (only,) = rivals(specialisation, records)
    assert only.role == "winner"
    assert "mPerBlock=" in only.parameters
    other = Parameters.parse(only.parameters).updated(kPerBlock=16)
    device = specialisation.device
    build = f"{package_digest()} {device.target.fingerprint()}"
    for key, seconds in ((only.parameters, 1e-4), (str(other), 2e-4)):
        records.add_measurement(LINE, device.model.fingerprint, build, Measured(key, "right", seconds, (seconds,)))
    winner, following = rivals(specialisation, records)
    assert (winner.seconds, following.seconds) == (1e-4, 2e-4)
    assert following.role == "next best"
    assert differences(winner.census, following.census)
    records.close()


def test_a_program_with_one_lowering_has_no_rival(tmp_path: Path) -> None:
    program = parse("double = λ (xs : n.f32) . map (λ x . x * 2) xs", "<test>")["double"]
    (only,) = rivals(program.specialise("100.f32"), Records(tmp_path / "records.sqlite"))
    assert only.parameters == ""
