"""A program that is called again and again gives what it gives when it is called for the first time."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lithify as lf
from lithify.lang.errors import LithifyError
from lithify.program.program import Program
from lithify.targets.base import never
from lithify.targets.cpu import native_call

TEXT = """
scal = λ a xs . map (λ x . x * a) xs
both = λ a xs . (map (λ x . x * a) xs, map (λ x . x + a) xs)
"""
ARRAYS: list[Any] = [np.arange(1, 5, dtype=t) for t in ("f4", "f8", "i4")] + [
    np.arange(1, 7, dtype="f4"),
    np.arange(1, 9, dtype="f4")[::2],
    np.arange(1, 5, dtype=">f4"),
    [1.0, 2.0],
]
NUMBERS: list[Any] = [2, 2.5, True, np.float32(2.5), np.float64(2.5), np.int32(2), np.asarray(2.5, "f4"), None]
CASES = [(a, x) for a in range(len(NUMBERS)) for x in range(len(ARRAYS))]


def outcome(program: Program, case: tuple[int, int]) -> tuple[Any, ...]:
    try:
        result = program(NUMBERS[case[0]], ARRAYS[case[1]])
    except LithifyError as error:
        return type(error), str(error)
    return tuple([(type(r), r.dtype, r.tobytes()) for r in (result if isinstance(result, tuple) else (result,))])


@cache
def expected(name: str, case: tuple[int, int]) -> tuple[Any, ...]:
    """What a program that was never called before does."""
    return outcome(lf.parse(TEXT)[name], case)


@pytest.mark.parametrize("name", ["scal", "both"])
def test_the_order_of_calls_does_not_matter(name: str) -> None:
    """Types of arguments follow one another in any order, each often enough to be called quickly."""
    shared = lf.parse(TEXT)[name]

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(CASES), st.integers(1, 4)), min_size=1, max_size=12))
    def agree(calls: list[tuple[tuple[int, int], int]]) -> None:
        for case, times in calls:
            for _ in range(times):
                assert outcome(shared, case) == expected(name, case)

    agree()


@pytest.mark.skipif(native_call._native() is None, reason="plain calls go through Python here")
def test_plain_calls_are_quick() -> None:
    program, x = lf.parse(TEXT)["scal"], np.ones(4, np.float32)
    for _ in range(3):
        program(2.0, x)
    quick = program._quick
    assert quick is not never
    np.testing.assert_array_equal(quick((3.0, x), None), [3, 3, 3, 3])
    for other in ((3, x), (np.float32(3), x), (3.0, x[:3]), (3.0, x.astype(float)), (3.0,), (3.0, x, x)):
        assert quick(other, None) is NotImplemented
    out = np.zeros(4, np.float32)
    assert program(3.0, x, out=out) is out
    np.testing.assert_array_equal(out, [3, 3, 3, 3])


def test_names_and_sizes_are_heeded() -> None:
    program, x = lf.parse(TEXT)["scal"], np.ones(4, np.float32)
    for _ in range(3):
        program(2.0, x)
        np.testing.assert_array_equal(program(xs=x, a=3.0), [3, 3, 3, 3])
        with pytest.raises(LithifyError, match="no parameter b"):
            program(2.0, b=x)
