"""Matrix multiplication on CPUs: blocks for threads, panels packed for the caches, a tile of vectors in registers.

    for blocks of rows (or columns), over the threads (behind OpenCL: groups of one item)
      for blocks of columns (or rows), for blocks of k
        for panels of nPerThread columns, for tiles of mPerThread rows (or tiles around panels)
          the register tile: for k: a column of the left operand times a row of the right one

(K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.)
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.levels import HEAP, LOCAL, OUT, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Level, Memory
from lithify.lang.reading import has_work
from lithify.lang.term import Term, subterms
from lithify.lowering.facts import bytes_of, core_cache, lanes_of, own_caches
from lithify.lowering.gemm.cpu_machine import lanes_of_sums
from lithify.lowering.gemm.operands import Prepared, chosen, instructions, made_apart, prepare
from lithify.lowering.gemm.parts import split_in_parts, without_batch
from lithify.lowering.gemm.problem import Product, goes_over_columns
from lithify.lowering.gemm.register import (
    NARROW,
    accumulated,
    block_sums,
    by_steps,
    interchange,
    interleaved_bare,
    outer_products,
    split,
    staged,
    staged_across,
    staged_bare,
    staged_interleaved,
    step_of,
)
from lithify.lowering.tuning import Parameters
from lithify.lowering.work import length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, at, repeat, topdown, try_
from lithify.rewrite.traversal import Predicate
from lithify.rules.algorithmic import flatten, let_atom
from lithify.rules.layout import layout_out
from lithify.rules.memory import hoist, hoist_expanded
from lithify.rules.parallel import map_level
from lithify.rules.vector import split_lanes

GROUP = Level("group", 0)
# Terms of the sum of which a left operand that lies along its rows is packed at a time, at most: what is written
# follows what was written before, and what was read is still in the second cache when the next tile wants the rest of
# its lines. Measured on Emerald Rapids, 1000 x 1001 x 1003 in f32: 16 and 64 take 2.5 to 3 % longer, 8 takes 5 %.
_STEPS = 32
# Multiply-adds in vectors of a block's register tile that are written out, where a loop of as many would end before the
# processor has looked past it: of one row, 16 terms by four vectors. Measured on Emerald Rapids with loops in C over
# 768 x 768 elements in the second caches: 1.2 times as fast. And how many times the cores' own caches the right operand
# takes at most for it: the loop asks for what comes from further (96 MiB gained nothing without one).
_STRAIGHT, _NEAR = 64, 4


@dataclass(frozen=True)
class _Place:
    """Where a device runs what is spread, and what one thread (a group of one item, behind OpenCL) keeps for itself."""

    level: Level
    own: Memory

    @staticmethod
    def of(model: DeviceModel) -> _Place:
        return _Place(PAR, THREAD) if model.has_level(PAR) else _Place(GROUP, LOCAL)


@dataclass(frozen=True)
class _Blocks:
    """The loops that blocks are made of: `around` the blocks, those of `rows` and `columns` in one, and the reduction.

    `columns_around`: columns of tiles stand around rows of tiles. `summed`: the reduction over blocks of the sum, where
    there is one; what a block packs stays within it.
    """

    around: list[str]
    rows: str
    columns: str
    reduction: str
    columns_around: bool
    summed: str = ""

    @property
    def tiles(self) -> list[str]:
        """The loops over tiles of a block, outermost first."""
        loops = f"{self.columns}.block", f"{self.rows}.block"
        return [*loops] if self.columns_around else [*reversed(loops)]

    @property
    def within(self) -> list[str]:
        """The loops that a thread runs by itself and may pack around."""
        return self.tiles if self.summed else [*self.around[1:], *self.tiles]


def derive(derivation: Derivation, product: Product, parameters: Parameters, model: DeviceModel) -> None:
    """Take a product in normal form down to loops with levels and packed operands."""
    stored = _stores_rows(derivation.term, product)
    if parameters.get("splitK", 1) != 1:
        without_batch(derivation, product)
        product = split_in_parts(derivation, product, product.sizes["k"] // parameters.number("splitK"))
    place, prepared = _Place.of(model), prepare(derivation, product, parameters)
    blocks = _in_blocks(derivation, product, parameters, prepared, place, _columns_around(product, parameters, model))
    derivation.apply(made_apart(blocks.reduction, prepared.apart))
    _in_tiles(derivation, parameters, blocks)
    _pack(derivation, product, parameters, blocks, prepared, model, place)
    row, column = f"{blocks.rows}.tile", f"{blocks.columns}.tile"
    row_of_table = chosen(parameters)
    if row_of_table is not None:
        derivation.apply(instructions(blocks.reduction, row, column, row_of_table))
    in_tiles = row_of_table is not None and row_of_table.line > 0
    in_result = (
        in_tiles and stored and not prepared.epilogue and not blocks.summed and _in_whole_blocks(product, parameters)
    )
    steps = UNROLL if blocks.summed and _is_short(parameters, model, product) else SEQ
    derivation.apply(accumulated(blocks.reduction, row, column, OUT if in_result else PRIVATE, VEC, steps))
    for depth, loop in enumerate([*blocks.around, *blocks.tiles]):
        derivation.apply(at(loop, map_level(SEQ if depth else place.level)))
    _legal_lanes(derivation, _widest(product, parameters, model))


def _stores_rows(program: Term, product: Product) -> bool:
    """Is the product the program's result, whose rows so lie in memory?"""
    while program.kind == "let":
        program = program.args[1].args[0]
    return program is product.nest[0]


