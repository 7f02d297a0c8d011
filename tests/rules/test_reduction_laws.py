"""Both sides of every rule have one value, on random well-typed terms: reduction."""

from __future__ import annotations

import pytest

from lithify.rewrite import Rule
from tests.rules.laws import INSTANCES, declared, wrong_instance


@pytest.mark.parametrize("rule", declared("reduction"), ids=lambda rule: rule.name)
def test_law(rule: Rule) -> None:
    wrong = wrong_instance(rule, INSTANCES)
    assert wrong is None, wrong
