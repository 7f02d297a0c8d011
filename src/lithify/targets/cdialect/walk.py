"""Everything that stands in a statement: its values, index forms and accesses; and substitution into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lithify.arith import Atom, Expr, Loaded, Variable
from lithify.kernel.ir import (
    Apply,
    Async,
    AtomicUpdate,
    Block,
    Buffer,
    Choose,
    Constant,
    Guard,
    If,
    Index,
    IndexValue,
    Kernel,
    Lanes,
    Load,
    Loop,
    Statement,
    Store,
    Value,
)


@dataclass(frozen=True, slots=True)
class Access:
    """One place where a buffer is read or written; `lane` is the variable of the lanes around it."""

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


def blocks(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement."""
    if isinstance(statement, If):
        return (statement.body, statement.otherwise)
    if isinstance(statement, Loop | Lanes | Async):
        return (statement.body,)
    return ()


def statements(block: Block) -> Iterator[Statement]:
    """All statements of a block, at any depth."""
    for statement in block:
        yield statement
        for inner in blocks(statement):
            yield from statements(inner)


def statement_forms(statement: Statement) -> Iterator[Expr]:
    """The index forms of a statement without those of the statements inside it."""
    if isinstance(statement, Store | AtomicUpdate):
        yield from statement.index
        yield from statement.guard
        for value in subvalues(statement.value):
            yield from value_forms(value)
    elif isinstance(statement, Loop):
        yield statement.extent
    elif isinstance(statement, If):
        yield from statement.guard


def loaded_atoms(e: Expr) -> Iterator[Loaded]:
    """The indices that a form reads from buffers, at any depth."""
    for monomial, _ in e.terms:
        for atom in monomial:
            yield from _loaded(atom)


def _loaded(atom: Atom) -> Iterator[Loaded]:
    if isinstance(atom, Loaded):
        yield atom
    for part in atom.parts():
        yield from loaded_atoms(part)


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
        for form in statement_forms(statement):
            for atom in loaded_atoms(form):
                assert isinstance(atom.buffer, Buffer)
                yield Access(atom.buffer, atom.index, lane, width, False)
        for inner in blocks(statement):
            yield from accesses(inner, lane, width)


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


# ---- substitution ------------------------------------------------------------------------------------------------

Binding = Mapping[Variable, Expr | int]


def substitute_forms(forms: Guard, binding: Binding) -> Guard:
    """Substitute in each form."""
    return tuple([e.substitute(binding) for e in forms])


def substitute_value(value: Value, binding: Binding) -> Value:
    """The value with variables replaced; values that are shared stay shared."""
    return _substitute(value, binding, {})


def _substitute(value: Value, binding: Binding, done: dict[int, Value]) -> Value:
    found = done.get(id(value))
    if found is not None:
        return found
    result: Value
    match value:
        case Constant():
            result = value
        case IndexValue():
            result = IndexValue(value.index.substitute(binding), value.scalar)
        case Load():
            fill = None if value.fill is None else _substitute(value.fill, binding, done)
            index, guard = substitute_forms(value.index, binding), substitute_forms(value.guard, binding)
            result = Load(value.buffer, index, guard, fill)
        case Apply():
            inner = tuple([_substitute(v, binding, done) for v in value.operands])
            result = Apply(value.operator, inner, value.scalar)
        case Choose():
            then, otherwise = (_substitute(v, binding, done) for v in (value.then, value.otherwise))
            result = Choose(substitute_forms(value.guard, binding), then, otherwise)
    done[id(value)] = result
    return result


def substitute_leaf(statement: Store | AtomicUpdate, binding: Binding) -> Store | AtomicUpdate:
    """The statement with variables replaced."""
    return replace(
        statement,
        index=substitute_forms(statement.index, binding),
        value=substitute_value(statement.value, binding),
        guard=substitute_forms(statement.guard, binding),
    )
