"""What each pattern means: one function a pattern, from the values of its parts to its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lithify.evaluate import views
from lithify.evaluate.contraction import sum_of_products
from lithify.evaluate.numerics import convert, fold_of
from lithify.evaluate.values import Leaf, Value, concatenate, each, element, lift, stack, widen
from lithify.lang.build import constant_value
from lithify.lang.errors import EvaluationError
from lithify.lang.index_functions import IndexFormula, operand_variable
from lithify.lang.operators import OPERATORS, Operator
from lithify.lang.term import Term, dangling, lambda_
from lithify.lang.types import Array, Index

if TYPE_CHECKING:
    from lithify.evaluate.evaluator import Evaluator, Frame

Batch = tuple[int, ...]


# ---- leaves and scalars --------------------------------------------------------------------------------------------


def _param(ev: Evaluator, term: Term, _frame: Frame, batch: Batch) -> Value:
    return lift(ev.inputs[term.attrs[0]], 0, len(batch))


def _const(ev: Evaluator, term: Term, _frame: Frame, batch: Batch) -> Value:
    value = constant_value(term)
    if isinstance(term.type, Index):
        value, limit = ev.size(value), ev.size(term.type.size)
        if not 0 <= value < limit:
            raise EvaluationError(f"index {value} is outside {term.type}")
    return np.full((1,) * len(batch), value, ev.numerics.dtype(term.type))


def _op(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    operator: Operator = term.attrs[0]
    operands = [ev.eval(a, frame, batch) for a in term.args]
    if operator.definition is None:
        numbers = tuple([x for x in operands if isinstance(x, np.ndarray)])
        return ev.numerics.apply(operator, numbers, term.type)
    return ev.unfold(operator.definition, operands, batch)


def _index(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    formula: IndexFormula = term["formula"]
    values: dict[Any, Any] = dict(ev.sizes)
    for k, (operand, extent) in enumerate(zip(term.args, formula.extents, strict=True)):
        for variable in operand_variable(k, extent).variables():
            values[variable] = ev.eval(operand, frame, batch)
    found = np.asarray(formula.expression.evaluate(values), np.int64)
    return convert(found.reshape(found.shape or (1,) * len(batch)), ev.numerics.dtype(term.type))


def _tuple(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    return tuple([ev.eval(a, frame, batch) for a in term.args])


def _proj(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    value = ev.eval(term.args[0], frame, batch)
    assert isinstance(value, tuple)
    component: Value = value[term.attrs[0]]
    return component


def _let(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    value, function = term.args
    return ev.call(function, ev.eval(value, frame, batch), frame, batch)


def _array(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    return stack([ev.eval(a, frame, batch) for a in term.args], len(batch))


def _at(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    xs, index = (ev.eval(a, frame, batch) for a in term.args)
    assert isinstance(index, np.ndarray)
    depth = len(batch)
    return each(lambda leaf: _read_each(leaf, np.expand_dims(index, depth), depth, "at").squeeze(depth), xs)


def _read_each(leaf: Leaf, positions: Leaf, axis: int, what: str) -> Leaf:
    """Elements along an axis, at positions that may differ from batch element to batch element."""
    views.check(positions, leaf.shape[axis], what)
    extra = leaf.ndim - axis - 1
    return np.take_along_axis(leaf, positions.reshape(positions.shape + (1,) * extra), axis=axis)


# ---- maps and folds ------------------------------------------------------------------------------------------------


def _map(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    function, xs = term.args
    return ev.over(function, ev.eval(xs, frame, batch), ev.length(xs), frame, batch)


def _generate(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    n = ev.size(term.attrs[0])
    return ev.over(term.args[0], np.arange(n).reshape((1,) * len(batch) + (n,)), n, frame, batch)


def _reduce(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    function, initial, xs = term.args
    n = ev.length(xs)
    product = ev.contraction(term)
    if product is not None and n:
        elements, inner = ev.eval(product.xs, frame, batch), frame.inner((), batch) if product.inside else frame
        left, right = (ev.over(f, elements, n, inner, batch) for f in (product.left, product.right))
        start = ev.eval(initial, frame, batch)
        assert isinstance(left, np.ndarray)
        assert isinstance(right, np.ndarray)
        assert isinstance(start, np.ndarray)
        return np.asarray(start + sum_of_products(left, right, len(batch)))  # sums of scalars are no arrays
    sequence = _sequence(ev, function, initial, xs, n, frame, batch)
    if sequence is not None:
        ufunc, values = sequence
        if ev.numerics.exact or values.dtype.kind in "iu":
            return np.asarray(ufunc.reduce(values, axis=len(batch), dtype=values.dtype))
        partial = ufunc.accumulate(values, axis=len(batch), dtype=values.dtype)  # in order, as a device's loop
        return np.asarray(element(partial, len(batch), n))
    elements = ev.eval(xs, frame, batch)
    value = ev.eval(initial, frame, batch)
    for i in range(n):
        value = ev.call2(function, value, element(elements, len(batch), i), frame, batch)
    return value


def _scan(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    function, initial, xs = term.args
    n, depth = ev.length(xs), len(batch)
    if n == 0:
        return ev.empty(initial.type, depth)
    sequence = _sequence(ev, function, initial, xs, n, frame, batch)
    if sequence is not None:
        ufunc, values = sequence
        return views.drop(ufunc.accumulate(values, axis=depth, dtype=values.dtype), depth, 1)
    elements = ev.eval(xs, frame, batch)
    value = ev.eval(initial, frame, batch)
    results = []
    for i in range(n):
        value = ev.call2(function, value, element(elements, depth, i), frame, batch)
        results.append(value)
    return stack(results, depth)


def _sequence(
    ev: Evaluator, function: Term, initial: Term, xs: Term, n: int, frame: Frame, batch: Batch
) -> tuple[np.ufunc, Leaf] | None:
    """For `λacc x. acc op e(x)` whose op folds in one call: its ufunc, and the initial value before all e(x)."""
    body = function.args[0].args[0]
    if n < 2 or body.kind != "op" or len(body.args) != 2:
        return None
    operator, (left, right) = body.attrs[0], body.args
    ufunc = fold_of(operator, body.type, ev.numerics)
    if ufunc is None or left.kind != "bound" or left.attrs[0] != 1 or 1 in dangling(right):
        return None
    # e is the body of a map here: its variable is the element, inside an accumulator that it does not mention
    mapped = lambda_(function.args[0].attrs[0], right)
    elements = ev.over(mapped, ev.eval(xs, frame, batch), n, frame.inner((), batch), batch)
    start = ev.eval(initial, frame, batch)
    assert isinstance(elements, np.ndarray)
    assert isinstance(start, np.ndarray)
    first = np.expand_dims(start, len(batch))
    values = concatenate([first, elements], len(batch))
    assert isinstance(values, np.ndarray)
    return ufunc, values


def _pipe(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    function, load, initial, xs = term.args
    elements = ev.eval(xs, frame, batch)
    value = ev.eval(initial, frame, batch)
    for i in range(ev.length(xs)):
        tile = ev.call(load, element(elements, len(batch), i), frame, batch)
        value = ev.call2(function, value, tile, frame, batch)
    return value


def _iterate(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    function, x = term.args
    value = ev.eval(x, frame, batch)
    for _ in range(ev.size(term.attrs[0])):
        value = ev.call(function, value, frame, batch)
    return value


# ---- memory, instructions, scatter ---------------------------------------------------------------------------------


def _same(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    return ev.eval(term.args[0], frame, batch)


def _instr(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    return ev.unfold(term.attrs[0].definition, [ev.eval(a, frame, batch) for a in term.args], batch)


def _scatter(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    ids, xs = (ev.eval(a, frame, batch) for a in term.args)
    assert isinstance(ids, np.ndarray)
    assert isinstance(term.type, Array)
    m, depth = ev.size(term.type.size), len(batch)
    views.check(ids, m, "scatter")
    mode = OPERATORS.get(term.attrs[0], term.attrs[0]) if isinstance(term.attrs[0], str) else term.attrs[0]
    if mode == "permutation":
        if not (np.sort(ids, axis=depth) == np.arange(m)).all():
            raise EvaluationError("scatter[permutation]: the indices are not a permutation")
        inverse = np.argsort(ids, axis=depth)
        return each(lambda leaf: _read_each(leaf, inverse, depth, "scatter"), xs)
    assert isinstance(mode, Operator)
    assert isinstance(xs, np.ndarray)
    return _accumulate(ev, mode, ids, xs, term.type, depth)


def _accumulate(ev: Evaluator, operator: Operator, ids: Leaf, xs: Leaf, type_: Array, depth: int) -> Value:
    """Every position starts at the operator's neutral element and takes its elements in order."""
    if operator.neutral is None:
        raise EvaluationError(f"scatter with {operator.name}: it declares no neutral element to start from")
    axes = np.broadcast_shapes(ids.shape[:depth], xs.shape[:depth])
    ids = np.broadcast_to(ids, axes + ids.shape[depth:])
    xs = np.broadcast_to(xs, axes + xs.shape[depth:])
    neutral = operator.neutral(type_.element)  # type: ignore[arg-type]
    result = np.full((*axes, ev.size(type_.size)), neutral, ev.numerics.dtype(type_.element))
    for i in range(ids.shape[depth]):
        position = ids[..., i : i + 1]
        old = np.take_along_axis(result, position, axis=depth)
        new = ev.numerics.apply(operator, (old, xs[..., i : i + 1]), type_.element)
        np.put_along_axis(result, position, new, axis=depth)
    return result


