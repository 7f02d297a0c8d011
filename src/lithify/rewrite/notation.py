"""The notation of rules: `map f (map g xs) -> map (λx. f (g x)) xs`, read into terms with metavariables.

It is the language's own notation, fully applied, with metavariables: a name that no λ binds stands for any term.
Applied to bound variables (`e a b`) it may mention these and no others, so the text shows what may be free where
(Miller patterns). Words in size position (`split n xs`) stand for sizes; right of the arrow a size may be any formula
in parentheses, with `length xs` for the length of an array, `width xs` for that of its rows. `map` is abstract;
`map[seq]` has that level, `map[l]` binds the level; `map@a` binds the map's name, `map@a.tile` derives one from it, and
`map@a/b` takes the first of two that is set. A function may lack its last argument: `map (split n) xs`.
"""

from __future__ import annotations

import re

from lithify.lang.levels import Level, Memory
from lithify.lang.operators import OPERATORS
from lithify.lang.patterns import PATTERNS
from lithify.rewrite.metaterms import Applied, Bound, Copy, Formula, Lambda, MapName, Meta, Node, Nth

# ---- words ---------------------------------------------------------------------------------------------------------
# (pattern, names of the attributes in the order of the text, number of children; -1: two or more)

_WORDS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "map": ("map", (), 2),
    "reduce": ("reduce", (), 3),
    "scan": ("scan", (), 3),
    "iterate": ("iterate", ("count",), 2),
    "generate": ("generate", ("size",), 1),
    "to": ("to", (), 1),
    "at": ("at", (), 2),
    "split": ("split", ("size",), 1),
    "join": ("join", (), 1),
    "T": ("transpose", (), 1),
    "take": ("take", ("size",), 1),
    "drop": ("drop", ("size",), 1),
    "slide": ("slide", ("size", "step"), 1),
    "pad": ("pad", ("left", "right", "mode"), 1),
    "zip": ("zip", (), -1),
    "unzip": ("unzip", (), 1),
    "concat": ("concat", (), -1),
    "replicate": ("replicate", ("size",), 1),
    "reindex": ("reindex", ("function",), 1),
    "gather": ("gather", (), 2),
    "scatter": ("scatter", ("mode",), 2),
    "pipe": ("pipe", ("slots",), 4),
    "swz": ("swz", ("width",), 1),
    "singleton": ("array", (), 1),
}
_MODES = ("clamp", "mirror", "wrap", "permutation")
_TOKEN = re.compile(r"\s*(->|[λ\\]|[A-Za-z_][A-Za-z_0-9]*|\d+|[()\[\],.@=])")
_MAP_NAME = re.compile(r"@([A-Za-z_]\w*)(?:/([A-Za-z_]\w*))?(?:\.([A-Za-z_]\w*))?")
_LENGTH = re.compile(r"\b(length|width)\s+([A-Za-z_]\w*)")


class NotationError(ValueError):
    """A rule's text does not follow the notation."""


def read_rule(text: str) -> tuple[Node, Node]:
    """Both sides of `left -> right`."""
    reader = _Reader(text)
    left = reader.term(())
    reader.expect("->")
    right = reader.term(())
    reader.end()
    return left, right


