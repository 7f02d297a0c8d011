"""Searching: every way in which a candidate can fail is recorded, the best is kept, interrupted searches go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from lithify.explore import search as module
from lithify.explore.building import Builders
from lithify.explore.candidates import Effort, Filtered
from lithify.explore.proposals import History
from lithify.explore.records import Records
from lithify.explore.search import Budget, Outcome, Progress, Timeouts, search
from lithify.lang.errors import LithifyError
from lithify.lowering.tuning import Problem
from tests.explore.toy import Faults, FaultyTarget

PROBLEM = Problem("faults", "faults -n 1000", {"n": 1000}, {"c": "f32"})


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records.sqlite")


def run(records: Records, budget: Budget, on_progress: Callable[[Progress], None] | None = None) -> Outcome:
    target = FaultyTarget(1)
    faults = Faults(target)
    return search(
        faults, target, faults.task(), PROBLEM, budget, search="exhaustive", records=records,
        timeouts=Timeouts(build=3.0, run=3.0), on_progress=on_progress,
    )  # fmt: skip


def test_whatever_goes_wrong_is_recorded_and_skipped(records: Records) -> None:
    seen: list[Progress] = []
    outcome = run(records, Budget(), seen.append)
    found = {m.candidate: (m.state, m.detail) for m in outcome.measurements}
    assert {key: state for key, (state, _) in found.items()} == {
        "default": "right", "other": "right", "refused": "failed", "broken": "failed", "wrong": "wrong",
        "idle": "wrong", "slow-build": "timeout", "dead-build": "crashed", "hangs": "timeout", "crashes": "crashed",
    }  # fmt: skip
    assert found["refused"][1] == "no rule applies"
    assert found["broken"][1] == "KeyError: 'a defect'"
    assert "the result differs by 5.0e-01" in found["wrong"][1]
    assert "differs by inf" in found["idle"][1]  # what it has not written is poisoned
    assert "SIGKILL" in found["dead-build"][1]
    assert "SIGSEGV" in found["crashes"][1]
    assert outcome.rejected == {"this is candidate # of #": 1}
    assert (outcome.total, outcome.valid, outcome.resumed, outcome.interrupted) == (11, 10, 0, False)
    record = outcome.record
    assert record is not None
    assert record.parameters in ("default", "other")
    assert record.default_seconds is not None
    assert record.low <= record.seconds <= record.high
    assert record.seconds <= record.default_seconds
    assert [p.phase for p in seen] == ["search"] * 11 + ["final"]
    assert (seen[-1].measured, seen[-1].failed, seen[-1].total) == (10, 8, 10)


def test_a_second_search_measures_nothing_anew(records: Records) -> None:
    first = run(records, Budget(measurements=2))
    second = run(records, Budget(measurements=2))
    assert [m.candidate for m in first.measurements] == ["default", "other"]
    assert [(m.candidate, m.seconds) for m in second.measurements] == [
        (m.candidate, m.seconds) for m in first.measurements
    ]
    assert second.resumed == 2
    assert second.record == first.record
    third = run(records, Budget(measurements=3))
    assert [m.candidate for m in third.measurements] == ["default", "other", "refused"]


def test_an_interrupt_loses_nothing(records: Records) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.measured == 2:
            raise KeyboardInterrupt

    first = run(records, Budget(), interrupt)
    assert first.interrupted
    assert [m.candidate for m in first.measurements] == ["default", "other"]
    assert first.record is not None
    second = run(records, Budget(measurements=4))
    assert not second.interrupted
    assert second.resumed == 2
    assert [m.candidate for m in second.measurements] == ["default", "other", "refused", "broken"]


def test_time_that_was_spent_before_counts(records: Records) -> None:
    first = run(records, Budget(measurements=2))
    spent = sum(m.cost for m in first.measurements)
    assert 0 < spent <= first.seconds
    second = run(records, Budget(seconds=spent / 2))
    assert second.resumed == len(second.measurements) == 2


def test_proposing_takes_time_too(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proposed when the budget is spent is not measured any more."""
    passed = [0.0]

    class Slow:
        def propose(self, history: History) -> Iterator[str]:
            for key in ("default", "other", "refused"):
                if key not in history:
                    passed[0] += 40.0
                    yield key

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0]))
    monkeypatch.setattr(module, "proposer", lambda *given: Slow())
    outcome = run(records, Budget(seconds=100))
    assert [m.candidate for m in outcome.measurements] == ["default", "other"]
    assert passed[0] == 120


