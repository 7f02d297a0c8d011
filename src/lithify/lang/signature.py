"""Type signatures of patterns as text: `(s -> t) -> n.s -> n.t`, and the type inference that reads them.

Lower-case letters are type variables after a dot or alone, size variables before a dot; `{...}` holds a size
expression over the size variables and the pattern's attributes: `split`'s result is `{n // size}.size.t`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import CodeType
from typing import Any

from lithify.arith import Expr, proves, proves_divisible, proves_equal
from lithify.lang.assumptions import OpenCondition, never_at_most, never_divides, never_equal
from lithify.lang.errors import TypeMismatch
from lithify.lang.scalars import Scalar
from lithify.lang.types import Array, Function, Index, Tuple, Type

_TOKENS = re.compile(r"\s*(->|\{[^}]*\}|[A-Za-z_0-9]+|[().,\[\]])")


@dataclass(frozen=True, slots=True)
class _Var:
    name: str


@dataclass(frozen=True, slots=True)
class _Size:
    text: str
    code: CodeType | None  # None: a plain size variable, to be bound


@dataclass(frozen=True, slots=True)
class _Array:
    size: _Size
    element: _Node


@dataclass(frozen=True, slots=True)
class _Index:
    size: _Size


@dataclass(frozen=True, slots=True)
class _Tuple:
    items: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Function:
    parameter: _Node
    result: _Node


_Node = _Var | _Array | _Index | _Tuple | _Function
Bindings = dict[str, Any]


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKENS.findall(text)
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        assert token and (expected is None or token == expected), f"bad signature near {self.tokens[self.position :]}"
        self.position += 1
        return token

    def arrow(self) -> list[_Node]:
        parts = [self.atom()]
        while self.peek() == "->":
            self.take()
            parts.append(self.atom())
        return parts

    def atom(self) -> _Node:
        token = self.take()
        if token == "(":
            parts = self.arrow()
            if self.peek() == ",":
                items = [parts[0]]
                while self.peek() == ",":
                    self.take()
                    items.append(self.atom())
                self.take(")")
                return _Tuple(tuple(items))
            self.take(")")
            node = parts[-1]
            for part in reversed(parts[:-1]):
                node = _Function(part, node)
            return node
        if token == "idx":
            self.take("[")
            size = self.size(self.take())
            self.take("]")
            return _Index(size)
        if self.peek() == ".":
            self.take()
            return _Array(self.size(token), self.atom())
        return _Var(token)

    @staticmethod
    def size(token: str) -> _Size:
        if token.startswith("{"):
            return _Size(token[1:-1], compile(token[1:-1], "<signature>", "eval"))
        return _Size(token, None)


@dataclass(frozen=True, slots=True)
class Condition:
    """A side condition on sizes: `n divides m` or `a <= b` (both sides are size expressions)."""

    text: str
    relation: str
    left: CodeType
    right: CodeType

    @staticmethod
    def read(text: str) -> Condition:
        """Read `size divides n` or `size <= n`."""
        for relation in (" divides ", " <= "):
            if relation in text:
                left, right = text.split(relation)
                codes = (compile(part.strip(), "<condition>", "eval") for part in (left, right))
                return Condition(text, relation.strip(), *codes)
        raise ValueError(f"not a condition: {text}")

    def sides(self, bindings: Bindings) -> tuple[Expr, Expr]:
        """The two sides under the bindings."""
        return _evaluate(self.left, bindings), _evaluate(self.right, bindings)

    def in_numbers(self, bindings: Bindings) -> str:
        """The text with the sizes in place of their names: `9 <= 3 + 1`."""

        def value(name: re.Match[str]) -> str:
            text = str(bindings.get(name[0], name[0]))
            return text if text.isalnum() or self.text.count(" ") == 2 else f"({text})"

        return re.sub(r"(?!divides\b)\b[a-z]+\b", value, self.text)

    def of_sizes(self, bindings: Bindings) -> str:
        """What it says of the sizes: `2 <= n`."""
        left, right = self.sides(bindings)
        if self.relation == "<=" and left.constant is not None:
            left, right = left - right.offset, right - right.offset
        return f"{left} {self.relation} {right}"

    def never_holds(self, bindings: Bindings) -> bool:
        """Is it known to hold for no sizes at all?"""
        left, right = self.sides(bindings)
        return never_divides(left, right) if self.relation == "divides" else never_at_most(left, right)

    def holds(self, bindings: Bindings) -> bool:
        """Is it provable under the bindings?"""
        left, right = self.sides(bindings)
        return proves_divisible(right, left) if self.relation == "divides" else proves(right - left)


def _evaluate(code: CodeType, bindings: Bindings) -> Expr:
    from lithify.arith import as_expr

    return as_expr(eval(code, {"__builtins__": {}}, bindings))  # the text is a declaration of ours, never input


class Signature:
    """The parsed signature of a pattern: argument types, result type, conditions on sizes."""

    def __init__(self, text: str, conditions: tuple[str, ...] = ()) -> None:
        self.text = text
        *self._arguments, self._result = _Reader(text).arrow()
        self.conditions = tuple(Condition.read(c) for c in conditions)

    @property
    def arity(self) -> int:
        return len(self._arguments)

    def takes_function(self, position: int) -> bool:
        """Is the argument at the position (from 0) a function?"""
        return isinstance(self._arguments[position], _Function)

    def takes_array(self, position: int) -> bool:
        """Is the argument at the position (from 0) an array?"""
        return isinstance(self._arguments[position], _Array)

    def bind(self, position: int, type_: Type, bindings: Bindings) -> str | None:
        """Bind the variables of one argument's type; returns what clashes, or None."""
        return _match(self._arguments[position], type_, bindings)

    def expected(self, position: int, bindings: Bindings) -> tuple[tuple[Type, ...], Type | None] | None:
        """The parameter types and the result type (None: not known yet) that a function argument must have.

        None when a parameter's type is not known yet.
        """
        node, parameters = self._arguments[position], []
        while isinstance(node, _Function):
            if not _known(node.parameter, bindings):
                return None
            parameters.append(_build(node.parameter, bindings))
            node = node.result
        return tuple(parameters), _build(node, bindings) if _known(node, bindings) else None

    def infer(self, pattern: str, attributes: dict[str, Any], arguments: tuple[Type, ...]) -> Type:
        """The result type; raises TypeMismatch naming the argument, both types, and a condition that fails."""
        if len(arguments) != len(self._arguments):
            raise TypeMismatch(
                f"{pattern} takes {len(self._arguments)} argument(s), {len(arguments)} given",
                hint=f"{pattern} : {self.text}",
            )
        bindings, clash = self._bound(attributes, arguments)
        mismatch: str | None = None
        conditions: list[str] = []
        if clash is not None:
            bindings, never = self._bound(attributes, arguments, conditions)
            message = f"argument {clash[0]} of {pattern} does not fit: {clash[1]}"
            mismatch, hint = message, f"{pattern} : {self.text}   with arguments {'  and  '.join(map(str, arguments))}"
            if never is not None:
                raise TypeMismatch(message, hint=hint)
        for condition in self.conditions:
            if not condition.holds(bindings):
                never_holds = condition.never_holds(bindings)
                verdict = "does not hold" if never_holds else "does not hold for all sizes, as far as is known"
                remedy = "" if never_holds else "; give arguments, or their types: it may hold for their sizes"
                given = [f"{name} = {value}" for name, value in attributes.items()]
                given.append(f"arguments {'  and  '.join(map(str, arguments))}")
                message = f"{pattern} needs {condition.text}: {condition.in_numbers(bindings)} {verdict}"
                if mismatch is None or never_holds:
                    mismatch, hint = message, f"{pattern} : {self.text}   with {', '.join(given)}{remedy}"
                if never_holds:
                    raise TypeMismatch(mismatch, hint=hint)
                conditions.append(condition.of_sizes(bindings))
        for name, value in attributes.items():
            if isinstance(value, Expr) and value.constant is not None and value.constant < 0:
                raise TypeMismatch(f"{pattern} of a negative {name}: {value}", hint=f"{pattern} : {self.text}")
        if mismatch is not None:
            raise OpenCondition(mismatch, conditions, _build(self._result, bindings), hint=hint)
        return _build(self._result, bindings)

    def _bound(
        self, attributes: dict[str, Any], arguments: tuple[Type, ...], conditions: list[str] | None = None
    ) -> tuple[Bindings, tuple[int, str] | None]:
        """The variables that the arguments' types bind, and the argument that clashes and how, if one does.

        With `conditions`, sizes that may be equal are taken to be so, and noted there.
        """
        bindings: Bindings = dict(attributes)
        for position, (node, type_) in enumerate(zip(self._arguments, arguments, strict=True), 1):
            clash = _match(node, type_, bindings, conditions)
            if clash is not None:
                return bindings, (position, clash)
        return bindings, None


