"""The primitives as functions over values, made from the patterns' declarations.

A pattern with a signature takes its size attributes first, then its arguments in the order of the signature
(`split size xs`, `map f xs`, `reduce f z xs`); the others say here how they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lithify.arith import Expr, proves
from lithify.lang import build, coerce
from lithify.lang.coerce import as_array, as_function, as_term, call, lambda_of
from lithify.lang.errors import TypeMismatch
from lithify.lang.index_functions import IndexFunction, canonical_variable, index_function, reverse, stride
from lithify.lang.levels import Memory
from lithify.lang.operate import operate
from lithify.lang.operators import convert_to
from lithify.lang.patterns import PATTERNS, Pattern
from lithify.lang.positions import Position
from lithify.lang.scalars import Scalar, accumulator_of
from lithify.lang.term import Term, make
from lithify.lang.types import Array, Function, Index, Tuple, shape_of
from lithify.lang.values import (
    FunctionValue,
    LiteralArray,
    Numeral,
    PadMode,
    Rearrangement,
    Resolve,
    TupleValue,
    Value,
    describe,
)


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive's notation: its name, how many arguments it takes, one line of help, and what it makes of them.

    `resolve` gives meaning to free size names. `build(resolve, arguments, attributes)`.
    """

    name: str
    arity: int
    meaning: str
    build: Callable[..., Value]

    def function(self, resolve: Resolve | None = None, **attributes: Any) -> FunctionValue:
        """The primitive as a function over values."""
        return FunctionValue(self.name, self.arity, lambda *a: self.build(resolve, a, attributes))


def as_size(value: Value, resolve: Resolve | None, what: str) -> Expr:
    """The size that an argument denotes."""
    if not isinstance(value, Numeral):
        hint = None
        if isinstance(value, Position) or (isinstance(value, Term) and isinstance(value.type, (Index, Scalar))):
            hint = "a size is known before the program runs; an index reads an element, xs[i], and slide makes windows"
        raise TypeMismatch(f"{what} takes a size, {describe(value)} given", hint=hint)
    return value.as_size(resolve)


# ---- patterns with a signature ---------------------------------------------------------------------------------------


def _from_signature(pattern: Pattern, sizes: tuple[str, ...]) -> Primitive:
    signature = pattern.signature
    assert signature is not None

    def build_(resolve: Resolve | None, arguments: tuple[Value, ...], attributes: dict[str, Any]) -> Term:
        given = {name: as_size(a, resolve, pattern.name) for name, a in zip(sizes, arguments, strict=False)}
        attrs = {name: attributes.get(name, given.get(name)) for name in pattern.attributes}
        return apply_pattern(pattern, attrs, arguments[len(sizes) :])

    return Primitive(pattern.name, len(sizes) + signature.arity, pattern.meaning, build_)


def apply_pattern(pattern: Pattern, attrs: dict[str, Any], arguments: tuple[Value, ...]) -> Term:
    """A pattern over values: arguments that are no functions tell the types of those that are."""
    signature = pattern.signature
    assert signature is not None
    bindings = dict(attrs)
    terms: dict[int, Term] = {}

    def take(position: int, term: Term) -> None:
        clash = signature.bind(position, term.type, bindings)
        if clash is not None:
            raise TypeMismatch(
                f"argument {position + 1} of {pattern.name} does not fit: {clash}",
                hint=f"{pattern.name} : {signature.text}   with {term.type} as argument {position + 1}",
            )
        terms[position] = term

    waiting = [i for i in range(len(arguments)) if signature.takes_function(i)]
    for position, argument in enumerate(arguments):
        if position not in waiting:
            is_array = signature.takes_array(position)
            take(position, as_array(argument, pattern.name) if is_array else as_term(argument))
    while waiting:
        position, (parameters, result) = next(
            (i, expected) for i in waiting if (expected := signature.expected(i, bindings)) is not None
        )
        waiting.remove(position)
        take(position, lambda_of(arguments[position], parameters, result, pattern.name))
    return make(pattern, tuple(attrs.values()), tuple(terms[i] for i in range(len(arguments))))


# ---- patterns with a notation of their own ---------------------------------------------------------------------------

Attributes = dict[str, Any]
Arguments = tuple[Value, ...]


def _map(_resolve: Resolve | None, arguments: Arguments, attributes: Attributes) -> Value:
    f, xs = arguments
    if coerce.is_array(f) and isinstance(xs, FunctionValue):
        raise _swapped("map", "f xs")
    if isinstance(xs, Term) and not isinstance(xs.type, Array) and coerce.is_reduction(xs):
        return call(f, xs)
    attrs = {"level": None, "name": None} | attributes
    return apply_pattern(PATTERNS["map"], attrs, (as_function(f, "map"), as_array(xs, "map")))


