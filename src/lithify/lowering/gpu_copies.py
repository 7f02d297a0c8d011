"""Copies on GPUs that change the order of dimensions: squares by way of local memory.

Items whose neighbours read along one dimension and write along another would meet a line of memory each on one side. A
group reads a square along the first dimension and writes it along the other; its rows lie apart by one element more
than they are long, so that its columns, too, meet all banks of local memory.
"""

from __future__ import annotations

from lithify.lang.levels import Level, Memory
from lithify.lang.term import Term
from lithify.lowering.needs import Path
from lithify.lowering.rearrangement import COPIES, plane
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rules.tiles import copy_tiles_shared, copy_tiles_shared_across

_GROUP = tuple(Level("group", dim) for dim in range(3))
_ITEM = Level("item")
_SIDE = 32
_ITEMS = 128


def squares(program: Term, path: Path, model: DeviceModel) -> Strategy | None:
    """The copy of the array at `path` in squares; None where it is read and written along the same dimension.

    One dimension beside these two gets groups of its own.
    """
    found = plane(program, path)
    if found is None:
        return None
    dimensions, (read, written) = found
    others = [k for k, d in enumerate(dimensions) if d not in (read, written)]
    if len(others) > 1 or min(read.length, written.length) < _SIDE // 2:
        return None
    rows = next(d for d in dimensions if d in (read, written))
    copy = copy_tiles_shared if rows is read else copy_tiles_shared_across
    items = min(_ITEMS, model.group_items)
    tiled = copy(_GROUP[1], _GROUP[0], _ITEM, items, _SIDE, Memory("local", padding=1))
    if not others:
        return tiled
    loop, body = COPIES[others[0]]
    return loop(_GROUP[2]) >> at(body, tiled)
