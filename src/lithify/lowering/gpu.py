"""The default lowering for GPUs: work-items over elements, or a work-group a row.

A nest of maps becomes a grid, its innermost loop along dimension 0, where neighbours read neighbours. Where rows are
reduced along contiguous memory, each row belongs to a group, whose items sum strided shares and then one another's
sums in local memory. A reduction of everything is made of such rows, and of one group for what they leave.
"""

from __future__ import annotations

from lithify.lang.levels import HEAP, LOCAL, PRIVATE, SEQ, UNROLL, VEC, Level, Memory
from lithify.lang.term import Term, subterms
from lithify.lang.types import Type
from lithify.lowering.cpu import body_work, element_of, has_lanes, is_flat, lanes_of
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Need, Nest, Path, has_loops, has_work, is_lazy, is_scalar, uses
from lithify.lowering.strategist import Choice, Strategist
from lithify.lowering.work import elements, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rules.algorithmic import iterate_unroll, let_inline, split_join, split_range
from lithify.rules.fusion import map_fusion, reduce_map_fusion, zip_of_maps
from lithify.rules.lowering import (
    bind_memory,
    copy_loop,
    fuse_named,
    fuse_stored,
    name_initial,
    one_group,
    one_item,
    reduce_fuse_named,
    to_memory,
)
from lithify.rules.memory import materialise
from lithify.rules.parallel import map_level, reduce_level, scan_level
from lithify.rules.reduction import partial_reduce, reduce_range, reduce_stride

GROUP, ITEM = Level("group", 0), Level("item", 0)
# Items of a group that works on a row.
ITEMS = 256
# Sums that every item adds up by itself in the end, all reading the same: two more barriers would cost more.
LAST_SUMS = 32
# A row is worth a group from this length on.
LONG_ROW = 256
# Groups a multiprocessor that a reduction of everything is spread over.
GROUPS_PER_CORE = 8
UNROLLED_WORK = 64
PRIVATE_BYTES = 256


