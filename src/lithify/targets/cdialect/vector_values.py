"""Values for all lanes at once, in languages that have vectors.

A value that does not mention the lane stays scalar until it meets one that does. Truth values of vectors are masks: -1
or 0 in integers, as wide as what was compared.
"""

from __future__ import annotations

from abc import abstractmethod

from lithify.arith import Expr, Variable
from lithify.kernel.ir import Apply, AtomicUpdate, Choose, Guard, IndexValue, Load, Store, Value
from lithify.lang.operators import Typing
from lithify.lang.scalars import SCALARS, Scalar, bool_
from lithify.targets.cdialect.dialect import Dialect, VectorForms, computed, is_rounded
from lithify.targets.cdialect.lane_lines import SIGNED, UNSIGNED, LaneLines, Vector
from lithify.targets.cdialect.names import Names
from lithify.targets.cdialect.operations import OPERATIONS
from lithify.targets.cdialect.text import BITS, CHOICE, EQUALITY, PLUS, PRIMARY, RELATION, UNARY, Text
from lithify.targets.cdialect.values import ValuePrinter
from lithify.targets.cdialect.walk import depends, subvalues


class VectorValues:
    """Writes values for all lanes of a vector; what they need beside them goes to `lines`."""

    def __init__(self, values: ValuePrinter, names: Names, lane: Variable, width: int) -> None:
        self.lines = LaneLines(values.indices, names, lane, width)
        self.forms: VectorForms = self.lines.forms
        self.dialect: Dialect = values.dialect
        self.values, self.lane, self.width = values, lane, width

    def value(self, value: Value) -> Vector:
        """A value for all lanes, or a scalar that all lanes share."""
        if not depends(value, self.lane):
            return Vector(self.values.value(value), value.scalar, False)
        match value:
            case Load():
                return self.load(value)
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

    @abstractmethod
    def load(self, load: Load) -> Vector:
        """What all lanes load."""

    # ---- indices ----------------------------------------------------------------------------------------------

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

    # ---- masks and choices ------------------------------------------------------------------------------------

    def divided(self, guard: Guard) -> tuple[Guard, Guard]:
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

    def mask(self, guard: Guard) -> Vector:
        """The lanes in which all conditions hold."""
        common, own = self.divided(guard)
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

    def as_mask(self, condition: Vector, bits: int) -> Text:
        """A truth value as a mask of the given width."""
        condition = self.widened(condition)
        if condition.mask == bits:
            return condition.text
        return Text(f"convert_{self.dialect.types[SIGNED[bits]]}{self.width}({condition.text.text})")

    def _choose(self, value: Choose) -> Vector:
        then, otherwise = self.value(value.then), self.value(value.otherwise)
        if any(self.lane in e.variables() for e in value.guard):
            return self.select(self.mask(value.guard), then, otherwise)
        return self.ternary(self.values.indices.conditions(value.guard), then, otherwise)

    def ternary(self, condition: Text, then: Vector, otherwise: Vector) -> Vector:
        """A choice that is the same for all lanes."""
        if then.wide or otherwise.wide:
            then, otherwise = self._alike(self.widened(then), self.widened(otherwise))
        text = f"{condition.within(CHOICE + 1)} ? {then.text.within(CHOICE + 1)} : {otherwise.text.within(CHOICE + 1)}"
        return then._replace(text=Text(text, CHOICE))

    def select(self, condition: Vector, then: Vector, otherwise: Vector) -> Vector:
        """A choice lane by lane."""
        then, otherwise = self._alike(self.widened(then), self.widened(otherwise))
        mask = self.as_mask(condition, then.element.bits)
        return then._replace(text=Text(f"select({otherwise.text.text}, {then.text.text}, {mask.text})"))

    def _alike(self, a: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Two masks with one width; other vectors are of one type already."""
        if a.scalar is not bool_ or a.mask == b.mask:
            return a, b
        bits = max(a.mask, b.mask)
        return (Vector(self.as_mask(a, bits), bool_, True, bits), Vector(self.as_mask(b, bits), bool_, True, bits))

    # ---- operators --------------------------------------------------------------------------------------------

    def _apply(self, value: Apply) -> Vector:
        operator = value.operator
        operands = [self.value(operand) for operand in value.operands]
        if operator.typing is Typing.CONVERT:
            return self.convert(operands[0], value.scalar)
        if operator.typing is Typing.SELECT:
            condition, then, otherwise = operands
            if condition.wide:
                return self.select(condition, then, otherwise)
            return self.ternary(condition.text, then, otherwise)
        scalar = value.operands[0].scalar
        operands = [self.widened(operand) for operand in operands]
        if scalar is bool_:
            bits = max(operand.mask for operand in operands)
            texts = tuple([self.as_mask(operand, bits) for operand in operands])
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
