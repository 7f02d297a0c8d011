"""Private memory is one work-item's own: what another work-item wrote cannot be read from it.

A map at a hardware level divides its elements among work-items: below map[item0], each writes the element of its own
index. So whoever reads an element of such an array must be the one that wrote it, its index must depend on the hardware
indices in the same way. What can be shown to differ is refused here; the kernel evaluator checks every element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lithify.arith import Expr, Variable
from lithify.kernel import ir
from lithify.kernel.walk import accesses, blocks_of, index_accesses

# The terms of an index that mention hardware indices; None where it depends on them in another way (floor, xor, ..).
_Share = tuple[tuple[object, int], ...] | None


@dataclass(frozen=True, slots=True)
class _Access:
    """An access and the conditions under which it happens."""

    buffer: ir.Buffer
    index: ir.Index
    conditions: ir.Guard

    def __str__(self) -> str:
        return f"{self.buffer}[{', '.join(map(str, self.index))}]"


def missing_exchange(kernel: ir.Kernel) -> str | None:
    """What a work-item reads of private memory that only others have written before; None where nothing is found."""
    hardware = frozenset(kernel.hardware.values())
    if not hardware:
        return None
    written: dict[ir.Buffer, list[_Access]] = {}
    for access, writes in _events(kernel.body, ()):
        if not access.buffer.memory.of_one_item:
            continue
        before = written.setdefault(access.buffer, [])
        if writes:
            before.append(access)
        elif before and not _readable(access, before, hardware):
            stored = " and ".join(dict.fromkeys(map(str, before)))
            return f"explicit exchange needed: {access} is read, and a work-item has written only {stored} of its own"
    return None


def _readable(read: _Access, before: list[_Access], hardware: frozenset[Variable]) -> bool:
    """Can the work-item have written what it reads? A read that the iteration decides may see an earlier one's."""
    if _indices(read.conditions) - hardware:
        return True
    if len(before) == 1 and _by_chosen_ones(before[0], read, hardware):
        return False
    return any(_covers(w, read, hardware) for w in before)


def _events(block: ir.Block, conditions: ir.Guard) -> Iterator[tuple[_Access, bool]]:
    """The accesses in the order of the text, reads of a statement before its write."""
    for statement in block:
        match statement:
            case ir.Store(buffer, index, value, guard) | ir.AtomicUpdate(_, buffer, index, value, guard):
                inner = (*conditions, *guard)
                yield from _reads(index_accesses(guard), conditions)
                yield from _reads(index_accesses(index), inner)
                yield from _value_reads(value, inner)
                yield _Access(buffer, index, inner), True
            case ir.If(guard, body, otherwise):
                yield from _reads(index_accesses(guard), conditions)
                yield from _events(body, (*conditions, *guard))
                yield from _events(otherwise, (*conditions, *guard))  # which variables decide is all that is asked
            case _:
                for body in blocks_of(statement):
                    yield from _events(body, conditions)


def _reads(found: Iterable[tuple[ir.Buffer, ir.Index]], conditions: ir.Guard) -> Iterator[tuple[_Access, bool]]:
    for buffer, index in found:
        yield _Access(buffer, index, conditions), False


def _value_reads(value: ir.Value, conditions: ir.Guard) -> Iterator[tuple[_Access, bool]]:
    match value:
        case ir.Load(buffer, index, guard, fill):
            inner = (*conditions, *guard)
            yield from _reads(index_accesses((*index, *guard)), inner)
            yield _Access(buffer, index, inner), False
            if fill is not None:
                yield from _value_reads(fill, inner)
        case ir.Choose(guard, then, otherwise):
            inner = (*conditions, *guard)
            yield from _reads(index_accesses(guard), inner)
            yield from _value_reads(then, inner)
            yield from _value_reads(otherwise, inner)
        case ir.Apply(_, operands, _):
            for operand in operands:
                yield from _value_reads(operand, conditions)
        case _:
            yield from _reads(accesses(value), conditions)


def _share(e: Expr, hardware: frozenset[Variable]) -> _Share:
    if not e.variables() & hardware:
        return ()
    found = []
    for monomial, coefficient in e.terms:
        if any(atom.variables & hardware for atom in monomial):
            if not all(isinstance(atom, Variable) for atom in monomial):
                return None
            found.append((monomial, coefficient))
    return tuple(found)


def _covers(write: _Access, read: _Access, hardware: frozenset[Variable]) -> bool:
    """Can the elements read be among those that the same work-item wrote?"""
    for w, r in zip(write.index, read.index, strict=True):
        wrote = _share(w, hardware)
        if wrote and (share := _share(r, hardware)) is not None and share != wrote:
            return False
    return True


def _indices(formulas: Iterable[Expr]) -> frozenset[Variable]:
    """The index variables in formulas (sizes are the same for all)."""
    return frozenset([v for e in formulas for v in e.variables() if v.last is not None])


def _by_chosen_ones(write: _Access, read: _Access, hardware: frozenset[Variable]) -> bool:
    """Do only some work-items write, whoever reads?"""
    chosen = [_indices((c,)) for c in write.conditions]
    choosing = frozenset().union(*[variables for variables in chosen if variables <= hardware])
    return bool(choosing) and not choosing & _indices((*read.conditions, *read.index))