def _swapped(name: str, order: str) -> TypeMismatch:
    return TypeMismatch(f"{name} takes its function first", hint=f"are arguments swapped? write `{name} {order}`")


def _fold(kind: str) -> Callable[[Resolve | None, Arguments, Attributes], Value]:
    def build_(_resolve: Resolve | None, arguments: Arguments, attributes: Attributes) -> Value:
        f, initial, xs = arguments
        if not isinstance(f, FunctionValue) and any(isinstance(a, FunctionValue) for a in (initial, xs)):
            raise _swapped(kind, "f initial xs")
        if coerce.is_array(initial) and isinstance(xs, Numeral):
            hint = f"are arguments swapped? write `{kind} f initial xs`"
            raise TypeMismatch(f"{kind} takes an array last, {describe(xs)} given", hint=hint)
        array = as_array(xs, kind)
        function, start = coerce.combining(f, initial, build.element_type(array), kind)
        attrs = {"level": None, "memory": None, "name": None} | attributes
        return make(PATTERNS[kind], tuple(attrs.values()), (function, start, array))

    return build_


def _join(_resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    xs = arguments[0]
    if isinstance(xs, Term):
        nested = isinstance(xs.type, Array) and isinstance(xs.type.element, Array)
        if not nested and (coerce.is_reduction(xs) or coerce.elements_are_reductions(xs)):
            return xs
    return build.join(as_array(xs, "join"))


def _iterate(resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    """A function that keeps the type is iterated by the core; one that does not is unrolled for a constant count."""
    count, f, x = arguments
    if isinstance(count, FunctionValue):  # the slides write `iterate f n`
        count, f = f, count
    times, function = as_size(count, resolve, "iterate"), as_function(f, "iterate")
    start = as_term(x)
    try:
        return build.iterate(times, lambda_of(function, (start.type,), start.type, "iterate"), start)
    except TypeMismatch as mismatch:
        if times.constant is None:
            mismatch.hint = "a function that changes the type is iterated a constant number of times only"
            raise
        if times.constant < 0:
            raise
        value: Value = start
        for _ in range(times.constant):
            value = call(function, value)
        return value


def to_memory(memory: Memory) -> FunctionValue:
    """`to[mem]`: of a value, the value written there; of a function, the function whose results are written there."""
    return FunctionValue(f"to[{memory}]", 1, lambda value: _to(memory, value))


def _to(memory: Memory, value: Value) -> Value:
    if isinstance(value, FunctionValue):
        f = value
        return FunctionValue(f"to[{memory}] ({f.name})", 1, lambda x: _to(memory, call(f, x)))
    if coerce.components(value) or isinstance(value, Term | Numeral | LiteralArray):
        return build.to(memory, as_term(value))
    raise TypeMismatch(f"to[{memory}] takes a value or a function, {describe(value)} given")


def _zip(items: Arguments) -> Value:
    """Scalars among the arrays are repeated."""
    items = coerce.in_context(items)
    arrays = [item.type for item in items if isinstance(item, Term) and isinstance(item.type, Array)]

    def array(item: Value) -> Term:
        if arrays and isinstance(item, Numeral):
            return build.replicate(arrays[0].size, coerce.spread(item, arrays[0].element))
        if arrays and isinstance(item, Term) and not isinstance(item.type, Array | Tuple):
            return build.replicate(arrays[0].size, item)
        return as_array(item, "zip")

    return build.zip_(*map(array, items))


def _variadic(
    name: str, make_: Callable[[Arguments], Value]
) -> Callable[[Resolve | None, Arguments, Attributes], Value]:
    """`zip a b` and `zip (a, b, c)`: of one tuple, its components; of anything else, one more argument is awaited."""

    def build_(_resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
        first = arguments[0]
        items = coerce.components(first)
        if items:
            return make_(items)
        return FunctionValue(name, 1, lambda second: make_((first, second)))

    return build_


def _concat(items: Arguments) -> Value:
    return build.concat(*[as_array(item, "concat") for item in coerce.in_context(items)])


def _pad(resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    left, right = (as_size(a, resolve, "pad") for a in arguments[:2])
    mode, xs = arguments[2], as_array(arguments[3], "pad")
    element = build.element_type(xs)
    if isinstance(mode, PadMode) and mode.fill is None:
        return build.pad_mode(mode.name, left, right, xs)
    fill = mode.fill if isinstance(mode, PadMode) else mode
    assert fill is not None
    return build.pad(left, right, as_term(fill, element), xs)


def _formula(function: FunctionValue, length: Expr, resolve: Resolve | None) -> IndexFunction:
    """The index function of `λ i . ..` on an array of a length; it has no inverse, so that it can only be read."""

    def forward(i: Expr) -> Expr:
        return as_size(call(function, Numeral(i)), resolve, "reorder")

    text = str(forward(canonical_variable(length)))
    return index_function(text, length, length, forward)


def _reorder(resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    how, xs = arguments[0], as_array(arguments[1], "reorder")
    if isinstance(how, FunctionValue) and how.name == "reverse":
        return build.reindex(reverse(build.length(xs)), xs)
    if isinstance(how, FunctionValue):
        return build.reindex(_formula(how, build.length(xs), resolve), xs)
    if not isinstance(how, Rearrangement):
        raise TypeMismatch(f"reorder takes an index function (stride s, reverse, λ i . ..), {describe(how)} given")
    return build.reindex(how.make(build.length(xs)), xs)


def _stride(resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    step = as_size(arguments[0], resolve, "stride")
    return Rearrangement(f"stride {step}", lambda n: stride(step, n))


def _reverse(_resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    xs = as_array(arguments[0], "reverse")
    return build.reindex(reverse(build.length(xs)), xs)


def _gather(_resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    """Indices below less than the length are indices of the array, too."""
    ids, xs = (as_array(a, "gather") for a in arguments)
    n, index = build.length(xs), build.element_type(ids)
    if isinstance(index, Index) and index.size is not n and proves(n - index.size):
        ids = build.map_(lambda i: as_term(i, Index(n)), ids)
    return apply_pattern(PATTERNS["gather"], {}, (ids, xs))


def _scatter(_resolve: Resolve | None, arguments: Arguments, attributes: Attributes) -> Value:
    ids, xs = (as_array(a, "scatter") for a in arguments)
    return build.scatter(attributes.get("mode", "permutation"), ids, xs)


def _pipe(_resolve: Resolve | None, arguments: Arguments, attributes: Attributes) -> Value:
    f, load, initial, xs = arguments
    array = as_array(xs, "pipe")
    loader = lambda_of(load, (build.element_type(array),), None, "pipe")
    assert isinstance(loader.type, Function)
    function, start = coerce.combining(f, initial, loader.type.result, "pipe")
    attrs = {"slots": 2, "lag": 0, "roles": None, "name": None} | attributes
    return make(PATTERNS["pipe"], tuple(attrs.values()), (function, loader, start, array))


def at(xs: Value, index: Value, resolve: Resolve | None = None) -> Value:
    """`xs[i]`: a number is checked against the length, an index must be one of the array's."""
    if isinstance(xs, LiteralArray) and isinstance(index, Numeral):
        position = index.as_size(resolve).constant
        if position is not None and 0 <= position < len(xs.items):
            return xs.items[position]
    array = as_array(xs, "indexing")
    if isinstance(index, Numeral):
        return build.at(array, index.as_size(resolve))
    n = build.length(array)
    if isinstance(index, Position) or (isinstance(index, Term) and isinstance(index.type, Index)):
        found = index if isinstance(index, Position) else Position.of(index)
        return build.at(array, found.index(n, f"an array of {n}"))
    return build.at(array, as_term(index))


def projection(value: Value, component: int) -> Value:
    """`p.0`."""
    if isinstance(value, TupleValue) and component < len(value.items):
        return value.items[component]
    if isinstance(value, Numeral):  # of a literal that stands for a tuple of equal numbers
        value.default_type()
        return value
    if isinstance(value, Term):
        return build.proj(component, value)
    raise TypeMismatch(f"component {component} is taken of {describe(value)}")


def array_literal(items: Iterable[Value]) -> Value:
    """`[a, b]`: numbers take the type of the other elements."""
    values = tuple(items)
    if not values:
        raise TypeMismatch("an array literal has at least one element")
    numbers = tuple(v for v in values if isinstance(v, Numeral | LiteralArray))
    if len(numbers) == len(values):
        return LiteralArray(numbers)
    typed = next(as_term(v).type for v in values if not isinstance(v, Numeral | LiteralArray))
    return build.array_literal(*[as_term(v, typed) for v in values])


def _scalar_of(value: Value, what: str) -> Scalar:
    """The scalar type of a number, or of an array's numbers."""
    type_ = shape_of(as_term(value).type)[1]
    if not isinstance(type_, Scalar):
        raise TypeMismatch(f"{what} takes a number or an array of numbers, {describe(value)} given")
    return type_


def _wide(_resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    scalar = _scalar_of(arguments[0], "wide")
    return operate(convert_to(accumulator_of(scalar)), as_term(arguments[0]))


def _like(_resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    model, value = arguments
    scalar = _scalar_of(model, "like")
    if isinstance(value, Term) and value.type is scalar:
        return value
    return operate(convert_to(scalar), value)


def _reduction_of_parts(resolve: Resolve | None, arguments: Arguments, attributes: Attributes) -> Value:
    size, f, initial, xs = arguments
    parts = build.split(as_size(size, resolve, "partialReduce"), as_array(xs, "partialReduce"))
    fold = _fold("reduce")
    return build.map_(lambda part: as_term(fold(resolve, (f, initial, part), attributes)), parts)


def _swz(resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    width = as_size(arguments[0], resolve, "swz").constant
    if width not in (32, 64, 128):
        raise TypeMismatch(f"swz takes a width of 128, 64 or 32 bytes, not {describe(arguments[0])}")
    return build.swz(width, as_array(arguments[1], "swz"))


def _untile(_resolve: Resolve | None, arguments: Arguments, _attributes: Attributes) -> Value:
    """I.J tiles of n.m elements to rows. Tiles in register blocks, n.m.l with l rows in a block, are put back too."""
    tiles = as_array(arguments[0], "untile")
    rank = len(shape_of(tiles.type)[0])
    if rank == 5:
        return _untile(None, (build.map_(lambda row: build.map_(_unblock, row), tiles),), {})
    if rank != 4:
        raise TypeMismatch(f"untile takes tiles, I.J.n.m.t, {tiles.type} given")
    return build.join(build.map_(lambda row: build.map_(build.join, build.transpose(row)), tiles))


def _unblock(tile: Term) -> Term:
    return build.join(build.map_(build.transpose, tile))


_OWN = (
    Primitive("map", 2, PATTERNS["map"].meaning, _map),
    Primitive("reduce", 3, PATTERNS["reduce"].meaning, _fold("reduce")),
    Primitive("scan", 3, PATTERNS["scan"].meaning, _fold("scan")),
    Primitive("pipe", 4, PATTERNS["pipe"].meaning, _pipe),
    Primitive("join", 1, PATTERNS["join"].meaning, _join),
    Primitive("iterate", 3, PATTERNS["iterate"].meaning, _iterate),
    Primitive("zip", 1, PATTERNS["zip"].meaning, _variadic("zip", _zip)),
    Primitive("concat", 1, PATTERNS["concat"].meaning, _variadic("concat", _concat)),
    Primitive("unzip", 1, PATTERNS["unzip"].meaning, lambda _r, a, _k: build.unzip(as_array(a[0], "unzip"))),
    Primitive("pad", 4, PATTERNS["pad"].meaning, _pad),
    Primitive("fill", 1, "pad with a value", lambda _r, a, _k: PadMode("fill", a[0])),
    Primitive("reorder", 2, "read through an index function: stride s, reverse", _reorder),
    Primitive("stride", 1, "the index function that steps s elements at a time", _stride),
    Primitive("reverse", 1, "last element first", _reverse),
    Primitive("gather", 2, PATTERNS["gather"].meaning, _gather),
    Primitive("scatter", 2, PATTERNS["scatter"].meaning, _scatter),
    Primitive("swz", 2, PATTERNS["swz"].meaning, _swz),
    Primitive("partialReduce", 4, "reduce parts of n elements: map (reduce f z) . split n", _reduction_of_parts),
    Primitive("untile", 1, "rows of tiles of a matrix, put back together", _untile),
    Primitive("wide", 1, "a number in the type of sums: f32 for floats of 8 and 16 bits, i32 for such integers", _wide),
    Primitive("like", 2, "the second argument in the type of the first, or of its numbers", _like),
    Primitive("id", 1, "the argument", lambda _r, a, _k: a[0]),
    Primitive("fst", 1, "the first component", lambda _r, a, _k: projection(a[0], 0)),
    Primitive("snd", 1, "the second component", lambda _r, a, _k: projection(a[0], 1)),
    Primitive("singleton", 1, "the array of one element", lambda _r, a, _k: array_literal(a)),
    Primitive("length", 1, "the number of elements", lambda _r, a, _k: Numeral(build.length(as_array(a[0], "length")))),
)  # fmt: skip

# the patterns whose notation is their signature, behind their attributes
_SIZES = {
    "split": ("size",), "take": ("size",), "drop": ("size",), "replicate": ("size",), "generate": ("size",),
    "slide": ("size", "step"), "transpose": (),
}  # fmt: skip


PRIMITIVES: dict[str, Primitive] = {
    **{name: _from_signature(PATTERNS[name], sizes) for name, sizes in _SIZES.items()},
    **{primitive.name: primitive for primitive in _OWN},
}
"""What text and Python can name, by name; attributes (level, memory, name) are given with `Primitive.function`."""
