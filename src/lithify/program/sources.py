"""Where a program comes from: a definition in a `.lift` text, or a Python function."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from lithify.arith import Expr
from lithify.lang.errors import TypeMismatch
from lithify.program.arguments import Described, decide, type_of_syntax

if TYPE_CHECKING:
    from lithify.lang.module import Definition, Elaborated
    from lithify.lang.syntax import TypeSyntax
    from lithify.lang.types import Type
    from lithify.lang.values import Value
    from lithify.program.module import Text

Sizes = tuple[tuple[str, int], ...]
KnownSizes = Mapping[str, int | Expr]


class Source(Protocol):
    """What a program object needs to know of its program."""

    name: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of a call."""
        ...

    @property
    def annotated(self) -> bool:
        """Whether the parameters' types are all written."""
        ...

    @property
    def declared(self) -> Sequence[Type | None]:
        """The types that are written for the parameters, over sizes that are not known; None where there is none."""
        ...

    def check_names(self) -> None:
        """Raises ParseError for a name that nothing defines, where that can be seen without arguments."""
        ...

    def check_sizes(self, names: Sequence[str]) -> None:
        """Raises TypeMismatch for the name of a size that the program does not have."""
        ...

    def key(self, elaborated: Callable[[], Elaborated]) -> str:
        """Text that identifies the program for the disk cache; the term is asked for where it has to be known."""
        ...

    def value(self, sizes: KnownSizes) -> Value:
        """The program as a value of one that is built and uses it; it is applied in Python's functions only."""
        ...

    def elaborate(self, described: Sequence[Described], sizes: KnownSizes) -> Elaborated:
        """The program's term for such arguments; without any, for the written types, over symbolic sizes.

        `sizes` are those that are known by name, or known to be no less than a bound.
        """
        ...


class TextSource:
    """A definition in a text, which is read when it is needed: a compiled program needs the text's digest only."""

    def __init__(self, text: Text, name: str) -> None:
        self.text, self.name = text, name

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.text.parameters[self.name])

    @cached_property
    def annotated(self) -> bool:
        definition = self.text.module[self.name]
        written = _annotations(definition)
        if written:
            return not any(annotation is None or _is_open(annotation) for annotation in written)
        try:
            definition.elaborate(None)
        except TypeMismatch:
            return False  # point-free: it takes arguments that have no names
        return True

    @cached_property
    def declared(self) -> Sequence[Type | None]:
        written = _annotations(self.text.module[self.name])
        return [None if annotation is None else type_of_syntax(annotation) for annotation in written]

    def check_names(self) -> None:
        self.text.module[self.name].check_names()

    def check_sizes(self, names: Sequence[str]) -> None:
        self.text.module[self.name].check_sizes(names)

    def key(self, elaborated: Callable[[], Elaborated]) -> str:
        return f"{self.text.digest} {self.name}"

    def value(self, sizes: KnownSizes) -> Value:
        from lithify.lang.uses import SIZES, used

        user = SIZES.get()
        value = self.text.module[self.name].value(sizes, None if user is None else user.named)
        return used(value, shipped=self.text.shipped)

    def elaborate(self, described: Sequence[Described], sizes: KnownSizes) -> Elaborated:
        definition = self.text.module[self.name]
        if not described and self.annotated:
            return definition.elaborate(None, sizes)
        return definition.elaborate(decide(described, self.declared, sizes), sizes)


class FunctionSource:
    """A Python function that builds a term from terms."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        inner = getattr(function, "func", function)  # functools.partial's
        self.name = str(getattr(inner, "__name__", type(inner).__name__))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        from lithify.lang.frontend import parameters_of

        return parameters_of(self.function)

    @cached_property
    def annotated(self) -> bool:
        return all(type_ is not None for type_ in self.declared)

    @cached_property
    def declared(self) -> Sequence[Type | None]:
        from lithify.lang.frontend import declared

        return declared(self.function)

    def check_names(self) -> None:
        """Python does that when the function is called."""

    def check_sizes(self, names: Sequence[str]) -> None:
        """Found when the function is called, which may compute them."""

    def key(self, elaborated: Callable[[], Elaborated]) -> str:
        from lithify.lang.digest import digest

        program = elaborated()
        names = ", ".join(f"{name} : {type_}" for name, type_ in program.parameters)
        return hashlib.sha256(f"{names} {digest(program.term)}".encode()).hexdigest()

    def value(self, sizes: KnownSizes) -> Value:
        from lithify.lang.frontend import value_of

        return value_of(self.function, sizes)

    def elaborate(self, described: Sequence[Described], sizes: KnownSizes) -> Elaborated:
        from lithify.lang.frontend import build

        types = None if not described and self.annotated else decide(described, self.declared, sizes)
        return build(self.function, types, sizes)


def _is_open(node: TypeSyntax) -> bool:
    """Whether a written type leaves a part open, `_`."""
    from lithify.lang.annotations import ANY
    from lithify.lang.syntax import ArrayType, TupleType, TypeName

    if isinstance(node, ArrayType):
        return _is_open(node.element)
    if isinstance(node, TupleType):
        return any(map(_is_open, node.items))
    return isinstance(node, TypeName) and node.name == ANY


def _annotations(definition: Definition) -> list[TypeSyntax | None]:
    """The types that are written for a definition's parameters; None where there is none."""
    from lithify.lang.syntax import FunctionType, Lambda, NamePattern, ParameterPattern

    written = definition.syntax.annotation
    if written is not None:
        types: list[TypeSyntax | None] = []
        while isinstance(written, FunctionType):
            types.append(written.parameter)
            written = written.result
        return types
    patterns: list[ParameterPattern] = []
    body = definition.syntax.value
    while isinstance(body, Lambda):
        patterns += body.parameters
        body = body.body
    return [p.annotation if isinstance(p, NamePattern) else None for p in patterns]
