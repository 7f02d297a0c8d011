"""Sums that are straight code, each a chain in which every step waits for the one before, and that can take turns.

The lines of a stencil's block are such chains. One after another they would each hold up the processor, which looks
only so far ahead, and what they read in common would be out of its registers before the next one reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.kernel import ir
from lithify.targets.cpu.analysis import uses

# Shorter ones are looked through at a glance.
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class _Chain:
    """A vector statement that adds up in private memory of its `own`, step by step, what it stores in the end."""

    statement: ir.Lanes
    own: ir.Buffer
    result: ir.Buffer
    read: frozenset[ir.Buffer]

    def takes_turns_with(self, other: _Chain) -> bool:
        """Does neither see what the other writes, and have they equally many steps?"""
        apart = not {self.own, self.result} & other.read and not {other.own, other.result} & self.read
        return apart and len(self.statement.body) == len(other.statement.body)


def chains(block: ir.Block) -> dict[int, list[ir.Lanes]]:
    """Runs of neighbouring statements that are chains and can take turns, by the position of the first."""
    found: dict[int, list[ir.Lanes]] = {}
    run: list[_Chain] = []
    for position, statement in enumerate(block):
        chain = _chain(statement)
        if chain is None or not all(chain.takes_turns_with(other) for other in run):
            run = []
        if chain is not None:
            run.append(chain)
        if len(run) > 1:
            found[position - len(run) + 1] = [each.statement for each in run]
    return found


def _chain(statement: ir.Statement) -> _Chain | None:
    if not isinstance(statement, ir.Lanes) or len(statement.body) < _SHORTEST:
        return None
    stores = [s for s in statement.body if isinstance(s, ir.Store)]
    if len(stores) < len(statement.body):
        return None
    own, result = stores[0].buffer, stores[-1].buffer
    read = frozenset(uses((statement,)).read)
    if own.memory.name != "private" or any(s.buffer is not own for s in stores[:-1]) or result is own or result in read:
        return None
    return _Chain(statement, own, result, read)
