"""`lithify explain`: how good a program's kernels are, what binds them, and why they won."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lithify.cli.console import print_rows, working
from lithify.cli.inputs import read_arguments, read_sizes
from lithify.cli.programs import find_program

if TYPE_CHECKING:
    from lithify.program import Program
    from lithify.program.why import Rival

_MOST = 8


def explain_program(
    reference: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    device: str | None,
    strategy: str | None,
    seed: int,
) -> None:
    """Measure, relate the time to the bound, and compare with the rivals."""
    from lithify.program.why import rivals

    program: Program = find_program(reference, device=device, strategy=strategy)
    fixed = read_sizes(sizes)
    values = _values(program, arguments, fixed, seed)
    with working(f"{program.name} on {program.device}"):
        explanation = program.explain(*values, sizes=fixed)
        found = rivals(program.for_these_sizes().specialise(*values, sizes=fixed))
    print_rows([*explanation.rows(), *_rivals(found)])


def _values(program: Program, arguments: Sequence[str], sizes: dict[str, int], seed: int) -> Sequence[Any]:
    """The given arguments, or random ones of the types that the program says."""
    if arguments or not program.annotated:
        return read_arguments(program, arguments, sizes, seed, types=True)
    import numpy as np

    from lithify.program.tune import centred

    random = np.random.default_rng(seed)
    return [centred(type_, random) for type_ in program.types(sizes=sizes)[0]]


def _rivals(found: Sequence[Rival]) -> list[tuple[str, str]]:
    """The winner's parameters; each rival's, with what the winner does differently often."""
    from lithify.program.explain import duration
    from lithify.program.why import differences

    winner, *others = found
    rows = [("parameters", winner.parameters or "none: there is one lowering")]
    if not others and winner.parameters:
        rows.append(("", "they are the default; nothing else was measured (lithify tune measures)"))
    for rival in others:
        measured = f", measured at {duration(rival.seconds)}" if rival.seconds is not None else ""
        rows.append((rival.role, f"{rival.parameters}{measured}"))
        rows += [("  the winner has", str(each)) for each in differences(winner.census, rival.census)[:_MOST]]
    return rows
