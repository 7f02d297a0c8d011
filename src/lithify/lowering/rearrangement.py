"""Copies that change the order of dimensions: square tiles, so that both sides of the copy are contiguous.

Where memory is read along one dimension and written along another, any order of loops meets a new line of memory at
each step on one side. A tile of w x w elements is read along the first, kept in registers, and written along the other.
The other dimensions are loops around the tiles, the longest outermost.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.build import map_
from lithify.lang.errors import LithifyError
from lithify.lang.levels import PRIVATE, SEQ, UNROLL, VEC, Level
from lithify.lang.term import Term
from lithify.lang.types import Array, Type
from lithify.lowering.access import accesses
from lithify.lowering.needs import Path, is_scalar, subterm
from lithify.lowering.plain import plain_kernels
from lithify.lowering.work import length_of
from lithify.rewrite import Strategy, at
from lithify.rules.lowering import copy_exchanged, copy_loop, copy_parts, copy_tiles, exchange, exchange_inside

_NAME = "copied"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of what is copied: its length, and the distances in memory of neighbours where it is read, written."""

    length: int
    read: int | None
    written: int | None


def tiles(program: Term, path: Path, width: int, level: Level) -> Strategy | None:
    """The copy of the array at `path` in tiles of `width` x `width`, with `level` for its outermost loop.

    None where it is read and written along the same dimension, or has no `width` elements along one of the two.
    """
    xs = subterm(program, path)
    if not _has_constant_sizes(xs.type):
        return None
    dimensions = _dimensions(program, path)
    read = [d for d in dimensions if d.read == 1 and d.length > 1]
    written = [d for d in dimensions if d.written == 1 and d.length > 1]
    if not read or not written or read == written or min(read[0].length, written[0].length) < width:
        return None
    return _loops(dimensions, (read[0], written[0]), width, level)


def _loops(dimensions: list[Dimension], plane: tuple[Dimension, Dimension], width: int, level: Level) -> Strategy:
    """Loops over the dimensions beside the plane, then tiles."""
    others = [k for k, d in enumerate(dimensions) if d not in plane]
    if not others:
        return _plane(dimensions[0].length, dimensions[1].length, dimensions[0] is plane[0], width, level)
    place = max((k for k in others if k < 3), key=lambda k: dimensions[k].length)
    below = _loops(dimensions[:place] + dimensions[place + 1 :], plane, width, SEQ)
    if place == 0:
        return copy_loop(level) >> at((0, 0), below)
    exchanged_loop = copy_exchanged(level) >> at((0, 0, 0), below)
    return exchanged_loop if place == 1 else exchange_inside >> at((1,), exchanged_loop)


def _plane(rows: int, columns: int, reads_rows: bool, width: int, level: Level) -> Strategy:
    """Tiles of a matrix that is read along its first dimension; of its transpose if it is read along the second."""
    if not reads_rows:
        return exchange >> at((0,), _plane(columns, rows, True, width, level))
    if rows % width:
        whole = rows // width * width
        return copy_parts(whole) >> at((0,), _plane(whole, columns, True, width, level))
    if columns % width:
        whole = columns // width * width
        inner = at((0,), exchange >> at((0,), _plane(rows, whole, True, width, level)))
        return exchange >> at((0,), copy_parts(whole) >> inner)
    return copy_tiles(level, width, PRIVATE, (UNROLL, VEC))


def _has_constant_sizes(type_: Type) -> bool:
    while isinstance(type_, Array):
        if type_.size.constant is None:
            return False
        type_ = type_.element
    return True


def _dimensions(program: Term, path: Path) -> list[Dimension]:
    """What the plainest copy at `path` does; empty where there is none (the program cannot be lowered plainly)."""
    xs = subterm(program, path)
    lengths: list[int] = []

    def copied(t: Term) -> Term:
        if is_scalar(t.type):
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
    return [
        Dimension(n, reads[0].get(name), writes[0].get(name)) for name, n in zip(names, lengths, strict=True)
    ]


def _replaced(program: Term, path: Path, new: Term) -> Term:
    if not path:
        return new
    arguments = list(program.args)
    arguments[path[0]] = _replaced(arguments[path[0]], path[1:], new)
    return program.with_args(tuple(arguments))
