"""`lithify check`: types; with --values, every level of the compilation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lithify.cli.console import note, out, show_error, working
from lithify.cli.inputs import read_sizes, read_types
from lithify.cli.main import BAD_INPUT, BROKEN
from lithify.cli.programs import SUFFIX, find_module, find_program, split_reference
from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from lithify.program import Program


def check_program(
    reference: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    device: str | None,
    strategy: str | None,
    values: bool,
    seed: int,
) -> int:
    """Print the types of a program, or of all programs of a file; the exit code."""
    fixed = read_sizes(sizes)
    place, name = split_reference(reference)
    if place.endswith(SUFFIX) and not name and not arguments and not values:
        _check_options(device, strategy)
        return _check_file(place, fixed)
    program = find_program(reference, device=device, strategy=strategy)
    if not arguments and not values:
        print(_signature(program, fixed))
        _say_unchecked(reference, [program])
        return 0
    given = read_types(program, arguments, fixed, seed)
    if not values:
        types, result = program.types(*given, sizes=fixed)
        print(f"{program.name} : {' -> '.join(map(str, (*types, result)))}")
        return 0
    with working(f"executing every level of {program.name}"):
        found = program.check(*given, sizes=fixed)
    out().print(str(found))
    return 0 if found else BROKEN


def _check_options(device: str | None, strategy: str | None) -> None:
    """Raise LithifyError for a device or a strategy that there is not: a file's types do not depend on them."""
    if device is not None:
        from lithify.program import device as find_device

        find_device(device)
    if strategy is not None:
        from lithify.lowering.strategies import named

        named(strategy)


def _check_file(path: str, sizes: dict[str, int]) -> int:
    """Every program of a file: its type where annotations give it, else what its parameters are."""
    module = find_module(path)
    if not len(module):
        raise LithifyError(f"{path} defines no program")
    wrong = 0
    for program in module.values():
        try:
            print(_signature(program, sizes), flush=True)
        except LithifyError as error:
            show_error(error.message, error.where, error.hint)
            wrong += 1
    _say_unchecked(f"{path}:NAME", module.values())
    return BAD_INPUT if wrong else 0


def _say_unchecked(reference: str, programs: Iterable[Program]) -> None:
    """How to check programs whose parameters have no types, as so far only their names are."""
    if any(program.parameters and not program.annotated for program in programs):
        note(f"parameters without types are checked for given ones: lithify check {reference} --arg 1000.f32 ..")


def _signature(program: Program, sizes: dict[str, int]) -> str:
    """`dot : n.f32 -> n.f32 -> f32`, or the parameters of a template, whose types the arguments give.

    Conditions that hold for some sizes only are said with it.
    """
    if program.annotated:
        from lithify.program.fits import fit_of

        return f"{program.name} : {fit_of(program, sizes)}"
    program.origin.check_names()
    parameters = ", ".join(program.parameters)
    return f"{program.name} : for any types of {parameters} that fit" if parameters else f"{program.name} : a template"
