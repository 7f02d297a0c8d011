"""Values of a kernel as C expressions, one element at a time."""

from __future__ import annotations

from lithify.arith import Loaded
from lithify.kernel.ir import Apply, Buffer, Choose, Constant, IndexValue, Load, Value
from lithify.lang.errors import LithifyError
from lithify.lang.operators import Operator, Typing
from lithify.lang.scalars import SCALARS, Kind, Scalar, f32, f64
from lithify.targets.cdialect.dialect import Dialect, Storage, computed, is_rounded, parts_of, unsigned_of
from lithify.targets.cdialect.indices import IndexPrinter
from lithify.targets.cdialect.literals import literal
from lithify.targets.cdialect.operations import BY_CONSTANT, OPERATIONS, SELECT
from lithify.targets.cdialect.registers import Place
from lithify.targets.cdialect.text import EQUALITY, PRIMARY, UNARY, Template, Text, call
from lithify.targets.cdialect.walk import operands


class ValuePrinter:
    """Writes values. `auxiliaries` collects the preamble functions that the text calls.

    Values that occur more than once in a statement are computed once: `named` holds the variables they are kept in.
    """

    def __init__(self, dialect: Dialect, size_bits: int) -> None:
        self.dialect = dialect
        self.auxiliaries: set[str] = set()
        self.own_auxiliaries: dict[str, str] = {}  # functions made for this kernel: name -> text
        self.indices = IndexPrinter(dialect, size_bits, self.auxiliaries, self.load_index)
        self.places: dict[Buffer, Place] = {}
        self.named: dict[int, Text] = {}

    # ---- values -----------------------------------------------------------------------------------------------

    def value(self, value: Value) -> Text:
        """The expression of a value, of its computed type."""
        found = self.named.get(id(value))
        if found is not None:
            return found
        match value:
            case Constant():
                return self.constant(value)
            case IndexValue():
                return self.index_value(value)
            case Load():
                return self.load(value)
            case Choose():
                parts = (self.indices.conditions(value.guard), self.value(value.then), self.value(value.otherwise))
                return SELECT.fill(parts)
            case Apply():
                return self.apply(value)

    def constant(self, value: Constant) -> Text:
        """A literal."""
        if value.scalar.is_complex:
            self.auxiliaries.add(f"make_{value.scalar.name}")
        return literal(value.value, value.scalar, self.dialect)

    def index_value(self, value: IndexValue) -> Text:
        """An index form as a value of its type."""
        bits = self.indices.bits([value.index])
        text = self.indices.text(value.index, bits)
        own = SCALARS[f"i{bits}"]
        return text if own is value.scalar else self.convert(text, own, value.scalar)

    def load(self, load: Load) -> Text:
        """An element, or the fill where the guard fails."""
        text = self.element(load)
        if not load.guard:
            return text
        assert load.fill is not None
        return SELECT.fill((self.indices.conditions(load.guard), text, self.value(load.fill)))

    def element(self, load: Load) -> Text:
        """The element itself, the guard left aside."""
        place = self.places[load.buffer]
        position = load.position
        if place.cells is not None:
            assert position.constant is not None
            return Text(self.component(place, position.constant))
        index = self.indices.text(position)
        if load.buffer.role == "scalar":
            return self.from_parameter(place)
        storage = self.storage(place)
        if storage is None:
            return Text(f"{place.name}[{index.text}]")
        return storage.load.fill((), pointer=self.pointer(place), index=index.text)

    def component(self, place: Place, position: int) -> str:
        """The variable, or component of a vector variable, that holds an element of a buffer."""
        vectors = self.dialect.vectors
        return place.elements(position, 1, "" if vectors is None else vectors.components)

    def from_parameter(self, place: Place) -> Text:
        """A scalar parameter; truth values are passed as bytes."""
        return Text(f"{place.name} != 0", EQUALITY) if place.buffer.scalar.kind is Kind.BOOL else Text(place.name)

    def storage(self, place: Place) -> Storage | None:
        """The storage form of a buffer's elements; None where they are stored as they are computed with."""
        if not place.stored:
            return None
        found = self.dialect.storage.get(place.buffer.scalar)
        if found is not None:
            self.auxiliaries.update(storage_auxiliaries(found, self.dialect))
        return found

    def pointer(self, place: Place) -> str:
        """The pointer to a buffer's elements in storage form, as functions take it."""
        storage = self.dialect.storage.get(place.buffer.scalar) if place.stored else None
        if place.volatile:
            element = self.dialect.types[place.buffer.scalar] if storage is None else storage.parameter
            return f"(({self.dialect.spaces['heap']} {element} *){place.name})"
        if storage is None or not place.is_array:
            return place.name
        return storage.cast.format(name=place.name, space=self.dialect.spaces.get(place.buffer.memory.name, ""))

    def load_index(self, atom: Loaded) -> Text:
        """An index that is read from a buffer."""
        assert isinstance(atom.buffer, Buffer)
        return self.element(Load(atom.buffer, atom.index))

    # ---- operators --------------------------------------------------------------------------------------------

    def apply(self, value: Apply) -> Text:
        """A scalar operator on its operands."""
        operator = value.operator
        texts = tuple([self.value(operand) for operand in value.operands])
        if operator.typing is Typing.CONVERT:
            return self.convert(texts[0], value.operands[0].scalar, value.scalar)
        if operator.typing is Typing.SELECT:
            return SELECT.fill(texts)
        operand_type = value.operands[0].scalar
        if (operator.name, operand_type.kind) in BY_CONSTANT and _is_easy(operator, value.operands[1]):
            right = texts[1].within(UNARY)
            return BY_CONSTANT[operator.name, operand_type.kind].fill(
                texts[:1], n=right, **self.type_names(operand_type)
            )
        template = self.template(operator, operand_type)
        result = template.fill(texts, **self.type_names(operand_type))
        return self.rounded(result, value.scalar)

    def template(self, operator: Operator, scalar: Scalar) -> Template:
        """How the dialect writes an operator on operands of a type."""
        key = (operator.name, scalar.kind)
        template = self.dialect.operations.get(key) or OPERATIONS.get(key)
        if template is None:
            raise LithifyError(f"{self.dialect.name} has no way to write {operator.name} on {scalar}")
        if template.auxiliary is not None:
            self.auxiliaries.add(template.auxiliary.format(**self.type_names(scalar)))
        return template

    def type_names(self, scalar: Scalar) -> dict[str, str]:
        """What stands for the names in braces of a template."""
        types, inner = self.dialect.types, computed(scalar)
        names = {"t": types[inner], "s": inner.name, "f": self.dialect.suffixes.get(inner, "")}
        if scalar.is_integer:
            names["w"] = types[unsigned_of(scalar)]
        if scalar in (f32, f64):
            names["c"] = "complex64" if scalar is f32 else "complex128"
        return names

    def rounded(self, text: Text, scalar: Scalar) -> Text:
        """A result computed in f32 as the nearest value of its own, narrower type."""
        if not is_rounded(scalar):
            return text
        self.auxiliaries.add(f"round_{scalar.name}")
        return Text(f"round_{scalar.name}({text.text})")

    def convert(self, text: Text, source: Scalar, target: Scalar) -> Text:
        """A value of one scalar type as another."""
        if source is target:
            return text
        if source.is_complex and target.is_complex:
            self.auxiliaries.update((f"convert_{source.name}_{target.name}",))
            return call(f"convert_{source.name}_{target.name}", 1).fill((text,))
        if source.is_complex:
            part = Text(f"{text.within(PRIMARY)}.re")
            if target.kind is Kind.BOOL:
                self.auxiliaries.add(f"ne_{source.name}")
                self.auxiliaries.add(f"make_{source.name}")
                return Text(f"ne_{source.name}({text.text}, make_{source.name}(0, 0))")
            return self.convert(part, parts_of(source), target)
        if target.is_complex:
            self.auxiliaries.add(f"make_{target.name}")
            part = self.convert(text, source, parts_of(target))
            return Text(f"make_{target.name}({part.text}, 0)")
        if target.kind is Kind.BOOL:
            return Text(f"{text.within(EQUALITY + 1)} != 0", EQUALITY)
        if is_rounded(target) and source.bits == 64 and source.is_float:
            self.auxiliaries.add("odd_f32")  # no second rounding: the first one keeps what the second needs to know
            return self.rounded(Text(f"odd_f32({text.text})"), target)
        inner, outer = computed(source), computed(target)
        if source.is_float and target.is_integer:
            self.auxiliaries.add(f"{inner.name}_to_{target.name}")
            return call(f"{inner.name}_to_{target.name}", 1).fill((text,))
        result = text if inner is outer else Text(f"({self.dialect.types[outer]}){text.within(UNARY)}", UNARY)
        return result if is_rounded(source) and source is target else self.rounded(result, target)


