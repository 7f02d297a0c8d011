"""The register tile: rows and columns of one tile as one reduction of tiles, whose accumulator stays in registers."""

from __future__ import annotations

from lithify.lang.levels import INLINE, OUT, SEQ, UNROLL, Level, Memory
from lithify.lang.term import Term
from lithify.lowering.rearrangement import tiled_copy
from lithify.rewrite import Strategy, at, first, loop_of, repeat, seq, topdown, try_
from lithify.rewrite.traversal import Predicate
from lithify.rules.algorithmic import (
    let_atom,
    split_join,
    split_join_zeros,
    split_join_zeros_zip,
    split_join_zip,
)
from lithify.rules.fusion import epilogue_fission, reduce_map_fission, reduce_map_fusion, zip_unread
from lithify.rules.interchange import map_map_shared, map_reduce_shared
from lithify.rules.layout import VIEW_RULES, interleaved, layout_out, pad_fill_zip, reduce_split_zip
from lithify.rules.lowering import copy_steps, to_memory
from lithify.rules.matrix import block_reduction
from lithify.rules.memory import accumulate, accumulate_read, copy_to
from lithify.rules.parallel import map_level, reduce_level
from lithify.rules.reduction import blocked_reduce, pad_reduce

NARROW = repeat(topdown(zip_unread))
"""Loops read what they need and nothing beside it: then what is invariant can be seen to be so."""


def split(loop: str, size: int, *, lanes: bool = False) -> Strategy:
    """A loop in blocks: `loop.block` around `loop.tile`; what is zipped stays apart.

    Where the loop becomes lanes of vectors, the last block is filled up with zeros, which cost no gathers.
    """
    pairs, single = (split_join_zeros_zip, split_join_zeros) if lanes else (split_join_zip, split_join)
    return at(loop, first(pairs(size), single(size))) >> NARROW


def interchange(loop: str) -> Strategy:
    """A loop inside of the one that it stands around."""
    return at(loop, map_map_shared) >> NARROW


def results_apart(rows: str, columns: str) -> Strategy:
    """Work on the results of a nest's reductions in loops of its own, where there is such work."""
    return try_(at(columns, epilogue_fission()) >> at(rows, epilogue_fission("map")) >> NARROW)


def outer_products(rows: str, columns: str) -> Strategy:
    """A tile of reductions, and the work on each result, as one reduction of tiles and work on the tile.

    Each step adds the outer product of a column of the left operand's tile and a row of the right one's.
    """
    return results_apart(rows, columns) >> _as_one(rows, columns)


def block_sums(reduction: str, rows: str, columns: str, size: int, memory: Memory) -> Strategy:
    """The sums of a nest of rows and columns in blocks of `size` terms: `reduction.block` around both loops.

    What is summed so far lies in `memory`; work on the results comes after the last block. A block is summed by itself
    and then added, if the order of the sum may change: what it is added to is not waited for. Otherwise it goes on.
    """
    whole = f"{reduction}.block"
    return seq(
        results_apart(rows, columns),
        first(_added(reduction, size), block_reduction(reduction, size)),
        _as_one(rows, columns),
        at(loop_of(whole, "reduce"), reduce_level(SEQ, memory)),
        try_(at(_reads(whole, columns), map_map_shared) >> NARROW),  # along the rows, as the sums lie in memory
    )


def _as_one(rows: str, columns: str) -> Strategy:
    """A nest of reductions as one reduction of arrays."""
    outer = loop_of(rows, "map")
    return seq(
        at(columns, map_reduce_shared) >> NARROW,
        try_(at(outer, layout_out)),
        at(outer, map_reduce_shared) >> NARROW,
        repeat(topdown(let_atom)),
    )


def _added(reduction: str, size: int) -> Strategy:
    """A sum of products in blocks, each with a sum of its own."""
    terms = try_(pad_reduce(size)) >> try_(at((2,), pad_fill_zip)) >> reduce_map_fission
    to_operands = first(at((2,), VIEW_RULES["split-map"]), reduce_map_fusion, reduce_split_zip)
    return seq(
        at(loop_of(reduction, "reduce"), terms >> blocked_reduce(size)),
        repeat(at(loop_of(f"{reduction}.block", "reduce"), to_operands)),
        at(loop_of(f"{reduction}.tile", "reduce"), reduce_map_fusion),
    )


