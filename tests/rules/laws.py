"""The checks that every rule passes: both sides have one value, and every condition is needed."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

from hypothesis import settings

from lithify.lang.errors import RewriteFailed
from lithify.rewrite import Rule, difference
from lithify.rewrite.rule import Declaration
from lithify.rewrite.strategy import Context, Failure
from lithify.rules import FAMILIES, all_rules, family_of
from tests.rules.instances import candidates, instance

# Of each rule; HYPOTHESIS_PROFILE=thorough takes more. Of so many, the checker finds every wrong law of `test_mutants`:
# the last after some 50.
INSTANCES = max(200, settings().max_examples)


def declared(*families: str) -> list[Rule]:
    """The rules of families that are written in the notation."""
    assert set(families) <= set(FAMILIES)
    return [r for r in all_rules().values() if isinstance(r.body, Declaration) and family_of(r) in families]


def wrong_instance(rule: Rule, count: int, seed: str = "") -> str | None:
    """The first of `count` random instances on which both sides differ, as text; None if there is none."""
    rng = random.Random(rule.name + seed)
    for number in range(count):
        try:
            found = instance(rule, rng)
        except RewriteFailed as error:  # it changed the type
            return str(error)
        if found is None:
            return f"no instance of {rule.name} was found (number {number})"
        applied, before, after = found
        wrong = difference(before, after, seed=number)
        if wrong is not None:
            return f"{applied.name}, instance {number}: {wrong}\n{before}\n  ->\n{after}"
    return None


def without(rule: Rule, condition: str) -> Rule:
    """The rule with one condition left out."""
    body = rule.body
    assert isinstance(body, Declaration)
    kept = tuple(c for c in body.conditions if c.text != condition)
    return replace(rule, body=replace(body, conditions=kept))


def refusals(rule: Rule, condition: str, tries: int) -> int:
    """On how many of the tries the rule's form is met but the condition fails."""
    rng = random.Random(rule.name + condition)
    reasons = (applied.explain(term) for applied, term in candidates(rule, rng, tries))
    return sum(reason is not None and reason.startswith(f"`{condition}` fails") for reason in reasons)


def is_needed(rule: Rule, condition: str, tries: int = 3000) -> bool:
    """Is there an instance that only the condition refuses, and on which the rule would be wrong?"""
    mutant = without(rule, condition)
    rng = random.Random(condition + rule.name)
    for applied, term in islice(candidates(mutant, rng, tries), tries):
        if rule(**applied.arguments).explain(term) is None:
            continue
        try:
            result = applied.run(term, Context())
        except (RewriteFailed, KeyError):  # the type changed, or what the condition binds is missing
            return True
        if not isinstance(result, Failure) and difference(term, result) is not None:
            return True
    return False
