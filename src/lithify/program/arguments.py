"""The arguments of a call: what types they have, how tuples are taken apart, and results of the kind that was given.

An argument is an array (NumPy, or any library with DLPack), a number, or a tuple of those (a tuple of arrays stands for
an array of tuples where the program has one). Where only types are needed, a type or its text ("1024.f32") will do.

Python's numbers have no width: they take the parameter's declared type, else the type of the arrays beside them.
Integers are indices where the parameter's type says so: what they are below is compared at every call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lithify.arith import Expr, Variable, const, size
from lithify.lang.errors import LaunchError, ParseError
from lithify.lang.given import kind_of, whole_number
from lithify.lang.scalars import SCALARS, Scalar, bool_, complex64, f32, i32, scalar_of_dtype
from lithify.lang.types import Array, Index, Tuple, Type, UnderConstruction, array

if TYPE_CHECKING:
    from lithify.lang.syntax import Expression, TypeSyntax

_TORCH_NAMES = {"bool": "bool", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
                "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32",
                "int64": "i64", "uint64": "u64", "complex64": "complex64",
                "complex128": "complex128", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """A Python number among the arguments: its type is decided when the program's is known."""

    python: type

    def __str__(self) -> str:
        return f"a Python {self.python.__name__}"


Described = Type | Number | tuple["Described", ...]
_NUMBERS: tuple[type, ...] = (bool, int, float, complex)


