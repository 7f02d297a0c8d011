"""Lines of one statement on vectors: its temporaries, and lines for each lane where there is no vector access.

Lanes are read and written as components of a vector, never through a private array: PoCL's vectorised work-groups read
such an array as a vector before its elements are written (tests/targets/test_lanes.py has a kernel that shows it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from lithify.arith import Variable
from lithify.kernel.ir import Guard
from lithify.lang.scalars import SCALARS, Scalar, bool_
from lithify.targets.cdialect.dialect import VectorForms, computed
from lithify.targets.cdialect.indices import IndexPrinter
from lithify.targets.cdialect.names import Names
from lithify.targets.cdialect.text import Text

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
    def one(self, lane: int, guard: Guard) -> Iterator[dict[Variable, int]]:
        """The lines in between are for one lane and run where the guard holds; gives what stands for the lane."""
        here = {self._lane: lane}
        with self.under(tuple([e.substitute(here) for e in guard])):
            yield here

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

    def of_lanes(self, type_: str, elements: Sequence[str]) -> Text:
        """The vector of an element for each lane, in a variable."""
        name = self.temporary("lanes")
        self.add(f"const {type_}{self.width} {name} = ({type_}{self.width})({', '.join(elements)});")
        return Text(name)

    def changing(self, vector: Vector) -> str:
        """The vector in a variable whose components can be assigned."""
        name = self.temporary("lanes")
        self.add(f"{self.type_of(vector)}{self.width} {name} = {vector.text.text};")
        return name

    def component(self, name: str, lane: int) -> str:
        """The element of a lane of a vector variable."""
        return f"{name}.s{self.forms.components[lane]}"
