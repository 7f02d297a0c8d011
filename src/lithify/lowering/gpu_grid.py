"""Loops outside of all groups on GPUs: grids of items, vectors of everything, pieces of long rows."""

from __future__ import annotations

from collections.abc import Callable

from lithify.lang.levels import PRIVATE, SEQ, UNROLL, VEC, Level
from lithify.lang.reading import has_work
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, contains
from lithify.lang.types import Type, shape_of
from lithify.lowering import gpu_windows
from lithify.lowering.facts import element_of, is_elementwise, is_flat, lanes_of
from lithify.lowering.gpu_rows import GROUP_TEAM
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Nest, has_loops, is_lazy
from lithify.lowering.work import elements, is_at_most, is_constant, length_of, size_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at, id_, repeat, topdown
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import flatten, split_join, split_range
from lithify.rules.fusion import zip_unread
from lithify.rules.interchange import map_map_shared
from lithify.rules.memory import stage
from lithify.rules.parallel import map_level

_GROUP, _ITEM, _GRID = Level("group", 0), Level("item", 0), Level("global", 0)
# So many vectors keep a GPU busy.
WORTH_VECTORS = 1_024
# Elements of a row that a group computes, of rows of so many.
PIECE, LONG_PIECES = 4_096, 32_768
# Groups along any but the first dimension.
MOST_ACROSS = 65_535
# Elements that an item loads before it computes.
AHEAD = 4
_MOST_DIMENSIONS = 3

# The strategy that makes one loop of two, if there are two: what the strategist's `fused` answers.
Fusing = Callable[[Term], Strategy | None]


def spread(m: Term, model: DeviceModel, loops: Loops, fused: Fusing) -> Strategy:
    """An outermost map, none of whose rows is reduced by several items, over the grid."""
    return _line(m, model, loops) if is_flat(m) else _nest(m, model, loops, fused)


def next_dimension(nest: Nest) -> Level | None:
    """The next dimension of the grid, directly below maps over outer ones."""
    last = nest[-1] if nest else None
    if isinstance(last, Level) and all(level.name == "global" for level in nest) and last.dim:
        return Level("global", last.dim - 1)
    return None


