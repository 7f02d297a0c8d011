"""Matrix multiplication on GPUs: a tile a group, staged in local memory; a tile an item, kept in registers.

    for tiles of mPerBlock x nPerBlock, over the groups
      for steps of kPerBlock: both operands' tiles go to local memory, `stages` of them in turn
        for the items of the group, nPerWave of them along a row of the tile
          for k: a column of the left tile times a row of the right one, mPerThread x nPerThread sums in registers

An item's rows and columns are vectors that lie apart by what all items together take, so that neighbours read
neighbouring vectors of local memory. What is loaded for the next step waits in registers while this one is computed:
one barrier a step. (V. Volkov and J. Demmel, Benchmarking GPUs to Tune Dense Linear Algebra, 2008; NVIDIA's CUTLASS.)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from lithify.lang.levels import OUT, PRIVATE, UNROLL, VEC, Level, Memory
from lithify.lang.reading import has_work
from lithify.lang.scalars import SCALARS
from lithify.lang.term import Term, contains
from lithify.lowering.gemm.operands import computed_where_read, fills_up, inside
from lithify.lowering.gemm.parts import split_in_parts, without_batch
from lithify.lowering.gemm.problem import Product, lies_across, part_length, product_in
from lithify.lowering.gemm.register import NARROW, interchange
from lithify.lowering.tuning import Parameters, Problem
from lithify.rewrite import Context, Derivation, Failure, Strategy, at, first, id_, repeat, seq, topdown, try_
from lithify.rewrite.traversal import Predicate, loop_of
from lithify.rules.algorithmic import flatten, let_atom, split_join, split_join_zip
from lithify.rules.fusion import epilogue_fission
from lithify.rules.interchange import map_reduce_shared
from lithify.rules.layout import VIEW_RULES, coalesce, layout_out, pad_fill_zip
from lithify.rules.matrix import block_reduction
from lithify.rules.memory import stage_reduce_both
from lithify.rules.parallel import map_level, reduce_level
from lithify.rules.reduction import pad_reduce
from lithify.rules.tiles import (
    accumulate_pipe,
    copy_out,
    copy_shared,
    copy_shared_across,
    operand_tiles,
    pipeline_tiles,
    split_join_vectors,
    split_join_vectors_zip,
)

ITEM = Level("item")
COLUMNS, ROWS, WAVES = (Level("item", dim) for dim in range(3))
_GROUP_N, _GROUP_M, _GROUP_BATCH = (Level("group", dim) for dim in range(3))
_ACCESS_BYTES = 16  # of an item's access to local memory
_MOST_LANES = 4


def derive(derivation: Derivation, product: Product, problem: Problem, parameters: Parameters) -> None:
    """Take a product in normal form down to groups, items and registers."""
    number = parameters.number
    if number("splitK") > 1:
        without_batch(derivation, product)
        part = part_length(product.sizes["k"], number("splitK"), number("kPerBlock"))
        if part * number("splitK") != product.sizes["k"]:
            derivation.apply(_filled(product.loops.k, part * number("splitK"), product.loops.n, product.loops.m))
            filled = product_in(derivation.term)
            assert filled is not None, "a sum that is filled up is a product, too"
            product = filled
        product = split_in_parts(derivation, product, part)
    m, n, k = product.loops.m, product.loops.n, product.loops.k
    tile = {m: number("mPerBlock"), n: number("nPerBlock")}
    thread = {m: number("mPerThread"), n: number("nPerThread")}
    depth, columns = number("kPerBlock"), number("nPerWave")
    lanes = {loop: _ACCESS_BYTES // SCALARS[problem.scalars[side]].bytes for loop, side in ((m, "a"), (n, "b"))}
    vector = {loop: gcd(min(_MOST_LANES, lanes[loop]), thread[loop]) for loop in (m, n)}
    items = {loop: tile[loop] // thread[loop] for loop in (m, n)}

    derivation.apply(_fused(derivation.term, k, depth) >> computed_where_read(product))
    batch = list(product.loops.batch)
    while len(batch) > 1:
        derivation.apply(try_(at(batch[-2], layout_out)) >> at(batch[-2], flatten) >> NARROW)
        del batch[-1]
    # The sum in whole steps: what is missing of the last one are zeros.
    if product.sizes["k"] % depth:
        derivation.apply(_filled(k, depth, n, m))
    # Tiles for groups, then items, then the vectors of an item, then their elements.
    mt, nt = f"{m}.tile", f"{n}.tile"
    derivation.apply(_split(m, tile[m], vector[m], product.sizes["m"]) >> interchange(mt))
    derivation.apply(_split(n, tile[n], vector[n], product.sizes["n"]) >> interchange(nt))
    derivation.apply(_split(mt, vector[m]) >> interchange(f"{mt}.tile"))
    derivation.apply(_split(nt, vector[n]) >> interchange(f"{nt}.tile"))
    mv, nv = f"{mt}.block", f"{nt}.block"
    derivation.apply(_apart(nv, items[n]) >> try_(at(loop_of(mv, "map"), layout_out)) >> _apart(mv, items[m]))
    derivation.apply(_split(mv, thread[m] // vector[m]) >> interchange(f"{mv}.tile"))
    derivation.apply(_split(nv, thread[n] // vector[n]) >> interchange(f"{nv}.tile"))
    derivation.apply(_split(f"{nv}.block", columns))
    # The reduction outwards: to an item's tile, then in steps, then to the group's.
    for loop in (f"{nt}.tile", f"{mt}.tile", f"{nv}.tile", f"{mv}.tile"):
        derivation.apply(_reduced(loop))
    derivation.apply(block_reduction(k, depth))
    around = (f"{nv}.block.tile", f"{nv}.block.block", f"{mv}.block")
    for loop in around:
        derivation.apply(_reduced(loop))
    steps = loop_of(f"{k}.block", "reduce")
    derivation.apply(operand_tiles(steps))
    # Memories and levels.
    epilogue = product.nest[-1].args[0].args[0] is not product.reduction
    _staged(derivation, product, lies_across(problem), parameters, items[m] * items[n])
    elements = (UNROLL, UNROLL, UNROLL, VEC)
    registers = Memory("reg", 1, (ROWS, WAVES, COLUMNS, None, None, None, None))
    levels = (ROWS, WAVES, COLUMNS, *elements)
    derivation.apply(at(loop_of(f"{k}.block", "pipe"), accumulate_pipe(registers, levels)))
    if not epilogue:
        derivation.apply(at(_lies_in(registers), copy_out(registers, levels)))
    derivation.apply(at(f"{k}.tile", stage_reduce_both(PRIVATE, (UNROLL, VEC), (UNROLL, VEC))))
    derivation.apply(at(f"{k}.tile", reduce_level(UNROLL, OUT)))
    named = {
        f"{mv}.block": ROWS,
        f"{nv}.block.block": WAVES,
        f"{nv}.block.tile": COLUMNS,
        f"{mv}.tile": UNROLL,
        f"{nv}.tile": UNROLL,
        f"{mt}.tile": UNROLL,
        f"{nt}.tile": VEC,
        f"{m}.block": Level("group", 1),
        f"{n}.block": Level("group", 0),
        **{loop: Level("group", 2) for loop in batch},
    }
    for loop, level in named.items():
        derivation.apply(repeat(at(_computing(loop), map_level(level))))


def _fused(program: Term, k: str, depth: int) -> Strategy:
    """What is done to the operands is done where they are multiplied: local memory holds what the heap holds.

    It is done before where the sum has to be filled up, and no element would be known any more that changes nothing.
    """
    strategy = try_(inside(k))
    fused = strategy.run(program, Context())
    product = None if isinstance(fused, Failure) else product_in(fused)
    assert product is not None, "work on the operands goes into the product"
    return strategy if product.sizes["k"] % depth == 0 or fills_up(product.reduction) else id_


def _staged(
    derivation: Derivation, product: Product, across: Mapping[str, bool], parameters: Parameters, items: int
) -> None:
    """Tiles of both operands in local memory, copied by all items of a group along what is contiguous."""
    number = parameters.number
    sides = ("B", "A") if product.swapped else ("A", "B")
    memories = [Memory("local", padding=number(f"padding{side}")) for side in sides]
    k = product.loops.k
    derivation.apply(at(loop_of(f"{k}.block", "reduce"), pipeline_tiles(number("stages"), *memories)))
    for place, side in enumerate(sides):
        copy = copy_shared_across if across[side.lower()] else copy_shared
        copied = copy(UNROLL, ITEM, items, number(f"vector{side}"))
        derivation.apply(at(loop_of(f"{k}.block", "pipe"), at((1, 0, place, 0), copied)))


def _split(loop: str, size: int, vector: int = 1, length: int = 0) -> Strategy:
    """A loop in blocks, filled up by whole vectors where the length has such."""
    ways: list[Strategy] = [split_join_zip(size), split_join(size)]
    if vector > 1 and length % size and length % vector == 0:
        ways = [split_join_vectors_zip(size, vector), split_join_vectors(size, vector)]
    return at(loop, first(*ways)) >> NARROW


def _filled(k: str, depth: int, *loops: str) -> Strategy:
    """The operands of a sum filled up with what it ignores, outside of the loops (given from the inside out)."""
    outwards = [try_(at(loop, epilogue_fission("pad"))) >> NARROW for loop in loops]
    return seq(at(k, pad_reduce(depth)), at(k, topdown(pad_fill_zip)), *outwards, *outwards)


def _apart(loop: str, count: int) -> Strategy:
    """Iterations that lie `count` apart brought together: each item gets every count-th."""
    return at(loop, coalesce(count)) >> repeat(topdown(VIEW_RULES["reindex-zip"])) >> NARROW


def _reduced(loop: str) -> Strategy:
    """The reduction in a loop as one of arrays; work on its result and views of it get loops of their own."""
    here = loop_of(loop, "map")
    behind = try_(at(here, layout_out)) >> try_(at(here, epilogue_fission())) >> NARROW >> repeat(topdown(let_atom))
    return behind >> at(here, map_reduce_shared)


def _computing(name: str) -> Predicate:
    """Loops of a name that compute something: not the views that carry it, too."""
    is_loop = loop_of(name, "map")

    def predicate(t: Term) -> bool:
        if not is_loop(t) or t["level"] is not None:
            return False
        return has_work(t.args[0]) or contains(t.args[0], lambda s: s.kind == "to")

    predicate.__name__ = f"computing {name}"
    return predicate


def _lies_in(memory: Memory) -> Predicate:
    def predicate(t: Term) -> bool:
        return t.kind == "to" and t["memory"] == memory

    predicate.__name__ = f"to[{memory}]"
    return predicate
