"""Register blocks of stencils: several rows at a time, so that what their windows share is loaded once.

    map (λrow. map f (p row)) X                                 a row of results, vector by vector
      -> join (map (λrows. T (map (λcolumn. map f column) (T (map p rows)))) (split R X))     R rows at a time

(p is a view: the windows along a row.) Then the columns are cut into vectors, and in each the R lines are straight
code: loads and sums over rows of windows that they share are computed once. The steps are taken one by one,
whenever the strategist comes back to a loop that an earlier step has made; they know it by name.
"""

from __future__ import annotations

from lithify.lang.levels import SEQ, UNROLL
from lithify.lang.reading import has_work
from lithify.lang.term import Term
from lithify.lowering.facts import is_flat
from lithify.lowering.loops import Loops
from lithify.lowering.work import is_constant, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy
from lithify.rules.algorithmic import split_join, split_range
from lithify.rules.interchange import map_map_shared
from lithify.rules.parallel import map_level

# What the steps name the loops that they make: over blocks of rows, over the rows of a block, over vectors along a row,
# over the lanes of a vector.
_BLOCK, _LINE, _VECTORS, _LANE = "strip", "line", "vectors", "lane"

_TALLEST = 8
# The share of loads that a row must have in common with the next one for blocks to pay.
_SHARED = 1 / 3
# Rows of the arrays that a block reads at the same time: more than the processor can follow do not pay.
_STREAMS = 24
# Operations of straight code in a block.
_STRAIGHT = 1_200


def row_of(m: Term) -> Term | None:
    """The loop along a row, where that is all that an iteration of a loop over rows does, and it reads but views."""
    inner = m.args[0].args[0]
    if inner.kind == "map" and inner["level"] is None and is_flat(inner) and not has_work(inner.args[1]):
        return inner
    return None


def next_step(m: Term, lanes: int) -> Strategy | None:
    """The next step for a loop that is part of a block already; None for other loops."""
    row = row_of(m)
    if _is_part(m, _LINE):
        if row is not None and not _is_part(row, _LANE):
            return map_map_shared
        return map_level(SEQ if is_flat(m) else UNROLL)
    if row is None or not _is_part(row, _LINE):
        return None
    if _is_part(m, _LANE):
        return map_map_shared
    n = length_of(m)
    if n < lanes:
        return map_level(SEQ)
    return split_range(n // lanes * lanes) if is_constant(m) and n % lanes else split_join(lanes, _VECTORS, _LANE)


def block(m: Term, operations: int, loops: Loops, model: DeviceModel, outermost: bool) -> Strategy | None:
    """Blocks of rows for a loop over rows, each of so many operations; None where they do not pay.

    Of the heights that fit, the one with the fewest loads, the rows that whole blocks leave over included. An outermost
    loop leaves blocks for all threads.
    """
    reuse = loops.reuse(m)
    if reuse is None or not is_constant(m) or reuse.shared < _SHARED * reuse.loads or _is_part(m, _BLOCK):
        return None
    n = length_of(m)
    most = min(_TALLEST, _STRAIGHT // operations, n // (4 * model.cores) if outermost else n)
    while most > 1 and reuse.rows(most) > _STREAMS:
        most -= 1
    # what is left over reads the same array: it must not be computed a second time
    heights = [rows for rows in range(2, most + 1) if n % rows == 0 or not has_work(m.args[1])]
    if not heights:
        return None
    rows = min(heights, key=lambda r: n // r * reuse.loads_of(r) + n % r * reuse.loads)
    return split_range(n // rows * rows) if n % rows else split_join(rows, _BLOCK, _LINE)


def _is_part(m: Term, part: str) -> bool:
    return (m["name"] or "").rpartition(".")[2] == part
