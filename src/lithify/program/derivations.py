"""Derivations in files: the steps as data, so that they can be looked at, kept, and followed again.

A saved derivation names each step's rule, its parameters and its place. Following it searches nothing: it applies the
same rules at the same places, each of which checks its conditions again. It may be followed from the same program for
arguments of other sizes, as far as the rules apply there.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Any

from lithify.lang.errors import LithifyError
from lithify.lang.levels import Level, Memory

if TYPE_CHECKING:
    from lithify.lang.term import Term
    from lithify.rewrite import AppliedRule, Derivation, Rule

FORMAT = 1


def save(derivation: Derivation, name: str) -> str:
    """A derivation as JSON text. Raises LithifyError where a rule has a parameter that no file can hold."""
    steps = [
        {"path": list(event.path)}
        if event.rule is None  # an always-on law simplified the term there
        else {
            "rule": event.rule.rule.name,
            "parameters": {key: _encode(value) for key, value in event.rule.arguments.items()},
            "path": list(event.path),
        }
        for event in derivation.context.log or ()
    ]
    data = {
        "format": FORMAT,
        "program": name,
        "start": str(derivation.start),
        "steps": steps,
        "result": str(derivation.term),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def replay(text: str, term: Term, *, check: bool = False) -> Derivation:
    """Follow a saved derivation from a program.

    Raises LithifyError for a text that is none, RewriteFailed where a rule does not apply; `check` compares the values
    before and after (small sizes).
    """
    from lithify.lowering.loops import name_loops
    from lithify.rewrite import Derivation, difference, follow

    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise LithifyError(f"a derivation of format {data['format']}, this is {FORMAT}")
        steps = [(_step(each), tuple(map(int, each["path"]))) for each in data["steps"]]
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise LithifyError(f"this is no saved derivation: {type(error).__name__}: {error}") from error
    derivation = Derivation(name_loops(term), check=check)
    derivation.term = follow(derivation.start, steps, derivation.context)
    wrong = difference(derivation.start, derivation.term) if check else None
    if wrong is not None:
        raise LithifyError(f"the derivation is wrong: the values differ {wrong}")
    return derivation


def _step(data: dict[str, Any]) -> AppliedRule | None:
    if "rule" not in data:
        return None
    found = _rules().get(data["rule"])
    if found is None:
        raise LithifyError(f"there is no rule {data['rule']}", hint="`lithify rules` lists them")
    return found(**{key: _decode(value) for key, value in data["parameters"].items()})


@cache
def _rules() -> dict[str, Rule]:
    """Every rule that the package declares, those that only strategies use included."""
    from lithify import rules
    from lithify.rewrite import Rule

    found = dict(rules.all_rules())
    for module in pkgutil.iter_modules(rules.__path__, "lithify.rules."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Rule):
                found.setdefault(value.name, value)
    return found


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Level | Memory):
        return {type(value).__name__.lower(): str(value)}
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    constant = getattr(value, "constant", None)
    if isinstance(constant, int):
        return constant
    raise LithifyError(f"a derivation with the parameter {value!r} cannot be saved")


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if "level" in value:
            return Level.parse(value["level"])
        return Memory.parse(value["memory"])
    if isinstance(value, list):
        return tuple([_decode(item) for item in value])
    return value
