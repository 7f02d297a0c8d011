"""Saved derivations are followed again; what is none is refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

import lithify as lf
from lithify.lang.errors import LithifyError, RewriteFailed
from lithify.program.derivations import known_rules, replay
from lithify.rewrite.record import save


@pytest.fixture(scope="module")
def saved() -> tuple[Any, str]:
    """A program's term, and its derivation as text."""
    specialisation = lf.library("blas")["asum"].specialise("1000.f32")
    return specialisation, save(specialisation.lowered.derivation)


def test_following_leads_to_the_same_program(saved: tuple[Any, str]) -> None:
    specialisation, text = saved
    derivation = replay(text, specialisation.elaborated.term)
    assert derivation.term is specialisation.lowered.term
    assert derivation.names() == specialisation.lowered.derivation.names()


def test_values_are_compared_on_request() -> None:
    specialisation = lf.library("blas")["scal"].specialise("f32", "20.f32")
    text = save(specialisation.lowered.derivation)
    assert replay(text, specialisation.elaborated.term, check=True).steps


def test_rules_of_tables_are_known() -> None:
    specialisation = lf.library("layout")["inclusiveScan"].specialise("1000.f64")
    derivation = specialisation.lowered.derivation
    assert any(name.startswith("scan-steps-") for name in derivation.names())
    assert replay(save(derivation), specialisation.elaborated.term).term is specialisation.lowered.term


def test_another_program_is_refused(saved: tuple[Any, str]) -> None:
    other = lf.library("blas")["sum"].term("1000.f32")
    with pytest.raises(RewriteFailed, match="another program"):
        replay(saved[1], other)


def changed(text: str, **changes: Any) -> str:
    return json.dumps(json.loads(text) | changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 5}, "its steps are no list"),
        ({"steps": [5]}, "step 1 is 5"),
        ({"steps": [{"rule": "map-level"}]}, "step 1"),
        ({"steps": [{"rule": "map-level", "at": [], "with": 3}]}, "step 1"),
        ({"steps": [{"at": ["x"]}]}, "step 1"),
        ({"steps": [{"rule": "no-such-rule", "at": [], "with": {}}]}, "no-such-rule"),
        ({"steps": [{"rule": "map-level", "at": [], "with": {"colour": 3}}]}, "colour"),
        ({"steps": [{"rule": "map-fusion", "at": [7, 7], "with": {}}]}, "does not fit"),
        ({"steps": [{"rule": "split-join", "at": [], "with": {"n": {"colour": 3}}}]}, "step 1 .* split-join"),
        ({"steps": [{"rule": "split-join", "at": [-1], "with": {}}]}, "step 1"),
        ({"steps": [{"rule": "split-jion", "at": [], "with": {}}]}, "did you mean split-join"),
        ({"steps": [{"rule": ["a"], "at": [], "with": {}}]}, "step 1"),
        ({"steps": []}, "another program than before"),
        ({"policy": "careless"}, "its policy is none of"),
        ({"format": 99}, "format 99"),
    ],
)
def test_what_does_not_fit(saved: tuple[Any, str], change: dict[str, Any], message: str) -> None:
    specialisation, text = saved
    with pytest.raises(LithifyError, match=message):
        replay(changed(text, **change), specialisation.elaborated.term)


@pytest.mark.parametrize("text", ["", "not JSON", "[]", "{}", "3", "[" * 100_000])
def test_what_is_no_derivation(saved: tuple[Any, str], text: str) -> None:
    with pytest.raises(LithifyError, match="no saved derivation") as caught:
        replay(text, saved[0].elaborated.term)
    assert "Expecting" not in str(caught.value)  # what the JSON library says of it
    assert "--save" in str(caught.value.hint)


def test_all_rules_are_known() -> None:
    from lithify.rules import all_rules

    assert known_rules().keys() >= all_rules().keys()
    assert "copy-loop" in known_rules()
