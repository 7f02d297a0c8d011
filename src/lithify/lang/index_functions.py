"""Index functions: position in the view -> position below, for `reindex` (with a declared inverse) and for `pad`; and
formulas of several indices, for indices that are computed.

They are built over canonical variables (one an extent), so that equal functions are equal objects and terms that hold
them hash alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from lithify.arith import Expr, Variable, as_expr, const, maximum, minimum, proves, var
from lithify.lang.assumptions import OpenCondition, is_assumed, never_divides
from lithify.lang.errors import TypeMismatch


@cache
def canonical_variable(extent: Expr) -> Expr:
    """The one index variable in [0, extent) in which index functions are written (constant 0 for extents 0 and 1)."""
    return const(0) if extent.constant == 0 else var("i", extent)


@dataclass(frozen=True, slots=True)
class IndexFunction:
    """A map from view positions [0, extent) to positions [0, source) below it.

    `forward` is a formula over `canonical_variable(extent)`. `inverse`, a formula over `canonical_variable(source)`, is
    declared for bijections only; without it the view cannot be written through. `name` is its notation ("reverse",
    "stride 4").
    """

    name: str
    extent: Expr
    source: Expr
    forward: Expr
    inverse: Expr | None = None

    def __str__(self) -> str:
        return self.name

    def at(self, position: Expr) -> Expr:
        """The source position read at a view position."""
        return _substitute(self.forward, self.extent, position)

    def back(self, position: Expr) -> Expr:
        """The view position that shows a source position; only for functions with a declared inverse."""
        assert self.inverse is not None, f"{self.name} has no declared inverse"
        return _substitute(self.inverse, self.source, position)

    def inverted(self) -> IndexFunction:
        """The inverse as an index function of its own."""
        assert self.inverse is not None, f"{self.name} has no declared inverse"
        name = self.name[8:] if self.name.startswith("inverse ") else f"inverse {self.name}"
        return IndexFunction(name, self.source, self.extent, self.inverse, self.forward)


@cache
def operand_variable(position: int, extent: Expr) -> Expr:
    """The one variable in [0, extent) that stands for an operand of a formula (constant 0 for extents 0 and 1).

    Raises TypeMismatch for an extent that is surely negative.
    """
    if proves(-extent - 1):
        raise TypeMismatch(f"an index below {extent}: an array has no negative length")
    return const(0) if extent.constant == 0 else var(f"i{position}", extent)


@dataclass(frozen=True, slots=True)
class IndexFormula:
    """An index that is computed from others, which are below the extents: an expression over `operand_variable`s."""

    expression: Expr
    extents: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.expression} for {', '.join(map(str, self.extents))}"

    def of(self, operands: Sequence[Expr]) -> Expr:
        """The expression for operands that are expressions themselves."""
        values = {}
        for k, (extent, operand) in enumerate(zip(self.extents, operands, strict=True)):
            variable = operand_variable(k, extent)
            if variable.constant is None:
                values[variable] = operand
        return self.expression.substitute(values)


def _substitute(formula: Expr, extent: Expr, position: Expr) -> Expr:
    (variable,) = canonical_variable(extent).variables() or (None,)
    return formula if variable is None else formula.substitute({variable: position})


def index_function(
    name: str,
    extent: Expr | int,
    source: Expr | int,
    forward: Callable[[Expr], Expr],
    inverse: Callable[[Expr], Expr] | None = None,
) -> IndexFunction:
    """Declare an index function; refuses one that provably can leave [0, source).

    Raises TypeMismatch when the range of `forward` is not provably inside the source (or of `inverse` inside the view).
    """
    extent, source = as_expr(extent), as_expr(source)
    there = as_expr(forward(canonical_variable(extent)))
    back = None if inverse is None else as_expr(inverse(canonical_variable(source)))
    for formula, limit in ((there, source), (back, extent)):
        if formula is not None and not (proves(formula) and proves(limit - 1 - formula)) and extent.constant != 0:
            raise TypeMismatch(f"index function {name}: {formula} is not provably within [0, {limit})")
    return IndexFunction(name, extent, source, there, back)


def reverse(n: Expr | int) -> IndexFunction:
    """i -> n - 1 - i."""
    n = as_expr(n)
    return index_function("reverse", n, n, lambda i: n - 1 - i, lambda i: n - 1 - i)


def stride(s: Expr | int, n: Expr | int) -> IndexFunction:
    """Lift's `reorder (stride s)`: i -> i div (n/s) + s (i mod (n/s)); s must divide n.

    Consecutive view positions are s apart below, so n/s of them make one pass.
    """
    s, n = as_expr(s), as_expr(n)
    from lithify.arith import proves_divisible

    if not proves_divisible(n, s):
        message, condition = f"reorder (stride {s}) needs {s} to divide the length {n}", f"{s} divides {n}"
        if never_divides(s, n):
            raise TypeMismatch(message)
        if not is_assumed(condition):
            raise OpenCondition(message, [condition])
        i = canonical_variable(n)
        return IndexFunction(f"stride {s}", n, n, i, None)  # which only stands for it while types are looked at
    m = n // s if n.constant != 0 else const(1)
    return index_function(
        f"stride {s}", n, n, lambda i: i // m + s * (i % m), lambda i: i // s + m * (i % s)
    )  # the inverse of stride s is stride n/s


def variables_of(function: IndexFunction | IndexFormula) -> frozenset[Variable]:
    """The size variables that the function depends on."""
    if isinstance(function, IndexFormula):
        operands = [operand_variable(k, extent).variables() for k, extent in enumerate(function.extents)]
        sizes = [extent.variables() for extent in function.extents]
        return function.expression.variables().union(*sizes) - frozenset().union(*operands)
    own = canonical_variable(function.extent).variables() | canonical_variable(function.source).variables()
    return (function.forward.variables() | function.extent.variables() | function.source.variables()) - own


def padding_source(mode: str, i: Expr, n: Expr, left: Expr, right: Expr) -> Expr:
    """The element of n that stands at position i of a padded array, -left <= i < n + right (where n is 0, no i)."""
    if mode == "fill":
        return i
    if mode == "clamp":
        return minimum(maximum(i, 0), n - 1)
    if mode == "wrap":
        return i % maximum(n, 1)
    if proves(n - left) and proves(n - right):  # at most one reflection at each end
        inner = maximum(i, -1 - i)
        return minimum(inner, 2 * n - 1 - inner)
    inner = i % (2 * maximum(n, 1))
    return minimum(inner, 2 * n - 1 - inner)
