"""Programs in files: definitions that are templates, elaborated for the types of their arguments.

module = read_text("scal = λ a xs . map (λ x . x * a) xs")
program = module["scal"].elaborate({"a": f32, "xs": array(1024, f32)})
program.term        # map (λx. x * a) xs
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lithify.arith import Expr
from lithify.lang.annotations import TypeReader
from lithify.lang.build import param
from lithify.lang.coerce import as_term, call, missing_hint
from lithify.lang.declared import Claims, OperatorCheck, declare
from lithify.lang.depth import deeply, too_deep
from lithify.lang.elaborate import Elaborator
from lithify.lang.errors import LithifyError, ParseError, TypeMismatch, UnboundSize
from lithify.lang.operators import Operator
from lithify.lang.parser import UNUSED, parse
from lithify.lang.scope import Scope, parameter_types
from lithify.lang.spelling import choices
from lithify.lang.syntax import (
    PARTS,
    Declaration,
    DefinitionSyntax,
    Name,
    NamePattern,
    OperatorSyntax,
    Source,
    called_names,
    free_names,
    parameters_of,
)
from lithify.lang.term import Term
from lithify.lang.types import Type
from lithify.lang.values import FreeName, FunctionValue, Numeral, Value, describe

Sizes = Mapping[str, int | Expr]


@dataclass(frozen=True, slots=True)
class Elaborated:
    """A program for given argument types: a term over its parameters, in order, and the sizes that were bound."""

    term: Term
    parameters: tuple[tuple[str, Type], ...]
    sizes: dict[str, Expr]

    @property
    def type(self) -> Type:
        """The type of the result."""
        return self.term.type


def read_file(path: str | Path, check: OperatorCheck | None = None) -> Module:
    """The definitions of a `.lift` file; `check` is called with each declared operator and its operands' type.

    Raises ParseError with file, line and caret.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError(f"{path} cannot be read: {error}") from error
    return Module(Source(text, str(path)), check)


def read_text(text: str, name: str = "<text>", check: OperatorCheck | None = None, *, shipped: bool = False) -> Module:
    """The definitions of a text; `shipped` says that it is lithify's own."""
    return Module(Source(text, name, shipped=shipped), check)


class Module(Mapping[str, "Definition"]):
    """The definitions of a text, by name and in order. A definition may use those above it."""

    def __init__(self, source: Source, check: OperatorCheck | None = None) -> None:
        self.source = source
        self.declarations = parse(source)
        self._check = check
        self._operators: dict[tuple[str, Type], Operator] = {}
        self._definitions: dict[str, Definition] = {}
        seen: dict[str, Declaration] = {}
        for position, declaration in enumerate(self.declarations):
            if declaration.name in seen:
                raise ParseError(
                    f"`{declaration.name}` is defined twice",
                    where=f"{declaration.span}\nfirst: {seen[declaration.name].span}",
                )
            seen[declaration.name] = declaration
            if isinstance(declaration, DefinitionSyntax):
                self._definitions[declaration.name] = Definition(self, declaration, position)

    def __getitem__(self, name: str) -> Definition:
        if name not in self._definitions:
            hint = choices(name, self._definitions, "it defines")
            raise ParseError(f"{self.source.name} defines no `{name}`", hint=hint)
        return self._definitions[name]

    def __contains__(self, name: object) -> bool:
        return name in self._definitions

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions)

    def __len__(self) -> int:
        return len(self._definitions)

    def operator(
        self, declaration: OperatorSyntax, elaborator: Elaborator, scope: MutableMapping[str, Value], type_: Type
    ) -> Operator:
        """The declared operator on operands of a type, made (and checked) once."""
        key = declaration.name, type_
        found = self._operators.get(key)
        if found is None:
            written = {name: getattr(declaration, name) for name in PARTS}
            parts = {name: e for name, e in written.items() if e is not None}
            found = declare(
                declaration.name,
                type_,
                elaborator.value(declaration.definition, scope),
                Claims(declaration.properties, **{name: elaborator.value(e, scope) for name, e in parts.items()}),
                check=self._check,
                places={name: str(e.span) for name, e in (("", declaration.definition), *parts.items())},
            )
            self._operators[key] = found
        return found


