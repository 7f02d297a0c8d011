"""The objects that Python functions are traced with: values with Python's operators, and functions over them.

    xs >> lf.map(lambda x: x * x) >> lf.reduce(lf.add, 0)

Nothing here reads source text: a function is called once, with objects that record what is done to them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from lithify.arith import Expr
from lithify.lang import build
from lithify.lang.coerce import as_term, call, call_with_element, components, function_of_term
from lithify.lang.errors import TypeMismatch
from lithify.lang.foreign import AS_OPERATORS, written_as
from lithify.lang.given import kind_of
from lithify.lang.levels import Level, Memory
from lithify.lang.operate import operate
from lithify.lang.operators import OPERATORS, Operator
from lithify.lang.place import located, place
from lithify.lang.positions import Position, is_index
from lithify.lang.primitives import PRIMITIVES, array_literal, at, projection
from lithify.lang.scalars import SCALARS, bool_, scalar_of_dtype
from lithify.lang.term import Term
from lithify.lang.types import Function, Tuple, Type, UnderConstruction
from lithify.lang.uses import SIZES, Usable, sizes_of
from lithify.lang.values import (
    FunctionValue,
    LiteralArray,
    Numeral,
    PadMode,
    Rearrangement,
    TupleValue,
    Value,
    describe,
)

_ELSE = "the patterns and operators are functions of lithify's: lf.map, lf.reduce, lf.sqrt, .. (docs/notation.md)"
_DIVISION = "`/` of integers drops the fraction; of floats write lf.floor(x / y)"
# Elements, at most, of an array of Python's that stands in a program.
_MOST_LITERALS = 512


class NoAttribute(TypeMismatch, AttributeError):
    """An attribute that traced values do not have: an array's method, for instance."""


class NoLength(TypeMismatch, TypeError):
    """The length of a traced array was asked for; `list` and the like do without."""


