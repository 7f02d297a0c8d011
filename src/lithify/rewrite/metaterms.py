"""Terms with metavariables: what both sides of a rule are made of.

`notation` reads them from a rule's text, `matching` compares left sides with terms, `template` builds right sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from lithify.lang.patterns import Pattern


@dataclass(frozen=True, slots=True)
class Meta:
    """A metavariable, applied to arguments."""

    name: str
    arguments: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """A variable that a λ of the rule binds."""

    name: str


@dataclass(frozen=True, slots=True)
class Lambda:
    """`λa b. body`."""

    names: tuple[str, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Formula:
    """An attribute: a metavariable (`name` is set), a constant, or, on the right, a formula over metavariables."""

    text: str
    name: str | None = None
    code: CodeType | None = None
    constant: Any = None

    def evaluate(self, bindings: dict[str, Any]) -> Any:
        """The attribute's value under the bindings."""
        if self.name is not None:
            return bindings[self.name]
        if self.code is not None:
            return eval(self.code, FUNCTIONS, bindings)  # the text is a declaration of ours, never input
        return self.constant


@dataclass(frozen=True, slots=True)
class MapName:
    """`@a`, `@a/b`, `@a.suffix`: the name of a loop; without a variable any name on the left, none on the right."""

    variable: str | None = None
    otherwise: str | None = None
    suffix: str | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """A pattern of the language, applied to children."""

    pattern: Pattern
    attributes: tuple[Formula | MapName, ...]
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """`copy[levels] x`: maps down to the scalars; right sides only."""

    levels: Formula
    child: Node


@dataclass(frozen=True, slots=True)
class Nth:
    """`nth i xs`: the element at an index that is a size formula; right sides only."""

    index: Formula
    child: Node


Node = Meta | Bound | Lambda | Applied | Copy | Nth

FUNCTIONS: dict[str, Any] = {"__builtins__": {}}


def formula_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a function that formulas of rules may call."""
    FUNCTIONS[function.__name__] = function
    return function
