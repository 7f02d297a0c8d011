"""What was computed before is read from where it stands (value numbering; J. Cocke and J. T. Schwartz 1970).

Targets' compilers do this too, but what they are not given costs nothing: strips of stencils compute most of what their
lines share again in every line, and their texts were more than twice as long.

Values get numbers: equal numbers, equal values. Buffers that the kernel only reads are what a load's number rests on;
private memory has, element by element, the number of what was stored last. Only private memory is read instead of
something else, and nothing is kept alive past the block that it was stored in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from lithify.arith import Expr
from lithify.kernel import ir
from lithify.kernel.passes.unused import drop_unused
from lithify.kernel.walk import index_accesses, with_blocks, written_in
from lithify.lang.levels import LevelKind

_Place = tuple[ir.Buffer, ir.Index]


def drop_repeated(program: ir.Program) -> ir.Program:
    """The program in which stores whose value is at hand are not read, and so vanish."""
    kernels = [replace(kernel, body=_Numbering(kernel).block(kernel.body, _Held())) for kernel in program.kernels]
    return drop_unused(replace(program, kernels=tuple(kernels)))


@dataclass(slots=True)
class _Held:
    """Which value each private element holds, and for each value the first element that holds it."""

    values: dict[ir.Buffer, dict[ir.Index, int]] = field(default_factory=dict)
    places: dict[int, _Place] = field(default_factory=dict)

    def copy(self) -> _Held:
        return _Held({buffer: dict(values) for buffer, values in self.values.items()}, dict(self.places))

    def value(self, place: _Place) -> int | None:
        """The value that a place holds; None where that is not known."""
        buffer, index = place
        return self.values.get(buffer, {}).get(index)

    def enter(self, place: _Place, value: int) -> None:
        """A place holds a value."""
        buffer, index = place
        self.values.setdefault(buffer, {})[index] = value

    def forget(self, buffers: Iterable[ir.Buffer]) -> None:
        """These buffers are written somewhere."""
        for buffer in buffers:
            for index, value in self.values.pop(buffer, {}).items():
                if self.places.get(value) == (buffer, index):
                    del self.places[value]


class _Numbering:
    """The numbers of one kernel's values."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._written = written_in(kernel.body)
        self._numbers: dict[Hashable, int] = {}
        self._constants: set[int] = set()
        self._fresh = count()

    def block(self, block: ir.Block, held: _Held) -> ir.Block:
        """The block where `held` is known; what it learns and destroys is entered there."""
        return tuple([self._statement(statement, held) for statement in block])

    def _statement(self, statement: ir.Statement, held: _Held) -> ir.Statement:
        if isinstance(statement, ir.Store):
            return self._store(statement, held)
        written = written_in((statement,))
        if isinstance(statement, ir.Loop):
            held.forget(written)  # by the iterations before
        if isinstance(statement, ir.Loop | ir.Lanes | ir.If):
            # Threads do not share private memory: what they compute again is not handed to them.
            apart = isinstance(statement, ir.Loop) and statement.level.kind is LevelKind.THREADS
            statement = with_blocks(statement, lambda block: self.block(block, _Held() if apart else held.copy()))
        held.forget(written)
        return statement

    def _store(self, store: ir.Store, held: _Held) -> ir.Store:
        value, number = self._value(store.value, held)
        held.forget({store.buffer})  # other elements of it may be this one
        if _is_private(store.buffer) and not store.guard and self._steady(store.index):
            place = store.buffer, store.index
            held.enter(place, number)
            if number not in self._constants:
                held.places.setdefault(number, place)
        return replace(store, value=value)

    def _value(self, value: ir.Value, held: _Held) -> tuple[ir.Value, int]:
        """The value, read from where it stands already, and its number."""
        match value:
            case ir.Constant(literal, scalar):
                # 0.0 == -0.0, and True == 1 == 1.0
                number = self._number((repr(literal), scalar))
                self._constants.add(number)
                return value, number
            case ir.IndexValue(index, scalar):
                return value, self._number((index, scalar) if self._steady((index,)) else self._new())
            case ir.Load(buffer, index, (), None) if _is_private(buffer) and self._steady(index):
                place = buffer, index
                held_number = held.value(place)
                if held_number is None:
                    held_number = self._number(self._new())
                    held.enter(place, held_number)
                    held.places[held_number] = place
                return ir.Load(*held.places.get(held_number, place)), held_number
            case ir.Load(buffer, index, guard, fill):
                other, filled = (None, -1) if fill is None else self._value(fill, held)
                lasts = buffer not in self._written and self._steady((*index, *guard))
                number = self._number((buffer, index, guard, filled) if lasts else self._new())
                return ir.Load(buffer, index, guard, other), number
            case ir.Apply(operator, operands, scalar):
                values, numbers = zip(*[self._value(operand, held) for operand in operands], strict=True)
                return ir.Apply(operator, values, scalar), self._number((operator, numbers, scalar))
            case ir.Choose(guard, then, otherwise):
                (a, p), (b, q) = self._value(then, held), self._value(otherwise, held)
                return ir.Choose(guard, a, b), self._number((guard, p, q) if self._steady(guard) else self._new())

    def _number(self, what: Hashable) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    def _new(self) -> Hashable:
        """What equals nothing that was seen before."""
        return "new", next(self._fresh)

    def _steady(self, formulas: tuple[Expr, ...]) -> bool:
        """Whether formulas read no index that the kernel writes."""
        return not any(buffer in self._written for buffer, _ in index_accesses(formulas))


def _is_private(buffer: ir.Buffer) -> bool:
    return buffer.role == "scratch" and buffer.memory.name == "private"
