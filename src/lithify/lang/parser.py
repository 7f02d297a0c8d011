"""The parser: text to surface syntax, by operator precedence.

From loose to tight: `|>` and `>>`, `||`, `&&`, comparisons, shifts, `+ -`, `* / %`, unary `-`, `^`, composition `.`,
application. A lambda, `let` and `if` extend as far as they can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from lithify.lang.cursor import Cursor
from lithify.lang.depth import deeply
from lithify.lang.lexer import (
    ATTRIBUTED,
    ATTRIBUTES,
    END,
    KEYWORDS,
    LABEL,
    NAME,
    NUMBER,
    PROJECTION,
    SYMBOL,
    Token,
)
from lithify.lang.syntax import (
    PARTS,
    PROPERTIES,
    Annotation,
    Application,
    ArrayLiteral,
    ArrayType,
    Attributed,
    Compose,
    Conditional,
    Declaration,
    DefinitionSyntax,
    Expression,
    FunctionType,
    Indexing,
    IndexType,
    Infix,
    Lambda,
    Let,
    Name,
    NamePattern,
    Number,
    OperatorSyntax,
    ParameterPattern,
    Projection,
    Section,
    Source,
    Span,
    TupleExpression,
    TuplePattern,
    TupleType,
    TypeName,
    TypeSyntax,
    free_names,
    named_parts,
    parameters_of,
)

# binding power and associativity of infix symbols
_LEFT, _RIGHT, _NONE = "left", "right", "none"
_INFIX: dict[str, tuple[int, str]] = {
    "|>": (1, _LEFT), ">>": (1, _LEFT), "||": (2, _LEFT), "&&": (3, _LEFT),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), (4, _NONE)),
    **dict.fromkeys(("<<", ">>>"), (5, _LEFT)),
    **dict.fromkeys(("+", "-"), (6, _LEFT)), **dict.fromkeys(("*", "/", "%"), (7, _LEFT)),
    "^": (9, _RIGHT), ".": (10, _RIGHT), "∘": (10, _RIGHT),
}  # fmt: skip
_UNARY = 8
_COMPOSITIONS = frozenset({"|>", ">>", ".", "∘"})
_ARROWS = ("->", "→")
UNUSED = "_"  # the name of parameters that are not used


def parse_expression(text: str | Source, name: str = "<text>") -> Expression:
    """The expression that a text holds; raises ParseError with line, caret and what was expected."""
    return _whole(text, name, Parser.expression)


def parse_type(text: str | Source, name: str = "<type>") -> TypeSyntax:
    """The type that a text holds: `n.k.f32`, `(f32, idx[n])`, `f32 -> n.f32`."""
    return _whole(text, name, Parser.type)


def parse(text: str | Source, name: str = "<text>") -> list[Declaration]:
    """The declarations of a file, in order."""
    return _whole(text, name, Parser.declarations)


_T = TypeVar("_T")


def _whole(text: str | Source, name: str, nonterminal: Callable[[Parser], _T]) -> _T:
    parser = Parser(Source(text, name) if isinstance(text, str) else text)

    def read() -> _T:
        parser.position = 0
        return nonterminal(parser)

    try:
        result = deeply(read)
    except RecursionError:
        parser.fail("nested too deeply")
    parser.expect_end()
    return result


class Parser(Cursor):
    """One method a nonterminal; each leaves the cursor behind what it has read."""

    # ---- declarations ------------------------------------------------------------------------------------------------

    def declarations(self) -> list[Declaration]:
        """Definitions, annotations and operators, to the end."""
        result: list[Declaration] = []
        annotations: dict[str, tuple[TypeSyntax, Span]] = {}
        while self.token.kind != END:
            if not self.token.first:
                self.fail(
                    f"a definition `name = ..` expected, {self.token} found",
                    hint="each definition starts on a line of its own",
                )
            if self.token.text == "operator" and self.tokens[self.position + 1].kind == NAME:
                result.append(self.operator())
                continue
            start = self.name("the name of a definition")
            if self.take(":"):
                annotations[start.text] = self.type(), start.span
                self.declaration_ends()
                continue
            parameters = [] if self.at("=") else self.parameters(("=",))
            self.expect("=", after="in the definition")
            value = self.expression()
            self.distinct([*parameters, *parameters_of(value)])
            self.declaration_ends()
            span = self.since(start.span)
            if parameters:
                value = Lambda(tuple(parameters), value, span=span)
            annotation, _ = annotations.pop(start.text, (None, None))
            result.append(DefinitionSyntax(start.text, value, annotation, span=span))
        for name, (_, span) in annotations.items():
            self.fail(f"{name} has a type but no definition after it", span)
        return result

    def declaration_ends(self) -> None:
        if not self.token.first:
            self.fail(f"an operator, an argument or the next definition expected, {self.token} found")

    def operator(self) -> OperatorSyntax:
        """`operator name (λa b. ..) associative commutative idempotent neutral e absorbing z inverse f`."""
        start = self.advance().span
        name = self.name("the name of an operator").text
        definition = self.atom()
        properties: list[str] = []
        parts: dict[str, Expression] = {}
        while self.token.kind == NAME and not self.token.first:
            if self.token.text in PARTS and self.token.text not in parts:
                part = self.advance().text
                parts[part] = self.atom()
            elif self.token.text in PROPERTIES:
                properties.append(self.advance().text)
            else:
                known = ", ".join((*PROPERTIES, *[f"{part} {e}" for part, e in zip(PARTS, "ezf", strict=True)]))
                self.fail(f"a property ({known}) expected, {self.token} found")
        self.declaration_ends()
        return OperatorSyntax(name, definition, tuple(properties), **parts, span=self.since(start))

    # ---- expressions -------------------------------------------------------------------------------------------------

    def expression(self, power: int = 0) -> Expression:
        """An expression whose infix symbols bind tighter than `power`."""
        left = self.prefix()
        while self.token.kind == SYMBOL and self.token.text in _INFIX:
            symbol = self.token.text
            strength, associativity = _INFIX[symbol]
            following = self.tokens[self.position + 1]
            if strength <= power or (following.kind == SYMBOL and following.text == ")"):  # a left section ends here
                break
            self.advance()
            right = self.expression(strength - 1 if associativity == _RIGHT else strength)
            span = left.span.to(right.span)
            if symbol in _COMPOSITIONS:
                outer, inner = (left, right) if symbol in (".", "∘") else (right, left)
                left = Compose(outer, inner, span=span)
            else:
                left = Infix(symbol, left, right, span=span)
            if associativity == _NONE and self.token.text in _INFIX and _INFIX[self.token.text][0] == strength:
                self.fail("comparisons do not chain", hint="write a < b && b < c")
        return left

    def prefix(self) -> Expression:
        start = self.token.span
        if self.take("-"):
            operand = self.expression(_UNARY)
            span = start.to(operand.span)
            if isinstance(operand, Number):
                return Number(-operand.value, span=span)
            return Application(Name("neg", span=start), (operand,), span=span)
        if self.take("let"):
            pattern = self.pattern()
            self.distinct([pattern], "parts")
            self.expect("=", after="in let")
            value = self.expression()
            self.expect("in", after="after the value of let")
            body = self.expression()
            return Let(pattern, value, body, span=start.to(body.span))
        if self.take("if"):
            condition = self.expression()
            self.expect("then", after="after the condition")
            then = self.expression()
            self.expect("else", after="(both branches are values)")
            otherwise = self.expression()
            return Conditional(condition, then, otherwise, span=start.to(otherwise.span))
        return self.application()

    def application(self) -> Expression:
        function = self.atom()
        arguments: list[Expression] = []
        while self.starts_atom():
            arguments.append(self.atom())
        if not arguments:
            return function
        return Application(function, tuple(arguments), span=function.span.to(arguments[-1].span))

    def starts_atom(self) -> bool:
        token = self.token
        if token.kind == NAME:
            return token.text not in KEYWORDS and not token.first
        return token.kind == NUMBER or (token.kind == SYMBOL and token.text in ("(", "[", "λ", "\\"))

    def atom(self) -> Expression:
        """A name, literal, lambda or bracketed expression, with calls, projections and indices behind it."""
        result = self.simple()
        while True:
            token = self.token
            if token.kind == PROJECTION:
                self.advance()
                result = Projection(result, int(token.text[1:]), span=self.since(result.span))
            elif token.glued and self.at("(") and not isinstance(result, Number | Lambda | Section):
                arguments = self.bracketed()
                items = arguments.items if isinstance(arguments, TupleExpression) else (arguments,)
                result = Application(result, items, call=True, span=self.since(result.span))
            elif token.glued and self.at("[") and not isinstance(result, Number | Lambda | Section):
                self.advance()
                index = self.expression()
                self.expect("]", after="after the index")
                result = Indexing(result, index, span=self.since(result.span))
            else:
                return result

    def simple(self) -> Expression:
        token = self.token
        if token.kind == NUMBER:
            self.advance()
            return Number(_number(token.text), span=token.span)
        if token.kind == NAME and token.text not in KEYWORDS and not token.first:
            return self.named()
        if self.at("("):
            return self.bracketed()
        if self.at("["):
            self.advance()
            items = self.items("]")
            self.expect("]", after="after the elements")
            if not items:
                self.fail("an array literal has at least one element", token.span)
            return ArrayLiteral(tuple(items), span=self.since(token.span))
        if self.at("λ", "\\"):
            self.advance()
            parameters = self.parameters((".", *_ARROWS))
            self.expect(".", *_ARROWS, after="after the parameters")
            body = self.expression()
            self.distinct(parameters)
            return Lambda(tuple(parameters), body, span=token.span.to(body.span))
        self.fail(f"an expression expected, {token} found")

    def named(self) -> Expression:
        token = self.advance()
        attributes: tuple[str, ...] = ()
        if token.text in ATTRIBUTED:
            has_attributes = self.token.kind == ATTRIBUTES
            if has_attributes:
                attributes = _split_attributes(self.advance().text)
            label = self.advance().text[1:] if self.token.kind == LABEL and self.token.glued else None
            if has_attributes or label is not None:
                return Attributed(token.text, attributes, label, span=self.since(token.span))
        return Name(token.text, span=token.span)

    def items(self, closing: str) -> list[Expression]:
        result: list[Expression] = []
        while not self.at(closing):
            result.append(self.expression())
            if not self.take(","):
                break
        return result

    def bracketed(self) -> Expression:
        """`(e)`, `(a, b)`, `(e : t)` or a section."""
        start = self.advance().span
        symbol = self.token.text if self.token.kind == SYMBOL else ""
        following = self.tokens[self.position + 1].text
        if symbol in _INFIX and (following == ")" or symbol != "-"):
            self.advance()
            right = None if self.at(")") else self.expression()
            return self.section(start, symbol, None, right)
        first = self.expression()
        if self.token.kind == SYMBOL and self.token.text in _INFIX:
            symbol = self.advance().text
            if isinstance(first, Lambda | Let | Conditional):
                self.fail(f"an expression expected after `{symbol}`, {self.token} found")
            return self.section(start, symbol, first, None)
        if self.take(":"):
            type_ = self.type()
            self.expect(")", after="after the type")
            return Annotation(first, type_, span=self.since(start))
        if self.take(","):
            items = [first, *self.items(")")]
            self.expect(")", after="or `,` in the tuple")
            if len(items) < 2:
                self.fail("a tuple has two or more components", self.since(start))
            return TupleExpression(tuple(items), span=self.since(start))
        self.expect(")", after="after the expression")
        return first

    def section(self, start: Span, symbol: str, left: Expression | None, right: Expression | None) -> Expression:
        self.expect(")", after="after the section")
        span = self.since(start)
        if symbol in _COMPOSITIONS:
            self.fail(f"`{symbol}` has no section; write a lambda", span)
        return Section(symbol, left, right, span=span)

    # ---- parameters --------------------------------------------------------------------------------------------------

    def parameters(self, closing: tuple[str, ...]) -> list[ParameterPattern]:
        """Patterns, separated by blanks or (as on the slides) commas."""
        result = [self.pattern()]
        while not self.at(*closing):
            self.take(",")
            result.append(self.pattern())
        return result

    def distinct(self, patterns: Iterable[ParameterPattern], what: str = "parameters") -> None:
        """Refuse two parameters (or parts of a let) of one name, and one that hides a size: the first has no use.

        `_` names what is not used, however often.
        """
        seen: dict[str, Span] = {}
        sizes: dict[str, Span] = {}
        for part in (part for pattern in patterns for part in named_parts(pattern)):
            name = part.name
            if name in seen:
                unused = f", or write {UNUSED} for one that is not used"
                self.twice(f"two {what} are called `{name}`", part.span, seen[name], unused)
            if name in sizes:
                self.twice(f"`{name}` is a size, and a parameter after it", part.span, sizes[name])
            if name != UNUSED:
                seen[name] = part.span
            for size in free_names(part.annotation):
                if size.name not in seen:
                    sizes.setdefault(size.name, size.span)

    def pattern(self) -> ParameterPattern:
        start = self.token.span
        if not self.take("("):
            return NamePattern(self.name("a parameter").text, span=self.since(start))
        first = self.pattern()
        if self.take(":"):
            if not isinstance(first, NamePattern):
                self.fail("a type can be given to a name only")
            type_ = self.type()
            self.expect(")", after="after the parameter's type")
            return NamePattern(first.name, type_, span=self.since(start))
        items = [first]
        while self.take(","):
            items.append(self.pattern())
        self.expect(")", after="after the parameters")
        return TuplePattern(tuple(items), span=self.since(start)) if len(items) > 1 else first

    # ---- types -------------------------------------------------------------------------------------------------------

    def type(self) -> TypeSyntax:
        """A type; `->` is right-associative."""
        left = self.type_atom()
        if self.take(*_ARROWS):
            right = self.type()
            return FunctionType(left, right, span=left.span.to(right.span))
        return left

    def type_atom(self) -> TypeSyntax:
        token = self.token
        if token.kind == NUMBER:
            self.advance()
            return self.array_type([Number(int(part), span=token.span) for part in token.text.split(".")], token)
        if self.at("("):
            if self.size_in_brackets():
                self.advance()
                size = self.expression()
                self.expect(")", after="after the size")
                return self.array_type([size], token)
            self.advance()
            items = [self.type()]
            while self.take(","):
                items.append(self.type())
            self.expect(")", after="after the type")
            return TupleType(tuple(items), span=self.since(token.span)) if len(items) > 1 else items[0]
        name = self.name("a type")
        if name.text == "idx" and self.at("["):
            self.advance()
            size = self.expression()
            self.expect("]", after="after the size")
            return IndexType(size, span=self.since(token.span))
        if self.dotted():
            return self.array_type([Name(name.text, span=name.span)], token)
        return TypeName(name.text, span=name.span)

    def dotted(self) -> bool:
        return self.at(".") or self.token.kind == PROJECTION

    def array_type(self, sizes: list[Expression], start: Token) -> TypeSyntax:
        while self.token.kind == PROJECTION:
            token = self.advance()
            sizes.append(Number(int(token.text[1:]), span=token.span))
        self.expect(".", after="after the size")
        result = self.type_atom()
        for size in reversed(sizes):
            result = ArrayType(size, result, span=self.since(start.span))
        return result

    def size_in_brackets(self) -> bool:
        """Does the bracket at the cursor hold a size, as in `(n + 1).f32`?"""
        after = self.behind_bracket()
        return after is not None and after.glued and (after.text == "." or after.kind == PROJECTION)


def _number(text: str) -> int | float | complex:
    if text.endswith("j"):
        return complex(text)
    return int(text) if text.isdigit() else float(text)


def _split_attributes(text: str) -> tuple[str, ...]:
    """The entries of `[a, b[c, d], e]`: split at the commas (and semicolons) outside inner brackets."""
    entries, depth, current = [], 0, ""
    for character in text[1:-1]:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            entries.append(current.strip())
            current = ""
        else:
            current += character
    return (*entries, current.strip())


__all__ = ["ATTRIBUTED", "Parser", "parse", "parse_expression", "parse_type"]
