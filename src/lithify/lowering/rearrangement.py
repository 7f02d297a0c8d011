"""Copies that change the order of dimensions: square tiles, so that both sides of the copy are contiguous.

Where memory is read along one dimension and written along another, any order of loops meets a new line of memory at
each step on one side. A tile of w x w elements is read along the first, kept in registers, and written along the other.
The other dimensions are loops around the tiles, the longest outermost. Dimensions that follow one another on both sides
are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from lithify.lang.build import map_
from lithify.lang.errors import LithifyError
from lithify.lang.levels import PRIVATE, SEQ, UNROLL, VEC, Level, LevelKind
from lithify.lang.term import Term
from lithify.lang.types import Array, Type
from lithify.lowering.access import accesses
from lithify.lowering.needs import Path, subterm
from lithify.lowering.plain import plain_kernels
from lithify.lowering.work import length_of
from lithify.rewrite import Strategy, at
from lithify.rewrite.rule import Rule
from lithify.rules.lowering import (
    copy_loop,
    copy_merged,
    copy_parts,
    copy_parts_across,
    copy_second,
    copy_third,
    copy_tiles,
    copy_tiles_across,
)

_NAME = "copied"
# Tiles that are written side by side, the best first: one line of memory at a time takes 1.3 times as long as two on
# Sapphire Rapids. So many strips of them must be left for the threads.
_BESIDE = (2, 3)
_LEAST_STRIPS = 4
# For each of the first dimensions of a copy: a loop along it, and where the loop's body is.
COPIES: tuple[tuple[Rule, Path], ...] = ((copy_loop, (0, 0)), (copy_second, (0, 0, 0)), (copy_third, (1, 0, 0, 0)))


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of what is copied: its length, and how far apart neighbours are where it is read and written."""

    length: int
    read: int | None
    written: int | None

    def goes_on(self, inner: Dimension) -> bool:
        """Does each step begin, on both sides, where the last one of a dimension inside has ended?"""
        if None in (self.read, self.written, inner.read, inner.written):
            return False
        whole = inner.length
        return (self.read, self.written) == (whole * (inner.read or 0), whole * (inner.written or 0))

    def merged(self, inner: Dimension) -> Dimension:
        """This dimension and the one inside as one."""
        return Dimension(self.length * inner.length, inner.read, inner.written)


def tiles(program: Term, path: Path, width: int, level: Level) -> Strategy | None:
    """The copy of the array at `path` in tiles of `width` x `width`, with `level` for its outermost loop.

    None where it is read and written along the same dimension, or has no `width` elements along one of the two.
    """
    found = plane(program, path)
    if found is None or min(d.length for d in _merged(found[0]) if d.length > 1 and 1 in (d.read, d.written)) < width:
        return None
    return _loops(*found, width, level)


def plane(program: Term, path: Path) -> tuple[list[Dimension], tuple[Dimension, Dimension]] | None:
    """The dimensions of the array at `path`, and those two along which a copy reads and writes neighbours; None where
    both are one."""
    dimensions = dimensions_of(program, path)
    read = [d for d in dimensions if d.read == 1 and d.length > 1]
    written = [d for d in dimensions if d.written == 1 and d.length > 1]
    found = next(((r, w) for r in read for w in written if r not in written and w not in read), None)
    return None if found is None else (dimensions, found)


def _merged(dimensions: list[Dimension]) -> list[Dimension]:
    """The dimensions, those that follow one another on both sides as one (but for the first, see `copy-merged`)."""
    found: list[Dimension] = []
    for d in dimensions:
        if len(found) > 1 and found[-1].goes_on(d):
            found[-1] = found[-1].merged(d)
        else:
            found.append(d)
    return found


