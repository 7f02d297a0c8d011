"""The pages of derivations say what the code does, and those that are committed are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.report.derivations import all_texts, index, pages, text_of
from lithify.rules import all_rules

FOLDER = Path(__file__).parents[2] / "docs" / "derivations"


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return all_texts()


def test_the_committed_pages_are_up_to_date(texts: dict[str, str]) -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert sorted(committed) == sorted(texts)
    stale = [name for name, text in texts.items() if committed[name] != text]
    assert not stale, f"{', '.join(stale)} differ from the code: run `lithify report derivations`"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_step_has_its_rule_and_law(page: object, texts: dict[str, str]) -> None:
    text = texts[f"{page.name}.md"]  # type: ignore[attr-defined]
    titles = [line.split(". ", 1)[1] for line in text.splitlines() if line.startswith("## ") and line[3].isdigit()]
    assert titles
    rules = all_rules()
    for title in titles:
        assert title.partition("(")[0] in rules
    assert text.count("```diff") == len(titles)


def test_the_index_lists_all_pages() -> None:
    assert all(f"({page.name}.md)" in index() for page in pages())


def test_the_macro_rule_is_shown_rule_by_rule() -> None:
    (page,) = [p for p in pages() if p.name == "register-blocking"]
    text = text_of(page)
    order = ["split-join(8)", "map-map-interchange", "map-fission(map)", "map-reduce-interchange", "reduce-map-fusion"]
    places = [text.index(f". {name}\n") for name in order]
    assert places == sorted(places)
