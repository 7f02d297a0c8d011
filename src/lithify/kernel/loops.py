"""Loops at every kind of level: one after another, unrolled, the lanes of a vector, hardware indices."""

from __future__ import annotations

from collections.abc import Callable

from lithify.arith import Expr, as_variable, ceil_div, const, proves, var
from lithify.kernel import ir
from lithify.kernel.builder import Translator
from lithify.kernel.hardware import missing_level
from lithify.lang.levels import SEQ, Level, LevelKind
from lithify.lang.term import Term
from lithify.machine import reason_against

Body = Callable[[Expr], None]


def loop(tr: Translator, size: Expr, level: Level, name: str | None, term: Term, body: Body) -> None:
    """Run `body` for every index below `size`, the way the level says. An empty loop leaves nothing."""
    if size.constant == 0:
        return
    scope, kind = tr.scope, level.kind
    if kind is LevelKind.INLINE:
        raise tr.rejected(term, f"{term.kind}[inline] is recomputed by its readers; here it must be written",
                            "give it a level that writes: seq, unroll, vec, ...")  # fmt: skip
    refusal = _refusal(tr, level)
    if refusal is not None:
        raise tr.rejected(term, refusal)
    tr.trail.append(f"{term.kind}[{level}]" + (f" {name}" if name else ""))
    scope.depth += 1
    if kind is LevelKind.HARDWARE:
        _hardware_loop(tr, size, level, name, body)
    elif kind is LevelKind.UNROLLED:
        _unrolled(tr, size, term, body)
    elif kind is LevelKind.VECTOR:
        _lanes(tr, size, name, term, body)
    else:
        _sequential(tr, size, level, name, body)
    scope.depth -= 1
    tr.trail.pop()


def _refusal(tr: Translator, level: Level) -> str | None:
    """Why a loop at the level cannot stand here, or None."""
    if level.kind in (LevelKind.SEQUENTIAL, LevelKind.UNROLLED):
        return None
    if tr.device is not None and not tr.device.has_level(level):
        return missing_level(level, tr.device)
    if tr.scope.in_sequence and (level.kind is LevelKind.THREADS or level.name in ("group", "global", "cluster")):
        return f"map[{level}] stands below a loop: the whole device would wait for itself in every iteration"
    reasons = (reason_against(outer, level) for outer in tr.scope.entered)
    return next((reason for reason in reasons if reason is not None), None)


def _unrolled(tr: Translator, size: Expr, term: Term, body: Body) -> None:
    if size.constant is None:
        raise tr.rejected(term, f"unrolling {size} iterations needs a constant number of them", "use seq")
    for i in range(size.constant):
        tr.scope.loops.append(const(i))
        tr.scope.in_sequence += 1
        body(const(i))
        tr.scope.in_sequence -= 1
        tr.scope.loops.pop()


def _sequential(tr: Translator, size: Expr, level: Level, name: str | None, body: Body) -> None:
    scope = tr.scope
    outer = scope.entered
    if level.kind is LevelKind.THREADS:
        scope.entered = (*outer, level)
    else:
        scope.in_sequence += 1
    repeating = scope.repeating
    with tr.index_variable(name, "ijkmnpqrs", size) as index, tr.collected() as block:
        scope.loops.append(index)
        scope.repeating = repeating | index.variables()
        body(index)
    scope.repeating = repeating
    scope.loops.pop()
    scope.entered = outer
    scope.in_sequence -= level.kind is not LevelKind.THREADS
    if index.constant is not None:
        scope.block.extend(block)
    elif block:
        tr.emit(ir.Loop(as_variable(index), size, level, tuple(block), name))


def _lanes(tr: Translator, size: Expr, name: str | None, term: Term, body: Body) -> None:
    scope = tr.scope
    if size.constant is None:
        raise tr.rejected(term, f"a vector of {size} lanes needs a constant number of them")
    outer = scope.entered
    scope.entered = (*outer, Level("vec"))
    if size.constant == 1:
        body(const(0))
    else:
        with tr.index_variable(name, "v", size) as index, tr.collected() as block:
            scope.lane = (index, size.constant)
            body(index)
        scope.lane = None
        if block:
            tr.emit(ir.Lanes(as_variable(index), size.constant, tuple(block), name))
    scope.entered = outer


def _hardware_loop(tr: Translator, size: Expr, level: Level, name: str | None, body: Body) -> None:
    scope = tr.scope
    hardware = scope.hardware
    index, extent = hardware.index[level], hardware.extent[level]
    outer, owned, current, repeating = scope.entered, scope.owned, scope.current, scope.repeating
    scope.entered, scope.owned = (*outer, level), owned | index.variables()
    if size is extent:
        scope.current = {**current, level: index}
        scope.repeating = repeating | index.variables()
        body(index)
    elif _is_part(size, extent):
        narrow = scope.aliases.get((level, size))
        if narrow is None:
            narrow = scope.aliases[level, size] = var(str(level), size)
        scope.current = {**current, level: narrow}
        scope.repeating = repeating | narrow.variables()
        tr.conditional((size - 1 - index,), lambda: body(narrow))
    else:
        _strided(tr, size, index, extent, name, body)
    scope.entered, scope.owned, scope.current, scope.repeating = outer, owned, current, repeating


def _strided(tr: Translator, size: Expr, index: Expr, extent: Expr, name: str | None, body: Body) -> None:
    """More elements than hardware indices: each takes every extent-th."""
    scope = tr.scope
    rounds = ceil_div(size, extent)
    with tr.index_variable(name, "rstuw", rounds) as turn, tr.collected() as block:
        element = turn * extent + index
        scope.loops.append(turn)
        scope.repeating = scope.repeating | element.variables()
        tr.conditional((size - 1 - element,), lambda: body(element))
    scope.loops.pop()
    if turn.constant is not None:
        scope.block.extend(block)
    elif block:
        tr.emit(ir.Loop(as_variable(turn), rounds, SEQ, tuple(block), name))


def _is_part(size: Expr, extent: Expr) -> bool:
    """Are there hardware indices for all iterations, and others? (The longest loop of a kernel gives their number.)"""
    if size.constant is not None and extent.constant is not None:
        return size.constant < extent.constant
    return proves(extent - size)
