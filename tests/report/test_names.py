"""The page of all names says what the tables say, and the one that is committed is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.lang import prelude
from lithify.lang.operators import OPERATORS
from lithify.lang.primitives import PRIMITIVES
from lithify.report.names import PAGE, text

COMMITTED = Path(__file__).parents[2] / "docs" / PAGE


def test_the_committed_page_is_up_to_date() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == text(), "run `lithify report names`"


@pytest.mark.parametrize("name", sorted({*OPERATORS, *PRIMITIVES, *prelude.definitions()}))
def test_every_name_is_on_the_page(name: str) -> None:
    page = text()
    assert any(mark in page for mark in (f"`{name}`", f"`{name} ", f"`{name}[", f"\n{name} = "))
