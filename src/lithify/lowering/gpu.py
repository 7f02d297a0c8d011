"""The default lowering for GPUs: work-items over elements, and teams of them over rows.

A nest of maps becomes a grid, its innermost loop along dimension 0, where neighbours read neighbours, or one loop of
vectors. Where rows are reduced along contiguous memory, each row belongs to a group, to a warp or to an item, by its
length: a team's items sum strided shares and then one another's sums in local memory. A reduction of everything is made
of such rows, and of one group for what they leave.
"""

from __future__ import annotations

from lithify.arith import Expr, minimum
from lithify.lang.levels import HEAP, LOCAL, PRIVATE, SEQ, UNROLL, VEC, Level, Memory
from lithify.lang.reading import has_work
from lithify.lang.term import Term, subterms
from lithify.lang.types import Type
from lithify.lowering import gpu_copies, gpu_grid, gpu_parts, gpu_rows, gpu_scans, gpu_windows, stages
from lithify.lowering.facts import (
    body_work,
    bytes_of,
    element_of,
    has_lanes,
    has_start,
    is_flat,
)
from lithify.lowering.gpu_rows import GROUP_TEAM, LOCAL_SHARE, Team
from lithify.lowering.needs import Need, Nest, is_scalar
from lithify.lowering.strategist import Choice, DeviceStrategist
from lithify.lowering.work import count, elements, is_at_most, is_bounded, is_constant, length_of, size_of
from lithify.rewrite import Strategy, at
from lithify.rules.algorithmic import split_join, split_range
from lithify.rules.lowering import (
    copy_loop,
    one_group,
    one_item,
    to_memory,
)
from lithify.rules.memory import materialise
from lithify.rules.parallel import map_level
from lithify.rules.reduction import partial_reduce, reduce_columns, reduce_stride
from lithify.rules.stencil import reduce_window_rows

GROUP, ITEM = Level("group", 0), Level("item", 0)
WARP, LANE = Level("warp"), Level("lane")
# Items of a group.
ITEMS = GROUP_TEAM.items
# Shorter rows go to a warp each; warps of a group.
GROUP_ROW = 2_048
WARPS = 4
# So many elements, and no more, are reduced by one item.
LAST_SUMS = GROUP_TEAM.last
# A row is worth a warp from this length on.
LONG_ROW = 64
# What a group reads in a reduction of everything, in bytes, and how many groups a multiprocessor gets, at least and at
# most: few leave it idle at the end, and each of many begins anew. (On an H200, sums and dots of 2^22 to 2^28 are
# within 3 % of the best that was tried.)
GROUP_READS = 1 << 17
FEWEST_GROUPS, MOST_GROUPS = 8, 32
# Elements of a group's share where the length is not known.
ANY_PIECE = 16_384
# Elements of an array that an item keeps in registers; more are computed again where they are read.
MOST_KEPT = 16
# What stands below a map of one of these is done by one item.
_ONE_ITEM = frozenset({"item", "lane", "private"})


