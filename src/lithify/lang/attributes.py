"""Attributes in brackets: `map[item0]@m.block`, `reduce[seq, private]`, `to[local:2]`, `launch[4 2, 16 16]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from lithify.arith import Expr
from lithify.lang import build
from lithify.lang.coerce import as_array, as_term, components
from lithify.lang.errors import ParseError
from lithify.lang.index_functions import index_function
from lithify.lang.instructions import INSTRUCTIONS
from lithify.lang.levels import Level, Memory
from lithify.lang.operators import OPERATORS
from lithify.lang.parser import parse_expression
from lithify.lang.primitives import PRIMITIVES, to_memory
from lithify.lang.syntax import Application, Attributed, Expression
from lithify.lang.values import FunctionValue, Numeral, Value

SizeOf = Callable[[Expression], Expr]
Scope = MutableMapping[str, Value]


def attributes_of(e: Attributed, known: Mapping[str, Any], size: SizeOf, scope: Scope) -> FunctionValue:
    """The primitive with its attributes, as a function over values; raises ParseError for what is not an attribute."""
    entries = e.attributes
    try:
        if e.name in ("map", "reduce", "scan", "pipe"):
            return PRIMITIVES[e.name].function(**_READ[e.name](entries, known), name=_label(e.label, known))
        if e.label is not None:
            raise ValueError(f"{e.name} has no name; map, reduce, scan and pipe have")
        return _OTHERS[e.name](entries, known, size, scope)
    except ValueError as error:
        raise ParseError(str(error), where=str(e.span)) from error


def _label(label: str | None, known: Mapping[str, Any]) -> str | None:
    """A label whose first part may stand for another: `@a.tile` where a is `m`."""
    if label is None:
        return None
    first, _, rest = label.partition(".")
    if first not in known:
        return label
    prefix = known[first]
    return f"{prefix}.{rest}" if prefix and rest else (prefix or rest or None)


def _level(text: str, known: Mapping[str, Any]) -> Level | None:
    if text in known:
        found = known[text]
        if found is not None and not isinstance(found, Level):
            raise ValueError(f"{text} is no level")
        return found
    return None if text == "-" else Level.parse(text)


def _memory(text: str, known: Mapping[str, Any]) -> Memory | None:
    if text in known:
        found = known[text]
        if found is not None and not isinstance(found, Memory):
            raise ValueError(f"{text} is no memory")
        return found
    return None if text == "-" else Memory.parse(text)


def _at_most(entries: tuple[str, ...], count: int, what: str) -> None:
    if len(entries) > count or any(not entry for entry in entries):
        raise ValueError(f"{what} expected in the brackets, [{', '.join(entries)}] given")


def _map(entries: tuple[str, ...], known: Mapping[str, Any]) -> dict[str, Any]:
    _at_most(entries, 1, "a level")
    return {"level": _level(entries[0], known) if entries else None}


def _fold(entries: tuple[str, ...], known: Mapping[str, Any]) -> dict[str, Any]:
    _at_most(entries, 2, "a level and a memory")
    return {
        "level": _level(entries[0], known) if entries else None,
        "memory": _memory(entries[1], known) if len(entries) > 1 else None,
    }


def _pipe(entries: tuple[str, ...], _known: Mapping[str, Any]) -> dict[str, Any]:
    _at_most(entries, 3, "slots, lag and roles")
    if not entries or not all(entry.isdigit() for entry in entries[:2]):
        raise ValueError("pipe[slots, lag, roles] takes two numbers and a name")
    lag = int(entries[1]) if len(entries) > 1 else 0
    return {"slots": int(entries[0]), "lag": lag, "roles": entries[2] if len(entries) > 2 else None}


_READ = {"map": _map, "reduce": _fold, "scan": _fold, "pipe": _pipe}


def _to(entries: tuple[str, ...], known: Mapping[str, Any], _size: SizeOf, _scope: Scope) -> FunctionValue:
    _at_most(entries, 1, "a memory")
    memory = _memory(entries[0], known)
    if memory is None:
        raise ValueError("to[..] needs a memory")
    return to_memory(memory)


def _launch(entries: tuple[str, ...], _known: Mapping[str, Any], size: SizeOf, _scope: Scope) -> FunctionValue:
    if len(entries) != 2:
        raise ValueError("launch[groups, items] takes the sizes of the grid and of a group")
    grid, group = ([size(e) for e in _several(entry)] for entry in entries)
    return FunctionValue("launch", 1, lambda value: build.launch(tuple(grid), tuple(group), as_term(value)))


def _several(text: str) -> tuple[Expression, ...]:
    """The sizes of `4 (n + 1)`."""
    if not text:
        return ()
    applied = parse_expression(f"sizes {text}")
    if not isinstance(applied, Application):
        raise ValueError(f"sizes expected, {text} given")
    return applied.arguments


def _scatter(entries: tuple[str, ...], known: Mapping[str, Any], _size: SizeOf, _scope: Scope) -> FunctionValue:
    _at_most(entries, 1, "permutation or an operator")
    text = entries[0]
    mode = known.get(text, OPERATORS.get(text, text))
    if isinstance(mode, str) and mode != "permutation":
        raise ValueError(f"scatter[..] takes permutation or an operator, not {text}")
    return PRIMITIVES["scatter"].function(mode=mode)


def _instr(entries: tuple[str, ...], known: Mapping[str, Any], _size: SizeOf, _scope: Scope) -> FunctionValue:
    _at_most(entries, 1, "an instruction")
    row = known.get(entries[0], INSTRUCTIONS.get(entries[0]))
    if row is None:
        raise ValueError(
            f"no instruction named {entries[0]}; there are {', '.join({**INSTRUCTIONS, **known}) or 'none'}"
        )

    def apply(value: Value) -> Value:
        operands = components(value) or (value,)
        return build.instr(row, *[as_term(operand) for operand in operands])

    return FunctionValue(f"instr[{entries[0]}]", 1, apply)


def _reindex(entries: tuple[str, ...], _known: Mapping[str, Any], size: SizeOf, scope: Scope) -> FunctionValue:
    """`reindex["name", extent, forward, inverse]`, formulas over i."""
    if len(entries) not in (3, 4) or not (entries[0].startswith('"') and entries[0].endswith('"')):
        raise ValueError('reindex["name", extent, forward, inverse] takes a name and formulas over i')
    extent = size(parse_expression(entries[1]))
    formulas = [parse_expression(text) for text in entries[2:]]

    def at(formula: Expression) -> Callable[[Expr], Expr]:
        def compute(i: Expr) -> Expr:
            shadowed = scope.get("i")
            scope["i"] = Numeral(i)
            try:
                return size(formula)
            finally:
                del scope["i"]
                if shadowed is not None:
                    scope["i"] = shadowed

        return compute

    def apply(value: Value) -> Value:
        xs = as_array(value, "reindex")
        inverse = at(formulas[1]) if len(formulas) > 1 else None
        return build.reindex(index_function(entries[0][1:-1], extent, build.length(xs), at(formulas[0]), inverse), xs)

    return FunctionValue("reindex", 1, apply)


_OTHERS: dict[str, Callable[[tuple[str, ...], Mapping[str, Any], SizeOf, Scope], FunctionValue]] = {
    "to": _to,
    "launch": _launch,
    "scatter": _scatter,
    "instr": _instr,
    "reindex": _reindex,
}
