"""The evaluator against the plain definitions, on random terms over integers (which are exact in both)."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.evaluate import evaluate, evaluator
from lithify.lang.scalars import bool_
from lithify.lang.term import contains
from lithify.lang.types import Array, Index, Tuple, Type
from tests.evaluate import plain
from tests.evaluate.random_terms import Grower, random_type


def random_value(r: Random, type_: Type, shape: tuple[int, ...] = ()) -> Any:
    """A random input of the type, as the evaluator takes it."""
    if isinstance(type_, Tuple):
        return tuple(random_value(r, item, shape) for item in type_.items)
    if isinstance(type_, Array):
        return random_value(r, type_.element, (*shape, type_.size.constant or 0))
    rng = np.random.default_rng(r.randrange(2**32))
    if isinstance(type_, Index):
        return rng.integers(0, type_.size.constant or 1, shape)
    low, high = (0, 2) if type_ is bool_ else (0 if str(type_).startswith("u") else -5, 6)
    return np.asarray(rng.integers(low, high, shape)).astype(type_.dtype)


def agree(seed: int, depth: int) -> None:
    """Both give the same value for the random term of the seed, in both arithmetics."""
    r = Random(seed)
    grower = Grower(r)
    term = grower.grow(random_type(r), depth)
    inputs = {name: random_value(r, type_) for name, type_ in grower.inputs.items()}
    lists = {name: plain.as_lists(value, grower.inputs[name]) for name, value in inputs.items()}
    expected = plain.run(term, lists, {})
    for exact in (True, False):
        assert plain.as_lists(evaluate(term, inputs, exact=exact), term.type) == expected


@settings(max_examples=1500)
@given(seed=st.integers(0, 2**40))
def test_small_terms(seed: int) -> None:
    agree(seed, 3)


@settings(max_examples=400)
@given(seed=st.integers(0, 2**40))
def test_larger_terms(seed: int) -> None:
    agree(seed, 5)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**40), limit=st.integers(1, 8))
def test_in_pieces(seed: int, limit: int) -> None:
    """Maps that run in pieces, because their bodies would hold too much at once, give the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "LARGEST_BATCH", limit)
        agree(seed, 4)


def test_the_terms_cover_the_language() -> None:
    """Every pattern that the generator knows occurs often, so that the properties above say something."""
    counts: dict[str, int] = {}
    for seed in range(2500):
        term = Grower(Random(seed)).grow(random_type(Random(seed + 1)), 4)
        for kind in plain_patterns():
            counts[kind] = counts.get(kind, 0) + contains(term, lambda t, kind=kind: t.kind == kind)
    rare = {kind for kind, count in counts.items() if count < 20}
    assert not rare, rare


def plain_patterns() -> set[str]:
    from lithify.lang.patterns import PATTERNS

    return set(PATTERNS) - {"instr", "launch", "swz"}
