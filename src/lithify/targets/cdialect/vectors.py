"""Values for all lanes at once, in languages that have vectors.

A value that does not mention the lane stays scalar until it meets one that does. Truth values of vectors are masks: -1
or 0 in integers, as wide as what was compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from lithify.arith import Expr, Variable
from lithify.kernel.ir import Apply, AtomicUpdate, Choose, Constant, Guard, IndexValue, Load, Store, Value
from lithify.lang.operators import Typing
from lithify.lang.scalars import SCALARS, Scalar, bool_
from lithify.targets.cdialect.dialect import Dialect, VectorForms, computed, is_rounded
from lithify.targets.cdialect.lane_lines import SIGNED, UNSIGNED, LaneLines, Vector
from lithify.targets.cdialect.names import Names
from lithify.targets.cdialect.operations import OPERATIONS
from lithify.targets.cdialect.registers import PRIVATE_MEMORIES, Place
from lithify.targets.cdialect.text import BITS, CHOICE, EQUALITY, PLUS, PRIMARY, RELATION, UNARY, Text
from lithify.targets.cdialect.values import ValuePrinter, store_text
from lithify.targets.cdialect.walk import depends, subvalues

_LARGEST_NUMBER = 8  # bytes


class VectorPrinter:
    """Writes one store for all lanes of a vector, as lines; its temporaries stand in a block of their own."""

    def __init__(self, values: ValuePrinter, names: Names, lane: Variable, width: int) -> None:
        self.lines = LaneLines(values.indices, names, lane, width)
        self.forms: VectorForms = self.lines.forms
        self.dialect: Dialect = values.dialect
        self.values, self.lane, self.width = values, lane, width
        self._where: Guard = ()  # conditions under which the lanes' loads happen, beyond their own

    # ---- statements -------------------------------------------------------------------------------------------

    def store(self, statement: Store) -> list[str]:
        """buffer[index] := value for all lanes; nothing is read for lanes in which the guard fails."""
        place = self.values.places[statement.buffer]
        position = statement.position
        common, own = self._divide(statement.guard)
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

    def _divide(self, guard: Guard) -> tuple[Guard, Guard]:
        """The conditions that are the same for all lanes, and the others."""
        guard = tuple([self._of_all(e) for e in guard])
        common = tuple(e for e in guard if self.lane not in e.variables())
        return common, tuple(e for e in guard if self.lane in e.variables())

    def _of_all(self, condition: Expr) -> Expr:
        """The condition of the first lane where it holds for all lanes or for none.

        So it is where what it compares are multiples of the width: 4 i + lane < 4 n.
        """
        slope, first = condition.coefficient(self.lane), condition.substitute({self.lane: 0})
        multiple = first + 1 if slope == -1 else first
        whole = slope in (1, -1) and self.lane not in first.variables() and multiple.alignment % self.width == 0
        return first if whole else condition

    def _assign(self, place: Place, start: int, value: Vector, guard: Guard) -> None:
        name = place.elements(start, self.width, self.forms.components)
        if value.scalar is bool_:
            value = Vector(self._as_mask(value, 32), bool_, True, 32)
        if guard:
            mask = self._as_mask(self.mask(guard), value.element.bits)
            value = value._replace(text=Text(f"select({name}, {value.text.text}, {mask.text})"))
        self.lines.add(f"{name} = {value.text.text};")

    def _by_lanes(self, place: Place) -> bool:
        """Whether a private array is accessed by elements only, because a compiler may make one number of the vector.

        What moves numbers past each other does not see then that the elements lie in them (see `lane_lines`).
        """
        size = place.buffer.scalar.bytes * self.width
        return place.is_array and place.buffer.memory.name in PRIVATE_MEMORIES and size <= _LARGEST_NUMBER

    def _storable(self, place: Place) -> bool:
        if self._by_lanes(place):
            return False
        storage = self.values.storage(place)
        return place.buffer.scalar is not bool_ if storage is None else storage.vector_store is not None

    def _vector_store(self, place: Place, position: Expr, value: Vector) -> str:
        storage = self.values.storage(place)
        start = self._start(position)
        names = {"width": str(self.width), "address": self._address(place, start)}
        if storage is not None:
            assert storage.vector_store is not None
            if place.buffer.scalar is bool_:
                value = Vector(self._as_mask(value, 8), bool_, True, 8)
            return storage.vector_store.format(value=value.text.text, **names)
        if self._aligned(place, position):
            return f"{self._lvalue(place, start, '')} = {value.text.text};"
        return self.forms.store.format(value=value.text.text, **names) + ";"

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

    # ---- values -----------------------------------------------------------------------------------------------

    def value(self, value: Value) -> Vector:
        """A value for all lanes, or a scalar that all lanes share."""
        if not depends(value, self.lane):
            return Vector(self.values.value(value), value.scalar, False)
        match value:
            case Load():
                return self._load(value)
            case IndexValue():
                return self._index_value(value)
            case Choose():
                return self._choose(value)
            case Apply():
                return self._apply(value)
        raise AssertionError(f"a constant does not depend on the lane: {value}")

    def widened(self, vector: Vector) -> Vector:
        """The value as a vector."""
        if vector.wide:
            return vector
        if vector.scalar is bool_:
            text = f"(int{self.width})({vector.text.within(CHOICE + 1)} ? -1 : 0)"
            return Vector(Text(text, UNARY), bool_, True, 32)
        text = f"({self.lines.type_of(vector)}{self.width})({vector.text.text})"
        return Vector(Text(text, UNARY), vector.scalar, True)

    def _load(self, load: Load) -> Vector:
        place = self.values.places[load.buffer]
        position = load.position
        if place.cells is None:
            load = self._guarded(load)
        common, own = self._divide(load.guard)
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
            return self._select(self.mask(load.guard), plain, fill)
        return self._ternary(self.values.indices.conditions(common), plain, fill)

    def _guarded(self, load: Load) -> Load:
        """The load for the lanes that are stored only; memory beyond them need not be there."""
        more = tuple(e for e in self._where if e not in load.guard)
        if not more:
            return load
        fill = Constant(0, load.scalar) if load.fill is None else load.fill
        return Load(load.buffer, load.index, (*load.guard, *more), fill)

    def _loadable(self, place: Place) -> bool:
        if self._by_lanes(place):
            return False
        storage = self.values.storage(place)
        return place.buffer.scalar is not bool_ if storage is None else storage.vector_load is not None

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
        else:
            text = Text(self.forms.load.format(**names))
        if backwards:
            order = "".join(reversed(self.forms.components[: self.width]))
            text = Text(f"{text.within(PRIMARY)}.s{order}")
        return Vector(text, scalar, True, 8 if scalar is bool_ else 0)

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
        type_ = f"{space} {constant}{self.dialect.types[computed(buffer.scalar)]}{self.width}".strip()
        return self.forms.aligned.format(type=type_, address=self._address(place, start))

    def _address(self, place: Place, start: Text) -> str:
        pointer = self.values.pointer(place)
        return pointer if start.text == "0" else f"{pointer} + {start.within(PLUS)}"

    def _partial_load(self, load: Load, place: Place, position: Expr) -> Vector:
        """A vector access where all lanes hold, lane by lane where not."""
        everywhere = self._everywhere(load.guard)
        if everywhere is None:
            return self._gather(load)
        assert load.fill is not None
        fill = self.widened(self.value(load.fill))
        if load.scalar is bool_:
            fill = Vector(self._as_mask(fill, 8), bool_, True, 8)
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
            assert load.fill is not None
            fill = self.widened(self.value(load.fill))
            if load.scalar is bool_:
                fill = Vector(self._as_mask(fill, 8), bool_, True, 8)
            return plain._replace(text=self._lanes_over(fill, load))
        elements = [self._element(load, {self.lane: lane}) for lane in range(self.width)]
        return plain._replace(text=self.lines.of_lanes(self.lines.type_of(plain), elements))

    def _lanes_over(self, fill: Vector, load: Load) -> Text:
        """The elements of the lanes in which the load's guard holds, the fill in the others."""
        name = self.lines.changing(fill)
        common, own = self._divide(load.guard)
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

    def _index_value(self, value: IndexValue) -> Vector:
        bits = self.values.indices.bits([value.index, value.index.substitute({self.lane: self.width - 1})])
        own = SCALARS[f"i{bits}"]
        slope = value.index.coefficient(self.lane)
        if slope is not None:
            return self.convert(Vector(self._ramp(value.index, slope, bits), own, True), value.scalar)
        each = [value.index.substitute({self.lane: lane}) for lane in range(self.width)]
        elements = [self.values.indices.text(e, bits).text for e in each]
        return self.convert(Vector(self.lines.of_lanes(self.dialect.types[own], elements), own, True), value.scalar)

    def _ramp(self, e: Expr, slope: int, bits: int) -> Text:
        """A form that is linear in the lane, for all lanes."""
        numbers = ", ".join(str(slope * i) for i in range(self.width))
        steps = f"({self.dialect.index_types[bits]}{self.width})({numbers})"
        start = e.substitute({self.lane: 0})
        if start.constant == 0:
            return Text(steps, UNARY)
        return Text(f"{self.values.indices.text(start, bits).within(PLUS)} + {steps}", PLUS)

    # ---- masks ------------------------------------------------------------------------------------------------

    def mask(self, guard: Guard) -> Vector:
        """The lanes in which all conditions hold."""
        common, own = self._divide(guard)
        parts: list[Text] = []
        if common:
            condition = self.values.indices.conditions(common)
            parts.append(self.widened(Vector(condition, bool_, False)).text)
        for e in own:
            slope = e.coefficient(self.lane)
            bits = self.values.indices.bits([e])
            if slope is not None and bits == 32:
                parts.append(Text(f"{self._ramp(e, slope, bits).within(PLUS)} >= 0", RELATION))
                continue
            each = [(e.substitute({self.lane: lane}),) for lane in range(self.width)]
            truths = [f"{self.values.indices.conditions(c).within(CHOICE + 1)} ? -1 : 0" for c in each]
            parts.append(self.lines.of_lanes(self.dialect.index_types[32], truths))
        text = parts[0] if len(parts) == 1 else Text(" & ".join(p.within(UNARY) for p in parts), BITS)
        return Vector(text, bool_, True, 32)

    def _as_mask(self, condition: Vector, bits: int) -> Text:
        """A truth value as a mask of the given width."""
        condition = self.widened(condition)
        if condition.mask == bits:
            return condition.text
        return Text(f"convert_{self.dialect.types[SIGNED[bits]]}{self.width}({condition.text.text})")

    def _choose(self, value: Choose) -> Vector:
        then, otherwise = self.value(value.then), self.value(value.otherwise)
        if any(self.lane in e.variables() for e in value.guard):
            return self._select(self.mask(value.guard), then, otherwise)
        return self._ternary(self.values.indices.conditions(value.guard), then, otherwise)

    def _ternary(self, condition: Text, then: Vector, otherwise: Vector) -> Vector:
        """A choice that is the same for all lanes."""
        if then.wide or otherwise.wide:
            then, otherwise = self._alike(self.widened(then), self.widened(otherwise))
        text = f"{condition.within(CHOICE + 1)} ? {then.text.within(CHOICE + 1)} : {otherwise.text.within(CHOICE + 1)}"
        return then._replace(text=Text(text, CHOICE))

    def _select(self, condition: Vector, then: Vector, otherwise: Vector) -> Vector:
        """A choice lane by lane."""
        then, otherwise = self._alike(self.widened(then), self.widened(otherwise))
        mask = self._as_mask(condition, then.element.bits)
        return then._replace(text=Text(f"select({otherwise.text.text}, {then.text.text}, {mask.text})"))

    def _alike(self, a: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Two masks with one width; other vectors are of one type already."""
        if a.scalar is not bool_ or a.mask == b.mask:
            return a, b
        bits = max(a.mask, b.mask)
        return (Vector(self._as_mask(a, bits), bool_, True, bits), Vector(self._as_mask(b, bits), bool_, True, bits))

    # ---- operators --------------------------------------------------------------------------------------------

    def _apply(self, value: Apply) -> Vector:
        operator = value.operator
        operands = [self.value(operand) for operand in value.operands]
        if operator.typing is Typing.CONVERT:
            return self.convert(operands[0], value.scalar)
        if operator.typing is Typing.SELECT:
            condition, then, otherwise = operands
            if condition.wide:
                return self._select(condition, then, otherwise)
            return self._ternary(condition.text, then, otherwise)
        scalar = value.operands[0].scalar
        operands = [self.widened(operand) for operand in operands]
        if scalar is bool_:
            bits = max(operand.mask for operand in operands)
            texts = tuple([self._as_mask(operand, bits) for operand in operands])
        else:
            bits, texts = computed(scalar).bits, tuple([operand.text for operand in operands])
        key = (operator.name, scalar.kind)
        template = self.forms.operations.get(key) or OPERATIONS[key]
        result = template.fill(texts, **self._names(scalar))
        if operator.typing is Typing.COMPARE:
            if scalar is bool_ and operator.name == "eq":
                result = Text(f"~({texts[0].within(UNARY)} ^ {texts[1].within(UNARY)})", UNARY)
            return Vector(result, bool_, True, bits)
        if value.scalar is bool_:
            return Vector(result, bool_, True, bits)
        return Vector(self._rounded(result, value.scalar), value.scalar, True)

    def _names(self, scalar: Scalar) -> dict[str, str]:
        inner = computed(scalar)
        unsigned = UNSIGNED[inner.bits]
        return {
            "t": f"{self.dialect.types[inner]}{self.width}",
            "u": f"{self.dialect.types[unsigned]}{self.width}",
            "f": "",
            "last": str(inner.bits - 1),
        }

    def _rounded(self, text: Text, scalar: Scalar) -> Text:
        if not is_rounded(scalar):
            return text
        name = f"round_{scalar.name}x{self.width}"
        self.values.auxiliaries.add(name)
        return Text(f"{name}({text.text})")

    def convert(self, vector: Vector, target: Scalar) -> Vector:
        """A vector of one scalar type as another."""
        if not vector.wide:
            return Vector(self.values.convert(vector.text, vector.scalar, target), target, False)
        source = vector.scalar
        if source is target:
            return vector
        type_ = f"{self.dialect.types[computed(target)]}{self.width}"
        if target is bool_:
            bits = computed(source).bits
            return Vector(
                Text(f"{vector.text.within(PLUS)} != ({self.lines.type_of(vector)}{self.width})(0)", EQUALITY),
                bool_,
                True,
                bits,
            )
        if source is bool_:
            text = Text(f"convert_{type_}(-{vector.text.within(PRIMARY)})")
        elif computed(source) is computed(target):
            text = vector.text
        else:
            saturated = "_sat" if source.is_float and target.is_integer else ""  # NaN gives 0
            text = Text(f"convert_{type_}{saturated}({vector.text.text})")
        return Vector(self._rounded(text, target), target, True)


def can_be_vector(statement: Store | AtomicUpdate, dialect: Dialect) -> bool:
    """Whether a language with vectors can write a statement for all lanes at once."""
    assert dialect.vectors is not None
    if isinstance(statement, AtomicUpdate):
        return False
    forms = dialect.vectors
    return statement.buffer.scalar in forms.scalars and all(
        _is_vector_value(v, forms) for v in subvalues(statement.value)
    )


def _is_vector_value(value: Value, forms: VectorForms) -> bool:
    if value.scalar not in forms.scalars:
        return False
    if isinstance(value, Apply) and value.operator.typing not in (Typing.CONVERT, Typing.SELECT):
        key = (value.operator.name, value.operands[0].scalar.kind)
        if key not in forms.operations and (key not in OPERATIONS or OPERATIONS[key].auxiliary is not None):
            return False
        if (value.operator.name, computed(value.operands[0].scalar)) in forms.lane_by_lane:
            return False
    if isinstance(value, Apply) and value.operator.typing is Typing.CONVERT:  # double rounding, see ValuePrinter
        return not (is_rounded(value.scalar) and value.operands[0].scalar.bits == 64)
    return True
