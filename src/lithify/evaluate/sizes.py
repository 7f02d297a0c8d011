"""Inputs and sizes: arguments are checked against the declared types, and symbolic sizes bound from their shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lithify.arith import Expr, Variable
from lithify.evaluate.numerics import Numerics, convert
from lithify.evaluate.values import Value
from lithify.lang.errors import EvaluationError, UnboundSize
from lithify.lang.index_functions import IndexFormula, IndexFunction, variables_of
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term
from lithify.lang.types import Array, Index, Tuple, Type, sizes_in

Sizes = dict[Variable, int]


def bind_sizes(types: Mapping[str, Type], inputs: Mapping[str, Any], given: Mapping[str, int] | None = None) -> Sizes:
    """The size variables of the types, found from the shapes of the inputs and from `given` (by name).

    Raises EvaluationError where shapes contradict each other, with both sources, and UnboundSize where a size occurs
    only in forms that do not determine it.
    """
    equations: list[tuple[Expr, int, str]] = []
    for name, type_ in types.items():
        _collect(type_, inputs[name], name, equations)
    found: Sizes = {}
    sources: dict[Variable, str] = {}
    wanted = {v for type_ in types.values() for size in sizes_in(type_) for v in size.variables()}
    for variable in wanted:
        if given and variable.name in given:
            found[variable], sources[variable] = int(given[variable.name]), "given"
    progress = True
    while progress:
        progress = False
        for size, value, source in equations:
            open_ = [v for v in size.variables() if v not in found]
            if len(open_) == 1:
                solution = _solve(size, open_[0], value, found)
                if solution is not None:
                    found[open_[0]], sources[open_[0]] = solution, source
                    progress = True
    missing = sorted({v.name for size, _, _ in equations for v in size.variables() if v not in found})
    if missing:
        raise UnboundSize(f"the shapes do not determine {', '.join(missing)}", hint="give it: sizes={name: value}")
    for size, value, source in equations:
        expected = value_of(size, found)
        if expected != value:
            because = "; ".join(f"{v.name} = {found[v]} ({sources[v]})" for v in size.variables())
            raise EvaluationError(
                f"{source} has length {value}, its type says {size}" + (f" = {expected}: {because}" if because else "")
            )
    for variable, value in found.items():
        if value < variable.lo:
            raise EvaluationError(f"size {variable.name} is {value}, declared to be at least {variable.lo}")
    return found


def value_of(size: Expr, sizes: Sizes) -> int:
    """The value of a size under bound variables; raises UnboundSize."""
    if size.constant is not None:
        return size.constant
    for variable in size.variables():
        if variable not in sizes:
            raise UnboundSize(f"size {variable.name} is not bound", hint=f"give it: sizes={{{variable.name!r}: value}}")
    return int(size.evaluate(sizes))


def size_variables(term: Term) -> frozenset[Variable]:
    """The size variables in the types and attributes of a term, the definitions of its operators included."""
    stack = [term]
    while stack:
        t = stack[-1]
        below = [*t.args]
        if t.kind == "op" and t.attrs[0].definition is not None:
            below.append(t.attrs[0].definition)
        unknown = [b for b in below if b not in _of_terms]
        if unknown:
            stack += unknown
        else:
            stack.pop()
            _of_terms[t] = _own_variables(t).union(*[_of_terms[b] for b in below])
    return _of_terms[term]


# Each step of a derivation asks again, of terms that share most of their parts.
_of_terms: WeakKeyDictionary[Term, frozenset[Variable]] = WeakKeyDictionary()


def _own_variables(t: Term) -> frozenset[Variable]:
    found = [size.variables() for size in sizes_in(t.type)]
    for attribute in t.attrs:
        if isinstance(attribute, Expr):
            found.append(attribute.variables())
        elif isinstance(attribute, IndexFunction | IndexFormula):
            found.append(variables_of(attribute))
    return frozenset[Variable]().union(*found)


def _solve(size: Expr, variable: Variable, value: int, known: Sizes) -> int | None:
    """The variable's value when the size is linear in it."""
    others = {v: known[v] for v in size.variables() if v is not variable}
    rest = size.substitute(others) if others else size
    coefficient = rest.coefficient(variable)
    if not coefficient:
        return None
    quotient, left = divmod(value - rest.offset, coefficient)
    return None if left else quotient


def _collect(type_: Type, value: Any, source: str, equations: list[tuple[Expr, int, str]], prefix: int = 0) -> None:
    """Relate the sizes of a type to the shapes of a value; `prefix` axes of its arrays belong to enclosing arrays."""
    if isinstance(type_, Array):
        for leaf in _leaves(value):
            if np.ndim(leaf) <= prefix:
                raise EvaluationError(f"{source} is an array of {np.ndim(leaf)} axes, its type needs more: .. {type_}")
            equations.append((type_.size, np.shape(leaf)[prefix], f"axis {prefix} of {source}"))
        _collect(type_.element, value, source, equations, prefix + 1)
    elif isinstance(type_, Tuple):
        if not isinstance(value, tuple) or len(value) != len(type_.items):
            raise EvaluationError(f"{source} is a tuple {type_}: give a tuple of {len(type_.items)} values")
        for i, (item, part) in enumerate(zip(type_.items, value, strict=True)):
            _collect(item, part, f"{source}.{i}", equations, prefix)
    elif isinstance(value, tuple):
        raise EvaluationError(f"{source} is given as a tuple, its type is {type_}")
    elif np.ndim(value) != prefix:
        raise EvaluationError(f"{source} is an array of {np.ndim(value)} axes, its type has {prefix}")


def _leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def internal(value: Any, type_: Type, name: str, sizes: Sizes, numerics: Numerics) -> Value:
    """An input as a value: converted to the arithmetic's types, index values checked."""
    if isinstance(type_, Tuple):
        parts = enumerate(zip(value, type_.items, strict=True))
        return tuple([internal(v, t, f"{name}.{i}", sizes, numerics) for i, (v, t) in parts])
    if isinstance(type_, Array):
        return internal(value, type_.element, name, sizes, numerics)
    array = np.asarray(value)
    if isinstance(type_, Index):
        limit = value_of(type_.size, sizes)
        if array.dtype.kind not in "iu":
            raise EvaluationError(f"{name} holds indices ({type_}) and is given as {array.dtype}")
        if array.size and not (array.min() >= 0 and array.max() < limit):
            raise EvaluationError(f"{name} holds {array.min()} .. {array.max()}, its type is {type_}")
        return array.astype(np.int64)
    assert isinstance(type_, Scalar)
    if type_.is_integer and array.dtype.kind not in "iub":
        raise EvaluationError(f"{name} is of {type_} and is given as {array.dtype}")
    if array.dtype.kind == "c" and not type_.is_complex:
        raise EvaluationError(f"{name} is of {type_} and is given as {array.dtype}")
    return convert(convert(array, type_.dtype) if array.dtype.kind in "iu" else array, numerics.dtype(type_))
