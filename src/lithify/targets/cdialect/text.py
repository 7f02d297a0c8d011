"""Pieces of C text with their precedence, so that parentheses are written where they are needed and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# C's precedence levels, strongest first. Quotients stand apart from products: c * (a / b) needs its parentheses.
PRIMARY, UNARY, TIMES, QUOTIENT, PLUS, SHIFT, RELATION, EQUALITY, BITS, LOGIC, CHOICE = range(16, 5, -1)


class Text(NamedTuple):
    """An expression of C and how strongly its outermost operator binds."""

    text: str
    precedence: int = PRIMARY

    def within(self, precedence: int) -> str:
        """The text as an operand of something that binds with the given strength."""
        return self.text if self.precedence >= precedence else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Template:
    """How an operation is written: `{0}`, `{1}`, .. are the operands, other names are filled in by the printer.

    `operands` is the strength with which each operand is held; `auxiliary` names functions of the preamble it calls.
    """

    text: str
    precedence: int = PRIMARY
    operands: tuple[int, ...] = ()
    auxiliary: str | None = None

    def fill(self, operands: tuple[Text, ...], **names: str) -> Text:
        """The operation on operands."""
        held = self.operands or (CHOICE,) * len(operands)
        texts = [operand.within(strength) for operand, strength in zip(operands, held, strict=True)]
        return Text(self.text.format(*texts, **names), self.precedence)


def infix(symbol: str, precedence: int) -> Template:
    """A left-associative operator. Operands of shifts, bit and logic operators are parenthesised: compilers warn."""
    left, right = precedence, precedence + 1
    if precedence in (SHIFT, BITS, LOGIC, EQUALITY, RELATION):
        left = right = PLUS if precedence in (EQUALITY, RELATION) else UNARY
    return Template(f"{{0}} {symbol} {{1}}", precedence, (left, right))


def prefix(symbol: str) -> Template:
    """A prefix operator; the operand is held strongly, so that `-(-1)` is not written `--1`."""
    return Template(f"{symbol}{{0}}", UNARY, (PRIMARY,))


def call(name: str, arity: int, auxiliary: str | None = None) -> Template:
    """A function call."""
    return Template(f"{name}({', '.join(f'{{{i}}}' for i in range(arity))})", PRIMARY, (CHOICE,) * arity, auxiliary)
