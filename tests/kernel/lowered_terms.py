"""Random lowered programs: random terms whose loops are spread over the levels of a CPU or a GPU.

What is computed comes from `tests.evaluate.random_terms`; its inner maps are recomputed by their readers, and the
results are written by copies at levels, some by way of a memory.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lithify.lang import build as b
from lithify.lang.index_functions import reverse
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
from lithify.lang.scalars import i32
from lithify.lang.term import Term, close, make, subterms
from lithify.lang.types import Array, Tuple, Type, array
from tests.evaluate.random_terms import Grower, random_type

G0, G1, I0, I1 = Level("group", 0), Level("group", 1), Level("item", 0), Level("item", 1)
ITEM, WARP, LANE = Level("item"), Level("warp"), Level("lane")
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


# How the work-items of a group are numbered: the levels for one dimension and for two, and sizes of a group.
FAMILIES: dict[str, tuple[tuple[Level, ...], tuple[Level, ...], tuple[tuple[int, ...], ...]]] = {
    "in a row": ((I0,), (I0,), ((1,), (3,), (8,))),
    "in a square": ((ITEM,), (I1, I0), ((2, 3), (4, 1), (2, 2))),
    "in warps of four": ((ITEM,), (WARP, LANE), ((8,), (4,), (12,))),
}


def group_levels(r: Random, family: str) -> Callable[[int], tuple[Level, ...]]:
    """What the work-items of a group write together."""
    one, two, _ = FAMILIES[family]

    def levels(rank: int) -> tuple[Level, ...]:
        chosen = one if rank < len(two) else two
        return (*chosen, *[r.choice([SEQ, UNROLL]) for _ in range(rank - len(chosen))])

    return levels


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
    """A value over the whole launch, which may be smaller than what is computed."""
    grower = ReadableGrower(r)
    value = written(inlined(r, grower.grow(array_type(r, 2), depth)), gpu_levels(r))
    used = {t["level"] for t in subterms(value) if t.kind == "map"}
    if isinstance(value.type, Array) and r.random() < 0.4:
        grid = [r.choice([1, 2]) if used & {*pair} else 1 for pair in ((G0, GLOBAL0), (G1, GLOBAL1))]
        group = [r.choice([1, 2, 3]) if used & {*pair} else 1 for pair in ((I0, GLOBAL0), (I1, GLOBAL1))]
        value = b.launch(tuple(grid), tuple(group), value)
    return value, grower.inputs


def accumulated(r: Random, depth: int, memory: Memory, level: Level, out: Level, grower: Grower) -> Term:
    """A vector of sums: an accumulator that is an array, with its initial copy and its copy-out."""
    n, count = r.choice([1, 2, 4, 5]), r.choice([0, 1, 3])
    rows = inlined(r, grower.grow(array(count, n, i32), depth))
    start = b.copy(inlined(r, grower.grow(array(n, i32), depth)), level)
    operator = r.choice(["add", "max", "mul"])

    def step(acc: Term, row: Term) -> Term:
        return b.map_(lambda p: b.op(operator, b.proj(0, p), b.proj(1, p)), b.zip_(acc, row), level)

    return b.copy(b.reduce_(step, start, rows, SEQ, memory), out)


def folded_on_cpu(r: Random, depth: int) -> tuple[Term, dict[str, Type]]:
    """Array accumulators in the memory of each thread."""
    grower = ReadableGrower(r)
    level = r.choice([SEQ, UNROLL, VEC])
    rows = b.generate(r.choice([1, 3]), lambda i: i)
    body = accumulated(r, depth, PRIVATE, level, r.choice([SEQ, VEC]), grower)
    return b.map_(lambda _i: body, rows, PAR), grower.inputs


def folded_in_groups(r: Random, depth: int) -> tuple[Term, dict[str, Type]]:
    """Array accumulators in local memory, and in the memory of each work-item."""
    grower = ReadableGrower(r)
    rows = b.generate(r.choice([1, 3]), lambda i: i)
    if r.random() < 0.5:
        body = accumulated(r, depth, LOCAL, I0, I0, grower)
        return b.map_(lambda _i: body, rows, G0), grower.inputs
    body = accumulated(r, depth, PRIVATE, r.choice([SEQ, UNROLL]), SEQ, grower)
    return b.map_(lambda _i: b.map_(lambda _j: body, b.generate(3, lambda j: j), I0), rows, G0), grower.inputs


def in_groups(r: Random, depth: int, memory: Memory = LOCAL) -> tuple[Term, dict[str, Type]]:
    """Groups that stage one to three values in local memory, each computed from those before, then write a result."""
    grower = ReadableGrower(r)
    groups, family = r.choice([1, 2, 3]), r.choice([*FAMILIES])
    row_type = array_type(r)
    rows = b.param("rows", Array(groups, row_type))
    inputs = grower.inputs
    inputs["rows"] = rows.type

    def body(row: Term) -> Term:
        scope: tuple[Term, ...] = (row,)
        stages: list[tuple[Term, Term]] = []
        for k in range(r.choice([1, 1, 2, 3])):
            stage = inlined(r, reading(stages, scope))
            t = b.param(f"_stage{k}", stage.type)
            stages.append((b.to(memory, written(stage, group_levels(r, family))), t))
            scope = (*scope, t, t)
        result = written(inlined(r, reading(stages, scope)), group_levels(r, family))
        for kept, t in reversed(stages):
            result = make_let(kept, t, result)
        return result

    def reading(stages: list[tuple[Term, Term]], scope: tuple[Term, ...]) -> Term:
        """A value that often contains a stage read by other work-items than wrote it."""
        if not stages or r.random() < 0.3:
            return grower.grow(array_type(r), depth, scope)
        _, t = r.choice(stages)
        more = grower.grow(Array(r.choice([1, 2]), b.element_type(t)), depth, scope)
        return b.concat(b.reindex(reverse(b.length(t)), t), more)

    value = b.map_(body, rows, G0)
    if isinstance(value.type.element, Array) and (family != "in a row" or r.random() < 0.5):
        value = b.launch((r.choice([1, 2]),), r.choice(FAMILIES[family][2]), value)
    return value, inputs


def make_let(value: Term, variable: Term, body: Term) -> Term:
    """let variable = value in body."""
    return b.let(value, close(variable, body))
