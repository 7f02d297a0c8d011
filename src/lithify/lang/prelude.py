"""The definitions that every program may use (`prelude.lift`), read when the first of them is named."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from lithify.lang.parser import parse
from lithify.lang.syntax import DefinitionSyntax, Source

if TYPE_CHECKING:
    from lithify.lang.elaborate import Elaborator
    from lithify.lang.values import Value


@cache
def definitions() -> dict[str, DefinitionSyntax]:
    """The prelude's definitions by name; a program's errors never point into them."""
    text = resources.files("lithify.lang").joinpath("prelude.lift").read_text(encoding="utf-8")
    declarations = parse(Source(text, "prelude.lift", internal=True))
    return {d.name: d for d in declarations if isinstance(d, DefinitionSyntax)}


def value_of(name: str, elaborator: Elaborator) -> Value | None:
    """The meaning of a name of the prelude, or None."""
    found = definitions().get(name)
    return None if found is None else elaborator.value(found.value, {})
