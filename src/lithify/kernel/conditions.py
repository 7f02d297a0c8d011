"""Guards: conjunctions of conditions (normal forms required >= 0), and values under them."""

from __future__ import annotations

from collections.abc import Iterable

from lithify.arith import Expr, Loaded, proves
from lithify.kernel import ir
from lithify.lang.scalars import Scalar


def conjunction(guard: ir.Guard, conditions: Iterable[Expr]) -> ir.Guard | None:
    """The guard with more conditions; those that the ranges imply are dropped. None when it can never hold.

    A condition on an index that a buffer holds comes after the others: they may say where that can be read.
    """
    indirect = 0
    for condition in conditions:
        if condition.lo >= 0 or condition in guard or proves(condition):
            continue
        if condition.hi < 0:
            return None
        guard = (*guard, condition)
        indirect = indirect or _indirections(condition)
    if len(guard) > 1 and (indirect or any(map(_indirections, guard))):
        guard = tuple(sorted(guard, key=_indirections))
    return guard


def _indirections(e: Expr) -> int:
    """How deep the indices that are read from buffers are nested in a formula."""
    depth = 0
    for monomial, _ in e.terms:
        for atom in monomial:
            inner = max(map(_indirections, atom.parts()), default=0)
            depth = max(depth, inner + isinstance(atom, Loaded))
    return depth


def zero(scalar: Scalar) -> ir.Constant:
    """The value that stands where nothing is read and nobody looks."""
    return ir.Constant(scalar.dtype.type(0).item(), scalar)


def guard_loads(value: ir.Value, conditions: ir.Guard) -> ir.Value:
    """The value with all its loads under more conditions (that can hold), for use where these hold."""
    if isinstance(value, ir.Load):
        guard = conjunction(value.guard, conditions)
        fill = zero(value.scalar) if value.fill is None else guard_loads(value.fill, conditions)
        if guard is None:
            return fill
        return ir.Load(value.buffer, value.index, guard, fill if guard else None)
    if isinstance(value, ir.Apply):
        operands = tuple([guard_loads(o, conditions) for o in value.operands])
        return ir.Apply(value.operator, operands, value.scalar)
    if isinstance(value, ir.Choose):
        guard = conjunction(value.guard, conditions) if any(map(_indirections, value.guard)) else value.guard
        otherwise = guard_loads(value.otherwise, conditions)
        return otherwise if guard is None else ir.Choose(guard, guard_loads(value.then, conditions), otherwise)
    return value


def under(statement: ir.Statement, conditions: ir.Guard) -> ir.Statement:
    """The statement, run only where the conditions (that can hold) do."""
    if not conditions:
        return statement
    if isinstance(statement, ir.Store):
        guard = conjunction(statement.guard, conditions)
        if guard is not None:
            value = guard_loads(statement.value, conditions)
            return ir.Store(statement.buffer, statement.index, value, guard)
    return ir.If(conditions, (statement,))


def guarded(value: ir.Value, conditions: ir.Guard, fill: ir.Value) -> ir.Value:
    """`value` where the conditions hold, else `fill`."""
    needed = conjunction((), conditions)
    if needed is None:
        return fill
    if not needed:
        return value
    if isinstance(value, ir.Load) and (not value.guard or value.fill == fill):
        guard = conjunction(value.guard, needed)
        assert guard is not None
        return ir.Load(value.buffer, value.index, guard, fill)
    return ir.Choose(needed, guard_loads(value, needed), fill)
