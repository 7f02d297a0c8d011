"""The surface syntax of programs as data: expressions, patterns, types, definitions, each with its place in the text.

The parser makes these nodes and the elaborator (`lithify.lang.elaborate`) reads them. Equality ignores places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Final

_LONGEST_LINE = 200  # characters of a line that errors show


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name under which errors speak of it; of an internal one they never do.

    A shipped one is lithify's own: an error in it is shown below what the user wrote that led there.
    """

    text: str
    name: str = "<text>"
    internal: bool = False
    shipped: bool = False

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - self.text.rfind("\n", 0, offset)

    def show(self, span: Span) -> str:
        """The line of a place, with carets under it; tabs are shown as four blanks, of a long line what is near."""
        line, column = self.position(span.start)
        content = self.text.split("\n")[line - 1]
        before = content[: column - 1].replace("\t", "    ")
        marked = content[column - 1 : column - 1 + max(1, span.end - span.start)].replace("\t", "    ")
        shown = content.replace("\t", "    ").rstrip()
        carets = "^" * max(1, min(len(marked), len(shown) - len(before)))
        if len(shown) > _LONGEST_LINE:
            start = max(0, len(before) - _LONGEST_LINE // 2)
            before, shown = before[start:], shown[start : start + _LONGEST_LINE]
            carets = carets[: max(1, len(shown) - len(before))]
            before, shown = (f"…{before[1:]}", f"…{shown[1:]}") if start else (before, shown)
        return f"{self.name}, line {line}, column {column}:\n    {shown}\n    {' ' * len(before)}{carets}"


@dataclass(frozen=True, slots=True)
class Span:
    """A place: offsets into the source's text, `end` exclusive."""

    source: Source
    start: int
    end: int

    @property
    def shown(self) -> bool:
        """Is it a place that a user can look at?"""
        return not self.source.internal

    def to(self, other: Span) -> Span:
        """From the start of this place to the end of the other."""
        return Span(self.source, self.start, other.end)

    def __str__(self) -> str:
        return self.source.show(self) if self.shown else ""


NOWHERE: Final = Span(Source("", "<built>", internal=True), 0, 0)


@dataclass(frozen=True, slots=True)
class Node:
    """Base of everything that has a place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# ---- types -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A scalar type, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayType(Node):
    """`n.t`."""

    size: Expression
    element: TypeSyntax


@dataclass(frozen=True, slots=True)
class IndexType(Node):
    """`idx[n]`."""

    size: Expression


@dataclass(frozen=True, slots=True)
class TupleType(Node):
    """`(s, t)`."""

    items: tuple[TypeSyntax, ...]


@dataclass(frozen=True, slots=True)
class FunctionType(Node):
    """`s -> t`."""

    parameter: TypeSyntax
    result: TypeSyntax


TypeSyntax = TypeName | ArrayType | IndexType | TupleType | FunctionType


# ---- patterns of parameters ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamePattern(Node):
    """`x` or `(x : t)`."""

    name: str
    annotation: TypeSyntax | None = None


@dataclass(frozen=True, slots=True)
class TuplePattern(Node):
    """`(p, q)`."""

    items: tuple[ParameterPattern, ...]


ParameterPattern = NamePattern | TuplePattern


# ---- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A variable, a definition, a primitive, an operator or a size."""

    name: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A literal; its type comes from the context."""

    value: int | float | complex


@dataclass(frozen=True, slots=True)
class Attributed(Node):
    """A primitive with attributes and a label: `map[item0]@m.block` is ("map", ("item0",), "m.block")."""

    name: str
    attributes: tuple[str, ...] = ()
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """`λ x (y, z). body`; several parameters are curried."""

    parameters: tuple[ParameterPattern, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Application(Node):
    """`f a b`. `call`: written `f(a, b)`, which binds tighter than juxtaposition."""

    function: Expression
    arguments: tuple[Expression, ...]
    call: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Compose(Node):
    """`outer . inner` (also `inner |> outer`, `inner >> outer`): composition, or application when inner is a value."""

    outer: Expression
    inner: Expression


@dataclass(frozen=True, slots=True)
class Infix(Node):
    """`left + right`."""

    symbol: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Section(Node):
    """`(+)`, `(2 *)`, `(* 2)`."""

    symbol: str
    left: Expression | None = None
    right: Expression | None = None


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`let p = value in body`."""

    pattern: ParameterPattern
    value: Expression
    body: Expression


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`if condition then then else otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class TupleExpression(Node):
    """`(a, b)`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Node):
    """`[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Projection(Node):
    """`p.0`."""

    value: Expression
    component: int


@dataclass(frozen=True, slots=True)
class Indexing(Node):
    """`xs[i]`."""

    array: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Annotation(Node):
    """`(e : t)`."""

    value: Expression
    type: TypeSyntax


Expression = (
    Name
    | Number
    | Attributed
    | Lambda
    | Application
    | Compose
    | Infix
    | Section
    | Let
    | Conditional
    | TupleExpression
    | ArrayLiteral
    | Projection
    | Indexing
    | Annotation
)


def free_names(node: object, bound: frozenset[str] = frozenset()) -> Iterator[Name]:
    """The names that an expression uses and does not bind, in the order of the text."""
    if isinstance(node, Name):
        if node.name not in bound:
            yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from free_names(item, bound)
    elif isinstance(node, Lambda):
        yield from free_names(node.body, bound.union(*[names_of(p) for p in node.parameters]))
    elif isinstance(node, Let):
        yield from free_names(node.value, bound)
        yield from free_names(node.body, bound | names_of(node.pattern))
    elif isinstance(node, Node):
        for part in fields(node):
            if part.name != "span":
                yield from free_names(getattr(node, part.name), bound)


def called_names(node: object) -> Iterator[Name]:
    """The names that stand where only functions can: before arguments, and in compositions."""
    if isinstance(node, tuple):
        for item in node:
            yield from called_names(item)
    elif isinstance(node, Node):
        functions = [node.function] if isinstance(node, Application) else []
        functions += [node.outer, node.inner] if isinstance(node, Compose) else []
        yield from (f for f in functions if isinstance(f, Name))
        for part in fields(node):
            if part.name != "span":
                yield from called_names(getattr(node, part.name))


def names_of(pattern: ParameterPattern) -> frozenset[str]:
    """The names that a pattern binds, those of sizes in its annotations included."""
    if isinstance(pattern, NamePattern):
        return frozenset({pattern.name, *[name.name for name in free_names(pattern.annotation)]})
    return frozenset().union(*[names_of(item) for item in pattern.items])


def parameters_of(function: Expression) -> Iterator[ParameterPattern]:
    """All parameters of an expression that is a function of a function .."""
    while isinstance(function, Lambda):
        yield from function.parameters
        function = function.body


def named_parts(pattern: ParameterPattern) -> Iterator[NamePattern]:
    """The names in a pattern, in order, with their places."""
    if isinstance(pattern, NamePattern):
        yield pattern
    else:
        for item in pattern.items:
            yield from named_parts(item)


# ---- declarations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefinitionSyntax(Node):
    """`name = value`, with the type of an earlier line `name : type` if there is one."""

    name: str
    value: Expression
    annotation: TypeSyntax | None = None


# What an operator can declare: laws, and laws that name a value or a function.
PROPERTIES = ("associative", "commutative", "idempotent")
PARTS = ("neutral", "absorbing", "inverse")


@dataclass(frozen=True, slots=True)
class OperatorSyntax(Node):
    """`operator name (λa b. ..) associative commutative idempotent neutral e absorbing z inverse f`."""

    name: str
    definition: Expression
    properties: tuple[str, ...]
    neutral: Expression | None = None
    absorbing: Expression | None = None
    inverse: Expression | None = None


Declaration = DefinitionSyntax | OperatorSyntax
