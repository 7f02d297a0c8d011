"""Elements that a combining function ignores: what is found is right, and what is needed is found."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lithify.lang.build import add, const, map_, mul, op, param, proj, reduce_, replicate, select, tuple_, zip_
from lithify.lang.scalars import f32, i32
from lithify.lang.term import Term, abstract, apply
from lithify.lang.types import Array, Tuple, Type
from lithify.rewrite import Context, difference
from lithify.rewrite.unaffected import ignored_element, ignores, simplify
from lithify.rules.reduction import pad_reduce
from tests.generators import Terms

PAIR = Tuple(f32, f32)
ROW = Array(4, f32)


def function(accumulator: Type, element: Type, body: Callable[[Term, Term], Term]) -> Term:
    return abstract(accumulator, lambda a: abstract(element, lambda x: body(a, x)))


FOUND = {
    "sum": function(f32, f32, add),
    "product": function(f32, f32, mul),
    "reciprocals of integers": function(i32, i32, lambda a, x: add(a, op("div", const(1, i32), x))),
    "sum of differences": function(f32, f32, lambda a, x: op("sub", a, op("abs", x))),
    "bits turned over": function(i32, i32, lambda a, x: op("xor", a, x)),
    "sum of complex products": function(
        PAIR,
        PAIR,
        lambda a, p: tuple_(
            op("sub", add(proj(0, a), mul(proj(0, p), proj(0, p))), mul(proj(1, p), proj(1, p))),
            add(proj(1, a), mul(proj(0, p), proj(1, p))),
        ),
    ),
    "largest": function(f32, f32, lambda a, x: op("max", a, x)),
    "sum of absolute values": function(f32, f32, lambda a, x: add(a, op("abs", x))),
    "dot product": function(f32, PAIR, lambda a, p: add(a, mul(proj(0, p), proj(1, p)))),
    "component by component": function(
        PAIR, PAIR, lambda a, p: tuple_(add(proj(0, a), proj(0, p)), op("max", proj(1, a), proj(1, p)))
    ),
    "rows": function(ROW, ROW, lambda a, x: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(a, x))),
    "outer product": function(
        ROW,
        Tuple(ROW, f32),
        lambda a, p: map_(lambda c: add(proj(0, c), mul(proj(1, c), proj(1, p))), zip_(a, proj(0, p))),
    ),
}
NOT_FOUND = {
    "sum of exponentials": function(f32, f32, lambda a, x: add(a, op("exp", x))),
    "Horner's scheme": function(f32, f32, lambda a, x: add(mul(a, const(2, f32)), x)),
    "the last element": function(f32, f32, lambda a, x: x),
    "reciprocals": function(f32, f32, lambda a, x: add(a, op("exp", op("div", const(1, f32), x)))),
    "counting": function(i32, f32, lambda a, x: add(a, const(1, i32))),
}


@pytest.mark.parametrize("name", FOUND)
def test_found_and_right(name: str) -> None:
    f = FOUND[name]
    element = ignored_element(f)
    assert element is not None
    accumulator = param("a", f.type.parameter)  # type: ignore[attr-defined]
    assert difference(apply(f, accumulator, element), accumulator) is None


@pytest.mark.parametrize("name", NOT_FOUND)
def test_not_found(name: str) -> None:
    assert ignored_element(NOT_FOUND[name]) is None


def test_zero_is_not_ignored_by_a_product() -> None:
    assert not ignores(FOUND["product"], const(0, f32))
    assert ignores(FOUND["product"], const(1, f32))
    assert not ignores(FOUND["sum"], const(0, i32))


@pytest.mark.parametrize("seed", range(300))
def test_simplification_keeps_the_value(seed: int) -> None:
    terms = Terms(random.Random(seed))
    term = terms.term(terms.type(), depth=5)
    assert difference(term, simplify(term)) is None


@pytest.mark.parametrize("seed", range(300))
def test_whatever_is_found_is_right(seed: int) -> None:
    terms = Terms(random.Random(seed))
    accumulator, element = terms.value_type(), terms.value_type()
    f = terms.function([accumulator, element], accumulator)
    found = ignored_element(f)
    if found is not None:
        a = terms.input(accumulator)
        assert difference(apply(f, a, found), a) is None


def test_conditions_are_folded() -> None:
    chosen = select(op("lt", const(1, f32), const(2, f32)), const(3, f32), const(4, f32))
    assert simplify(chosen) is const(3, f32)


def test_the_exact_policy_keeps_the_sign_of_zero() -> None:
    total = reduce_(lambda a, x: add(a, x), const(0, f32), param("xs", Array(3, f32)))
    assert "the policy is exact" in str(pad_reduce(2).explain(total, Context("exact")))
    whole = reduce_(lambda a, x: add(a, x), const(0, i32), replicate(3, param("x", i32)))
    assert pad_reduce(2).explain(whole, Context("exact")) is None
