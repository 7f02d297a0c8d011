"""Indivisible updates of memory that others see."""

from __future__ import annotations

from lithify.kernel.ir import AtomicUpdate, Load
from lithify.lang.errors import LithifyError
from lithify.lang.operators import Operator
from lithify.lang.scalars import Kind, Scalar
from lithify.targets.cdialect.registers import Place
from lithify.targets.cdialect.text import CHOICE, PRIMARY, Text
from lithify.targets.cdialect.values import ValuePrinter, store_text


def atomic_lines(values: ValuePrinter, place: Place, statement: AtomicUpdate) -> list[str]:
    """The lines of an update, in the form that the dialect has for the operator and the type."""
    forms = values.dialect.atomics
    scalar, operator = statement.buffer.scalar, statement.operator
    value = values.value(statement.value)
    index = values.indices.text(statement.position)
    names = {"pointer": place.name, "index": index.text, "value": value.within(CHOICE + 1)}
    builtin = forms.builtin.get((operator.name, scalar))
    if builtin is not None:
        return [line.format(**names) for line in builtin]
    if scalar.bits not in forms.bits or scalar.kind is Kind.BOOL or scalar.is_complex:
        raise LithifyError(
            f"{values.dialect.name} has no indivisible {operator.name} on {scalar}",
            hint="accumulate in a type of 32 or 64 bits",
        )
    now = values.element(Load(statement.buffer, statement.index))
    combined = values.rounded(_combined(values, operator, scalar, now, value), scalar)
    names["update"] = store_text(values, place, index, combined)
    if forms.auxiliary:
        names["auxiliary"] = _auxiliary(values, place, operator, scalar)
    return [line.format(**names) for line in forms.fallback]


def _combined(values: ValuePrinter, operator: Operator, scalar: Scalar, a: Text, b: Text) -> Text:
    return values.template(operator, scalar).fill((a, b), **values.type_names(scalar))


def _auxiliary(values: ValuePrinter, place: Place, operator: Operator, scalar: Scalar) -> str:
    """The function of the preamble that updates one element by comparing and exchanging."""
    dialect = values.dialect
    buffer = place.buffer
    memory = buffer.memory.name if buffer.role == "scratch" else "heap"
    name = f"atomic_{operator.name}_{scalar.name}_{memory}"
    now, value = Text("now", PRIMARY), Text("value", PRIMARY)
    values.own_auxiliaries[name] = dialect.atomics.auxiliary[scalar.bits].format(
        name=name,
        space=dialect.spaces[memory],
        t=dialect.types[scalar],
        combined=_combined(values, operator, scalar, now, value).text,
    )
    return name
