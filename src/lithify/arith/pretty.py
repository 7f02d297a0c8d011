"""Expressions as text: ``4*i + j - n``, ``(i + 1) / 4``, ``min(a, b)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lithify.arith import expr

if TYPE_CHECKING:
    from lithify.arith.expr import Atom, Expr


def expression(e: Expr) -> str:
    """`e` as text; `/` is floor division."""
    parts: list[str] = []
    for monomial, coefficient in e.terms:
        text = "*".join([atom(a, factor=abs(coefficient) != 1 or len(monomial) > 1) for a in monomial])
        if abs(coefficient) != 1:
            text = f"{abs(coefficient)}*{text}"
        sign = "-" if coefficient < 0 else "+"
        parts.append(f" {sign} {text}" if parts else ("-" if coefficient < 0 else "") + text)
    if e.offset or not parts:
        sign = "-" if e.offset < 0 else "+"
        parts.append(f" {sign} {abs(e.offset)}" if parts else str(e.offset))
    return "".join(parts)


def atom(a: Atom, factor: bool = False) -> str:
    """An atom as text, in parentheses where it stands in a product."""
    if isinstance(a, expr.Variable):
        return a.name
    if isinstance(a, expr.Floor):
        text = f"({a.numerator}) / {_factor(a.divisor)}"
        return f"({text})" if factor else text
    if isinstance(a, expr.Xor):
        return f"xor({a.left}, {a.right})"
    if isinstance(a, expr.Min):
        return f"min({a.left}, {a.right})"
    assert isinstance(a, expr.Loaded)
    return f"{a.buffer}[{', '.join(map(str, a.index))}]"


def _factor(e: Expr) -> str:
    text = str(e)
    return text if text.isalnum() else f"({text})"