def _match(node: _Node, type_: Type, bindings: Bindings, conditions: list[str] | None = None) -> str | None:
    """Bind the signature's variables so that it equals the type; returns what clashes, or None.

    With `conditions`, sizes that may be equal are taken to be so, and noted there.
    """
    if isinstance(node, _Var):
        known = bindings.setdefault(node.name, type_)
        alike = known is type_ or (conditions is not None and _may_be(known, type_, conditions))
        return None if alike else f"{known} expected, {type_} given"
    if isinstance(node, _Array):
        if not isinstance(type_, Array):
            return f"an array expected, {type_} given"
        clash = _match_size(node.size, type_.size, bindings, type_, conditions)
        return clash or _match(node.element, type_.element, bindings, conditions)
    if isinstance(node, _Function):
        if not isinstance(type_, Function):
            return f"a function expected, {type_} given"
        clash = _match(node.parameter, type_.parameter, bindings, conditions)
        return clash or _match(node.result, type_.result, bindings, conditions)
    if isinstance(node, _Index):
        if not isinstance(type_, Index):
            integer = isinstance(type_, Scalar) and type_.is_integer
            remedy = ": as a parameter's type write (i : idx[n]), or (ids : m.idx[n])" if integer else ""
            return f"an index expected, {type_} given{remedy}"
        return _match_size(node.size, type_.size, bindings, type_, conditions)
    if not isinstance(type_, Tuple) or len(type_.items) != len(node.items):
        return f"a tuple of {len(node.items)} expected, {type_} given"
    for part, item in zip(node.items, type_.items, strict=True):
        clash = _match(part, item, bindings, conditions)
        if clash is not None:
            return clash
    return None


