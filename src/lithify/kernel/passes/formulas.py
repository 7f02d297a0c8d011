"""The index formulas in code, conditions told apart from indices, and the minima in them."""

from __future__ import annotations

from collections.abc import Iterator

from lithify.arith import Atom, Expr, Min
from lithify.kernel import ir
from lithify.kernel.walk import blocks_of


def minima(formula: Expr) -> Iterator[Min]:
    """The minima in a formula, inner ones too."""
    for monomial, _ in formula.terms:
        for atom in monomial:
            yield from _minima_of_atom(atom)


def _minima_of_atom(atom: Atom) -> Iterator[Min]:
    if isinstance(atom, Min):
        yield atom
    for part in atom.parts():
        yield from minima(part)


def formulas(block: ir.Block) -> Iterator[tuple[Expr, bool]]:
    """All index formulas of a block, each with: is it a condition?"""
    for statement in block:
        match statement:
            case ir.Store(_, index, value, guard) | ir.AtomicUpdate(_, _, index, value, guard):
                yield from ((e, False) for e in index)
                yield from ((e, True) for e in guard)
                yield from _of_value(value)
            case ir.If(guard, _, _):
                yield from ((e, True) for e in guard)
        for inner in blocks_of(statement):
            yield from formulas(inner)


def _of_value(value: ir.Value) -> Iterator[tuple[Expr, bool]]:
    match value:
        case ir.Load(_, index, guard, fill):
            yield from ((e, False) for e in index)
            yield from ((e, True) for e in guard)
            if fill is not None:
                yield from _of_value(fill)
        case ir.Apply(_, operands, _):
            for operand in operands:
                yield from _of_value(operand)
        case ir.Choose(guard, then, otherwise):
            yield from ((e, True) for e in guard)
            yield from _of_value(then)
            yield from _of_value(otherwise)
        case ir.IndexValue(index, _):
            yield index, False
