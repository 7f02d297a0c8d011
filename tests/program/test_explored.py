"""What calls make of an exploration: the winner's derivation is followed again, where it is the best that is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lithify.explore.phases import Limit, explore, lower_by
from lithify.explore.record import Record
from lithify.explore.records import RECORDS
from lithify.lang.errors import RewriteFailed
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.program import Program, parse
from lithify.program.explored import problem_of
from lithify.program.why import rivals
from lithify.rewrite.record import save
from tests.explore.test_records import RECORD

N = 32
TEXT = "sums = λ a . map (λ row . reduce (+) 0 (map (λ x . x * x) row)) a"
PRODUCT = "product = λ a b . map (λ row . map (λ col . reduce (+) 0 (map (*) (zip row col))) (transpose b)) a"


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("LITHIFY_RECORDS", str(tmp_path / "records.sqlite"))
    yield tmp_path
    RECORDS.close()


def product() -> tuple[Program, tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(7)
    a, b = random.random((2, N, N), dtype=np.float32)
    return parse(PRODUCT)["product"], (a, b)


@cache
def some_key() -> str:
    """A way that the phases find."""
    specialisation = product()[0].specialise(*product()[1])
    elaborated, model = specialisation.elaborated, specialisation.device.model
    found = explore(elaborated.term, tuple(elaborated.parameters), model, Limit(rules=1, mapped=6))
    return next(key for key in found if key != "default")


def key_and_record(program: Program, arguments: tuple[np.ndarray, ...]) -> tuple[str, Record]:
    """A way to compute the product, and a record that says that it is best."""
    specialisation = program.specialise(*arguments)
    key = some_key()
    problem = problem_of(specialisation)
    lowered = lower_by(key, specialisation.elaborated.term, specialisation.device.model)
    record = replace(
        RECORD, problem=problem.line, device=specialisation.device.model.fingerprint, family=problem.family,
        parameters=key, seconds=1e-6, default_seconds=1e-5, derivation=save(lowered.derivation), sizes={}, scalars={},
    )  # fmt: skip
    return key, record


def test_the_winner_is_what_runs() -> None:
    program, arguments = product()
    key, record = key_and_record(program, arguments)
    RECORDS.put(record)
    specialisation = parse(PRODUCT)["product"].specialise(*arguments)
    assert specialisation.chosen == key
    by_key = lower_by(key, specialisation.elaborated.term, specialisation.device.model)
    assert specialisation.lowered.term is by_key.term
    np.testing.assert_allclose(parse(PRODUCT)["product"](*arguments), arguments[0] @ arguments[1], rtol=1e-5)
    assert [rival.role for rival in rivals(specialisation)][:2] == ["winner", "default"]
    assert program.tuned_by("").specialise(*arguments).chosen == ""


def test_a_way_that_was_given() -> None:
    program, arguments = product()
    key, _ = key_and_record(program, arguments)
    given = program.tuned_by(key)
    np.testing.assert_allclose(given(*arguments), arguments[0] @ arguments[1], rtol=1e-5)
    with pytest.raises(RewriteFailed):
        program.tuned_by("no;such;way=1")(*arguments)


def test_where_the_default_was_best_it_stays() -> None:
    program, arguments = product()
    _, record = key_and_record(program, arguments)
    RECORDS.put(replace(record, parameters="default"))
    assert program.specialise(*arguments).chosen == ""


def test_a_derivation_that_leads_elsewhere_is_not_followed() -> None:
    program, arguments = product()
    _, record = key_and_record(program, arguments)
    for broken in ("", "{}", record.derivation.replace('"result": "', '"result": "0'), "no derivation"):
        RECORDS.put(replace(record, derivation=broken))
        assert parse(PRODUCT)["product"].specialise(*arguments).chosen == ""


def test_other_programs_and_sizes_are_not_concerned() -> None:
    program, arguments = product()
    _, record = key_and_record(program, arguments)
    RECORDS.put(record)
    smaller = tuple(np.ascontiguousarray(a[:16, :16]) for a in arguments)
    assert program.specialise(*smaller).chosen == ""
    assert parse(TEXT)["sums"].specialise(arguments[0]).chosen == ""


@pytest.mark.parametrize(("seconds", "wins"), [(5e-7, "tuned"), (2e-6, "explored")])
def test_the_faster_of_what_tuning_and_exploring_found(seconds: float, wins: str) -> None:
    program, arguments = product()
    key, record = key_and_record(program, arguments)
    specialisation = program.specialise(*arguments)
    family = recognise(name_loops(specialisation.elaborated.term))
    assert family is not None
    space = family[0].space(family[1], specialisation.device.model)
    assert space is not None
    tuned = replace(
        record, problem=family[1].line, family="gemm", parameters=str(space.default), seconds=seconds, derivation=""
    )
    RECORDS.put(record)
    RECORDS.put(tuned)
    wanted = str(space.default) if wins == "tuned" else key
    assert parse(PRODUCT)["product"].specialise(*arguments).chosen == wanted
