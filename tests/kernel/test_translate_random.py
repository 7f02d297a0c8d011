"""Random programs, lowered without any thought (all intermediate arrays in memory), compared with what they mean."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.lang.build import generate, let, map_, proj, to, tuple_
from lithify.lang.errors import LithifyError
from lithify.lang.levels import OUT, PAR, PRIVATE, SEQ, UNROLL, VEC, Level
from lithify.lang.term import Term, apply, lambda_
from lithify.lang.types import Array, Tuple, Type
from tests.generators import Terms
from tests.kernel.translated import check


def has_array(type_: Type) -> bool:
    return isinstance(type_, Array) or (isinstance(type_, Tuple) and any(map(has_array, type_.items)))


class Naive:
    """Lowers a term: arrays are computed into private memory where they stand, by loops at random levels."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lanes = 0

    def level(self) -> Level:
        return self.rng.choice((SEQ, SEQ, UNROLL) if self.lanes else (SEQ, UNROLL, VEC))

    def under(self, level: Level, function: Term) -> Term:
        """A map's function with its body written, below a loop at the level."""
        self.lanes += level == VEC
        body = self.written(function.args[0])
        self.lanes -= level == VEC
        return lambda_(function.attrs[0], body)

    def written(self, t: Term) -> Term:
        """A nest that writes the value."""
        return self.copy(self.read(t))

    def copy(self, value: Term) -> Term:
        if isinstance(value.type, Array):
            level = self.level()
            self.lanes += level == VEC
            result = map_(self.copy, value, level)
            self.lanes -= level == VEC
            return result
        if isinstance(value.type, Tuple) and has_array(value.type):
            return let(value, lambda v: tuple_(*[self.copy(proj(k, v)) for k in range(len(v.type.items))]))  # type: ignore[attr-defined]
        return value

    def kept(self, t: Term) -> Term:
        return to(PRIVATE, t)

    def read(self, t: Term) -> Term:
        """A term for the same value that can be read."""
        handler = getattr(self, f"_{t.kind}", None)
        if handler is not None:
            return handler(t)  # type: ignore[no-any-return]
        if t.kind == "lambda":
            raise AssertionError("a function is read by its pattern")
        return t.with_args(tuple([self.read(a) for a in t.args])) if t.args else t

    def _map(self, t: Term) -> Term:
        level = self.level()
        function, xs = t.args
        return self.kept(t.with_args((self.under(level, function), self.read(xs))).replace(level=level))

    def _generate(self, t: Term) -> Term:
        level = self.level()
        indices = generate(t["size"], lambda i: i)
        return self.kept(map_(self.under(level, t.args[0]), indices, level))

    def _let(self, t: Term) -> Term:
        value, function = t.args
        return t.with_args((self.kept(self.written(value)) if has_array(value.type) else self.read(value),
                            lambda_(function.attrs[0], self.read(function.args[0]))))  # fmt: skip

    def step(self, function: Term, in_place: bool) -> Term:
        """λacc x. the new accumulator, by way of other memory where it is an array updated in place."""
        inner = function.args[0]
        body = inner.args[0]
        new = self.read(body)
        if has_array(body.type):
            new = let(self.kept(self.copy(new)), self.copy) if in_place else self.copy(new)
        return lambda_(function.attrs[0], lambda_(inner.attrs[0], new))

    def sequence(self) -> Level:
        return self.rng.choice((SEQ, UNROLL))

    def _reduce(self, t: Term) -> Term:
        function, initial, xs = t.args
        start = self.written(initial) if has_array(initial.type) else self.read(initial)
        return t.with_args((self.step(function, True), start, self.read(xs))).replace(level=self.sequence())

    def _scan(self, t: Term) -> Term:
        function, initial, xs = t.args
        arrays = has_array(initial.type)
        start = self.read(initial)
        lowered = t.with_args((self.step(function, False), start, self.read(xs)))
        return self.kept(lowered.replace(level=self.sequence(), memory=OUT if arrays else None))

    def _iterate(self, t: Term) -> Term:
        function, value = t.args
        for _ in range(t["count"].constant):
            value = apply(function, value)
        return self.read(value)

    def _scatter(self, t: Term) -> Term:
        ids, xs = t.args
        level = self.rng.choice((SEQ, UNROLL))
        return self.kept(t.with_args((self.read(ids), map_(self.copy, self.read(xs), level))))


def lowered(term: Term, rng: random.Random) -> Term:
    return Naive(rng).written(term)


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    terms = Terms(rng)
    try:
        term = terms.term(terms.type(), depth=3)
    except LithifyError:  # a random type for which the source has nothing
        return
    check(lowered(term, rng), seed=seed)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_in_threads(seed: int) -> None:
    rng = random.Random(seed)
    terms = Terms(rng)
    rows = terms.term(Array(rng.choice((1, 2, 5)), terms.type(1)), depth=3)
    naive = Naive(rng)
    check(map_(naive.copy, naive.read(rows), PAR), seed=seed)
