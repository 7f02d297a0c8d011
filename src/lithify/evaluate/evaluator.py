"""The reference evaluator: one function a pattern, over whole arrays (see `values` for how maps avoid loops)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lithify.arith import Expr
from lithify.evaluate.contraction import Contraction, contraction, is_outer
from lithify.evaluate.numerics import EXACT, STORED, Numerics
from lithify.evaluate.patterns import PATTERN_VALUES
from lithify.evaluate.sizes import Sizes, bind_sizes, internal, size_variables, value_of
from lithify.evaluate.values import Value, concatenate, each, lift, lower, widen
from lithify.lang.errors import EvaluationError
from lithify.lang.term import Term, dangling, subterms
from lithify.lang.types import Array, Tuple, Type

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
    does not fit its type. Scalar operators are total.
    """
    given = dict(inputs or {})
    nodes = _everything(term)
    types = {t.attrs[0]: t.attrs[1] for t in nodes if t.kind == "param"}
    missing = sorted(types.keys() - given.keys())
    if missing:
        raise EvaluationError(f"no value is given for {', '.join(missing)}")
    bound = bind_sizes(types, given, sizes)
    if sizes:
        inner = size_variables(term) - bound.keys()
        bound |= {variable: int(sizes[variable.name]) for variable in inner if variable.name in sizes}
    numerics = EXACT if exact else STORED
    values = {name: internal(given[name], type_, name, bound, numerics) for name, type_ in types.items()}
    with np.errstate(all="ignore"):
        result = Evaluator(_shared(nodes), values, bound, numerics).run(term)
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


class Frame:
    """The innermost bound variable, what encloses it, and the values of terms that are shared or do not change in it.

    `batch` holds the lengths of the batch axes in force where the variable was bound.
    """

    __slots__ = ("batch", "memo", "parent", "value")

    def __init__(self, parent: Frame | None, value: Value, batch: tuple[int, ...]) -> None:
        self.parent = parent
        self.value = value
        self.batch = batch
        self.memo: dict[int, Value] = {}

    def inner(self, value: Value, batch: tuple[int, ...]) -> Frame:
        """The frame of a variable bound inside this one."""
        return Frame(self, value, batch)


class Evaluator:
    """One evaluation of one term; the functions of `patterns` call back into it.

    `shared` are the ids of the terms whose values are kept, for each value of their variables.
    """

    def __init__(self, shared: set[int], inputs: dict[str, Value], sizes: Sizes, numerics: Numerics) -> None:
        self.inputs = inputs
        self.sizes = sizes
        self.numerics = numerics
        self.shared = shared
        self.footprints: dict[int, int] = {}
        self.path: list[str] = []

    def run(self, term: Term) -> Value:
        """The value of the closed term; an error is located by its path."""
        try:
            return self.eval(term, Frame(None, (), ()), ())
        except EvaluationError as error:
            if self.path:
                error.located("in " + " > ".join(reversed(self.path)))
            raise

    # ---- the walk ----

    def eval(self, term: Term, frame: Frame, batch: tuple[int, ...]) -> Value:
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
    def _owner(term: Term, frame: Frame) -> Frame:
        """The frame of the innermost variable that the term mentions."""
        out = min(dangling(term), default=-1)
        while frame.parent is not None and out:
            frame, out = frame.parent, out - 1
        return frame

    def _compute(self, term: Term, frame: Frame, batch: tuple[int, ...]) -> Value:
        try:
            return PATTERN_VALUES[term.kind](self, term, frame, batch)
        except EvaluationError:
            self.path.append(_label(term))
            raise

    def call(self, function: Term, argument: Value, frame: Frame, batch: tuple[int, ...]) -> Value:
        """The function's body, with its parameter bound to a value of the depth of `batch`."""
        return self.eval(function.args[0], frame.inner(argument, batch), batch)

    def call2(self, function: Term, first: Value, second: Value, frame: Frame, batch: tuple[int, ...]) -> Value:
        """The body of a function of two parameters."""
        return self.call(function.args[0], second, frame.inner(first, batch), batch)

    def unfold(self, definition: Term, operands: list[Value], batch: tuple[int, ...]) -> Value:
        """The definition of an operator (a closed function) on operands."""
        frame, body = Frame(None, (), ()), definition
        for operand in operands:
            frame, body = frame.inner(operand, batch), body.args[0]
        return self.eval(body, frame, batch)

    def size(self, size: Expr) -> int:
        """The value of a size."""
        return value_of(size, self.sizes)

    def length(self, term: Term) -> int:
        """The length of an array term."""
        assert isinstance(term.type, Array)
        return self.size(term.type.size)

    # ---- maps over batches ----

    def over(self, function: Term, elements: Value, n: int, frame: Frame, batch: tuple[int, ...]) -> Value:
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

    def contraction(self, term: Term) -> Contraction | None:
        """The sum of products that a reduction is, where it may be computed in any order."""
        return contraction(term) if self.numerics.exact else None

    def footprint(self, term: Term) -> int:
        """The most elements that a value inside the term has, for one value of its free variables.

        What depends on none of them is evaluated once, whatever the batch, and does not count.
        """
        if term.open_depth == 0:
            return 1
        known = self.footprints.get(term.id)
        if known is None:
            inner = max([self.footprint(a) for a in term.args], default=1)
            product = self.contraction(term)
            if product is not None and is_outer(product):
                inner = 1
            elif term.kind in ("map", "generate"):
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


def _shared(nodes: list[Term]) -> set[int]:
    """The ids of the terms that occur more than once."""
    seen: set[int] = set()
    shared: set[int] = set()
    for t in nodes:
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
