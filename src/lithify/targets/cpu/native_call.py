"""A call of a compiled program without the interpreter: a built-in function that checks, runs and returns.

    quick = bind(plan, ..)
    result = quick(arguments, out)     # a tuple, and None, an array or a tuple of arrays

It takes what needs no thought: NumPy arrays of exactly the type and shape of the interface, C-contiguous and aligned,
and numbers that convert without loss of range. Of everything else, and of every mistake, it returns NotImplemented,
without having done anything; the caller then goes the way through Python, which knows what to do or to say.

The function is one for all programs, LLVM IR that is compiled once and kept on disk; what it has to know about a
program is its *plan*, an array of words. It reads NumPy's arrays where NumPy's C headers say that their fields are, and
makes new ones through NumPy's C interface. Both are tried out before they are relied on: where something is different
(another interpreter, one without a global lock, another layout), there is no such function and Python does the work.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np

from lithify.lang.scalars import SCALARS, Kind, Scalar
from lithify.targets.base import Argument, Interface, Quick, never
from lithify.targets.cache import CACHE
from lithify.targets.cpu import engine, native_text
from lithify.targets.cpu.frame import Layout
from lithify.targets.memory import ALIGNMENT, LEASED_BYTES, MEMORY, Array, address_of, aligned_empty

Kinds = tuple[int, ...]

ARRAY, FLOAT, INT, NUMPY = 0, 1, 2, 4  # what an argument is; the numbers' are bits


@dataclass(frozen=True, slots=True)
class Plan:
    """What the function knows of a program: everything but the interface and the layout of the frame.

    `memory` are (slot, offset, size) of what is to be placed in a block of `memory_bytes`; the size is -1 where the
    frame does not hold it. `switch` is the address of a word that is not 0 while the function must not be used.
    """

    plain: int
    streaming: int
    pool: int
    pool_run: int
    switch: int
    release: bool
    memory_bytes: int
    memory: tuple[tuple[int, int, int], ...]


def kinds_of(arguments: Sequence[Any]) -> Kinds | None:
    """What the arguments are, for a function that takes only such; None where there is none for them."""
    kinds = []
    for value in arguments:
        if type(value) is np.ndarray:
            kinds.append(ARRAY)
        elif type(value) is float:
            kinds.append(FLOAT)
        elif type(value) is int:
            kinds.append(INT)
        elif isinstance(value, np.generic):
            kinds.append(NUMPY)
        else:
            return None
    return tuple(kinds)


def usual_kinds(interface: Interface) -> Kinds:
    """Everything that the parameters take."""
    return tuple(FLOAT | INT | NUMPY if p.role == "scalar" else ARRAY for p in interface.parameters)


def bind(interface: Interface, layout: Layout, plan: Plan, kinds: Kinds, *kept: Any) -> Quick:
    """The function for a program and arguments of the given kinds; `kept` is what the plan's addresses point into.

    Returns `never` where there can be none.
    """
    native = _native()
    if native is None or interface.sizes or any(p.below is not None for p in interface.parameters):
        return never
    if len(kinds) != len(interface.parameters):
        return never
    width = native_text.DIMS + max(2, *(len(a.shape) for a in (*interface.parameters, *interface.results)))
    records: list[list[int]] = []
    for argument, slot, kind in zip(interface.parameters, layout.parameters, kinds, strict=True):
        if (argument.role == "scalar") != (kind != ARRAY):
            return never
        record = _array_record(argument, slot, 0) if kind == ARRAY else _number_record(argument, slot, kind)
        if record is None:
            return never
        records.append(record)
    makers = []
    for argument, slot in zip(interface.results, layout.results, strict=True):
        shape, dtype = tuple(int(d) for d in argument.shape), SCALARS[argument.scalar].dtype
        records.append(_array_record(argument, slot, int(_size(argument) >= LEASED_BYTES)))
        makers.append((shape, dtype))
    spare = _spare(plan.memory_bytes)
    words = [
        plan.plain, plan.streaming, layout.slots, plan.pool, plan.pool_run, plan.switch, len(interface.parameters),
        len(interface.results), width, int(plan.release), plan.memory_bytes, 0 if spare is None else address_of(spare),
        len(plan.memory),
    ]  # fmt: skip
    for record in records:
        words += [*record, *[0] * (width - len(record))]
    for place in plan.memory:
        words += place
    data = struct.pack(f"{len(words)}q", *words)

    def make(result: int) -> Array:
        return MEMORY.array(*makers[result])

    dtypes = [SCALARS[a.scalar].dtype for a in (*interface.parameters, *interface.results)]
    return native.function((data, make, dtypes, spare, kept))


def _spare(memory_bytes: int) -> Array | None:
    """The block that a program keeps for its temporaries, behind a word that says whether a call has it."""
    if not native_text.ON_STACK < memory_bytes <= native_text.SPARE_BYTES:
        return None
    spare = aligned_empty((ALIGNMENT + memory_bytes,), np.dtype(np.uint8))
    spare[:ALIGNMENT] = 0
    return spare


def _array_record(argument: Argument, slot: int, kind: int) -> list[int]:
    dtype = SCALARS[argument.scalar].dtype
    shape = [int(d) for d in argument.shape]
    return [kind, slot, id(dtype), _size(argument), len(shape), *shape]


def _size(argument: Argument) -> int:
    return prod(int(extent) for extent in argument.shape) * int(SCALARS[argument.scalar].dtype.itemsize)


def _number_record(argument: Argument, slot: int, kinds: int) -> list[int] | None:
    """The record of a number that is passed by value; None where none of the kinds can be taken."""
    scalar = SCALARS[argument.scalar]
    if scalar.kind in (Kind.SIGNED, Kind.UNSIGNED):
        kinds &= INT | NUMPY
    elif scalar.name not in ("f32", "f64"):
        kinds &= NUMPY
    if not _value_lies_after_head(scalar):
        kinds &= ~NUMPY
    low, high = scalar.limits if scalar.is_integer else (0, 0)
    size = scalar.dtype.itemsize
    limits = [max(low, -(1 << 63)), min(high, (1 << 63) - 1)]
    return [kinds, slot, id(scalar.dtype.type), size, int(scalar.is_integer), *limits] if kinds else None


@cache
def _value_lies_after_head(scalar: Scalar) -> bool:
    value = scalar.dtype.type(3)
    data: bytes = value.tobytes()
    return ctypes.string_at(id(value) + native_text.HEAD, len(data)) == data


# ---- the function ----------------------------------------------------------------------------------------------------


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_METH_FASTCALL = 0x80


class _Native:
    """The loaded code, and what makes built-in functions of it."""

    def __init__(self, code: bytes, api: Sequence[int], kept: Any) -> None:
        self._library = engine.Library(code, "lithify_call", "lithify_api")
        self._kept = kept
        table = (ctypes.c_int64 * len(api)).from_address(self._library.addresses["lithify_api"])
        table[:] = list(api)
        doc = b"Check the arguments, run, and return the result; NotImplemented for what is not plain."
        self._method = _MethodDef(b"quick", self._library.addresses["lithify_call"], _METH_FASTCALL, doc)
        self._new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
            ("PyCFunction_NewEx", ctypes.pythonapi)
        )

    def function(self, self_object: tuple[Any, ...]) -> Quick:
        """The function with a plan and what it points to."""
        found: Quick = self._new(ctypes.addressof(self._method), self_object, None)
        return found


@cache
def _native() -> _Native | None:
    """The code for this process; None where it cannot be used."""
    if not _interpreter_is_known() or not _arrays_are_known():
        return None
    try:
        table = _numpy_functions()
        functions = [_address(getattr(ctypes.pythonapi, name)) for name in native_text.FUNCTIONS]
    except (AttributeError, ImportError, ValueError):
        return None
    objects = [np.ndarray, NotImplemented, None, float, int, np.dtype(np.uint8), MEMORY.take, MEMORY.give]
    key = CACHE.key("cpu-call", " ".join(engine.host()), native_text.SOURCE)
    code = CACHE.get(key)
    if code is None:
        code = engine.compile_text(native_text.SOURCE)
        CACHE.put(key, code)
    return _Native(code, [*functions, *table, *map(id, objects)], objects)


def _interpreter_is_known() -> bool:
    """CPython with a global lock, 64 bits, and the head of an object as its headers have it."""
    return (
        sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and sys.byteorder == "little"
        and struct.calcsize("P") == 8
        and object.__basicsize__ == native_text.HEAD
        and ctypes.c_void_p.from_address(id(1.5) + native_text.TYPE).value == id(float)
        and hasattr(ctypes, "pythonapi")
    )


def _arrays_are_known() -> bool:
    """Whether the fields of arrays lie where we read them, for arrays that differ in each of them."""
    whole = np.zeros((3, 5), np.float32)
    fixed = np.zeros((2, 3, 7), np.int16)
    fixed.flags.writeable = False
    odd = np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float64)
    return all(_fields_are_known(a) for a in (whole, whole[:, 1:], whole.T, fixed, odd, np.zeros(0, np.complex64)))


def _fields_are_known(array: Array) -> bool:
    def word(address: int) -> int:
        return ctypes.c_int64.from_address(address).value

    start = id(array)
    dims = word(start + native_text.ARRAY_DIMS)
    known: bool = (
        word(start + native_text.TYPE) == id(np.ndarray)
        and word(start + native_text.ARRAY_DATA) == address_of(array)
        and ctypes.c_int32.from_address(start + native_text.ARRAY_NDIM).value == array.ndim
        and tuple(word(dims + 8 * k) for k in range(array.ndim)) == array.shape
        and word(start + native_text.ARRAY_DESCR) == id(array.dtype)
        and ctypes.c_int32.from_address(start + native_text.ARRAY_FLAGS).value == array.flags.num
    )
    return known


def _numpy_functions() -> list[int]:
    """Addresses of PyArray_NewFromDescr and PyArray_SetBaseObject, after a trial."""
    package = "numpy._core" if find_spec("numpy._core") else "numpy.core"  # before NumPy 2
    core = import_module(f"{package}._multiarray_umath")
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = pointer(core._ARRAY_API, None)
    new, set_base = ((ctypes.c_void_p * 283).from_address(table)[k] for k in (94, 282))  # the places never change
    if not new or not set_base:
        raise ValueError("no such functions")
    if not _makes_arrays(new, set_base):
        raise ValueError("functions of another kind")
    return [new, set_base]


def _makes_arrays(new: int, set_base: int) -> bool:
    number, address, thing = ctypes.c_int, ctypes.c_void_p, ctypes.py_object
    make = ctypes.PYFUNCTYPE(thing, thing, thing, number, address, address, address, number, address)(new)
    join = ctypes.PYFUNCTYPE(number, thing, thing)(set_base)
    dtype, raw = np.dtype(np.float32), np.arange(6, dtype=np.float32)
    dims = (ctypes.c_int64 * 2)(2, 3)
    for stolen in (dtype, raw):
        ctypes.pythonapi.Py_IncRef(thing(stolen))
    array = make(np.ndarray, dtype, 2, ctypes.addressof(dims), None, address_of(raw), native_text.OUTPUT_FLAGS, None)
    done = join(array, raw) == 0
    return done and array.base is raw and np.array_equal(array, [[0, 1, 2], [3, 4, 5]]) and array.flags.writeable


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise ValueError("a function without an address")
    return address
