"""Side conditions that hold for some sizes and not for others.

Where a program is built to be run they are refused. Where it is only looked at, over sizes that are not known yet, they
may be assumed: the type is what it is where they hold, and they are noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from lithify.arith import Expr, proves, proves_divisible
from lithify.lang.errors import TypeMismatch

if TYPE_CHECKING:
    from lithify.lang.types import Type

_ASSUMED: ContextVar[list[str] | None] = ContextVar("assumed", default=None)
_TRIED = 64  # divisors up to this one: whether another remainder is certain


class OpenCondition(TypeMismatch):
    """A term that fits for some sizes only: `conditions` say for which, `type` is its type there (None: not known)."""

    def __init__(
        self, message: str, conditions: Sequence[str], type_: Type | None = None, *, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.conditions = tuple(conditions)
        self.type = type_


@contextmanager
def assuming() -> Iterator[list[str]]:
    """Within, conditions on sizes that are not known yet are assumed; the list says which."""
    noted: list[str] = []
    token = _ASSUMED.set(noted)
    try:
        yield noted
    finally:
        _ASSUMED.reset(token)


def is_assumed(*conditions: str) -> bool:
    """Whether conditions may be assumed here: then they are noted."""
    noted = _ASSUMED.get()
    if noted is None:
        return False
    noted += [each for each in conditions if each not in noted]
    return True


def assumed_type(error: OpenCondition) -> Type:
    """The type of a term whose conditions are assumed; raises the error where they are not to be."""
    if error.type is None or not is_assumed(*error.conditions):
        raise error
    return error.type


# ---- what can be -----------------------------------------------------------------------------------------------------


def never_equal(a: Expr, b: Expr) -> bool:
    """Whether two sizes are different whatever the sizes in them are, as far as is known."""
    return proves(a - b - 1) or proves(b - a - 1)


def never_at_most(a: Expr, b: Expr) -> bool:
    """Whether `a <= b` holds for no sizes, as far as is known."""
    return proves(a - b - 1)


def never_divides(divisor: Expr, size: Expr) -> bool:
    """Whether `divisor divides size` holds for no sizes, as far as is known."""
    if proves(size - 1) and proves(divisor - size - 1):
        return True
    number = divisor.constant
    if number is None or not 1 < number <= _TRIED:
        return False
    return any(proves_divisible(size - remainder, divisor) for remainder in range(1, number))
