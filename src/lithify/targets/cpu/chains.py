"""Sums that are straight code, each a chain in which every step waits for the one before, and that can take turns.

The lines of a stencil's block are such chains. One after another they would each hold up the processor, which looks
only so far ahead, and what they read in common would be out of its registers before the next one reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lithify.kernel import ir
from lithify.kernel.walk import read_in

# Shorter ones are looked through at a glance.
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class _Chain:
    """Stores that add up in private memory of their `own`, step by step, then one of the result, made from it."""

    steps: tuple[ir.Store, ...]
    own: ir.Buffer
    result: ir.Buffer
    read: frozenset[ir.Buffer]

    def takes_turns_with(self, later: _Chain) -> bool:
        """Does neither see or overwrite what the other writes, and have they equally many steps?

        Both may store their results in one buffer: that is the last step of each, and these keep their order.
        """
        apart = not {self.own, self.result} & later.read and not {later.own, later.result} & self.read
        return apart and len(self.steps) == len(later.steps)


def in_turn(block: ir.Block) -> ir.Block:
    """The block in which chains that follow one another take turns, a step of each, where nothing comes of it."""
    ordered: list[ir.Statement] = []
    run: list[_Chain] = []
    for piece in _pieces(block):
        if not isinstance(piece, _Chain):
            ordered += _in_turn(run)
            ordered.append(piece)
            run = []
        elif all(chain.takes_turns_with(piece) for chain in run):
            run.append(piece)
        else:
            ordered += _in_turn(run)
            run = [piece]
    return (*ordered, *_in_turn(run))


def _in_turn(chains: list[_Chain]) -> Iterator[ir.Store]:
    return (step for steps in zip(*[chain.steps for chain in chains], strict=True) for step in steps)


def _pieces(block: ir.Block) -> Iterator[_Chain | ir.Statement]:
    """The chains of a block, and the statements that are no part of one."""
    run: list[ir.Store] = []  # to one private buffer
    for statement in block:
        if isinstance(statement, ir.Store) and run and statement.buffer is run[0].buffer:
            run.append(statement)
        elif isinstance(statement, ir.Store) and len(run) + 1 >= _SHORTEST and run[0].buffer in read_in((statement,)):
            yield _Chain((*run, statement), run[0].buffer, statement.buffer, read_in((*run, statement)))
            run = []
        else:
            yield from run
            run = []
            if isinstance(statement, ir.Store) and statement.buffer.memory.name == "private":
                run.append(statement)
            else:
                yield statement
    yield from run
