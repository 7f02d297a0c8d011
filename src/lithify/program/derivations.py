"""Saved derivations, followed again from a program: the same rules at the same places, conditions checked again."""

from __future__ import annotations

import importlib
import json
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from lithify.lang.term import Term
    from lithify.rewrite import Derivation, Rule


def replay(text: str, term: Term, *, check: bool = False) -> Derivation:
    """Follow a derivation that `lithify.rewrite.record.save` wrote, from the program it was made for.

    Raises LithifyError for a text that is none, RewriteFailed for another program or where a rule does not apply;
    `check` compares the values before and after each step (for small sizes).
    """
    from lithify.lowering.loops import name_loops
    from lithify.rewrite import record

    _check_form(text)
    return record.replay(name_loops(term), text, known_rules(), check=check)


def _check_form(text: str) -> None:
    """Raise LithifyError unless the text has the form of a saved derivation."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise LithifyError(f"this is no saved derivation: {error}") from error
    keys = {"format", "program", "result", "policy", "steps"}
    if not isinstance(data, dict) or not keys <= data.keys() or not isinstance(data["steps"], list):
        raise LithifyError(f"this is no saved derivation: it needs {', '.join(sorted(keys))}")
    for number, step in enumerate(data["steps"], 1):
        path = step.get("at") if isinstance(step, dict) else None
        named = not isinstance(step, dict) or "rule" not in step or isinstance(step.get("with"), dict)
        if not isinstance(path, list) or not all(isinstance(index, int) for index in path) or not named:
            raise LithifyError(f"this is no saved derivation: step {number} is {json.dumps(step)[:80]}")


@cache
def known_rules() -> dict[str, Rule]:
    """Every rule that the package declares, those that only strategies use included."""
    from lithify import rules
    from lithify.rewrite import Rule

    found = dict(rules.all_rules())
    for module in pkgutil.iter_modules(rules.__path__, "lithify.rules."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Rule):
                found.setdefault(value.name, value)
    return found
