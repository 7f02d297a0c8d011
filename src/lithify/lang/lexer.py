"""Tokens of a program's text.

What needs more than a regular expression: a dot between a name and a digit is a projection (`p.0`), unless it closes a
lambda's parameters; an attribute list `map[item0]` is one raw token; a line that starts with `name =` or `name : type`
outside brackets starts a definition, so that definitions need no terminator and no indentation.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from lithify.lang.elsewhere import SYMBOLS, written_here
from lithify.lang.errors import ParseError
from lithify.lang.syntax import Source, Span

NAME: Final = "name"
NUMBER: Final = "number"
SYMBOL: Final = "symbol"
PROJECTION: Final = "projection"
ATTRIBUTES: Final = "attributes"
LABEL: Final = "label"
STRING: Final = "string"
END: Final = "end"

KEYWORDS: Final = frozenset({"let", "in", "if", "then", "else"})
# primitives whose attributes are written in brackets behind the name
ATTRIBUTED: Final = frozenset({"map", "reduce", "scan", "pipe", "to", "launch", "instr", "scatter", "reindex"})

_BLANK = re.compile(r"(?:[\s`]|--[^\n]*)+")  # a backquote is how the slides highlight
_NAME = re.compile(r"(?!λ)[^\W\d](?:(?!λ)[\w'])*")
_NUMBER = re.compile(r"(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+)(?:j(?!\w))?")
_PROJECTION = re.compile(r"\.\d+")
_LABEL = re.compile(r"@[^\W\d]\w*(?:\.\w+)*")
_STRING = re.compile(r'"[^"\n]*"')
_SYMBOL = re.compile(r">>>|\|>|>>|<<|->|→|==|!=|<=|>=|&&|\|\||[∘λ\\.,()\[\]+\-*/%^<>=:]")
_PARAMETER = re.compile(r"\s+(?!λ)[^\W\d][\w']*")
_DECLARES = re.compile(r"\s*(?:=(?!=)|:)")
_OPENING = {"(": ")", "[": "]"}


def declares(text: str, offset: int) -> bool:
    """Is what follows a name on its line parameters, then `=` or `:`? Then the line declares it."""
    while True:
        parameter = _PARAMETER.match(text, offset)
        if parameter is not None:
            offset = parameter.end()
            continue
        start = offset + len(text[offset:]) - len(text[offset:].lstrip())
        if text[start : start + 1] != "(":
            return _DECLARES.match(text, offset) is not None
        depth, offset = 1, start + 1
        while depth:
            if offset == len(text) or text[offset] == "=":
                return False
            depth += {"(": 1, ")": -1}.get(text[offset], 0)
            offset += 1


@dataclass(frozen=True, slots=True)
class Token:
    """A token. `glued`: no blank before it; `first`: the first of a declaration."""

    kind: str
    text: str
    span: Span
    glued: bool = False
    first: bool = False

    def __str__(self) -> str:
        return "the end of the text" if self.kind == END else f"`{self.text}`"


def tokenize(source: Source) -> list[Token]:
    """The tokens of a text, ending with an END token; raises ParseError on characters and brackets that do not fit."""
    return _Lexer(source).run()


class _Lexer:
    def __init__(self, source: Source) -> None:
        self.source, self.text, self.offset = source, source.text, 0
        self.tokens: list[Token] = []
        self.brackets: list[Token] = []
        self.binders: list[int] = []  # bracket depths of the lambdas whose parameters are being read
        self.line_start = True

    def run(self) -> list[Token]:
        while True:
            start = self.offset
            blank = _BLANK.match(self.text, self.offset)
            if blank:
                self.line_start = self.line_start or "\n" in blank.group()
                self.offset = blank.end()
            glued = start == self.offset and start > 0
            if self.offset >= len(self.text):
                break
            self.token(glued)
        if self.brackets:
            opened = self.brackets[-1]
            raise ParseError(f"`{opened.text}` is never closed", where=str(opened.span))
        self.tokens.append(Token(END, "", Span(self.source, len(self.text), len(self.text)), first=True))
        return self.tokens

    def span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)

    def add(self, kind: str, end: int, glued: bool, first: bool = False) -> Token:
        token = Token(kind, self.text[self.offset : end], self.span(self.offset, end), glued, first)
        self.tokens.append(token)
        self.offset, self.line_start = end, False
        return token

    def token(self, glued: bool) -> None:
        character = self.text[self.offset]
        if glued and character == "." and self.tokens and not self.closes_binder():
            projection = _PROJECTION.match(self.text, self.offset)
            if projection and (self.tokens[-1].kind in (NAME, PROJECTION) or self.tokens[-1].text in (")", "]")):
                self.add(PROJECTION, projection.end(), glued)
                return
        if glued and character == "[" and self.tokens[-1].text in ATTRIBUTED:
            self.attributes()
            return
        for symbol in SYMBOLS:
            if self.text.startswith(symbol, self.offset):
                where = str(self.span(self.offset, self.offset + len(symbol)))
                raise ParseError(f"`{symbol}` is no symbol of the language", where=where, hint=written_here(symbol))
        for kind, pattern in ((NUMBER, _NUMBER), (STRING, _STRING), (LABEL, _LABEL), (SYMBOL, _SYMBOL)):
            match = pattern.match(self.text, self.offset)
            if match:
                token = self.add(kind, match.end(), glued)
                if kind == SYMBOL:
                    self.symbol(token)
                return
        match = _NAME.match(self.text, self.offset)
        if match is None:
            where = str(self.span(self.offset, self.offset + 1))
            message = f"{_shown(character)} is not a character of the language"
            raise ParseError(message, where=where, hint=written_here(character))
        self.add(NAME, match.end(), glued, self.line_start and not self.brackets and self.starts_declaration(match))

    def closes_binder(self) -> bool:
        return bool(self.binders) and self.binders[-1] == len(self.brackets)

    def symbol(self, token: Token) -> None:
        if token.text in ("λ", "\\"):
            self.binders.append(len(self.brackets))
        elif token.text in (".", "->", "→") and self.closes_binder():
            self.binders.pop()
        elif token.text in _OPENING:
            self.brackets.append(token)
        elif token.text in _OPENING.values():
            if not self.brackets:
                raise ParseError(f"`{token.text}` closes nothing", where=str(token.span))
            opened = self.brackets.pop()
            if _OPENING[opened.text] != token.text:
                raise ParseError(
                    f"`{_OPENING[opened.text]}` expected, `{token.text}` found",
                    where=f"{token.span}\nopened here: {opened.span}",
                )
            while self.binders and self.binders[-1] > len(self.brackets):
                self.binders.pop()

    def attributes(self) -> None:
        depth, end = 0, self.offset
        while end < len(self.text):
            depth += {"[": 1, "]": -1}.get(self.text[end], 0)
            end += 1
            if depth == 0:
                self.add(ATTRIBUTES, end, True)
                return
        raise ParseError("`[` is never closed", where=str(self.span(self.offset, self.offset + 1)))

    def starts_declaration(self, name: re.Match[str]) -> bool:
        if name.group() in KEYWORDS:
            return False
        rest = self.text[name.end() :].split("\n", 1)[0]
        if name.group() == "operator" and re.match(r"\s+[^\W\d]", rest):
            return True
        return declares(rest, 0)


def _shown(character: str) -> str:
    """The character, by its number and name where it would not be seen by itself."""
    if character.isprintable() and not unicodedata.combining(character):
        return f"`{character}`"
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'a control character')})"
