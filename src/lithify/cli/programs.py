"""Which program a command is about: `FILE.lift`, `FILE.lift:name`, `module:name` of Python, or a problem line
(`gemm -t f32 -m 384 -n 2304 -k 768`).

A dotted module without Python code may be a text that a package ships: `lithify.operators.image:harris`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from lithify.program import Module, Program

SUFFIX = ".lift"
_FORMS = "a program is FILE.lift, FILE.lift:name, module:name or a problem like `gemm -t f32 -m 8 -n 8 -k 8`"


def find_program(reference: str, *, device: str | None = None, strategy: str | None = None) -> Program:
    """The program that is meant, on a device and by a strategy if they are given. Raises LithifyError."""
    program = _found(reference)
    if strategy is not None:
        program = program.by(strategy)
    return program if device is None else program.on(device)


def _found(reference: str) -> Program:
    from lithify.explore.problems import is_problem, read_problem

    if is_problem(reference):
        from lithify.program import parse

        named = read_problem(reference)
        return parse(named.text, named.name)[named.name]
    place, name = split_reference(reference)
    if place.endswith(SUFFIX):
        return _of_module(find_module(place), name)
    if not name:
        raise LithifyError(f"`{reference}` is no program", hint=_FORMS + _lift_file_hint(place))
    text = shipped_text(place)
    if text is not None:
        return _of_module(find_module(str(text)), name)
    return _of_python(place, name)


def find_module(path: str) -> Module:
    """The programs of a `.lift` file."""
    from lithify.program import load

    if not Path(path).is_file():
        if Path(path).is_dir():
            raise LithifyError(f"{path} is a directory", hint=_neighbours(Path(path)))
        raise LithifyError(f"there is no file {path}", hint=_neighbours(Path(path)))
    return load(path)


def split_reference(reference: str) -> tuple[str, str]:
    """File or module, and name ("" if none is given)."""
    if reference.endswith(SUFFIX):
        return reference, ""
    place, colon, name = reference.rpartition(":")
    return (place, name) if colon else (reference, "")


def _of_module(module: Module, name: str) -> Program:
    if name:
        return module[name]
    names = list(module)
    if not names:
        raise LithifyError(f"{module.name} defines no program")
    stem = Path(module.name).stem
    if len(names) > 1 and stem not in names:
        raise LithifyError(
            f"{module.name} defines {len(names)} programs",
            hint=f"say which: {module.name}:{names[-1]}, one of {', '.join(names)}",
        )
    return module[stem if stem in names else names[0]]


def shipped_text(module: str) -> Path | None:
    """The `.lift` file that stands where the module would be."""
    package, _, name = module.rpartition(".")
    try:
        spec = importlib.util.find_spec(package) if package else None
    except (ImportError, ValueError):
        return None
    folders = spec.submodule_search_locations if spec is not None else None
    return next((Path(f) / f"{name}{SUFFIX}" for f in folders or () if (Path(f) / f"{name}{SUFFIX}").is_file()), None)


def _of_python(module_name: str, name: str) -> Program:
    from lithify.program import Program

    if not module_name:
        raise LithifyError("there is no file or module before the colon", hint=_FORMS)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise LithifyError(
                f"there is no module {module_name}", hint=_FORMS + _lift_file_hint(module_name)
            ) from error
        raise _broken(module_name, error) from error
    except LithifyError:
        raise
    except Exception as error:
        raise _broken(module_name, error) from error
    found = getattr(module, name, None)
    if isinstance(found, Program):
        return found
    programs = [n for n, value in vars(module).items() if isinstance(value, Program)]
    what = (
        f"module {module_name} has no {name}" if found is None else f"{module_name}:{name} is a {type(found).__name__}"
    )
    hint = f"its programs are {', '.join(programs)}" if programs else "decorate a function of it with @lithify.program"
    raise LithifyError(what, hint=hint)


def _broken(module: str, error: BaseException) -> LithifyError:
    """An error in the user's own module: which line of which file."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    where = f"{frames[-1].filename}, line {frames[-1].lineno}: {frames[-1].line}" if len(frames) > 1 else None
    return LithifyError(f"module {module} cannot be imported: {type(error).__name__}: {error}", where=where)


def _lift_file_hint(place: str) -> str:
    return f"; did you mean {place}{SUFFIX}?" if Path(place + SUFFIX).is_file() else ""


def _neighbours(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"there is no directory {path.parent} either"
    found = sorted(p.name for p in path.parent.glob(f"*{SUFFIX}") if p.is_file())
    return f"{path.parent} has {', '.join(found[:8])}" if found else None
