"""Types of the language: scalars, indices, tuples, arrays, and functions (only as arguments of patterns).

Types are interned, so two equal types are the same object. Sizes are index normal forms (`lithify.arith.Expr`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lithify.arith import Expr, as_expr, const
from lithify.lang.errors import TypeMismatch
from lithify.lang.given import kind_of, whole_number


class Type:
    """Base of all types."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class UnderConstruction:
    """What stands for a value while a program is built in Python; it is no argument for a compiled program."""

    __slots__ = ()


_interned: dict[tuple[object, ...], Type] = {}


class Index(Type):
    """`idx[S]`: an index into an array of size S; its values are 0 <= i < S. In annotations `Index[n]` is `idx[n]`."""

    __slots__ = ("size",)
    size: Expr

    def __class_getitem__(cls, size: Expr | int) -> Index:
        return cls(size)

    def __new__(cls, size: Expr | int) -> Index:
        size = as_expr(size)
        key = (cls, size)
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.size = size
            _interned[key] = found
        assert isinstance(found, Index)
        return found

    def __str__(self) -> str:
        return f"idx[{self.size}]"


class Tuple(Type):
    """`(t0, .., tk)`: a product of two or more types."""

    __slots__ = ("items",)
    items: tuple[Type, ...]

    def __new__(cls, *items: Type) -> Tuple:
        key = (cls, *items)
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.items = items
            _interned[key] = found
        assert isinstance(found, Tuple)
        return found

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


class Array(Type):
    """`n.t`: an array of `size` elements of type `element`. In annotations `Array[m, k, f32]` is `m.k.f32`."""

    __slots__ = ("element", "size")
    size: Expr
    element: Type

    def __class_getitem__(cls, shape_then_element: tuple[Expr | int | Type, ...]) -> Type:
        if not isinstance(shape_then_element, tuple) or len(shape_then_element) < 2:
            raise TypeMismatch("Array[..] takes sizes and the type of the elements", hint="write lf.Array[n, lf.f32]")
        return array(*shape_then_element)

    def __new__(cls, size: Expr | int, element: Type) -> Array:
        if not isinstance(size, Expr):
            size = _size(size)
        if not isinstance(element, Type):
            raise TypeMismatch(
                f"an array's elements have a type, {kind_of(element)} is given", hint="write lf.Array[n, lf.f32]"
            )
        key = (cls, size, element)
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.size, found.element = size, element
            _interned[key] = found
        assert isinstance(found, Array)
        return found

    def __str__(self) -> str:
        size = str(self.size)
        return (size if size.replace("_", "").isalnum() else f"({size})") + f".{self.element}"


class Function(Type):
    """`a -> b`: the type of a lambda, which occurs only as an argument of a pattern."""

    __slots__ = ("parameter", "result")
    parameter: Type
    result: Type

    def __new__(cls, parameter: Type, result: Type) -> Function:
        key = (cls, parameter, result)
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.parameter, found.result = parameter, result
            _interned[key] = found
        assert isinstance(found, Function)
        return found

    def __str__(self) -> str:
        left = f"({self.parameter})" if isinstance(self.parameter, Function) else str(self.parameter)
        return f"{left} -> {self.result}"


def array(*shape_then_element: Expr | int | Type) -> Type:
    """`array(m, k, f32)` is `m.k.f32`. Raises TypeMismatch for what are no sizes and no type."""
    *shape, element = shape_then_element
    if shape and not isinstance(element, Type):
        raise TypeMismatch(
            f"the type of an array's elements comes last, {kind_of(element)} is given", hint="write lf.Array[n, lf.f32]"
        )
    result = element
    for size in reversed(shape):
        if isinstance(size, Type):
            raise TypeMismatch(f"sizes come before the type of the elements, the type {size} is given as one")
        result = Array(size, result)  # type: ignore[arg-type]  # checked above, where there is a size
    return result  # type: ignore[return-value]


def _size(size: Any) -> Expr:
    """The size that a number says."""
    number = whole_number(size)
    if number is not None and number >= 0:
        return as_expr(number)
    hint = "n = lf.size('n') makes a variable"
    if isinstance(size, str):
        hint = f"n = lf.size({size!r}) makes a variable"
    elif isinstance(size, tuple):
        hint = "n = lf.size('n') makes a variable, lf.sizes makes a tuple of them"
    raise TypeMismatch(f"a size is a whole number or a variable, {kind_of(size)} is given", hint=hint)


def shape_of(type_: Type) -> tuple[tuple[Expr, ...], Type]:
    """The sizes of the nested arrays of a type, outermost first, and the innermost element type."""
    sizes = []
    while isinstance(type_, Array):
        sizes.append(type_.size)
        type_ = type_.element
    return tuple(sizes), type_


def dimensions_hint(expected: int, given: Type) -> str | None:
    """What to do where a type has another number of dimensions than is expected; None where it has not."""
    have = len(shape_of(given)[0])
    if have == expected:
        return None
    needed = f"{expected} dimension{'s are' if expected != 1 else ' is'} expected, it has {have}"
    shape = reshaped(expected, given)
    return needed if shape is None else f"{needed}: .reshape({', '.join(map(str, shape))}) has {expected}"


def reshaped(dimensions: int, given: Type) -> list[Expr] | None:
    """The shape with dimensions of length 1 added in front or left out, so that there are as many; None if none is."""
    shape = list(shape_of(given)[0])
    if not shape or not dimensions:
        return None
    one = as_expr(1)
    shape = [one] * (dimensions - len(shape)) + shape
    while len(shape) > dimensions and one in shape:
        shape.remove(one)
    return shape if len(shape) == dimensions else None


def element_count(type_: Type) -> Expr:
    """How many scalars (or tuples) a value of the type holds."""
    total = const(1)
    for size in shape_of(type_)[0]:
        total = total * size
    return total


def sizes_in(type_: Type) -> Iterator[Expr]:
    """All sizes that occur in a type."""
    if isinstance(type_, Array):
        yield type_.size
        yield from sizes_in(type_.element)
    elif isinstance(type_, Index):
        yield type_.size
    elif isinstance(type_, Tuple):
        for item in type_.items:
            yield from sizes_in(item)
    elif isinstance(type_, Function):
        yield from sizes_in(type_.parameter)
        yield from sizes_in(type_.result)