class Traced(UnderConstruction):
    """A value under construction: operators build terms, `xs >> f` applies f; `p[0]`, unpacking, `xs[i]` take parts."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def type(self) -> Type:
        """The type; that of a number is decided by its context later, and its default until then."""
        return as_term(self.value).type

    @property
    def term(self) -> Term:
        """The core term."""
        return as_term(self.value)

    def __repr__(self) -> str:
        return str(self.value)

    def __bool__(self) -> NoReturn:
        raise TypeMismatch(
            "the value of a condition is not known while the program is built",
            where=place(),
            hint="write lf.select(condition, a, b), lf.max(a, b) for Python's max, and & | ~ for and, or, not",
        )

    def __float__(self) -> NoReturn:
        raise TypeMismatch(
            "a number is not known while the program is built",
            where=place(),
            hint="write lf.sin(x), not math.sin(x), and lf.f32(x), not float(x)",
        )

    __int__ = __complex__ = __float__

    def __index__(self) -> NoReturn:
        raise TypeMismatch(
            "an index into something of Python's is not known while the program is built",
            where=place(),
            hint="a list becomes an array of the program by lf.let([1, 2], lambda table: .. table[i] ..)",
        )

    def __round__(self, digits: Any = None) -> NoReturn:
        raise self._rounded("round")

    def __floor__(self) -> NoReturn:
        raise self._rounded("floor")

    def __ceil__(self) -> NoReturn:
        raise self._rounded("ceil")

    def _rounded(self, name: str) -> TypeMismatch:
        message = f"Python's {name} is no function of programs: values are not known while one is built"
        return TypeMismatch(message, where=place(), hint=f"write lf.{name}(x)")

    def __divmod__(self, other: Any) -> NoReturn:
        hint = "write (x / y, x % y) of integers, (lf.floor(x / y), x % y) of floats"
        raise TypeMismatch("programs have no divmod", where=place(), hint=hint)

    __rdivmod__ = __divmod__

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        hint = "make a new one: lf.generate(n, lambda i: lf.select(i == 2, value, xs[i])), or lf.scatter(ids, xs)"
        raise TypeMismatch("arrays of a program are not changed", where=place(), hint=hint)

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        """Operators between NumPy's arrays and traced values are ours; its functions are not."""
        plain = AS_OPERATORS.get(function.__name__) if method == "__call__" and not options else None
        if plain is None:
            raise _numpys("sum" if method == "reduce" and function is np.add else function.__name__)
        left, right = (item if isinstance(item, Traced) else Traced(to_value(item)) for item in operands)
        return plain(left, right)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> NoReturn:
        raise _numpys(function.__name__)

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise _numpys("asarray")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name in Traced.__slots__:
            raise AttributeError(name)
        raise NoAttribute(f"a value of a program has no .{name}", where=place(), hint=written_as(name) or _ELSE)

    def __len__(self) -> int:
        items = components(self.value)
        if not items:
            raise NoLength("a length is not known while the program is built", where=place(), hint=written_as("size"))
        return len(items)

    def __matmul__(self, other: Any) -> NoReturn:
        raise TypeMismatch("programs have no operator @", where=place(), hint=written_as("matmul"))

    __rmatmul__ = __matmul__

    def __floordiv__(self, other: Any) -> Traced:
        if not is_index(self.value):
            raise TypeMismatch("the operator // divides indices", where=place(), hint=_DIVISION)
        return self / other  # type: ignore[no-any-return]

    def __rfloordiv__(self, other: Any) -> Traced:
        if not is_index(self.value):
            raise TypeMismatch("the operator // divides indices", where=place(), hint=_DIVISION)
        return other / self  # type: ignore[no-any-return]

    def __call__(self, *arguments: Any, **attributes: Any) -> NoReturn:
        raise TypeMismatch(f"{describe(self.value)} is no function", where=place(), hint="xs[i] is an element of xs")

    def __rrshift__(self, other: Any) -> NoReturn:
        raise TypeMismatch(f"{describe(self.value)} is no function that `>>` could apply", where=place())

    def __rshift__(self, function: Callable[..., Any]) -> Any:
        if isinstance(function, TracedFunction):
            return function(self)
        return traced(located(lambda: call_with_element(to_value(function), self.value)))

    def __getitem__(self, index: Any) -> Traced:
        value = self.value
        if isinstance(value, Numeral | TupleValue) or (isinstance(value, Term) and isinstance(value.type, Tuple)):
            return Traced(located(lambda: projection(value, index)))
        if isinstance(index, slice):
            return Traced(located(lambda: _slice(as_term(value), index)))
        return Traced(located(lambda: at(value, to_value(index))))

    def __iter__(self) -> Iterator[Traced]:
        items = components(self.value)
        if not items:
            raise TypeMismatch(
                f"only tuples can be unpacked, not {describe(self.value)}",
                where=place(),
                hint="use lf.map, lf.reduce or lf.sum",
            )
        return iter([Traced(item) for item in items])


def _numpys(name: str) -> TypeMismatch:
    """The error for a function of NumPy's on a traced value."""
    message = f"NumPy's {name} is no function of programs: values are not known while one is built"
    return TypeMismatch(message, where=place(), hint=written_as(name) or _ELSE)


def _slice(xs: Term, part: slice) -> Term:
    if part.step is not None:
        raise TypeMismatch("a slice has no step here", hint="use reorder(stride(s), xs) or slide")
    if part.stop is not None:
        xs = build.take(resolved(part.stop), xs)
    return xs if part.start is None else build.drop(resolved(part.start), xs)


def _binary(name: str) -> tuple[Callable[[Any, Any], Traced], Callable[[Any, Any], Traced]]:
    def forward(self: Traced, other: Any) -> Traced:
        return Traced(located(lambda: operate(OPERATORS[name], self.value, to_value(other))))

    def backward(self: Traced, other: Any) -> Traced:
        return Traced(located(lambda: operate(OPERATORS[name], to_value(other), self.value)))

    return forward, backward


