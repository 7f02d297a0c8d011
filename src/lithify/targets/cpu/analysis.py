"""What the emission asks about statements: the buffers and variables they use, and how much work they are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from lithify.arith import Atom, Expr, Loaded, Variable, const
from lithify.kernel import ir
from lithify.kernel.walk import statements
from lithify.lang.levels import LevelKind
from lithify.targets.cpu import policy

SHARED_ROLES = frozenset({"input", "output", "temporary"})


@dataclass(slots=True)
class Uses:
    """What statements mention; `bound` are the variables that they bind themselves."""

    read: dict[ir.Buffer, None] = field(default_factory=dict)  # in the order met
    written: dict[ir.Buffer, None] = field(default_factory=dict)
    mentioned: dict[Variable, None] = field(default_factory=dict)
    bound: set[Variable] = field(default_factory=set)

    @property
    def buffers(self) -> list[ir.Buffer]:
        """All buffers read or written."""
        return list(self.read | self.written)

    @property
    def free(self) -> list[Variable]:
        """The variables that come from outside."""
        return [v for v in self.mentioned if v not in self.bound]


def uses(block: ir.Block) -> Uses:
    """What a block uses."""
    found = Uses()
    _Visitor(found).block(block)
    return found


class _Visitor:
    def __init__(self, found: Uses) -> None:
        self.found = found
        self._seen: set[int] = set()

    def block(self, block: ir.Block) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: ir.Statement) -> None:
        found = self.found
        if isinstance(statement, ir.Store | ir.AtomicUpdate):
            found.written[statement.buffer] = None
            if isinstance(statement, ir.AtomicUpdate):
                found.read[statement.buffer] = None
            self.forms(*statement.index, *statement.buffer.shape, *statement.guard)
            self.value(statement.value)
        elif isinstance(statement, ir.Loop):
            found.bound.add(statement.variable)
            self.forms(statement.extent)
            self.block(statement.body)
        elif isinstance(statement, ir.Lanes):
            found.bound.add(statement.variable)
            self.block(statement.body)
        elif isinstance(statement, ir.If):
            self.forms(*statement.guard)
            self.block(statement.body)
            self.block(statement.otherwise)
        elif isinstance(statement, ir.Async):
            self.block(statement.body)
        elif isinstance(statement, ir.Instruction):
            self.forms(*statement.pitches)
            for operand in (statement.result, *statement.operands):
                self.forms(*operand.index, *operand.buffer.shape)
            self.block(statement.body)

    def value(self, value: ir.Value) -> None:
        if isinstance(value, ir.IndexValue):
            self.forms(value.index)
        elif isinstance(value, ir.Load):
            self.found.read[value.buffer] = None
            self.forms(*value.index, *value.buffer.shape, *value.guard)
            if value.fill is not None:
                self.value(value.fill)
        elif isinstance(value, ir.Choose):
            self.forms(*value.guard)
            self.value(value.then)
            self.value(value.otherwise)
        elif isinstance(value, ir.Apply):
            for operand in value.operands:
                self.value(operand)

    def forms(self, *forms: Expr) -> None:
        for form in forms:
            if id(form) in self._seen:  # forms are interned
                continue
            self._seen.add(id(form))
            for monomial, _ in form.terms:
                for atom in monomial:
                    self.atom(atom)

    def atom(self, atom: Atom) -> None:
        if isinstance(atom, Variable):
            self.found.mentioned[atom] = None
        if isinstance(atom, Loaded) and isinstance(atom.buffer, ir.Buffer):
            self.found.read[atom.buffer] = None
            self.forms(*atom.buffer.shape)
        self.forms(*atom.parts())


def has_parallel_loop(statement: ir.Statement) -> bool:
    """Whether a parallel loop stands in the statement or is it."""
    return any(isinstance(s, ir.Loop) and s.level.kind is LevelKind.THREADS for s in statements((statement,)))


@dataclass(slots=True)
class _Work:
    operations: Expr
    moved: dict[ir.Buffer, Expr]


def work(block: ir.Block) -> Expr:
    """How much statements have to do: operations plus bytes moved, as `policy` weighs them.

    A form over the variables that are free in them. What is read again and again counts once.
    """
    inside = uses(block).bound
    total = _Work(const(0), {})
    _count_block(block, const(1), inside, total)
    result = total.operations
    for buffer, count in total.moved.items():
        elements = buffer.count.constant
        if count.constant is not None and elements is not None:
            count = const(min(count.constant, elements))
        result = result + count * (buffer.scalar.bytes * policy.BYTE_WORK)
    return result


def _count_block(block: ir.Block, times: Expr, inside: set[Variable], total: _Work) -> None:
    for statement in block:
        if isinstance(statement, ir.Loop):
            extent = statement.extent
            if extent.variables() & inside:
                extent = const(int(extent.hi) if math.isfinite(extent.hi) else 1)
            _count_block(statement.body, times * extent, inside, total)
        elif isinstance(statement, ir.Lanes):
            _count_block(statement.body, times * statement.width, inside, total)
        elif isinstance(statement, ir.If):
            _count_block(statement.body, times, inside, total)
            _count_block(statement.otherwise, times, inside, total)
        elif isinstance(statement, ir.Async | ir.Instruction):
            _count_block(statement.body, times, inside, total)
        elif isinstance(statement, ir.Store | ir.AtomicUpdate):
            _move(statement.buffer, times, total)
            total.operations = total.operations + times * _count_value(statement.value, times, total)


def _move(buffer: ir.Buffer, times: Expr, total: _Work) -> None:
    if buffer.role in SHARED_ROLES:
        total.moved[buffer] = total.moved.get(buffer, const(0)) + times


def _count_value(value: ir.Value, times: Expr, total: _Work) -> int:
    if isinstance(value, ir.Load):
        _move(value.buffer, times, total)
        return 0
    if isinstance(value, ir.Choose):
        return 1 + _count_value(value.then, times, total) + _count_value(value.otherwise, times, total)
    if isinstance(value, ir.Apply):
        own = policy.COSTLY.get(value.operator.name, 1)
        return own + sum(_count_value(v, times, total) for v in value.operands)
    return 0
