"""Checking a call's arguments against an interface, and making them contiguous arrays and scalars of the right type.

An argument is used where it lies if it is C-contiguous; any other layout is copied. Arrays of other libraries come in
through DLPack, without a copy if they are in the memory of the CPU. Results are new arrays that start at a multiple of
64 bytes, or `out`, which must be writable and must share no memory with an argument or another result; a result whose
`out` is not C-contiguous is computed elsewhere and copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lithify.lang.errors import LaunchError
from lithify.lang.given import kind_of
from lithify.lang.scalars import SCALARS, Kind, Scalar
from lithify.targets.base import Argument, Interface, Resident, size_function
from lithify.targets.foreign import describe, numpy_array, repeats
from lithify.targets.memory import MEMORY, Array, address_of, aligned_empty

_SHOWN_BITS = 128  # of an integer that is written out in a message


@dataclass(slots=True)
class Call:
    """The checked arguments of one call: arrays and NumPy scalars in order, and the sizes they determine."""

    values: list[Any]
    sizes: Mapping[str, int]


@dataclass(slots=True)
class _Parameter:
    argument: Argument
    scalar: Scalar
    dtype: np.dtype[Any]
    by_value: bool
    shape: tuple[int, ...] | None  # None: depends on the sizes
    below: Callable[[Mapping[str, int]], tuple[int, ...]] | None  # of indices: what they are below


class Arguments:
    """The checks of one interface, prepared once so that a call is quick."""

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self._parameters = [self._prepare(a, interface.sizes) for a in interface.parameters]
        self._results = [self._prepare(a, interface.sizes) for a in interface.results]
        self._parameter_shapes = [size_function(a.shape, interface.sizes) for a in interface.parameters]
        self._result_shapes = [size_function(a.shape, interface.sizes) for a in interface.results]
        self._symbolic = bool(interface.sizes)

    @staticmethod
    def _prepare(argument: Argument, sizes: Sequence[str]) -> _Parameter:
        scalar = SCALARS[argument.scalar]
        known = all(isinstance(d, int) for d in argument.shape)
        shape = tuple(int(d) for d in argument.shape) if known else None
        below = None if argument.below is None else size_function((argument.below,), sizes)
        return _Parameter(argument, scalar, scalar.dtype, argument.role == "scalar", shape, below)

    # ---- inputs ------------------------------------------------------------------------------------------------

    def check(self, arguments: Sequence[Any], sizes: Mapping[str, int] | None = None) -> Call:
        """The arguments as contiguous arrays and scalars; raises LaunchError where one does not fit."""
        if len(arguments) != len(self._parameters):
            names = ", ".join(p.argument.name for p in self._parameters)
            raise LaunchError(
                f"{self.interface.name} takes {len(self._parameters)} argument(s) ({names}), {len(arguments)} given"
            )
        values = [
            _scalar(value, p) if p.by_value else _array(value, p)
            for value, p in zip(arguments, self._parameters, strict=True)
        ]
        solved: Mapping[str, int] = self._solve(values, sizes or {}) if self._symbolic or sizes else {}
        for value, parameter, shape_of in zip(values, self._parameters, self._parameter_shapes, strict=True):
            if parameter.below is not None:
                _check_indices(value, parameter, parameter.below(solved)[0])
                if parameter.argument.distinct:
                    _check_distinct(value, parameter)
            if parameter.by_value:
                continue
            shape = parameter.shape if parameter.shape is not None else shape_of(solved)
            if value.shape != shape:
                raise LaunchError(_wrong_shape(self.interface, parameter, value.shape, shape, solved))
        return Call(values, solved)

    def bounds(self, call: Call) -> list[int | None]:
        """What the indices in each parameter were seen to be below; None for what are no indices."""
        return [None if p.below is None else p.below(call.sizes)[0] for p in self._parameters]

    def _solve(self, values: list[Any], given: Mapping[str, int]) -> Mapping[str, int]:
        interface = self.interface
        unknown = given.keys() - set(interface.sizes)
        if unknown:
            known = ", ".join(interface.sizes) or "none"
            raise LaunchError(f"{interface.name} has no size {', '.join(sorted(unknown))}; its sizes are: {known}")
        solved = dict(given)
        for source in interface.sources:
            shape = values[source.parameter].shape
            name = interface.parameters[source.parameter].name
            if len(shape) <= source.dim:
                continue  # reported with both shapes by the caller
            value, rest = divmod(shape[source.dim] - source.offset, source.factor)
            if rest or value < 0:
                text = interface.parameters[source.parameter].shape[source.dim]
                raise LaunchError(
                    f"dimension {source.dim} of argument {name} is {shape[source.dim]}, which is not {text} for any "
                    f"size {source.size}"
                )
            if solved.setdefault(source.size, value) != value:
                raise LaunchError(
                    f"size {source.size} is given as {solved[source.size]}, but dimension {source.dim} of argument "
                    f"{name} makes it {value}"
                )
        missing = [n for n in interface.sizes if n not in solved]
        if missing:
            raise LaunchError(
                f"the size(s) {', '.join(missing)} of {interface.name} do not follow from the arguments",
                hint="give them with the call: sizes={" + ", ".join(f'"{n}": ..' for n in missing) + "}",
            )
        for name, least in zip(interface.sizes, interface.least, strict=True):
            if solved[name] < least:
                raise LaunchError(
                    f"size {name} of {interface.name} is {solved[name]}; the kernel is for {least} or more"
                )
        return solved

    # ---- results -----------------------------------------------------------------------------------------------

    def results(self, out: Any, call: Call) -> tuple[list[Array], list[tuple[Array, Array]]]:
        """Arrays to write the results into, and (where to copy to, from) for those that cannot be written in place."""
        shapes = [
            p.shape if p.shape is not None else shape_of(call.sizes)
            for p, shape_of in zip(self._results, self._result_shapes, strict=True)
        ]
        if out is None:
            return [MEMORY.array(s, p.dtype) for s, p in zip(shapes, self._results, strict=True)], []
        given = tuple(out) if isinstance(out, tuple | list) else (out,)
        if len(given) != len(shapes):
            raise LaunchError(
                f"{self.interface.name} has {len(shapes)} result(s), out has {len(given)}",
                hint="give a tuple with one array a result",
            )
        arrays: list[Array] = []
        copies: list[tuple[Array, Array]] = []
        for target, shape, parameter in zip(given, shapes, self._results, strict=True):
            array = _output(target, parameter, shape)
            self._refuse_overlap(array, parameter, call, given[: len(arrays)])
            if array.flags.c_contiguous:
                arrays.append(array)
            else:
                arrays.append(aligned_empty(shape, parameter.dtype))
                copies.append((array, arrays[-1]))
        return arrays, copies

    def _refuse_overlap(self, array: Array, result: _Parameter, call: Call, others: Sequence[Any]) -> None:
        for value, parameter in zip(call.values, self._parameters, strict=True):
            if isinstance(value, np.ndarray) and not parameter.by_value and np.may_share_memory(array, value):
                raise LaunchError(
                    f"{_out_name(result)} shares memory with argument {parameter.argument.name}",
                    hint="give another array: results are written while arguments are still read",
                )
        for other in others:
            if np.may_share_memory(array, numpy_array(other, "out")):
                raise LaunchError(f"{_out_name(result)} shares memory with another result")


def _wrong_shape(
    interface: Interface,
    parameter: _Parameter,
    given: tuple[int, ...],
    shape: tuple[int, ...],
    sizes: Mapping[str, int],
) -> str:
    name = parameter.argument.name
    wanted = ".".join([*map(str, shape), parameter.scalar.name])
    got = ".".join([*map(str, given), parameter.scalar.name])
    text = f"argument {name} of {interface.name} is {got}, but it takes {wanted}"
    if parameter.shape is None:
        symbols = ".".join(map(str, parameter.argument.shape))
        text += f" ({symbols} for " + ", ".join(f"{n} = {v}" for n, v in sizes.items()) + ")"
    return text


def _array(value: Any, parameter: _Parameter) -> Any:
    if isinstance(value, Resident):
        if value.dtype != parameter.dtype:
            _wrong_type(value, parameter)
        return value
    array = value if type(value) is np.ndarray else numpy_array(value, f"argument {parameter.argument.name}")
    if array.dtype != parameter.dtype:
        if parameter.below is not None and array.dtype.kind in "iu":
            array = _as_indices(array, parameter)
        elif not parameter.argument.shape and array.ndim == 0 and not isinstance(value, np.ndarray):
            array = np.asarray(_scalar(value, parameter))
        else:
            _wrong_type(array, parameter)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _as_indices(array: Array, parameter: _Parameter) -> Array:
    """Integers of any type as indices; those that the type for indices cannot hold are out of bounds anyway."""
    converted = array.astype(parameter.dtype)
    lost = converted != array
    if lost.any():
        raise LaunchError(f"argument {parameter.argument.name} has the index {array[lost][0]}, which is too large")
    return converted


def _check_indices(value: Any, parameter: _Parameter, below: int) -> None:
    """Kernels read where they are told to: an index outside its bounds would be a read of other memory."""
    name = parameter.argument.name
    if isinstance(value, Resident):
        if value.below is None or value.below > below:
            raise LaunchError(
                f"argument {name} lies on the device, and it is not known whether its indices are below {below}",
                hint="upload it as an argument of this program, or pass the array itself",
            )
        return
    array = np.asarray(value)
    if array.size and not (array.min() >= 0 and array.max() < below):
        wrong = array[(array < 0) | (array >= below)][0]
        raise LaunchError(
            f"argument {name} has the index {wrong}, but there are {below} elements",
            hint=f"indices are 0 .. {below - 1}" if below else "there is nothing an index could name",
        )


def _check_distinct(value: Any, parameter: _Parameter) -> None:
    """Where an index names an element a second time, another one is written by nobody."""
    name = parameter.argument.name
    if isinstance(value, Resident):
        if not value.distinct:
            raise LaunchError(
                f"argument {name} lies on the device, and it is not known whether it is a permutation",
                hint="upload it as an argument of this program, or pass the array itself",
            )
        return
    counts = np.bincount(np.asarray(value).reshape(-1))
    if counts.size and counts.max() > 1:
        raise LaunchError(
            f"argument {name} is no permutation: it has the index {counts.argmax()} {counts.max()} times",
            hint="`scatter[add] ids xs` adds up what comes to one place; `gather ids xs` may read one several times",
        )


def _wrong_type(array: Array | Resident, parameter: _Parameter) -> None:
    name, wanted = parameter.argument.name, parameter.scalar
    if array.dtype.newbyteorder("=") == parameter.dtype:
        raise LaunchError(
            f"argument {name} has the other byte order ({array.dtype})",
            hint=f"convert it: {name}.astype({name}.dtype.newbyteorder('='))",
        )
    shape = "".join(f"{d}." for d in parameter.argument.shape)
    raise LaunchError(
        f"argument {name} is {describe(array)}, but the program takes {shape}{wanted}",
        hint=f"convert it: {name}.astype({_dtype_name(wanted)})",
    )


def _dtype_name(scalar: Scalar) -> str:
    package = "np" if scalar.dtype.isbuiltin == 1 else "ml_dtypes"
    return f"{package}.{scalar.dtype.name}"


def _output(target: Any, parameter: _Parameter, shape: tuple[int, ...]) -> Array:
    name = _out_name(parameter)
    if not isinstance(target, np.ndarray) and (isinstance(target, np.generic) or not hasattr(target, "__dlpack__")):
        raise LaunchError(f"{name} is {kind_of(target)}, not an array", hint="give an array that is to be filled")
    array = numpy_array(target, name)
    if not isinstance(target, np.ndarray) and address_of(numpy_array(target, name)) != address_of(array):
        raise LaunchError(
            f"{name} is a {type(target).__name__} that shows a copy of its elements, which cannot be written",
            hint="give an array that holds them as they are (of torch: .resolve_conj().resolve_neg())",
        )
    wanted = ".".join([*map(str, shape), parameter.scalar.name])
    if array.dtype != parameter.dtype or array.shape != shape:
        raise LaunchError(f"{name} is {describe(array)}, but the result is {wanted}")
    if not array.flags.writeable:
        raise LaunchError(f"{name} is read-only", hint="give an array that may be written, for example a copy")
    if array.size > 1 and not array.flags.c_contiguous and repeats(array):
        raise LaunchError(f"{name} has elements that share memory (a broadcast or overlapping view)")
    return array


def _out_name(result: _Parameter) -> str:
    """What errors call the array that a result is to be written to: a single result is called `out` itself."""
    name = result.argument.name
    return name if name == "out" else f"out for {name}"


def _scalar(value: Any, parameter: _Parameter) -> Any:
    """A number as a NumPy scalar of the parameter's type; numbers that it cannot hold are refused."""
    scalar, name = parameter.scalar, parameter.argument.name
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__dlpack__"):
        array = numpy_array(value, f"argument {name}")
        if array.size != 1 or array.ndim:
            raise LaunchError(f"argument {name} is {describe(array)}, but the program takes the scalar {scalar}")
        if array.dtype == parameter.dtype:
            return array[()]
        value = array.item()
    kinds = _ACCEPTED[scalar.kind]
    if not isinstance(value, kinds) or (isinstance(value, bool) and scalar.kind is not Kind.BOOL):
        shown = _short(value) if isinstance(value, int) else repr(value)
        raise LaunchError(f"argument {name} is {shown} ({type(value).__name__}), but the program takes {scalar}")
    if scalar.is_integer and not scalar.limits[0] <= value <= scalar.limits[1]:
        low, high = scalar.limits
        raise LaunchError(f"argument {name} is {_short(value)}, which {scalar} cannot hold ({low} .. {high})")
    try:  # ml_dtypes takes no integers of more than 64 bits
        return parameter.dtype.type(float(value) if not scalar.is_integer and type(value) is int else value)
    except OverflowError:
        raise LaunchError(f"argument {name} is {_short(value)}, which {scalar} cannot hold") from None


def _short(value: Any) -> str:
    """A number as a message shows it; Python does not write out integers of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


_ACCEPTED: dict[Kind, tuple[type, ...]] = {
    Kind.BOOL: (bool,),
    Kind.SIGNED: (int,),
    Kind.UNSIGNED: (int,),
    Kind.FLOAT: (int, float),
    Kind.COMPLEX: (int, float, complex),
}
