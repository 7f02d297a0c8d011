"""`lithify derive`: how a program becomes a lowered program, step by step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lithify.cli.console import fitted, note, out, working
from lithify.cli.inputs import read_fixed_types, read_sizes
from lithify.cli.programs import find_program
from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from rich.text import Text

    from lithify.lang.term import Term
    from lithify.program import Program
    from lithify.program.specialise import Specialisation
    from lithify.rewrite import Derivation


def derive_program(
    reference: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    device: str | None,
    strategy: str | None,
    steps: bool,
    programs: bool,
    verify: bool,
    save: str | None,
    replay: str | None,
) -> None:
    """Print a derivation: the names of the steps, or what each rewrites, or the whole program after each."""
    if strategy is not None and replay is not None:
        raise LithifyError("--strategy and --replay exclude each other: a derivation says every step")
    if save is not None and not Path(save).resolve().parent.is_dir():
        raise LithifyError(f"{save} cannot be written: there is no directory {Path(save).parent}")
    program: Program = find_program(reference, device=device, strategy=strategy)
    fixed = read_sizes(sizes)
    given = read_fixed_types(program, arguments, fixed)
    specialisation = program.specialise(*given, sizes=fixed)
    start = time.perf_counter()
    with working(f"deriving {program.name}"):
        derivation = _derivation(specialisation, replay, verify)
    seconds = time.perf_counter() - start
    if save is not None:  # first: whoever reads the output may stop
        _save(derivation, save)
    parameters = list(specialisation.elaborated.parameters)
    _show_program("the program", derivation.start, parameters)
    _show_steps(derivation, steps, programs)
    _show_program("the lowered program", derivation.term, parameters)
    verified = ", each evaluates equal to the one before" if verify else ""
    note(f"{len(derivation.steps)} steps in {seconds * 1e3:.0f} ms{verified}")


def _derivation(specialisation: Specialisation, replay: str | None, verify: bool) -> Derivation:
    if replay is not None:
        from lithify.program.derivations import replay as follow

        text = _read(replay)
        try:
            return follow(text, specialisation.elaborated.term, check=verify)
        except LithifyError as error:
            error.message = f"--replay {replay}: {error.message}"
            raise
    return specialisation.checked().derivation if verify else specialisation.lowered.derivation


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise LithifyError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise LithifyError(
            f"--replay {path}: this is no saved derivation: it is no text", hint="derivations are written by --save"
        ) from error


def _save(derivation: Derivation, path: str) -> None:
    from lithify.rewrite.record import save

    try:
        Path(path).write_text(save(derivation) + "\n", encoding="utf-8")
    except OSError as error:
        raise LithifyError(f"{path} cannot be written: {error.strerror or error}") from error
    note(f"{path}: {len(derivation.steps)} steps")


# ---- showing ---------------------------------------------------------------------------------------------------------


def _show_program(title: str, term: Term, parameters: list[tuple[str, Any]]) -> None:
    from rich.text import Text

    from lithify.lang.printer import show_program

    out().print(Text(title, style="bold"))
    out().print(_indented(show_program(term, parameters)))


def _show_steps(derivation: Derivation, steps: bool, programs: bool) -> None:
    from rich.text import Text

    from lithify.rewrite.derivation import numbers, places, same_rewrites

    if not steps and not programs:
        from lithify.program.explain import summary

        names = summary(derivation.names()) or "no steps"
        out().print(Text.assemble(("by ", "bold"), fitted(names, len("by "), out())))
    elif programs:
        _show_programs(derivation)
    else:
        number = 1
        for same in same_rewrites(derivation.steps):
            title, step = f"{numbers(number, same):>4}. ", same[0]
            out().print(Text.assemble((title, "dim"), (step.rule.name, "bold green"), (f"  {places(same)}", "dim")))
            out().print(_indented(str(step.before), 6, "- ", "red"))
            out().print(_indented(str(step.after), 6, "+ ", "green"))
            number += len(same)


def _show_programs(derivation: Derivation) -> None:
    """The whole program after each step, with what changed in another colour (between backquotes without colours)."""
    from rich.text import Text

    from lithify.rewrite.record import steps_text

    for text in islice(steps_text(derivation), 1, None):
        title, _, body = text.partition("\n\n")
        name, _, rule = title.partition("    ")
        out().print(Text.assemble((name, "bold green"), (f"    {rule}", "dim")))
        out().print(_marked(body) if out().is_terminal else body)


def _marked(text: str) -> Text:
    from rich.text import Text

    shown = Text()
    for position, part in enumerate(text.split("`")):
        shown.append(part, style="bold yellow" if position % 2 else "")
    return shown


def _indented(text: str, by: int = 2, mark: str = "", style: str = "") -> Text:
    from rich.text import Text

    blank = " " * len(mark)
    lines = [f"{' ' * by}{mark if k == 0 else blank}{line}" for k, line in enumerate(text.splitlines())]
    return Text("\n".join(lines), style=style)
