"""Walks over kernel code: what values and statements read, and rebuilding them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from lithify.arith import Atom, Expr, Loaded, Variable, const, loaded
from lithify.kernel import ir
from lithify.kernel.conditions import conjunction


def loaded_in(index: Expr) -> Iterator[Loaded]:
    """The indices read from buffers that a formula contains."""
    for monomial, _ in index.terms:
        for atom in monomial:
            if isinstance(atom, Loaded):
                yield atom
            for part in atom.parts():
                yield from loaded_in(part)


def replace_atoms(e: Expr, change: Callable[[Atom], Expr | None]) -> Expr:
    """The formula with atoms replaced where `change` gives another formula; None goes on inside the atom."""
    result = const(e.offset)
    for monomial, coefficient in e.terms:
        product = const(coefficient)
        for atom in monomial:
            replaced = change(atom)
            if replaced is None:
                old = atom.parts()
                parts = tuple([replace_atoms(part, change) for part in old])
                replaced = atom.expr if all(map(operator.is_, old, parts)) else atom.rebuild(parts)
            product = product * replaced
        result = result + product
    return result


def parts(value: ir.Value) -> Iterator[ir.Load | ir.Apply]:
    """Loads and operations of a value, each occurrence; those in indices and conditions are not looked at."""
    match value:
        case ir.Load(_, _, _, fill):
            yield value
            if fill is not None:
                yield from parts(fill)
        case ir.Apply(_, operands, _):
            yield value
            for operand in operands:
                yield from parts(operand)
        case ir.Choose(_, then, otherwise):
            yield from parts(then)
            yield from parts(otherwise)


def accesses(value: ir.Value) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    """Every read of a buffer in a value, those in indices and conditions included."""
    match value:
        case ir.Load(buffer, index, guard, fill):
            yield buffer, index
            yield from index_accesses((*index, *guard))
            if fill is not None:
                yield from accesses(fill)
        case ir.Apply(_, operands, _):
            for operand in operands:
                yield from accesses(operand)
        case ir.Choose(guard, then, otherwise):
            yield from index_accesses(guard)
            yield from accesses(then)
            yield from accesses(otherwise)
        case ir.IndexValue(index, _):
            yield from index_accesses((index,))


def index_accesses(formulas: tuple[Expr, ...]) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    """The reads of buffers in formulas."""
    for formula in formulas:
        for atom in loaded_in(formula):
            assert isinstance(atom.buffer, ir.Buffer)
            yield atom.buffer, atom.index


def reads_buffer(value: object, buffer: ir.Buffer) -> bool:
    """Does the scalar or index read the buffer?"""
    if isinstance(value, Expr):
        return any(b is buffer for b, _ in index_accesses((value,)))
    assert isinstance(value, ir.Value)
    return any(b is buffer for b, _ in accesses(value))


def reads_of(statement: ir.Statement) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    """What a statement reads itself: not what blocks inside it read."""
    match statement:
        case ir.Store(_, index, value, guard) | ir.AtomicUpdate(_, _, index, value, guard):
            yield from accesses(value)
            yield from index_accesses((*index, *guard))
        case ir.If(guard, _, _):
            yield from index_accesses(guard)
        case ir.Loop(_, extent, _, _, _):
            yield from index_accesses((extent,))
        case ir.LastGroup(_, index, _, _):
            yield from index_accesses(index)


def blocks_of(statement: ir.Statement) -> tuple[ir.Block, ...]:
    """The blocks inside a statement."""
    match statement:
        case ir.Loop() | ir.Lanes() | ir.Async() | ir.Instruction() | ir.LastGroup():
            return (statement.body,)
        case ir.If(_, body, otherwise):
            return (body, otherwise)
    return ()


def statements(block: ir.Block) -> Iterator[ir.Statement]:
    """All statements of a block, nested ones after the one they stand in."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from statements(inner)


def read_in(block: ir.Block) -> frozenset[ir.Buffer]:
    """The buffers that a block reads, at any depth."""
    return frozenset([buffer for statement in statements(block) for buffer, _ in reads_of(statement)])


def written_in(block: ir.Block) -> frozenset[ir.Buffer]:
    """The buffers that a block writes, at any depth, those of instructions and counters of groups included."""
    writing = ir.Store | ir.AtomicUpdate | ir.LastGroup
    return frozenset([s.buffer for s in statements(block) if isinstance(s, writing)])


Replace = Callable[[ir.Block], ir.Block]


def with_blocks(statement: ir.Statement, change: Replace) -> ir.Statement:
    """The statement with its inner blocks changed."""
    match statement:
        case ir.Loop(variable, extent, level, body, name):
            return ir.Loop(variable, extent, level, change(body), name)
        case ir.Lanes(variable, width, body, name):
            return ir.Lanes(variable, width, change(body), name)
        case ir.Async(body):
            return ir.Async(change(body))
        case ir.Instruction() | ir.LastGroup():
            return replace(statement, body=change(statement.body))
        case ir.If(guard, body, otherwise):
            return ir.If(guard, change(body), change(otherwise))
    return statement


