"""Programs used inside others that are traced: with the types of what they are given there, under sizes of their own.

A program that is used leaves no trace, as a text's definition does not: its arguments stand in place of its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from lithify.arith import Expr, Variable, as_variable
from lithify.arith import size as size_variable
from lithify.lang.errors import LithifyError
from lithify.lang.place import place
from lithify.lang.values import FunctionValue, Value


@runtime_checkable
class Usable(Protocol):
    """What can stand for a value while a program is built, without being one of the language: another program."""

    def as_value(self) -> Value:
        """The value that it stands for."""
        ...


@dataclass(frozen=True, slots=True)
class KnownSizes:
    """What the size variables are while a function is traced for arguments of known shapes, which were met and missed.

    `outer` is the program that uses this one: it knows the sizes that are free here.
    """

    function: Callable[..., object]
    bound: dict[Variable, Expr]
    outer: KnownSizes | None = None
    missed: set[Variable] = field(default_factory=set)
    met: set[Variable] = field(default_factory=set)

    def resolve(self, size: Expr) -> Expr:
        """A size with what is known of its variables."""
        self.met.update(size.variables())
        here = size.variables() & self.bound.keys()
        free = size.variables() - here
        known = {v: self.bound[v] for v in here}
        if self.outer is None:
            self.missed.update(free)
        else:
            known |= {v: self.outer.resolve(v.expr) for v in free}
        return size.substitute(known)

    def named(self, name: str) -> Expr | None:
        """The size of a name, or None."""
        variable = as_variable(size_variable(name))
        self.met.add(variable)
        if variable in self.bound:
            return self.bound[variable]
        return None if self.outer is None else self.outer.named(name)

    def traces(self, function: Callable[..., object]) -> bool:
        """Is the function, or one that uses this one, being traced?"""
        return self.function is function or (self.outer is not None and self.outer.traces(function))


SIZES: ContextVar[KnownSizes | None] = ContextVar("sizes", default=None)


@contextmanager
def sizes_of(known: KnownSizes | None) -> Iterator[None]:
    """While size variables are those of a program that is traced."""
    token = SIZES.set(known)
    try:
        yield
    finally:
        SIZES.reset(token)


def used(value: Value, *, shipped: bool = False) -> Value:
    """A program's value with errors that tell where it was used.

    `shipped`: its definition is not the user's, so that the use is named first.
    """
    if not isinstance(value, FunctionValue):
        return value
    name, body = value.name, value.body

    def use(*arguments: Value) -> Value:
        try:
            return body(*arguments)
        except LithifyError as error:
            here = f"in the use of `{name}` at {place()}"
            if error.where is None:
                error.where = here
            elif here not in error.where:
                error.where = f"{here}\nwhich does not fit at {error.where}" if shipped else f"{error.where}\n{here}"
            raise

    return FunctionValue(name, value.arity, use)