def _unary(name: str) -> Callable[[Any], Traced]:
    return lambda self: Traced(located(lambda: operate(OPERATORS[name], self.value)))


for _python, _operator in (
    ("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("mod", "rem"), ("pow", "pow"),
    ("and", "and"), ("or", "or"), ("xor", "xor"), ("lshift", "shl"),
):  # fmt: skip
    _forward, _backward = _binary(_operator)
    setattr(Traced, f"__{_python}__", _forward)
    setattr(Traced, f"__r{_python}__", _backward)
for _python in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Traced, f"__{_python}__", _binary(_python)[0])
for _python, _operator in (("neg", "neg"), ("abs", "abs"), ("invert", "not")):
    setattr(Traced, f"__{_python}__", _unary(_operator))


@dataclass(frozen=True, slots=True, eq=False)
class TracedFunction(UnderConstruction):
    """A function over traced values: curried, so that arguments can be given one after another.

    `f >> g` applies f first. Attributes (`level="item0"`, `memory="local"`, `name="m.tile"`) are given by keyword.
    """

    value: FunctionValue
    primitive: str | None = None  # takes attributes, as long as no argument was given
    __array_ufunc__ = None  # `array >> f` applies f to the array, not to each of its elements

    def __call__(self, *arguments: Any, **attributes: Any) -> Any:
        function: Value = self.value
        if attributes:
            if self.primitive is None or self.value.given:
                raise TypeMismatch(
                    f"{self.value.name} takes no keyword arguments ({', '.join(attributes)})", where=place()
                )
            read = {name: _attribute(self.primitive, name, value) for name, value in attributes.items()}
            function = PRIMITIVES[self.primitive].function(resolve_nothing, **read)
        if not arguments:
            return traced(function, self.primitive)
        if self.primitive in ("zip", "concat") and len(arguments) > 1:
            arguments = (tuple(arguments),)

        def apply() -> Value:
            result = function
            for argument in arguments:
                result = call(result, to_value(argument))
            return result

        return traced(located(apply))

    def __rshift__(self, other: Callable[..., Any]) -> TracedFunction:
        first, second = self.value, located(lambda: to_value(other))
        return TracedFunction(FunctionValue("the composition", 1, lambda x: call_with_element(second, call(first, x))))

    def __rrshift__(self, other: Any) -> Any:
        return self(other)

    def __repr__(self) -> str:
        return describe(self.value)


def resolve_nothing(name: Any) -> NoReturn:
    """Python has no free size names."""
    raise name.unknown()


def _attribute(primitive: str, name: str, value: Any) -> Any:
    known = {"map": ("level", "name"), "reduce": ("level", "memory", "name"), "scan": ("level", "memory", "name"),
             "pipe": ("slots", "lag", "roles", "name"), "scatter": ("mode",)}.get(primitive, ())  # fmt: skip
    if name not in known:
        hint = f"it has {', '.join(known)}" if known else None
        raise TypeMismatch(f"{primitive} takes no attribute {name}", where=place(), hint=hint)
    kinds, parse = _ATTRIBUTES.get(name, ((), None))
    if parse is not None and isinstance(value, str):
        try:
            return parse(value)
        except (KeyError, ValueError) as error:
            message = str(error) if isinstance(error, ValueError) else f"there is no operator {value}"
            raise TypeMismatch(f"{primitive}, {name}: {message}", where=place()) from error
    if kinds and not isinstance(value, kinds):
        raise TypeMismatch(f"{name} of {primitive} is {kind_of(value)}", where=place(), hint="give a text, a name")
    return value


_ATTRIBUTES: dict[str, tuple[tuple[type, ...], Callable[[str], Any] | None]] = {
    "level": ((Level,), Level.parse),
    "memory": ((Memory,), Memory.parse),
    "name": ((str,), None),
    "mode": ((Operator,), lambda text: text if text == "permutation" else OPERATORS[text]),
}


