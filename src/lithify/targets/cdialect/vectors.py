"""Stores and loads for all lanes at once: a vector of memory where the lanes are neighbours, else lane by lane."""

from __future__ import annotations

from collections.abc import Mapping

from lithify.arith import Expr, Variable
from lithify.kernel.ir import Constant, Guard, Load, Store
from lithify.lang.scalars import bool_
from lithify.targets.cdialect.blocks import Part, parts_of
from lithify.targets.cdialect.dialect import computed
from lithify.targets.cdialect.lane_lines import Vector
from lithify.targets.cdialect.names import Names
from lithify.targets.cdialect.registers import Place
from lithify.targets.cdialect.text import CHOICE, EQUALITY, PLUS, PRIMARY, UNARY, Text
from lithify.targets.cdialect.values import ValuePrinter, store_text
from lithify.targets.cdialect.vector_values import VectorValues

_LARGEST_NUMBER = 8  # bytes


class VectorPrinter(VectorValues):
    """Writes one store for all lanes of a vector, as lines; its temporaries stand in a block of their own."""

    def __init__(self, values: ValuePrinter, names: Names, lane: Variable, width: int) -> None:
        super().__init__(values, names, lane, width)
        self._where: Guard = ()  # conditions under which the lanes' loads happen, beyond their own

    def store(self, statement: Store) -> list[str]:
        """buffer[index] := value for all lanes; nothing is read for lanes in which the guard fails."""
        place = self.values.places[statement.buffer]
        position = statement.position
        common, own = self.divided(statement.guard)
        self._where = own
        with self.lines.under((*common, *self._in_some_lane(own))):
            value = self.widened(self.value(statement.value))
            if place.cells is not None:
                self._assign(place, position.offset, value, own)
            elif not own and position.coefficient(self.lane) == 1 and self._storable(place):
                self.lines.add(self._vector_store(place, position, value))
            else:
                self._scatter(place, position, value, own)
        return self.lines.finish()

    def _in_some_lane(self, guard: Guard) -> Guard:
        """What must hold for any lane to be active: each form at its larger end."""
        slopes = ((e, e.coefficient(self.lane)) for e in guard)
        return tuple(e.substitute({self.lane: self.width - 1 if k > 0 else 0}) for e, k in slopes if k is not None)

    def _assign(self, place: Place, start: int, value: Vector, guard: Guard) -> None:
        name = place.elements(start, self.width, self.forms.components)
        if value.scalar is bool_:
            value = Vector(self.as_mask(value, 32), bool_, True, 32)
        if guard:
            mask = self.as_mask(self.mask(guard), value.element.bits)
            value = value._replace(text=Text(f"select({name}, {value.text.text}, {mask.text})"))
        self.lines.add(f"{name} = {value.text.text};")

    def _scatter(self, place: Place, position: Expr, value: Vector, guard: Guard) -> None:
        """Lane by lane; a vector store where all lanes of a contiguous one hold."""
        contiguous = guard and position.coefficient(self.lane) == 1 and self._storable(place)
        everywhere = self._everywhere(guard) if contiguous else None
        if everywhere is not None:
            value = self.lines.kept(value)
            self.lines.add(f"if ({everywhere.text}) {{")
            self.lines.add(self._vector_store(place, position, value))
            self.lines.add("} else {")
        name = self.lines.kept(value).text.text
        for lane in range(self.width):
            with self.lines.one(lane, guard) as here:
                index = self.values.indices.text(position.substitute(here))
                element = Text(self.lines.component(name, lane))
                if value.scalar is bool_:
                    element = Text(f"{element.text} != 0", EQUALITY)
                self.lines.add(store_text(self.values, place, index, element))
        if everywhere is not None:
            self.lines.add("}")

    def _vector_store(self, place: Place, position: Expr, value: Vector) -> str:
        storage = self.values.storage(place)
        start = self._start(position)
        names = {"width": str(self.width), "address": self._address(place, start)}
        if storage is not None:
            assert storage.vector_store is not None
            if place.buffer.scalar is bool_:
                value = Vector(self.as_mask(value, 8), bool_, True, 8)
            return storage.vector_store.format(value=value.text.text, **names)
        if self._aligned(place, position):
            return f"{self._lvalue(place, start, '')} = {value.text.text};"
        return self.forms.store.format(value=value.text.text, **names) + ";"

    # ---- loads ------------------------------------------------------------------------------------------------

    def load(self, load: Load) -> Vector:
        place = self.values.places[load.buffer]
        position = load.position
        if place.cells is None:
            load = self._guarded(load)
        common, own = self.divided(load.guard)
        if place.cells is not None and self.lane in position.variables():
            name = place.elements(position.offset, self.width, self.forms.components)
            plain = Vector(Text(name), load.scalar, True, 32 if load.scalar is bool_ else 0)
        elif place.cells is not None:  # one for all lanes, of which a guard may leave some out
            plain = self.widened(Vector(self.values.element(Load(load.buffer, load.index)), load.scalar, False))
        elif position.coefficient(self.lane) in (1, -1) and self._loadable(place):
            if own:
                return self._partial_load(load, place, position)
            plain = self._vector_load(place, position)
        elif self.lane not in position.variables():
            if own:
                return self._gather(load)
            element = self.values.element(Load(load.buffer, load.index))
            plain = Vector(element, load.scalar, False)
        else:
            return self._gather(load)
        if not load.guard:
            return plain
        assert load.fill is not None
        fill = self.value(load.fill)
        if own:
            return self.select(self.mask(load.guard), plain, fill)
        return self.ternary(self.values.indices.conditions(common), plain, fill)

    def _guarded(self, load: Load) -> Load:
        """The load for the lanes that are stored only; memory beyond them need not be there."""
        more = tuple(e for e in self._where if e not in load.guard)
        if not more:
            return load
        fill = Constant(0, load.scalar) if load.fill is None else load.fill
        return Load(load.buffer, load.index, (*load.guard, *more), fill)

    def _vector_load(self, place: Place, position: Expr) -> Vector:
        """A vector from contiguous memory, in either direction."""
        backwards = position.coefficient(self.lane) == -1
        if backwards:
            first = position.substitute({self.lane: self.width - 1})
            position = first + self.lane.expr
        scalar = place.buffer.scalar
        start = self._start(position)
        names = {"width": str(self.width), "address": self._address(place, start)}
        storage = self.values.storage(place)
        if storage is not None:
            assert storage.vector_load is not None
            text = storage.vector_load.fill((), **names)
        elif self._aligned(place, position):
            text = Text(self._lvalue(place, start, "const "), UNARY)
        elif (blocks := self._blocks(place, position)) is not None:
            text = blocks
        else:
            text = Text(self.forms.load.format(**names))
        if backwards:
            order = "".join(reversed(self.forms.components[: self.width]))
            text = Text(f"{text.within(PRIMARY)}.s{order}")
        return Vector(text, scalar, True, 8 if scalar is bool_ else 0)

    def _partial_load(self, load: Load, place: Place, position: Expr) -> Vector:
        """A vector access where all lanes hold, lane by lane where not."""
        everywhere = self._everywhere(load.guard)
        if everywhere is None:
            return self._gather(load)
        fill = self._fill(load)
        whole = self._vector_load(place, position)
        name = self.lines.temporary("v")
        self.lines.add(f"{self.lines.type_of(whole)}{self.width} {name};")
        self.lines.add(f"if ({everywhere.text}) {{")
        self.lines.add(f"{name} = {whole.text.text};")
        self.lines.add("} else {")
        self.lines.add(f"{name} = {self._lanes_over(fill, load).text};")
        self.lines.add("}")
        return whole._replace(text=Text(name))

    def _gather(self, load: Load) -> Vector:
        """Element by element."""
        mask = 8 if load.scalar is bool_ else 0
        plain = Vector(Text(""), load.scalar, True, mask)
        if load.guard:
            return plain._replace(text=self._lanes_over(self._fill(load), load))
        place, elements, lane = self.values.places[load.buffer], list[str](), 0
        for part in self._parts(place, load.buffer.position(load.index)):
            alone = part.first is None or part.lanes == 1
            elements.append(self._element(load, {self.lane: lane}) if alone else self._part(place, part))
            lane += part.lanes
        return plain._replace(text=self.lines.of_lanes(self.lines.type_of(plain), elements))

    def _fill(self, load: Load) -> Vector:
        """What the lanes have in which the load's guard fails, as it would be loaded."""
        assert load.fill is not None
        fill = self.widened(self.value(load.fill))
        return Vector(self.as_mask(fill, 8), bool_, True, 8) if load.scalar is bool_ else fill

    def _lanes_over(self, fill: Vector, load: Load) -> Text:
        """The elements of the lanes in which the load's guard holds, the fill in the others."""
        name = self.lines.changing(fill)
        common, own = self.divided(load.guard)
        with self.lines.under(common):
            for lane in range(self.width):
                with self.lines.one(lane, own) as here:
                    self.lines.add(f"{self.lines.component(name, lane)} = {self._element(load, here)};")
        return Text(name)

    def _element(self, load: Load, here: Mapping[Variable, int]) -> str:
        """The element that one lane loads."""
        element = self.values.element(Load(load.buffer, tuple([e.substitute(here) for e in load.index])))
        return f"{element.within(CHOICE + 1)} ? -1 : 0" if load.scalar is bool_ else element.text

    def _everywhere(self, guard: Guard) -> Text | None:
        """The condition that all lanes hold, where the ends tell: each form is linear in the lane."""
        ends: list[Expr] = []
        for e in guard:
            if self.lane not in e.variables():
                ends.append(e)
            elif (slope := e.coefficient(self.lane)) is not None:
                ends.append(e.substitute({self.lane: 0 if slope > 0 else self.width - 1}))
            else:
                return None
        return self.values.indices.conditions(tuple(ends))

    # ---- aligned vectors --------------------------------------------------------------------------------------

    def _blocks(self, place: Place, position: Expr) -> Text | None:
        """A contiguous vector of the parts of two aligned ones; None where it is not known how it lies."""
        parts = self._parts(place, position)
        if any(part.first is None for part in parts):
            return None
        type_ = self.dialect.types[computed(place.buffer.scalar)]
        return Text(f"({type_}{self.width})({', '.join(self._part(place, part) for part in parts)})", UNARY)

    def _parts(self, place: Place, position: Expr) -> list[Part]:
        """The elements of all lanes, those together that lie in one aligned vector which may be read whole."""
        positions = [position.substitute({self.lane: lane}) for lane in range(self.width)]
        if place.block % self.width:
            return [Part(each, None, 1) for each in positions]
        return parts_of(positions, self.width)

    def _part(self, place: Place, part: Part) -> str:
        """Components of an aligned vector."""
        assert part.first is not None
        whole = self._lvalue(place, self.values.indices.text(part.start), "const ")
        return f"({whole}).s{self.forms.components[part.first : part.first + part.lanes]}"

    # ---- places in memory -------------------------------------------------------------------------------------

    def _by_lanes(self, place: Place) -> bool:
        """Whether a private array is accessed by elements only, because a compiler may make one number of the vector.

        What moves numbers past each other does not see then that the elements lie in them (see `lane_lines`).
        """
        size = place.buffer.scalar.bytes * self.width
        return place.is_array and place.buffer.memory.of_one_item and size <= _LARGEST_NUMBER

    def _storable(self, place: Place) -> bool:
        if self._by_lanes(place):
            return False
        storage = self.values.storage(place)
        return place.buffer.scalar is not bool_ if storage is None else storage.vector_store is not None

    def _loadable(self, place: Place) -> bool:
        if self._by_lanes(place):
            return False
        storage = self.values.storage(place)
        return place.buffer.scalar is not bool_ if storage is None else storage.vector_load is not None

    def _start(self, position: Expr) -> Text:
        return self.values.indices.text(position.substitute({self.lane: 0}))

    def _aligned(self, place: Place, position: Expr) -> bool:
        """Whether the address is known to be a multiple of the vector's size, where no storage form is kept."""
        size = computed(place.buffer.scalar).bytes
        own = position.substitute({self.lane: 0}).alignment * size
        vector = size * self.width
        return own % vector == 0 and place.alignment % vector == 0

    def _lvalue(self, place: Place, start: Text, constant: str) -> str:
        buffer = place.buffer
        space = (
            self.dialect.spaces.get(buffer.memory.name, "") if buffer.role == "scratch" else self.dialect.spaces["heap"]
        )
        constant = f"volatile {constant}" if place.volatile else constant
        type_ = f"{space} {constant}{self.dialect.types[computed(buffer.scalar)]}{self.width}".strip()
        return self.forms.aligned.format(type=type_, address=self._address(place, start))

    def _address(self, place: Place, start: Text) -> str:
        pointer = self.values.pointer(place)
        return pointer if start.text == "0" else f"{pointer} + {start.within(PLUS)}"
