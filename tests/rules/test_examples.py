"""Every rule has a page: a law in words, and an example on which it fires and that keeps its value."""

from __future__ import annotations

import pytest

from lithify.lang.module import read_text
from lithify.rewrite import Rule, difference, topdown
from lithify.rules import FAMILIES, all_rules, family_of

RULES = list(all_rules().values())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_example_fires(rule: Rule) -> None:
    assert rule.law.endswith(".") or "=" in rule.law
    assert rule.examples
    for example in rule.examples:
        before = read_text(f"example = {example.program}")["example"].elaborate().term
        after = topdown(rule(*example.arguments)).apply(before)
        assert after is not before
        assert difference(before, after) is None


def test_names_and_families() -> None:
    assert len({r.name for r in RULES}) == len(RULES) > 150
    assert {family_of(r) for r in RULES} == set(FAMILIES) - {"matrix"}