def _is_short(parameters: Parameters, model: DeviceModel, product: Product) -> bool:
    """Are the steps of a block of the sum, for a register tile, so few, and near, that they are straight code?"""
    terms, rows, columns = (parameters.number(name) for name in ("kPerBlock", "mPerThread", "nPerThread"))
    right = product.sizes["n"] * product.sizes["k"] * bytes_of(product.reduction.type)
    near = right <= _NEAR * own_caches(model)
    return near and terms * rows * columns <= _STRAIGHT * lanes_of(model, product.reduction)


def _columns_around(product: Product, parameters: Parameters, model: DeviceModel) -> bool:
    """Do columns of a block's tiles stand around its rows?

    For each tile of the loop outside, all that the other one goes over is read again. So rows stand outside where there
    are more of them than of columns, and half of a second cache holds what is read of these.
    """
    rows, columns, terms = (parameters.number(f"{dim}PerBlock") for dim in "mnk")
    again = columns * terms * bytes_of(product.reduction.type)
    return rows <= columns or 2 * again > core_cache(model)


def _in_whole_blocks(product: Product, parameters: Parameters) -> bool:
    return all(product.sizes[dim] % parameters.number(f"{dim}PerBlock") == 0 for dim in "mn")


def _in_blocks(
    derivation: Derivation,
    product: Product,
    parameters: Parameters,
    prepared: Prepared,
    place: _Place,
    columns_around: bool,
) -> _Blocks:
    """Blocks of rows and columns, the loop that is spread outside; within each, columns around rows or rows around
    columns; sums in blocks."""
    loops, number, reduction = product.loops, parameters.number, prepared.reduction
    m, n = loops.m, loops.n
    sizes = {m: number("mPerBlock"), n: number("nPerBlock")}
    by_rows = parameters["outer"] == "m"
    outer, inner = (m, n) if by_rows else (n, m)
    if not by_rows:
        derivation.apply(interchange(m))
    derivation.apply(split(outer, sizes[outer], lanes=outer == n) >> interchange(f"{outer}.tile"))
    tile = {outer: f"{outer}.tile", inner: inner}
    around = [*loops.batch, f"{outer}.block"]
    if parameters["parallel"] == "all":
        while len(around) > 1:
            batch = around[-2]
            derivation.apply(try_(at(batch, layout_out)) >> at(batch, flatten) >> NARROW)
            del around[-1]
    in_blocks = number("kPerBlock") < product.sizes["k"]
    if sizes[inner] < product.length(inner) or in_blocks:  # a block of sums consists of whole tiles
        derivation.apply(split(inner, sizes[inner], lanes=inner == n))
        tile[inner] = f"{inner}.tile"
        around.append(f"{inner}.block")
    rows, columns = tile[m], tile[n]
    if in_blocks:
        summed = f"{reduction}.block"
        if by_rows:
            derivation.apply(interchange(columns))
        derivation.apply(block_sums(reduction, rows, columns, number("kPerBlock") // prepared.terms, place.own))
        if columns_around:
            derivation.apply(step_of(summed, interchange(rows)))
        return _Blocks(around, rows, columns, f"{reduction}.tile", columns_around, summed)
    if columns_around != by_rows:
        derivation.apply(interchange(rows if columns_around else columns))
    return _Blocks(around, rows, columns, reduction, columns_around)


def _in_tiles(derivation: Derivation, parameters: Parameters, blocks: _Blocks) -> None:
    """A block in register tiles: one reduction of tiles each."""
    row, column = f"{blocks.rows}.tile", f"{blocks.columns}.tile"
    of_columns = split(blocks.columns, parameters.number("nPerThread"), lanes=True) >> interchange(column)
    of_rows = split(blocks.rows, parameters.number("mPerThread"))
    nested = of_columns >> of_rows if blocks.columns_around else of_rows >> interchange(row) >> of_columns
    tiles = nested >> outer_products(row, column)
    derivation.apply(step_of(blocks.summed, tiles) if blocks.summed else tiles)


def _pack(
    derivation: Derivation,
    product: Product,
    parameters: Parameters,
    blocks: _Blocks,
    prepared: Prepared,
    model: DeviceModel,
    place: _Place,
) -> None:
    """The operands' tiles in memory of a thread or on the heap, each moved out of all loops that do not change it."""
    memories = {"thread": place.own, "heap": HEAP}
    left = 1 if product.swapped else 0
    for name, operand, levels in (("packA", left, (SEQ, UNROLL)), ("packB", 1 - left, (SEQ, VEC))):
        memory = memories.get(str(parameters[name]))
        if memory is None:
            continue
        moved = prepared.as_stored and not has_work(product.operands[name == "packB"])
        terms, steps = min(parameters.number("kPerBlock"), product.sizes["k"]), 0
        within: tuple[Level, ...] = (VEC,)
        panels = parameters.number("nPerBlock") // parameters.number("nPerThread")
        in_turn = panels > 1 and not blocks.summed and goes_over_columns(product.nest[-1])
        if moved and name == "packB" and not goes_over_columns(product.nest[-1]):
            shape = terms, parameters.number("nPerThread")
            lanes = lanes_of(model, product.reduction)
            derivation.apply(staged_across(blocks.reduction, operand, memory, shape, lanes))
        elif moved and name == "packA" and goes_over_columns(product.nest[-2]):
            steps = min(_STEPS, -(-terms // model.cores) if memory is HEAP else terms)
            derivation.apply(staged_bare(blocks.reduction, operand, memory))
        elif name == "packB" and prepared.interleaved and in_turn:
            steps, within = 1, (SEQ, VEC, UNROLL)
            derivation.apply(interleaved_bare(blocks.reduction, operand, memory, prepared.interleaved))
        elif name == "packB" and prepared.interleaved:
            derivation.apply(staged_interleaved(blocks.reduction, operand, memory, prepared.interleaved, VEC))
        else:
            derivation.apply(staged(blocks.reduction, operand, memory, (*levels, *prepared.group)))
        on_heap = memory is HEAP
        loops = [*blocks.around, *blocks.tiles] if on_heap else blocks.within
        _move_out(derivation, memory, place, loops, steps, within)


def _widest(product: Product, parameters: Parameters, model: DeviceModel) -> int:
    """The lanes of the widest vector: of one register where the last tile has whole registers beyond the columns.

    These are then vectors of their own, whose sums nobody reads and nobody computes.
    """
    lanes = lanes_of_sums(str(product.reduction.type), model)
    beyond = -product.sizes["n"] % parameters.number("nPerThread")
    return lanes if beyond >= lanes else model.vector_lanes


def _legal_lanes(derivation: Derivation, widest: int) -> None:
    """Vectors that the machine's code cannot be written with, or is slow with, as several of at most `widest` lanes.

    LLVM takes a vector whose length is no power of two through memory, element by element.
    """
    lengths = {length_of(t) for t in subterms(derivation.term) if t.kind == "map" and t["level"] == VEC}
    for length in sorted(lengths):
        legal = min(widest, length & -length)
        if length > legal:
            derivation.apply(repeat(at(_vector_of(length), split_lanes(legal))))


def _vector_of(length: int) -> Predicate:
    def is_one(t: Term) -> bool:
        return t.kind == "map" and t["level"] == VEC and length_of(t) == length

    is_one.__name__ = f"vectors of {length} lanes"
    return is_one


def _move_out(
    derivation: Derivation, memory: Memory, place: _Place, loops: list[str], steps: int, within: tuple[Level, ...]
) -> None:
    """A packed tile out of loops (outermost first): all tiles that a loop needs are packed before it.

    What is on the heap is packed by all threads. `steps`: terms of all tiles of the innermost loop that are packed
    together, and the levels `within` each; 0 where each tile is packed by itself.
    """
    for loop in reversed(loops):
        derivation.apply(try_(at(loop, hoist(memory))) >> try_(at(loop, hoist_expanded(memory))) >> NARROW)
    derivation.apply(repeat(topdown(let_atom)))
    level = place.level if memory is HEAP else SEQ
    present = {t["name"] for t in subterms(derivation.term) if t.kind == "map" and t["level"] is None}
    staged_loops = [name for loop in loops if (name := f"{loop}.staged") in present]
    for name in staged_loops:
        by_itself = not steps or name is not staged_loops[-1]
        derivation.apply(at(name, map_level(level)) if by_itself else by_steps(name, level, steps, (SEQ, SEQ, *within)))
        level = SEQ
