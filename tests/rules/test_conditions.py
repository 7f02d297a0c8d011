"""Every side condition refuses where it fails, and the checker notices when one is left out."""

from __future__ import annotations

import pytest

from lithify.rewrite import Rule
from lithify.rewrite.rule import Declaration
from lithify.rules import all_rules
from tests.rules.laws import is_needed, refusals

# The others bind a metavariable (neutral), are implied by the types (most of those on sizes), or are about the machine.
ABOUT_VALUES = (
    "associative f", "commutative f", "ignored c f", "inverse h g", "m <= n", "n == 0", "length xs == 0", "n | m",
    "width X | n", "n == length xs", "s | (u + s - n)", "(u + s - n) | (((length xs - n) // s + 1) * s)", "s | v",
    "u == v - s + n", "s == 1",
)  # fmt: skip
# There the types imply it, or it takes larger blocks than random instances have.
EXCEPTIONS = frozenset({
    ("partial-reduce-split", "n | m"), ("partial-reduce-step", "associative f"), ("iterate-split", "m <= n"),
})  # fmt: skip


def about_values() -> list[tuple[Rule, str]]:
    stated = [(r, c) for r in all_rules().values() if isinstance(r.body, Declaration) for c in r.conditions]
    return [(r, c) for r, c in stated if c in ABOUT_VALUES and (r.name, c) not in EXCEPTIONS]


def name(case: object) -> str:
    return case.name if isinstance(case, Rule) else str(case)


@pytest.mark.parametrize(("rule", "condition"), about_values(), ids=name)
def test_the_condition_is_needed(rule: Rule, condition: str) -> None:
    """Without it there is an instance on which the rule is wrong, and the checker finds it."""
    assert is_needed(rule, condition)


@pytest.mark.parametrize(("rule", "condition"), about_values(), ids=name)
def test_it_refuses(rule: Rule, condition: str) -> None:
    """There are terms of the rule's form that the condition refuses, with a reason that names it."""
    assert any(refusals(rule, condition, tries) for tries in (50, 500, 5000))


def test_the_list_names_conditions_that_exist() -> None:
    assert {c for r in all_rules().values() for c in r.conditions} >= set(ABOUT_VALUES)
