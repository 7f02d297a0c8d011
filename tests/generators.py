"""Random well-typed terms of the language, small and full of corner cases: lengths 0 and 1, primes, tuples, nesting.

`Terms` draws from a `random.Random`; `well_typed` is a hypothesis strategy made of it, whose failing terms shrink.

    terms = Terms(random.Random(3))
    t = terms.term(terms.type(dims=2))      # an array of arrays; inputs are free variables
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from lithify.arith import Expr
from lithify.lang.build import (
    add,
    array_literal,
    concat,
    const,
    convert,
    drop,
    generate,
    join,
    map_,
    mul,
    op,
    param,
    proj,
    reduce_,
    reindex,
    replicate,
    scan,
    select,
    split,
    take,
    transpose,
    tuple_,
    zip_,
)
from lithify.lang.index_functions import IndexFunction, index_function, reverse, stride
from lithify.lang.operators import Operator, Typing
from lithify.lang.scalars import Scalar, f32, i32
from lithify.lang.term import Term, abstract
from lithify.lang.types import Array, Index, Tuple, Type

SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7)
OPERATORS = ("add", "mul", "sub", "max", "min")
ASSOCIATIVE = ("add", "mul", "max", "min")


def _compose(scalar: Scalar) -> Operator:
    """The composition of x -> a x + b, as pairs: associative, with a neutral element, not commutative."""
    pair = Tuple(scalar, scalar)

    def both(p: Term, q: Term) -> Term:
        (a, b), (c, d) = (proj(0, p), proj(1, p)), (proj(0, q), proj(1, q))
        return tuple_(mul(a, c), add(mul(a, d), b))

    return Operator(
        "compose",
        2,
        Typing.DEFINED,
        associative=True,
        definition=abstract(pair, lambda p: abstract(pair, lambda q: both(p, q))),
        neutral_term=tuple_(const(1, scalar), const(0, scalar)),
    )


def _crooked(scalar: Scalar) -> Operator:
    """a + b + 2 a² b²: commutative, with a neutral element, not associative."""

    def body(a: Term, b: Term) -> Term:
        product = mul(a, b)
        return add(add(a, b), mul(const(2, scalar), mul(product, product)))

    return Operator(
        "crooked",
        2,
        Typing.DEFINED,
        commutative=True,
        definition=abstract(scalar, lambda a: abstract(scalar, lambda b: body(a, b))),
        neutral_term=const(0, scalar),
    )


COMPOSE = {scalar: _compose(scalar) for scalar in (i32, f32)}
CROOKED = {scalar: _crooked(scalar) for scalar in (i32, f32)}


class Terms:
    """A source of random types and terms over one scalar type.

    `atom` is what arrays are made of: the scalar, or sometimes a pair or a short array of it.
    """

    def __init__(self, rng: random.Random, scalar: Scalar | None = None, atoms: bool = True) -> None:
        self.rng = rng
        self.scalar = scalar or rng.choice((i32, f32))
        self.atom: Type = self.scalar
        if atoms and rng.random() < 0.3:
            self.atom = rng.choice((Tuple(self.scalar, self.scalar), Array(2, self.scalar)))
        self.inputs = 0

    # -- sizes and types

    def size(self, least: int = 0, most: int = 7) -> int:
        """A small length, often 0, 1 or prime."""
        return self.rng.choice([n for n in SIZES if least <= n <= most])

    def type(self, dims: int | None = None) -> Type:
        """Arrays over the atom, `dims` of them (up to 2 if not given)."""
        result = self.atom
        for _ in range(self.rng.choice((0, 0, 1, 1, 2)) if dims is None else dims):
            result = Array(self.size(), result)
        return result

    def value_type(self) -> Type:
        """A type of small values: the scalar, the atom, a pair or an array."""
        return self.rng.choice(
            (self.scalar, self.atom, self.atom, Tuple(self.atom, self.scalar), Array(self.size(), self.scalar))
        )

    # -- leaves

    def input(self, type_: Type) -> Term:
        """A new free variable."""
        self.inputs += 1
        return param(f"x{self.inputs}", type_)

    def constant(self, type_: Type) -> Term:
        """A constant of a scalar or non-empty index type; spread over arrays and tuples."""
        if isinstance(type_, Array):
            return replicate(type_.size, self.constant(type_.element))
        if isinstance(type_, Tuple):
            return tuple_(*[self.constant(item) for item in type_.items])
        if isinstance(type_, Index):
            assert type_.size.constant
            return const(self.rng.randrange(int(type_.size.constant)), type_)
        return const(self.rng.randint(-2, 3), type_)

    def permutation(self, n: int) -> Term:
        """An array literal of the indices below n >= 1, each once."""
        order = list(range(n))
        self.rng.shuffle(order)
        return array_literal(*[const(i, Index(n)) for i in order])

    def index_function(self, n: int) -> IndexFunction:
        """A reordering of n elements with a declared inverse; not all are their own inverse."""
        rotated = index_function("rotate", n, n, lambda i: (i + 1) % n, lambda i: (i + n - 1) % n) if n else reverse(n)
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        return self.rng.choice([reverse(n), rotated, *[stride(d, n) for d in divisors]])

    # -- terms

    def term(self, type_: Type, scope: Sequence[Term] = (), depth: int = 2) -> Term:
        """A term of the type. It may use the terms of `scope` (bound variables, say), and often does."""
        if scope and self.rng.random() < 0.75:
            return self.using(self.rng.choice(list(scope)), type_, scope, depth)
        if depth <= 0 or self.rng.random() < 0.25:
            if isinstance(type_, Index):
                return self.constant(type_)
            return self.input(type_) if self.rng.random() < 0.7 else self.constant(type_)
        if isinstance(type_, Tuple):
            return tuple_(*[self.term(item, scope, depth - 1) for item in type_.items])
        if isinstance(type_, Array):
            return self._array(type_, scope, depth)
        return self._scalar(type_, scope, depth)

    def using(self, used: Term, type_: Type, scope: Sequence[Term], depth: int) -> Term:
        """A term of the type that reads `used`."""
        given = used.type
        if given is type_:
            if depth > 0 and isinstance(type_, Scalar) and self.rng.random() < 0.5:
                return self.combine(used, self.term(type_, scope, depth - 1))
            return used
        if isinstance(given, Tuple):
            return self.using(proj(self.rng.randrange(len(given.items)), used), type_, scope, depth)
        if isinstance(type_, Tuple):
            return tuple_(*[self.using(used, item, scope, depth - 1) for item in type_.items])
        if isinstance(type_, Array):
            if isinstance(given, Array) and given.size is type_.size:
                return map_(lambda x: self.using(x, element_of(type_), scope, depth - 1), used)
            if depth <= 0 or self.rng.random() < 0.3:
                return replicate(type_.size, self.using(used, type_.element, scope, depth - 1))
            xs = self.input(Array(type_.size, self.atom))
            return map_(lambda x: self.using(used, element_of(type_), (x, *scope), depth - 1), xs)
        if isinstance(given, Array):
            if type_ is self.scalar:
                start = self.constant(type_)
                return reduce_(lambda a, x: self.combine(a, self.using(x, type_, scope, depth - 1)), start, used)
            return self.constant(type_)
        if isinstance(given, Index) and isinstance(type_, Scalar):
            return convert(type_, used)
        return self.constant(type_)

    def combine(self, a: Term, b: Term) -> Term:
        """Two scalars combined."""
        return op(self.rng.choice(OPERATORS), a, b)

    def _scalar(self, type_: Type, scope: Sequence[Term], depth: int) -> Term:
        if isinstance(type_, Index):
            return self.constant(type_)
        choice = self.rng.randrange(4)
        if choice == 0:
            xs = self.term(Array(self.size(), self.atom), scope, depth - 1)
            return self.using(xs, type_, scope, depth - 1)
        if choice == 1:
            condition = op("lt", self.term(type_, scope, depth - 1), self.constant(type_))
            return select(condition, self.term(type_, scope, depth - 1), self.term(type_, scope, depth - 1))
        return self.combine(self.term(type_, scope, depth - 1), self.term(type_, scope, depth - 1))

    def _array(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        n, element = type_.size, type_.element
        views: list[Callable[[], Term]] = [
            lambda: map_(lambda x: self.term(element, (x, *scope), depth - 1), self.rows(n, scope, depth - 1)),
            lambda: replicate(n, self.term(element, scope, depth - 1)),
            lambda: take(n, self.term(Array(n + self.rng.randrange(3), element), scope, depth - 1)),
            lambda: reindex(reverse(n), self.term(type_, scope, depth - 1)),
            lambda: self._dropped(type_, scope, depth),
            lambda: generate(n, lambda i: self.term(element, (i, *scope), depth - 1)),
        ]
        if isinstance(element, Tuple) and len(element.items) == 2:
            views.append(lambda: zip_(*[self.term(Array(n, i), scope, depth - 1) for i in element.items]))
        if isinstance(element, Array) and element.size.constant and n.constant:
            views.append(lambda: transpose(self.term(Array(element.size, Array(n, element.element)), scope, depth - 1)))
            views.append(
                lambda: split(element.size, self.term(Array(n * element.size, element.element), scope, depth - 1))
            )
        if n.constant and n.constant > 1:
            views.append(lambda: self._concatenated(type_, scope, depth))
            views.append(lambda: join(self.term(Array(n, Array(1, element)), scope, depth - 1)))
        if isinstance(element, Scalar):
            views.append(
                lambda: scan(
                    lambda a, x: self.combine(a, x), self.constant(element), self.term(type_, scope, depth - 1)
                )
            )
        return self.rng.choice(views)()

    def rows(self, n: Expr | int, scope: Sequence[Term] = (), depth: int = 1) -> Term:
        """Some array of length n."""
        return self.term(Array(n, self.value_type()), scope, depth)

    def _dropped(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        k = self.rng.randrange(3)
        return drop(k, self.term(Array(type_.size + k, type_.element), scope, depth - 1))

    def _concatenated(self, type_: Array, scope: Sequence[Term], depth: int) -> Term:
        k = self.rng.randrange(int(type_.size.constant or 0) + 1)
        parts = [Array(k, type_.element), Array(type_.size - k, type_.element)]
        return concat(*[self.term(part, scope, depth - 1) for part in parts])

    # -- functions

    def function(self, parameters: Sequence[Type], result: Type, scope: Sequence[Term] = (), depth: int = 2) -> Term:
        """`λx y .. body` with parameters of the types."""
        if not parameters:
            return self.term(result, scope, depth)
        first, *rest = parameters
        return abstract(first, lambda x: self.function(rest, result, (*scope, x), depth))

    def combining(self, type_: Type) -> Term:
        """A combining function t -> t -> t with declared algebra: an operator, by component on tuples and arrays.

        Most are associative and commutative; some lack one of the two (see COMPOSE, CROOKED).
        """
        return abstract(type_, lambda a: abstract(type_, lambda b: self._componentwise(a, b)))

    def _componentwise(self, a: Term, b: Term) -> Term:
        if isinstance(a.type, Tuple):
            if a.type.items == (self.scalar, self.scalar) and self.rng.random() < 0.4:
                return op(COMPOSE[self.scalar], a, b)
            parts = [self._componentwise(proj(i, a), proj(i, b)) for i in range(len(a.type.items))]
            return tuple_(*parts)
        if isinstance(a.type, Array):
            return map_(lambda p: self._componentwise(proj(0, p), proj(1, p)), zip_(a, b))
        return op(CROOKED[self.scalar] if self.rng.random() < 0.1 else self.rng.choice(ASSOCIATIVE), a, b)


def well_typed(dims: int | None = None, depth: int = 4) -> st.SearchStrategy[Term]:
    """Random closed terms, as a hypothesis strategy."""

    def make(rng: random.Random) -> Term:
        source = Terms(rng)
        return source.term(source.type(dims), depth=depth)

    return st.randoms(use_true_random=False).map(make)


def element_of(type_: Type) -> Type:
    """The element type of an array type."""
    assert isinstance(type_, Array)
    return type_.element
