"""Derivations as text: printed with what changed marked, saved as JSON, and replayed on the same program."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lithify.arith import ArithError, Expr, as_expr, size
from lithify.lang.digest import digest
from lithify.lang.errors import RewriteFailed
from lithify.lang.index_functions import IndexFunction, reverse, stride
from lithify.lang.levels import Level, Memory
from lithify.lang.printer import show
from lithify.lang.spelling import meant
from lithify.lang.term import Term
from lithify.rewrite.derivation import Derivation, follow, places
from lithify.rewrite.rule import AppliedRule, Rule
from lithify.rewrite.strategy import Path

FORMAT = 1
_TOKENS = re.compile(r"\s+|[\w.@\[\]]+|.")


def mark_changes(before: str, after: str, marks: tuple[str, str] = ("`", "`")) -> str:
    """The second text with what the first does not have between marks, as the slides show a step."""
    old = [t for t in _TOKENS.findall(before) if not t.isspace()]
    tokens = _TOKENS.findall(after)
    places = [i for i, t in enumerate(tokens) if not t.isspace()]
    new = [tokens[i] for i in places]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("replace", "insert"):
            _mark(tokens, places[start:end], marks)
    return "".join(tokens)


def _mark(tokens: list[str], places: list[int], marks: tuple[str, str]) -> None:
    """Marks around a run of tokens, opened and closed anew on each line."""
    runs: list[list[int]] = []
    for place in places:
        gap = "".join(tokens[runs[-1][-1] + 1 : place]) if runs else "\n"
        if "\n" in gap:
            runs.append([place])
        else:
            runs[-1].append(place)
    for run in runs:
        tokens[run[0]] = marks[0] + tokens[run[0]]
        tokens[run[-1]] += marks[1]


def steps_text(derivation: Derivation, *, width: int = 100, marks: tuple[str, str] = ("`", "`")) -> Iterator[str]:
    """The program, then each step with the whole program after it and what changed marked; one text a step.

    The same rewrite at several places, one after another, is one text.
    """
    before = show(derivation.start, width)
    yield before
    for number, same, term in derivation.shown_terms():
        after, rule = show(term, width), same[0].rule
        where = f" {places(same)}" if len(same) > 1 else ""
        yield f"{number}. {rule.name}{where}    {rule.rule.text}\n\n{mark_changes(before, after, marks)}"
        before = after


# ---- saving and replaying ------------------------------------------------------------------------------------------


def save(derivation: Derivation) -> str:
    """The derivation as JSON: the program's fingerprint, and each rule with its parameters and its place.

    Raises RewriteFailed for a parameter that has no text (an index function made by hand, say).
    """
    assert derivation.context.log is not None
    steps = [
        {"at": list(event.path)}
        if event.rule is None
        else {"rule": event.rule.rule.name, "with": _encode_arguments(event.rule), "at": list(event.path)}
        for event in derivation.context.log
    ]
    record = {
        "format": FORMAT,
        "program": digest(derivation.start),
        "result": digest(derivation.term),
        "policy": derivation.context.policy,
        "steps": steps,
    }
    return json.dumps(record, indent=1)


def replay(start: Term, text: str, rules: Mapping[str, Rule], *, check: bool = False) -> Derivation:
    """Follow a saved derivation on the program it was made for.

    Raises RewriteFailed when the program is another one, a rule is not known or does not apply where it did, or the
    result differs.
    """
    record = json.loads(text)
    if record.get("format") != FORMAT:
        raise RewriteFailed(f"the saved derivation has format {record.get('format')}; this version reads {FORMAT}")
    if record["program"] != digest(start):
        raise RewriteFailed(
            "the derivation was made for another program, or for arguments of other types or sizes",
            hint="give the arguments that it was saved for; strategies (--strategy) apply to any",
        )
    derivation = Derivation(start, policy=record["policy"], check=check)
    steps: list[tuple[AppliedRule | None, Path]] = []
    for number, step in enumerate(record["steps"], 1):
        name = step.get("rule")
        if name is not None and name not in rules:
            hint = meant(name, rules) or "another version of lithify may have written it"
            raise RewriteFailed(f"the derivation uses a rule that is not known: {name}", hint=hint)
        applied = None if name is None else _applied(rules[name], step["with"], number)
        steps.append((applied, tuple(step["at"])))
    derivation.term = follow(start, steps, derivation.context)
    if digest(derivation.term) != record["result"]:
        raise RewriteFailed("the derivation led to another program than before", hint="a rule has changed since")
    if check:
        derivation.check_steps()
    return derivation


def _applied(rule: Rule, arguments: Mapping[str, Any], number: int) -> AppliedRule:
    """The rule with the arguments that were saved. Raises RewriteFailed where they are none."""
    try:
        return rule(**{name: _decode(value) for name, value in arguments.items()})
    except (ArithError, AttributeError, KeyError, TypeError, ValueError):
        written = json.dumps(arguments)[:80]
        raise RewriteFailed(
            f"step {number} of the derivation applies {rule.name} with {written}, which it cannot"
        ) from None


def _encode_arguments(applied: AppliedRule) -> dict[str, Any]:
    return {name: _encode(value, f"{applied.name}: {name}") for name, value in applied.arguments.items()}


def _encode(value: Any, where: str) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Expr) and (value.constant is not None or str(value).isidentifier()):
        return {"size": str(value)}
    if isinstance(value, Level):
        return {"level": str(value)}
    if isinstance(value, Memory):
        return {"memory": str(value)}
    if isinstance(value, tuple):
        return [_encode(item, where) for item in value]
    if isinstance(value, IndexFunction):
        name, _, number = value.name.partition(" ")
        made = {"reverse": lambda: reverse(value.extent), "stride": lambda: stride(int(number), value.extent)}
        if name in made and made[name]() == value:
            return {"reorder": value.name, "length": str(value.extent)}
    raise RewriteFailed(f"{where} = {value} has no text, so the derivation cannot be saved")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "reorder" in value:
        name, _, number = value["reorder"].partition(" ")
        n = _read_size(value["length"])
        return reverse(n) if name == "reverse" else stride(int(number), n)
    (kind, text), *_ = value.items()
    readers: dict[str, Callable[[str], Any]] = {"size": _read_size, "level": Level.parse, "memory": Memory.parse}
    return readers[kind](text)


def _read_size(text: str) -> Expr:
    """A size: a number or the name of a size variable."""
    return as_expr(int(text)) if text.lstrip("-").isdigit() else size(text)
