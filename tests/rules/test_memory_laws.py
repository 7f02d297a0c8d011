"""Both sides of every rule have one value, on random terms: memory, parallel, tiles, vector, lowering, stencil."""

from __future__ import annotations

import pytest

from lithify.rewrite import Rule
from tests.rules.laws import INSTANCES, declared, wrong_instance

FAMILIES = ("memory", "parallel", "tiles", "vector", "lowering", "stencil")


@pytest.mark.parametrize("rule", declared(*FAMILIES), ids=lambda rule: rule.name)
def test_law(rule: Rule) -> None:
    wrong = wrong_instance(rule, INSTANCES)
    assert wrong is None, wrong
