"""Programs used inside other programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.lang.errors import LaunchError, LithifyError, TypeMismatch, UnboundSize

n, m, k, part = lf.sizes("n m k part")
XS = np.arange(8, dtype=np.float32)

TEXT = """
scal a xs = map (* a) xs
asum = reduce (+) 0 . map abs
parts (xs : n.f32) = map (reduce (+) 0) (split part xs)
inner (xs : n.f32) (ys : n.f32) = reduce (+) 0 (map (*) (zip xs ys))
share (xs : n.f32) = map (/ n) xs
powers a = (a, a * a)
three = 3
"""
texts = lf.parse(TEXT, "texts.lift")


@lf.program
def inner(xs: lf.Array[n, lf.f32], ys: lf.Array[n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
    return lf.sum(xs * ys)


@lf.program
def matmul(a: lf.Array[m, k, lf.f32], b: lf.Array[k, n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
    return a >> lf.map(lambda row: b >> lf.transpose >> lf.map(lambda column: inner(row, column)))


def test_a_product_of_matrices_by_a_program_for_rows() -> None:
    """The sizes of `inner` are others than those of the same names in `matmul`; it was called by itself before."""
    assert [inner(XS, XS), inner(XS, XS)] == [140, 140]
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(matmul(a, b), a @ b)
    assert str(matmul.types()[1]) == "m.n.f32"
    assert str(matmul.term(a, b)) == "map (λx. map (λx1. reduce (+) 0 (map (*) (zip x x1))) (transpose b)) a"


@lf.program
def share(xs: lf.Array[n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
    return xs >> lf.map(lambda x: x / n)


@lf.program
def parts(xs: lf.Array[n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
    return xs >> lf.split(part) >> lf.map(lf.sum)


@lf.program
def each(f: Any, xs: lf.Array[n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
    return lf.map(f, xs)


@lf.program
def kept(i: lf.Index[n], xs: lf.Array[n, lf.f32]) -> lf.f32:  # type: ignore
    return xs[i]


# a program of xs : 8.f32 that uses others, and the text that means the same
SAME: list[tuple[Callable[..., Any], str]] = [
    (lambda xs: inner(xs, xs), "sum (map (*) (zip xs xs))"),
    (lambda xs: inner(ys=xs, xs=lf.reverse(xs)), "sum (map (*) (zip (reverse xs) xs))"),
    (lambda xs: inner(xs, [1, 2, 3, 4, 5, 6, 7, 8]), "sum (map (*) (zip xs [1, 2, 3, 4, 5, 6, 7, 8]))"),
    (lambda xs: inner(xs, XS), "sum (map (*) (zip xs [0, 1, 2, 3, 4, 5, 6, 7]))"),
    (lambda xs: inner(xs, 2), "sum (map (*) (zip xs (replicate 8 (2 : f32))))"),
    (lambda xs: texts["scal"](2, xs), "map (* 2) xs"),
    (lambda xs: texts["scal"](a=2.5, xs=xs), "map (* 2.5) xs"),
    (lambda xs: xs >> texts["asum"], "sum (map abs xs)"),
    (lambda xs: xs >> lf.split(4) >> lf.map(texts["asum"]), "map (λ x . sum (map abs x)) (split 4 xs)"),
    (lambda xs: xs >> (lf.split(4) >> lf.map(texts["asum"])), "map (λ x . sum (map abs x)) (split 4 xs)"),
    (lambda xs: texts["parts"](xs, sizes={"part": 4}), "map sum (split 4 xs)"),
    (lambda xs: parts(xs, sizes={"part": 4}), "map sum (split 4 xs)"),
    (lambda xs: texts["share"](xs[:2]), "map (/ 2) (take 2 xs)"),
    (lambda xs: share(xs[:2]), "map (/ 2) (take 2 xs)"),
    (lambda xs: texts["powers"](xs[1]), "(xs[1], xs[1] * xs[1])"),
    (lambda xs: lf.library("blas")["dot"](xs, xs), "sum (map (*) (zip xs xs))"),
    (lambda xs: each(lambda x: x + 1, xs), "map (+ 1) xs"),
    (lambda xs: kept(3, xs), "xs[3]"),
    (lambda xs: lf.generate(8, lambda i: kept(i, xs)), "generate 8 (λ i . xs[i])"),
]


@pytest.mark.parametrize(("function", "text"), SAME, ids=[text for _, text in SAME])
def test_a_use_is_what_it_stands_for(function: Callable[..., Any], text: str) -> None:
    assert lf.program(function).term(XS) is lf.parse(f"p xs = {text}")["p"].term(XS)


def _using(used: lf.Program) -> Callable[..., Any]:
    return lambda xs: used(xs)


def test_sizes_that_nothing_here_binds_are_those_of_the_user() -> None:
    for used in (parts, texts["parts"]):
        program = lf.program(_using(used))
        np.testing.assert_array_equal(program(XS, sizes={"part": 2}), XS.reshape(4, 2).sum(1))
        with pytest.raises(UnboundSize, match="the size is not known: part"):
            program(XS)


def test_sizes_in_functions_that_are_arguments_are_those_of_where_they_are_written() -> None:
    @lf.program
    def outer(ys: lf.Array[n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
        return each(lambda y: y / n, ys[:2])

    np.testing.assert_array_equal(outer(XS), XS[:2] / 8)


def test_a_program_without_parameters() -> None:
    np.testing.assert_array_equal(lf.program(lambda xs: lf.add(xs, texts["three"]))(XS), XS + 3)


def test_programs_are_computed_by_the_program_that_uses_them() -> None:
    """Whatever device they are on."""
    used = texts["asum"].on("c")
    assert lf.program(lambda xs: used(xs)).on("cpu")(XS) == 28


@lf.program
def endless(xs: lf.Array[n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
    return endless(xs)


@lf.program
def mixed(xs):  # type: ignore[no-untyped-def]
    return xs[0] + lf.sum(lf.map(lf.f64, xs))


HERE = r"at \S*test_uses.py, line \d+, in <lambda>"
WRONG: list[tuple[Callable[..., Any], type[LithifyError], str]] = [
    (lambda xs: inner(xs, xs[:4]), TypeMismatch,
     r"two values of size n: 8 \(xs : 8.f32\) and 4 \(ys : 4.f32\)\nin the use of `inner` " + HERE),
    (lambda xs: texts["inner"](xs, xs[:4]), TypeMismatch,
     r"two values of size n: 8 .*\ntexts.lift, line 5, column 26:\n(.*\n)*in the use of `inner` " + HERE),
    (lambda xs: lf.library("blas")["dot"](xs, xs[:3]), TypeMismatch,
     rf"different lengths: 8 and 3\nin the use of `dot` {HERE}\nwhich does not fit at \S*blas.lift, line"),
    (lambda xs: mixed(xs), TypeMismatch,
     rf"different types: f32 and f64\n\S*test_uses.py, line \d+, in mixed\nin the use of `mixed` {HERE}"),
    (lambda xs: endless(xs), TypeMismatch, "endless uses itself: recursion is not possible"),
    (lambda xs: inner(xs), LaunchError, "inner: no value is given for ys"),
    (lambda xs: inner(xs, xs, xs), LaunchError, "inner: 3 arguments are given"),
    (lambda xs: texts["asum"](xs, xs), LaunchError, "asum: 2 arguments are given"),
    (lambda xs: inner(xs, zs=xs), LaunchError, "inner has no parameter zs"),
    (lambda xs: inner(xs, xs, out=XS), LaunchError, "there is no array to fill"),
    (lambda xs: inner(xs, lf.map(lf.f64, xs)), TypeMismatch, r"n.f32 expected, 8.f64 given|f32 expected, f64 given"),
    (lambda xs: texts["parts"](xs, sizes={"oart": 4}), TypeMismatch, "`parts` has no size oart"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "message"), WRONG, ids=[message for *_, message in WRONG])
def test_errors_show_the_use(function: Callable[..., Any], kind: type[LithifyError], message: str) -> None:
    with pytest.raises(kind, match=message) as raised:
        lf.program(function).term(XS)
    assert "test_uses.py, line" in str(raised.value)


def test_numpys_arrays_are_given_whole() -> None:
    """`array >> f` is f of the array, not of each of its numbers."""
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(lf.program(lambda xs: rows >> lf.map(lambda row: lf.sum(row) + xs[0]))(XS), [3, 12])
