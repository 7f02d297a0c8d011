"""`lithify records`: what was measured on this machine and on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.cli.console import broken, note, out, print_rows
from lithify.lang.errors import LithifyError
from lithify.lang.spelling import choices

if TYPE_CHECKING:
    from lithify.explore.record import Record

_WIDTH = 90  # of the lines that versions are broken into


def list_records(device: str | None, family: str | None) -> None:
    """The problems of each device with their times, and what is best for them."""
    from rich.text import Text

    from lithify.explore.records import RECORDS
    from lithify.lowering.families import FAMILIES
    from lithify.program.explain import duration

    known = dict.fromkeys([*(each.name for each in FAMILIES), *(r.family for r in RECORDS.all())])
    if family is not None and family not in known:
        raise LithifyError(f"there is no family {family}", hint=choices(family, known, "the families are"))
    found = [r for r in _records(device) if family is None or r.family == family]
    if not found:
        note(f"there are no records in {RECORDS.path}" if RECORDS.path else "records are switched off")
        return
    for name in dict.fromkeys(r.device for r in found):
        out().print(Text(name, style="bold"))
        for r in (r for r in found if r.device == name):
            gain = "" if r.gain is None else f", {r.gain:.3g} x the default"
            out().print(f"  {r.problem}: {duration(r.seconds)}{gain}")
            out().print(Text(f"    {r.parameters}", style="dim"))


def show_record(
    problem: str, arguments: Sequence[str], sizes: Sequence[str], device: str | None, derivation: bool
) -> None:
    """Everything that one record says."""
    from lithify.program.explain import duration

    for r in _of(problem, arguments, sizes, device):
        if derivation:
            print(r.derivation)
            continue
        default = "not right" if r.default_seconds is None else f"{duration(r.default_seconds)}, {r.gain:.3g} x"
        bound = "not known"
        if r.bound_seconds is not None:
            bound = f"{duration(r.bound_seconds)}, {r.bound_seconds / r.seconds:.0%} reached"
        rows = [
            ("problem", r.problem),
            ("device", r.device),
            ("family", r.family),
            ("best", r.parameters),
            ("time", f"{duration(r.seconds)} ({duration(r.low)} .. {duration(r.high)}, median and quartiles)"),
            ("default", default),
            ("bound", bound),
            ("measured", f"{r.measured} candidates, {r.state}"),
            *[
                ("" if k else "versions", line)
                for k, line in enumerate(line for item in r.versions.items() for line in broken(" ".join(item), _WIDTH))
            ],
            ("date", r.date),
        ]
        print_rows(rows)


def best_of(problem: str, arguments: Sequence[str], sizes: Sequence[str], device: str | None) -> None:
    """The parameters alone, for scripts."""
    for r in _of(problem, arguments, sizes, device):
        print(r.parameters)


def export_records(path: str, device: str | None) -> None:
    """Write records as lines of JSON; those that ship with the package are no news."""
    from lithify.explore.records import RECORDS

    wanted = None if device is None else _fingerprint(device)
    found = [r for r in RECORDS.own() if wanted is None or r.device == wanted]
    if not found:
        raise LithifyError("there are no records to export", hint="lithify tune makes some")
    try:
        Path(path).write_text("".join(f"{r.as_line()}\n" for r in found), encoding="utf-8")
    except OSError as error:
        raise LithifyError(f"{path} cannot be written: {error.strerror or error}") from error
    note(f"{path}: {len(found)} records")


def merge_records(paths: Sequence[str]) -> None:
    """Take over the records of files: exported lines, or databases."""
    from lithify.explore.records import RECORDS, read_file

    read = [(path, read_file(Path(path))) for path in paths]
    if RECORDS.path is None:
        raise LithifyError("records are switched off", hint="LITHIFY_RECORDS is empty: unset it, or name a file")
    for path, found in read:
        print(f"{path}: {RECORDS.merge(found)} of {len(found)} records taken over")


def _records(device: str | None) -> list[Record]:
    from lithify.explore.records import RECORDS

    wanted = None if device is None else _fingerprint(device)
    return [r for r in RECORDS.all() if wanted is None or r.device == wanted]


def _fingerprint(name: str) -> str:
    """The fingerprint of a device of this machine, or of another one, as it is listed."""
    from lithify.explore.records import RECORDS
    from lithify.program.devices import device

    if any(r.device == name for r in RECORDS.all()):
        return name
    return device(name).model.fingerprint


def _of(problem: str, arguments: Sequence[str], sizes: Sequence[str], device: str | None) -> list[Record]:
    """The records of a problem: written as they are listed, in any spelling of a problem line, or as a program."""
    known = _records(device)
    lines = {problem}
    if not any(r.problem == problem for r in known):
        lines |= set(_lines_of(problem, arguments, sizes))
    found = [r for r in known if r.problem in lines]
    if not found:
        raise LithifyError(
            f"there is no record of `{problem}`",
            hint="`lithify tune` and `lithify explore` make them, `lithify records list` shows what there is",
        )
    return found


def _lines_of(problem: str, arguments: Sequence[str], sizes: Sequence[str]) -> Iterator[str]:
    """The lines under which the records of a problem or program may be kept."""
    from lithify.cli.inputs import read_sizes, read_types
    from lithify.cli.programs import find_program
    from lithify.explore.problems import is_problem, normalised
    from lithify.lowering.families import recognise
    from lithify.lowering.loops import name_loops
    from lithify.program.explored import problem_of

    if is_problem(problem):
        yield normalised(problem)
        return
    if any(character.isspace() for character in problem):
        return
    program = find_program(problem)
    fixed = read_sizes(sizes)
    specialisation = program.specialise(*read_types(program, arguments, fixed, 0), sizes=fixed)
    found = recognise(name_loops(specialisation.elaborated.term))
    if found is not None:
        yield found[1].line
    yield problem_of(specialisation).line
