"""Is accumulation in place right? `f acc x` is written over acc, so a store to acc[i] may read acc only at i.

Decided by identity of index normal forms, on the statements that the body became.
"""

from __future__ import annotations

from collections.abc import Iterable

from lithify.arith import var
from lithify.kernel import ir
from lithify.kernel.walk import blocks_of, reads_of, statements

Access = tuple[ir.Buffer, ir.Index]


def conflict(body: Iterable[ir.Statement], buffers: frozenset[ir.Buffer]) -> tuple[Access, Access] | None:
    """A store to an accumulator and a read of another of its elements that the store may have changed, or None."""
    written: list[Access] = []
    for statement in body:
        if isinstance(statement, ir.Store):
            own = (statement.buffer, statement.index)
            for read in reads_of(statement):
                if read[0] in buffers and not _same(read, own):
                    if statement.buffer is read[0]:
                        return own, read
                    for earlier in written:
                        if not _disjoint(earlier, read):
                            return earlier, read
            if statement.buffer in buffers:
                written.append(own)
            continue
        found = _in_loop(statement, buffers) if blocks_of(statement) else None
        if found is not None:
            return found
        for inner in statements((statement,)):
            updated = (inner.buffer, inner.index) if isinstance(inner, ir.Store) else None
            for read in reads_of(inner):
                if updated is not None and _same(read, updated):
                    continue
                for earlier in written:
                    if not _same(earlier, read) and not _disjoint(earlier, read):
                        return earlier, read
        written += _stores((statement,), buffers)
    return None


def _in_loop(statement: ir.Statement, buffers: frozenset[ir.Buffer]) -> tuple[Access, Access] | None:
    """Inside a repeated block, a read must be of an element that the same block stores, or that no other iteration
    does: others may come earlier."""
    stores = _stores((statement,), buffers)
    repeated = not isinstance(statement, ir.If)
    if stores and repeated:
        for inner in statements((statement,)):
            for read in reads_of(inner):
                if read[0] in buffers and not any(_same(read, store) for store in stores):
                    for store in stores:
                        if store[0] is read[0] and not _only_in_one_iteration(statement, store, read):
                            return store, read
    for block in blocks_of(statement):
        found = conflict(block, buffers)
        if found is not None:
            return found
    return None


def _only_in_one_iteration(statement: ir.Statement, store: Access, read: Access) -> bool:
    """Do a store and a read inside of a loop meet the same element in one and the same iteration alone?

    So it is where some index is c l + rest in both, for the loop's variable l, and the rests differ by less than c.
    """
    if not isinstance(statement, ir.Loop | ir.Lanes):
        return False
    inside = {s.variable for s in statements((statement,)) if isinstance(s, ir.Loop | ir.Lanes)}
    later = {v: var(f"{v.name}_later", v.extent) for v in inside if v.extent is not None}
    own = statement.variable
    for stored, loaded in zip(store[1], read[1], strict=True):
        c, d = stored.coefficient(own), loaded.coefficient(own)
        if c is None or c == 0 or c != d:
            continue
        rest = (stored - c * own.expr) - (loaded - c * own.expr).substitute(later)
        if -abs(c) < rest.lo and rest.hi < abs(c):
            return True
    return False


def _stores(block: ir.Block, buffers: frozenset[ir.Buffer]) -> list[Access]:
    return [(s.buffer, s.index) for s in statements(block) if isinstance(s, ir.Store) and s.buffer in buffers]


def _disjoint(a: Access, b: Access) -> bool:
    """Are they certainly different elements, whatever the loop variables are?"""
    if a[0] is not b[0]:
        return True
    differences = [x - y for x, y in zip(a[1], b[1], strict=True)]
    return any(d.lo > 0 or d.hi < 0 for d in differences)


def _same(a: Access, b: Access) -> bool:
    return a[0] is b[0] and a[1] == b[1]