class GpuStrategist(Strategist):
    """Answers for a GPU: `model` gives multiprocessors and access width, `loops` how loops walk through memory."""

    def __init__(self, model: DeviceModel, loops: Loops) -> None:
        self.model, self.loops = model, loops

    # -- maps

    def level(self, need: Need, program: Term) -> Choice:
        m, path, nest = need.term, need.path, need.nest
        fused = self._fused(m, path)
        if fused is not None:
            return fused
        names = {level.name for level in nest}
        if names & {"global", "item", "private"}:
            return Choice(path, self._inside_an_item(m, nest))
        if "group" in names:
            return Choice(path, self._among_items(m))
        return Choice(path, self._outermost(m))

    def _outermost(self, m: Term) -> Strategy:
        if self._is_row_work(m):
            return one_item(GROUP, ITEM) if is_flat(m) else map_level(GROUP)
        if not is_flat(m):
            return map_level(Level("global", min(2, _depth(m) - 1)))
        n, lanes = length_of(m), lanes_of(self.model, m, access=True)
        walk = self.loops.walk(m)
        if lanes > 1 and n >= 1024 * lanes and walk is not None and walk.vectorises and walk.invariant == 0:
            if n % lanes:
                return split_range(n // lanes * lanes)
            return split_join(lanes) >> at((0,), map_level(Level("global", 0)) >> at((0, 0), map_level(VEC)))
        return map_level(Level("global", 0))

    def _among_items(self, m: Term) -> Strategy:
        """The elements of a row, one an item, as many rounds as it takes."""
        if not is_flat(m):
            return map_level(SEQ)
        return map_level(ITEM) if length_of(m) <= ITEMS else split_join(ITEMS)

    def _inside_an_item(self, m: Term, nest: Nest) -> Strategy:
        inner = _inner_dimension(nest)
        if inner is not None:
            return map_level(inner)
        if is_flat(m) and all(level.name == "global" for level in nest) and self._is_vector(m):
            return map_level(VEC)
        return map_level(UNROLL if length_of(m) * body_work(m) <= UNROLLED_WORK else SEQ)

    def _is_vector(self, m: Term) -> bool:
        return length_of(m) in self.model.vector_widths(32)

    def _is_row_work(self, m: Term) -> bool:
        """Does each iteration reduce long contiguous rows?"""
        return any(
            t.kind == "reduce" and length_of(t.args[2]) >= LONG_ROW and has_lanes(t) and self._contiguous(t)
            for t in subterms(m.args[0])
        )

    def _contiguous(self, r: Term) -> bool:
        walk = self.loops.walk(r)
        return walk is None or walk.contiguous > walk.strided

    def _fused(self, m: Term, path: Path) -> Choice | None:
        xs = m.args[1]
        if xs.kind == "zip" and any(a.kind == "map" and a["level"] is None and not is_lazy(a.args[0]) for a in xs.args):
            return Choice((*path, 1), zip_of_maps)
        if xs.kind != "map" or xs["level"] is not None:
            return None
        if uses(m.args[0].args[0]) <= 1 or not has_work(xs.args[0]):
            return Choice(path, map_fusion)
        return Choice(path, fuse_named if is_scalar(element_of(xs)) else fuse_stored(self._memory(element_of(xs), ())))

    # -- reductions

    def reduction(self, need: Need, program: Term) -> Choice:
        r, path, nest = need.term, need.path, need.nest
        n = length_of(r.args[-1])
        names = {level.name for level in nest}
        if not nest and r.kind == "reduce" and has_loops(r.args[1]):
            return Choice(path, name_initial)
        if r.kind == "reduce" and is_scalar(r.type) and has_lanes(r):
            if not nest and n > ITEMS * LAST_SUMS * 4:
                return Choice(path, self._partial_sums(r))
            if not nest and n > LAST_SUMS:
                return Choice(path, one_group(GROUP, ITEM))
            if "group" in names and not names & {"item", "private"} and n > LAST_SUMS:
                return Choice(path, self._by_items(r))
        return self._in_order(r, path)

    def _partial_sums(self, r: Term) -> Strategy:
        """One sum a group, for as many groups as keep the device busy; written down for a second kernel."""
        n = length_of(r.args[-1])
        piece = max(1, n // (self.model.cores * GROUPS_PER_CORE * ITEMS)) * ITEMS
        whole = n // piece * piece
        return reduce_range(whole) if whole != n else partial_reduce(piece) >> materialise(HEAP)

    def _by_items(self, r: Term) -> Strategy:
        """Each item sums a strided share; the shares' sums, in local memory, are left to sum."""
        n = length_of(r.args[-1])
        shares = ITEMS if n > ITEMS else LAST_SUMS
        whole = n // shares * shares
        if whole != n:
            return reduce_range(whole)
        share = n // shares
        return (
            reduce_stride(shares)
            >> partial_reduce(share)
            >> at((2,), map_level(ITEM) >> to_memory(LOCAL))
        )

    def _in_order(self, r: Term, path: Path) -> Choice:
        xs = r.args[-1]
        if r.kind == "reduce" and xs.kind == "map" and xs["level"] is None and not is_lazy(xs.args[0]):
            several = uses(r.args[0].args[0].args[0]) > 1 and is_scalar(element_of(xs))
            return Choice(path, reduce_fuse_named if several else reduce_map_fusion)
        n = length_of(xs)
        level = UNROLL if n <= 32 and n * body_work(r) <= UNROLLED_WORK else SEQ
        if r.kind == "scan":
            return Choice(path, scan_level(level, PRIVATE))
        return Choice(path, reduce_level(level, PRIVATE))

    # -- memory

    def copy(self, need: Need, program: Term) -> Choice:
        xs, path, nest = need.term, need.path, need.nest
        names = {level.name for level in nest}
        flat = is_scalar(element_of(xs))
        if not nest:
            return Choice(path, copy_loop(Level("global", 0 if flat else min(2, _dimensions(xs.type) - 1))))
        inner = _inner_dimension(nest)
        if inner is not None:
            return Choice(path, copy_loop(inner))
        if "group" in names and not names & {"item", "private"} and flat:
            return Choice(path, copy_loop(ITEM))
        return Choice(path, copy_loop(UNROLL if elements(xs.type) <= 32 else SEQ))

    def memory(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, to_memory(self._memory(need.term.type, need.nest)))

    def binding(self, need: Need, program: Term) -> Choice:
        value, function = need.term.args
        if uses(function.args[0]) <= 1 and not is_scalar(value.type):
            return Choice(need.path, let_inline)
        return Choice(need.path, bind_memory(self._memory(value.type, need.nest)))

    def sharing(self, need: Need, program: Term) -> Choice:
        at_ = len(need.term.args) - 1
        return Choice((*need.path, at_), to_memory(self._memory(need.term.args[at_].type, need.nest)))

    def iteration(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, iterate_unroll())

    def _memory(self, type_: Type, nest: Nest) -> Memory:
        """The heap outside of all loops, local memory for a group, private memory for an item."""
        names = {level.name for level in nest}
        if not nest:
            return HEAP
        return LOCAL if "group" in names and "item" not in names else PRIVATE


def _inner_dimension(nest: Nest) -> Level | None:
    """The next dimension of the grid, directly below maps over outer ones."""
    last = nest[-1] if nest else None
    if isinstance(last, Level) and all(level.name == "global" for level in nest) and last.dim:
        return Level("global", last.dim - 1)
    return None


def _depth(m: Term) -> int:
    """How many maps write, one directly in the other."""
    depth, t = 1, m.args[0].args[0]
    while t.kind == "map" or (t.pattern.layout and len(t.args) == 1 and t.kind != "map"):
        if t.kind == "map":
            if not is_lazy(t.args[0]) and t["level"] is not None:
                break
            depth += 1
            t = t.args[0].args[0]
        else:
            t = t.args[0]
    return depth if depth > 1 else _dimensions(m.type)


def _dimensions(type_: Type) -> int:
    from lithify.lang.types import shape_of

    return len(shape_of(type_)[0])
