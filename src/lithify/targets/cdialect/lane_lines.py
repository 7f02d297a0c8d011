"""Lines of one statement on vectors: its temporaries, and loops over lanes where there is no vector access."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lithify.arith import Variable
from lithify.kernel.ir import Guard
from lithify.lang.scalars import SCALARS, Scalar, bool_
from lithify.targets.cdialect.dialect import VectorForms, computed
from lithify.targets.cdialect.indices import IndexPrinter
from lithify.targets.cdialect.names import Names
from lithify.targets.cdialect.text import EQUALITY, Text

SIGNED = {8: SCALARS["i8"], 16: SCALARS["i16"], 32: SCALARS["i32"], 64: SCALARS["i64"]}
UNSIGNED = {8: SCALARS["u8"], 16: SCALARS["u16"], 32: SCALARS["u32"], 64: SCALARS["u64"]}


class Vector(NamedTuple):
    """A value of a vector statement: of all lanes (`wide`), or the same for all of them.

    `mask` is the width in bits of the integers of a wide truth value.
    """

    text: Text
    scalar: Scalar
    wide: bool
    mask: int = 0

    @property
    def element(self) -> Scalar:
        """The type of the elements of the vector in the text."""
        return SIGNED[self.mask] if self.scalar is bool_ else computed(self.scalar)


class LaneLines:
    """Collects the lines of a statement on `width` lanes."""

    def __init__(self, indices: IndexPrinter, names: Names, lane: Variable, width: int) -> None:
        forms = indices.dialect.vectors
        assert forms is not None
        self.forms: VectorForms = forms
        self._indices, self._names, self._lane, self.width = indices, names, lane, width
        self._lines: list[str] = []
        self._temporaries: list[str] = []

    def add(self, line: str) -> None:
        """One more line."""
        self._lines.append(line)

    def finish(self) -> list[str]:
        """All lines, in a block of their own if they declare temporaries."""
        for name in self._temporaries:
            self._names.release(name)
        return ["{", *self._lines, "}"] if self._temporaries else self._lines

    @contextmanager
    def under(self, guard: Guard) -> Iterator[None]:
        """The lines in between run where the guard holds."""
        condition = self._indices.conditions(guard).text
        if condition != "true":
            self.add(f"if ({condition}) {{")
        yield
        if condition != "true":
            self.add("}")

    @contextmanager
    def loop(self, guard: Guard) -> Iterator[str]:
        """The lines in between run for each lane in which the guard holds; gives the name of the lane."""
        name = self._names.fresh("l")
        type_ = self._indices.declare(self._lane, name)
        self.add(f"for ({type_} {name} = 0; {name} < {self.width}; ++{name}) {{")
        with self.under(guard):
            yield name
        self.add("}")
        del self._indices.names[self._lane]
        self._names.release(name)

    def temporary(self, wish: str) -> str:
        """A name that is free until the end of the statement."""
        name = self._names.fresh(wish)
        self._temporaries.append(name)
        return name

    def type_of(self, vector: Vector) -> str:
        """The type of a vector's elements."""
        return self._indices.dialect.types[vector.element]

    def kept(self, vector: Vector) -> Vector:
        """The vector in a variable."""
        name = self.temporary("v")
        self.add(f"const {self.type_of(vector)}{self.width} {name} = {vector.text.text};")
        return vector._replace(text=Text(name))

    def array(self, type_: str) -> str:
        """A new private array of an element for each lane."""
        name = self.temporary("lanes")
        self.add(f"{type_} {name}[{self.width}];")
        return name

    def in_array(self, vector: Vector) -> str:
        """The vector in a private array."""
        name = self.array(self.type_of(vector))
        self.add(self.forms.store.format(value=vector.text.text, address=name, width=self.width) + ";")
        return name

    def from_array(self, name: str) -> Text:
        """The vector that a private array holds."""
        return Text(self.forms.load.format(address=name, width=self.width))

    @staticmethod
    def element(name: str, lane: str, vector: Vector) -> Text:
        """The element of a lane, from the array that holds a vector."""
        return Text(f"{name}[{lane}] != 0", EQUALITY) if vector.scalar is bool_ else Text(f"{name}[{lane}]")
