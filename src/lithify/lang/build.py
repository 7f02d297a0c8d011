"""Constructors of terms for Python code: rules, strategies, operators and front ends build terms with these.

Functions may be lambdas of the language or Python functions over terms; sizes may be ints or `Expr`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lithify.arith import Expr, as_expr, proves
from lithify.lang.assumptions import OpenCondition, is_assumed
from lithify.lang.errors import TypeMismatch
from lithify.lang.index_functions import IndexFormula, IndexFunction
from lithify.lang.levels import Level, Memory
from lithify.lang.operators import OPERATORS, Operator, convert_to
from lithify.lang.patterns import PATTERNS
from lithify.lang.scalars import Kind, Scalar
from lithify.lang.term import Term, abstract, make
from lithify.lang.types import Array, Index, Tuple, Type

Size = int | Expr
Function1 = Term | Callable[[Term], Term]
Function2 = Term | Callable[[Term, Term], Term]


def _function(f: Function1, parameter: Type) -> Term:
    return f if isinstance(f, Term) else abstract(parameter, f)


def _function2(f: Function2, first: Type, second: Type) -> Term:
    return f if isinstance(f, Term) else abstract(first, lambda a: abstract(second, lambda x: f(a, x)))


def element_type(xs: Term) -> Type:
    """The element type of an array term; raises TypeMismatch when it is not an array."""
    if not isinstance(xs.type, Array):
        raise TypeMismatch(f"an array expected, {xs.type} given")
    return xs.type.element


def length(xs: Term) -> Expr:
    """The length of an array term; raises TypeMismatch when it is not an array."""
    if not isinstance(xs.type, Array):
        raise TypeMismatch(f"an array expected, {xs.type} given")
    return xs.type.size


# ---- leaves --------------------------------------------------------------------------------------------------------


def param(name: str, type_: Type) -> Term:
    """A free variable: an input of the program."""
    return make(PATTERNS["param"], (name, type_), ())


class _Value:
    """A constant's value as an attribute: equal when type and bits are equal (0.0 is not -0.0, nan is nan)."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = (type(value).__name__, repr(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)


def const(value: Any, type_: Type) -> Term:
    """A scalar constant (value is converted to the type's kind) or an index constant."""
    if isinstance(type_, Index):
        value = as_expr(value)
        if not (proves(value) and proves(type_.size - value - 1)):
            error = _outside(value, type_)
            if not isinstance(error, OpenCondition) or not is_assumed(*error.conditions):
                raise error
        return make(PATTERNS["const"], (_Value(value), type_), ())
    if not isinstance(type_, Scalar):
        raise TypeMismatch(f"a constant is a scalar or an index, not a {type_}")
    convert = {Kind.BOOL: bool, Kind.SIGNED: int, Kind.UNSIGNED: int, Kind.FLOAT: float, Kind.COMPLEX: complex}
    if type_.is_integer:
        low, high = type_.limits
        if not _is_whole(value) or not low <= int(value) <= high:
            raise TypeMismatch(f"{value} is not a value of {type_} ({low} .. {high})")
    return make(PATTERNS["const"], (_Value(convert[type_.kind](value)), type_), ())


def _is_whole(value: Any) -> bool:
    try:
        return bool(value == int(value))
    except (OverflowError, TypeError, ValueError):  # an infinity, a complex number, a NaN
        return False


def _outside(value: Expr, type_: Index) -> TypeMismatch:
    """An index constant that is not, or not for all sizes, below the type's size."""
    if proves(-value - 1) or proves(value - type_.size):
        return TypeMismatch(
            f"index {value} is outside {type_}", hint="the first element is at 0, the last at length - 1"
        )
    return OpenCondition(
        f"index {value} is not inside {type_} for all sizes, as far as is known",
        [f"{value} < {type_.size}" if proves(value) else f"0 <= {value} < {type_.size}"],
        hint="give arguments, or their types: it may be for their sizes",
    )


def constant_value(t: Term) -> Any:
    """The Python value of a `const` term (an Expr for index constants)."""
    return t.attrs[0].value


# ---- scalars -------------------------------------------------------------------------------------------------------


def op(operator: str | Operator, *operands: Term) -> Term:
    """A scalar operator applied to terms."""
    found = OPERATORS[operator] if isinstance(operator, str) else operator
    return make(PATTERNS["op"], (found,), operands)


def add(a: Term, b: Term) -> Term:
    """a + b."""
    return op("add", a, b)