def step_of(reduction: str, strategy: Strategy) -> Strategy:
    """A strategy for what a reduction does at each step: the work on its results may have loops of the same names."""
    return at(loop_of(reduction, "reduce"), at((0,), strategy))


def staged(reduction: str, operand: int, memory: Memory, levels: tuple[Level, ...]) -> Strategy:
    """An operand of the reduction (0: what the pairs hold first) is read from a copy in a memory."""
    return at(loop_of(reduction, "reduce"), at((2, operand), copy_to(memory, levels)))


def staged_interleaved(reduction: str, operand: int, memory: Memory, group: int, lanes: Level) -> Strategy:
    """`staged` for an operand of which groups of a step's terms are wanted side by side for all columns."""
    copied = interleaved(group) >> at((1,), copy_to(memory, (SEQ, SEQ, lanes, UNROLL)))
    return at(loop_of(reduction, "reduce"), at((2, operand), copied))


def staged_bare(reduction: str, operand: int, memory: Memory) -> Strategy:
    """`staged` without loops that copy: these are chosen when it is known where they stand."""
    return at(loop_of(reduction, "reduce"), at((2, operand), to_memory(memory)))


def interleaved_bare(reduction: str, operand: int, memory: Memory, group: int) -> Strategy:
    """`staged_bare` for an operand that `staged_interleaved` would copy."""
    return at(loop_of(reduction, "reduce"), at((2, operand), interleaved(group) >> at((1,), to_memory(memory))))


def by_steps(tiles: str, level: Level, terms: int, levels: tuple[Level, ...]) -> Strategy:
    """The copy of an operand's tiles, all of one step of the sum after another: so it lies in memory.

    `tiles` is the loop over tiles, `terms` of each are copied before the next tile: lines of the caches are written in
    few pieces, and those that are read are few, too. `levels`: over tiles, over these terms, and within a step.
    """
    return at(tiles, copy_steps(level, terms, levels)) >> at(tiles, map_level(INLINE))


def staged_across(reduction: str, operand: int, memory: Memory, shape: tuple[int, int], lanes: int) -> Strategy:
    """`staged` for an operand whose columns, not its rows, lie in memory one after another: copied in squares.

    `shape` is that of the operand: terms of the sum, and rows or columns of the tile.
    """
    copied = tiled_copy(*shape, True, lanes, SEQ) >> to_memory(memory)
    return at(loop_of(reduction, "reduce"), at((2, operand), copied))


def accumulated(reduction: str, rows: str, columns: str, memory: Memory, lanes: Level, steps: Level) -> Strategy:
    """Levels for the register tile: the `steps` of the sum, rows unrolled, columns in `lanes`, and `memory` for the
    accumulator.

    Where there is work on the results, it reads the accumulator; otherwise they are copied out, unless they lie there.
    """
    tile = (UNROLL, lanes)
    levels = repeat(at(rows, map_level(UNROLL))) >> repeat(at(columns, map_level(lanes)))
    here = loop_of(reduction, "reduce")
    read = at(_reads(reduction, rows), map_level(UNROLL) >> at((0,), levels)) >> at(
        here, accumulate_read(steps, memory, tile)
    )
    there = accumulate_read(steps, memory, tile) if memory is OUT else accumulate(steps, memory, tile, tile)
    return first(read, at(here, there)) >> at(here, at((0,), levels))


def _reads(reduction: str, rows: str) -> Predicate:
    """The map over the rows of a tile that reads the reduction's results. (Others are views of the operands.)"""
    wanted = loop_of(reduction, "reduce")

    def predicate(t: Term) -> bool:
        if t.kind != "map" or t["name"] != rows:
            return False
        xs = t.args[1]
        return any(map(wanted, xs.args if xs.kind == "zip" else (xs,)))

    predicate.__name__ = f"map {rows} of {reduction}"
    return predicate
