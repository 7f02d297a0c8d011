"""Expressions as text: ``4*i + j - n``, ``(i + 1) / 4`` (floor division), ``min(a, b)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lithify.arith import atoms

if TYPE_CHECKING:
    from lithify.arith.atoms import Atom
    from lithify.arith.expr import Expr


def expression(e: Expr) -> str:
    """`e` as text."""
    text = ""
    for monomial, coefficient in e.terms:
        size = abs(coefficient)
        alone = size == 1 and len(monomial) == 1 and (text != "" or coefficient > 0)  # -a / b would be (-a) / b
        factors = ([str(size)] if size != 1 else []) + [_factor(a, alone) for a in monomial]
        text += _signed("*".join(factors), coefficient < 0, first=not text)
    if e.offset or not text:
        text += _signed(str(abs(e.offset)), e.offset < 0, first=not text)
    return text


def _signed(text: str, negative: bool, first: bool) -> str:
    if first:
        return f"-{text}" if negative else text
    return f" - {text}" if negative else f" + {text}"


def _factor(a: Atom, alone: bool) -> str:
    text = atom(a)
    return text if alone or not isinstance(a, atoms.Floor) else f"({text})"


def atom(a: Atom) -> str:
    """An atom as text."""
    if isinstance(a, atoms.Variable):
        return a.name
    if isinstance(a, atoms.Floor):
        divisor = str(a.divisor)
        return f"({a.numerator}) / {divisor if divisor.isalnum() else f'({divisor})'}"
    if isinstance(a, atoms.Xor):
        return f"xor({a.left}, {a.right})"
    if isinstance(a, atoms.Min):
        return f"min({a.left}, {a.right})"
    assert isinstance(a, atoms.Loaded)
    return f"{a.buffer}[{', '.join(map(str, a.index))}]"
