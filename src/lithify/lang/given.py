"""What a caller gave where something else is wanted, in the words of a message."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from lithify.lang.errors import LithifyError

_SHOWN = 60  # characters of a value that a message shows


def kind_of(value: Any) -> str:
    """A value as a message names it: `None`, `a list`, `the float 2.5`, `the class Path`, `the text 'ab'`."""
    if value is None or value is Ellipsis:
        return str(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    if isinstance(value, str):
        return f"the text {_short(value)}"
    if isinstance(value, bool | int | float | complex):
        return f"the {name} {_short(value)}"
    if hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple):
        return f"an array of {value.dtype}" if value.shape else f"the {value.dtype} {_short(value)}"
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def _short(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN:  # Python does not write out thousands of digits
        return f"of {value.bit_length()} bits"
    shown = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}.."


def text_given(value: Any, what: str, hint: str, error: type[LithifyError] = LithifyError) -> str:
    """The value, which has to be a text; `what` names it in the error that is raised else."""
    if isinstance(value, str):
        return value
    raise error(f"{what}: a text is wanted, {kind_of(value)} is given", hint=hint)


def whole_number(value: Any) -> int | None:
    """The value as an int where it is a whole number, NumPy's included; None for anything else (also for bool)."""
    if isinstance(value, bool) or getattr(value, "ndim", None):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def sizes_given(sizes: Any, error: type[LithifyError]) -> tuple[tuple[str, int], ...]:
    """Sizes by name, in the order of the names; raises the error for what is none."""
    if sizes is None:
        return ()
    if not isinstance(sizes, Mapping):
        raise error(f"sizes is a dict of numbers by name, {kind_of(sizes)} is given", hint='write sizes={"n": 128}')
    found = {}
    for name, value in sizes.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise error(f"sizes has the key {_short(name)}, which is no name of a size", hint='write sizes={"n": 128}')
        number = whole_number(value)
        if number is None:
            raise error(
                f"size {name} is a whole number, {kind_of(value)} is given", hint=f'write sizes={{"{name}": 128}}'
            )
        found[name] = number
    return tuple(sorted(found.items()))