def read_formula(text: str) -> Formula:
    """A formula over metavariables, as conditions use them."""
    text = _LENGTH.sub(r"\1(\2)", text.strip())
    if re.fullmatch(r"[A-Za-z_]\w*", text):
        return Formula(text, name=text)
    return Formula(text, code=compile(text, "<rule>", "eval"))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.position, self.fresh = text, 0, 0

    # -- tokens
    def peek(self) -> str:
        found = _TOKEN.match(self.text, self.position)
        return found.group(1) if found else ""

    def next(self) -> str:
        found = _TOKEN.match(self.text, self.position)
        if not found:
            raise self.error("unexpected end or character")
        self.position = found.end()
        return found.group(1)

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self.error(f"{token} expected")
        self.next()

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise self.error("end expected")

    def error(self, message: str) -> NotationError:
        return NotationError(f"{message} at: {self.text[self.position :][:40]!r} in {self.text!r}")

    def adjacent(self, token: str) -> bool:
        """Does the token stand directly at the position, without a space?"""
        return self.text.startswith(token, self.position)

    # -- terms
    def term(self, scope: tuple[str, ...]) -> Node:
        token = self.peek()
        if token in ("λ", "\\"):
            return self.function(scope)
        if token == "let":
            self.next()
            name = self.next()
            self.expect("=")
            value = self.term(scope)
            if self.next() != "in":
                raise self.error("in expected")
            return Applied(PATTERNS["let"], (), (value, Lambda((name,), self.term((*scope, name)))))
        return self.application(scope)

    def function(self, scope: tuple[str, ...]) -> Lambda:
        self.next()
        names = []
        while self.peek() != ".":
            names.append(self.next())
        self.next()
        return Lambda(tuple(names), self.term((*scope, *names)))

    def application(self, scope: tuple[str, ...]) -> Node:
        token = self.peek()
        if token in _WORDS or token in ("copy", "nth"):
            return self.word(scope)
        if token in OPERATORS and token not in scope:
            return self.operator(scope)
        if token == "(" or not (token[:1].isalpha() or token[:1] == "_"):
            return self.atom(scope)
        head = self.atom(scope)
        arguments = []
        while self.starts_atom():
            arguments.append(self.atom(scope))
        if not arguments:
            return head
        if not isinstance(head, Meta):
            raise self.error(f"{head} is applied")
        return Meta(head.name, tuple(arguments))

    def starts_atom(self) -> bool:
        token = self.peek()
        return token == "(" or (bool(token) and (token[0].isalpha() or token[0] == "_") and token not in ("in", "λ"))

    def atom(self, scope: tuple[str, ...]) -> Node:
        token = self.next()
        node: Node
        if token == "(":
            parts = [self.term(scope)]
            while self.peek() == ",":
                self.next()
                parts.append(self.term(scope))
            self.expect(")")
            node = parts[0] if len(parts) == 1 else Applied(PATTERNS["tuple"], (), tuple(parts))
        elif token in _WORDS:  # a word without arguments, as a function: `map T xs`
            self.position -= len(token)
            node = self.word(scope, bare=True)
        elif token in scope:
            node = Bound(token)
        else:
            node = Meta(token)
        while self.adjacent(".") and self.text[self.position + 1 : self.position + 2].isdigit():
            self.next()
            node = Applied(PATTERNS["proj"], (Formula("", constant=int(self.next())),), (node,))
        return node

    def word(self, scope: tuple[str, ...], bare: bool = False) -> Node:
        word = self.next()
        given = self.brackets() if self.adjacent("[") else []
        if word == "copy":
            return Copy(given[0], self.atom(scope))
        if word == "nth":
            return Nth(self.size(), self.atom(scope))
        name = self.map_name() if self.adjacent("@") else None
        kind, positional, arity = _WORDS[word]
        pattern = PATTERNS[kind]
        values: dict[str, Formula | MapName] = {}
        fill = None
        for attribute in positional:
            if attribute == "mode":
                values[attribute], fill = self.mode(scope)
            else:
                values[attribute] = self.size()
        others = [a for a in pattern.attributes if a not in values and a != "name"]
        for attribute, formula in zip(others, given, strict=False):
            values[attribute] = _hardware(formula)
        for attribute in others[len(given) :]:
            values[attribute] = Formula("", constant=0 if attribute == "lag" else None)
        if "name" in pattern.attributes:
            values["name"] = name or MapName()
        children: list[Node] = []
        while not bare and self.starts_atom() and (arity < 0 or len(children) < arity):
            children.append(self.atom(scope))
        attributes = tuple([values[a] for a in pattern.attributes])
        if arity > 0 and len(children) == arity - 1:  # a function without its last argument
            self.fresh += 1
            variable = f"_{self.fresh}"
            body = (*children, Bound(variable)) + ((fill,) if fill else ())
            return Lambda((variable,), Applied(pattern, attributes, body))
        if arity > 0 and len(children) != arity:
            raise self.error(f"{word} takes {arity} arguments, {len(children)} given")
        return Applied(pattern, attributes, (*children, fill) if fill else tuple(children))

    def operator(self, scope: tuple[str, ...]) -> Node:
        operator = OPERATORS[self.next()]
        operands = tuple([self.atom(scope) for _ in range(operator.arity)])
        return Applied(PATTERNS["op"], (Formula(operator.name, constant=operator),), operands)

    # -- attributes
    def size(self) -> Formula:
        if self.peek() == "(":
            return read_formula(self.parenthesised())
        return read_formula(self.next())

    def mode(self, scope: tuple[str, ...]) -> tuple[Formula, Node | None]:
        if self.peek() == "(":
            self.next()
            if self.next() != "fill":
                raise self.error("(fill c) expected")
            fill = self.atom(scope)
            self.expect(")")
            return Formula("fill", constant="fill"), fill
        token = self.next()
        return (Formula(token, constant=token) if token in _MODES else Formula(token, name=token)), None

    def parenthesised(self) -> str:
        self.expect("(")
        start, depth = self.position, 1
        while depth:
            if self.position >= len(self.text):
                raise self.error(") expected")
            depth += {"(": 1, ")": -1}.get(self.text[self.position], 0)
            self.position += 1
        return self.text[start : self.position - 1]

    def brackets(self) -> list[Formula]:
        end = self.text.index("]", self.position)
        content, self.position = self.text[self.position + 1 : end], end + 1
        return [read_formula(part) for part in content.split(",")]

    def map_name(self) -> MapName:
        found = _MAP_NAME.match(self.text, self.position)
        if not found:
            raise self.error("a name expected after @")
        self.position = found.end()
        return MapName(*found.groups())


def _hardware(formula: Formula) -> Formula:
    """A level or memory word is a constant; any other name is a metavariable."""
    for parse in (Level.parse, Memory.parse):
        try:
            return Formula(formula.text, constant=parse(formula.text))
        except ValueError:
            continue
    return formula
