"""Parameters as text, and what a space refuses."""

from __future__ import annotations

import pytest

from lithify.lang.errors import RewriteFailed
from lithify.lowering.tuning import Parameters, Space

SPACE = Space({"block": (4, 8), "pack": ("none", "heap")}, Parameters({"block": 4, "pack": "none"}), lambda p: None)


def test_text_and_back() -> None:
    for parameters in SPACE:
        assert Parameters.parse(str(parameters)) == parameters
    assert len(list(SPACE)) == len(SPACE) == 4


@pytest.mark.parametrize("text", ["block", "block=", "=4", "block=4,block=8"])
def test_texts_that_are_refused(text: str) -> None:
    with pytest.raises(RewriteFailed):
        Parameters.parse(text)


@pytest.mark.parametrize(
    "text", ["block=--4,pack=none", "block=²,pack=none", "block=x,pack=none", "block=0,pack=none", "block=-4,pack=none",
             "block=4,pack=4", "block=4,pack=private"]
)  # fmt: skip
def test_values_that_are_none(text: str) -> None:
    with pytest.raises(RewriteFailed, match="is no value of"):
        SPACE.check(Parameters.parse(text))


def test_other_positive_numbers_than_those_that_are_tried_are_values() -> None:
    SPACE.check(Parameters.parse("block=12,pack=heap"))
