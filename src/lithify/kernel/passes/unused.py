"""Dead code: stores to memory of the program's own that nothing reads."""

from __future__ import annotations

from dataclasses import replace

from lithify.kernel import ir
from lithify.kernel.walk import blocks_of, reads_of, statements, with_blocks


def drop_unused(program: ir.Program) -> ir.Program:
    """The program without stores to scratch and temporary buffers that no statement reads, and without these buffers.

    Reads by a store to memory that is not read itself do not count: what only such stores read is dropped as well, and
    so are sums that nobody asks for. Of private arrays, elements that no statement reads go by themselves. Loops and
    conditionals that are empty then go too, and so do kernels; repeated, because they read too.
    """
    while True:
        found = [(s, list(reads_of(s))) for kernel in program.kernels for s in statements(kernel.body)]
        stores = [s for s, _ in found if isinstance(s, ir.Store | ir.AtomicUpdate)]
        dead = frozenset(s.buffer for s in stores if s.buffer.role != "output") - _read(found)
        elements = _elements_read(found)
        unread = {id(s) for s in stores if s.buffer in dead or _is_unread(s, elements)}
        if not unread:
            return program
        kernels = [_without(kernel, unread, dead) for kernel in program.kernels]
        temporaries = tuple([b for b in program.temporaries if b not in dead])
        program = replace(program, kernels=tuple([k for k in kernels if k.body]), temporaries=temporaries)


# Statements, each with what it reads itself.
_Reads = list[tuple[ir.Statement, list[tuple[ir.Buffer, ir.Index]]]]


def _read(all_reads: _Reads) -> set[ir.Buffer]:
    """The buffers that outputs and control depend on."""
    found: set[ir.Buffer] = set()
    sources: dict[ir.Buffer, set[ir.Buffer]] = {}  # what is read for what is stored in a buffer
    for statement, accesses in all_reads:
        reads = {buffer for buffer, _ in accesses}
        if isinstance(statement, ir.Store | ir.AtomicUpdate) and statement.buffer.role != "output":
            sources.setdefault(statement.buffer, set()).update(reads)
            continue
        found |= reads
    pending = list(found)
    while pending:
        new = sources.pop(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


# Of a private array, the indices at which it is read: their constants, None where one is no constant.
_Elements = dict[ir.Buffer, set[tuple[int | None, ...]]]


def _elements_read(all_reads: _Reads) -> _Elements:
    found: _Elements = {}
    for _, accesses in all_reads:
        for buffer, index in accesses:
            if buffer.memory.name == "private":
                found.setdefault(buffer, set()).add(tuple([e.constant for e in index]))
    return found


def _is_unread(store: ir.Store | ir.AtomicUpdate, read: _Elements) -> bool:
    """Does a store write an element of a private array that every read of the array leaves out?"""
    elements = read.get(store.buffer)
    own = tuple([e.constant for e in store.index])
    if elements is None or own in elements or isinstance(store, ir.AtomicUpdate):
        return False
    return all(any(None not in (a, b) and a != b for a, b in zip(own, each, strict=True)) for each in elements)


def _without(kernel: ir.Kernel, unread: set[int], dead: frozenset[ir.Buffer]) -> ir.Kernel:
    scratch = tuple([b for b in kernel.scratch if b not in dead])
    return replace(kernel, body=_block(kernel.body, unread), scratch=scratch)


def _block(block: ir.Block, unread: set[int]) -> ir.Block:
    kept: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, ir.Store | ir.AtomicUpdate):
            if id(statement) not in unread:
                kept.append(statement)
            continue
        inner = with_blocks(statement, lambda b: _block(b, unread))
        if not blocks_of(statement) or any(blocks_of(inner)):
            kept.append(inner)
    return tuple(kept)
