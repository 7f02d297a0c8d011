"""Lanes as parts of aligned blocks of memory.

Where many items run side by side, one that loads a vector from an address that is no multiple of its size loads its
elements one by one. Aligned vectors that the elements lie in are loaded whole, and windows that overlap share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from lithify.arith import Expr
from lithify.kernel.ir import Buffer, Kernel
from lithify.targets.cdialect.dialect import Dialect


class Part(NamedTuple):
    """Consecutive lanes: components `first` .. of the aligned vector at `start`; or, without them, one lane there."""

    start: Expr
    first: int | None
    lanes: int


def readable_block(kernel: Kernel, buffer: Buffer, alignment: int, written: bool, dialect: Dialect) -> int:
    """How long blocks may be that an item reads although it needs some of their elements only, aligned as long.

    Whole blocks must lie in the buffer, and nothing may change their other elements. 1 where an item is alone in its
    group, as on CPUs: these read vectors from any address.
    """
    alone = all(extent.constant == 1 for extent in kernel.group)
    if written or alone or buffer.role == "scalar" or buffer.scalar in dialect.storage:
        return 1
    return gcd(buffer.count.alignment, max(1, alignment // buffer.scalar.bytes))


def parts_of(positions: Sequence[Expr], width: int) -> list[Part]:
    """The positions of all lanes as parts of aligned vectors of `width`; lanes of unknown alignment are alone."""
    placed = [_placed(position, width) for position in positions]
    found: list[Part] = []
    lane = 0
    while lane < len(placed):
        start, first = placed[lane]
        end = lane + 1
        while first is not None and end < len(placed) and placed[end] == (start, first + end - lane):
            end += 1
        found.append(Part(start, first, end - lane))
        lane = end
    return found


def _placed(position: Expr, width: int) -> tuple[Expr, int | None]:
    """The aligned vector that an element lies in, and its place there; None where that is not known."""
    first = position.offset % width
    start = position - first
    return (start, first) if start.alignment % width == 0 else (position, None)
