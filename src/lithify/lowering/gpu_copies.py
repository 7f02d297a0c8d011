"""Copies on GPUs that change the order of dimensions: squares by way of local memory.

Items whose neighbours read along one dimension and write along another would meet a line of memory each on one side. A
group reads a square along the first dimension and writes it along the other; its rows lie apart by one element more
than they are long, so that its columns, too, meet all banks of local memory.
"""

from __future__ import annotations

from lithify.lang.levels import SEQ, Level, Memory
from lithify.lang.term import Term, contains
from lithify.lang.types import shape_of
from lithify.lowering.facts import bytes_of
from lithify.lowering.needs import Path, subterm
from lithify.lowering.rearrangement import COPIES, dimensions_of, plane
from lithify.lowering.work import elements
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rules.lowering import copy_joined, copy_loop
from lithify.rules.tiles import copy_tiles_shared, copy_tiles_shared_across

_GROUP = tuple(Level("group", dim) for dim in range(3))
_ITEM = Level("item")
_GRID = tuple(Level("global", dim) for dim in range(3))
_MOST_OTHERS = 2
# What reads some elements several times, or elements that lie anywhere.
_UNEVEN = frozenset({"pad", "slide", "gather", "replicate", "generate", "scan", "reduce"})
_SIDE = 32
_ITEMS = 128


def squares(program: Term, path: Path, model: DeviceModel) -> Strategy | None:
    """The copy of the array at `path` in squares; None where it is read and written along the same dimension.

    Dimensions beside these two get groups of their own; where there are two of them, a group goes along its squares.
    """
    found = plane(program, path)
    if found is None:
        return None
    dimensions, (read, written) = found
    others = [k for k, d in enumerate(dimensions) if d not in (read, written)]
    if (
        len(others) > _MOST_OTHERS
        or max(others, default=0) >= len(COPIES)
        or min(read.length, written.length) < _SIDE // 2
    ):
        return None
    rows = next(d for d in dimensions if d in (read, written))
    copy = copy_tiles_shared if rows is read else copy_tiles_shared_across
    levels = (_GROUP[0], SEQ) if len(others) > 1 else (_GROUP[1], _GROUP[0])
    items = min(_ITEMS, model.group_items)
    return _apart(others, _GROUP[-len(others) :], copy(*levels, _ITEM, items, _SIDE, Memory("local", padding=1)))


def _apart(others: list[int], levels: tuple[Level, ...], tiled: Strategy) -> Strategy:
    """Loops of these levels over the dimensions of these numbers, then the strategy for what is left."""
    if not others:
        return tiled
    loop, body = COPIES[others[-1]]
    return loop(levels[-1]) >> at(body, _apart(others[:-1], levels[:-1], tiled))


def in_grid(program: Term, path: Path, model: DeviceModel) -> Strategy:
    """A copy by the items of a grid: of vectors of all rows, where both sides meet neighbours along them; else of its
    innermost dimensions, and more than the grid has are one loop."""
    xs = subterm(program, path)
    sizes, element = shape_of(xs.type)
    lanes = model.access_bytes // max(1, bytes_of(element))
    found = [] if contains(xs, lambda t: t.kind in _UNEVEN) else dimensions_of(program, path)
    if found and found[-1].read == found[-1].written == 1 and lanes > 1 and found[-1].length % lanes == 0:
        return copy_joined(len(sizes), _GRID[0], lanes)
    grid = min(len(sizes), len(_GRID))
    joins = len(sizes) - grid if elements(xs.type) else 0
    return copy_joined(joins + 1, _GRID[grid - 1]) if joins else copy_loop(_GRID[grid - 1])
