"""Sums on GPUs in a loop with too few iterations to keep the device busy: in parts, by a kernel of their own.

    map (λx. C[reduce f z (e x)]) xs
      -> let p = to[heap] (map (λx. map (reduce f e) (split n (e x))) xs) in map (λ(x, s). C[reduce f z s]) (zip xs p)

Where the sum runs along memory, a group makes a part. Where the loop does (sums of columns), parts are the outer loop,
so that neighbours still read neighbours.
"""

from __future__ import annotations

from lithify.lang.levels import HEAP, Level
from lithify.lang.term import Term, dangling
from lithify.lowering.facts import has_lanes, is_flat
from lithify.lowering.gpu_rows import GROUP_TEAM
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Path, is_scalar
from lithify.lowering.work import is_constant, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rewrite.traversal import loop_of
from lithify.rules.interchange import map_map_shared
from lithify.rules.lowering import bind_transposed, one_item, to_memory
from lithify.rules.memory import hoist_expanded
from lithify.rules.parallel import map_level
from lithify.rules.reduction import partial_reduce

_GROUP, _ITEM = tuple(Level("group", dim) for dim in range(2)), Level("item", 0)
# Groups, or items that sum alone, that keep a multiprocessor busy.
_GROUPS, _ITEMS = 8, 2_048
# Elements of a part at least.
_LEAST_OF_GROUP, _LEAST_OF_ITEM = 8_192, 32
# Elements in all that are worth another kernel.
_LEAST = 1 << 20


def parts(m: Term, model: DeviceModel, loops: Loops) -> Strategy | None:
    """The sums of a flat loop in parts; None where it has iterations enough, or none of its sums can be cut."""
    if not (is_flat(m) and is_constant(m)) or "staged" in (m["name"] or "").split("."):
        return None
    found = _sum_in(m)
    if found is None:
        return None
    path, r = found
    walk, n, iterations = loops.walk(r), length_of(r.args[2]), length_of(m)
    if walk is None:
        return None
    along = walk.contiguous > walk.strided
    workers, least = (_GROUPS, _LEAST_OF_GROUP) if along else (_ITEMS, _LEAST_OF_ITEM)
    count = min(model.cores * workers // iterations, n // least)
    if count < 2 or n * iterations < _LEAST:
        return None
    name = m["name"]
    part = partial_reduce(_part(n, count, GROUP_TEAM.items if along else 1))
    cut = at(path, part >> at((2,), to_memory(HEAP))) >> hoist_expanded(HEAP)
    staged = loop_of(f"{name}.staged", "map")
    if not along:
        return cut >> at(staged, map_map_shared) >> bind_transposed
    return cut >> at(staged, map_level(_GROUP[1]) >> at((0, 0), one_item(_GROUP[0], _ITEM)))


def _part(n: int, count: int, unit: int) -> int:
    """The length of a part: whole units, and equal parts, if that does not make them much fewer."""
    shortest = -(-n // (count * unit)) * unit
    return next((k for k in range(shortest, min(2 * shortest, n), unit) if n % k == 0), shortest)


def _sum_in(m: Term) -> tuple[Path, Term] | None:
    """A long sum in the loop's function that depends on nothing but its element, outermost first."""
    stack: list[tuple[Path, Term]] = [((0, 0), m.args[0].args[0])]
    while stack:
        path, t = stack.pop()
        if t.kind == "reduce" and is_scalar(t.type) and has_lanes(t) and is_constant(t.args[2]):
            if t["level"] is None and dangling(t.args[2]) == {0}:
                return path, t
        if t.kind not in ("map", "reduce", "scan", "generate", "iterate", "lambda"):
            stack.extend(((*path, k), a) for k, a in reversed(list(enumerate(t.args))))
    return None
