"""The widest vector access along a dim, and the integer width that an index needs: questions to the normal form.

The view is read at ``w j + lane``. An address whose coefficient of the lane is 1 is contiguous; conditions without
the lane need no mask; the alignment is the gcd of the other coefficients with that of the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from lithify.arith import Expr, as_expr, ceil_div, proves_divisible, var
from lithify.views.errors import ViewError
from lithify.views.view import View


@dataclass(frozen=True, slots=True)
class VectorWidth:
    """A vector access: so many elements at once, and what its first element's position is known to be divisible by.

    `alignment` is in elements and at most that of the base; a width of 1 means that scalars are read.
    """

    width: int
    alignment: int


@dataclass(frozen=True, slots=True)
class VectorWidths:
    """The widest access whose elements are all real or all padding, and the widest under a mask."""

    unmasked: VectorWidth
    masked: VectorWidth


def vector_widths(
    view: View,
    dim: str,
    cap: int,
    *,
    base_alignment: int = 1 << 30,
    aligned: bool = False,
    strides: Sequence[Expr | int] | None = None,
    at: Mapping[str, Expr | int] | None = None,
) -> VectorWidths:
    """The widest accesses of a power of two of elements along an upper dim, up to `cap` elements.

    `base_alignment` is in elements; `aligned` says that the device takes only accesses aligned to their width;
    `strides` are those of the lower dims (dense, the last dim fastest, by default); `at` holds other upper dims at
    known coordinates. A width that does not divide the dim's size needs a mask.
    """
    sizes = {d.name: d.size for d in view.upper}
    if dim not in sizes:
        raise ViewError(f"no upper dim {dim!r} in {list(sizes)}")
    if cap < 1 or base_alignment < 1:
        raise ViewError(f"a cap of {cap} elements and a base alignment of {base_alignment}: both are at least 1")
    strides = view.strides() if strides is None else strides
    scalar = VectorWidth(1, _alignment(view.access(at).address(strides), base_alignment))
    unmasked = masked = scalar
    width = 2
    while width <= cap:
        lane = var("lane", width)
        position = width * var("vector", ceil_div(sizes[dim], width)) + lane
        access = view.access({**(at or {}), dim: position})
        address = access.address(strides)
        if address.coefficient(lane) == 1:
            alignment = _alignment(address - lane, base_alignment)
            if not aligned or alignment % width == 0:
                conditions = [uniform(c, lane, width) for c in access.conditions]
                whole = proves_divisible(sizes[dim], width)
                masked = VectorWidth(width, alignment)
                if whole and not any(c.coefficient(lane) != 0 for c in conditions):
                    unmasked = masked
        width *= 2
    return VectorWidths(unmasked, masked)


def _alignment(address: Expr, base: int) -> int:
    return gcd(address.alignment, base)


def uniform(condition: Expr, lane: Expr, width: int) -> Expr:
    """The condition in a form without the lane where all lanes of a vector agree on it, else as it is.

    c >= 0 if and only if floor(c / width) >= 0, and where the rest of c is a multiple of the width, the floor has
    lost the lane.
    """
    if condition.coefficient(lane) == 0:
        return condition
    whole = condition // width
    return whole if whole.coefficient(lane) == 0 else condition


def index_bits(forms: Iterable[Expr | int]) -> int:
    """32 where every value and every partial sum of the forms, in any order, provably fits in 32 bits signed, else 64.

    What the forms are made of (numerators of floors, operands of minima) is looked at too.
    """
    seen: set[Expr] = set()
    stack = [as_expr(e) for e in forms]
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        low: float = min(0, e.offset)
        high: float = max(0, e.offset)
        for m, k in e.terms:
            term = as_expr(k)
            for atom in m:
                term = term * atom.expr
                stack += atom.operands()
            low, high = low + min(0, term.lo), high + max(0, term.hi)
        if low < -(2**31) or high > 2**31 - 1:
            return 64
    return 32
