"""`lithify tune` and `lithify records`, as they are used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lithify.cli.inputs import read_fixed_types, read_types
from lithify.cli.programs import find_program
from lithify.cli.tune import Rarely, print_outcome
from lithify.explore.record import Measured, Record
from lithify.explore.records import RECORDS, Records
from lithify.explore.search import Outcome, Progress
from lithify.lowering.tuning import Problem
from lithify.machine.roofline import Bound
from lithify.program.work import Work
from tests.cli.conftest import Command

LINE = "gemm -t f32 -m 64 -n 48 -k 32"
NAME = "gemm -t f32 -transA false -transB false -g 1 -m 64 -n 48 -k 32"
SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "records.sqlite"
    monkeypatch.setenv("LITHIFY_RECORDS", str(path))
    return path


def test_tuning_and_its_records(lithify: Command, tmp_path: Path, records: Path) -> None:
    empty = lithify("records", "list")
    assert (empty.code, empty.out) == (0, "")
    assert "there are no records" in empty.err
    done = lithify("tune", LINE, "--budget", "3", "--search", "random")
    assert done.code == 0, done.err
    rows = dict(line.split("  ", 1) for line in done.out.splitlines() if not line.startswith(" "))
    assert rows["problem"].strip() == NAME
    assert rows["measured"].strip().startswith("3 in ")
    assert {"device", "candidates", "best", "time", "default", "share of the bound"} <= rows.keys()
    assert "search 1/" in done.err
    best = lithify("records", "best", LINE)
    assert best.out.strip() == rows["best"].strip()
    assert NAME in lithify("records", "list", "--family", "gemm", "--device", "cpu").out
    assert lithify("records", "list", "--family", "conv").out == ""
    shown = lithify("records", "show", NAME)
    assert f"best      {best.out.strip()}" in shown.out
    derivation = lithify("records", "show", LINE, "--derivation")
    assert json.loads(derivation.out)["steps"]
    (tmp_path / "derivation.json").write_text(derivation.out)
    replayed = lithify("derive", LINE, "--replay", "derivation.json")
    assert replayed.code == 0, replayed.err
    exported = lithify("records", "export", "all.jsonl")
    assert "1 records" in exported.err
    RECORDS.close()
    records.unlink()
    merged = lithify("records", "merge", "all.jsonl")
    assert merged.out == "all.jsonl: 1 of 1 records taken over\n"
    assert lithify("records", "best", LINE).out == best.out
    assert lithify("records", "merge", "all.jsonl").out == "all.jsonl: 0 of 1 records taken over\n"


def test_tuning_goes_on_and_starts_afresh(lithify: Command) -> None:
    assert " 2 in " in lithify("tune", LINE, "-b", "2").out
    again = lithify("tune", LINE, "-b", "3").out
    assert " 3 in " in again
    assert "2 of them by earlier searches" in again
    assert "earlier" not in lithify("tune", LINE, "-b", "2", "--fresh").out


def test_a_file_with_arguments(lithify: Command, folder: Path) -> None:
    (folder / "product.lift").write_text(
        "product = λ a b . map (λ x . map (λ y . reduce (+) 0 (map (*) (zip x y))) (transpose b)) a\n"
    )
    given = ("product.lift", "-a", "32.16.f32", "-a", "random:16x24,f32")
    done = lithify("tune", *given, "-b", "1")
    assert done.code == 0, done.err
    assert "-m 32 -n 24 -k 16" in done.out
    best = lithify("records", "best", *given)  # what was tuned is found by the same words
    assert best.code == 0, best.err
    assert best.out == lithify("records", "best", "gemm -t f32 -k 16 -n 24 -m 32").out
    shown = lithify("records", "show", *given).out
    assert best.out.strip() in shown
    assert max(map(len, shown[shown.index("versions") : shown.index("\ndate")].splitlines())) <= 100


def test_records_of_work_that_only_the_program_says(lithify: Command, folder: Path) -> None:
    (folder / "layer.lift").write_text(
        "layer = λ a b . map (λ x . map (λ y . max 0 (reduce (+) 0 (map (*) (zip x y)))) (transpose b)) a\n"
    )
    given = ("layer.lift", "-a", "32.16.f32", "-a", "16.24.f32")
    assert lithify("tune", *given, "-b", "1").code == 0
    line = next(text for text in lithify("records", "list").out.splitlines() if "-epilogue" in text).partition(":")[0]
    name, *flags = line.split()
    turned = " ".join([name, *flags[2:], *flags[:2]])
    best = lithify("records", "best", *given)
    assert best.out == lithify("records", "best", line.strip()).out == lithify("records", "best", turned).out != ""
    again = lithify("tune", line.strip(), "-b", "1")
    assert again.code == 2
    assert "give that program instead" in again.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tune", "gemm -t f32 -m 64 -n 48"), "-k is missing"),
        (("tune", "gemm -t f32 -m 64 -n 48 -q 3"), "gemm has no flag -q"),
        (("tune", LINE, "--budget", "soon"), "`soon` is no budget"),
        (("tune", LINE, "--search", "luck"), "there is no search `luck`"),
        (("tune", LINE, "--device", "tpu"), "there is no device 'tpu'"),
        (("tune", "total.lift", "-a", "100.f32"), "total is of no family of programs that is tuned"),
        (("tune", "total.lift"), "no argument is given for xs"),
        (("records", "show", LINE), f"there is no record of `{LINE}`"),
        (("records", "best", "gemm -t f32"), "-m is missing"),
        (("records", "best", "total.lift"), "no argument is given for xs"),
        (("records", "show", "total.lift", "-a", "100.f32"), "there is no record of `total.lift`"),
        (("records", "show", "nowhere.lift"), "there is no file nowhere.lift"),
        (("records", "export", "x.jsonl"), "there are no records to export"),
        (("records", "merge", "notes.txt"), "this is no tuning record"),
        (("records", "merge", "missing.jsonl"), "missing.jsonl cannot be read"),
        (("records", "list", "--device", "tpu"), "there is no device 'tpu'"),
    ],
)
def test_bad_input(lithify: Command, arguments: tuple[str, ...], said: str) -> None:
    outcome = lithify(*arguments)
    assert outcome.code == 2
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_the_place_in_a_problem_line_is_shown(lithify: Command) -> None:
    outcome = lithify("tune", "gemm -t f32 -m 64 -nn 48 -k 3")
    assert "gemm -t f32 -m 64 -nn 48 -k 3\n                  ^" in outcome.err


def test_problem_lines_are_programs(lithify: Command) -> None:
    assert lithify("check", LINE).out == "gemm : 64.32.f32 -> 32.48.f32 -> 64.48.f32\n"
    assert lithify("run", LINE, "-a", "ones:64x32,f32", "-a", "ones:32x48,f32", "-o", "c.npy").code == 0


def test_problem_lines_say_their_arguments_themselves(lithify: Command, folder: Path) -> None:
    assert lithify("run", LINE).code == 0
    assert "ok    the kernels" in lithify("check", LINE, "--values").out
    program = find_program(LINE)
    # by its types, not as for any size: records are looked up by them
    assert read_fixed_types(program, (), {}) == read_types(program, (), {}, 0) != ()
    (folder / "open.lift").write_text("f (xs : n.f32) = sum xs\n")
    opened = find_program("open.lift:f")
    assert read_fixed_types(opened, (), {}) == ()
    assert [str(type_) for type_ in read_fixed_types(opened, (), {"n": 5})] == ["5.f32"]


def test_an_interrupt_keeps_what_was_measured(folder: Path, records: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "lithify.cli", "tune", LINE, "--budget", "60s"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as tuning:
        kept = Records(records)
        end = time.monotonic() + 30
        while time.monotonic() < end and not _measured(kept):
            time.sleep(0.05)
        tuning.send_signal(signal.SIGINT)
        out, err = tuning.communicate(timeout=30)
    assert tuning.returncode == 130, err
    assert "interrupted: the same command goes on" in out
    assert "Traceback" not in err
    assert len(kept.all()) == 1


def _measured(kept: Records) -> bool:
    return bool(kept._all("SELECT candidate FROM measurements"))


def test_bench_makes_the_data_of_a_problem_line(lithify: Command) -> None:
    outcome = lithify("bench", LINE)
    assert outcome.code == 0, outcome.err
    assert "reference evaluator" in outcome.out


def test_progress_without_a_terminal_is_said_rarely() -> None:
    said: list[str] = []
    show = Rarely("tuning", said.append)

    def at(elapsed: float, phase: str, best: str | None) -> None:
        show(Progress(phase, 1, 0, 9, best, 1.0 if best else None, None, elapsed, None))

    for second in range(1, 41):
        at(second, "filter", None)
    assert said == [f"tuning: 9 candidates so far, {s} s" for s in (1, 16, 31)]
    for second in range(41, 70):
        at(second, "search", "x=1")
    assert len(said) == 5
    assert "best" in said[3]


def test_what_there_was_no_time_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem("gemm", "gemm -m 8", {"m": 8}, {"c": "f32"})
    default = Measured("x=1", "right", 1.0, (1.0,))
    outcome = Outcome(problem, 1000, 40, {"odd": 60}, (default,), None, 1.5, 0, False, looked=100)
    print_outcome(outcome, "cpu", Work(1, 1, {}), None)
    said = capsys.readouterr().out
    assert "40 of 100 that there was time to look at, of 1000 in all" in said
    assert "1 in 1.5 s, the budget ended before anything but the default: give more" in said


def test_a_share_above_the_bound_is_explained_by_what_binds(capsys: pytest.CaptureFixture[str]) -> None:
    """Data that come from caches explain nothing where arithmetic binds."""
    problem = Problem("gemm", "gemm -m 8", {"m": 8}, {"c": "f32"})
    record = Record("gemm -m 8", "cpu", "gemm", "x=1", 1.0, 1.0, 1.0, 1.0, 1.2, 1, "", {}, {}, {}, "2026-01-01")
    outcome = Outcome(problem, 1, 1, {}, (Measured("x=1", "right", 1.0, (1.0,)),), record, 1.5, 0, False)
    for resource, caches in (("f32", False), ("heap", True)):
        print_outcome(outcome, "cpu", Work(1, 1, {"f32": 2.0}), Bound(1.2, resource, ((resource, 1.2),)))
        said = capsys.readouterr().out
        assert "120%; more than the bound allows" in said
        assert ("caches" in said) == caches
    assert repr(outcome).count("x=1") == 1  # a notebook shows what was found, not all that was measured
