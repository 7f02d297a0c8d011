"""Dead code: stores to memory of the program's own that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lithify.kernel import ir
from lithify.kernel.walk import blocks_of, index_accesses, reads_of, statements, with_blocks


def drop_unused(program: ir.Program) -> ir.Program:
    """The program without stores to scratch and temporary buffers that no statement reads, and without these buffers.

    Reads by a store to memory that is not read itself do not count: what only such stores read is dropped as well, and
    so are sums that nobody asks for. Loops and conditionals that are empty then go too, and so do kernels; repeated,
    because they read too.
    """
    while True:
        blocks = [kernel.body for kernel in program.kernels]
        dead = frozenset(b for block in blocks for b in _written(block) if b.role != "output") - _read(blocks)
        if not dead:
            return program
        kernels = [_without(kernel, dead) for kernel in program.kernels]
        temporaries = tuple([b for b in program.temporaries if b not in dead])
        program = replace(program, kernels=tuple([k for k in kernels if k.body]), temporaries=temporaries)


def _written(block: ir.Block) -> Iterator[ir.Buffer]:
    yield from (s.buffer for s in statements(block) if isinstance(s, ir.Store | ir.AtomicUpdate))


def _read(blocks: list[ir.Block]) -> set[ir.Buffer]:
    """The buffers that outputs and control depend on."""
    found: set[ir.Buffer] = set()
    sources: dict[ir.Buffer, set[ir.Buffer]] = {}  # what is read for what is stored in a buffer
    for statement in (s for block in blocks for s in statements(block)):
        reads = {buffer for buffer, _ in reads_of(statement)}
        if isinstance(statement, ir.Store | ir.AtomicUpdate) and statement.buffer.role != "output":
            sources.setdefault(statement.buffer, set()).update(reads)
            continue
        found |= reads
        if isinstance(statement, ir.Loop):
            found.update(buffer for buffer, _ in index_accesses((statement.extent,)))
    pending = list(found)
    while pending:
        new = sources.pop(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


def _without(kernel: ir.Kernel, dead: frozenset[ir.Buffer]) -> ir.Kernel:
    scratch = tuple([b for b in kernel.scratch if b not in dead])
    return replace(kernel, body=_block(kernel.body, dead), scratch=scratch)


def _block(block: ir.Block, dead: frozenset[ir.Buffer]) -> ir.Block:
    kept: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, ir.Store | ir.AtomicUpdate):
            if statement.buffer not in dead:
                kept.append(statement)
            continue
        inner = with_blocks(statement, lambda b: _block(b, dead))
        if not blocks_of(statement) or any(blocks_of(inner)):
            kept.append(inner)
    return tuple(kept)
