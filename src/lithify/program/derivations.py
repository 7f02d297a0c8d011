"""Saved derivations, followed again from a program: the same rules at the same places, conditions checked again."""

from __future__ import annotations

import importlib
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

    try:
        return record.replay(name_loops(term), text, known_rules(), check=check)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise LithifyError(f"this is no saved derivation: {type(error).__name__}: {error}") from error


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
