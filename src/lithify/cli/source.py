"""`lithify source`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lithify.cli.console import note, working
from lithify.cli.inputs import read_fixed_types, read_sizes
from lithify.cli.programs import find_program
from lithify.lang.errors import LithifyError
from lithify.lang.spelling import choices

if TYPE_CHECKING:
    from lithify.program import Program

LEVELS = ("program", "lowered", "kernel", "cpu", "asm", "opencl", "c")
DEFAULT = "cpu"
_ABOVE_TARGETS = LEVELS[:3]
_DEVICES = {"asm": "cpu"}  # the devices of targets that are not called like them


def print_source(
    reference: str,
    target: str | None,
    arguments: Sequence[str],
    sizes: Sequence[str],
    device: str | None,
    strategy: str | None,
    output: str | None,
) -> None:
    """Print one level of a program's compilation, or write it to a file; without a target, the device's text."""
    from lithify.program.devices import for_source

    level = _level(target, device)
    program = find_program(reference, strategy=strategy)
    if device is not None:
        program = program.on(for_source(device))
    fixed = read_sizes(sizes)
    given = read_fixed_types(program, arguments, fixed)
    with working(f"deriving {program.name}"):
        text = _text(program, level, given, fixed)
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise LithifyError(f"{output} cannot be written: {error.strerror or error}") from error
    note(f"{output}: {len(text.splitlines())} lines")


def _level(target: str | None, device: str | None) -> str:
    """What is printed. Raises LithifyError for what there is not, and for the text of one device on another."""
    level = target or device or DEFAULT
    kind = level.partition(":")[0]
    if kind not in LEVELS:
        raise LithifyError(f"there is no target {level}", hint=choices(level, LEVELS, "targets are"))
    if device is None or kind in _ABOVE_TARGETS:
        return level
    if _DEVICES.get(kind, kind) != device.partition(":")[0]:
        raise LithifyError(f"--target {level} is not what {device} takes", hint="leave one of them out")
    return level if kind in _DEVICES else device


def _text(program: Program, target: str, given: Sequence[Any], sizes: dict[str, int]) -> str:
    from lithify.kernel.show import show
    from lithify.lang.printer import show_program

    if target == "program":
        elaborated = program.specialise(*given, sizes=sizes).elaborated
        return show_program(elaborated.term, list(elaborated.parameters))
    if target == "lowered":
        specialisation = program.specialise(*given, sizes=sizes)
        return show_program(specialisation.lowered.term, list(specialisation.elaborated.parameters))
    if target == "kernel":
        return show(program.kernels(*given, sizes=sizes))
    if target == "asm":
        from lithify.targets.cpu import CpuTarget

        return CpuTarget().assembly(program.on("cpu").kernels(*given, sizes=sizes))
    return program.source(*given, target=target, sizes=sizes)