class GpuStrategist(DeviceStrategist):
    """Answers for a GPU: `model` gives multiprocessors and access width, `loops` how loops walk through memory."""

    unrolled_work = 64

    # -- maps

    def level(self, need: Need, program: Term) -> Choice:
        m, path, nest = need.term, need.path, need.nest
        fused = self.fused(m, path, nest)
        if fused is not None:
            return fused
        again = None if nest else stages.recomputed(m, self.loops)
        if again is not None:
            return Choice((*path, *again[0]), again[1])
        windows = self._windows(m, program, nest)
        if windows is not None:
            return Choice(path, windows)
        names = {level.name for level in nest}
        if names & {"global", *_ONE_ITEM} or (nest and "group" not in names):
            return Choice(path, self._inside_an_item(m, nest))
        team = self._team(nest)
        if team is None:
            return Choice(path, self._outermost(m))
        part = (m["name"] or "").rpartition(".")[2]
        if part == "row" and "warp" not in names:
            return Choice(path, one_item(WARP, LANE) if is_flat(m) else map_level(WARP))
        if part == "single":
            return Choice(path, map_level(ITEM))
        return Choice(path, self._among(m, team))

    def _windows(self, m: Term, program: Term, nest: Nest) -> Strategy | None:
        """A step of a stencil: borders apart, several rows an item."""
        apart = None
        if len(nest) <= 1:
            apart = gpu_windows.interior(m, program, self.loops, self.model, inside=bool(nest))
        if apart is None and {level.name for level in nest} <= {"global"}:
            return gpu_windows.rows(m, program, self.loops, self.model)
        return apart

    def _team(self, nest: Nest) -> Team | None:
        """Who works on a row together below such maps; None outside of groups and where one item is alone."""
        names = {level.name for level in nest}
        if "group" not in names or names & {"inline", *_ONE_ITEM}:
            return None
        return self._warps if "warp" in names else GROUP_TEAM

    def _outermost(self, m: Term) -> Strategy:
        if (m["name"] or "").endswith(".rows"):
            return map_level(GROUP)
        in_parts = gpu_parts.parts(m, self.model, self.loops)
        if in_parts is not None:
            return in_parts
        staged = gpu_rows.staged(m, self.model, self.loops)
        if staged is not None:
            return staged
        row = self._longest_row(m)
        if row is not None:
            return self._by_row(m, row)
        return gpu_grid.spread(m, self.model, self.loops, self._fused_in_group)

    def _fused_in_group(self, inner: Term) -> Strategy | None:
        """What makes one loop of the loop in a group's function and the one that it reads."""
        fused = self.fused(inner, (), (GROUP,))
        return None if fused is None else at(fused.path, fused.strategy)

    def _among(self, m: Term, team: Team) -> Strategy:
        """The elements of a row, one an item, as many rounds as it takes; rows of a row one after another."""
        in_turn = UNROLL if is_at_most(m, 2) else SEQ
        if not is_flat(m):
            return map_level(in_turn)
        if self._longest_row(m) is not None:
            return one_item(in_turn, team.level)
        fits = is_at_most(m, team.items)
        return map_level(team.level) if fits else split_join(team.items)

    def _inside_an_item(self, m: Term, nest: Nest) -> Strategy:
        inner = gpu_grid.next_dimension(nest)
        if inner is not None:
            return map_level(inner) if inner.dim else gpu_windows.columns(m, inner, self.loops, self.model)
        if is_flat(m) and all(level.name == "global" for level in nest) and self._is_vector(m):
            return map_level(VEC)
        short = is_constant(m) and length_of(m) * body_work(m) <= self.unrolled_work
        return map_level(UNROLL if short else SEQ)

    def _is_vector(self, m: Term) -> bool:
        return is_constant(m) and length_of(m) in self.model.vector_widths(32)

    def _by_row(self, m: Term, row: Expr) -> Strategy:
        """A group or a warp a row, by the length of the rows; where it is not known, whichever it is when they come."""
        part = (m["name"] or "").rpartition(".")[2]
        open_row = row.constant is None and row.lo < LONG_ROW
        if open_row and part not in ("long", "middle", "short") and not has_work(m.args[1]):
            least, names = (LONG_ROW, ("middle", "short")) if part == "less" else (GROUP_ROW, ("long", "less"))
            n = size_of(m)
            return split_range(minimum(n, n * (row // least)), *names)
        if part == "short":
            return split_join(ITEMS, "rows", "single")
        if part == "middle":
            # beside rows for whole groups: all items of such a group have one
            return split_join(ITEMS // self.model.warp_width, "rows", "row")
        if self._is_for_warps(m, count(row)):
            return split_join(WARPS, "rows", "row")
        return one_item(GROUP, ITEM) if is_flat(m) else map_level(GROUP)

    def _is_for_warps(self, m: Term, row: int) -> bool:
        """Are rows of such a length for a warp each? (A scan is, if it takes one piece.)"""
        scans = [t for t in subterms(m.args[0]) if t.kind == "scan"]
        fits = all(length_of(s) <= gpu_scans.longest(s, self._warps, self.model) for s in scans)
        # rows that are missing of whole groups are copies of the last one: it must not be computed again
        even = (is_constant(m) and length_of(m) % WARPS == 0) or not has_work(m.args[1])
        return fits and row < GROUP_ROW and even and length_of(m) >= WARPS

    def _longest_row(self, m: Term) -> Expr | None:
        """The length of the longest contiguous row that an iteration reduces; None where none is long."""
        rows = [size_of(t.args[2]) for t in subterms(m.args[0]) if self._is_shared(t) and self._contiguous(t)]
        return max((n for n in rows if count(n) >= LONG_ROW), key=count, default=None)

    @property
    def _warps(self) -> Team:
        return Team(LANE, self.model.warp_width, WARPS, last=8)

    def _is_shared(self, t: Term) -> bool:
        """May several items share in the reduction or scan?"""
        if t.kind == "scan":
            return is_constant(t) and gpu_scans.is_shared(t)
        return t.kind == "reduce" and has_lanes(t)

    def _contiguous(self, r: Term) -> bool:
        walk = self.loops.walk(r)
        return walk is None or walk.contiguous > walk.strided

    # -- reductions

    def reduction(self, need: Need, program: Term) -> Choice:
        r, path, nest = need.term, need.path, need.nest
        n = length_of(r.args[-1])
        start = self.start(need)
        if start is not None:
            return start
        if r.kind == "reduce" and is_scalar(r.type) and has_lanes(r):
            if not nest and n > ITEMS * LAST_SUMS * 4:
                return Choice(path, self._partial_sums(r))
            if not nest and n > LAST_SUMS:
                return Choice(path, one_group(GROUP, ITEM))
            team = self._team(nest)
            if team is not None and n > team.last:
                return Choice(path, self._by_items(r, team))
        if r.kind == "scan" and gpu_scans.is_shared(r):
            team = self._team(nest)
            step = gpu_scans.step(r, team, self.model) if team is not None or not nest else None
            if step is not None:
                return Choice(path, step)
        if r.kind == "reduce" and UNROLL in nest and r.args[2].kind == "join" and has_start(r):
            return Choice(path, reduce_window_rows)
        return self.in_order(r, path, nest)

    def _partial_sums(self, r: Term) -> Strategy:
        """One sum a group, for as many groups as keep the device busy and have a row each; these are left to sum."""
        n, cores = length_of(r.args[-1]), self.model.cores
        wanted = n * _bytes_read(r.args[2]) // GROUP_READS
        groups = min(max(wanted, cores * FEWEST_GROUPS), cores * MOST_GROUPS, max(cores, n // GROUP_ROW))
        piece = gpu_parts.part_of(n, groups, ITEMS) if is_constant(r.args[2]) else ANY_PIECE
        return partial_reduce(piece) >> materialise(HEAP)

    def _by_items(self, r: Term, team: Team) -> Strategy:
        """Each item sums a strided share; the shares' sums, in local memory, are left to sum."""
        n = length_of(r.args[-1])
        shares = team.items if n > team.items else team.last
        written = at((2,), map_level(team.level) >> to_memory(LOCAL))
        if n % shares or not is_constant(r.args[2]):
            return reduce_columns(shares) >> written
        return reduce_stride(shares) >> partial_reduce(n // shares) >> written

    # -- memory

    def copy(self, need: Need, program: Term) -> Choice:
        xs, path, nest = need.term, need.path, need.nest
        flat = is_scalar(element_of(xs))
        if not nest:
            in_squares = gpu_copies.squares(program, path, self.model)
            if in_squares is not None:
                return Choice(path, in_squares)
            return Choice(path, gpu_copies.in_grid(program, path, self.model))
        inner = gpu_grid.next_dimension(nest)
        if inner is not None:
            return Choice(path, copy_loop(inner))
        team = self._team(nest)
        if team is not None and flat:
            return Choice(path, copy_loop(team.level))
        return Choice(path, copy_loop(UNROLL if is_constant(xs) and elements(xs.type) <= 32 else SEQ))

    def fits(self, type_: Type, memory: Memory) -> bool:
        """What an item keeps to itself must stay in registers, and groups share what they keep in local memory."""
        if memory == PRIVATE:
            return is_bounded(type_) and elements(type_) <= MOST_KEPT
        room = self.model.memory(memory.name).bytes
        return room is None or (is_bounded(type_) and bytes_of(type_) <= LOCAL_SHARE * room)

    def memory_for(self, type_: Type, nest: Nest) -> Memory:
        """The heap outside of all loops, local memory for a group, private memory for an item."""
        names = {level.name for level in nest}
        if not nest:
            return HEAP
        return LOCAL if "group" in names and not names & {"item", "lane"} else PRIVATE


def _bytes_read(xs: Term) -> int:
    """Bytes of what an element is computed from."""
    while xs.kind == "map":
        xs = xs.args[1]
    return bytes_of(element_of(xs))
