"""Terms: hash-consed, intrinsically typed trees with de Bruijn bound variables.

A term is made by `make`, which computes its type from its children's types, once. Alpha-equivalent terms are the same
object, so equality is identity. Bound variables carry their type, so rules work on open terms and nothing is unified.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from lithify.lang.assumptions import OpenCondition, assumed_type
from lithify.lang.types import Function, Type

if TYPE_CHECKING:
    from lithify.lang.patterns import Pattern


class Term:
    """A node: a pattern, its attributes, its children, and what is known of it.

    `open_depth` is one more than the largest dangling de Bruijn index (0 for a term without any); `parameters` is the
    set of names of its free (named) variables.
    """

    __slots__ = ("__weakref__", "_dangling", "args", "attrs", "id", "open_depth", "parameters", "pattern", "type")
    pattern: Pattern
    attrs: tuple[Any, ...]
    args: tuple[Term, ...]
    type: Type
    id: int
    open_depth: int
    parameters: frozenset[str]
    _dangling: frozenset[int] | None

    def __getitem__(self, attribute: str) -> Any:
        """The attribute of that name: `t["level"]`."""
        return self.attrs[self.pattern.attributes.index(attribute)]

    @property
    def kind(self) -> str:
        """The pattern's name: "map", "reduce", "split", ..."""
        return self.pattern.name

    def replace(self, **attributes: Any) -> Term:
        """The same node with some attributes changed: `t.replace(level=SEQ)`."""
        attrs = list(self.attrs)
        for name, value in attributes.items():
            attrs[self.pattern.attributes.index(name)] = value
        return make(self.pattern, tuple(attrs), self.args)

    def with_args(self, args: tuple[Term, ...]) -> Term:
        """The same pattern over other children, with the always-on simplifications."""
        if all(new is old for new, old in zip(args, self.args, strict=True)):
            return self
        return make(self.pattern, self.attrs, args)

    def __repr__(self) -> str:
        from lithify.lang.printer import show

        return show(self)

    def __reduce__(self) -> Any:
        raise TypeError("terms are not pickled: print and read them, or send the derivation")


_terms: WeakValueDictionary[tuple[Any, ...], Term] = WeakValueDictionary()
_ids = itertools.count()
BOUND: Final = "bound"
LAMBDA: Final = "lambda"
_NOTHING: Final[frozenset[str]] = frozenset()
_NO_INDICES: Final[frozenset[int]] = frozenset()


def make(pattern: Pattern, attrs: tuple[Any, ...], args: tuple[Term, ...]) -> Term:
    """The term of a pattern over children: simplified by the pattern's always-on laws, typed, interned.

    Raises TypeMismatch when the children's types do not fit the pattern's signature.
    """
    if pattern.simplify is not None:
        simpler = pattern.simplify(attrs, args)
        if simpler is not None:
            return simpler
    key = (pattern.name, attrs, *[a.id for a in args])
    found = _terms.get(key)
    if found is not None:
        return found
    term = Term()
    term.pattern, term.attrs, term.args, term._dangling = pattern, attrs, args, None
    lasting = True
    try:
        term.type = pattern.infer(attrs, args)
    except OpenCondition as error:
        term.type, lasting = assumed_type(error), False  # whoever builds it again has to ask again
    if pattern.name == BOUND:
        term.open_depth, term.parameters = attrs[0] + 1, _NOTHING
    elif pattern.name == "param":
        term.open_depth, term.parameters = 0, frozenset((attrs[0],))
    elif len(args) == 1:
        depth = args[0].open_depth
        term.open_depth = max(0, depth - 1) if pattern.name == LAMBDA else depth
        term.parameters = args[0].parameters
    else:
        term.open_depth = max([a.open_depth for a in args], default=0)
        term.parameters = _NOTHING.union(*[a.parameters for a in args])
    term.id = next(_ids)
    if lasting:
        _terms[key] = term
    return term


# ---- binders -------------------------------------------------------------------------------------------------------


def bound(index: int, type_: Type) -> Term:
    """The variable bound `index` lambdas further out (0: the innermost)."""
    from lithify.lang.patterns import PATTERNS

    return make(PATTERNS[BOUND], (index, type_), ())


def lambda_(parameter: Type, body: Term) -> Term:
    """The function whose parameter is de Bruijn index 0 of `body`."""
    from lithify.lang.patterns import PATTERNS

    return make(PATTERNS[LAMBDA], (parameter,), (body,))


