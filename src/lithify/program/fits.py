"""Of which sizes a program is: its type over the sizes that its parameters name, and what must hold for them.

A program that is run is built for sizes that are known, and what does not fit is refused. Here it is only looked at: a
condition that depends on the sizes is no mistake, but something to be said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.arith import ArithError, Expr, size
from lithify.lang.assumptions import assuming
from lithify.lang.errors import TypeMismatch, UnboundSize
from lithify.lang.types import Type

if TYPE_CHECKING:
    from lithify.program.program import Program


@dataclass(frozen=True)
class Fit:
    """The types of a program, the conditions on sizes under which it has them, and the sizes that calls give."""

    parameters: tuple[Type, ...]
    result: Type
    conditions: tuple[str, ...]
    given: tuple[str, ...]

    def __str__(self) -> str:
        types = " -> ".join(map(str, (*self.parameters, self.result)))
        notes = [f"fits where {' and '.join(self.conditions)}"] if self.conditions else []
        if self.given:
            notes.append(f"a call gives {', '.join(self.given)}")
        return f"{types}   ({'; '.join(notes)})" if notes else types


def fit_of(program: Program, sizes: Mapping[str, int]) -> Fit:
    """The types of a program whose parameters' types are written. Raises LithifyError for one that never fits."""
    known: dict[str, int | Expr] = dict(sizes)
    given: tuple[str, ...] = ()
    try:
        return _fit(program, known, given)
    except UnboundSize as error:
        given = error.names
        if not given:
            raise
    return _fit(program, {**known, **{name: size(name) for name in given}}, given)


def _fit(program: Program, sizes: Mapping[str, int | Expr], given: tuple[str, ...]) -> Fit:
    with assuming() as conditions:
        try:
            found = program.origin.elaborate((), sizes)
        except ArithError as error:  # a size of 0 or less where there cannot be one
            raise TypeMismatch(f"{program.name}: {error}") from error
    return Fit(tuple([type_ for _, type_ in found.parameters]), found.type, tuple(conditions), given)
