"""The loops that macro rules cut, as trees: which lengths are free, and how long the tiles of each cut are then.

A loop that is cut has a block part and a tile part, which may be cut again. The lengths of the last parts multiply to
that of the tile, so inner tiles always divide outer ones; the outermost part is what a loop's own length leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from lithify.explore.phases.rewritten import Moves
from lithify.lang.term import Term, subterms


@dataclass(frozen=True)
class Cuts:
    """The cuts that some macro rules make."""

    moves: Moves

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """The loops that are cut, in order."""
        return tuple(loop for move in self.moves for loop in move.cut)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts whose lengths are free, in order."""
        ends = [part for loop in self.loops for part in (f"{loop}.block", f"{loop}.tile") if part not in self.loops]
        return tuple(part for part in ends if not self.is_rest(part))

    def are_in(self, program: Term) -> bool:
        """Has a program a loop for every open length? (A loop that is fused after it was cut leaves none.)"""
        names = {t["name"] for t in subterms(program) if t.kind in ("map", "reduce", "scan")}
        lanes = {f"{name.removesuffix('.lane')}.tile" for name in names if name and name.endswith(".lane")}
        return names.union(lanes).issuperset(self.parts)

    @staticmethod
    def is_rest(part: str) -> bool:
        """Is a part what the loop's own length leaves: block of block .. of a whole loop?"""
        return all(word == "block" for word in part.split(".")[1:])

    def tile(self, loop: str, values: Mapping[str, int]) -> int:
        """How long the tiles of a loop are that is cut."""
        return self._length(f"{loop}.tile", values)

    def _length(self, part: str, values: Mapping[str, int]) -> int:
        if part in self.loops:
            return self._length(f"{part}.block", values) * self._length(f"{part}.tile", values)
        return values[part]

    @cached_property
    def roots(self) -> dict[str, tuple[str, ...]]:
        """The loops of the original program that are cut, each with its free parts: they multiply to its tile."""
        found: dict[str, tuple[str, ...]] = {}
        for part in self.parts:
            root = part.partition(".")[0]
            found[root] = (*found.get(root, ()), part)
        return found
