"""Conditions that an enclosing If has tested already are dropped below it."""

from __future__ import annotations

from dataclasses import replace

from lithify.arith import proves
from lithify.kernel import ir
from lithify.kernel.conditions import conjunction
from lithify.kernel.walk import Rewriting

_MOST_FACTS = 6  # a proof tries combinations of facts


def drop_implied_conditions(program: ir.Program) -> ir.Program:
    """The program without conditions that follow from those around them."""
    kernels = tuple([replace(kernel, body=_Dropping(()).block(kernel.body)) for kernel in program.kernels])
    return replace(program, kernels=kernels)


class _Dropping(Rewriting):
    def __init__(self, facts: ir.Guard) -> None:
        self.facts = facts

    def guard(self, guard: ir.Guard) -> ir.Guard | None:
        kept = conjunction((), guard)
        if kept is None or not self.facts:
            return kept
        return tuple([c for c in kept if c not in self.facts and not proves(c, self.facts)])

    def value(self, value: ir.Value) -> ir.Value:
        return super().value(value) if self.facts else value

    def statement(self, statement: ir.Statement) -> ir.Block:
        if not isinstance(statement, ir.If):
            return super().statement(statement)
        guard = self.guard(statement.guard)
        if guard is None:
            return self.block(statement.otherwise)
        inner = _Dropping((*self.facts, *guard)[-_MOST_FACTS:]) if guard else self
        body = inner.block(statement.body)
        if not guard:
            return body
        otherwise = self.block(statement.otherwise)
        return (ir.If(guard, body, otherwise),) if body or otherwise else ()