# ---- views ---------------------------------------------------------------------------------------------------------


def _view(function: Callable[..., Leaf]) -> Callable[..., Value]:
    """A view whose attributes are all sizes."""

    def evaluated(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
        arguments = [ev.size(a) for a in term.attrs]
        return each(lambda leaf: function(leaf, len(batch), *arguments), ev.eval(term.args[0], frame, batch))

    return evaluated


def _pad(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    left, right, mode = ev.size(term.attrs[0]), ev.size(term.attrs[1]), term.attrs[2]
    values = [ev.eval(a, frame, batch) for a in term.args]
    padded = each(lambda leaf, fill=None: views.pad(leaf, len(batch), left, right, mode, fill), values[0], *values[1:])
    return padded


def _concat(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    return concatenate([ev.eval(a, frame, batch) for a in term.args], len(batch))


def _replicate(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    n, depth = ev.size(term.attrs[0]), len(batch)
    return each(lambda leaf: widen(np.expand_dims(leaf, depth), depth, n), ev.eval(term.args[0], frame, batch))


def _reindex(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    value = each(
        lambda leaf: views.reindex(leaf, len(batch), term.attrs[0], ev.size, ev.sizes),
        ev.eval(term.args[0], frame, batch),
    )
    return value


def _gather(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    ids, xs = (ev.eval(a, frame, batch) for a in term.args)
    assert isinstance(ids, np.ndarray)
    return each(lambda leaf: _read_each(leaf, ids, len(batch), "gather"), xs)


def _swz(ev: Evaluator, term: Term, frame: Frame, batch: Batch) -> Value:
    row = term.type
    assert isinstance(row, Array)
    assert isinstance(row.element, Array)
    scalar = row.element.element
    item = getattr(scalar, "bytes", None)
    if item is None:
        raise EvaluationError(f"swz works on rows of scalars, not of {scalar}")
    leaf = ev.eval(term.args[0], frame, batch)
    assert isinstance(leaf, np.ndarray)
    return views.swizzle(leaf, len(batch), term.attrs[0], item)


PATTERN_VALUES: dict[str, Callable[[Evaluator, Term, Frame, Batch], Value]] = {
    "param": _param, "const": _const, "op": _op, "tuple": _tuple, "proj": _proj, "let": _let, "array": _array,
    "index": _index, "at": _at, "map": _map, "generate": _generate, "reduce": _reduce, "scan": _scan, "pipe": _pipe,
    "iterate": _iterate, "to": _same, "launch": _same, "instr": _instr, "scatter": _scatter,
    "split": _view(views.split), "join": _view(views.join), "transpose": _view(views.transpose),
    "take": _view(views.take), "drop": _view(views.drop), "slide": _view(views.slide), "pad": _pad,
    "zip": _tuple, "unzip": _same, "concat": _concat, "replicate": _replicate, "reindex": _reindex,
    "gather": _gather, "swz": _swz,
}  # fmt: skip
