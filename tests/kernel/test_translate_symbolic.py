"""Kernels for any size: one translation, run at many sizes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lithify.arith import ceil_div, size
from lithify.evaluate import evaluate
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.passes import PIPELINE
from lithify.kernel.passes.formulas import formulas, minima
from lithify.kernel.translate import translate
from lithify.kernel.walk import statements
from lithify.lang.build import (
    add,
    join,
    launch,
    map_,
    mul,
    pad,
    pad_mode,
    param,
    proj,
    reduce_,
    scan,
    slide,
    split,
    take,
    transpose,
    zip_,
)
from lithify.lang.levels import PAR, SEQ, UNROLL, VEC
from lithify.lang.module import read_text
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import Array, Type, array
from lithify.lowering import lower
from lithify.machine import GENERIC_CPU
from tests.kernel.translated import ZERO, L, flat, parameters_of, random_value, rejected

N, K = size("n"), size("k")
X = param("x", Array(N, f32))
MATRIX = param("m", Array(N, Array(K, f32)))
LENGTHS = (1, 2, 7, 8, 9, 16, 64, 65)


def concrete(type_: Type, sizes: dict[str, int]) -> Type:
    if isinstance(type_, Array):
        length = type_.size.evaluate({v: sizes[v.name] for v in type_.size.variables()})
        return Array(int(length), concrete(type_.element, sizes))
    return type_


def check(term: Term, *, passes: Any = PIPELINE, **lengths: tuple[int, ...]) -> ir.Program:
    """Compare one translated program with the term at several sizes (the n-th of each together)."""
    parameters = parameters_of(term)
    program = translate(term, parameters, passes=passes)
    assert {v.name for v in program.sizes} == set(lengths)
    for each in zip(*lengths.values(), strict=True):
        sizes = dict(zip(lengths, each, strict=True))
        rng = np.random.default_rng(1)
        given = {p["name"]: random_value(concrete(p.type, sizes), rng) for p in parameters}
        leaves = [leaf for p in parameters for leaf in flat(given[p["name"]])]
        inputs = {b.name: leaf for b, leaf in zip(program.parameters, leaves, strict=True)}
        results = run(program, inputs, sizes=sizes)
        for result, wanted in zip(results, flat(evaluate(term, given, sizes=sizes)), strict=True):
            np.testing.assert_allclose(result, wanted)
    return program


def blocks(width: int, x: Term = X) -> Term:
    """x in blocks of a width, with copies of the last element where it ends."""
    return split(width, pad_mode("clamp", 0, ceil_div(N, width) * width - N, x))


@pytest.mark.parametrize("level", [SEQ, PAR, L("global0")], ids=str)
def test_maps(level: Any) -> None:
    check(map_(lambda e: mul(e, e), X, level), n=LENGTHS)
    check(map_(lambda r: reduce_(add, ZERO, r, SEQ), MATRIX, level), n=(1, 3, 70), k=(1, 5, 3))


def test_a_launch_of_any_size() -> None:
    check(launch((4,), (8,), map_(lambda e: mul(e, e), X, L("global0"))), n=LENGTHS)
    rejected(map_(lambda e: e, X, L("item0")), "must be a constant number")


@pytest.mark.parametrize("outer", [SEQ, PAR], ids=str)
def test_the_full_blocks_of_a_vector_have_no_mask(outer: Any) -> None:
    """Behind a test in each iteration of a loop over threads, else in a loop of their own."""
    squares = take(N, join(map_(lambda b: map_(lambda e: mul(e, e), b, VEC), blocks(8), outer)))
    program = check(squares, n=LENGTHS)
    full = [s for s in statements(program.kernels[0].body) if isinstance(s, ir.If if outer == PAR else ir.Loop)]
    assert len(full) == (1 if outer == PAR else 2)
    assert not any(is_condition or list(minima(f)) for f, is_condition in formulas(full[0].body))
    check(squares, n=LENGTHS, passes=())


def test_what_whole_blocks_leave_over_is_a_loop_of_its_own() -> None:
    filled = pad(0, ceil_div(N, 4) * 4 - N, ZERO, X)
    sums = map_(lambda c: reduce_(add, ZERO, c, SEQ), transpose(split(4, filled)), L("item0"))
    program = check(sums, n=LENGTHS)
    first, rest = [s for s in statements(program.kernels[0].body) if isinstance(s, ir.Loop)]
    assert not any(is_condition for _, is_condition in formulas(first.body))
    assert any(is_condition for _, is_condition in formulas(rest.body))


def test_blocks_of_a_group() -> None:
    check(take(N, join(map_(lambda b: map_(lambda e: mul(e, e), b, L("item0")), blocks(8), L("group0")))), n=LENGTHS)


def test_reductions() -> None:
    check(reduce_(add, ZERO, X, SEQ), n=LENGTHS)
    check(scan(add, ZERO, X, SEQ), n=LENGTHS)
    padded = split(8, pad(0, ceil_div(N, 8) * 8 - N, ZERO, X))
    check(reduce_(add, ZERO, map_(lambda r: r, join(padded)), SEQ), n=LENGTHS)
    lanes = reduce_(
        lambda acc, v: map_(lambda p: add(proj(0, p), proj(1, p)), zip_(acc, v), VEC),
        map_(lambda _: ZERO, take(8, param("z", Array(8, f32))), VEC),
        padded,
        SEQ,
    )
    check(reduce_(add, ZERO, lanes, SEQ), n=LENGTHS)


@pytest.mark.parametrize("mode", ["clamp", "mirror", "wrap", "fill"])
@pytest.mark.parametrize("outer", [SEQ, PAR], ids=str)
def test_stencils(mode: str, outer: Any) -> None:
    padded = pad(1, 1, ZERO, X) if mode == "fill" else pad_mode(mode, 1, 1, X)
    windows = slide(3, 1, padded)
    check(map_(lambda w: reduce_(add, ZERO, w, UNROLL), windows, outer), n=LENGTHS)
    nested = map_(
        lambda r: map_(lambda w: reduce_(add, ZERO, w, UNROLL), slide(3, 1, pad(1, 1, ZERO, r)), SEQ),
        transpose(MATRIX),
        outer,
    )
    check(nested, n=(1, 2, 9), k=(3, 1, 4))


@pytest.mark.parametrize("mode", ["clamp", "fill"])
def test_stencils_in_vectors(mode: str) -> None:
    padded = pad(1, 1, ZERO, X) if mode == "fill" else pad_mode(mode, 1, 1, X)
    windows = slide(3, 1, padded)
    extra = ceil_div(N, 4) * 4 - N
    tiles = split(4, pad_mode("clamp", 0, extra, windows))
    total = map_(lambda t: map_(lambda w: reduce_(add, ZERO, w, UNROLL), t, VEC), tiles, PAR)
    check(take(N, join(total)), n=LENGTHS)


@pytest.mark.parametrize("levels", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "map[seq] (* 2) (join a)",
        "reduce[seq] (+) 0 (join a)",
        "scan[seq] (+) 0 (join (transpose a))",
        "map[seq] (* 2) (reverse (join a))",
        "map[seq] (* 2) (pad 1 1 0 (join a))",
        "map[seq] (λ w . w[0] + w[1]) (slide 2 1 (pad 0 1 0 (join a)))",
        "map[seq] (λ r . map[seq] (* 2) r) (split 1 (join a))",
        "map[seq] (* 3) (join (join (map (map (λ x . replicate 2 x)) a)))",
        "reduce[seq] (+) 0 (to[heap] (map[seq] (* 2) (join a)))",
    ],
)
def test_rows_of_any_length_joined_that_of_no_elements_included(text: str, levels: bool) -> None:
    written = text if levels else re.sub(r"\[(seq|heap)\]", "", text).replace("to (", "(")
    definition = read_text(f"p = λ (a : n.m.f32) . {written}")["p"]
    program = definition.elaborate([array(size("n", 0), size("m", 0), f32)])
    kernels = translate(lower(program.term, GENERIC_CPU, check=False).term, program.parameters, device=GENERIC_CPU)
    for shape in ((3, 4), (1, 1), (0, 0), (2, 0), (0, 3)):
        a = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
        (result,) = run(kernels, {"a": a})
        np.testing.assert_array_equal(result, evaluate(definition.elaborate([array(*shape, f32)]).term, {"a": a}))
