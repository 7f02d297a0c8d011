"""The first phase: the programs that macro rules make of a high-level program, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lithify.explore.phases import filters
from lithify.explore.phases.macros import MACROS, Macro
from lithify.explore.phases.shape import nests
from lithify.lang.errors import RewriteFailed
from lithify.lang.term import Term
from lithify.lowering.work import is_constant, length_of
from lithify.rewrite import Context, Failure

# Lengths of tiles while their number is open: each level of tiles has one that divides those above it.
_REPRESENTATIVE = (64, 16, 4, 2)


@dataclass(frozen=True, order=True)
class Move:
    """A macro rule at loops of a program, which it names from the outside in."""

    macro: str
    loops: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.macro}:{'+'.join(self.loops)}"

    @staticmethod
    def parse(text: str) -> Move:
        """Read `macro:loop+loop`. Raises RewriteFailed for anything else."""
        macro, _, loops = text.partition(":")
        if macro not in MACROS or len(loops.split("+")) != MACROS[macro].depth:
            raise RewriteFailed(f"{text!r} is no macro rule at loops")
        return Move(macro, tuple(loops.split("+")))

    @property
    def rule(self) -> Macro:
        """The macro rule."""
        return MACROS[self.macro]

    @property
    def cut(self) -> tuple[str, ...]:
        """The loops that it cuts into blocks."""
        return self.loops[: self.rule.cuts]


Moves = tuple[Move, ...]


@dataclass(frozen=True)
class Rewritten:
    """A program, and the macro rules that lead to it."""

    moves: Moves
    term: Term


def representative(loop: str) -> int:
    """The length of a tile of a loop while it is open, by how deep the loop lies in tiles."""
    return _REPRESENTATIVE[min(loop.split(".").count("tile"), len(_REPRESENTATIVE) - 1)]


def apply(move: Move, term: Term, sizes: Callable[[str], int], context: Context) -> Term | None:
    """The program after a move that cuts each loop into tiles of `sizes(loop)`; None where it does not apply."""
    lengths = tuple(sizes(loop) for loop in move.cut)
    try:
        result = move.rule.make(move.loops, lengths).run(term, context)
    except RewriteFailed:  # it would not come to an end
        return None
    return None if isinstance(result, Failure) or result is term else result


def possible_moves(term: Term, cut: frozenset[str] = frozenset()) -> Iterator[Move]:
    """The moves that may apply to a program, by the kinds and the nesting of its loops; `cut` are cut already."""
    seen: set[Move] = set()
    for nest in nests(term):
        for macro in MACROS.values():
            if nest.loop.kind != macro.kind or len(nest.inside) < macro.depth - 1:
                continue
            names = nest.names(macro.depth)
            move = Move(macro.name, names)
            if None in names or move in seen or len(set(names)) < len(names):
                continue
            seen.add(move)
            if macro.cuts and not cut.isdisjoint(names[: macro.cuts]):
                continue
            loops = (nest.loop, *nest.inside)[: macro.cuts]
            if all(is_constant(t.args[-1]) and length_of(t.args[-1]) >= filters.SHORTEST.limit for t in loops):
                yield move


def enumerate_programs(
    program: Term, longest: int, repeated: int, most: int, progress: Callable[[int], None]
) -> Iterator[Rewritten]:
    """Every program within `longest` macro rules, shortest first, each once; the given one first.

    A macro rule is applied `repeated` times at most to the parts of a loop of the original program. Programs are the
    same when they are the same term: terms are shared, so that is one comparison. `progress` is told how many there
    are; what it raises ends the enumeration.
    """
    found = {program.id: Rewritten((), program)}
    layer = [found[program.id]]
    yield layer[0]
    context = Context()
    for _ in range(longest):
        reached: list[Rewritten] = []
        for before in layer:
            used = Counter((m.macro, _root(m.loops[0])) for m in before.moves)
            cut = frozenset(loop for m in before.moves for loop in m.cut)
            for move in possible_moves(before.term, cut):
                if used[move.macro, _root(move.loops[0])] >= repeated:
                    continue
                term = apply(move, before.term, representative, context)
                if term is None or term.id in found:
                    continue
                found[term.id] = each = Rewritten((*before.moves, move), term)
                reached.append(each)
                progress(len(found))
                yield each
                if len(found) >= most:
                    return
        layer = reached


def _root(loop: str) -> str:
    """The loop of the original program that a loop is a part of."""
    return loop.partition(".")[0]
