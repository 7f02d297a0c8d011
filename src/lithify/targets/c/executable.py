"""A program that the system's C compiler compiled, called through ctypes."""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lithify.lang.errors import LaunchError, LithifyError
from lithify.lang.scalars import SCALARS, Kind, Scalar, f64
from lithify.targets.arguments import Arguments, Call
from lithify.targets.base import Executable, Interface
from lithify.targets.cdialect.dialect import computed
from lithify.targets.memory import Array, address_of

_FORMAT = 1  # of the serialised form


class CExecutable(Executable):
    """A program in a shared library. ctypes lets go of the interpreter's lock during a call."""

    def __init__(self, interface: Interface, function: str, library: bytes) -> None:
        self.interface = interface
        self._function_name, self._library = function, library
        self._arguments = Arguments(interface)
        self._function = _load(library, function)
        self._function.restype = ctypes.c_int
        self._scalar_types = [
            _value_type(SCALARS[p.scalar]) if p.role == "scalar" else None for p in interface.parameters
        ]
        passed = [t or ctypes.c_void_p for t in self._scalar_types]
        self._function.argtypes = [
            *passed, *[ctypes.c_void_p] * len(interface.results), *[ctypes.c_int64] * len(interface.sizes)
        ]  # fmt: skip

    def __call__(self, *arguments: Any, out: Any = None, sizes: Mapping[str, int] | None = None) -> Any:
        call = self._arguments.check(arguments, sizes)
        results, copies = self._arguments.results(out, call)
        self._run(self._passed(call, results))
        for target, source in copies:
            target[...] = source
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

    def time(self, arguments: Sequence[Any], repetitions: int) -> list[float]:
        """Seconds that each run took, after one that is not counted."""
        call = self._arguments.check(arguments)
        results, _ = self._arguments.results(None, call)
        passed = self._passed(call, results)
        self._run(passed)
        seconds = []
        for _ in range(repetitions):
            start = time.perf_counter()
            self._run(passed)
            seconds.append(time.perf_counter() - start)
        return seconds

    def serialize(self) -> bytes:
        head = {"format": _FORMAT, "interface": self.interface.as_data(), "function": self._function_name}
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "little") + text + self._library

    @staticmethod
    def deserialize(data: bytes) -> CExecutable:
        """The inverse of `serialize`; raises LithifyError for bytes that it did not write."""
        try:
            length = int.from_bytes(data[:8], "little")
            head = json.loads(data[8 : 8 + length])
            if head["format"] != _FORMAT:
                raise ValueError(head["format"])
            return CExecutable(Interface.from_data(head["interface"]), head["function"], data[8 + length :])
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise LithifyError("these bytes are not a C program that this version compiled") from error

    def _passed(self, call: Call, results: Sequence[Array]) -> list[Any]:
        values = [
            address_of(value) if type_ is None else _by_value(value, type_)
            for value, type_ in zip(call.values, self._scalar_types, strict=True)
        ]
        return [*values, *map(address_of, results), *(call.sizes[n] for n in self.interface.sizes)]

    def _run(self, passed: Sequence[Any]) -> None:
        if self._function(*passed):
            raise LaunchError(f"{self.interface.name}: no memory left for temporaries")


def _load(library: bytes, function: str) -> Any:
    """The function of a library that is kept only while it is being opened."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.so")
        path.write_bytes(library)
        opened = ctypes.CDLL(str(path))
        if (set_threads := getattr(opened, "omp_set_num_threads", None)) is not None:
            _openmp[ctypes.cast(set_threads, ctypes.c_void_p).value] = set_threads
        return opened[function]


_openmp: dict[int | None, Any] = {}  # what sets the number of threads, of each OpenMP runtime that is loaded


def _after_fork() -> None:
    """A child process has none of the threads that GNU's OpenMP would wait for: the thread that forked works alone."""
    for set_threads in _openmp.values():
        set_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _value_type(scalar: Scalar) -> Any:
    """The ctypes type of a scalar parameter; complex numbers are structs of two parts."""
    inner = computed(scalar)
    if inner.is_complex:
        return _COMPLEX[inner.name]
    if inner.kind is Kind.BOOL:
        return ctypes.c_bool
    if inner.is_float:
        return ctypes.c_double if inner is f64 else ctypes.c_float
    return getattr(ctypes, f"c_{'u' if inner.kind is Kind.UNSIGNED else ''}int{inner.bits}")


class _Complex64(ctypes.Structure):
    _fields_ = (("re", ctypes.c_float), ("im", ctypes.c_float))


class _Complex128(ctypes.Structure):
    _fields_ = (("re", ctypes.c_double), ("im", ctypes.c_double))


_COMPLEX: dict[str, Any] = {"complex64": _Complex64, "complex128": _Complex128}


def _by_value(value: Any, type_: Any) -> Any:
    if type_ in _COMPLEX.values():
        return type_(float(value.real), float(value.imag))
    if type_ in (ctypes.c_float, ctypes.c_double):
        return float(value)
    return type_(value.item())
