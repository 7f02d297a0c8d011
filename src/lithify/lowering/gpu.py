"""The default lowering for GPUs: work-items over elements, or a work-group a row.

A nest of maps becomes a grid, its innermost loop along dimension 0, where neighbours read neighbours. Where rows are
reduced along contiguous memory, each row belongs to a group, whose items sum strided shares and then one another's
sums in local memory. A reduction of everything is made of such rows, and of one group for what they leave.
"""

from __future__ import annotations

from lithify.lang.levels import HEAP, LOCAL, PRIVATE, SEQ, UNROLL, VEC, Level, Memory
from lithify.lang.term import Term, contains, subterms
from lithify.lang.types import Type, shape_of
from lithify.lowering import gpu_copies
from lithify.lowering.facts import body_work, element_of, has_lanes, is_flat, lanes_of
from lithify.lowering.needs import Need, Nest, has_loops, is_lazy, is_scalar
from lithify.lowering.strategist import Choice, DeviceStrategist
from lithify.lowering.work import elements, is_constant, length_of
from lithify.rewrite import Strategy, at, repeat, topdown
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import split_join, split_range
from lithify.rules.fusion import zip_unread
from lithify.rules.interchange import map_map_shared
from lithify.rules.lowering import (
    copy_loop,
    name_initial,
    one_group,
    one_item,
    to_memory,
)
from lithify.rules.memory import materialise
from lithify.rules.parallel import map_level
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
# Rows of a stencil that an item computes, and operations of all of them: more would not stay in registers.
MOST_ROWS = 8
ROWS_WORK = 512
# Items a multiprocessor that keep it busy.
ITEMS_TO_BE_BUSY = 1_024
# Elements of a group's share where the length is not known.
ANY_PIECE = 16_384


class GpuStrategist(DeviceStrategist):
    """Answers for a GPU: `model` gives multiprocessors and access width, `loops` how loops walk through memory."""

    unrolled_work = 64

    # -- maps

    def level(self, need: Need, program: Term) -> Choice:
        m, path, nest = need.term, need.path, need.nest
        fused = self.fused(m, path, nest)
        if fused is not None:
            return fused
        names = {level.name for level in nest}
        rows = self._rows_an_item(m, program) if names <= {"global"} else 1
        if rows > 1:
            tile = f"{m['name']}.tile"
            inwards = at(loop_of(tile, "map"), map_map_shared) >> repeat(topdown(zip_unread))
            return Choice(path, split_join(rows) >> inwards >> at(loop_of(tile, "map"), map_level(UNROLL)))
        if names & {"global", "item", "private"} or (nest and "group" not in names):
            return Choice(path, self._inside_an_item(m, nest))
        if "group" in names:
            return Choice(path, self._among_items(m))
        return Choice(path, self._outermost(m))

    def _rows_an_item(self, m: Term, program: Term) -> int:
        """How many rows of a nest over windows an item computes: what neighbouring rows both read is loaded once."""
        inner = m.args[0].args[0]
        whole = not {"block", "tile"} & set((m["name"] or "").split("."))
        windows = contains(m.args[1], lambda t: t.kind == "slide")
        if not (whole and windows and inner.kind == "map" and inner["level"] is None):
            return 1
        if not (is_flat(inner) and is_constant(m) and is_constant(inner)):
            return 1
        items = max(length_of(m) * length_of(inner), elements(program.type))
        most = min(
            MOST_ROWS, ROWS_WORK // body_work(inner), length_of(m), items // (self.model.cores * ITEMS_TO_BE_BUSY)
        )
        return 1 << max(0, most.bit_length() - 1)

    def _outermost(self, m: Term) -> Strategy:
        if self._is_row_work(m):
            return one_item(GROUP, ITEM) if is_flat(m) else map_level(GROUP)
        if not is_flat(m):
            return map_level(Level("global", min(2, _depth(m) - 1)))
        n, lanes = length_of(m), lanes_of(self.model, m, access=True)
        walk = self.loops.walk(m)
        by_vectors = is_constant(m) and lanes > 1 and n >= 1024 * lanes
        if by_vectors and walk is not None and walk.vectorises and walk.invariant == 0:
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
        return map_level(UNROLL if length_of(m) * body_work(m) <= self.unrolled_work else SEQ)

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

    # -- reductions

    def reduction(self, need: Need, program: Term) -> Choice:
        r, path, nest = need.term, need.path, need.nest
        n = length_of(r.args[-1])
        names = {level.name for level in nest}
        if not nest and r.kind == "reduce" and is_scalar(r.type) and has_loops(r.args[1]):
            return Choice(path, name_initial)
        if r.kind == "reduce" and is_scalar(r.type) and has_lanes(r):
            if not nest and n > ITEMS * LAST_SUMS * 4:
                return Choice(path, self._partial_sums(r))
            if not nest and n > LAST_SUMS:
                return Choice(path, one_group(GROUP, ITEM))
            among_items = "group" in names and not names & {"item", "private", "inline"}
            if among_items and n > LAST_SUMS and is_constant(r.args[2]):
                return Choice(path, self._by_items(r))
        return self.in_order(r, path, nest)

    def _partial_sums(self, r: Term) -> Strategy:
        """One sum a group, for as many groups as keep the device busy; written down for a second kernel."""
        n = length_of(r.args[-1])
        if not is_constant(r.args[2]):
            return partial_reduce(ANY_PIECE) >> materialise(HEAP)
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
        return reduce_stride(shares) >> partial_reduce(share) >> at((2,), map_level(ITEM) >> to_memory(LOCAL))

    # -- memory

    def copy(self, need: Need, program: Term) -> Choice:
        xs, path, nest = need.term, need.path, need.nest
        names = {level.name for level in nest}
        flat = is_scalar(element_of(xs))
        if not nest:
            in_squares = gpu_copies.squares(program, path, self.model)
            if in_squares is not None:
                return Choice(path, in_squares)
            return Choice(path, copy_loop(Level("global", 0 if flat else min(2, _dimensions(xs.type) - 1))))
        inner = _inner_dimension(nest)
        if inner is not None:
            return Choice(path, copy_loop(inner))
        if "group" in names and not names & {"item", "private", "inline"} and flat:
            return Choice(path, copy_loop(ITEM))
        return Choice(path, copy_loop(UNROLL if elements(xs.type) <= 32 else SEQ))

    def memory_for(self, type_: Type, nest: Nest) -> Memory:
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
    while t.kind == "map" or (t.pattern.layout and len(t.args) == 1):
        if t.kind == "map":
            if t["level"] is not None and (t["level"] == UNROLL or not is_lazy(t.args[0])):
                break
            depth += 1
            t = t.args[0].args[0]
        else:
            t = t.args[0]
    return depth if depth > 1 else _dimensions(m.type)


def _dimensions(type_: Type) -> int:
    return len(shape_of(type_)[0])
