"""Loop versioning: where an extent is symbolic, each iteration tests once whether it is in the clean middle.

Where a loop would have to be cut is not known then. The conditions of the body (and those that decide its minima as in
the middle of a long loop) are strengthened until they mention nothing that varies inside the body, and the body becomes
two versions behind that one test; in the first they are implied. Bodies without inner loops or vectors are left alone:
one test for another gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lithify.arith import Expr, Min, Variable, proves
from lithify.kernel import ir
from lithify.kernel.passes.formulas import formulas, minima
from lithify.kernel.walk import statements, with_blocks

_LARGEST_BODY = 500  # statements; a longer body is not copied
_TYPICAL_SIZE = 4096  # of a size, to guess which side of a minimum the middle of a loop is on


def version_symbolic_loops(program: ir.Program) -> ir.Program:
    """The program with two versions of the bodies of loops whose extent is symbolic, where that frees one of tests."""
    if not program.sizes:
        return program
    return replace(program, kernels=tuple([replace(k, body=_block(k.body)) for k in program.kernels]))


def _block(block: ir.Block) -> ir.Block:
    return tuple([_loop(s) if isinstance(s, ir.Loop) else with_blocks(s, _block) for s in block])


def _loop(loop: ir.Loop) -> ir.Statement:
    test = _test(loop) if loop.extent.constant is None and _worth_it(loop.body) else ()
    if not test:
        return with_blocks(loop, _block)
    return replace(loop, body=(ir.If(test, _block(loop.body), loop.body),))


def _worth_it(body: ir.Block) -> bool:
    inner = list(statements(body))
    return len(inner) <= _LARGEST_BODY and any(isinstance(s, (ir.Loop, ir.Lanes)) for s in inner)


def _test(loop: ir.Loop) -> ir.Guard:
    """What implies the conditions of the body that depend on the loop; those that inner variables make hopeless not."""
    inner = {s.variable for s in statements(loop.body) if isinstance(s, (ir.Loop, ir.Lanes))}
    wanted: dict[Expr, None] = {}
    for formula, is_condition in formulas(loop.body):
        if loop.variable in formula.variables():
            if is_condition:
                wanted[formula] = None
            for minimum in minima(formula):
                wanted[_decided(minimum)] = None
    strong = [_worst(c, inner) for c in wanted if loop.variable in c.variables()]
    usable = [c for c in strong if c is not None and loop.variable in c.variables()]
    return _weakest_cover(usable)


def _decided(minimum: Min) -> Expr:
    """The condition that decides a minimum the way it is in the middle of loops over large sizes."""
    difference = minimum.right - minimum.left
    middle = {}
    for variable in sorted(difference.variables(), key=lambda v: v.level):
        if variable.extent is None:
            middle[variable] = _TYPICAL_SIZE
        else:
            middle[variable] = variable.extent.evaluate(middle | _sizes_of(variable.extent)) // 2
    return difference if difference.evaluate(middle) >= 0 else -difference


def _sizes_of(formula: Expr) -> dict[Variable, int]:
    return {v: _TYPICAL_SIZE for v in formula.variables() if v.extent is None}


def _worst(condition: Expr, inner: Iterable[Variable]) -> Expr | None:
    """The condition with inner variables at the end of their range that hurts; None where it is not linear in them."""
    for variable in inner:
        if variable in condition.variables():
            factor = condition.coefficient(variable)
            if factor is None or variable.last is None:
                return None
            end = variable.last if factor < 0 else 0
            condition = condition.substitute({variable: end})
    return condition


def _weakest_cover(conditions: list[Expr]) -> ir.Guard:
    """The conditions without those that another one implies."""
    kept: list[Expr] = []
    for condition in conditions:
        if any(proves(condition - other) for other in kept):
            continue
        kept = [other for other in kept if not proves(other - condition)]
        kept.append(condition)
    return tuple(kept)
