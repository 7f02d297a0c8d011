"""Substitution into expressions and their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lithify.arith import atoms, expr
from lithify.arith.errors import ArithError

if TYPE_CHECKING:
    from lithify.arith.atoms import Atom, Load, Variable
    from lithify.arith.expr import Expr


def substitute(e: Expr, values: Mapping[Any, Expr | int]) -> Expr:
    """See `Expr.substitute`."""
    bindings = {atoms.as_variable(v): expr.as_expr(x) for v, x in values.items()}
    return _substitute(e, bindings, {})


def _substitute(e: Expr, bindings: dict[Variable, Expr], memo: dict[Atom, Expr]) -> Expr:
    if bindings.keys().isdisjoint(e.variables()):
        return e
    result = expr.const(e.offset)
    for monomial, coefficient in e.terms:
        term = expr.const(coefficient)
        for atom in monomial:
            value = memo.get(atom)
            if value is None:
                if isinstance(atom, atoms.Variable):
                    value = bindings.get(atom, atom.expr)
                else:
                    value = atom.rebuild(tuple([_substitute(p, bindings, memo) for p in atom.parts()]))
                memo[atom] = value
            term = term * value
        result = result + term
    return result


def evaluate(e: Expr, values: Mapping[Any, Any], load: Load | None) -> Any:
    """See `Expr.evaluate`."""
    known: dict[Atom, Any] = {atoms.as_variable(v): x for v, x in values.items()}
    return _evaluate(e, known, load)


def _evaluate(e: Expr, known: dict[Atom, Any], load: Load | None) -> Any:
    result: Any = e.offset
    for monomial, coefficient in e.terms:
        term: Any = coefficient
        for atom in monomial:
            value = known.get(atom)
            if value is None:
                if isinstance(atom, atoms.Variable):
                    raise ArithError(f"{e} cannot be evaluated: {atom} has no value")
                value = atom.compute(tuple([_evaluate(p, known, load) for p in atom.operands()]), load)
                known[atom] = value
            term = term * value
        result = result + term
    return result