class Rewriting:
    """Code rebuilt with other buffers and formulas; conditions that ranges imply vanish, code they exclude too."""

    def buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        return buffer

    def expr(self, e: Expr) -> Expr:
        return e

    def index_of(self, buffer: ir.Buffer, index: ir.Index) -> ir.Index:
        """The index into what the buffer becomes."""
        return self.index(index)

    def index(self, index: ir.Index) -> ir.Index:
        return tuple([self.expr(e) for e in index])

    def guard(self, guard: ir.Guard) -> ir.Guard | None:
        return conjunction((), [self.expr(e) for e in guard])

    def value(self, value: ir.Value) -> ir.Value:
        match value:
            case ir.Load(buffer, index, guard, fill):
                if not guard:
                    return ir.Load(self.buffer(buffer), self.index_of(buffer, index))
                kept = self.guard(guard)
                other = None if fill is None else self.value(fill)
                if kept is None:
                    assert other is not None
                    return other
                return ir.Load(self.buffer(buffer), self.index_of(buffer, index), kept, other if kept else None)
            case ir.Apply(operator, operands, scalar):
                return ir.Apply(operator, tuple([self.value(o) for o in operands]), scalar)
            case ir.Choose(guard, then, otherwise):
                kept = self.guard(guard)
                if kept is None:
                    return self.value(otherwise)
                if not kept:
                    return self.value(then)
                return ir.Choose(kept, self.value(then), self.value(otherwise))
            case ir.IndexValue(index, scalar):
                return ir.IndexValue(self.expr(index), scalar)
        return value

    def block(self, block: ir.Block) -> ir.Block:
        result: list[ir.Statement] = []
        for statement in block:
            result.extend(self.statement(statement))
        return tuple(result)

    def statement(self, statement: ir.Statement) -> ir.Block:
        match statement:
            case ir.Store(buffer, index, value, guard):
                kept = self.guard(guard)
                return (
                    ()
                    if kept is None
                    else (ir.Store(self.buffer(buffer), self.index_of(buffer, index), self.value(value), kept),)
                )
            case ir.AtomicUpdate(operator, buffer, index, value, guard):
                kept = self.guard(guard)
                if kept is None:
                    return ()
                return (
                    ir.AtomicUpdate(
                        operator, self.buffer(buffer), self.index_of(buffer, index), self.value(value), kept
                    ),
                )
            case ir.If(guard, body, otherwise):
                kept = self.guard(guard)
                if kept is None:
                    return self.block(otherwise)
                if not kept:
                    return self.block(body)
                inner, other = self.block(body), self.block(otherwise)
                return (ir.If(kept, inner, other),) if inner or other else ()
            case ir.Loop(variable, extent, level, body, name):
                inner = self.block(body)
                return (ir.Loop(variable, self.expr(extent), level, inner, name),) if inner else ()
            case ir.Lanes() | ir.Async():
                changed = with_blocks(statement, self.block)
                return (changed,) if any(blocks_of(changed)) else ()
            case ir.Instruction(row, result, operands, pitches, body):
                (a, b, c), (p, q, r, s) = map(self.place, operands), map(self.expr, pitches)
                return (ir.Instruction(row, self.place(result), (a, b, c), (p, q, r, s), self.block(body)),)
            case ir.LastGroup(buffer, index, groups, body):
                place = self.buffer(buffer), self.index_of(buffer, index)
                return (ir.LastGroup(*place, self.expr(groups), self.block(body)),)
        return (statement,)

    def place(self, place: ir.Load) -> ir.Load:
        """Where an operand of an instruction begins: a load without a condition."""
        return ir.Load(self.buffer(place.buffer), self.index_of(place.buffer, place.index))


class Substitution(Rewriting):
    """Variables replaced in code."""

    def __init__(self, values: Mapping[Variable, Expr]) -> None:
        self.values = values
        self.keys = frozenset(values)
        self._known: dict[Expr, Expr] = {}

    def expr(self, e: Expr) -> Expr:
        found = self._known.get(e)
        if found is None:
            found = e.substitute(self.values) if self.keys & e.variables() else e
            self._known[e] = found
        return found


class Renaming(Rewriting):
    """Buffers replaced in code, in indices that they hold too. `linear`: the new ones have one dimension."""

    def __init__(self, buffers: Mapping[ir.Buffer, ir.Buffer], *, linear: bool = False) -> None:
        self.buffers = buffers
        self.linear = linear

    def buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        return self.buffers.get(buffer, buffer)

    def index_of(self, buffer: ir.Buffer, index: ir.Index) -> ir.Index:
        moved = self.index(index)
        if not self.linear or buffer not in self.buffers:
            return moved
        return (buffer.position(moved),)

    def expr(self, e: Expr) -> Expr:
        if any(atom.buffer in self.buffers for atom in loaded_in(e)):
            return replace_atoms(e, self._reloaded)
        return e

    def _reloaded(self, atom: Atom) -> Expr | None:
        if not isinstance(atom, Loaded):
            return None
        parts = [replace_atoms(part, self._reloaded) for part in atom.parts()]
        assert isinstance(atom.buffer, ir.Buffer)
        index = self.index_of(atom.buffer, tuple(parts[:-2]))
        return loaded(self.buffer(atom.buffer), index, parts[-2], parts[-1])
