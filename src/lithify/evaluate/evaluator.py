"""The reference evaluator: one function a pattern, over whole arrays (see `values` for how maps avoid loops)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lithify.arith import Expr, Variable
from lithify.evaluate import views
from lithify.evaluate.numerics import EXACT, STORED, Numerics, fold_of
from lithify.evaluate.sizes import Sizes, bind_sizes, internal, value_of
from lithify.evaluate.values import Leaf, Value, concatenate, each, element, leaves, lift, lower, stack, widen
from lithify.lang.build import constant_value
from lithify.lang.errors import EvaluationError
from lithify.lang.index_functions import IndexFunction, variables_of
from lithify.lang.operators import OPERATORS, Operator
from lithify.lang.term import Term, dangling, lambda_, subterms
from lithify.lang.types import Array, Index, Tuple, Type, sizes_in

LARGEST_BATCH = 1 << 22  # elements; a map whose body would hold more at once runs in pieces


def evaluate(
    term: Term,
    inputs: Mapping[str, Any] | None = None,
    *,
    exact: bool = True,
    sizes: Mapping[str, int] | None = None,
) -> Any:
    """The value of a program: an array, a NumPy scalar, or a tuple of them (an array of tuples is a tuple of arrays).

    `inputs` gives a value for each free variable by name. Symbolic sizes are found from the inputs' shapes; those that
    do not follow from them are given in `sizes`. With `exact`, floating point is computed in float64 whatever the types
    say, and returned so; otherwise in the declared types, rounded after every operator. Integers have their declared
    width and wrap. Levels and memories do not change the value; an instruction is evaluated by its row.

    Raises EvaluationError, with the path in the term, for anything undefined: an index outside its array, an input that
    does not fit its type, an integer division by zero.
    """
    given = dict(inputs or {})
    types = {t.attrs[0]: t.attrs[1] for t in _everything(term) if t.kind == "param"}
    missing = sorted(types.keys() - given.keys())
    if missing:
        raise EvaluationError(f"no value is given for {', '.join(missing)}")
    bound = bind_sizes(types, given, sizes)
    for variable in _variables(term) - bound.keys():
        if sizes and variable.name in sizes:
            bound[variable] = int(sizes[variable.name])
    numerics = EXACT if exact else STORED
    values = {name: internal(given[name], type_, name, bound, numerics) for name, type_ in types.items()}
    with np.errstate(all="ignore"):
        result = _Evaluator(term, values, bound, numerics).run(term)
    return each(lambda leaf: np.array(leaf) if leaf.ndim else leaf[()], result)


def _everything(term: Term) -> list[Term]:
    """The subterms, with those of the definitions of its operators."""
    found: dict[int, Term] = {}
    queue = [term]
    while queue:
        for t in subterms(queue.pop()):
            if t.id not in found:
                found[t.id] = t
                if t.kind == "op" and t.attrs[0].definition is not None:
                    queue.append(t.attrs[0].definition)
    return list(found.values())


def _variables(term: Term) -> set[Variable]:
    """The size variables in the attributes and types of a term."""
    found: set[Variable] = set()
    for t in _everything(term):
        for attribute in t.attrs:
            if isinstance(attribute, Expr):
                found |= attribute.variables()
            elif isinstance(attribute, IndexFunction):
                found |= variables_of(attribute)
        for size in sizes_in(t.type):
            found |= size.variables()
    return found


class _Frame:
    """The innermost bound variable, what encloses it, and the values of terms that are shared or do not change in it.

    `batch` holds the lengths of the batch axes in force where the variable was bound.
    """

    __slots__ = ("batch", "memo", "parent", "value")

    def __init__(self, parent: _Frame | None, value: Value, batch: tuple[int, ...]) -> None:
        self.parent = parent
        self.value = value
        self.batch = batch
        self.memo: dict[int, Value] = {}


class _Evaluator:
    def __init__(self, term: Term, inputs: dict[str, Value], sizes: Sizes, numerics: Numerics) -> None:
        self.inputs = inputs
        self.sizes = sizes
        self.numerics = numerics
        self.shared = _shared(term)
        self.footprints: dict[int, int] = {}
        self.path: list[str] = []

    def run(self, term: Term) -> Value:
        try:
            return self.eval(term, _Frame(None, (), ()), ())
        except EvaluationError as error:
            if self.path:
                error.located("in " + " > ".join(reversed(self.path)))
            raise

    # ---- the walk ----

    def eval(self, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
        """The value at the batch depth len(batch)."""
        if term.kind == "bound":
            for _ in range(term.attrs[0]):
                assert frame.parent is not None
                frame = frame.parent
            return lift(frame.value, len(frame.batch), len(batch))
        owner = self._owner(term, frame)
        if owner is frame and term.id not in self.shared:
            return self._compute(term, frame, batch)
        known = owner.memo.get(term.id)
        if known is None:
            value = self._compute(term, frame, batch)
            owner.memo[term.id] = lower(value, len(batch), len(owner.batch))
            return value
        return lift(known, len(owner.batch), len(batch))

    @staticmethod
    def _owner(term: Term, frame: _Frame) -> _Frame:
        """The frame of the innermost variable that the term mentions."""
        out = min(dangling(term), default=-1)
        while frame.parent is not None and out:
            frame, out = frame.parent, out - 1
        return frame

    def _compute(self, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
        try:
            return _PATTERNS[term.kind](self, term, frame, batch)
        except EvaluationError:
            self.path.append(_label(term))
            raise

    def call(self, function: Term, argument: Value, frame: _Frame, batch: tuple[int, ...]) -> Value:
        """The function's body, with its parameter bound to a value of the depth of `batch`."""
        return self.eval(function.args[0], _Frame(frame, argument, batch), batch)

    def call2(self, function: Term, first: Value, second: Value, frame: _Frame, batch: tuple[int, ...]) -> Value:
        """The body of a function of two parameters."""
        return self.call(function.args[0], second, _Frame(frame, first, batch), batch)

    def size(self, size: Expr) -> int:
        return value_of(size, self.sizes)

    def length(self, term: Term) -> int:
        assert isinstance(term.type, Array)
        return self.size(term.type.size)

    # ---- maps over batches ----

    def over(self, function: Term, elements: Value, n: int, frame: _Frame, batch: tuple[int, ...]) -> Value:
        """map: the elements already are values of one more batch axis."""
        depth = len(batch)
        if n == 0:
            return self.empty(function.args[0].type, depth)
        at_once = max(1, LARGEST_BATCH // max(1, _product(batch) * self.footprint(function.args[0])))
        if at_once >= n:
            result = self.call(function, elements, frame, (*batch, n))
            return each(lambda leaf: widen(leaf, depth, n), result)
        pieces = []
        for start in range(0, n, at_once):
            count = min(at_once, n - start)
            key = (slice(None),) * depth + (slice(start, start + count),)
            piece = self.call(function, each(lambda leaf, key=key: leaf[key], elements), frame, (*batch, count))
            pieces.append(each(lambda leaf, count=count: widen(leaf, depth, count), piece))
        return concatenate(pieces, depth)

    def empty(self, element_type: Type, depth: int) -> Value:
        """An array of no elements of the type, at a batch depth."""
        return self._filled(element_type, (1,) * depth + (0,))

    def _filled(self, type_: Type, shape: tuple[int, ...]) -> Value:
        if isinstance(type_, Tuple):
            return tuple([self._filled(item, shape) for item in type_.items])
        if isinstance(type_, Array):
            return self._filled(type_.element, (*shape, self.size(type_.size)))
        return np.zeros(shape, self.numerics.dtype(type_))

    def footprint(self, term: Term) -> int:
        """The most elements that a value inside the term has, for one value of its free variables."""
        known = self.footprints.get(term.id)
        if known is None:
            inner = max([self.footprint(a) for a in term.args], default=1)
            if term.kind in ("map", "generate"):
                inner = max([self.footprint(a) for a in term.args[1:]], default=1)
                inner = max(inner, self.length(term) * self.footprint(term.args[0].args[0]))
            known = self.footprints[term.id] = max(inner, self._elements(term.type))
        return known

    def _elements(self, type_: Type) -> int:
        if isinstance(type_, Tuple):
            return sum(self._elements(item) for item in type_.items)
        if isinstance(type_, Array):
            return self.size(type_.size) * self._elements(type_.element)
        return 1


def _product(batch: tuple[int, ...]) -> int:
    total = 1
    for n in batch:
        total *= n
    return total


def _shared(term: Term) -> set[int]:
    """The terms that occur more than once: they are evaluated once for each value of their variables."""
    seen: set[int] = set()
    shared: set[int] = set()
    for t in _everything(term):
        for a in t.args:
            if a.args:
                (shared if a.id in seen else seen).add(a.id)
    return shared


def _label(term: Term) -> str:
    """A node in the path of an error: its pattern, level and name."""
    names = dict(zip(term.pattern.attributes, term.attrs, strict=True))
    label = term.kind
    if term.kind == "op":
        label = names["operator"].name
    if names.get("level") is not None:
        label += f"[{names['level']}]"
    return f"{label} {names['name']}" if names.get("name") else label


# ---- leaves and scalars --------------------------------------------------------------------------------------------


def _param(ev: _Evaluator, term: Term, _frame: _Frame, batch: tuple[int, ...]) -> Value:
    return lift(ev.inputs[term.attrs[0]], 0, len(batch))


def _const(ev: _Evaluator, term: Term, _frame: _Frame, batch: tuple[int, ...]) -> Value:
    value = constant_value(term)
    if isinstance(term.type, Index):
        value, limit = ev.size(value), ev.size(term.type.size)
        if not 0 <= value < limit:
            raise EvaluationError(f"index {value} is outside {term.type}")
    return np.full((1,) * len(batch), value, ev.numerics.dtype(term.type))


def _op(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    operator: Operator = term.attrs[0]
    operands = [ev.eval(a, frame, batch) for a in term.args]
    if operator.definition is None:
        return ev.numerics.apply(operator, tuple(operands), term.type)  # type: ignore[arg-type]
    return _unfold(ev, operator, operands, batch)


def _unfold(ev: _Evaluator, operator: Operator, operands: list[Value], batch: tuple[int, ...]) -> Value:
    body, inner = operator.definition, _Frame(None, (), ())
    assert body is not None
    for operand in operands:
        inner, body = _Frame(inner, operand, batch), body.args[0]
    return ev.eval(body, inner, batch)


def _tuple(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    return tuple([ev.eval(a, frame, batch) for a in term.args])


def _proj(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    value = ev.eval(term.args[0], frame, batch)
    assert isinstance(value, tuple)
    return value[term.attrs[0]]


def _let(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    value, function = term.args
    return ev.call(function, ev.eval(value, frame, batch), frame, batch)


def _array(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    return stack([ev.eval(a, frame, batch) for a in term.args], len(batch))


def _at(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    xs, index = (ev.eval(a, frame, batch) for a in term.args)
    assert isinstance(index, np.ndarray)
    depth = len(batch)
    found: Value = each(lambda leaf: _read_each(leaf, np.expand_dims(index, depth), depth, "at").squeeze(depth), xs)
    return found


def _read_each(leaf: Leaf, positions: Leaf, axis: int, what: str) -> Leaf:
    """Elements along an axis, at positions that may differ from batch element to batch element."""
    views.check(positions, leaf.shape[axis], what)
    extra = leaf.ndim - axis - 1
    return np.take_along_axis(leaf, positions.reshape(positions.shape + (1,) * extra), axis=axis)


# ---- maps and folds ------------------------------------------------------------------------------------------------


def _map(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    function, xs = term.args
    return ev.over(function, ev.eval(xs, frame, batch), ev.length(xs), frame, batch)


def _generate(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    n = ev.size(term.attrs[0])
    return ev.over(term.args[0], np.arange(n).reshape((1,) * len(batch) + (n,)), n, frame, batch)


def _reduce(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    function, initial, xs = term.args
    n = ev.length(xs)
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


def _scan(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
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
    ev: _Evaluator, function: Term, initial: Term, xs: Term, n: int, frame: _Frame, batch: tuple[int, ...]
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
    elements = ev.over(mapped, ev.eval(xs, frame, batch), n, _Frame(frame, (), batch), batch)
    start = ev.eval(initial, frame, batch)
    assert isinstance(elements, np.ndarray) and isinstance(start, np.ndarray)
    first = np.expand_dims(start, len(batch))
    values = concatenate([first, elements], len(batch))
    assert isinstance(values, np.ndarray)
    return ufunc, values


def _pipe(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    function, load, initial, xs = term.args
    elements = ev.eval(xs, frame, batch)
    value = ev.eval(initial, frame, batch)
    for i in range(ev.length(xs)):
        tile = ev.call(load, element(elements, len(batch), i), frame, batch)
        value = ev.call2(function, value, tile, frame, batch)
    return value


def _iterate(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    function, x = term.args
    value = ev.eval(x, frame, batch)
    for _ in range(ev.size(term.attrs[0])):
        value = ev.call(function, value, frame, batch)
    return value


# ---- memory, instructions, scatter ---------------------------------------------------------------------------------


def _same(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    return ev.eval(term.args[0], frame, batch)


def _instr(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    operands = [ev.eval(a, frame, batch) for a in term.args]
    axes = np.broadcast_shapes(*[leaf.shape[: len(batch)] for v in operands for leaf in leaves(v)])
    results = []
    for place in np.ndindex(*axes):
        here = [each(lambda leaf, p=place: leaf[tuple([min(i, n - 1) for i, n in zip(p, leaf.shape, strict=False)])], v)
                for v in operands]  # fmt: skip
        results.append(term.attrs[0].evaluate(*here))
    return each(lambda *parts: np.stack(parts).reshape(axes + np.shape(parts[0])), *results)


def _scatter(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    ids, xs = (ev.eval(a, frame, batch) for a in term.args)
    assert isinstance(ids, np.ndarray) and isinstance(term.type, Array)
    m, depth = ev.size(term.type.size), len(batch)
    views.check(ids, m, "scatter")
    mode = OPERATORS.get(term.attrs[0], term.attrs[0]) if isinstance(term.attrs[0], str) else term.attrs[0]
    if mode == "permutation":
        if not (np.sort(ids, axis=depth) == np.arange(m)).all():
            raise EvaluationError("scatter[permutation]: the indices are not a permutation")
        inverse = np.argsort(ids, axis=depth)
        moved: Value = each(lambda leaf: _read_each(leaf, inverse, depth, "scatter"), xs)
        return moved
    assert isinstance(mode, Operator) and isinstance(xs, np.ndarray)
    return _accumulate(ev, mode, ids, xs, term.type, depth)


def _accumulate(ev: _Evaluator, operator: Operator, ids: Leaf, xs: Leaf, type_: Array, depth: int) -> Value:
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

    def evaluated(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
        arguments = [ev.size(a) for a in term.attrs]
        value: Value = each(lambda leaf: function(leaf, len(batch), *arguments), ev.eval(term.args[0], frame, batch))
        return value

    return evaluated


def _pad(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    left, right, mode = ev.size(term.attrs[0]), ev.size(term.attrs[1]), term.attrs[2]
    values = [ev.eval(a, frame, batch) for a in term.args]
    padded: Value = each(
        lambda leaf, fill=None: views.pad(leaf, len(batch), left, right, mode, fill), values[0], *values[1:]
    )
    return padded


def _concat(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    return concatenate([ev.eval(a, frame, batch) for a in term.args], len(batch))


def _replicate(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    n, depth = ev.size(term.attrs[0]), len(batch)
    value: Value = each(
        lambda leaf: widen(np.expand_dims(leaf, depth), depth, n), ev.eval(term.args[0], frame, batch)
    )
    return value


def _reindex(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    value: Value = each(
        lambda leaf: views.reindex(leaf, len(batch), term.attrs[0], ev.size, ev.sizes),
        ev.eval(term.args[0], frame, batch),
    )
    return value


def _gather(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    ids, xs = (ev.eval(a, frame, batch) for a in term.args)
    assert isinstance(ids, np.ndarray)
    found: Value = each(lambda leaf: _read_each(leaf, ids, len(batch), "gather"), xs)
    return found


def _swz(ev: _Evaluator, term: Term, frame: _Frame, batch: tuple[int, ...]) -> Value:
    row = term.type
    assert isinstance(row, Array) and isinstance(row.element, Array)
    scalar = row.element.element
    item = getattr(scalar, "bytes", None)
    if item is None:
        raise EvaluationError(f"swz works on rows of scalars, not of {scalar}")
    leaf = ev.eval(term.args[0], frame, batch)
    assert isinstance(leaf, np.ndarray)
    return views.swizzle(leaf, len(batch), term.attrs[0], item)


_PATTERNS: dict[str, Callable[[_Evaluator, Term, _Frame, tuple[int, ...]], Value]] = {
    "param": _param, "const": _const, "op": _op, "tuple": _tuple, "proj": _proj, "let": _let, "array": _array,
    "at": _at, "map": _map, "generate": _generate, "reduce": _reduce, "scan": _scan, "pipe": _pipe,
    "iterate": _iterate, "to": _same, "launch": _same, "instr": _instr, "scatter": _scatter,
    "split": _view(views.split), "join": _view(views.join), "transpose": _view(views.transpose),
    "take": _view(views.take), "drop": _view(views.drop), "slide": _view(views.slide), "pad": _pad,
    "zip": _tuple, "unzip": _same, "concat": _concat, "replicate": _replicate, "reindex": _reindex,
    "gather": _gather, "swz": _swz,
}  # fmt: skip