def _match_size(size: _Size, given: Expr, bindings: Bindings, type_: Type, conditions: list[str] | None) -> str | None:
    if size.code is None:
        known = bindings.setdefault(size.text, given)
    else:
        known = _evaluate(size.code, bindings)
    if known is given or proves_equal(known, given):
        return None
    if conditions is not None and not never_equal(known, given):
        conditions.append(f"{known} = {given}")
        return None
    return f"size {known} expected, {given} given (in {type_})"


def _may_be(known: Type, given: Type, conditions: list[str]) -> bool:
    """Whether two types may be the same: then the sizes that have to be equal are noted."""
    if isinstance(known, Array) and isinstance(given, Array):
        sizes = [(known.size, given.size)]
        parts = [(known.element, given.element)]
    elif isinstance(known, Index) and isinstance(given, Index):
        sizes, parts = [(known.size, given.size)], []
    elif isinstance(known, Tuple) and isinstance(given, Tuple) and len(known.items) == len(given.items):
        sizes, parts = [], list(zip(known.items, given.items, strict=True))
    else:
        return known is given
    for one, other in sizes:
        if never_equal(one, other):
            return False
        if not proves_equal(one, other):
            conditions.append(f"{one} = {other}")
    return all(_may_be(*pair, conditions) for pair in parts)


def _known(node: _Node, bindings: Bindings) -> bool:
    """Are all variables of the node bound?"""
    if isinstance(node, _Var):
        return node.name in bindings
    if isinstance(node, _Array):
        return (node.size.code is not None or node.size.text in bindings) and _known(node.element, bindings)
    if isinstance(node, _Index):
        return node.size.code is not None or node.size.text in bindings
    if isinstance(node, _Tuple):
        return all(_known(item, bindings) for item in node.items)
    return _known(node.parameter, bindings) and _known(node.result, bindings)


def _build(node: _Node, bindings: Bindings) -> Type:
    if isinstance(node, _Var):
        result = bindings[node.name]
        assert isinstance(result, Type)
        return result
    if isinstance(node, _Array):
        return Array(_size(node.size, bindings), _build(node.element, bindings))
    if isinstance(node, _Index):
        return Index(_size(node.size, bindings))
    if isinstance(node, _Tuple):
        return Tuple(*[_build(item, bindings) for item in node.items])
    return Function(_build(node.parameter, bindings), _build(node.result, bindings))


def _size(size: _Size, bindings: Bindings) -> Expr:
    if size.code is not None:
        return _evaluate(size.code, bindings)
    result = bindings[size.text]
    return result if isinstance(result, Expr) else _evaluate(compile(size.text, "<size>", "eval"), bindings)
