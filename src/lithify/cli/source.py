"""`lithify source`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lithify.cli.console import note, working
from lithify.cli.inputs import read_arguments, read_sizes
from lithify.cli.programs import find_program
from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from lithify.program import Program

LEVELS = ("program", "lowered", "kernel", "cpu", "asm", "opencl", "c")


def print_source(
    reference: str,
    target: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    strategy: str | None,
    output: str | None,
) -> None:
    """Print one level of a program's compilation, or write it to a file."""
    if target.partition(":")[0] not in LEVELS:
        raise LithifyError(f"there is no target {target}", hint=f"targets are {', '.join(LEVELS)}")
    program = find_program(reference, strategy=strategy)
    fixed = read_sizes(sizes)
    given = read_arguments(program, arguments, 0, types=True) if arguments or not program.annotated else ()
    with working(f"deriving {program.name}"):
        text = _text(program, target, given, fixed)
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise LithifyError(f"{output} cannot be written: {error.strerror or error}") from error
    note(f"{output}: {len(text.splitlines())} lines")


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
