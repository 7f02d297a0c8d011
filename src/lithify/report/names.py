"""The page of everything that programs can name, made from the tables that give the names their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources

from lithify.lang.lexer import ATTRIBUTED
from lithify.lang.operators import OPERATORS, Operator, Typing
from lithify.lang.patterns import PATTERNS
from lithify.lang.primitives import PRIMITIVES
from lithify.lang.scalars import SCALARS, Kind

PAGE = "names.md"

_HEAD = """# All names

What a program can name, in text and in Python (there in Python's manner: `partial_reduce`, `and_`). This page is made
by `lithify report names` from the tables of the language; [the notation](notation.md) explains how they are written.
"""
_KINDS = (
    (Kind.SIGNED, "signed"), (Kind.UNSIGNED, "unsigned"), (Kind.FLOAT, "floats"), (Kind.COMPLEX, "complex"),
    (Kind.BOOL, "bool"),
)  # fmt: skip


def text() -> str:
    """The page."""
    return "\n".join([
        _HEAD,
        "## Scalar types\n",
        *_table(("type", "is", "bits"), [(f"`{s}`", s.kind.value, str(s.bits)) for s in SCALARS.values()]),
        "\nThe name of a scalar type converts to it: `f32 x`. Floats are cut off and stay within an integer's range,",
        "integers wrap around.",
        "\n## Operators\n",
        "Written between operands where there is a symbol, else as functions (`max a b`). Of arrays, by elements.\n",
        *_table(("operator", "operands", "of", "is"), _operators()),
        "\n## Patterns and functions\n",
        "Sizes come first, then the arguments of the type. Names in brackets may be left out.\n",
        *_table(("name", "type of the rest", "is"), _patterns()),
        "\n## Defined in the language\n",
        "```lift",
        _prelude(),
        "```\n",
    ])  # fmt: skip


def _operators() -> Iterator[tuple[str, ...]]:
    for operator in OPERATORS.values():
        if operator.typing is not Typing.CONVERT:
            symbol = f" `{operator.symbol}`" if operator.symbol else ""
            yield f"`{operator.name}`{symbol}", str(operator.arity), _domain(operator), operator.meaning


def _domain(operator: Operator) -> str:
    """The kinds of scalars that an operator takes."""
    if operator.typing is Typing.SINGLE:
        return "f32"
    listed = [name for kind, name in _KINDS if kind in operator.kinds]
    return "all" if len(listed) == len(_KINDS) else ", ".join(listed)


def _patterns() -> Iterator[tuple[str, ...]]:
    for primitive in PRIMITIVES.values():
        pattern = PATTERNS.get(primitive.name)
        signature = pattern.signature.text if pattern is not None and pattern.signature is not None else ""
        yield f"`{_written(primitive.name)}`", f"`{signature}`" if signature else "", primitive.meaning


def _written(name: str) -> str:
    """A pattern's name with its attributes: sizes are arguments, levels and the like stand in brackets."""
    attributes = PATTERNS[name].attributes if name in PATTERNS else ()
    if name in ATTRIBUTED:
        return f"{name}[{', '.join(attributes)}]"
    return " ".join((name, *attributes))


def _prelude() -> str:
    definitions = resources.files("lithify.lang").joinpath("prelude.lift").read_text(encoding="utf-8")
    return definitions.split("\n\n", 1)[1].strip()


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(_escaped(cell) for cell in row)} |"


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|")