def mul(a: Term, b: Term) -> Term:
    """a b."""
    return op("mul", a, b)


def power(base: Term, exponent: int) -> Term:
    """base to a whole power, as a product; of 1 / base, where the exponent is negative."""
    assert isinstance(base.type, Scalar)
    one = const(1, base.type)
    if exponent < 0:  # not 1 / (base * base): that is 0 where only the square is too large
        return power(op("div", one, base), -exponent)
    if exponent < 2:
        return base if exponent else one
    half = power(base, exponent // 2)
    return mul(mul(half, half), base) if exponent % 2 else mul(half, half)


def select(condition: Term, then: Term, otherwise: Term) -> Term:
    """`then` where the condition holds, else `otherwise`; on tuples by component."""
    if isinstance(then.type, Tuple):
        return tuple_(*[select(condition, proj(i, then), proj(i, otherwise)) for i in range(len(then.type.items))])
    return op("select", condition, then, otherwise)


def convert(scalar: Scalar, value: Term) -> Term:
    """Conversion to a scalar type (the term itself when it has that type)."""
    return value if value.type is scalar else op(convert_to(scalar), value)


# ---- structure -----------------------------------------------------------------------------------------------------


def tuple_(*items: Term) -> Term:
    """(a, b, ..)."""
    return make(PATTERNS["tuple"], (), items)


def proj(component: int, value: Term) -> Term:
    """value.component."""
    return make(PATTERNS["proj"], (component,), (value,))


def let(value: Term, body: Function1) -> Term:
    """let x = value in body x."""
    return make(PATTERNS["let"], (), (value, _function(body, value.type)))


def array_literal(*elements: Term) -> Term:
    """[a, b, ..]."""
    return make(PATTERNS["array"], (), elements)


def at(xs: Term, index: Term | Size) -> Term:
    """xs[index]; a constant index is checked against the length."""
    if not isinstance(index, Term):
        index = const(index, Index(length(xs)))
    return make(PATTERNS["at"], (), (xs, index))


def index(expression: Expr, operands: tuple[Term, ...], type_: Index | Scalar) -> Term:
    """An index of a type, or an integer: an expression over one `operand_variable` for each of the operands."""
    formula = IndexFormula(expression, tuple([o.type.size for o in operands if isinstance(o.type, Index)]))
    return make(PATTERNS["index"], (formula, type_), operands)


# ---- patterns ------------------------------------------------------------------------------------------------------


def map_(f: Function1, xs: Term, level: Level | None = None, name: str | None = None) -> Term:
    """map f xs."""
    return make(PATTERNS["map"], (level, name), (_function(f, element_type(xs)), xs))


def reduce_(
    f: Function2,
    initial: Term,
    xs: Term,
    level: Level | None = None,
    memory: Memory | None = None,
    name: str | None = None,
) -> Term:
    """reduce f initial xs."""
    function = _function2(f, initial.type, element_type(xs))
    return make(PATTERNS["reduce"], (level, memory, name), (function, initial, xs))


def scan(
    f: Function2,
    initial: Term,
    xs: Term,
    level: Level | None = None,
    memory: Memory | None = None,
    name: str | None = None,
) -> Term:
    """scan f initial xs: the inclusive prefix results."""
    function = _function2(f, initial.type, element_type(xs))
    return make(PATTERNS["scan"], (level, memory, name), (function, initial, xs))


def pipe(
    f: Function2,
    load: Function1,
    initial: Term,
    xs: Term,
    slots: int,
    lag: int = 0,
    roles: str | None = None,
    name: str | None = None,
) -> Term:
    """reduce (λacc x. f acc (load x)) initial xs with `slots` loaded tiles in flight."""
    loader = _function(load, element_type(xs))
    function = _function2(f, initial.type, loader.type.result)  # type: ignore[attr-defined]
    return make(PATTERNS["pipe"], (slots, lag, roles, name), (function, loader, initial, xs))


def iterate(count: Size, f: Function1, x: Term) -> Term:
    """f (f .. (f x)), count times."""
    return make(PATTERNS["iterate"], (as_expr(count),), (_function(f, x.type), x))


def generate(size: Size, f: Function1) -> Term:
    """[f 0, .., f (size - 1)]."""
    size = as_expr(size)
    return make(PATTERNS["generate"], (size,), (_function(f, Index(size)),))


def to(memory: Memory, value: Term) -> Term:
    """to[memory] value."""
    return make(PATTERNS["to"], (memory,), (value,))


def launch(grid: tuple[Size, ...], group: tuple[Size, ...], value: Term) -> Term:
    """The root of a kernel."""
    sizes = (tuple(map(as_expr, grid)), tuple(map(as_expr, group)))
    return make(PATTERNS["launch"], sizes, (value,))


def instr(row: Any, *operands: Term) -> Term:
    """A row of the machine's instruction table (an object with `result_type` and `definition`) applied to operands."""
    return make(PATTERNS["instr"], (row,), operands)


def scatter(mode: str | Operator, ids: Term, xs: Term) -> Term:
    """Write xs[i] to position ids[i]; mode "permutation" or a commutative operator applied atomically."""
    return make(PATTERNS["scatter"], (mode,), (ids, xs))


# ---- views ---------------------------------------------------------------------------------------------------------


def split(size: Size, xs: Term) -> Term:
    """Rows of `size` elements; size must divide the length."""
    return make(PATTERNS["split"], (as_expr(size),), (xs,))


def join(xs: Term) -> Term:
    """The rows one after another."""
    return make(PATTERNS["join"], (), (xs,))


def transpose(xs: Term) -> Term:
    """Swap the two outer dimensions."""
    return make(PATTERNS["transpose"], (), (xs,))


def take(size: Size, xs: Term) -> Term:
    """The first `size` elements."""
    return make(PATTERNS["take"], (as_expr(size),), (xs,))


def drop(size: Size, xs: Term) -> Term:
    """All but the first `size` elements."""
    return make(PATTERNS["drop"], (as_expr(size),), (xs,))


def slide(size: Size, step: Size, xs: Term) -> Term:
    """The windows of `size` elements at distance `step`."""
    return make(PATTERNS["slide"], (as_expr(size), as_expr(step)), (xs,))


def filled(type_: Type, value: Term) -> Term:
    """A value of the (array or tuple) type all of whose scalars are `value`."""
    if isinstance(type_, Array):
        return replicate(type_.size, filled(type_.element, value))
    if isinstance(type_, Tuple):
        return tuple_(*[filled(item, value) for item in type_.items])
    return value


def pad(left: Size, right: Size, fill: Term, xs: Term) -> Term:
    """`left` and `right` more elements, all equal to `fill` (a scalar is spread over elements that are arrays)."""
    element = element_type(xs)
    if fill.type is not element and isinstance(fill.type, Scalar):
        fill = filled(element, fill)
    return make(PATTERNS["pad"], (as_expr(left), as_expr(right), "fill"), (xs, fill))


def pad_mode(mode: str, left: Size, right: Size, xs: Term) -> Term:
    """Padding with elements of xs: "clamp" (the edge), "mirror" (reflected, edge included), "wrap" (periodic)."""
    return make(PATTERNS["pad"], (as_expr(left), as_expr(right), mode), (xs,))


def zip_(*arrays: Term) -> Term:
    """The array of tuples."""
    return make(PATTERNS["zip"], (), arrays)


def unzip(xs: Term) -> Term:
    """The tuple of arrays."""
    return make(PATTERNS["unzip"], (), (xs,))


def concat(*arrays: Term) -> Term:
    """The arrays one after another."""
    return make(PATTERNS["concat"], (), arrays)


def replicate(size: Size, x: Term) -> Term:
    """The same element `size` times."""
    return make(PATTERNS["replicate"], (as_expr(size),), (x,))


def reindex(function: IndexFunction, xs: Term) -> Term:
    """xs read through an index function."""
    return make(PATTERNS["reindex"], (function,), (xs,))


def gather(ids: Term, xs: Term) -> Term:
    """[xs[ids[0]], xs[ids[1]], ..]."""
    return make(PATTERNS["gather"], (), (ids, xs))


def swz(width: int, xs: Term) -> Term:
    """16-byte chunks of each row xored by the row number, within `width` bytes (128, 64 or 32)."""
    return make(PATTERNS["swz"], (width,), (xs,))


def copy(x: Term, *levels: Level | None) -> Term:
    """An explicit copy: maps down to the scalars (or tuples), the outer ones at the given levels, the rest abstract.

    An abstract copy `map id` would vanish, so at least as many levels as array dimensions are needed to keep it.
    """
    if not isinstance(x.type, Array):
        return x
    level, rest = (levels[0], levels[1:]) if levels else (None, ())
    return map_(lambda e: copy(e, *rest), x, level)
