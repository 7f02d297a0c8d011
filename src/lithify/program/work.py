"""What a program has to do at least: bytes to and from memory, and operations by scalar type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.lang.errors import LithifyError
from lithify.lang.operators import Typing
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, below_parameters, subterms
from lithify.lang.types import Array, Index, Tuple, Type

if TYPE_CHECKING:
    from lithify.machine import Bound, DeviceModel


@dataclass(frozen=True, slots=True)
class Work:
    """`read` and `written` in bytes: every argument and every result once. `operations` by the operands' type."""

    read: int
    written: int
    operations: dict[str, int]

    @property
    def bytes(self) -> int:
        return self.read + self.written


def work_of(term: Term, parameters: Sequence[Type]) -> Work:
    """The work of a program whose sizes are known. Raises LithifyError for a symbolic size."""
    counted = {name: n for name, n in _Counter().of(term).items() if n}
    return Work(sum(map(bytes_of, parameters)), bytes_of(term.type), counted)


def bytes_of(type_: Type) -> int:
    """Bytes that a value of the type takes in memory."""
    if isinstance(type_, Array):
        return _count(type_) * bytes_of(type_.element)
    if isinstance(type_, Tuple):
        return sum(map(bytes_of, type_.items))
    if isinstance(type_, Index):
        return 4
    assert isinstance(type_, Scalar)
    return type_.bytes


def _count(type_: Type) -> int:
    assert isinstance(type_, Array)
    if type_.size.constant is None:
        raise LithifyError(f"the size {type_.size} is not known", hint="give arguments, or their types (100.f32)")
    return type_.size.constant


def bound_of(work: Work, lowered: Term, model: DeviceModel) -> Bound:
    """The least time for a program's work on a device, by the roofline of what is known of its rates.

    Raises LookupError where the bandwidth of the device's memory is not.
    """
    from lithify.machine import roofline

    known = {peak.of for peak in model.arithmetic}
    done = on_units(work.operations, lowered, known)
    return roofline(work.bytes, {name: count for name, count in done.items() if name in known}, model)


def on_units(operations: Mapping[str, int], lowered: Term, known: AbstractSet[str]) -> dict[str, int]:
    """Operations by the unit that does them: sums of products by instructions on the machine's `matrix` units.

    `known` are the rates that the machine's model has ("f32", "matrix bf16", ..).
    """
    moved = dict(operations)
    for row in {t["row"] for t in subterms(lowered) if t.kind == "instr"}:
        unit, scalar = f"matrix {row.operands[0]}", row.operands[2]
        if row.shape[2] > 1 and unit in known and scalar in moved:
            moved[unit] = moved.pop(scalar)
    return moved


class _Counter:
    """Operations of a term: those of a function once for each element that it is applied to; a term that stands several
    times in a function (a parameter that is read twice) is computed once."""

    def __init__(self) -> None:
        self.memo: dict[int, Counter[str]] = {}

    def of(self, body: Term) -> Counter[str]:
        """The operations of a program, or of a function's body."""
        found = self.memo.get(body.id)
        if found is None:
            found = self.memo[body.id] = Counter()
            for t in _distinct(body):
                found.update(self._own(t))
        return found

    def _own(self, t: Term) -> Counter[str]:
        """The operations of a term without those of its arguments."""
        if t.kind == "op":
            operator, scalar = t.attrs[0], t.args[0].type
            if operator.definition is not None:
                return self.of(below_parameters(operator.definition)[0])
            counts = isinstance(scalar, Scalar) and (scalar.is_float or scalar.is_integer or scalar.is_complex)
            return Counter({str(scalar): int(counts and operator.typing in (Typing.SAME, Typing.COMPARE))})
        total: Counter[str] = Counter()
        times = self._times(t)
        for child in t.args:
            if child.kind == "lambda":
                total.update({name: times * count for name, count in self.of(below_parameters(child)[0]).items()})
        return total

    @staticmethod
    def _times(t: Term) -> int:
        if t.kind == "iterate":
            return int(t["count"].constant)
        if t.kind == "generate":
            return int(t["size"].constant)
        if t.kind in ("map", "reduce", "scan", "pipe"):
            return _count(t.args[-1].type)
        return 1


def _distinct(body: Term) -> Iterator[Term]:
    """Every term outside of functions, once."""
    seen, stack = {body.id}, [body]
    while stack:
        t = stack.pop()
        yield t
        for child in t.args:
            if child.kind != "lambda" and child.id not in seen:
                seen.add(child.id)
                stack.append(child)
