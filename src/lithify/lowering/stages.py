"""Stencils over computed arrays: either each window computes what it needs, or tiles of rows share it in memory.

Where little is computed (and several rows of windows are handled at a time, see `row_blocks`), computing again is
cheaper than writing and reading back, and the inner stage becomes a part of the outer one. Otherwise what a tile's
windows need is computed into memory of the thread:

    map f (slide n 1 (map G X))                                             n rows of the inner stage make one row
      -> join (map (λt. map f (slide n 1 (map G t))) (slide (R + n - 1) R X))     R rows a tile

(overlapped tiling: n - 1 rows of each tile are computed twice, and no row of the inner stage goes through memory). The
steps are taken one by one, whenever the strategist comes back to the loop: maps of views move out of the way, then the
loop is split, then the windows' rows are grouped.
"""

from __future__ import annotations

from lithify.lang.levels import INLINE
from lithify.lang.reading import has_work
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, subterms
from lithify.lang.types import Tuple, Type, shape_of
from lithify.lowering.facts import body_work, core_cache, element_of, is_flat
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Path, has_loops, is_scalar, subterm
from lithify.lowering.work import count, elements, is_constant, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rules.algorithmic import split_join, split_range
from lithify.rules.layout import VIEW_RULES
from lithify.rules.lowering import drop_slide, take_slide
from lithify.rules.parallel import map_level
from lithify.rules.stencil import slide_split

# The share of a core's second cache that a tile's rows may take.
_CACHE_SHARE = 0.75
# More rows computed twice than this share of a tile do not pay.
_OVERLAP = 0.2
_TALLEST = 64
# Rows that blocks of rows compute again, as a factor; what writing and reading back an element costs, in operations;
# the most operations of straight code for one result.
_ROWS_AGAIN = 1.5
_STORED = 96
_MOST_RECOMPUTED = 256


def recomputed(m: Term, loops: Loops) -> tuple[Path, Strategy] | None:
    """Rows that cost less to compute again in each window than to write and to read: no loop for them.

    Where, and what; None when the loop is not over windows of computed rows, or tiles are better.
    """
    xs = m.args[1]
    reuse = loops.reuse(m)
    if is_scalar(element_of(m)) or xs.kind != "slide" or not has_work(xs) or reuse is None:
        return None
    place = _place_of_rows(xs.args[0])
    if place is None:
        return None
    place = (1, 0, *place)
    row = subterm(m, (*place, 0, 0))
    if row.kind != "map" or row["level"] is not None or not is_flat(row) or has_loops(row.args[0]):
        return None
    arrays, operations = elements(element_of(row)), body_work(row)
    windows = reuse.loads / arrays
    again = _ROWS_AGAIN * (reuse.loads - reuse.shared) / arrays
    if windows * operations > _MOST_RECOMPUTED or (again - 1) * operations > _STORED * arrays:
        return None
    return place, map_level(INLINE) >> at((0, 0), map_level(INLINE))


def recomputed_work(m: Term, loops: Loops) -> int:
    """Operations that a result of a loop over windows takes for what is computed again in each of them."""
    reuse = loops.reuse(m)
    inline = [t for t in subterms(m.args[1]) if t.kind == "map" and t["level"] == INLINE and is_flat(t)]
    return 0 if reuse is None else sum(reuse.loads // elements(element_of(t)) * body_work(t) for t in inline)


def next_step(m: Term, model: DeviceModel) -> tuple[Path, Strategy] | None:
    """The next step on the way to tiles for an outermost loop over windows of computed rows: where, and what.

    None when the loop is not of this kind, when it is ready, or when tiles do not pay.
    """
    xs = m.args[1]
    if is_scalar(element_of(m)) or not has_work(xs) or not is_constant(m):
        return None
    in_tiles = _is_part(m, "block")
    if xs.kind == "split" and in_tiles and xs.args[0].kind == "slide":
        return (1,), slide_split
    if xs.kind in ("take", "drop") and xs.args[0].kind == "slide" and _place_of_rows(xs.args[0].args[0]) == ():
        return (1,), take_slide if xs.kind == "take" else drop_slide
    if xs.kind != "slide" or not (in_tiles or xs["step"].constant == 1):
        return None
    place = _place_of_rows(xs.args[0])
    if place is None:
        return None
    rows = _rows_of_a_tile(m, count(xs["size"]) - 1, subterm(xs.args[0], place), model)
    if rows is None and not in_tiles:
        return None
    below = xs.args[0]
    if below.kind != "map":
        return (1, 0), VIEW_RULES[f"{below.kind}-map"]
    if in_tiles or not has_work(below.args[0]):
        return (1,), VIEW_RULES["slide-map"]
    assert rows is not None
    n = length_of(m)
    return (), split_join(rows) if n % rows == 0 else split_range(n // rows * rows)


def _is_part(m: Term, *parts: str) -> bool:
    """Was the loop made by a step that gives its parts these names?"""
    return (m["name"] or "").rpartition(".")[2] in parts


def _place_of_rows(below: Term) -> Path | None:
    """Where the map is that computes the rows which windows slide over, if but views lie between and below it."""
    place: Path = ()
    while True:
        if below.kind == "map" and below["level"] is None:
            if has_work(below.args[0]):
                return None if has_work(below.args[1]) else place
            below, place = below.args[1], (*place, 1)
        elif below.kind in ("take", "drop") or (below.kind == "pad" and below["mode"] != "fill"):
            below, place = below.args[0], (*place, 0)
            if below.kind not in ("map", "pad", "take", "drop"):
                return None
        else:
            return None


def _rows_of_a_tile(m: Term, overlap: int, inner: Term, model: DeviceModel) -> int | None:
    """As many rows as fit in the cache, of which the overlap must be a small part; enough tiles for all threads.

    What is left over by whole tiles is one tile.
    """
    n = length_of(m)
    fitting = _room(model) // _bytes(element_of(inner)) - overlap
    if _is_part(m, "rest"):
        return n if n <= max(fitting, overlap) else None
    most = min(fitting, _TALLEST, n // (4 * model.cores))
    if most < 1 or overlap > _OVERLAP * most:
        return None
    return next((rows for rows in range(most, most // 2, -1) if n % rows == 0), most)


def _room(model: DeviceModel) -> int:
    """Bytes for a tile's rows: a share of a core's second cache, within local memory where that is what a group has."""
    room = int(core_cache(model) * _CACHE_SHARE)
    local = model.memory("local").bytes if model.has_memory("local") else None
    return room if local is None else min(room, local)


def _bytes(type_: Type) -> int:
    sizes, element = shape_of(type_)
    total = sum(map(_bytes, element.items)) if isinstance(element, Tuple) else 4
    if isinstance(element, Scalar):
        total = element.bytes
    for size in sizes:
        total *= count(size)
    return total
