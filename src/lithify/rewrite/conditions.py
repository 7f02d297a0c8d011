"""Side conditions of rules: on sizes, on the declared algebra of operators, on the form of functions.

A condition is text with one meaning for readers, checkers and pages: `n | length xs`, `s <= n`, `associative f`,
`neutral e f` (which binds e when the left side does not). It holds only if it is *proved*: an unknown answer is no.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lithify.arith import Expr, as_expr, ceil_div, maximum, proves, proves_divisible, proves_equal
from lithify.lang.algebra import Algebra, algebra_of
from lithify.lang.build import const, replicate, tuple_
from lithify.lang.errors import TypeMismatch
from lithify.lang.index_functions import reverse, stride
from lithify.lang.levels import Level, LevelKind
from lithify.lang.scalars import Kind, Scalar
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Function, Tuple, Type
from lithify.rewrite.matching import Bindings
from lithify.rewrite.metaterms import Formula, formula_function
from lithify.rewrite.notation import read_formula
from lithify.rewrite.strategy import Context
from lithify.rewrite.unaffected import ignored_element, ignores

Check = Callable[[Bindings, Context], str | None]


class Condition:
    """A side condition: its text, and `check`, which gives None if it holds and otherwise what is wrong."""

    __slots__ = ("binds", "check", "text")

    def __init__(self, text: str, check: Check, binds: str | None = None) -> None:
        self.text, self.check, self.binds = text, check, binds

    def __repr__(self) -> str:
        return self.text


def read_condition(text: str) -> Condition:
    """The condition of a text; raises ValueError for text that says nothing known."""
    enclosing = re.fullmatch(r"(\w+) may enclose (\w+)", text)
    if enclosing:
        return Condition(text, _may_enclose(*enclosing.groups()))
    word, _, rest = text.partition(" ")
    if word in _PREDICATES or word in _RELATIONS:
        names = rest.split()
        return Condition(text, _word_check(word, names), names[0] if len(names) == 2 else None)
    for symbol in ("==", "<=", ">=", "<", ">", "|"):
        left, found, right = text.partition(f" {symbol} ")
        if found:
            return Condition(text, _relation(symbol, read_formula(left), read_formula(right)))
    raise ValueError(f"not a condition: {text}")


# ---- sizes ---------------------------------------------------------------------------------------------------------


def _relation(symbol: str, left: Formula, right: Formula) -> Check:
    def check(bindings: Bindings, context: Context) -> str | None:
        del context
        a, b = left.evaluate(bindings), right.evaluate(bindings)
        if symbol == "==" and not isinstance(a, Expr | int):
            return None if a == b else f"{a} is not {b}"
        a, b = as_expr(a), as_expr(b)
        if symbol == "|":
            if not proves(a - 1):
                return f"{a} is not known to be positive"
            return None if proves_divisible(b, a) else f"{a} is not known to divide {b}"
        if symbol == "==":
            return None if proves_equal(a, b) else f"{a} is not known to equal {b}"
        difference = {"<=": b - a, ">=": a - b, "<": b - a - 1, ">": a - b - 1}[symbol]
        return None if proves(difference) else f"{a} {symbol} {b} is not known to hold"

    return check


@formula_function
def length(xs: Term) -> Expr:
    """The length of an array, or of the arrays that a function gives."""
    return _array(xs).size


@formula_function
def width(xs: Term) -> Expr:
    """The length of the rows of an array of arrays."""
    inner = _array(xs).element
    if not isinstance(inner, Array):
        raise TypeMismatch(f"an array of arrays expected, {xs.type} given")
    return inner.size


def _array(xs: Term) -> Array:
    type_: Type = xs.type
    while isinstance(type_, Function):
        type_ = type_.result
    if not isinstance(type_, Array):
        raise TypeMismatch(f"an array expected, {type_} given")
    return type_


formula_function(ceil_div)
formula_function(maximum)
formula_function(stride)
formula_function(reverse)


@formula_function
def inverse(function: Any) -> Any:
    """The declared inverse of an index function."""
    return function.inverted()


# ---- algebra and form ----------------------------------------------------------------------------------------------


def _algebra(function: Term, context: Context) -> tuple[Algebra, str | None]:
    algebra = algebra_of(function)
    if algebra.rounds and context.policy == "exact":
        return algebra, "its laws hold up to rounding only, and the policy is exact"
    return algebra, None


def _associative(function: Term, context: Context) -> str | None:
    algebra, refused = _algebra(function, context)
    return refused if algebra.associative else "it is not declared associative"


def _commutative(function: Term, context: Context) -> str | None:
    algebra, refused = _algebra(function, context)
    return refused if algebra.commutative else "it is not declared commutative"


def _idempotent(function: Term, context: Context) -> str | None:
    del context
    return None if algebra_of(function).idempotent else "it is not declared idempotent"


def _invertible(function: Any, context: Context) -> str | None:
    del context
    return None if function.inverse is not None else f"{function} has no declared inverse"


def _is_function_of(kind: str) -> Callable[[Any, Context], str | None]:
    def check(value: Any, context: Context) -> str | None:
        del context
        given = value.type if isinstance(value, Term) else value
        while isinstance(given, Function):
            given = given.result
        return None if isinstance(given, Array) == (kind == "array") else f"{given} is not {kind}"

    return check


def _reassociable(value: Term, context: Context) -> str | None:
    if not isinstance(value.type, Scalar) or value.type.kind is Kind.BOOL:
        return f"{value.type} has no sums and products"
    return (
        None
        if value.type.is_integer or context.policy != "exact"
        else f"sums of {value.type} round, and the policy is exact"
    )


def _pairs(xs: Term, context: Context) -> str | None:
    del context
    element = _array(xs).element
    return None if isinstance(element, Tuple) and len(element.items) == 2 else f"{element} is not a pair"


def _sequential(level: Level, context: Context) -> str | None:
    del context
    inside = level.kind in (LevelKind.SEQUENTIAL, LevelKind.UNROLLED)
    return None if inside else f"{level} does not run one iteration after another"


def _atomic(value: Term, context: Context) -> str | None:
    del context
    while value.kind == "proj":
        value = value.args[0]
    return None if value.kind in ("param", "bound", "const") else f"{value} is not a variable, constant or component"


_PREDICATES: dict[str, Callable[[Any, Context], str | None]] = {
    "associative": _associative,
    "commutative": _commutative,
    "idempotent": _idempotent,
    "invertible": _invertible,
    "array": _is_function_of("array"),
    "element": _is_function_of("element"),
    "reassociable": _reassociable,
    "pairs": _pairs,
    "sequential": _sequential,
    "atomic": _atomic,
}


def _word_check(word: str, names: list[str]) -> Check:
    if word in _RELATIONS:
        return _RELATIONS[word](*names)
    predicate = _PREDICATES[word]
    (name,) = names
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"a metavariable expected: {name}")

    def check(bindings: Bindings, context: Context) -> str | None:
        return predicate(bindings[name], context)

    return check


def _neutral(element: str, function: str) -> Check:
    """`neutral e f`: e is the declared neutral element of f; binds e if the left side does not."""

    def check(bindings: Bindings, context: Context) -> str | None:
        algebra, refused = _algebra(bindings[function], context)
        if algebra.neutral is None:
            return "no neutral element is declared"
        if refused is not None:
            return refused
        known = bindings.setdefault(element, algebra.neutral)
        return None if known is algebra.neutral else f"{known} is not the neutral element {algebra.neutral}"

    return check


def _ignored(element: str, function: str) -> Check:
    """`ignored c f`: f a c = a for all a; binds c if the left side does not."""

    def check(bindings: Bindings, context: Context) -> str | None:
        if context.policy == "exact" and any(_rounds(t) for t in subterms(bindings[function])):
            return "x + 0 is x up to the sign of 0 only, and the policy is exact"
        if element not in bindings:
            found = ignored_element(bindings[function])
            if found is None:
                return "no element is known that it ignores"
            bindings[element] = found
        elif not ignores(bindings[function], bindings[element]):
            return f"it is not known to ignore {bindings[element]}"
        return None

    return check


def _rounds(term: Term) -> bool:
    floats = isinstance(term.type, Scalar) and (term.type.is_float or term.type.is_complex)
    return term.kind == "op" and term.attrs[0].rounds and floats


def _inverses(there: str, back: str) -> Check:
    """`inverse h g`: the index function h undoes g."""

    def check(bindings: Bindings, context: Context) -> str | None:
        del context
        h, g = bindings[there], bindings[back]
        same = g.inverse is h.forward and g.source is h.extent and g.extent is h.source
        return None if same else f"{h} is not the declared inverse of {g}"

    return check


def _zero(name: str, like: str) -> Check:
    """`zero o z`: o is the zero of z's type; binds o if the left side does not."""

    def check(bindings: Bindings, context: Context) -> str | None:
        del context
        zero = const(0, bindings[like].type)
        return None if bindings.setdefault(name, zero) is zero else f"{bindings[name]} is not 0"

    return check


