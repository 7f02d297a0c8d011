"""Dot products of rows with one vector, along the rows: several rows at a time.

    map (λr. C[reduce f z (map g (zip x r))]) M
      -> join (map[par] (λrows. let s = to[private] (reduce (λsums steps. map (map f) ..) z ..)
                                in map (λ(r, s). C[reduce f z s]) (zip rows s)) (split k M))

The vector is read once for all of them, and where the sums of one row end, the others do at the same time: what adds up
the lanes of several sums waits for little.
"""

from __future__ import annotations

from lithify.lang.levels import PAR, PRIVATE, UNROLL
from lithify.lang.term import Term, dangling, subterms
from lithify.lowering.columns import path_to
from lithify.lowering.facts import bytes_of, has_lanes, is_flat, is_long_sum, lanes_of, own_caches
from lithify.lowering.loops import Loops
from lithify.lowering.work import is_constant, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import split_join, split_range
from lithify.rules.interchange import map_reduce_shared
from lithify.rules.lowering import to_memory
from lithify.rules.memory import hoist_expanded
from lithify.rules.parallel import map_level
from lithify.rules.reduction import reduce_lanes

# Rows at a time, and vectors of sums of each, the best first. Measured on Sapphire Rapids with loops in C, by two
# threads: four rows of four vectors take 0.85 of the time of one row of eight where the second caches hold the matrix,
# 0.88 for 4096 x 4096 elements in the last; eight rows of two are as fast, two of four and sixteen of one 0.95.
_ROWS, _VECTORS = 4, (4, 2, 1)
# Steps that a sum has at least, and how many times the cores' own caches the matrix takes at most: what comes from far
# is asked for ahead, one row after another (64 MiB took no less time by four rows, 256 MiB 1.04 to 1.13 times as long).
_LEAST_STEPS, _MOST = 2, 4


def together(m: Term, model: DeviceModel, loops: Loops) -> Strategy | None:
    """Several rows at a time for an outermost loop over rows; None where it is none, or its sums share nothing."""
    sums = [t for t in subterms(m.args[0]) if t.kind == "reduce"]
    if len(sums) != 1 or not is_flat(m) or not is_constant(m) or not is_constant(sums[0].args[2]):
        return None
    r, path = sums[0], path_to(m.args[0].args[0], sums[0])
    walk = loops.walk(r)
    if path is None or walk is None or walk.contiguous <= walk.strided or not is_long_sum(r) or not has_lanes(r):
        return None
    lanes, n, rows = lanes_of(model, r), length_of(r.args[2]), length_of(m)
    vectors = next((v for v in _VECTORS if n % (v * lanes) == 0 and n >= _LEAST_STEPS * v * lanes), None)
    if vectors is None or rows < _ROWS * model.cores or dangling(r) != {0} or not _shares(r):
        return None
    if rows * n * bytes_of(r.type) > _MOST * own_caches(model):
        return None
    if rows % _ROWS:
        return split_range(rows // _ROWS * _ROWS)
    tile, in_vectors = f"{m['name']}.tile", reduce_lanes(vectors * lanes)
    if vectors > 1:
        sums_apart = in_vectors >> reduce_lanes(lanes) >> at((2, 2, 0), to_memory(PRIVATE))
    else:
        sums_apart = in_vectors >> at((2,), to_memory(PRIVATE))
    apart = at((0, 0, *path), sums_apart) >> hoist_expanded(PRIVATE)
    return (
        split_join(_ROWS)
        >> at(loop_of(f"{m['name']}.block", "map"), map_level(PAR))
        >> at(loop_of(tile, "map"), apart)
        >> at(loop_of(f"{tile}.staged", "map"), map_reduce_shared)
        >> at(loop_of(tile, "map"), map_level(UNROLL))
    )


def _shares(r: Term) -> bool:
    """Does a sum read, beside what belongs to the iteration around it, an array that is the same for all?"""
    xs = r.args[2]
    while xs.kind == "map":
        xs = xs.args[1]
    return xs.kind == "zip" and any(0 not in dangling(a) for a in xs.args)