def traced(value: Value, primitive: str | None = None) -> Any:
    """The Python object of a value."""
    return TracedFunction(value, primitive) if isinstance(value, FunctionValue) else Traced(value)


def to_value(item: Any) -> Value:
    """A Python object as a value: numbers, lists and NumPy arrays are literals, callables are functions."""
    if isinstance(item, Traced | TracedFunction):
        return item.value
    if isinstance(item, Term):
        return function_of_term(item) if isinstance(item.type, Function) else item
    if isinstance(item, Position | Numeral | LiteralArray | TupleValue | FunctionValue | PadMode | Rearrangement):
        return item
    if isinstance(item, bool | np.bool_):
        return build.const(bool(item), bool_)
    if isinstance(item, int | float | complex):
        return Numeral(item)
    if isinstance(item, Expr):
        return Numeral(resolved(item))
    if isinstance(item, np.generic):
        number = item.item()
        if isinstance(number, int | float | complex):
            return Numeral(number)
    if isinstance(item, tuple):
        return TupleValue(tuple(map(to_value, item)))
    if isinstance(item, list):
        return array_literal(map(to_value, item))
    if isinstance(item, np.ndarray):
        return _constant_array(item)
    if isinstance(item, str) and item in ("clamp", "mirror", "wrap"):
        return PadMode(item)
    if isinstance(item, Usable):
        return item.as_value()
    if callable(item):
        return python_function(item)
    hint = "is a `return` missing?" if item is None else None
    if isinstance(item, str):
        hint = "the only texts in a program are border modes: clamp, mirror, wrap"
    elif hasattr(item, "__array__"):
        hint = "make it an array that stands in the program, np.asarray(..), or an argument"
    raise TypeMismatch(f"{kind_of(item)} is no value of a program", where=place(), hint=hint)


def _constant_array(array: np.ndarray[Any, Any]) -> Value:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeMismatch("a masked array stands in a program: its mask would be lost", hint="use .filled(..)")
    array = np.asarray(array, array.dtype.newbyteorder("="))  # of np.matrix the rows, too, have two dimensions
    try:
        scalar_of_dtype(array.dtype)
    except KeyError:
        raise TypeMismatch(
            f"an array of {array.dtype} stands in a program, which has no type for it",
            where=place(),
            hint=f"the scalar types are {', '.join(SCALARS)}",
        ) from None
    if array.ndim == 0:
        return build.const(array.item(), scalar_of_dtype(array.dtype))
    if array.size > _MOST_LITERALS:
        raise TypeMismatch(
            f"an array of {array.size} elements stands in a program, where each is written out; {_MOST_LITERALS} are "
            "the most",
            where=place(),
            hint="make it a parameter, and give it with the call",
        )
    return (
        array_literal(_constant_array(part) for part in array)
        if array.ndim > 1
        else build.array_literal(*[build.const(x, scalar_of_dtype(array.dtype)) for x in array.tolist()])
    )


def resolved(size: Expr | int) -> Expr | int:
    """A size with what is known of its variables."""
    known = SIZES.get()
    return size if known is None or not isinstance(size, Expr) else known.resolve(size)


def python_function(function: Callable[..., Any]) -> FunctionValue:
    """A Python function over traced values, curried; its arity is the number of its parameters without default."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        known = name in OPERATORS or name in PRIMITIVES
        hint = f"use lf.{name} or a lambda" if known else "write a lambda; lf.i32(x), lf.f32(x), .. convert"
        raise TypeMismatch(f"Python's {name} cannot be used in a program", where=place(), hint=hint) from None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    arity = sum(p.default is p.empty for p in positional)
    if arity == 0:
        raise TypeMismatch(f"the function {name} takes no parameters", where=place())
    label = "the function" if name == "<lambda>" else name
    written_under = SIZES.get()

    def body(*given: Value) -> Value:
        """In the program that it was written in, where it is an argument of one that is used there."""
        with sizes_of(written_under or SIZES.get()):
            return to_value(function(*map(traced, given)))

    return FunctionValue(label, arity, body)
