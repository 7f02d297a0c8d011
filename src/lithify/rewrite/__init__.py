"""Rewriting: rules as data, strategies that say where and in which order they are applied, derivations that remember.

    d = Derivation(program)
    d.once(split_join(32), "m")          # the loop named m
    d.once(map_map_interchange)          # the first place where it applies
    d.normalize(map_fusion)              # as long as it applies
    d.term, d.names()

A rule is declared with `rule` in the language's own notation (`lithify.rewrite.notation`), or with `code_rule` where
the notation does not reach. The rules themselves are in `lithify.rules`.
"""

from lithify.rewrite.derivation import Derivation, Step, follow
from lithify.rewrite.equality import TooLarge, difference
from lithify.rewrite.record import mark_changes, replay, save, steps_text
from lithify.rewrite.rule import AppliedRule, Example, Refused, Rule, code_rule, rule
from lithify.rewrite.strategy import Context, Failure, Strategy, describe, fail, first, id_, macro, repeat, seq, try_
from lithify.rewrite.traversal import (
    all_,
    at,
    bottomup,
    everywhere,
    innermost,
    loop_of,
    named,
    normalize,
    of_kind,
    one,
    only,
    outermost,
    some,
    topdown,
)

__all__ = [
    "AppliedRule",
    "Context",
    "Derivation",
    "Example",
    "Failure",
    "Refused",
    "Rule",
    "Step",
    "Strategy",
    "TooLarge",
    "all_",
    "at",
    "bottomup",
    "code_rule",
    "describe",
    "difference",
    "everywhere",
    "fail",
    "first",
    "follow",
    "id_",
    "innermost",
    "loop_of",
    "macro",
    "mark_changes",
    "named",
    "normalize",
    "of_kind",
    "one",
    "only",
    "outermost",
    "repeat",
    "replay",
    "rule",
    "save",
    "seq",
    "some",
    "steps_text",
    "topdown",
    "try_",
]
