"""Accumulators that lie in a result of which only a part is kept: refused, for what is dropped is read again."""

from __future__ import annotations

from typing import Any

import pytest

from lithify.lang.build import add, array_literal, at, const, drop, map_, reduce_, scan, scatter, split, take
from lithify.lang.levels import INLINE, OUT, SEQ, UNROLL, Level
from lithify.lang.types import Index
from tests.kernel.translated import check, copied, matrix, rejected, vector


@pytest.mark.parametrize("level", [SEQ, UNROLL])
@pytest.mark.parametrize(
    "part",
    [
        lambda xs: take(1, xs),
        lambda xs: drop(1, xs),
        lambda xs: take(1, scatter("permutation", array_literal(*[const(i, Index(3)) for i in (1, 0, 2)]), xs)),
    ],
)
def test_a_scan_in_a_result_of_which_a_part_is_kept(part: Any, level: Level) -> None:
    """The rows that are not kept are not stored, but the next is made from them."""
    value = scan(lambda acc, x: map_(lambda e: add(e, x), acc, SEQ), vector("a", 4), vector("b", 3), level, OUT)
    rejected(part(value), "only a part of it is kept")


@pytest.mark.parametrize("level", [SEQ, UNROLL])
def test_a_reduction_in_a_result_of_which_a_part_is_kept(level: Level) -> None:
    value = reduce_(
        lambda acc, x: map_(lambda e: add(add(e, x), at(acc, 0)), acc, SEQ),
        copied(vector("a", 4)),
        vector("b", 3),
        level,
        OUT,
    )
    rejected(drop(1, value), "only a part of it is kept")


def test_what_is_kept_whole_is_accumulated_in_place() -> None:
    value = scan(lambda acc, x: map_(lambda e: add(e, x), acc, SEQ), vector("a", 4), vector("b", 6), SEQ, OUT)
    check(value)
    check(split(2, value))
    check(
        map_(lambda row: scan(lambda a, x: copied(add_to(a, x)), vector("a", 4), row, SEQ, OUT), matrix("m", 3, 5), SEQ)
    )


def add_to(a: Any, x: Any) -> Any:
    return map_(lambda e: add(e, x), a, INLINE)
