"""Sums down the columns of a large matrix: several rows at a time, along parts that are wide.

    map (λc. C[reduce f z (e c)]) M
      -> join (map[par] (λpart. let s = to[thread] (reduce (λsums rows. map (reduce f) ..) z ..)
                                in map (λ(c, s). C[s]) (zip part s)) (split width M))

A part's sums stay in the first cache, and each comes to a register once for several rows. So a thread walks along as
many rows at the same time as the processor can follow, instead of reading a short piece of one row after another.
"""

from __future__ import annotations

from lithify.lang.levels import PAR, THREAD
from lithify.lang.reading import has_work
from lithify.lang.term import Term, dangling, subterms
from lithify.lowering.facts import bytes_of, is_flat, is_long_sum, lanes_of, own_caches
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Path
from lithify.lowering.work import is_constant, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import split_join
from lithify.rules.interchange import map_reduce_shared
from lithify.rules.lowering import to_memory
from lithify.rules.memory import hoist_expanded
from lithify.rules.parallel import map_level
from lithify.rules.reduction import split_reduce

# Rows at a time, the best first; a sum over fewer than so many times as many is left alone.
_ROWS, _LEAST_TIMES = (16, 8, 4), 8
# Elements of a part at least, and the share of the first cache that its sums take at most. Measured on Sapphire Rapids
# with loops in C over 4096 x 4096 elements: two parts of 2048 columns 1.4 times as fast as sixteen of 256 in registers,
# eight of 512 1.25 times; over 16384 x 16384, from memory, 1.2 and 1.15 times.
_NARROWEST, _SHARE = 512, 1 / 2
# A matrix is large from so many times the cores' own caches on.
_LARGE = 4


def in_rows(m: Term, model: DeviceModel, loops: Loops) -> Strategy | None:
    """Sums of several rows at a time for an outermost loop over columns; None where it is none, or not large."""
    sums = [t for t in subterms(m.args[0]) if t.kind == "reduce"]
    if len(sums) != 1 or not is_flat(m) or not is_constant(m) or has_work(m.args[1]):
        return None
    r, path = sums[0], path_to(m.args[0].args[0], sums[0])
    walk = loops.walk(r)
    if path is None or walk is None or not 0 < walk.strided >= walk.contiguous or not is_long_sum(r):
        return None
    if not is_constant(r.args[2]) or dangling(r) != {0}:
        return None
    n = length_of(r.args[2])
    rows = next((k for k in _ROWS if n % k == 0 and n >= _LEAST_TIMES * k), None)
    size = bytes_of(r.type)
    width = _width(length_of(m), size, lanes_of(model, m), model)
    if rows is None or width is None or size * n * length_of(m) < _LARGE * own_caches(model):
        return None
    part = f"{m['name']}.tile"
    cut, parts = split_reduce(rows), at(loop_of(f"{m['name']}.block", "map"), map_level(PAR))
    if path == ():
        return split_join(width) >> parts >> at(loop_of(part, "map"), at((0, 0), cut) >> map_reduce_shared)
    apart = at((0, 0, *path), cut >> to_memory(THREAD)) >> hoist_expanded(THREAD)
    staged = at(loop_of(f"{part}.staged", "map"), map_reduce_shared)
    return split_join(width) >> parts >> at(loop_of(part, "map"), apart) >> staged


def _width(n: int, size: int, lanes: int, model: DeviceModel) -> int | None:
    """Columns of a part, with sums of `size` bytes: of as few, equal parts as are shared evenly by the threads and fit;
    None where none do."""
    most = int(_SHARE * model.caches[0].bytes) // size if model.caches else 0
    for parts in range(model.cores, n // _NARROWEST + 1, model.cores):
        if n % (parts * lanes) == 0 and n // parts <= most:
            return n // parts
    return None


def path_to(body: Term, wanted: Term) -> Path | None:
    """Where a term is in a function's body, outside of the functions in it."""
    if body is wanted:
        return ()
    for k, a in enumerate(body.args):
        below = None if body.kind == "lambda" else path_to(a, wanted)
        if below is not None:
            return (k, *below)
    return None
