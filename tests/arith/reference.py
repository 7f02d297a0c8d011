"""Random expressions beside their values: every operation is done on the normal form and on NumPy arrays at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from lithify.arith import Expr, clamp, const, maximum, minimum, proves, size, var, xor

Array = np.ndarray


@dataclass(frozen=True)
class Space:
    """Variables with all their joint values: one array element for each point of the space."""

    names: tuple[Expr, ...]
    values: tuple[Array, ...] = field(repr=False)
    divisors: tuple[tuple[Expr | int, Array | int], ...] = field(repr=False)

    def environment(self) -> dict[Expr, Array]:
        return {v: a for v, a in zip(self.names, self.values, strict=True) if v.terms}

    @property
    def points(self) -> int:
        return self.values[0].size


def concrete_space(extents: tuple[int, ...]) -> Space:
    names = tuple(var("ijkl"[d], n) for d, n in enumerate(extents))
    grids = np.meshgrid(*[np.arange(n) for n in extents], indexing="ij")
    divisors = tuple((c, c) for c in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 64))
    return Space(names, tuple(g.ravel() for g in grids), divisors)


def symbolic_space() -> Space:
    """Sizes n, m >= 1 with i < n, j < m, p < n m, t < ceil(n / 4), r < 4, for all sizes up to a few."""
    n, m = size("n"), size("m")
    names = (n, m, var("i", n), var("j", m), var("p", n * m), var("t", (n + 3) // 4), var("r", 4))
    points = [
        (a, b, i, j, p, t, r)
        for a in (1, 2, 3, 5)
        for b in (1, 2, 4)
        for i in range(a)
        for j in range(b)
        for p in range(a * b)
        for t in range(-(-a // 4))
        for r in range(4)
    ]
    values = tuple(np.array(points).T)
    a, b = values[0], values[1]
    divisors = ((n, a), (m, b), (n * m, a * b), (2 * n, 2 * a), (4 * m, 4 * b), (n + 1, a + 1), (n + m, a + b),
                (2, 2), (3, 3), (4, 4), (8, 8), ((n + 3) // 4, -(-a // 4)))  # fmt: skip
    return Space(names, values, divisors)


@st.composite
def pairs(draw: st.DrawFn, space: Space, depth: int = 4) -> tuple[Expr, Array]:
    """A random expression over a space with its values at every point."""
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        if draw(st.integers(0, 3)) == 0:
            c = draw(st.integers(-9, 9))
            return const(c), np.full(space.points, c)
        which = draw(st.integers(0, len(space.names) - 1))
        return space.names[which], space.values[which]
    a, x = draw(pairs(space, depth - 1))
    kind = draw(st.integers(0, 10))
    if kind <= 1:
        c = draw(st.integers(-12, 12))
        return a * c, x * c
    if kind <= 5 and kind != 2:
        c, y = draw(st.sampled_from(space.divisors))
        return (a // c, x // y) if kind < 5 else (a % c, x % y)
    b, z = draw(pairs(space, depth - 1))
    if kind == 6:
        return a - b, x - z
    if kind == 7:
        return minimum(a, b), np.minimum(x, z)
    if kind == 8:
        return clamp(a, 0, maximum(b, 0)), np.minimum(np.maximum(x, 0), np.maximum(z, 0))
    if kind == 9 and proves(a) and proves(b):
        return xor(a, b), x ^ z
    if kind == 10 and len(a.terms) * len(b.terms) <= 4:
        return a * b, x * z
    return a + b, x + z
