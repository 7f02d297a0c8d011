"""lithify: tensor computations written once as functional programs, and fast kernels derived from them.

    import lithify as lf

    dot = lf.parse("dot = λ xs ys. reduce (+) 0 (map (*) (zip xs ys))")["dot"]
    dot(x, y)                                  # NumPy in, NumPy out

`load` and `parse` read programs as text, `program` makes one of a Python function; see `lithify.program.Program` for
what can be asked of them. Everything is imported when it is first named, so that `import lithify` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lithify.version import __version__

if TYPE_CHECKING:
    from lithify.lang.errors import LithifyError as LithifyError
    from lithify.program import Device as Device
    from lithify.program import DeviceStatus as DeviceStatus
    from lithify.program import Module as Module
    from lithify.program import Program as Program
    from lithify.program import device as device
    from lithify.program import devices as devices  # type: ignore[no-redef, unused-ignore]  # by the order of imports
    from lithify.program import library as library
    from lithify.program import load as load
    from lithify.program import parse as parse
    from lithify.program import program as program  # type: ignore[no-redef, unused-ignore]
    from lithify.program.declared import operator as operator

_PROGRAM = ("Device", "DeviceStatus", "Module", "Program", "device", "devices", "library", "load", "parse")
_ERRORS = ("EvaluationError", "LaunchError", "LithifyError", "ParseError", "Rejected", "RewriteFailed", "TypeMismatch",
           "UnboundSize")  # fmt: skip
_SCALARS = ("bool_", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f8e4m3", "f8e5m2", "f16", "bf16", "f32",
            "f64", "complex64", "complex128")  # fmt: skip
_HOME = {
    **dict.fromkeys(_PROGRAM, "lithify.program"),
    "operator": "lithify.program.declared",
    "NoArgument": "lithify.program.arguments",
    "UnknownProgram": "lithify.program.module",
    **dict.fromkeys(_ERRORS, "lithify.lang.errors"),
    **dict.fromkeys(_SCALARS, "lithify.lang.scalars"),
}
_FRONT_END = "lithify.lang.frontend"

__all__ = ["__version__", "program", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import what is named: what is listed above, else a pattern or operator of the Python front end."""
    if name == "program":
        return importlib.import_module("lithify.program")  # which is the decorator, too
    if name.startswith("__"):
        raise AttributeError(f"module 'lithify' has no attribute {name!r}")
    module = importlib.import_module(_HOME.get(name, _FRONT_END))
    if name not in _HOME and name not in module.__all__:
        raise AttributeError(f"module 'lithify' has no attribute {name!r}{_near(name)}")
    value = globals()[name] = getattr(module, name)
    return value


def _near(name: str) -> str:
    from lithify.lang.spelling import meant

    return f": {close}" if (close := meant(name, __dir__())) else " (dir(lithify) lists what there is)"


def __dir__() -> list[str]:
    return sorted({*__all__, *importlib.import_module(_FRONT_END).__all__})
