"""Updates of memory that one thread or work-item has to itself are plain stores: nobody else could come in between.

That is faster, lanes can do it (each has an element of its own), and it works for types that devices cannot update
indivisibly.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.kernel import ir
from lithify.kernel.conditions import guard_loads
from lithify.kernel.walk import with_blocks


def store_own_updates(program: ir.Program) -> ir.Program:
    """The program with indivisible updates of memory that others see only."""
    return replace(program, kernels=tuple([replace(k, body=_block(k.body)) for k in program.kernels]))


def _block(block: ir.Block) -> ir.Block:
    return tuple([_statement(statement) for statement in block])


def _statement(statement: ir.Statement) -> ir.Statement:
    if not isinstance(statement, ir.AtomicUpdate):
        return with_blocks(statement, _block)
    buffer, index, guard = statement.buffer, statement.index, statement.guard
    if buffer.role != "scratch" or not buffer.memory.of_one_item:
        return statement
    old = guard_loads(ir.Load(buffer, index), guard)
    return ir.Store(buffer, index, ir.Apply(statement.operator, (old, statement.value), buffer.scalar), guard)
