"""The case study of matrix multiplication: the derivations that the Lift talks show, as named strategies.

Each starts from `map (λrowA. map (λcolB. reduce (+) 0 (map (*) (zip rowA colB))) (transpose B)) A`, for any sizes:

    tiled                     tiles of both operands in local memory, partial sums, untile
    tiled-register-blocked    the same, with `l` rows of a tile as a register block
    register-blocking         the macro rule by itself, rule by rule as it is printed
    tiled-blocked-vectorised  tiles, register tiles of rows x vectors, tiles of both operands copied

T. Remmelg, T. Lutz, M. Steuwer, C. Dubach, "Performance Portable GPU Code Generation for Matrix Multiplication"
(GPGPU 2016). The first three reach the programs as printed; levels are left to the device's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple

from lithify.lang.errors import RewriteFailed
from lithify.lang.levels import HEAP, LOCAL, OUT, PAR, PRIVATE, SEQ, UNROLL, VEC, Level
from lithify.lang.term import Term
from lithify.lowering.needs import Path, is_scalar
from lithify.lowering.work import length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, Strategy, at, first, loop_of, macro, normalize, one, repeat, seq, topdown, try_
from lithify.rewrite.traversal import Predicate
from lithify.rules.accumulators import accumulator_layout
from lithify.rules.algorithmic import let_introduction, split_join
from lithify.rules.fusion import map_fission, map_fusion, map_replicate, reduce_map_fission, reduce_map_fusion
from lithify.rules.interchange import map_map_interchange, map_map_shared, map_reduce_interchange
from lithify.rules.layout import (
    VIEW_RULES,
    layout_out,
    map_split_zip,
    pad_fill_zip,
    pad_replicate,
    split_replicate,
    transpose_join,
    transpose_map_replicate,
    transpose_replicate,
    transpose_take,
)
from lithify.rules.lowering import copy_loop, to_memory
from lithify.rules.matrix import block_reduction, outer_product, register_blocking, tile
from lithify.rules.memory import accumulate
from lithify.rules.parallel import map_level, reduce_level
from lithify.rules.reduction import pad_reduce, partial_reduce

GROUPS = (Level("group", 1), Level("group", 0))
ITEMS = (Level("item", 1), Level("item", 0))


class Loops(NamedTuple):
    """The names of the three loops: over rows of A, columns of B, and the products that are summed."""

    rows: str
    columns: str
    sum: str


@dataclass(frozen=True)
class Tiling:
    """A tile of the result is `n` rows and `m` columns, made in steps of `k`; `l` rows of it are a register block.

    (These are the letters of the slides.) What is larger than the matrices is brought down to them.
    """

    name: str
    purpose: str
    derive: Callable[[Derivation, Loops, Tiling, DeviceModel], None]
    n: int = 64
    m: int = 64
    k: int = 16
    l: int = 8  # noqa: E741
    devices: ClassVar[str] = "any device"

    @property
    def parameters(self) -> tuple[str, ...]:
        """What `name(n=32, l=4)` may say."""
        return tuple(f.name for f in fields(self) if f.type == "int")

    def with_sizes(self, sizes: Mapping[str, int]) -> Tiling:
        """The same with other sizes, by letter."""
        own = {p: getattr(self, p) for p in self.parameters} | dict(sizes)
        return Tiling(self.name, self.purpose, self.derive, **own)

    def __call__(self, derivation: Derivation, model: DeviceModel) -> None:
        """Apply to a program that multiplies two matrices; raises RewriteFailed for others."""
        loops, sizes = _recognised(self.name, derivation.term)
        fitting = {letter: max(1, min(getattr(self, letter), size)) for letter, size in sizes.items()}
        self.derive(derivation, loops, self.with_sizes(fitting), model)


def _recognised(name: str, program: Term) -> tuple[Loops, dict[str, int]]:
    """The loops of a program, and how large n, m, k and l may be."""
    nest = [program]
    while nest[-1].kind == "map" and len(nest) < 3:
        nest.append(nest[-1].args[0].args[0])
    kinds = [t.kind for t in nest]
    if kinds != ["map", "map", "reduce"] or not is_scalar(nest[2].type) or nest[2].args[2].kind != "map":
        raise RewriteFailed(
            f"{name} is for a program `map (λrow. map (λcolumn. reduce f z (map g (zip row column))) (transpose B)) A`",
            hint="write the product of two matrices so, or use another strategy",
        )
    rows, columns, depth = (length_of(t.args[-1]) for t in nest)
    return Loops(*(t["name"] for t in nest)), {"n": rows, "m": columns, "k": depth, "l": rows}


# ---- tiles ---------------------------------------------------------------------------------------------------------


def tiles_of_sums(loops: Loops, rows: int, columns: int, depth: int) -> Strategy:
    """Tiles of the result, each a reduction over tiles of the operands that adds a tile of partial sums:

    reduce (λacc, (tileA, tileB). map (map (+)) . zip acc . map (λas. map (λbs. reduce (+) 0 ..) tileB) tileA) 0 ..
    """
    m, n, k = loops
    blocks = loop_of(k, "reduce")
    filled = reduce_map_fusion >> pad_reduce(depth) >> reduce_map_fission
    to_operands = one(topdown(VIEW_RULES["split-map"])) | map_fusion | one(topdown(pad_fill_zip)) | map_split_zip
    sides_by_side = [
        step
        for loop in (f"{n}.tile", f"{m}.tile")
        for step in (at(loop_of(loop, "map"), map_reduce_interchange), at(blocks, at((2, 0), map_map_shared)))
    ]
    return macro(
        f"tiles-of-sums({m}, {n}, {k}, {rows}, {columns}, {depth})",
        tile(m, n, rows, columns),
        try_(at(k, filled)),
        at(k, partial_reduce(depth)),
        repeat(at(f"{k}.block", to_operands)),
        *sides_by_side,
        at(blocks, reduce_map_fusion),
    )


def untile(loops: Loops) -> Strategy:
    """The operands' tiles and the result's as views outside of the loops: `untile . map (λ.. ) . tile m k ..`."""
    m, n, _ = loops
    tiles = map_fission("transpose") >> at((1,), map_fission("map"))
    joined = transpose_join >> at((1, 0), map_fusion)
    columns = joined | transpose_take >> at((1,), joined) >> map_fusion
    return macro(
        "untile",
        at(f"{n}.block", tiles),
        at(f"{m}.block", tiles),
        at(loop_of(f"{m}.block", "map"), at((0, 0), columns)),
        at(f"{m}.block", layout_out),
    )


# From the reduction over tiles to the tile that it adds, and to the tiles of A and of B that this one reads.
_SUMS: Path = (0, 0, 0, 1, 1)
_TILE_A: Path = (*_SUMS, 1)
_TILE_B: Path = (*_SUMS, 0, 0, 1)


def copied_tiles(loops: Loops) -> Strategy:
    """toLocal of both tiles: where they lie. (Which loops copy is for levels to say.)"""
    blocks = loop_of(loops.sum, "reduce")
    return macro("copied-tiles", at(blocks, at(_TILE_A, to_memory(LOCAL)) >> at(_TILE_B, to_memory(LOCAL))))


def register_blocks(loops: Loops, size: int) -> Strategy:
    """Register blocking of the tiles that are added, before its last two steps; accumulators as these blocks are made.

    (The slides print the program with the products and their sum apart.)
    """
    rows = f"{loops.rows}.tile"
    within = f"{rows}.tile"
    blocks = loop_of(loops.sum, "reduce")
    blocking = seq(
        split_join(size),
        at(loop_of(within, "map"), map_map_interchange),
        at(within, map_fission("map")),
        at(within, map_reduce_interchange),
        at(loop_of(within, "map"), map_map_shared),
        at(_is_product(within), at((0, 0, 1), to_memory(PRIVATE))),
    )
    zeros = first(pad_replicate, split_replicate, map_replicate, transpose_replicate, transpose_map_replicate)
    return macro(
        f"register-blocks({rows}, {size})",
        at(blocks, at(_SUMS, blocking)),
        at(loop_of(f"{rows}.block", "map"), layout_out),
        repeat(at(blocks, accumulator_layout)),
        at(blocks, at((1,), normalize(zeros))),
        at(loop_of(f"{loops.columns}.block", "map"), layout_out),
        at(loop_of(f"{loops.rows}.block", "map"), layout_out),
    )


def _is_product(name: str) -> Predicate:
    """The map of a name that multiplies elements by a value that is the same for all."""

    def predicate(term: Term) -> bool:
        return loop_of(name, "map")(term) and term.args[0].args[0].kind == "op" and term.args[1].kind == "proj"

    predicate.__name__ = f"the products of {name}"
    return predicate


# ---- the strategies ------------------------------------------------------------------------------------------------


def _tiled(derivation: Derivation, loops: Loops, sizes: Tiling, model: DeviceModel) -> None:
    derivation.apply(tiles_of_sums(loops, sizes.n, sizes.m, sizes.k)).apply(untile(loops)).apply(copied_tiles(loops))
    _to_groups(derivation, loops, model)


def _tiled_register_blocked(derivation: Derivation, loops: Loops, sizes: Tiling, model: DeviceModel) -> None:
    derivation.apply(tiles_of_sums(loops, sizes.n, sizes.m, sizes.k)).apply(untile(loops)).apply(copied_tiles(loops))
    derivation.apply(register_blocks(loops, min(sizes.l, sizes.n)))
    _to_groups(derivation, loops, model)


def _to_groups(derivation: Derivation, loops: Loops, model: DeviceModel) -> None:
    """toGlobal of a tile of the result; a tile a work-group where there are such, as it uses their local memory.

    Both tiles, which the slides print inside of the loops that read them, are copied before, by the whole group.
    """
    derivation.once(to_memory(HEAP), loop_of(loops.sum, "reduce"))
    if model.has_level(GROUPS[0]) and model.has_memory("local"):
        named_copy = let_introduction("to")
        derivation.once(at((0, 0, 0), named_copy >> at((1, 0), named_copy)), loop_of(loops.sum, "reduce"))
        for loop, level in zip((loops.rows, loops.columns), GROUPS, strict=True):
            derivation.once(map_level(level), loop_of(f"{loop}.block", "map"))


def _register_blocking(derivation: Derivation, loops: Loops, sizes: Tiling, model: DeviceModel) -> None:
    del model
    derivation.apply(register_blocking(loops.rows, sizes.l))


def _vectorised(derivation: Derivation, loops: Loops, sizes: Tiling, model: DeviceModel) -> None:
    """Tiles; register tiles of `l` rows and as many columns as a vector has lanes; every loop with a level."""
    m, n, k = loops
    rows, lanes = min(sizes.l, sizes.n), min(model.vector_width(32), sizes.m)
    derivation.apply(tile(m, n, sizes.n, sizes.m)).apply(tile(f"{m}.tile", f"{n}.tile", rows, lanes))
    derivation.apply(outer_product(f"{m}.tile.tile", f"{n}.tile.tile")).apply(block_reduction(k, sizes.k))
    registers = (UNROLL, VEC)
    derivation.once(accumulate(SEQ, PRIVATE, registers, registers), loop_of(f"{k}.block", "reduce"))
    in_place = reduce_level(SEQ, OUT) >> at((1,), copy_loop(UNROLL) >> at((0, 0), copy_loop(VEC)))
    derivation.once(in_place, loop_of(f"{k}.tile", "reduce"))
    threads = (PAR, SEQ, SEQ, SEQ)
    if not model.has_level(PAR):
        threads = (*GROUPS, *ITEMS)
    blocks = (f"{m}.block", f"{n}.block", f"{m}.tile.block", f"{n}.tile.block")
    tiles = (f"{m}.tile.tile", f"{n}.tile.tile")
    for name, level in zip((*blocks, *tiles), (*threads, *registers), strict=True):
        derivation.once(map_level(level), loop_of(name, "map"))


VERSIONS = (
    Tiling("tiled", "tiles of both operands in local memory, partial sums, untile", _tiled),
    Tiling("tiled-register-blocked", "tiled, with rows of a tile as register blocks", _tiled_register_blocked),
    Tiling("register-blocking", "the macro rule, rule by rule", _register_blocking),
    Tiling("tiled-blocked-vectorised", "tiles, register tiles, vectors", _vectorised),
)