def _loops(dimensions: list[Dimension], plane: tuple[Dimension, Dimension], width: int, level: Level) -> Strategy:
    """Loops over the dimensions beside the plane, then tiles."""
    merged = next((k for k, (d, e) in enumerate(pairwise(dimensions)) if k and d.goes_on(e)), None)
    if merged is not None:
        pair = dimensions[merged : merged + 2]
        both = pair[0].merged(pair[1])
        plane = (both if plane[0] in pair else plane[0], both if plane[1] in pair else plane[1])
        below = _loops([*dimensions[:merged], both, *dimensions[merged + 2 :]], plane, width, level)
        return copy_merged(merged) >> at((1,), below)
    others = [k for k, d in enumerate(dimensions) if d not in plane]
    if not others:
        whole_lines = (plane[0].written or 1) % width == 0
        rows, columns = (d.length for d in dimensions)
        return tiled_copy(rows, columns, dimensions[0] is plane[0], width, level, whole_lines)
    place = max((k for k in others if k < len(COPIES)), key=lambda k: dimensions[k].length)
    # threads share the loop with the most iterations; groups stand outside of all loops
    longest = dimensions[place].length >= plane[1].length // width
    own, rest = (level, SEQ) if longest or level.kind is not LevelKind.THREADS else (SEQ, level)
    below = _loops(dimensions[:place] + dimensions[place + 1 :], plane, width, rest)
    loop, body = COPIES[place]
    return loop(own) >> at(body, below)


def tiled_copy(
    rows: int, columns: int, reads_rows: bool, width: int, level: Level, whole_lines: bool = False
) -> Strategy:
    """A copy in tiles of a matrix that is read along its first dimension and written along its second, or the other way
    round (`reads_rows` False). Both sides meet neighbours in memory; what no tile covers is left to copy.

    `whole_lines`: what a tile writes begins where a line of memory does, if the array does so.
    """
    if rows % width:
        whole = rows // width * width
        below = tiled_copy(whole, columns, reads_rows, width, level, whole_lines)
        return copy_parts(whole, level) >> at((0,), below)
    if columns % width:
        whole = columns // width * width
        below = tiled_copy(whole, rows, not reads_rows, width, level, whole_lines)
        return copy_parts_across(whole, level) >> at((0, 0), below)
    tiles_of = copy_tiles if reads_rows else copy_tiles_across
    strips = (columns if reads_rows else rows) // width
    beside = next((k for k in _BESIDE if strips % k == 0 and strips >= k * _LEAST_STRIPS), 1) if whole_lines else 1
    return tiles_of(level, width, beside, PRIVATE, (VEC, UNROLL), (UNROLL, VEC))


def _has_constant_sizes(type_: Type) -> bool:
    while isinstance(type_, Array):
        if type_.size.constant is None:
            return False
        type_ = type_.element
    return True


def dimensions_of(program: Term, path: Path) -> list[Dimension]:
    """What the plainest copy at `path` does; empty where there is none (the program cannot be lowered plainly), and
    where sizes are not known."""
    xs = subterm(program, path)
    if not _has_constant_sizes(xs.type):
        return []
    lengths: list[int] = []

    def copied(t: Term) -> Term:
        if not isinstance(t.type, Array):
            return t
        lengths.append(length_of(t))
        return map_(copied, t, SEQ, f"{_NAME}{len(lengths) - 1}")

    copy = copied(xs)
    try:
        found = accesses(plain_kernels(_replaced(program, path, copy)))
    except LithifyError:
        return []
    names = [f"{_NAME}{k}" for k in range(len(lengths))]
    mine = [a for a in found if names[0] in a.strides]
    reads, writes = ([a.strides for a in mine if a.is_store is stores] for stores in (False, True))
    if len(reads) != 1 or len(writes) != 1:
        return []
    return [Dimension(n, reads[0].get(name), writes[0].get(name)) for name, n in zip(names, lengths, strict=True)]


def _replaced(program: Term, path: Path, new: Term) -> Term:
    if not path:
        return new
    arguments = list(program.args)
    arguments[path[0]] = _replaced(arguments[path[0]], path[1:], new)
    return program.with_args(tuple(arguments))
