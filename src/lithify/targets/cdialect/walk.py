"""Everything that stands in a statement: its values, index forms and accesses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lithify.arith import Expr, Variable
from lithify.kernel.ir import (
    Apply,
    AtomicUpdate,
    Block,
    Buffer,
    Choose,
    If,
    Index,
    IndexValue,
    Kernel,
    Lanes,
    LastGroup,
    Load,
    Loop,
    Statement,
    Store,
    Value,
)
from lithify.kernel.walk import blocks_of, loaded_in, statements


@dataclass(frozen=True, slots=True)
class Access:
    """One place where a buffer is read or written; `lane` is the variable of the lanes around it.

    Indices are read for one lane after another, also where the lanes are a vector: their reads have no `lane`.
    """

    buffer: Buffer
    index: Index
    lane: Variable | None
    width: int
    writes: bool


def subvalues(value: Value) -> Iterator[Value]:
    """The value and everything below it (a shared value once)."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        stack.extend(operands(current))


def operands(value: Value) -> tuple[Value, ...]:
    """The values directly below a value."""
    if isinstance(value, Apply):
        return value.operands
    if isinstance(value, Choose):
        return (value.then, value.otherwise)
    if isinstance(value, Load) and value.fill is not None:
        return (value.fill,)
    return ()


def value_forms(value: Value) -> tuple[Expr, ...]:
    """The index forms that stand in a value itself."""
    if isinstance(value, Load):
        return (*value.index, *value.guard)
    if isinstance(value, IndexValue):
        return (value.index,)
    if isinstance(value, Choose):
        return value.guard
    return ()


def depends(value: Value, variable: Variable) -> bool:
    """Whether the value mentions a variable."""
    return any(variable in e.variables() for v in subvalues(value) for e in value_forms(v))


def statement_forms(statement: Statement) -> Iterator[Expr]:
    """The index forms of a statement without those of the statements inside it."""
    if isinstance(statement, Store | AtomicUpdate):
        yield from statement.index
        yield from statement.guard
        for value in subvalues(statement.value):
            yield from value_forms(value)
    elif isinstance(statement, Loop):
        yield statement.extent
    elif isinstance(statement, LastGroup):
        yield from statement.index
        yield statement.groups
    elif isinstance(statement, If):
        yield from statement.guard


def accesses(block: Block, lane: Variable | None = None, width: int = 1) -> Iterator[Access]:
    """Every access of a block, the reads of indices included."""
    for statement in block:
        if isinstance(statement, Lanes):
            yield from accesses(statement.body, statement.variable, statement.width)
            continue
        if isinstance(statement, Store | AtomicUpdate):
            yield Access(statement.buffer, statement.index, lane, width, True)
            for value in subvalues(statement.value):
                if isinstance(value, Load):
                    yield Access(value.buffer, value.index, lane, width, False)
        elif isinstance(statement, LastGroup):
            yield Access(statement.buffer, statement.index, None, 1, True)
        for form in statement_forms(statement):
            for atom in loaded_in(form):
                assert isinstance(atom.buffer, Buffer)
                yield Access(atom.buffer, atom.index, None, 1, False)
        for inner in blocks_of(statement):
            yield from accesses(inner, lane, width)


def handed_over(block: Block) -> frozenset[Buffer]:
    """The buffers that groups change while others look: counters, and what last groups read of what others wrote."""
    found: set[Buffer] = set()
    for statement in block:
        if isinstance(statement, LastGroup):
            written = {a.buffer for a in accesses(block) if a.writes}
            found |= {statement.buffer, *(a.buffer for a in accesses(statement.body) if not a.writes)} & written
    return frozenset(b for b in found if b.role != "scratch")


def partly_written(block: Block, lane: Variable | None = None) -> Iterator[Buffer]:
    """The buffers that some lanes of a vector write and others do not."""
    for statement in block:
        if isinstance(statement, Store) and lane is not None and any(lane in e.variables() for e in statement.guard):
            yield statement.buffer
        inside = statement.variable if isinstance(statement, Lanes) else lane
        for inner in blocks_of(statement):
            yield from partly_written(inner, inside)


def used_variables(kernel: Kernel) -> set[Variable]:
    """All variables that the kernel's forms mention."""
    found: set[Variable] = set()
    for extent in (*kernel.grid, *kernel.group):
        found |= extent.variables()
    for statement in statements(kernel.body):
        for form in statement_forms(statement):
            found |= form.variables()
    for access in accesses(kernel.body):
        for form in (*access.index, *access.buffer.shape):
            found |= form.variables()
    return found
