"""The loops of a program, by name, and how each walks through memory.

Rules carry the names of loops over (`i` becomes `i.block` and `i.tile`), so what was found for a loop of the program as
it was written holds for the loops that rules make of it.
"""

from __future__ import annotations

from itertools import count

from lithify.kernel import ir
from lithify.lang.term import Term, subterms
from lithify.lowering.access import Reuse, Walk, accesses, borders_of, reuse_of, walk_of

_LOOPS = frozenset({"map", "reduce", "scan"})


def name_loops(term: Term) -> Term:
    """The program with a name for every loop that has none: l0, l1, .. (names have no meaning; rules ignore them)."""
    taken = {t["name"] for t in subterms(term) if t.kind in _LOOPS}
    fresh = (name for name in (f"l{k}" for k in count()) if name not in taken)

    done: dict[int, Term] = {}

    def named(t: Term) -> Term:
        found = done.get(t.id)
        if found is None:
            found = t.with_args(tuple(named(a) for a in t.args))
            if found.kind in _LOOPS and found["name"] is None:
                found = found.replace(name=next(fresh))
            done[t.id] = found
        return found

    return named(term)


class Loops:
    """How the named loops of a program move through memory, read off its plainly lowered kernels."""

    def __init__(self, program: ir.Program | None) -> None:
        self._accesses = found = [] if program is None else accesses(program)
        names = {n for access in found for n in access.strides}
        self._walks = {name: walk_of(name, found) for name in names}
        self._borders = {name: borders_of(name, found) for name in names}

    def walk(self, loop: Term) -> Walk | None:
        """How a loop, or the one of the original program that it was made of, moves; None when it is not known."""
        return self._walks.get(self._original(loop))

    def reuse(self, loop: Term) -> Reuse | None:
        """What consecutive iterations of a loop read in common; None where it is not known, or goes from block to
        block."""
        name = self._original(loop)
        return None if name not in self._walks or self.is_over_blocks(loop) else reuse_of(name, self._accesses)

    def is_over_blocks(self, loop: Term) -> bool:
        """Does the loop go from block to block of the original loop's iterations, further than its walk says?"""
        name: str = loop["name"] or ""
        return "block" in name.removeprefix(self._original(loop)).split(".")

    def borders(self, loop: Term) -> tuple[int, int]:
        """How many iterations at either end of a loop of the original program meet padding; (0, 0) for other loops."""
        return self._borders.get(loop["name"] or "", (0, 0))

    def _original(self, loop: Term) -> str:
        name: str = loop["name"] or ""
        while name and name not in self._walks:
            name = name.rpartition(".")[0]
        return name
