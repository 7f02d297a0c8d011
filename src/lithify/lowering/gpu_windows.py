"""Stencils on GPUs: an item computes a few rows of a few columns, so that what they share is loaded once.

    map (λrow. map f row) rows
      -> join (map[global1] (λr. T (join (map[global0] (λc. T (map[unroll] (map[vec] f) (T c))) (split lanes r)))) ..)

Rows that lie one below the other read mostly the same, and an item keeps it in registers; columns side by side are the
lanes of vectors, so that a warp asks for whole lines of memory. Where what windows read is computed again, rows and
columns that meet padding stand apart: both stages are clamped there, and neighbours have little in common.
"""

from __future__ import annotations

from lithify.lang.levels import INLINE, UNROLL, VEC, Level
from lithify.lang.term import Term, contains, subterms
from lithify.lowering.facts import LONGEST_UNROLLED, body_work, is_flat, lanes_of
from lithify.lowering.loops import Loops
from lithify.lowering.work import elements, is_at_most, is_constant, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at, id_, repeat, topdown
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import split_join
from lithify.rules.fusion import zip_unread
from lithify.rules.interchange import map_map_shared
from lithify.rules.lowering import cut_borders
from lithify.rules.parallel import map_level

# Rows that an item computes, and operations of all of them: more would not stay in registers.
_MOST_ROWS = 8
_ROWS_WORK = 512
# So many rows are enough that an item loads this many times what they read anew.
_LOADS = 1.25
# Items a multiprocessor that keep it busy.
ITEMS_TO_BE_BUSY = 1_024
# What the loop over the rows of an item is called.
_LINE = "line"


def interior(m: Term, program: Term, loops: Loops, model: DeviceModel, *, inside: bool) -> Strategy | None:
    """The rows, or `inside` of them the columns, that meet no padding apart, where windows compute what they read."""
    if not is_constant(m) or loops.borders(m) == (0, 0):
        return None
    again = [t for t in subterms(program) if t.kind == "map" and t["level"] == INLINE and is_flat(t) == inside]
    ends = [loops.borders(t) for t in (m, *again)]
    low, high = sum(low for low, _ in ends), sum(high for _, high in ends)
    unit = _MOST_ROWS
    if inside:
        unit = _lanes(m, loops, model)
        low = -(-low // unit) * unit  # vectors that lie aligned
    inner = (length_of(m) - low - high) // unit * unit
    return cut_borders(low, inner) if again and inner > _MOST_ROWS else None


def rows(m: Term, program: Term, loops: Loops, model: DeviceModel) -> Strategy | None:
    """A nest over windows with several rows for each item; None where one is enough, or `m` is no such nest."""
    count = _rows(m, program, loops, model)
    if count == 1:
        return None
    inwards = at(loop_of(f"{m['name']}.{_LINE}", "map"), map_map_shared) >> repeat(topdown(zip_unread))
    return split_join(count, "block", _LINE) >> inwards


def _rows(m: Term, program: Term, loops: Loops, model: DeviceModel) -> int:
    inner = m.args[0].args[0]
    whole = not {"block", "tile", _LINE} & set((m["name"] or "").split("."))
    windows = contains(m.args[1], lambda t: t.kind == "slide")
    if not (whole and windows and inner.kind == "map" and inner["level"] is None) or is_line(inner):
        return 1
    if not (is_flat(inner) and is_constant(m) and is_constant(inner)):
        return 1
    items = max(length_of(m) * length_of(inner), elements(program.type)) // _lanes(inner, loops, model)
    most = min(_MOST_ROWS, _ROWS_WORK // body_work(inner), length_of(m), items // (model.cores * ITEMS_TO_BE_BUSY))
    reuse, count = loops.reuse(m), 1
    while 2 * count <= most:
        if reuse is not None and reuse.loads_of(count) <= _LOADS * count * (reuse.loads - reuse.shared):
            break
        count *= 2
    return count


def columns(m: Term, level: Level, loops: Loops, model: DeviceModel) -> Strategy:
    """The loop along the grid's first dimension: a vector an item where its iterations are lanes, else an element."""
    body, name = m.args[0].args[0], m["name"]
    line = loop_of(body["name"], "map") if is_line(body) else None
    unrolled = at(line, map_level(UNROLL)) if line is not None else id_
    lanes = _lanes(m, loops, model)
    if lanes == 1 or length_of(m) < 2 * lanes:
        return map_level(level) >> unrolled
    tile = loop_of(f"{name}.tile", "map")
    inwards = at(tile, map_map_shared) >> repeat(topdown(zip_unread)) if line is not None else id_
    in_vectors = split_join(lanes) >> at(loop_of(f"{name}.block", "map"), map_level(level))
    return in_vectors >> inwards >> unrolled >> at(tile, map_level(VEC))


def is_line(t: Term) -> bool:
    """Is this the loop over the rows of an item?"""
    return t.kind == "map" and t["level"] is None and (t["name"] or "").rpartition(".")[2] == _LINE


def _lanes(m: Term, loops: Loops, model: DeviceModel) -> int:
    """How many iterations of a loop along rows are the lanes of a vector: as many as an access has room for."""
    body = m.args[0].args[0]
    flat = is_flat(body) if is_line(body) else is_flat(m)
    walk = loops.walk(m)
    if not flat or not is_constant(m) or walk is None or not walk.vectorises:
        return 1
    if any(_is_loop(t) for t in subterms(m.args[0])):
        return 1
    lanes = lanes_of(model, m, access=True)
    return 1 if length_of(m) % lanes else lanes


def _is_loop(t: Term) -> bool:
    """Would this be a loop, and no straight code, in each lane?"""
    if t.kind == "reduce":
        return not is_at_most(t.args[2], LONGEST_UNROLLED)
    return t.kind in ("scan", "iterate")
