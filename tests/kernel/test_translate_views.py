"""Layouts as readables and as acceptors: every view alone, every pair that fits, for reading and for writing."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from lithify.lang.build import (
    add,
    array_literal,
    at,
    concat,
    const,
    convert,
    drop,
    gather,
    generate,
    join,
    map_,
    mul,
    op,
    pad,
    pad_mode,
    param,
    proj,
    reindex,
    replicate,
    scatter,
    slide,
    split,
    swz,
    take,
    transpose,
    tuple_,
    unzip,
    zip_,
)
from lithify.lang.errors import TypeMismatch
from lithify.lang.index_functions import index_function, reverse, stride
from lithify.lang.levels import PAR, SEQ, UNROLL, VEC, Level
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import f32, f64, i32
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Index, shape_of
from tests.kernel.translated import ZERO, L, check, copied, matrix, rejected, vector

View = Callable[[Term], Term]


def filled(x: Term) -> Term:
    return pad(1, 2, const(7.0, f32), x)


READABLE: dict[str, View] = {
    "split": lambda x: split(3, x),
    "join": join,
    "transpose": transpose,
    "take": lambda x: take(4, x),
    "drop": lambda x: drop(2, x),
    "slide 3 1": lambda x: slide(3, 1, x),
    "slide 2 2": lambda x: slide(2, 2, x),
    "slide 2 3": lambda x: slide(2, 3, x),
    "fill": filled,
    "clamp": lambda x: pad_mode("clamp", 2, 1, x),
    "mirror": lambda x: pad_mode("mirror", 1, 2, x),
    "mirror far": lambda x: pad_mode("mirror", 13, 14, x),
    "wrap": lambda x: pad_mode("wrap", 2, 3, x),
    "concat": lambda x: concat(x, x, take(1, x)),
    "replicate": lambda x: replicate(2, x),
    "reverse": lambda x: reindex(reverse(x.type.size), x),  # type: ignore[attr-defined]
    "stride": lambda x: reindex(stride(3, x.type.size), x),  # type: ignore[attr-defined]
    "swz": lambda x: swz(32, x),
    "map reverse": lambda x: map_(lambda r: reindex(reverse(r.type.size), r), x),  # type: ignore[attr-defined]
    "map take": lambda x: map_(lambda r: take(2, r), x),
    "map fill": lambda x: map_(filled, x),
    "at": lambda x: at(x, 1),
    "zip": lambda x: map_(lambda p: proj(1, p), zip_(x, x)),
}
WRITABLE: dict[str, View] = {
    name: READABLE[name]
    for name in ("split", "join", "transpose", "take", "drop", "reverse", "stride", "swz", "map reverse", "map take")
} | {"concat": lambda x: concat(copied(take(3, vector("y", 5)), SEQ), x) if len(shape_of(x.type)[0]) == 1 else x}
NOT_WRITABLE = ("slide 3 1", "fill", "clamp", "wrap", "mirror", "replicate", "map fill")
SOURCES = {"vector": vector("x", 12), "matrix": matrix("x", 6, 8)}


def fitting(*views: View, source: Term) -> Term | None:
    """The views applied in turn, or None where the types do not fit."""
    try:
        for view in views:
            source = view(source)
    except (TypeMismatch, AttributeError, AssertionError):
        return None
    sizes, element = shape_of(source.type)
    return source if sizes and element is f32 else None


def whole_copy(x: Term) -> Term:
    return copied(x, *[SEQ] * len(shape_of(x.type)[0]))


def pairs(names: object) -> list[tuple[str, ...]]:
    names = list(names)  # type: ignore[call-overload]
    return [(a,) for a in names] + list(itertools.product(names, repeat=2))


@pytest.mark.parametrize("names", pairs(READABLE), ids=" . ".join)
@pytest.mark.parametrize("source", SOURCES)
def test_reading_through_views(names: tuple[str, ...], source: str) -> None:
    view = fitting(*[READABLE[n] for n in names], source=SOURCES[source])
    if view is not None:
        if all(map(has_whole_lines, subterms(view))):
            check(whole_copy(view))
        else:
            rejected(whole_copy(view), "whole lines")


def has_whole_lines(t: Term) -> bool:
    """swz needs rows of whole 32-byte lines."""
    if t.kind != "swz":
        return True
    sizes, _ = shape_of(t.type)
    return len(sizes) == 2 and sizes[1].constant is not None and sizes[1].constant % 8 == 0


@pytest.mark.parametrize("names", pairs(WRITABLE), ids=" . ".join)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("level", [SEQ, PAR], ids=str)
def test_writing_through_views(names: tuple[str, ...], source: str, level: Level) -> None:
    x = SOURCES[source]
    rest = [SEQ] * (len(shape_of(x.type)[0]) - 1)
    view = fitting(*[WRITABLE[n] for n in names], source=copied(x, level, *rest))
    if view is not None and all(map(has_whole_lines, subterms(view))):
        check(view)


@pytest.mark.parametrize("name", NOT_WRITABLE)
def test_views_without_inverse_are_not_written_through(name: str) -> None:
    view = fitting(READABLE[name], source=copied(SOURCES["matrix"], SEQ, SEQ))
    assert view is not None
    rejected(view, "no inverse|no level|computed|nobody has written")


def test_an_index_function_without_inverse_is_not_written_through() -> None:
    every_second = index_function("every second", 4, 8, lambda i: 2 * i)
    check(copied(reindex(every_second, vector("x", 8)), SEQ))
    rejected(reindex(every_second, copied(vector("x", 8), SEQ)), "no declared inverse")


@pytest.mark.parametrize("level", [SEQ, VEC, UNROLL, PAR, L("global0")], ids=str)
def test_results_side_by_side(level: Level) -> None:
    x, y = vector("x", 6), vector("y", 6)
    check(zip_(copied(x, level), copied(y, level)))
    check(tuple_(copied(x, level), copied(y, level)))
    check(concat(copied(x, level), copied(y, level)))
    check(unzip(map_(lambda e: tuple_(e, mul(e, e)), x, level)))
    check(map_(lambda e: tuple_(e, tuple_(add(e, e), ZERO)), x, level))
    check(array_literal(copied(x, level), copied(y, level)))
    check(map_(lambda p: tuple_(proj(1, p), proj(0, p)), zip_(x, y), level))


def test_arrays_of_tuples_of_arrays_are_stored_by_component() -> None:
    program = check(map_(lambda r: tuple_(copied(r, SEQ), at(r, 0)), matrix("x", 4, 3), SEQ))
    assert [str(b) for b in program.results] == ["out_0", "out_1"]
    assert [len(b.shape) for b in program.results] == [2, 1]


# ---- indices that buffers hold -------------------------------------------------------------------------------------

IDS = param("ids", Array(10, Index(12)))
X = vector("x", 12)


@pytest.mark.parametrize("level", [SEQ, UNROLL, VEC, PAR, L("global0")], ids=str)
def test_gather_and_element_access(level: Level) -> None:
    check(copied(gather(IDS, X), level))
    check(map_(lambda i: at(X, i), IDS, level))
    check(copied(gather(IDS, reindex(reverse(12), X)), level))
    check(map_(lambda i: convert(f32, i), IDS, level))
    check(map_(lambda i: at(at(split(4, X), 1), i), param("small", Array(5, Index(4))), level))
    check(copied(IDS, level))


def test_padded_indices() -> None:
    check(copied(pad(1, 2, const(3, Index(12)), IDS), SEQ))
    check(copied(gather(pad(1, 2, const(3, Index(12)), IDS), X), SEQ))
    check(copied(gather(concat(IDS, IDS), X), SEQ))
    check(map_(lambda p: at(proj(1, p), proj(0, p)), zip_(param("rows", Array(3, Index(4))), matrix("m", 3, 4)), SEQ))


@pytest.mark.parametrize("level", [SEQ, VEC, PAR, L("global0")], ids=str)
def test_conditions_on_indices_are_tested_where_these_can_be_read(level: Level) -> None:
    """The padding outside says where ids can be read; that inside, which of them mean an element of x."""
    inside = gather(IDS, pad(1, 1, const(7.0, f32), take(10, X)))
    check(copied(pad(2, 3, ZERO, inside), level))
    check(copied(concat(inside, inside), level))
    twice = param("twice", Array(6, Index(10)))
    check(copied(pad(1, 1, ZERO, gather(twice, inside)), level))


@pytest.mark.parametrize("level", [SEQ, PAR, L("global0")], ids=str)
def test_writes_to_indices_are_made_where_these_can_be_read(level: Level) -> None:
    ids = param("ids", Array(8, Index(8)))
    order = np.random.default_rng(3).permutation(8).astype(np.int32)
    check(take(5, scatter("permutation", ids, take(8, copied(vector("y", 11), level)))), ids=order)
    check(scatter("permutation", ids, drop(2, take(10, copied(vector("y", 11), level)))), ids=order)


def test_generated_indices() -> None:
    check(map_(lambda i: mul(convert(f32, i), at(X, i)), generate(12, lambda i: i), PAR))
    check(map_(lambda i: convert(i32, i), generate(9, lambda i: i), VEC))
    below = map_(lambda i: op("lt", convert(i32, i), const(4, i32)), generate(9, lambda i: i), SEQ)
    check(below)
    table = generate(4, lambda i: generate(3, lambda j: add(convert(f32, i), convert(f32, j))))
    check(copied(table, SEQ, SEQ))


def test_an_index_as_a_parameter() -> None:
    check(map_(lambda e: add(e, at(X, param("k", Index(12)))), X, SEQ))


@pytest.mark.parametrize("level", [SEQ, PAR, VEC, L("global0")], ids=str)
def test_scatter_by_a_permutation(level: Level) -> None:
    ids = param("ids", Array(12, Index(12)))
    order = np.random.default_rng(3).permutation(12).astype(np.int32)
    check(scatter("permutation", ids, map_(lambda e: mul(e, e), X, level)), ids=order)


@pytest.mark.parametrize("level", [SEQ, PAR, L("global0")], ids=str)
@pytest.mark.parametrize("operator", ["add", "max", "min"])
@pytest.mark.parametrize("scalar", [f32, f64, i32], ids=str)
def test_scatter_by_an_atomic_operator(level: Level, operator: str, scalar: object) -> None:
    values = param("x", Array(10, scalar))  # type: ignore[arg-type]
    ids = np.arange(10, dtype=np.int32) * 7 % 12  # every element once at most; the others stay neutral
    check(scatter(OPERATORS[operator], IDS, map_(lambda e: e, values, level)), ids=ids)
    check(scatter(OPERATORS["add"], IDS, map_(lambda e: e, values, level)))


def test_scatter_needs_an_operator_that_commutes() -> None:
    ten = vector("x", 10)
    rejected(scatter(OPERATORS["sub"], IDS, copied(ten, SEQ)), "associative and commutative")
    rejected(scatter(OPERATORS["add"], IDS, copied(ten, VEC)), "lanes of a vector cannot update")


def test_what_is_updated_updates_nothing_else_meanwhile() -> None:
    inner = scatter(OPERATORS["add"], IDS, copied(vector("x", 10), SEQ))
    rejected(scatter(OPERATORS["min"], param("js", Array(12, Index(4))), inner), "what is still being updated")
