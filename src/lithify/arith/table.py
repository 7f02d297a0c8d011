"""Where expressions are interned: one table for each index variable, one for everything made of sizes only.

An expression lives in the table of the newest index variable that occurs in it, and so do the answers that were
computed about it. When nobody refers to an index variable any more, its table goes with it: a search that makes
millions of fresh variables does not grow for ever.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lithify.arith.atoms import Atom
    from lithify.arith.expr import Expr, Terms

_serial = count(1)


class Table:
    """The expressions whose newest index variable is the owner, with what is known about them."""

    __slots__ = ("atoms", "exprs", "proofs", "quotients", "serial")

    def __init__(self, serial: int) -> None:
        self.serial = serial  # the owner's place in the order of creation; 0 where there is no owner
        self.exprs: dict[tuple[int, Terms], Expr] = {}
        self.atoms: dict[tuple[Any, ...], Atom] = {}
        self.quotients: dict[tuple[Expr, Expr | int], Expr] = {}
        self.proofs: dict[tuple[Expr, tuple[Expr, ...]], bool] = {}


SIZES = Table(0)


def fresh() -> Table:
    """The table of a new index variable."""
    return Table(next(_serial))
