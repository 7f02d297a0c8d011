"""Macro rules: strategies that are written, like those of the slides, as sequences of rules.

They work on nests whose maps have names, `map@m (λa. map@n (λb. reduce@k ..) B) A`, and name what they make: `m.block`
and `m.tile`. Tile from the outside in: then the interchange always meets directly nested maps, and what it transposes
ends up as a view of the result.
"""

from __future__ import annotations

from lithify.rewrite.strategy import Strategy, macro, repeat, try_
from lithify.rewrite.traversal import at, loop_of, one, topdown
from lithify.rules.algorithmic import let_atom, split_join
from lithify.rules.fusion import map_fission, map_fusion, reduce_map_fission, reduce_map_fusion
from lithify.rules.interchange import (
    map_map_interchange,
    map_map_shared,
    map_reduce_interchange,
    map_reduce_shared,
)
from lithify.rules.layout import VIEW_RULES, layout_out, pad_fill_zip, reduce_split_zip
from lithify.rules.reduction import blocked_reduce, pad_reduce, split_reduce_any


def tile(outer: str, inner: str, rows: int, columns: int) -> Strategy:
    """Two nested maps in tiles of `rows` x `columns`, the loops over tiles outside.

    split-join; interchange; split-join; interchange. Lengths need not be divisible. Afterwards the loops are
    `outer.block`, `inner.block`, `outer.tile`, `inner.tile`, from the outside in.
    """
    return macro(
        f"tile({outer}, {inner}, {rows}, {columns})",
        at(outer, split_join(rows)),
        at(f"{outer}.tile", map_map_interchange),
        at(inner, split_join(columns)),
        at(f"{inner}.tile", map_map_interchange),
    )


def outer_product(outer: str, inner: str) -> Strategy:
    """A tile of reductions as one reduction of tiles: each step reads one column and one row.

    reduce-map fusion; map-reduce interchange twice, with the parts that all share kept shared.
    """
    return macro(
        f"outer-product({outer}, {inner})",
        try_(topdown(reduce_map_fusion)),
        at(inner, map_reduce_shared),
        try_(at(loop_of(outer, "map"), layout_out)),
        at(outer, map_reduce_shared),
    )


def block_reduction(name: str, size: int) -> Strategy:
    """A reduction in blocks of `size`, in the same order: split the reduction, then the zip it reads."""
    return macro(
        f"block-reduction({name}, {size})",
        at(name, split_reduce_any(size)),
        try_(topdown(pad_fill_zip)),
        try_(at(f"{name}.block", reduce_split_zip)),
    )


def tiling(outer: str, inner: str, reduction: str, sizes: tuple[int, int, int], *steps: Strategy) -> Strategy:
    """Tiling of matrix multiplication in the form that the slides print: a sum of products of tiles.

        untile . map (λrowOfTilesA. map (λcolOfTilesB.
          reduce (λtileAcc, (tileA, tileB).
            map (map (+)) . zip tileAcc . map (λas. map (λbs. reduce (+) 0 (map (*) (zip as bs))) tileB) tileA)
          0 (zip rowOfTilesA colOfTilesB)) ..) ..

    `sizes` are the tile's rows, columns and depth; `steps` come last (staging both tiles, levels).
    """
    rows, columns, depth = sizes
    block = f"{reduction}.block"
    filled = reduce_map_fusion >> pad_reduce(depth) >> reduce_map_fission
    to_operands = one(topdown(VIEW_RULES["split-map"]))
    return macro(
        f"tiling({outer}, {inner}, {reduction}, {rows}, {columns}, {depth})",
        tile(outer, inner, rows, columns),
        try_(at(reduction, filled)),
        at(reduction, blocked_reduce(depth)),
        repeat(at(block, to_operands | reduce_map_fusion | one(topdown(pad_fill_zip)) | reduce_split_zip)),
        at(f"{inner}.tile", map_reduce_shared),
        try_(at(loop_of(f"{outer}.tile", "map"), layout_out)),
        at(f"{outer}.tile", map_reduce_shared),
        *steps,
    )


def register_blocking(outer: str, size: int) -> Strategy:
    """1-D register blocking, step by step as the slides print the macro rule.

    map f -> join . map (map f) . split k;
    map (λa. map (λb. f a b)) -> transpose . map (λb. map (λa. f a b));
    map (f . g) -> map f . map g;
    map (reduce f z) -> transpose . reduce (λ(acc, x). map f . (zip acc x));
    map (map f) -> transpose . map (map f) . transpose;
    transpose . transpose -> id;                                   (an always-on law here)
    reduceSeq f z . mapSeq g -> reduceSeq (λ(acc, x). f acc (g x));
    map f . map g -> map (f . g)
    """
    tile_ = f"{outer}.tile"
    return macro(
        f"register-blocking({outer}, {size})",
        at(outer, split_join(size)),
        at(tile_, map_map_interchange),
        at(tile_, map_fission("map")),
        at(tile_, map_reduce_interchange),
        at(loop_of(tile_, "map"), map_map_shared),
        topdown(reduce_map_fusion),
        try_(topdown(map_fusion)),
    )


def register_blocking_2d(outer: str, inner: str, rows: int, columns: int) -> Strategy:
    """2-D register blocking: tiles of rows x columns, and one reduction of tiles in each."""
    return macro(
        f"register-blocking-2d({outer}, {inner}, {rows}, {columns})",
        tile(outer, inner, rows, columns),
        outer_product(f"{outer}.tile", f"{inner}.tile"),
        try_(topdown(let_atom)),
    )
