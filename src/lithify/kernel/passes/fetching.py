"""What a group waits long for is asked for at once: all loads of a run of statements before the first that needs one.

    t := t + p[i]; t := t + p[i + 9]; ..    ->    f[0] := p[i]; f[1] := p[i + 9]; ..; t := t + f[0]; t := t + f[1]; ..

Compilers do that by themselves, but not where memory is volatile.
"""

from __future__ import annotations

from collections.abc import Set
from functools import partial

from lithify.arith import Variable, const
from lithify.kernel import ir
from lithify.kernel.walk import Rewriting, index_accesses, parts, with_blocks
from lithify.lang.levels import PRIVATE
from lithify.lang.scalars import Scalar

# Elements that an item fetches at a time: they must stay in registers.
AT_ONCE = 16


def fetch_first(block: ir.Block, buffers: Set[ir.Buffer], own: list[ir.Buffer]) -> ir.Block:
    """The block with its loads from `buffers`, which it does not write, early; `own` collects the memory for them."""
    return _fetching(_Memory(own), buffers, None, 1, block)


class _Memory:
    """Where loads that are under way go, by type; memory of `width` lanes is the same for all vectors so wide."""

    def __init__(self, own: list[ir.Buffer]) -> None:
        self._own = own
        self._known: dict[tuple[Scalar, int], ir.Buffer] = {}

    def place(self, scalar: Scalar, number: int, lane: Variable | None, width: int) -> tuple[ir.Buffer, ir.Index]:
        own = () if lane is None else (lane.expr,)
        buffer = self._known.get((scalar, width))
        if buffer is None:
            shape = (const(AT_ONCE), *[const(width) for _ in own])
            buffer = ir.Buffer("fetched", scalar, shape, PRIVATE, "scratch", scalar.bytes)
            self._known[scalar, width] = buffer
            self._own.append(buffer)
        return buffer, (const(number), *own)


def _fetching(memory: _Memory, buffers: Set[ir.Buffer], lane: Variable | None, width: int, block: ir.Block) -> ir.Block:
    result: list[ir.Statement] = []
    run: list[ir.Store] = []
    under_way = 0

    def end() -> None:
        nonlocal under_way
        result.extend(_Early(memory, buffers, lane, width).run(run) if under_way > 1 else run)
        run.clear()
        under_way = 0

    for statement in block:
        # Stores to private memory: none changes what another one fetches.
        if isinstance(statement, ir.Store) and statement.buffer.memory.name == "private" and not statement.guard:
            loads = sum(1 for part in parts(statement.value) if _is_fetched(part, buffers))
            if (under_way + loads) * width > AT_ONCE:
                end()
            if loads * width <= AT_ONCE:
                run.append(statement)
                under_way += loads
                continue
        end()
        inside = (statement.variable, statement.width) if isinstance(statement, ir.Lanes) else (lane, width)
        result.append(with_blocks(statement, partial(_fetching, memory, buffers, *inside)))
    end()
    return tuple(result)


class _Early(Rewriting):
    """One run of statements."""

    def __init__(self, memory: _Memory, buffers: Set[ir.Buffer], lane: Variable | None, width: int) -> None:
        self._memory, self._buffers, self._lane, self._width = memory, buffers, lane, width
        self._fetches: list[ir.Statement] = []

    def run(self, stores: list[ir.Store]) -> list[ir.Statement]:
        changed = [ir.Store(s.buffer, s.index, self.value(s.value)) for s in stores]
        return [*self._fetches, *changed]

    def value(self, value: ir.Value) -> ir.Value:
        if not isinstance(value, ir.Load) or not _is_fetched(value, self._buffers):
            return super().value(value)
        place = self._memory.place(value.scalar, len(self._fetches), self._lane, self._width)
        self._fetches.append(ir.Store(*place, value))
        return ir.Load(*place)


def _is_fetched(part: ir.Load | ir.Apply, buffers: Set[ir.Buffer]) -> bool:
    """Is it a load from one of the buffers, of which nothing that is computed decides what it loads?"""
    if not isinstance(part, ir.Load) or part.buffer not in buffers:
        return False
    computed = any(True for _ in index_accesses((*part.index, *part.guard)))
    return not computed and (not part.guard or isinstance(part.fill, ir.Constant))
