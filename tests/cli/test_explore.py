"""`lithify explore` and `lithify explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

SLIDES = str(Path(__file__).parents[2] / "examples" / "slides" / "matrix_multiplication.lift")
PRODUCT = (f"{SLIDES}:matMult", "--arg", "random:32x32,f32", "--arg", "random:32x32,f32")


@pytest.fixture(autouse=True)
def _own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITHIFY_RECORDS", str(tmp_path / "records.sqlite"))


def test_the_funnel_is_printed(lithify: Command) -> None:
    outcome = lithify("explore", *PRODUCT, "--rules", "2", "--enumerate")
    assert outcome.code == 0, outcome.err
    assert "macro rules: 1 high-level program -> " in outcome.out
    assert "loops between a sum and its summands" in outcome.out
    assert "mapping to the machine: " in outcome.out
    assert "parameters: " in outcome.out


def test_the_best_is_searched_and_kept(lithify: Command) -> None:
    outcome = lithify("explore", *PRODUCT, "--rules", "1", "--budget", "4")
    assert outcome.code == 0, outcome.err
    assert "measured            4 in" in outcome.out or "measured   " in outcome.out
    assert "rewriting matMult : 32.32.f32 -> 32.32.f32 -> 32.32.f32" in outcome.out
    assert "rewriting matMult" in lithify("records", "list").out


def test_bad_budgets_and_devices(lithify: Command) -> None:
    assert lithify("explore", *PRODUCT, "--budget", "soon").code == 2
    assert lithify("explore", *PRODUCT, "--device", "abacus").code == 2


def test_an_explanation_says_what_binds(lithify: Command) -> None:
    outcome = lithify("explain", "total.lift", "--arg", "xs.npy")
    assert outcome.code == 0, outcome.err
    for title in ("least time by bytes", "least time by f32 arithmetic", "share of the bound", "parameters"):
        assert title in outcome.out


def test_an_explanation_of_a_problem(lithify: Command) -> None:
    outcome = lithify("explain", "gemm -t f32 -transA false -transB false -g 1 -m 32 -n 32 -k 32")
    assert outcome.code == 0, outcome.err
    assert "mPerBlock=" in outcome.out
    assert "they are the default; nothing else was measured" in outcome.out
