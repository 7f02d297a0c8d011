"""A cursor over the tokens of a source, and how a parser fails at a place in it."""

from __future__ import annotations

from typing import NoReturn

from lithify.lang.errors import ParseError
from lithify.lang.lexer import END, KEYWORDS, NAME, SYMBOL, Token, tokenize
from lithify.lang.syntax import Source, Span


class Cursor:
    """Where a parser stands: the next token, and what may be asked of it and of those behind it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.position = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def advance(self) -> Token:
        token = self.token
        if token.kind != END:
            self.position += 1
        return token

    def at(self, *texts: str) -> bool:
        """Is the next token one of these symbols or keywords?"""
        token = self.token
        return token.text in texts and (token.kind == SYMBOL or token.text in KEYWORDS)

    def take(self, *texts: str) -> bool:
        """Consume the next token if it is one of these symbols or keywords."""
        if self.at(*texts):
            self.advance()
            return True
        return False

    def expect(self, *texts: str, after: str) -> Token:
        """Consume one of these symbols or keywords, or fail."""
        if not self.at(*texts):
            self.fail(f"`{texts[0]}` expected {after}, {self.token} found")
        return self.advance()

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        """Raise ParseError at a place (the next token's, if none is given)."""
        raise ParseError(message, where=str(span or self.token.span), hint=hint)

    def twice(self, message: str, span: Span, first: Span, remedy: str = "") -> NoReturn:
        """The error of a name that has two meanings."""
        raise ParseError(message, where=f"{span}\nfirst: {first}", hint=f"rename one of them{remedy}")

    def expect_end(self) -> None:
        """Fail unless all tokens have been read."""
        if self.token.kind != END:
            hint = "a definition was not expected here" if self.token.first else None
            self.fail(f"the end expected, {self.token} found", hint=hint)

    def since(self, start: Span) -> Span:
        """From a place to the last consumed token."""
        return start.to(self.tokens[self.position - 1].span)

    def name(self, what: str) -> Token:
        """Consume a name that is no keyword."""
        if self.token.kind != NAME or self.token.text in KEYWORDS:
            self.fail(f"{what} expected, {self.token} found")
        return self.advance()

    def behind_bracket(self) -> Token | None:
        """The token behind the one that closes the bracket at the cursor; None where nothing closes it."""
        depth = 0
        for position in range(self.position, len(self.tokens)):
            token = self.tokens[position]
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == SYMBOL else 0
            if depth == 0:
                return self.tokens[position + 1]
        return None
