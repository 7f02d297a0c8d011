"""Saved derivations, followed again from a program: the same rules at the same places, conditions checked again."""

from __future__ import annotations

import importlib
import json
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, get_args

from lithify.lang.errors import LithifyError
from lithify.rewrite.strategy import Policy

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
        raise _no_derivation(f"it is no JSON from line {error.lineno} on") from None
    except RecursionError:
        raise _no_derivation("it is nested too deeply") from None
    keys = {"format", "program", "result", "policy", "steps"}
    missing = sorted(keys - data.keys() if isinstance(data, dict) else keys)
    if missing:
        raise _no_derivation(f"it has no {', '.join(missing)}")
    if not isinstance(data["steps"], list):
        raise _no_derivation("its steps are no list")
    if data["policy"] not in get_args(Policy):
        raise _no_derivation(f"its policy is none of {', '.join(get_args(Policy))}")
    for number, step in enumerate(data["steps"], 1):
        path = step.get("at") if isinstance(step, dict) else None
        named = not isinstance(step, dict) or "rule" not in step or isinstance(step.get("with"), dict)
        named &= not isinstance(step, dict) or isinstance(step.get("rule", ""), str)
        if not isinstance(path, list) or not all(type(index) is int and index >= 0 for index in path) or not named:
            raise _no_derivation(f"its step {number} is {json.dumps(step)[:80]}")


def _no_derivation(why: str) -> LithifyError:
    return LithifyError(
        f"this is no saved derivation: {why}", hint="`lithify derive PROGRAM --save FILE` writes what --replay follows"
    )


@cache
def known_rules() -> dict[str, Rule]:
    """Every rule that the package declares, those that only strategies use included."""
    from lithify import rules
    from lithify.rewrite import Rule

    found = dict(rules.all_rules())
    for module in pkgutil.iter_modules(rules.__path__, "lithify.rules."):
        for value in vars(importlib.import_module(module.name)).values():
            for each in value.values() if isinstance(value, dict) else (value,):  # by itself, or in a table of rules
                if isinstance(each, Rule):
                    found.setdefault(each.name, each)
    return found
