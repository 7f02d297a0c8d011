"""The first phase's steps: macro rules, each at one loop of a program, addressed by the loop's name.

A macro that cuts loops takes one length for each loop that it cuts; the loops it makes are called `.block` and `.tile`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.rewrite import Strategy, at, loop_of, one, repeat, seq, topdown, try_
from lithify.rules.algorithmic import split_join
from lithify.rules.fusion import map_fusion, reduce_map_fission, reduce_map_fusion
from lithify.rules.interchange import map_map_shared, map_reduce_shared
from lithify.rules.layout import VIEW_RULES, layout_out, map_split_zip, pad_fill_zip
from lithify.rules.matrix import block_reduction, register_blocking, register_blocking_2d, tile
from lithify.rules.reduction import pad_reduce, partial_reduce, reduce_lanes
from lithify.rules.stencil import slide_split


@dataclass(frozen=True)
class Macro:
    """A macro rule. `make(loops, sizes)` is its strategy: `loops` the names of the `depth` directly nested loops of
    the given kind that it works on, outermost first; `sizes` a length for each of the first or last `cuts` of them.
    """

    name: str
    kind: str
    make: Callable[[tuple[str, ...], tuple[int, ...]], Strategy]
    depth: int = 1
    cuts: int = 0


def _split(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    """Blocks of a loop; windows that it slides over stay windows."""
    (loop,), (size,) = loops, sizes
    return at(loop_of(loop, "map"), split_join(size)) >> try_(at(f"{loop}.block", at((1,), slide_split)))


def _interchange(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    return at(loop_of(loops[0], "map"), map_map_shared)


def _sums_out(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    """A loop over reductions as a reduction of arrays: what is combined moves inside."""
    loop = loop_of(loops[0], "map")
    columns = try_(at((2, 0), map_map_shared))
    return try_(at(loop, layout_out)) >> at(loop, map_reduce_shared >> columns)


def _blocks(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    """A reduction in blocks, in the same order."""
    return block_reduction(loops[0], sizes[0])


def _partial_sums(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    """A sum of partial sums."""
    (loop,), (size,) = loops, sizes
    filled = reduce_map_fusion >> pad_reduce(size) >> reduce_map_fission
    return seq(
        try_(at(loop, filled)),
        at(loop_of(loop, "reduce"), partial_reduce(size)),
        _operands(f"{loop}.block"),
    )


def _lanes(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    """A sum as sums side by side, and their sum."""
    (loop,), (size,) = loops, sizes
    filled = reduce_map_fusion >> pad_reduce(size) >> reduce_map_fission
    return seq(
        try_(at(loop, filled)),
        at(loop_of(loop, "reduce"), reduce_lanes(size)),
        repeat(at(f"{loop}.step", one(topdown(VIEW_RULES["split-map"])) | reduce_map_fusion)),
    )


def _operands(loop: str) -> Strategy:
    """Blocks of pairs of elements as pairs of blocks, and what makes the elements taken in."""
    views = one(topdown(VIEW_RULES["split-map"])) | map_fusion | one(topdown(pad_fill_zip)) | map_split_zip
    return repeat(at(loop, views))


def _fuse(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    """What makes the elements of a reduction, taken into its step."""
    return at(loop_of(loops[0], "reduce"), reduce_map_fusion)


def _register_block_2d(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    return register_blocking_2d(loops[0], loops[1], sizes[0], sizes[1])


def _fuse_maps(loops: tuple[str, ...], sizes: tuple[int, ...]) -> Strategy:
    return at(loop_of(loops[0], "map"), map_fusion)


MACROS: dict[str, Macro] = {
    macro.name: macro
    for macro in (
        Macro("tile", "map", lambda loops, sizes: tile(loops[0], loops[1], sizes[0], sizes[1]), depth=2, cuts=2),
        Macro("split", "map", _split, cuts=1),
        Macro("interchange", "map", _interchange),
        Macro("fuse", "reduce", _fuse),
        Macro("fuse-maps", "map", _fuse_maps),
        Macro("sums-out", "map", _sums_out),
        Macro("blocks", "reduce", _blocks, cuts=1),
        Macro("partial-sums", "reduce", _partial_sums, cuts=1),
        Macro("lanes", "reduce", _lanes, cuts=1),
        Macro("register-block", "map", lambda loops, sizes: register_blocking(loops[0], sizes[0]), cuts=1),
        Macro("register-block-2d", "map", _register_block_2d, depth=2, cuts=2),
    )
}
