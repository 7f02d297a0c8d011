"""Matrix multiplication on CPUs: blocks for threads, panels packed for the caches, a tile of vectors in registers.

    for blocks of rows (or columns), over the threads (behind OpenCL: groups of one item)
      for blocks of columns (or rows), for blocks of k
        for panels of nPerThread columns, for tiles of mPerThread rows
          the register tile: for k: a column of the left operand times a row of the right one

(K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.)
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Level, Memory
from lithify.lang.term import Term, subterms
from lithify.lowering.facts import lanes_of
from lithify.lowering.gemm.operands import chosen, instructions, made_apart, prepare
from lithify.lowering.gemm.problem import Product, goes_over_columns
from lithify.lowering.gemm.register import (
    NARROW,
    accumulated,
    block_sums,
    interchange,
    outer_products,
    split,
    staged,
    staged_across,
    step_of,
)
from lithify.lowering.needs import has_work
from lithify.lowering.tuning import Parameters
from lithify.lowering.work import length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, Strategy, at, repeat, seq, topdown, try_
from lithify.rules.algorithmic import flatten, let_atom
from lithify.rules.layout import layout_out
from lithify.rules.memory import hoist, hoist_expanded
from lithify.rules.parallel import map_level
from lithify.rules.vector import split_lanes

GROUP = Level("group", 0)


@dataclass(frozen=True)
class _Place:
    """Where a device runs what is spread, and what one thread (a group of one item, behind OpenCL) keeps for itself."""

    level: Level
    own: Memory

    @staticmethod
    def of(model: DeviceModel) -> _Place:
        return _Place(PAR, THREAD) if model.has_level(PAR) else _Place(GROUP, LOCAL)


def derive(derivation: Derivation, product: Product, parameters: Parameters, model: DeviceModel) -> None:
    """Take a product in normal form down to loops with levels and packed operands."""
    lanes, place = lanes_of(model, product.reduction), _Place.of(model)
    memories = {"thread": place.own, "heap": HEAP}
    loops = product.loops
    m, n = loops.m, loops.n
    prepared, row_of_table = prepare(derivation, product, parameters), chosen(parameters)
    k = prepared.reduction
    number = parameters.number
    blocks = {m: number("mPerBlock"), n: number("nPerBlock")}
    by_rows = parameters["outer"] == "m"
    outer, inner = (m, n) if by_rows else (n, m)

    if not by_rows:
        derivation.apply(interchange(m))
    derivation.apply(split(outer, blocks[outer], lanes=outer == n) >> interchange(f"{outer}.tile"))
    tile = {outer: f"{outer}.tile", inner: inner}
    blocked = [*loops.batch, f"{outer}.block"]
    if parameters["parallel"] == "all":
        while len(blocked) > 1:
            batch = blocked[-2]
            derivation.apply(try_(at(batch, layout_out)) >> at(batch, flatten) >> NARROW)
            del blocked[-1]
    summed_in_blocks = number("kPerBlock") < product.sizes["k"]
    if blocks[inner] < product.length(inner) or summed_in_blocks:  # a block of sums consists of whole tiles
        derivation.apply(split(inner, blocks[inner], lanes=inner == n))
        tile[inner] = f"{inner}.tile"
        blocked.append(f"{inner}.block")
    rows, columns = tile[m], tile[n]
    if not by_rows:
        derivation.apply(interchange(rows))
    within, blocked_sum = blocked, ""
    if summed_in_blocks:
        derivation.apply(interchange(columns) >> block_sums(k, rows, columns, number("kPerBlock"), place.own))
        k, blocked_sum, within = f"{k}.tile", f"{k}.block", []
        derivation.apply(step_of(blocked_sum, interchange(rows)))
    derivation.apply(made_apart(k, prepared.apart))
    row, column = f"{rows}.tile", f"{columns}.tile"
    in_tiles = seq(
        split(columns, number("nPerThread"), lanes=True) >> interchange(column),
        split(rows, number("mPerThread")),
        outer_products(row, column),
    )
    derivation.apply(step_of(blocked_sum, in_tiles) if blocked_sum else in_tiles)

    tiles = [f"{columns}.block", f"{rows}.block"]
    around = [*blocked, *tiles]
    spread = around[0]
    left = 1 if product.swapped else 0
    for name, operand, levels in (("packA", left, (SEQ, UNROLL)), ("packB", 1 - left, (SEQ, VEC))):
        memory = memories.get(str(parameters[name]))
        if memory is not None:
            across = name == "packB" and prepared.as_stored and not goes_over_columns(product.nest[-1])
            if across and not has_work(product.operands[1]):
                shape = (number("kPerBlock"), number("nPerThread"))
                derivation.apply(staged_across(k, operand, memory, shape, lanes))
            else:
                derivation.apply(staged(k, operand, memory, (*levels, *prepared.group)))
            _move_out(derivation, memory, place, around if memory is HEAP else [*within[1:], *tiles])
    if row_of_table is not None:
        derivation.apply(instructions(k, column, row_of_table))
    derivation.apply(accumulated(k, row, column, PRIVATE, VEC))
    for loop in around:
        derivation.apply(at(loop, map_level(place.level if loop == spread else SEQ)))
    derivation.apply(repeat(_legal_lanes(model)))


def _legal_lanes(model: DeviceModel) -> Strategy:
    """Vectors that the machine's code cannot be written with as several side by side."""
    most = model.vector_lanes

    def too_long(t: Term) -> bool:
        return t.kind == "map" and t["level"] == VEC and length_of(t) > most

    too_long.__name__ = f"more than {most} lanes"
    return at(too_long, split_lanes(most))


def _move_out(derivation: Derivation, memory: Memory, place: _Place, loops: list[str]) -> None:
    """A packed tile out of loops (outermost first): all tiles that a loop needs are packed before it.

    What is on the heap is packed by all threads.
    """
    for loop in reversed(loops):
        derivation.apply(try_(at(loop, hoist(memory))) >> try_(at(loop, hoist_expanded(memory))) >> NARROW)
    derivation.apply(repeat(topdown(let_atom)))
    level = place.level if memory is HEAP else SEQ
    for loop in loops:
        name = f"{loop}.staged"
        if any((t.kind, t.attrs) == ("map", (None, name)) for t in subterms(derivation.term)):
            derivation.apply(at(name, map_level(level)))
            level = SEQ