def rebuild(term: Term, leaf: Callable[[Term, int], Term | None], depth: int = 0) -> Term:
    """Map over the open part of a term.

    `leaf(t, d)` is asked at every node, with the number of lambdas passed; a term ends the descent there, None goes on.
    """
    memo: dict[tuple[int, int], Term] = {}

    def go(t: Term, d: int) -> Term:
        key = (t.id, d)
        found = memo.get(key)
        if found is None:
            replaced = leaf(t, d)
            if replaced is None:
                inner = d + 1 if t.pattern.name == LAMBDA else d
                replaced = t.with_args(tuple([go(a, inner) for a in t.args])) if t.args else t
            memo[key] = found = replaced
        return found

    return go(term, depth)


def shift(term: Term, by: int, cutoff: int = 0) -> Term:
    """Add `by` to every dangling index >= cutoff: moves an open term under `by` more lambdas (or out, if negative)."""
    if by == 0 or term.open_depth <= cutoff:
        return term

    def leaf(t: Term, d: int) -> Term | None:
        if t.open_depth <= d:
            return t
        if t.pattern.name == BOUND:
            return bound(t.attrs[0] + by, t.attrs[1])
        return None

    return rebuild(term, leaf, cutoff)


def apply(function: Term, *arguments: Term) -> Term:
    """Beta reduction: the body of the lambda(s) with the arguments for the parameters."""
    for argument in arguments:
        function = _instantiate(function, argument)
    return function


def _instantiate(function: Term, argument: Term) -> Term:
    assert function.pattern.name == LAMBDA, f"not a function: {function}"
    assert isinstance(function.type, Function)

    def leaf(t: Term, d: int) -> Term | None:
        if t.open_depth <= d:
            return t
        if t.pattern.name == BOUND:
            index = t.attrs[0]
            return shift(argument, d) if index == d else bound(index - 1, t.attrs[1])
        return None

    return rebuild(function.args[0], leaf)


_fresh_names = itertools.count()


def abstract(type_: Type, body: Callable[[Term], Term]) -> Term:
    """The lambda whose body a Python function builds: `abstract(f32, lambda x: add(x, x))`."""
    from lithify.lang.patterns import PATTERNS

    variable = make(PATTERNS["param"], (f"_{next(_fresh_names)}", type_), ())
    return close(variable, body(variable))


def close(variable: Term, body: Term) -> Term:
    """The lambda over a free variable of `body`."""
    name = variable.attrs[0]

    def leaf(t: Term, d: int) -> Term | None:
        if t is variable:
            return bound(d, t.type)
        if t.open_depth <= d and name not in t.parameters:
            return t
        if t.pattern.name == BOUND:
            return bound(t.attrs[0] + 1, t.attrs[1]) if t.attrs[0] >= d else t
        return None

    return lambda_(variable.type, rebuild(body, leaf))


def mentions(term: Term, index: int = 0) -> bool:
    """Does the term use the dangling de Bruijn index?"""
    return index in dangling(term)


def dangling(term: Term) -> frozenset[int]:
    """The dangling de Bruijn indices of a term."""
    if term.open_depth == 0:
        return _NO_INDICES
    found = term._dangling
    if found is None:
        if term.pattern.name == BOUND:
            found = frozenset((term.attrs[0],))
        else:
            found = frozenset().union(*[dangling(a) for a in term.args])
            if term.pattern.name == LAMBDA:
                found = frozenset(i - 1 for i in found if i)
        term._dangling = found
    return found


def below_parameters(function: Term) -> tuple[Term, int]:
    """A function's body, below all its parameters, and how many these are (of no function: itself, and 0)."""
    body, parameters = function, 0
    while body.pattern.name == LAMBDA:
        body, parameters = body.args[0], parameters + 1
    return body, parameters


# ---- whole terms ---------------------------------------------------------------------------------------------------


def subterms(term: Term) -> Iterator[Term]:
    """Every distinct subterm, each once, outermost first."""
    seen: set[int] = set()
    stack = [term]
    while stack:
        t = stack.pop()
        if t.id not in seen:
            seen.add(t.id)
            yield t
            stack.extend(reversed(t.args))


def contains(term: Term, predicate: Callable[[Term], bool]) -> bool:
    """Does any subterm satisfy the predicate?"""
    return any(predicate(t) for t in subterms(term))


def size_of(term: Term) -> int:
    """The number of distinct nodes."""
    return sum(1 for _ in subterms(term))


def substitute_parameters(term: Term, values: dict[str, Term]) -> Term:
    """Replace free variables by (closed) terms."""
    names = values.keys()

    def leaf(t: Term, _d: int) -> Term | None:
        if t.parameters.isdisjoint(names):
            return t
        return values[t.attrs[0]] if t.pattern.name == "param" else None

    return rebuild(term, leaf)
