"""Places in memory, what can be read, and what can be written: the two kinds of value that the translation handles.

*Readable*: a scalar is an `ir.Value`, an index an `Expr`, a tuple a Python tuple, an array an `ArrayValue`.
*Acceptor*: a `Place`, a `TupleAcceptor` or a `ViewAcceptor`; `write` stores through it, and it can be read back.
An array of tuples is stored as one buffer a component (struct of arrays).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from lithify.arith import Expr, loaded
from lithify.kernel import ir
from lithify.kernel.conditions import conjunction, zero
from lithify.lang.errors import Rejected
from lithify.lang.levels import Level
from lithify.lang.operators import Operator
from lithify.lang.scalars import Scalar, i32, i64
from lithify.lang.types import Array, Index, Tuple, Type

_LARGEST_I32 = 2**31 - 1


def index_scalar(size: Expr) -> Scalar:
    """The integer type in which indices below `size` are stored: i32 where that provably suffices."""
    return i32 if size.hi <= _LARGEST_I32 else i64


@cache
def leaves(type_: Type) -> tuple[tuple[tuple[Expr, ...], Scalar], ...]:
    """Shape and scalar of each buffer that stores a value of the type."""
    if isinstance(type_, Array):
        return tuple([((type_.size, *shape), scalar) for shape, scalar in leaves(type_.element)])
    if isinstance(type_, Tuple):
        return tuple([leaf for item in type_.items for leaf in leaves(item)])
    if isinstance(type_, Index):
        return (((), index_scalar(type_.size)),)
    assert isinstance(type_, Scalar)
    return (((), type_),)


def index_bounds(type_: Type) -> tuple[Expr | None, ...]:
    """For each buffer of `leaves`: what the indices in it are below; None where it holds scalars."""
    if isinstance(type_, Array):
        return index_bounds(type_.element)
    if isinstance(type_, Tuple):
        return tuple([bound for item in type_.items for bound in index_bounds(item)])
    return (type_.size if isinstance(type_, Index) else None,)


class ArrayValue:
    """A readable array: its type and a function from index to readable element.

    `work` says that reading an element computes something (an abstract map with scalar operators below).
    """

    __slots__ = ("at", "type", "work")

    def __init__(self, type_: Array, at: Callable[[Expr], Readable], work: bool = False) -> None:
        self.type, self.at, self.work = type_, at, work


Readable = ir.Value | Expr | ArrayValue | tuple["Readable", ...]
Environment = tuple[Readable, ...]


class Acceptor(Protocol):
    """Where a value of a type is written."""

    @property
    def type(self) -> Type: ...

    def at(self, index: Expr) -> Acceptor:
        """The acceptor of an array's element."""

    def component(self, number: int) -> Acceptor:
        """The acceptor of a tuple's component."""

    def guarded(self, conditions: ir.Guard) -> Acceptor:
        """The same, but writing (and reading back) only where the conditions hold."""

    def read(self) -> Readable:
        """What was written."""

    def buffers(self) -> frozenset[ir.Buffer]:
        """The buffers that writing changes."""


class DistributedIndex(Protocol):
    """Checks that a distributed dimension is indexed by its hardware index."""

    def __call__(self, level: Level, index: Expr) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """A value of a type in memory: buffers (one a leaf of the type), the index so far, and the conditions to touch it.

    `suffix` is the index of innermost dimensions that every access adds (the lane of an expanded temporary).
    `distribution` holds, for the dimensions still to come, the hardware level that a dimension is, or None.
    `impossible` marks a place whose guard can never hold. `atomic`: writing combines with this operator.
    """

    type: Type
    leaf_buffers: tuple[ir.Buffer, ...]
    index: ir.Index = ()
    guard: ir.Guard = ()
    suffix: ir.Index = ()
    distribution: tuple[Level | None, ...] = ()
    check: DistributedIndex | None = None
    impossible: bool = False
    atomic: Operator | None = None

    def at(self, index: Expr) -> Place:
        assert isinstance(self.type, Array)
        if self.distribution:
            level, *rest = self.distribution
            if level is not None:
                assert self.check is not None
                self.check(level, index)
                return replace(self, type=self.type.element, distribution=tuple(rest))
            return replace(self, type=self.type.element, index=(*self.index, index), distribution=tuple(rest))
        return Place(self.type.element, self.leaf_buffers, (*self.index, index), self.guard, self.suffix, (),
                     self.check, self.impossible, self.atomic)  # fmt: skip

    def component(self, number: int) -> Place:
        assert isinstance(self.type, Tuple)
        start = sum(len(leaves(item)) for item in self.type.items[:number])
        item = self.type.items[number]
        return replace(self, type=item, leaf_buffers=self.leaf_buffers[start : start + len(leaves(item))])

    def guarded(self, conditions: ir.Guard) -> Place:
        guard = conjunction(self.guard, conditions)
        if guard is None:
            return replace(self, impossible=True)
        return self if guard == self.guard else replace(self, guard=guard)

    def read(self) -> Readable:
        if self.atomic is not None:
            raise Rejected(f"{self.leaf_buffers[0]} is updated atomically, so it cannot be read meanwhile",
                           hint="accumulate in private memory and scatter the result")  # fmt: skip
        type_ = self.type
        if isinstance(type_, Array):
            return ArrayValue(type_, lambda i: self.at(i).read())
        if isinstance(type_, Tuple):
            return tuple([self.component(k).read() for k in range(len(type_.items))])
        buffer, index = self.leaf_buffers[0], self.index + self.suffix
        if isinstance(type_, Index):
            return loaded(buffer, index, 0, type_.size - 1)
        assert isinstance(type_, Scalar)
        if self.impossible:
            return zero(type_)
        return ir.Load(buffer, index, self.guard, zero(type_) if self.guard else None)

    def buffers(self) -> frozenset[ir.Buffer]:
        return frozenset(self.leaf_buffers)


@dataclass(frozen=True, slots=True)
class TupleAcceptor:
    """Acceptors of the components."""

    type: Tuple
    items: tuple[Acceptor, ...]

    def at(self, index: Expr) -> Acceptor:
        raise AssertionError("a tuple has components, not elements")

    def component(self, number: int) -> Acceptor:
        return self.items[number]

    def guarded(self, conditions: ir.Guard) -> TupleAcceptor:
        return TupleAcceptor(self.type, tuple([item.guarded(conditions) for item in self.items]))

    def read(self) -> Readable:
        return tuple([item.read() for item in self.items])

    def buffers(self) -> frozenset[ir.Buffer]:
        return frozenset().union(*[item.buffers() for item in self.items])


@dataclass(frozen=True, slots=True)
class ViewAcceptor:
    """An array of acceptors, given by a function; `below` is what the view was made of."""

    type: Array
    element: Callable[[Expr], Acceptor]
    below: tuple[Acceptor, ...]

    def at(self, index: Expr) -> Acceptor:
        return self.element(index)

    def component(self, number: int) -> Acceptor:
        raise AssertionError("an array has elements, not components")

    def guarded(self, conditions: ir.Guard) -> ViewAcceptor:
        return ViewAcceptor(self.type, lambda i: self.element(i).guarded(conditions), self.below)

    def read(self) -> Readable:
        return ArrayValue(self.type, lambda i: self.element(i).read())

    def buffers(self) -> frozenset[ir.Buffer]:
        return frozenset().union(*[acceptor.buffers() for acceptor in self.below])