def _is_easy(operator: Operator, right: Value) -> bool:
    """Whether the constant on the right needs no care."""
    if not isinstance(right, Constant):
        return False
    if operator.name in ("shl", "shr"):
        return bool(0 <= right.value < right.scalar.bits)
    return right.value not in (0, -1)


def store_text(values: ValuePrinter, place: Place, index: Text, value: Text) -> str:
    """The statement that stores one element in memory."""
    storage = values.storage(place)
    if storage is None:
        return f"{place.name}[{index.text}] = {value.text};"
    return storage.store.format(pointer=values.pointer(place), index=index.text, value=value.text)


def storage_auxiliaries(storage: Storage, dialect: Dialect) -> set[str]:
    """The preamble functions that accesses in a storage form call."""
    texts = [storage.load.text, storage.store]
    return {name for name in dialect.auxiliary_texts if any(name in text for text in texts)}


def shared_values(value: Value) -> list[Value]:
    """The applications that occur more than once below a value, inner ones first."""
    counts: dict[int, int] = {}
    order: list[Value] = []

    def visit(current: Value) -> None:
        counts[id(current)] = counts.get(id(current), 0) + 1
        if counts[id(current)] > 1:
            return
        for operand in operands(current):
            visit(operand)
        order.append(current)

    visit(value)
    return [v for v in order if counts[id(v)] > 1 and isinstance(v, Apply)]