def _line(m: Term, model: DeviceModel, loops: Loops) -> Strategy:
    """One loop: of vectors where it walks along memory."""
    n, lanes = length_of(m), lanes_of(model, m, access=True)
    walk = loops.walk(m)
    by_vectors = is_constant(m) and lanes > 1 and n >= WORTH_VECTORS * lanes
    if by_vectors and walk is not None and walk.vectorises and walk.invariant == 0:
        return split_range(n // lanes * lanes) if n % lanes else _in_vectors(lanes)
    return map_level(_GRID)


def _nest(m: Term, model: DeviceModel, loops: Loops, fused: Fusing) -> Strategy:
    """A loop over loops: one of vectors, pieces of rows, or as many dimensions as there are."""
    if _computes_first(m):
        return map_level(_GRID)
    found = _flattened(m, model, loops)
    if found is None:
        found = _pieces_of_rows(m, loops, fused)
    if found is not None:
        return found
    depth = _depth(m)
    if depth > _MOST_DIMENSIONS and _is_nest(m):
        return flatten
    return map_level(Level("global", min(_MOST_DIMENSIONS, depth) - 1))


def _in_vectors(lanes: int) -> Strategy:
    return split_join(lanes) >> at((0,), map_level(_GRID) >> at((0, 0), map_level(VEC)))


def _flattened(m: Term, model: DeviceModel, loops: Loops) -> Strategy | None:
    """A nest whose innermost loop walks along whole rows of everything, as one loop of vectors."""
    depth, row = 1, m
    while _is_nest(row):
        depth, row = depth + 1, row.args[0].args[0]
    walk, lanes = loops.walk(row), lanes_of(model, m, access=True)
    if not is_elementwise(row) or depth == 1 or walk is None or not walk.vectorises or not is_constant(m):
        return None
    if lanes == 1 or length_of(row) % lanes or elements(m.type) < WORTH_VECTORS * lanes or contains(m, _is_uneven):
        return None
    one = _in_vectors(lanes)
    for _ in range(depth - 1):
        one = flatten >> at((0,), one)
    return one


def _pieces_of_rows(m: Term, loops: Loops, fused: Fusing) -> Strategy | None:
    """Groups for pieces of long rows, whose items go along them: what all elements of a row read is read once."""
    inner = m.args[0].args[0]
    if inner.kind != "map" or inner["level"] is not None or not is_elementwise(inner) or contains(m, _is_uneven):
        return None
    walk = loops.walk(inner)
    if walk is None or walk.contiguous <= walk.strided or size_of(inner).lo < LONG_PIECES:
        return None
    if has_work(inner.args[1]):
        one = fused(inner)
        return None if one is None else at((0, 0), one)
    few = is_at_most(m, MOST_ACROSS)
    rows, pieces = (Level("group", dim) for dim in ((1, 0) if few else (0, 1)))
    in_pieces = split_join(PIECE, "piece", "part")
    scalars = isinstance(element_of(inner.args[1]), Scalar)
    whole = size_of(inner) // PIECE * PIECE
    if whole == size_of(inner):
        row = in_pieces >> at((0,), map_level(pieces)) >> (_loaded_ahead(inner["name"]) if scalars else id_)
    else:  # whole pieces ask for no element's number
        rest = loop_of(f"{inner['name']}.rest.piece", "map")
        ahead = _loaded_ahead(f"{inner['name']}.first") if scalars else id_
        row = split_range(whole) >> at((0,), in_pieces >> at((0,), map_level(pieces)) >> ahead)
        row = row >> at((1,), in_pieces >> at(rest, map_level(pieces)))
    return map_level(rows) >> at((0, 0), row)


def _loaded_ahead(name: str) -> Strategy:
    """Rounds of a group over a piece, in which each item loads several elements before it computes the first."""
    items = GROUP_TEAM.items
    rounds = split_join(AHEAD * items, "round", "share") >> at((0,), map_level(SEQ))
    load = at(loop_of(f"{name}.part.share.item", "map"), map_level(_ITEM))
    own = at(loop_of(f"{name}.part.share.load", "map"), stage(PRIVATE, (UNROLL,)) >> map_level(UNROLL))
    inwards = at(loop_of(f"{name}.part.share.load", "map"), map_map_shared) >> repeat(topdown(zip_unread))
    share = split_join(items, "load", "item") >> inwards
    return at(loop_of(f"{name}.part", "map"), rounds >> at(loop_of(f"{name}.part.share", "map"), share >> own >> load))


def _is_uneven(t: Term) -> bool:
    return t.kind in ("pad", "slide", "gather")


def _computes_first(m: Term) -> bool:
    """Does each iteration compute values by loops, which its own loop then reads?"""
    body = m.args[0].args[0]
    while body.kind == "let":
        if has_loops(body.args[0]):
            return True
        body = body.args[1].args[0]
    return False


def _is_nest(m: Term) -> bool:
    """Does each iteration do nothing but another loop, whose rows are all as long?"""
    inner = m.args[0].args[0]
    return inner.kind == "map" and inner["level"] is None and is_constant(inner)


def _depth(m: Term) -> int:
    """How many maps write, one directly in the other."""
    depth, t = 1, m.args[0].args[0]
    while t.kind == "map" or (t.pattern.layout and len(t.args) == 1):
        if t.kind == "map":
            if gpu_windows.is_line(t) or (t["level"] is not None and (t["level"] == UNROLL or not is_lazy(t.args[0]))):
                break
            depth += 1
            t = t.args[0].args[0]
        else:
            t = t.args[0]
    return depth if depth > 1 else _dimensions(m.type)


def _dimensions(type_: Type) -> int:
    return len(shape_of(type_)[0])
