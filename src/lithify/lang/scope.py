"""What the names of a text mean in one of its definitions: the definitions above it, evaluated when they are named."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lithify.lang.coerce import call
from lithify.lang.declared import as_function
from lithify.lang.elaborate import Elaborator
from lithify.lang.errors import ParseError
from lithify.lang.operators import Operator
from lithify.lang.syntax import DefinitionSyntax, FunctionType, OperatorSyntax, TypeSyntax
from lithify.lang.types import Type
from lithify.lang.values import FunctionValue, Value

if TYPE_CHECKING:
    from lithify.lang.module import Module


def parameter_types(annotation: TypeSyntax) -> Iterator[TypeSyntax]:
    """The types of the parameters of a function's type."""
    while isinstance(annotation, FunctionType):
        yield annotation.parameter
        annotation = annotation.result


class Scope(MutableMapping[str, Value]):
    """The definitions above a position of a module, evaluated when they are named."""

    def __init__(self, module: Module, elaborator: Elaborator, end: int) -> None:
        self.module, self.elaborator, self.end = module, elaborator, end
        self.positions = {d.name: i for i, d in enumerate(module.declarations)}
        self.evaluated: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name in self.evaluated:
            return self.evaluated[name]
        position = self.positions[name]
        declaration = self.module.declarations[position]
        if position >= self.end:
            own = position == self.end
            raise ParseError(
                f"`{name}` is used in its own definition: recursion is not possible"
                if own
                else f"`{name}` is used above its definition",
                where=None if own else f"defined here: {declaration.span}",
                hint="use map, reduce, scan or iterate" if own else "move the definition up",
            )
        scope = ChainMap({}, Scope(self.module, self.elaborator, position))
        if isinstance(declaration, OperatorSyntax):
            value: Value = self._operator(declaration, scope)
        else:
            value = _definition_value(self.elaborator, declaration, scope)
        self.evaluated[name] = value
        return value

    def _operator(self, declaration: OperatorSyntax, scope: MutableMapping[str, Value]) -> FunctionValue:
        def operator_on(type_: Type) -> Operator:
            return self.module.operator(declaration, self.elaborator, scope, type_)

        return as_function(declaration.name, operator_on)

    def __setitem__(self, name: str, value: Value) -> None:
        self.evaluated[name] = value

    def __delitem__(self, name: str) -> None:
        del self.evaluated[name]

    def __iter__(self) -> Iterator[str]:
        yield from [d.name for d in self.module.declarations[: self.end]]

    def __len__(self) -> int:
        return self.end


def _definition_value(
    elaborator: Elaborator, declaration: DefinitionSyntax, scope: MutableMapping[str, Value]
) -> Value:
    annotation = declaration.annotation
    if annotation is None:
        value = elaborator.value(declaration.value, scope)
        return replace(value, definition=declaration.name) if isinstance(value, FunctionValue) else value
    types = list(parameter_types(annotation))
    result = annotation
    while isinstance(result, FunctionType):
        result = result.result

    def run(*arguments: Value) -> Value:
        entered, elaborator.entering = elaborator.entering, False
        inner: ChainMap[str, Value] = ChainMap(dict(elaborator.sizes.known) if entered else {}, scope)
        reader = elaborator.types(inner)
        typed = [
            reader.annotated(a, t, f"argument {i}") for i, (a, t) in enumerate(zip(arguments, types, strict=True), 1)
        ]
        if entered:
            elaborator.keep_sizes(inner)
        value = elaborator.value(declaration.value, inner)
        for argument in typed:
            value = call(value, argument)
        return reader.annotated(value, result, f"the result of {declaration.name}")

    if not types:
        return run()
    return FunctionValue(declaration.name, len(types), run, (), None, declaration.name)
