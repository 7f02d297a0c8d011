"""Index-set splitting: a loop is cut where a condition in it changes its truth, so that the main part has none.

Conditions are those of guarded loads and stores (padding, partial tiles) and the two sides of minima (clamped and
mirrored padding). The main part is rebuilt with a variable that has its narrower range; there the ranges imply the
conditions, and they vanish by normalisation. A sequential loop becomes up to three loops. A loop over CPU threads stays
one loop (each more would be a join of all threads) and its body becomes two versions behind a test. Loops whose main
part would be less than half are left alone, and so are vectors and hardware indices: their conditions are masks.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.arith import Expr, Min, Variable, as_variable, const, proves, var
from lithify.kernel import ir
from lithify.kernel.passes.formulas import formulas, minima
from lithify.kernel.walk import Substitution, statements, with_blocks
from lithify.lang.levels import LevelKind

_LARGEST_BODY = 1000  # statements; a longer body is not copied


def split_index_sets(program: ir.Program) -> ir.Program:
    """The program with loops cut where that frees the main part of conditions."""
    kernels = tuple([replace(kernel, body=_block(kernel.body)) for kernel in program.kernels])
    return replace(program, kernels=kernels)


def _block(block: ir.Block) -> ir.Block:
    result: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, ir.Loop):
            result += _loop(statement)
        else:
            result.append(with_blocks(statement, _block))
    return tuple(result)


def _loop(loop: ir.Loop) -> ir.Block:
    last = loop.extent.constant
    found = None
    if sum(1 for _ in statements(loop.body)) <= _LARGEST_BODY:
        if last is None:
            return _cut_at_rest(loop)
        found = _main_part(loop, last - 1)
    if found is None or last is None:
        return (with_blocks(loop, _block),)
    first, final = found
    if loop.level.kind is LevelKind.THREADS:
        return (_two_versions(loop, first, final, last - 1),)
    return (
        *_part(loop, 0, first - 1, False),
        *_part(loop, first, final, True),
        *_part(loop, final + 1, last - 1, False),
    )


def _cut_at_rest(loop: ir.Loop) -> ir.Block:
    """A sequential loop of a symbolic number of iterations without the last ones, of which a condition may not hold:
    what whole blocks leave over of a length is a loop of its own."""
    cuts = {_first_doubt(c, loop) for c, is_condition in formulas(loop.body) if is_condition}
    cut = next((c for c in cuts if c is not None), None) if len(cuts - {None}) == 1 else None
    if cut is None or loop.level.kind is not LevelKind.SEQUENTIAL:
        return (with_blocks(loop, _block),)
    return (*_iterations(loop, const(0), cut), *_iterations(loop, cut, loop.extent - cut))


def _iterations(loop: ir.Loop, first: Expr, count: Expr) -> ir.Block:
    index = var(loop.variable.name, count)
    body = _block(Substitution({loop.variable: index + first}).block(loop.body))
    return (replace(loop, variable=as_variable(index), extent=count, body=body),) if index.constant is None else body


def _first_doubt(condition: Expr, loop: ir.Loop) -> Expr | None:
    """The first iteration in which condition >= 0 may not hold, whatever other indices are; None where it is the first
    one, or none, or not known."""
    factor = condition.coefficient(loop.variable)
    if factor is None or factor >= 0:
        return None
    worst = condition.substitute({loop.variable: const(0)})
    for variable in worst.variables():
        if variable.extent is not None:
            step = worst.coefficient(variable)
            if step is None or variable.last is None or variable.last.constant is None:
                return None
            worst = worst.substitute({variable: variable.last if step < 0 else const(0)})
    cut = worst // -factor + 1
    inside = proves(cut) and proves(loop.extent - cut) and cut != loop.extent
    return cut if inside else None


def _part(loop: ir.Loop, first: int, final: int, deep: bool) -> ir.Block:
    """Iterations first .. final, with a variable of that range. Loops inside one iteration, or if `deep`, are cut."""
    if first > final:
        return ()
    index = var(loop.variable.name, final - first + 1)
    body = Substitution({loop.variable: index + first}).block(loop.body)
    if deep or index.constant is not None:
        body = _block(body)
    if index.constant is not None:
        return body
    return (ir.Loop(as_variable(index), const(final - first + 1), loop.level, body, loop.name),) if body else ()


def _two_versions(loop: ir.Loop, first: int, final: int, last: int) -> ir.Statement:
    index = var(loop.variable.name, final - first + 1)
    main = _block(Substitution({loop.variable: index + first}).block(loop.body))
    if index.constant is None:
        main = Substitution({as_variable(index): loop.variable.expr - first}).block(main)
    inside = tuple([c for c in (loop.variable.expr - first, const(final) - loop.variable.expr) if c.lo < 0])
    outside = [i for i in (0, last) if not first <= i <= final]
    others = loop.body
    if len(outside) == 1 and final - first == last - 1:  # one iteration is left: its index is a constant
        others = _block(Substitution({loop.variable: const(outside[0])}).block(others))
    return replace(loop, body=(ir.If(inside, main, others),))


def _main_part(loop: ir.Loop, last: int) -> tuple[int, int] | None:
    """First and last iteration of the part in which conditions hold, if cutting there is worth it."""
    first, final = 0, last
    seen: set[tuple[Expr, bool]] = set()
    choices: set[Min] = set()
    for formula, is_condition in formulas(loop.body):
        if (formula, is_condition) in seen or loop.variable not in formula.variables():
            continue
        seen.add((formula, is_condition))
        if is_condition:
            a, b = _where_implied(formula, loop.variable, last)
            if a <= b:
                first, final = max(first, a), min(final, b)
        choices.update(minima(formula))
    for minimum in choices:
        difference = minimum.right - minimum.left
        if loop.variable in difference.variables():
            a, b = max(
                _where_implied(difference, loop.variable, last),
                _where_implied(-difference, loop.variable, last),
                key=lambda part: part[1] - part[0],
            )
            if a <= b:
                first, final = max(first, a), min(final, b)
    if (first, final) == (0, last) or final - first + 1 < max(2, (last + 1) // 2):
        return None
    return first, final


def _where_implied(condition: Expr, variable: Variable, last: int) -> tuple[int, int]:
    """The iterations, as an interval, in which condition >= 0 whatever the other variables are."""
    factor = condition.coefficient(variable)
    rest = None if factor is None else (condition - variable.expr * factor).lo
    if not factor or rest is None or rest == float("-inf"):
        return 0, -1
    least = int(rest)
    if factor > 0:
        return max(0, -(least // factor)), last
    return 0, min(last, least // -factor)