def _zeros(name: str, array: str) -> Check:
    """`zeros o xs`: o is the element of xs's type that consists of zeros; binds o if the left side does not."""

    def check(bindings: Bindings, context: Context) -> str | None:
        del context
        zero = _zero_of(_array(bindings[array]).element)
        return None if bindings.setdefault(name, zero) is zero else f"{bindings[name]} is not zero"

    return check


def _zero_of(type_: Type) -> Term:
    if isinstance(type_, Array):
        return replicate(type_.size, _zero_of(type_.element))
    if isinstance(type_, Tuple):
        return tuple_(*map(_zero_of, type_.items))
    return const(0, type_)


def _may_enclose(level: str, function: str) -> Check:
    """`level may enclose f`: on the machine of the context if one is given, else what no machine allows is refused."""

    def check(bindings: Bindings, context: Context) -> str | None:
        outer: Level = bindings[level] if level in bindings else Level.parse(level)
        for t in subterms(bindings[function]):
            inner = t["level"] if "level" in t.pattern.attributes else None
            if inner is None:
                continue
            if context.machine is not None:
                allowed = context.machine.may_nest(outer, inner)
            else:
                allowed = inner != outer or outer.kind in (LevelKind.SEQUENTIAL, LevelKind.UNROLLED, LevelKind.INLINE)
            if not allowed:
                return f"a loop at {inner} stands inside, which {outer} may not enclose"
        return None

    return check


_RELATIONS: dict[str, Callable[[str, str], Check]] = {
    "neutral": _neutral,
    "ignored": _ignored,
    "inverse": _inverses,
    "zero": _zero,
    "zeros": _zeros,
}


@formula_function
def source(function: Any) -> Expr:
    """The length of the array that an index function reads."""
    return as_expr(function.source)
