"""Random lowered programs: random terms whose loops are spread over the levels of a CPU or a GPU.

What is computed comes from `tests.evaluate.random_terms`; its inner maps are recomputed by their readers, and the
results are written by copies at levels, some by way of a memory.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lithify.lang import build as b
from lithify.lang.levels import (
    HEAP,
    INLINE,
    LOCAL,
    PAR,
    PRIVATE,
    SEQ,
    UNROLL,
    VEC,
    Level,
    Memory,
)
from lithify.lang.term import Term, close, make
from lithify.lang.types import Array, Tuple, Type
from tests.evaluate.random_terms import Grower, random_type

G0, G1, I0, I1 = Level("group", 0), Level("group", 1), Level("item", 0), Level("item", 1)
GLOBAL0, GLOBAL1 = Level("global", 0), Level("global", 1)


class ReadableGrower(Grower):
    """Terms that can be read element by element: folds whose accumulators are arrays need a memory for every step."""

    def element_wise(self, type_: Type) -> bool:
        return not any(isinstance(item, Array) for item in (type_.items if isinstance(type_, Tuple) else (type_,)))

    def reduction(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        return super().reduction(type_, depth, scope) if self.element_wise(type_) else None

    def pipe(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        return super().pipe(type_, depth, scope) if self.element_wise(type_) and self.r.random() < 0.2 else None

    def iteration(self, type_: Type, depth: int, scope: tuple[Term, ...]) -> Term | None:
        return super().iteration(type_, depth, scope) if self.element_wise(type_) else None

    def scanned(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        return None

    def scattered(self, type_: Array, depth: int, scope: tuple[Term, ...]) -> Term | None:
        return None


def inlined(r: Random, term: Term) -> Term:
    """The term with its maps recomputed by their readers, its reductions sequential, and no memories."""
    known: dict[int, Term] = {}

    def go(t: Term) -> Term:
        found = known.get(t.id)
        if found is None:
            args = tuple([go(a) for a in t.args])
            found = args[0] if t.kind == "to" else _with_level(r, t, args)
            known[t.id] = found
        return found

    return go(term)


def _with_level(r: Random, t: Term, args: tuple[Term, ...]) -> Term:
    attrs = dict(zip(t.pattern.attributes, t.attrs, strict=True))
    if t.kind == "map":
        attrs["level"] = INLINE
    elif t.kind in ("reduce", "scan"):
        attrs["level"], attrs["memory"] = r.choice([SEQ, SEQ, UNROLL]), PRIVATE
    return make(t.pattern, tuple(attrs.values()), args)


def written(value: Term, levels: Callable[[int], tuple[Level, ...]]) -> Term:
    """Copies of all arrays of a value, at the levels for their number of dimensions."""
    if isinstance(value.type, Tuple):
        return b.tuple_(*[written(b.proj(i, value), levels) for i in range(len(value.type.items))])
    rank, type_ = 0, value.type
    while isinstance(type_, Array):
        rank, type_ = rank + 1, type_.element
    return b.copy(value, *levels(rank)) if rank else value


def cpu_levels(r: Random, *, threads: bool) -> Callable[[int], tuple[Level, ...]]:
    """Threads outermost (or none), then loops, perhaps vectors innermost."""

    def levels(rank: int) -> tuple[Level, ...]:
        chosen = [r.choice([SEQ, UNROLL]) for _ in range(rank)]
        if r.random() < 0.4:
            chosen[-1] = VEC
        if threads and (rank > 1 or chosen[0] is not VEC):
            chosen[0] = PAR
        return tuple(chosen)

    return levels


def gpu_levels(r: Random) -> Callable[[int], tuple[Level, ...]]:
    """The levels of a launch, by rank."""

    def levels(rank: int) -> tuple[Level, ...]:
        if rank == 1:
            return (GLOBAL0,)
        two = r.choice([(G0, I0), (GLOBAL1, GLOBAL0), (GLOBAL0, SEQ)])
        return two if rank == 2 else (*r.choice([(G1, G0, I0), (G0, I1, I0), (G0, I0, SEQ)]), *[SEQ] * (rank - 3))

    return levels


def group_levels(r: Random) -> Callable[[int], tuple[Level, ...]]:
    """What the work-items of a group write together."""
    return lambda rank: (I0, *[r.choice([SEQ, UNROLL]) for _ in range(rank - 1)])


def array_type(r: Random, depth: int = 1) -> Type:
    return Array(r.choice([1, 2, 3, 4, 5, 8]), random_type(r, depth))


def on_cpu(r: Random, depth: int) -> tuple[Term, dict[str, Type]]:
    """A value, or one that is computed from another that lies in memory."""
    grower = ReadableGrower(r)
    if r.random() < 0.5:
        value = inlined(r, grower.grow(array_type(r, 2), depth))
        return written(value, cpu_levels(r, threads=True)), grower.inputs
    memory = r.choice([HEAP, HEAP, PRIVATE])
    stage = inlined(r, grower.grow(array_type(r), depth))
    threads = memory is HEAP
    kept = b.to(memory, written(stage, cpu_levels(r, threads=threads)))
    t = b.param("_stage", stage.type)
    value = inlined(r, grower.grow(array_type(r), depth, (t,)))
    rest = written(value, cpu_levels(r, threads=threads))
    return make_let(kept, t, rest), grower.inputs


def on_gpu(r: Random, depth: int) -> tuple[Term, dict[str, Type]]:
    """A value over the whole launch."""
    grower = ReadableGrower(r)
    return written(inlined(r, grower.grow(array_type(r, 2), depth)), gpu_levels(r)), grower.inputs


def in_groups(r: Random, depth: int, memory: Memory = LOCAL) -> tuple[Term, dict[str, Type]]:
    """Groups that stage one to three values in local memory, each computed from those before, then write a result."""
    grower = ReadableGrower(r)
    groups = r.choice([1, 2, 3])
    row_type = array_type(r)
    rows = b.param("rows", Array(groups, row_type))
    inputs = grower.inputs
    inputs["rows"] = rows.type

    def body(row: Term) -> Term:
        scope: tuple[Term, ...] = (row,)
        stages = []
        for k in range(r.choice([1, 1, 2, 3])):
            stage = inlined(r, grower.grow(array_type(r), depth, scope))
            t = b.param(f"_stage{k}", stage.type)
            stages.append((b.to(memory, written(stage, group_levels(r))), t))
            scope = (*scope, t, t)
        result = written(inlined(r, grower.grow(array_type(r), depth, scope)), group_levels(r))
        for kept, t in reversed(stages):
            result = make_let(kept, t, result)
        return result

    return b.map_(body, rows, G0), inputs


def make_let(value: Term, variable: Term, body: Term) -> Term:
    """let variable = value in body."""
    return b.let(value, close(variable, body))
