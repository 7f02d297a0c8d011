"""What a mapped program takes, as products of its open lengths: so that thousands of points cost one derivation.

The program is derived once with a prime for each open length, larger than any of its loops; then the prime factors of
a size say which lengths it is made of. A dimension of 1 is what is left of a loop whose tile is longer than the loop:
it stands for the number of tiles, of whichever of the loops in question has more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from lithify.explore.phases.sizes import Cuts
from lithify.lang.levels import PAR, PRIVATE, UNROLL, VEC, LevelKind
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term
from lithify.lang.types import Array, Type, shape_of
from lithify.lowering.work import count, length_of

Lengths = NDArray[np.float64]
# Memories that are small: of a thread, or of a group.
_SCRATCH = ("thread", "local")


def primes(cuts: Cuts, extents: Mapping[str, int]) -> dict[str, int]:
    """A prime for each open length, larger than the extents of all loops."""
    found: dict[str, int] = {}
    number = max([*extents.values(), 2]) + 1
    for part in cuts.parts:
        while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
            number += 1
        found[part] = number
        number += 1
    return found


@dataclass(frozen=True)
class Product:
    """`constant` times the lengths `parts`, and `times` over the number of tiles of one of the loops `tiles`."""

    constant: int
    parts: tuple[int, ...]
    tiles: tuple[str, ...] = ()
    times: int = 0

    def of(self, lengths: Lengths, tiles: Mapping[str, Lengths]) -> Lengths:
        """The product for each row of lengths."""
        result = np.full(lengths.shape[0], float(self.constant))
        for part in self.parts:
            result = result * lengths[:, part]
        if self.tiles and self.times:
            result = result * np.max([tiles[loop] for loop in self.tiles], axis=0) ** self.times
        return result


@dataclass(frozen=True)
class Anatomy:
    """Accumulators and packed operands in bytes; the straight code and its lanes; the loops that run in parallel."""

    cuts: Cuts
    extents: Mapping[str, int]
    registers: tuple[Product, ...]
    scratch: tuple[Product, ...]
    straight: tuple[Product, ...]
    lanes: tuple[Product, ...]
    parallel: tuple[Product, ...]
    items: tuple[Product, ...]

    def tiles(self, lengths: Lengths) -> dict[str, Lengths]:
        """How many tiles each loop of the original program has."""
        found = {}
        for root, extent in self.extents.items():
            tile = np.ones(lengths.shape[0])
            for part in self.cuts.roots.get(root, ()):
                tile = tile * lengths[:, self.cuts.parts.index(part)]
            found[root] = np.ceil(extent / tile)
        return found

    def padding(self, lengths: Lengths) -> Lengths:
        """Iterations that padding adds, as a share of what there is to do."""
        result = np.ones(lengths.shape[0])
        for root, number in self.tiles(lengths).items():
            tile = np.ones(lengths.shape[0])
            for part in self.cuts.roots.get(root, ()):
                tile = tile * lengths[:, self.cuts.parts.index(part)]
            result = result * number * tile / self.extents[root]
        return result - 1.0

    def total(self, products: Sequence[Product], lengths: Lengths) -> Lengths:
        """The sum of products for each row of lengths."""
        tiles = self.tiles(lengths)
        result: Lengths = np.sum([np.zeros(lengths.shape[0]), *[p.of(lengths, tiles) for p in products]], axis=0)
        return result

    def product(self, products: Sequence[Product], lengths: Lengths) -> Lengths:
        """The product of products for each row of lengths."""
        tiles = self.tiles(lengths)
        result: Lengths = np.prod([np.ones(lengths.shape[0]), *[p.of(lengths, tiles) for p in products]], axis=0)
        return result


def anatomy(cuts: Cuts, extents: Mapping[str, int], mapped: Term) -> Anatomy:
    """Read off a program that was mapped with a prime for each open length; `extents` are those of its own loops."""
    factor = _Factors(cuts, extents)
    registers, scratch, straight, lanes, parallel, items = ([] for _ in range(6))
    for term, around in _loops(mapped):
        if term.kind == "to" and term["memory"].name in _SCRATCH:
            scratch.append(factor.bytes(term.type))
        elif term.kind == "reduce" and term["memory"] == PRIVATE and isinstance(term.type, Array):
            registers.append(factor.bytes(term.type))
        elif term.kind == "map" and term["level"] is not None:
            level = term["level"]
            if level.kind is LevelKind.VECTOR:
                lanes.append(factor.number(length_of(term)))
                inside = [length_of(t) for t in (*around, term) if t.kind == "map" and t["level"] in (UNROLL, VEC)]
                straight.append(factor.numbers(inside))
            elif level == PAR or level.name in ("group", "global"):
                parallel.append(factor.loop(term))
            elif level.name == "item":
                items.append(factor.loop(term))
    parts = (registers, scratch, straight, lanes, parallel, items)
    return Anatomy(cuts, extents, *(tuple(dict.fromkeys(part)) for part in parts))


def _loops(term: Term, around: tuple[Term, ...] = ()) -> Iterator[tuple[Term, tuple[Term, ...]]]:
    """Every loop and memory, with the maps around it."""
    yield term, around
    inside = (*around, term) if term.kind == "map" else around
    for child in term.args:
        yield from _loops(child, inside)


class _Factors:
    def __init__(self, cuts: Cuts, extents: Mapping[str, int]) -> None:
        self.cuts = cuts
        self.primes = list(primes(cuts, extents).values())

    def number(self, size: int) -> Product:
        """A size as a product of lengths."""
        return self.numbers([size])

    def numbers(self, sizes: Sequence[int], constant: int = 1) -> Product:
        """A product of sizes; each that is 1 is the number of tiles of a loop whose parts are among the others."""
        parts: list[int] = []
        ones = 0
        for size in sizes:
            ones += size == 1
            for index, prime in enumerate(self.primes):
                while size % prime == 0:
                    parts.append(index)
                    size //= prime
            constant *= size
        roots = dict.fromkeys(self.cuts.parts[index].partition(".")[0] for index in parts)
        return Product(constant, tuple(sorted(parts)), tuple(roots), ones)

    def bytes(self, type_: Type) -> Product:
        """The bytes of an array."""
        sizes, element = shape_of(type_)
        return self.numbers([count(size) for size in sizes], element.bytes if isinstance(element, Scalar) else 8)

    def loop(self, term: Term) -> Product:
        """The iterations of a loop: its length, or the number of tiles of the loop that it goes over."""
        name = term["name"] or ""
        if Cuts.is_rest(name) and name.partition(".")[0] in self.cuts.roots:
            return Product(1, (), (name.partition(".")[0],), 1)
        return self.number(length_of(term))
