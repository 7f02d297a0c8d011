"""Vector statements that follow one another are one block of lanes: lines of a strip, registers of a tile.

Lanes go through a block together, statement by statement, so nothing changes. What the blocks have in common is in
sight of the other passes then. Blocks that read nothing (fills) have nothing in common, and stay apart; so do all where
work-items may have to wait for each other between two blocks.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.kernel import ir
from lithify.kernel.walk import Substitution, reads_of, statements, with_blocks


def join_lanes(program: ir.Program) -> ir.Program:
    """The program with neighbouring blocks of as many lanes joined."""
    kernels = [k if k.hardware else replace(k, body=_block(k.body)) for k in program.kernels]
    return replace(program, kernels=tuple(kernels))


def _block(block: ir.Block) -> ir.Block:
    joined: list[ir.Statement] = []
    for statement in block:
        new = with_blocks(statement, _block)
        last = joined[-1] if joined else None
        if isinstance(new, ir.Lanes) and isinstance(last, ir.Lanes) and _may_share(last, new):
            renamed = Substitution({new.variable: last.variable.expr}).block(new.body)
            joined[-1] = replace(last, body=(*last.body, *renamed))
        else:
            joined.append(new)
    return tuple(joined)


def _may_share(a: ir.Lanes, b: ir.Lanes) -> bool:
    return a.width == b.width and _reads(a) and _reads(b)


def _reads(lanes: ir.Lanes) -> bool:
    return any(True for statement in statements(lanes.body) for _ in reads_of(statement))
