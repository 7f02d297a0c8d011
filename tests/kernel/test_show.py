"""The text of kernels: a dozen programs as they stand, refreshed with `pytest --snapshot-update`."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from lithify.arith import ceil_div, size
from lithify.kernel.show import show
from lithify.kernel.translate import translate
from lithify.lang.build import (
    add,
    join,
    let,
    map_,
    mul,
    op,
    pad,
    pad_mode,
    param,
    proj,
    reduce_,
    replicate,
    scatter,
    select,
    slide,
    split,
    take,
    to,
    transpose,
    tuple_,
    zip_,
)
from lithify.lang.levels import HEAP, LOCAL, PAR, SEQ, UNROLL, VEC
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import Array, Index
from tests.kernel.tiles import matmul_by_groups
from tests.kernel.translated import ZERO, L, copied, matrix, parameters_of, vector

N = size("n")
GROUP, ITEM = L("group0"), L("item0")


def dot() -> Term:
    x, y = vector("x", 64), vector("y", 64)
    return reduce_(lambda s, p: add(s, mul(proj(0, p), proj(1, p))), ZERO, zip_(x, y), SEQ)


def blocked_scal() -> Term:
    blocks = split(8, pad_mode("clamp", 0, 3, vector("x", 37)))
    return take(37, join(map_(lambda b: map_(lambda e: mul(param("a", f32), e), b, VEC), blocks, PAR, "block")))


def vector_sum() -> Term:
    lanes = reduce_(
        lambda acc, v: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(acc, v), VEC),
        copied(replicate(8, ZERO), VEC),
        split(8, vector("x", 64)),
        SEQ,
    )
    return reduce_(add, ZERO, lanes, SEQ)


def argmax() -> Term:
    def larger(a: Term, x: Term) -> Term:
        keep = op("ge", proj(0, a), proj(0, x))
        return tuple_(select(keep, proj(0, a), proj(0, x)), select(keep, proj(1, a), proj(1, x)))

    return reduce_(larger, tuple_(ZERO, ZERO), zip_(vector("x", 9), vector("y", 9)), SEQ)


def three_point(mode: str) -> Term:
    x = vector("x", 20)
    padded = pad(1, 1, ZERO, x) if mode == "fill" else pad_mode(mode, 1, 1, x)
    return map_(lambda w: reduce_(add, ZERO, w, UNROLL), slide(3, 1, padded), SEQ)


def sum_in_two_kernels() -> Term:
    def tree(r: Term) -> Term:
        half = map_(lambda p: add(proj(0, p), proj(1, p)), zip_(take(4, r), take(4, r)), ITEM)
        return let(to(LOCAL, copied(r, ITEM)), lambda _: half)

    partial = to(HEAP, map_(tree, split(8, vector("x", 64)), GROUP))
    return let(partial, lambda p: map_(lambda r: reduce_(add, ZERO, r, SEQ), p, L("global0")))


def symbolic() -> Term:
    x = param("x", Array(N, f32))
    blocks = split(8, pad_mode("clamp", 0, ceil_div(N, 8) * 8 - N, x))
    return take(N, join(map_(lambda b: map_(lambda e: mul(e, e), b, VEC), blocks, PAR)))


def histogram() -> Term:
    ids = param("ids", Array(100, Index(5)))
    return scatter(OPERATORS["add"], ids, copied(vector("x", 100), L("global0")))


PROGRAMS = {
    "dot": dot(),
    "scal in blocks": blocked_scal(),
    "sum in lanes": vector_sum(),
    "argmax": argmax(),
    "three points, zero outside": three_point("fill"),
    "three points, clamped": three_point("clamp"),
    "transpose": transpose(map_(lambda r: copied(r, SEQ), matrix("x", 4, 6), PAR)),
    "two kernels": sum_in_two_kernels(),
    "symbolic": symbolic(),
    "histogram": histogram(),
    "matrix multiplication by groups": matmul_by_groups(16, 32, 12),
    "with tiles fetched ahead": matmul_by_groups(16, 32, 12, slots=3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_program(name: str, snapshot: SnapshotAssertion) -> None:
    term = PROGRAMS[name]
    assert show(translate(term, parameters_of(term))) == snapshot
