"""Do two terms have the same value? Evaluated on random inputs: the check behind every rule and every checked step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lithify.arith import Expr, Variable, as_expr
from lithify.evaluate import evaluate
from lithify.evaluate.sizes import size_variables
from lithify.lang.build import param
from lithify.lang.errors import LithifyError
from lithify.lang.scalars import Kind, Scalar
from lithify.lang.term import BOUND, Term, rebuild, subterms
from lithify.lang.types import Array, Function, Index, Tuple, Type, sizes_in

Sizes = dict[Variable, int]
_LARGEST_WORK = 10_000_000


class TooLarge(LithifyError):
    """A term cannot be evaluated in reasonable time to check a step; derive at a small size instead."""


def difference(before: Term, after: Term, seed: int = 0, sizes: dict[str, int] | None = None) -> str | None:
    """None if both terms give the same values on random inputs, else what differs. Open terms are allowed.

    Integers are compared exactly; floating point, computed in float64, up to the rounding of reassociation. Symbolic
    sizes are given small values. Raises TooLarge when the evaluation would take minutes.
    """
    before, after = _closed(before), _closed(after)
    work = max(_work(before), _work(after))
    if work > _LARGEST_WORK:
        raise TooLarge(
            f"values before and after each step cannot be compared at this size: {work:.0e} operations, at most "
            f"{_LARGEST_WORK:.0e} are evaluated",
            hint="give smaller arguments, of lengths like 16; `lithify check --values` shortens them by itself",
        )
    rng = np.random.default_rng(seed)
    chosen = _small_sizes(size_variables(before) | size_variables(after), rng)
    by_name = {v.name: n for v, n in chosen.items()} | (sizes or {})
    values: dict[str, Any] = {}
    for t in (before, after):
        for u in subterms(t):
            if u.kind == "param" and u.attrs[0] not in values:
                values[u.attrs[0]] = random_value(u.attrs[1], rng, chosen)
    results = []
    for t in (before, after):
        inputs = {name: value for name, value in values.items() if name in t.parameters}
        results.append(evaluate(t, inputs, sizes=by_name))
    return _compare(results[0], results[1])


def _closed(term: Term) -> Term:
    """Dangling variables become parameters."""

    def leaf(t: Term, d: int) -> Term | None:
        if t.open_depth <= d:
            return t
        return param(f"_free{t.attrs[0] - d}", t.attrs[1]) if t.pattern.name == BOUND else None

    return rebuild(term, leaf)


def _work(t: Term) -> float:
    """About how many operations an evaluation takes."""
    found = _works.get(t)
    if found is None:
        found = float(_elements(t.type)) if t.pattern.layout else 1.0
        for a in t.args:
            times = 1.0
            if isinstance(a.type, Function) and t.kind in ("map", "reduce", "scan", "generate", "pipe"):
                source = t.type if t.kind == "generate" else t.args[-1].type
                times = float(source.size.constant or 1) if isinstance(source, Array) else 1.0
            elif isinstance(a.type, Function) and t.kind == "iterate":
                times = float(t.attrs[0].constant or 1)
            found += times * _work(a)
        _works[t] = found
    return found


# Terms before and after a step, and those of the next step, share most of their parts.
_works: WeakKeyDictionary[Term, float] = WeakKeyDictionary()


def _elements(type_: Type) -> int:
    return math.prod(size.constant or 1 for size in sizes_in(type_)) if not isinstance(type_, Tuple) else 1


def _small_sizes(variables: Iterable[Variable], rng: np.random.Generator) -> Sizes:
    return {v: max(int(v.lo), 0) + int(rng.integers(0, 6)) for v in sorted(variables, key=lambda v: v.name)}


def random_value(type_: Type, rng: np.random.Generator, sizes: Sizes | None = None) -> Any:
    """A random value of the type: small whole numbers, so that sums and products are exact in floating point."""
    return _random(type_, rng, sizes or {}, ())


def _random(type_: Type, rng: np.random.Generator, sizes: Sizes, shape: tuple[int, ...]) -> Any:
    if isinstance(type_, Array) and isinstance(type_.element, Index) and type_.element.size is type_.size:
        n = _value(type_.size, sizes)  # what permutes may be needed, and does as well as any other indices
        return np.broadcast_to(rng.permutation(n), (*shape, n))
    if isinstance(type_, Array):
        return _random(type_.element, rng, sizes, (*shape, _value(type_.size, sizes)))
    if isinstance(type_, Tuple):
        return tuple(_random(item, rng, sizes, shape) for item in type_.items)
    if isinstance(type_, Index):
        return rng.integers(0, max(1, _value(type_.size, sizes)), shape)
    assert isinstance(type_, Scalar), f"no values of type {type_}"
    if type_.kind is Kind.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if type_.kind is Kind.UNSIGNED else -3
    return np.asarray(rng.integers(low, 4, shape)).astype(type_.dtype)


def _value(size: Expr, sizes: Sizes) -> int:
    value = size.substitute({v: as_expr(n) for v, n in sizes.items()}).constant
    assert value is not None, f"{size} is not determined"
    return int(value)


def _compare(a: Any, b: Any) -> str | None:
    if isinstance(a, tuple):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            wrong = _compare(x, y)
            if wrong is not None:
                return f"component {i}: {wrong}"
        return None
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape} differ"
    if a.dtype.kind in "fc":
        same = np.isclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
    else:
        same = a == b
    if np.all(same):
        return None
    place = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    return f"at {list(place)}: {a[place]} before, {b[place]} after"
