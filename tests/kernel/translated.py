"""Translates a lowered term, runs it with every check of the kernel evaluator, and compares with what it means."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.passes import PIPELINE
from lithify.kernel.translate import translate
from lithify.lang.build import const, map_, param
from lithify.lang.errors import Rejected
from lithify.lang.levels import SEQ, Level, Memory
from lithify.lang.scalars import Scalar, f32
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Index, Tuple, Type

ZERO = const(0.0, f32)


def L(text: str) -> Level:
    return Level.parse(text)


def M(text: str) -> Memory:
    return Memory.parse(text)


def parameters_of(term: Term) -> list[Term]:
    """The free variables, by name."""
    found = {t["name"]: t for t in subterms(term) if t.kind == "param"}
    return [found[name] for name in sorted(found)]


def random_value(type_: Type, rng: np.random.Generator) -> Any:
    shape: list[int] = []
    while isinstance(type_, Array):
        assert type_.size.constant is not None
        shape.append(type_.size.constant)
        type_ = type_.element
    if isinstance(type_, Tuple):
        return tuple(random_value(_in_arrays(shape, item), rng) for item in type_.items)
    if isinstance(type_, Index):
        assert type_.size.constant is not None
        return rng.integers(0, type_.size.constant, shape).astype(np.int32)
    assert isinstance(type_, Scalar)
    values = rng.integers(-4, 5, shape)
    return (values % 2 == 0) if type_.dtype == np.bool_ else values.astype(type_.dtype)


def _in_arrays(shape: list[int], type_: Type) -> Type:
    for size in reversed(shape):
        type_ = Array(size, type_)
    return type_


def flat(value: Any) -> list[Any]:
    """The arrays of a value, as they are stored."""
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, tuple) else [value]


def check(term: Term, *, seed: int = 0, device: Any = None, passes: Any = PIPELINE, **values: Any) -> ir.Program:
    """The program of a term, after comparing what it computes with what the term means."""
    parameters = parameters_of(term)
    program = translate(term, parameters, device=device, passes=passes)
    rng = np.random.default_rng(seed)
    given = {p["name"]: values[p["name"]] if p["name"] in values else random_value(p.type, rng) for p in parameters}
    expected = flat(evaluate(term, given))
    leaves = [leaf for p in parameters for leaf in flat(given[p["name"]])]
    inputs = {b.name: leaf for b, leaf in zip(program.parameters, leaves, strict=True)}
    results = run(program, inputs, seed=seed)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, np.asarray(wanted, dtype=result.dtype), rtol=1e-9)
    return program


def rejected(term: Term, pattern: str, *, device: Any = None) -> Rejected:
    """The error of a term that must be refused, after comparing its text with a pattern."""
    with pytest.raises(Rejected) as caught:
        translate(term, parameters_of(term), device=device)
    error = caught.value
    assert re.search(pattern, str(error), re.DOTALL), str(error)
    assert error.where, "the error names no place"
    return error


def vector(name: str, size: int, element: Type = f32) -> Term:
    return param(name, Array(size, element))


def matrix(name: str, rows: int, columns: int, element: Type = f32) -> Term:
    return param(name, Array(rows, Array(columns, element)))


def copied(xs: Term, *levels: Level) -> Term:
    """A copy with a level for each dimension."""
    level, *rest = levels or (SEQ,)
    return map_((lambda e: copied(e, *rest)) if rest else (lambda e: e), xs, level)
