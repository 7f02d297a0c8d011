"""Random programs without levels and memories: every pattern of the language, lengths 0 and 1, tuples, nesting.

`tests.generators.Terms` grows what rewrite rules are tried on; here the rest of the language is added: windows, all
kinds of padding, gathers, permutations, lets, iterations, scans and reductions whose accumulators are arrays or tuples.
Values stay exact (integers that wrap, floats that are small integers), so results compare to the last bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from lithify.lang.build import (
    array_literal,
    at,
    const,
    gather,
    iterate,
    join,
    let,
    map_,
    op,
    pad,
    pad_mode,
    proj,
    reduce_,
    scan,
    scatter,
    select,
    slide,
    tuple_,
    unzip,
    zip_,
)
from lithify.lang.scalars import Scalar, f32, i32
from lithify.lang.term import Term
from lithify.lang.types import Array, Index, Tuple, Type
from tests.generators import COMPOSE, Terms

EXACT_ON_FLOATS = ("add", "sub", "max", "min")


class Programs(Terms):
    """A source of random programs over i32 or f32."""

    def __init__(self, rng: random.Random, scalar: Scalar | None = None) -> None:
        super().__init__(rng, scalar or rng.choice((i32, i32, f32)))

    def program(self, depth: int = 4) -> Term:
        """A closed term: usually an array, sometimes a scalar or a tuple of both."""
        type_ = self.type(self.rng.choice((0, 1, 1, 2, 2, 3)))
        if self.rng.random() < 0.15:
            type_ = Tuple(type_, self.type(self.rng.choice((0, 1))))
        return self.term(type_, depth=depth)

    def combine(self, a: Term, b: Term) -> Term:
        if self.scalar is f32:  # products would leave the floats that are exact, and sums of infinities depend on order
            return op(self.rng.choice(EXACT_ON_FLOATS), a, b)
        return super().combine(a, b)

    def term(self, type_: Type, scope: Sequence[Term] = (), depth: int = 2) -> Term:
        if depth > 0 and self.rng.random() < 0.25:
            found = self._anywhere(type_, scope, depth - 1)
            if found is not None:
                return found
        return super().term(type_, scope, depth)

    def _anywhere(self, type_: Type, scope: Sequence[Term], depth: int) -> Term | None:
        """What may have any type: lets, elements, projections, folds of values, iterations."""
        if isinstance(type_, Index):
            return None
        choice = self.rng.randrange(6)
        if choice == 0:
            value = self.term(self.value_type(), scope, depth)
            return let(value, lambda x: self.term(type_, (x, x, *scope), depth))
        if choice == 1:
            n = self.size(1, 5)
            xs = self.term(Array(n, type_), scope, depth)
            return at(xs, self.rng.randrange(n))
        if choice == 2:
            return proj(0, self.term(Tuple(type_, self.scalar), scope, depth))
        if choice == 3:
            return iterate(
                self.rng.choice((0, 1, 2, 3)), lambda x: self.step(x, scope, depth), self.term(type_, scope, depth)
            )
        start = self.term(type_, scope, depth)
        xs = self.rows(self.size(), scope, depth)
        return reduce_(lambda a, x: self.fold(a, (x, *scope), depth), start, xs)

    def step(self, value: Term, scope: Sequence[Term], depth: int) -> Term:
        """A value of the same type made of a value."""
        type_ = value.type
        if isinstance(type_, Tuple):
            return tuple_(*[self.step(proj(k, value), (value, *scope), depth) for k in range(len(type_.items))])
        if isinstance(type_, Array):
            if self.rng.random() < 0.3:
                return self.term(type_, (value, value, *scope), depth)
            return map_(lambda x: self.step(x, (value, *scope), depth - 1), value)
        return self.combine(value, self.term(type_, scope, min(depth, 1)))

    def fold(self, accumulator: Term, scope: Sequence[Term], depth: int) -> Term:
        """A new accumulator."""
        type_ = accumulator.type
        if type_ is Tuple(self.scalar, self.scalar) and self.scalar is i32 and self.rng.random() < 0.3:
            return op(COMPOSE[i32], accumulator, self.term(type_, scope, depth))
        return self.step(accumulator, scope, depth)

    def _scalar(self, type_: Type, scope: Sequence[Term], depth: int) -> Term:
        if type_ is self.scalar and self.rng.random() < 0.2:
            less = op("lt", self.term(type_, scope, depth - 1), self.term(type_, scope, depth - 1))
            return select(less, self.term(type_, scope, depth - 1), self.term(type_, scope, depth - 1))
        return super()._scalar(type_, scope, depth)

    def _array(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        if self.rng.random() < 0.5:
            return super()._array(type_, scope, depth)
        n, element = type_.size.constant, type_.element
        assert n is not None
        makers: list[Callable[[], Term]] = [lambda: self._scanned(type_, scope, depth)]
        if n:
            makers.append(lambda: self._padded(type_, scope, depth))
            makers.append(lambda: self._gathered(type_, scope, depth))
            makers.append(lambda: scatter("permutation", self.permutation(n), self.term(type_, scope, depth - 1)))
            makers.append(lambda: array_literal(*[self.term(element, scope, depth - 1) for _ in range(n)]))
            makers.append(lambda: self._joined(type_, scope, depth))
        if n and isinstance(element, Array) and element.size.constant:
            makers.append(lambda: self._windows(type_, element, scope, depth))
            makers.append(lambda: self._windows(type_, element, scope, depth))
        if isinstance(element, Scalar):
            makers.append(lambda: self._stencil(type_, scope, depth))
            makers.append(lambda: self._unzipped(type_, scope, depth))
        return self.rng.choice(makers)()

    def _scanned(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        start = self.term(type_.element, scope, depth - 1)
        return scan(lambda a, x: self.fold(a, (x, *scope), depth - 1), start, self.rows(type_.size, scope, depth - 1))

    def _padded(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        n = int(type_.size.constant or 0)
        inner = self.rng.randint(1, n)
        left = self.rng.randint(0, n - inner)
        xs = self.term(Array(inner, type_.element), scope, depth - 1)
        mode = self.rng.choice(("fill", "clamp", "mirror", "wrap"))
        if mode == "fill":
            return pad(left, n - inner - left, self.term(type_.element, scope, depth - 1), xs)
        return pad_mode(mode, left, n - inner - left, xs)

    def _gathered(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        length = self.size(1, 5)
        n = int(type_.size.constant or 0)
        ids = array_literal(*[const(self.rng.randrange(length), Index(length)) for _ in range(n)])
        if self.rng.random() < 0.3:
            ids = self.input(Array(n, Index(length)))
        return gather(ids, self.term(Array(length, type_.element), scope, depth - 1))

    def _joined(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        n = int(type_.size.constant or 0)
        rows = self.rng.choice([d for d in range(1, n + 1) if n % d == 0])
        return join(self.term(Array(rows, Array(n // rows, type_.element)), scope, depth - 1))

    def _windows(self, type_: Array, element: Array, scope: Sequence[Term], depth: int) -> Term:
        step = self.rng.choice((1, 1, 2, 3))
        n, width = int(type_.size.constant or 0), int(element.size.constant or 0)
        return slide(width, step, self.term(Array((n - 1) * step + width, element.element), scope, depth - 1))

    def _stencil(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        n, width = int(type_.size.constant or 0), self.rng.choice((1, 2, 3))
        xs = self.term(Array(n + width - 1, type_.element), scope, depth - 1)
        return map_(lambda w: self.using(w, type_.element, scope, depth - 1), slide(width, 1, xs))

    def _unzipped(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        pairs = self.term(Array(type_.size, Tuple(self.scalar, self.scalar)), scope, depth - 1)
        both = unzip(pairs)
        if self.rng.random() < 0.5:
            return proj(self.rng.randrange(2), both)
        return let(both, lambda p: map_(lambda q: self.combine(proj(0, q), proj(1, q)), zip_(proj(1, p), proj(0, p))))


class LongPrograms(Programs):
    """Programs over longer arrays, for blocks, vectors and threads; on integers, for sums of floats would round."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, i32)

    def size(self, least: int = 0, most: int = 7) -> int:
        sizes = (1, 2, 3, 4, 8, 16, 17, 33, 64, 96, 130, 300)
        return self.rng.choice([n for n in sizes if least <= n <= (sizes[-1] if most == 7 else most)])
