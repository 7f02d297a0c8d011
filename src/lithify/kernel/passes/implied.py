"""What is known already is not tested again.

Below an If, conditions that follow from its own are dropped, and minima that they decide (clamped padding) resolved.
The guard of a store decides the minima in what is stored too, if the loads get the guard: `x[min(i, n - 1)]`, stored
where i < n, becomes x[i] where i < n, which is contiguous.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.arith import Atom, Expr, Min, minimum, proves
from lithify.kernel import ir
from lithify.kernel.conditions import conjunction, guard_loads
from lithify.kernel.passes.formulas import minima
from lithify.kernel.walk import Rewriting, replace_atoms

_MOST_FACTS = 6  # a proof tries combinations of facts


def drop_implied_conditions(program: ir.Program) -> ir.Program:
    """The program without conditions and minima that follow from the conditions around them."""
    kernels = tuple([replace(kernel, body=_Dropping(()).block(kernel.body)) for kernel in program.kernels])
    return replace(program, kernels=kernels)


class _Dropping(Rewriting):
    """Rewrites under facts; of these the `mask` holds only where a value is used, so its loads must be guarded."""

    def __init__(self, facts: ir.Guard, mask: ir.Guard = ()) -> None:
        self.facts = facts
        self.mask = mask
        self._known: dict[Expr, Expr] = {}

    def expr(self, e: Expr) -> Expr:
        if not self.facts:
            return e
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = replace_atoms(e, self._resolved) if any(minima(e)) else e
        return found

    def _resolved(self, atom: Atom) -> Expr | None:
        if not isinstance(atom, Min):
            return None
        left, right = (replace_atoms(part, self._resolved) for part in atom.parts())
        if proves(right - left, self.facts):
            return left
        if proves(left - right, self.facts):
            return right
        return minimum(left, right)

    def guard(self, guard: ir.Guard) -> ir.Guard | None:
        kept = conjunction((), [self.expr(c) for c in guard])
        if kept is None or not self.facts or self.mask:
            return kept
        return tuple([c for c in kept if c not in self.facts and not proves(c, self.facts)])

    def value(self, value: ir.Value) -> ir.Value:
        if not self.facts:
            return value
        result = super().value(value)
        if self.mask and isinstance(result, ir.Load) and isinstance(value, ir.Load) and result.index != value.index:
            return guard_loads(result, self.mask)
        return result

    def statement(self, statement: ir.Statement) -> ir.Block:
        if isinstance(statement, ir.Store) and statement.guard and not isinstance(statement.value, ir.Constant):
            within = _Dropping((*self.facts, *statement.guard)[-_MOST_FACTS:], statement.guard)
            return super().statement(replace(statement, value=within.value(statement.value)))
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