def key_of(value: Any) -> Hashable:
    """What decides the type of an argument, as something that is quick to look up."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.shape
    if kind in _NUMBERS:
        return kind.__name__
    if isinstance(value, Type):
        return value
    if isinstance(value, tuple) and value:
        return tuple([key_of(item) for item in value])
    if isinstance(value, str):
        return value
    if not _is_array(value):
        raise NoArgument(f"{kind_of(value)} is no argument for a program")
    return kind.__module__, str(value.dtype), tuple(value.shape)


class NoArgument(LaunchError):
    """Something that is neither an array nor a number nor a tuple of those."""


def _is_array(value: Any) -> bool:
    if isinstance(value, type) or not hasattr(value, "dtype"):
        return False
    shape = getattr(value, "shape", None)
    return isinstance(shape, Sequence) and all(whole_number(length) is not None for length in shape)


def check_argument(value: Any, name: str) -> None:
    """Raise NoArgument, with the name, for what is no argument."""
    if isinstance(value, tuple) and value:
        for k, item in enumerate(value):
            check_argument(item, f"{name}.{k}")
    elif not (type(value) in _NUMBERS or isinstance(value, Type | str) or _is_array(value)):
        listed = isinstance(value, Sequence) and len(value) > 0
        hint = "make it an array: np.asarray(.., dtype)" if listed else "give arrays, numbers or tuples of them"
        raise NoArgument(f"argument {name} is {kind_of(value)}, neither an array nor a number", hint=hint)


def check_value(value: Any, name: str) -> None:
    """Raise LaunchError for a type, or its text, in the place of an argument of a call."""
    if isinstance(value, tuple):
        for k, item in enumerate(value):
            check_value(item, f"{name}.{k}")
    elif is_type(value):
        given = kind_of(value) if isinstance(value, str) else f"the type {value}"
        hint = "a call takes arrays and numbers; types are for p.source(..), p.lowered(..), p.explain(..)"
        raise LaunchError(f"argument {name} is {given}, neither an array nor a number", hint=hint)


def is_empty(arguments: Sequence[Any], sizes: Iterable[tuple[str, int]] = ()) -> bool:
    """Whether some dimension of the arguments, or a size that is given, is 0."""
    return any(0 in getattr(leaf, "shape", ()) for leaf in flatten(arguments)) or any(n == 0 for _, n in sizes)


def is_under_construction(arguments: Iterable[Any]) -> bool:
    """Whether a value of a program that is being built is among the arguments."""
    for argument in arguments:
        if isinstance(argument, UnderConstruction):
            return True
        if isinstance(argument, tuple | list) and is_under_construction(argument):
            return True
    return False


def is_type(argument: Any) -> bool:
    """Whether a type is given, or its text, where there could be an array or a number."""
    return isinstance(argument, Type | str)


def describe(value: Any, name: str) -> Described:
    """The type of an argument; `name` is what errors call it."""
    if isinstance(value, Type):
        return value
    if isinstance(value, str):
        return read_type(value)
    if type(value) in _NUMBERS:
        return Number(type(value))
    if isinstance(value, tuple):
        return tuple([describe(item, f"{name}.{k}") for k, item in enumerate(value)])
    return array(*[int(n) for n in value.shape], _scalar(value, name))


def read_type(text: str) -> Type:
    """The type that a text says: "16.1024.f32", "(n.f32, n.i32)", "idx[8]"; names are symbolic sizes.

    Raises ParseError.
    """
    from lithify.lang.parser import parse_type

    return _type(parse_type(text))


def type_of_syntax(syntax: TypeSyntax) -> Type | None:
    """The type of an annotation; None where it says something that only the arguments decide."""
    try:
        return _type(syntax)
    except ParseError:
        return None


def _type(syntax: TypeSyntax) -> Type:
    from lithify.lang import syntax as nodes
    from lithify.lang.unparse import unparse_type

    if isinstance(syntax, nodes.ArrayType):
        return Array(_size(syntax.size), _type(syntax.element))
    if isinstance(syntax, nodes.IndexType):
        return Index(_size(syntax.size))
    if isinstance(syntax, nodes.TupleType):
        return Tuple(*map(_type, syntax.items))
    if isinstance(syntax, nodes.TypeName) and syntax.name in SCALARS:
        return SCALARS[syntax.name]
    raise ParseError(
        f"{unparse_type(syntax)} is not the type of an argument",
        where=str(syntax.span),
        hint=f"scalar types are {', '.join(SCALARS)}",
    )


def _size(syntax: Expression) -> Expr:
    from lithify.lang import syntax as nodes

    if isinstance(syntax, nodes.Number) and isinstance(syntax.value, int):
        return const(syntax.value)
    if isinstance(syntax, nodes.Name):
        return size(syntax.name)
    raise ParseError("a size is a number or a name here", where=str(syntax.span))


def _scalar(value: Any, name: str) -> Scalar:
    try:
        if isinstance(value, np.ndarray | np.generic):
            return scalar_of_dtype(value.dtype)
        dtype = str(value.dtype).rpartition(".")[2]
        return SCALARS[_TORCH_NAMES[dtype]] if dtype in _TORCH_NAMES else scalar_of_dtype(value.dtype)
    except (KeyError, TypeError):
        hint = f"the scalar types are {', '.join(SCALARS)}"
        if isinstance(value, np.ndarray) and value.dtype.newbyteorder("=") != value.dtype:
            hint = "the array has the other byte order; convert it: x.astype(x.dtype.newbyteorder('='))"
        message = f"argument {name} has dtype {value.dtype}, which the language has no type for"
        raise LaunchError(message, hint=hint) from None


def decide(
    described: Sequence[Described], declared: Sequence[Type | None], sizes: Mapping[str, int | Expr] | None = None
) -> tuple[Type, ...]:
    """The types of the arguments, with those of Python's numbers filled in from the declaration or the arrays.

    `sizes` are those that are given by name: they decide what indices are below, as the arrays' lengths do.
    """
    scalars = [s for each in described for s in _scalars(each)]
    widest_float = max((s for s in scalars if s.is_float), key=lambda s: s.bits, default=None)
    any_complex = max((s for s in scalars if s.is_complex), key=lambda s: s.bits, default=None)
    first = scalars[0] if scalars else None

    def number(python: type) -> Type:
        if python is bool:
            return bool_
        if python is complex:
            return any_complex or complex64
        if python is float:
            return widest_float or f32
        return first if first is not None and first is not bool_ else i32

    def one(each: Described, wanted: Type | None) -> Type:
        if isinstance(each, Number):
            if isinstance(wanted, Index) and each.python is int:
                return i32
            return wanted if isinstance(wanted, Scalar) else number(each.python)
        if isinstance(each, Type):
            return each
        inner = wanted
        sizes = []
        while isinstance(inner, Array):
            sizes.append(inner.size)
            inner = inner.element
        items = inner.items if isinstance(inner, Tuple) and len(inner.items) == len(each) else (None,) * len(each)
        # a tuple inside is an array of tuples too, given as a tuple of arrays
        parts = [
            one(item, part if part is None or not isinstance(item, tuple) else array(*sizes, part))
            for item, part in zip(each, items, strict=True)
        ]
        return _zipped(parts, len(sizes)) if sizes else Tuple(*parts)

    padded = [*declared, *[None] * (len(described) - len(declared))]
    types = [one(each, wanted) for each, wanted in zip(described, padded, strict=False)]
    known = dict(sizes or {})
    for type_, wanted in zip(types, padded, strict=False):
        _learn(type_, wanted, known)
    return tuple([_indices(type_, wanted, known) for type_, wanted in zip(types, padded, strict=False)])


def _learn(given: Type, declared: Type | None, known: dict[str, int | Expr]) -> None:
    """Note what the sizes that a declared type names are in the given one."""
    if isinstance(given, Array) and isinstance(declared, Array):
        variable = declared.size.single
        if isinstance(variable, Variable) and given.size.constant is not None:
            known.setdefault(variable.name, given.size.constant)
        _learn(given.element, declared.element, known)
    elif isinstance(given, Tuple) and isinstance(declared, Tuple):
        for item, part in zip(given.items, declared.items, strict=False):
            _learn(item, part, known)


def _indices(given: Type, declared: Type | None, known: Mapping[str, int | Expr]) -> Type:
    """The given type with indices in place of integers where the declared type has indices."""
    if isinstance(given, Array) and isinstance(declared, Array):
        return Array(given.size, _indices(given.element, declared.element, known))
    if isinstance(given, Tuple) and isinstance(declared, Tuple) and len(given.items) == len(declared.items):
        return Tuple(*[_indices(*pair, known) for pair in zip(given.items, declared.items, strict=True)])
    if isinstance(declared, Index) and isinstance(given, Scalar) and given.is_integer:
        variable = declared.size.single
        if isinstance(variable, Variable) and variable.name in known:
            return Index(known[variable.name])
        return given if declared.size.constant is None else declared
    return given


def _zipped(parts: list[Type], depth: int) -> Type:
    """The type of an array of tuples that is given as a tuple of arrays, `depth` dimensions of each being shared."""
    if depth == 0:
        return Tuple(*parts)
    arrays = [p for p in parts if isinstance(p, Array)]
    if len(arrays) != len(parts) or any(a.size is not arrays[0].size for a in arrays):
        given = ", ".join(map(str, parts))
        raise LaunchError(f"an array of tuples is given as ({given}), whose lengths are not the same")
    return Array(arrays[0].size, _zipped([a.element for a in arrays], depth - 1))


def _scalars(described: Described) -> list[Scalar]:
    if isinstance(described, tuple):
        return [s for item in described for s in _scalars(item)]
    while isinstance(described, Array):
        described = described.element
    if isinstance(described, Tuple):
        return [s for item in described.items for s in _scalars(item)]
    return [described] if isinstance(described, Scalar) else []


# ---- structure -------------------------------------------------------------------------------------------------------


Structure = None | list["Structure"]


def structure_of(type_: Type) -> Structure:
    """How a value of the type is nested in Python: None for one array or scalar, a list for a tuple."""
    while isinstance(type_, Array):
        type_ = type_.element
    return [structure_of(item) for item in type_.items] if isinstance(type_, Tuple) else None


def flatten(values: Sequence[Any]) -> list[Any]:
    """The arrays and numbers of nested tuples, in order."""
    result: list[Any] = []
    for value in values:
        if isinstance(value, tuple | list):
            result += flatten(value)
        else:
            result.append(value)
    return result


def nest(structure: Structure, leaves: list[Any]) -> Any:
    """The inverse of `flatten` for one value; takes from the front of `leaves`."""
    if structure is None:
        return leaves.pop(0)
    return tuple([nest(item, leaves) for item in structure])


# ---- other libraries -------------------------------------------------------------------------------------------------


def returner(values: Sequence[Any]) -> Callable[[Any], Any] | None:
    """What turns a NumPy result into the kind of array that was given; None where NumPy's is right.

    With arguments of several kinds the first that is not NumPy's decides.
    """
    for value in values:
        if isinstance(value, np.ndarray | np.generic) or type(value) in _NUMBERS or not hasattr(value, "__dlpack__"):
            continue
        library = type(value).__module__.partition(".")[0].removesuffix("lib")  # jaxlib's arrays are JAX's
        return _as_torch if library == "torch" else _maker(library)
    return None


def _maker(library: str) -> Callable[[Any], Any] | None:
    """What makes an array of a library: its `from_dlpack`, or `asarray` for types that NumPy does not hand on so."""
    places = [m for name in (f"{library}.numpy", library, f"{library}.dlpack") if (m := sys.modules.get(name))]
    through = next((f for m in places if (f := getattr(m, "from_dlpack", None))), None)
    copied = next((f for m in places if (f := getattr(m, "asarray", None))), None)
    if through is None or copied is None:
        return through or copied
    return lambda result: (through if result.dtype.isbuiltin == 1 else copied)(result)


def _as_torch(result: np.ndarray[Any, Any]) -> Any:
    torch: Any = sys.modules["torch"]
    names = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
    name = result.dtype.name
    if name in names:  # DLPack knows them, NumPy's side does not
        return torch.from_numpy(result.view(names[name])).view(getattr(torch, name))
    return torch.from_numpy(result) if result.ndim else torch.from_numpy(result.reshape(1)).reshape(())