class Definition:
    """A definition: a template for the types of its arguments."""

    def __init__(self, module: Module, syntax: DefinitionSyntax, position: int) -> None:
        self.module, self.syntax, self.position = module, syntax, position

    @property
    def name(self) -> str:
        """Its name."""
        return self.syntax.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its written parameters (none where it is point-free)."""
        written = list(parameters_of(self.syntax.value))
        taken = {p.name for p in written if isinstance(p, NamePattern) and p.name != UNUSED}
        names = [p.name if isinstance(p, NamePattern) else UNUSED for p in written]
        return tuple(_unnamed(i, taken) if name == UNUSED else name for i, name in enumerate(names, 1))

    def elaborate(
        self, arguments: Sequence[Type] | Mapping[str, Type] | None = None, sizes: Sizes | None = None
    ) -> Elaborated:
        """The program for arguments of the given types, in order or by name.

        Without types the parameters' annotations are used, and the sizes that they name are symbolic. `sizes` gives
        free sizes. Raises ParseError, TypeMismatch, UnboundSize.
        """
        try:
            return deeply(self._with_sizes, arguments, sizes)
        except RecursionError:
            raise too_deep().located(str(self.syntax.span)) from None
        except LithifyError as error:
            if self.module.source.shipped and arguments:
                error.where = self._given(arguments) + (f"\nwhich does not fit at {error.where}" if error.where else "")
            raise

    def _given(self, arguments: Sequence[Type] | Mapping[str, Type]) -> str:
        """What a user gave to a definition that is not the user's."""
        if isinstance(arguments, Mapping):
            named = [f"{name} : {type_}" for name, type_ in arguments.items()]
        else:
            names = (f"{name} : " for name in self.parameters)
            named = [f"{name}{type_}" for name, type_ in itertools.zip_longest(names, arguments, fillvalue="")]
        return f"in the use of `{self.name}` with {', '.join(named[: len(arguments)])}"

    def _with_sizes(self, arguments: Sequence[Type] | Mapping[str, Type] | None, sizes: Sizes | None) -> Elaborated:
        self._refuse_unused(sizes or (), self.module.source.text, str(self.syntax.span))
        elaborator = Elaborator(sizes)
        try:
            return self._elaborate(elaborator, arguments)
        except TypeMismatch as error:
            if elaborator.sizes.unbound:
                raise self._unbound(elaborator) from error
            raise

    def check_sizes(self, names: Iterable[str]) -> None:
        """Raise TypeMismatch for a size that neither the definition names nor one that it rests on."""
        self._refuse_unused(names, self._own_text(), str(self.syntax.span))

    def _refuse_unused(self, names: Iterable[str], text: str, where: str | None = None) -> None:
        """Raise TypeMismatch, which says `where`, for sizes that a text does not name."""
        unused = [name for name in names if not _mentions(text, name)]
        if unused:
            raise TypeMismatch(f"`{self.name}` has no size {', '.join(unused)}", where=where, hint=self._sizes_hint())

    def _sizes_hint(self) -> str | None:
        """The sizes that the definition itself leaves to its caller."""
        names = dict.fromkeys(name.name for name in self._free_sizes(Elaborator()))
        return f"its sizes are {', '.join(names)}" if names else None

    def _own_text(self) -> str:
        """The text of the definition, and of those that it rests on."""
        texts = {each.name: _text(each) for each in self.module.declarations}
        found: dict[str, str] = {}
        pending = [self.name]
        while pending:
            name = pending.pop()
            found[name] = texts[name]
            pending += [other for other in texts if other not in found and _mentions(texts[name], other)]
        return "\n".join(found.values())

    def value(self, sizes: Sizes | None = None, outside: Callable[[str], Expr | None] | None = None) -> Value:
        """The definition as a value, to be used in another program; `outside` tells sizes of that one by name.

        Raises what `elaborate` does, where it is applied.
        """
        self._refuse_unused(sizes or (), self.module.source.text)

        def apply(*arguments: Value) -> Value:
            elaborator = Elaborator(sizes, outside=outside)
            value = self._entered(elaborator)
            try:
                for argument in arguments:
                    value = call(value, argument)
            except TypeMismatch as error:
                if elaborator.sizes.unbound:
                    raise self._unbound(elaborator) from error
                raise
            if elaborator.sizes.unbound:
                raise elaborator.sizes.error()
            return value

        value = apply()
        return FunctionValue(self.name, value.arity, apply) if isinstance(value, FunctionValue) else value

    def _entered(self, elaborator: Elaborator) -> Value:
        """The definition as the program that is elaborated: its parameters' sizes are known everywhere in it."""
        value = Scope(self.module, elaborator, self.position + 1)[self.name]
        elaborator.entering = True
        return replace(value, definition=None) if isinstance(value, FunctionValue) else value

    def check_names(self) -> None:
        """Raises ParseError for a name that stands where only a function can and that nothing defines.

        What a template means depends on its arguments; this does not. Other names may be those of sizes.
        """
        elaborator = Elaborator()
        scope = Scope(self.module, elaborator, self.position)
        called = {id(name) for name in called_names(self.syntax.value)}
        for name in free_names(self.syntax.value):
            if id(name) in called and name.name not in scope and isinstance(v := elaborator.name(name, {}), Numeral):
                if isinstance(v.value, FreeName):
                    raise v.value.unknown()

    def _unbound(self, elaborator: Elaborator) -> UnboundSize:
        """All the sizes that are missing, not only those that were met before something did not fit."""
        for name in self._free_sizes(elaborator):
            elaborator.sizes.unbound.setdefault(name.name, name.span)
        return elaborator.sizes.error()

    def _free_sizes(self, elaborator: Elaborator) -> Iterator[Name]:
        """The names that stand for sizes, as nothing else has them."""
        scope = Scope(self.module, elaborator, self.position)
        for name in free_names(self.syntax.value):
            if name.name not in scope and isinstance(value := elaborator.name(name, {}), Numeral):
                if isinstance(value.value, FreeName):
                    yield name

    def _elaborate(self, elaborator: Elaborator, arguments: Sequence[Type] | Mapping[str, Type] | None) -> Elaborated:
        value = self._entered(elaborator)  # an error in it is not one in its use
        parameters = self._parameters(elaborator, Scope(self.module, elaborator, self.position + 1), value, arguments)
        for name, type_ in parameters:
            if not isinstance(value, FunctionValue):
                raise TypeMismatch(
                    f"too many arguments for `{self.name}`: {len(parameters)} given", where=str(self.syntax.span)
                )
            value = call(value, param(name, type_))
        if isinstance(value, FunctionValue):
            raise TypeMismatch(
                f"an argument is missing: `{self.name}` of {len(parameters)} argument(s) is {describe(value)}",
                where=str(value.site or self.syntax.span),
                hint=missing_hint(value),
            )
        try:
            term = as_term(value)
        except LithifyError as error:
            raise error.located(str(self.syntax.span)) from None
        if elaborator.sizes.unbound:
            raise elaborator.sizes.error()
        return Elaborated(term, parameters, {name: n.as_size() for name, n in elaborator.sizes.known.items()})

    def _parameters(
        self,
        elaborator: Elaborator,
        scope: MutableMapping[str, Value],
        value: Value,
        arguments: Sequence[Type] | Mapping[str, Type] | None,
    ) -> tuple[tuple[str, Type], ...]:
        names = self.parameters
        if arguments is None:
            return self._annotated(elaborator, scope)
        if isinstance(arguments, Mapping):
            missing = [n for n in names if n not in arguments]
            unknown = [n for n in arguments if names and n not in names]
            if missing or unknown:
                problem = f"no argument for {', '.join(missing)}" if missing else f"no parameter {', '.join(unknown)}"
                raise TypeMismatch(f"`{self.name}`: {problem}", hint=f"its parameters are {', '.join(names)}")
            return tuple((n, arguments[n]) for n in names or arguments)
        if names and len(arguments) < len(names):
            raise TypeMismatch(
                f"`{self.name}` takes {len(names)} arguments ({', '.join(names)}), {len(arguments)} given",
                where=str(self.syntax.span),
            )
        extra = tuple(f"arg{i}" for i in range(len(names) + 1, len(arguments) + 1))
        return tuple(zip((*names, *extra), arguments, strict=True))

    def _annotated(self, elaborator: Elaborator, scope: MutableMapping[str, Value]) -> tuple[tuple[str, Type], ...]:
        """The parameters with the types that are written, over symbolic sizes."""
        written = list(parameters_of(self.syntax.value))
        annotations = [p.annotation if isinstance(p, NamePattern) else None for p in written]
        names = self.parameters
        if self.syntax.annotation is not None:
            annotations = list(parameter_types(self.syntax.annotation))
            names = (*names, *[f"arg{i}" for i in range(len(names) + 1, len(annotations) + 1)])
        reader = TypeReader(scope, lambda e: elaborator.size(e, scope, elaborator.sizes.symbolic))
        result = []
        for name, annotation in zip(names, annotations, strict=True):
            if annotation is None:
                raise TypeMismatch(
                    f"the type of parameter {name} of `{self.name}` is not known",
                    hint=f"give the arguments' types, or write ({name} : n.f32)",
                )
            result.append((name, reader.type(annotation)))
        return tuple(result)


def _text(declaration: Declaration) -> str:
    """A declaration as it is written, with the type that stands in front of it."""
    annotation = declaration.annotation if isinstance(declaration, DefinitionSyntax) else None
    spans = [declaration.span] if annotation is None else [annotation.span, declaration.span]
    return "\n".join(span.source.text[span.start : span.end] for span in spans)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _unnamed(position: int, taken: set[str]) -> str:
    """The name of a parameter that is taken apart or not used: `arg2`, or more of it where that is another's."""
    name = f"arg{position}"
    while name in taken:
        name += "_"
    return name