def test_the_default_is_measured_in_any_case(records: Records) -> None:
    outcome = run(records, Budget(seconds=0.001))
    assert [m.candidate for m in outcome.measurements] == ["default"]
    assert outcome.record is not None
    assert outcome.only_default


def test_the_budget_counts_from_where_the_work_began(records: Records) -> None:
    target = FaultyTarget(1)
    faults = Faults(target)
    outcome = search(faults, target, faults.task(), PROBLEM, Budget(seconds=1000), search="exhaustive",
                     records=records, start=time.monotonic() - 1000)  # fmt: skip
    assert [m.candidate for m in outcome.measurements] == ["default"]
    assert outcome.seconds >= 1000


def test_what_is_still_built_at_the_end_is_given_up() -> None:
    """But for the one that is wanted in any case."""
    target = FaultyTarget(1)
    builders = Builders(Faults(target), target, 60.0, count=2)
    try:
        found = list(builders.build(["default", "slow-build"], until=time.monotonic(), always="default"))
        assert [(each.key, each.state) for each in found] == [("default", "built")]
        assert list(builders.build(["other"], until=time.monotonic())) == []
        assert [each.key for each in builders.build(["other"])] == ["other"]
    finally:
        builders.close()


def test_of_the_seconds_that_are_left_a_part_goes_into_looking(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock of its own: every look takes ten seconds."""
    passed, seen = [0.0], list[Progress]()
    efforts: list[Effort] = []

    def filtered(self: Faults, effort: Effort, known: Sequence[str] = ()) -> Filtered:
        efforts.append(effort)
        kept = 0
        while effort.go_on(kept) and kept < 8:
            passed[0] += 10.0
            kept += 1
        return Filtered(("default", "other")[: 1 + kept], {"odd": kept}, whole=False)

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0]))
    monkeypatch.setattr(Faults, "filtered", filtered)
    outcome = run(records, Budget(seconds=100), seen.append)
    assert passed[0] == 30
    assert (outcome.valid, outcome.looked, outcome.rejected) == (2, 5, {"odd": 3})
    assert not outcome.only_default
    assert [(p.phase, p.total) for p in seen][:3] == [("filter", 1), ("filter", 2), ("filter", 3)]
    assert efforts[0].most is not None
    assert efforts[0].sample < efforts[0].most
    run(records, Budget())
    assert passed[0] == 110  # all of them, however long it takes
    assert (efforts[1].most, efforts[1].sample) == (None, 0)


def test_nothing_right_gives_no_record(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Faults, "KEYS", ("refused", "broken"))
    outcome = run(records, Budget())
    assert outcome.record is None
    assert records.all() == []


def test_a_search_without_a_file_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITHIFY_RECORDS", "")
    outcome = run(Records(), Budget(measurements=1))
    assert outcome.record is not None
    assert Records().all() == []


def test_an_unknown_search_is_an_error(records: Records) -> None:
    target = FaultyTarget(1)
    faults = Faults(target)
    with pytest.raises(LithifyError, match="there is no search `luck`"):
        search(faults, target, faults.task(), PROBLEM, Budget(), search="luck", records=records)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("60s", Budget(seconds=60)),
        ("2m", Budget(seconds=120)),
        ("1.5h", Budget(seconds=5400)),
        ("200", Budget(measurements=200)),
        ("all", Budget()),
    ],
)
def test_budgets(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "0", "0s", "1.5", "fast", "-3", "10 days"])
def test_no_budgets(text: str) -> None:
    with pytest.raises(LithifyError, match="is no budget"):
        Budget.parse(text)
