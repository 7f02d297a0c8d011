"""`lithify run`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from lithify.cli.console import note, working
from lithify.cli.inputs import read_sizes, read_values
from lithify.cli.outputs import check_outputs, describe, text_of, write_results
from lithify.cli.programs import find_program


def run_program(
    reference: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    outputs: Sequence[str],
    device: str | None,
    strategy: str | None,
    timed: bool,
    seed: int,
) -> None:
    """Run a program; print its result, or write it to files."""
    from lithify.program.arguments import flatten

    program = find_program(reference, device=device, strategy=strategy)
    fixed = read_sizes(sizes)
    check_outputs(outputs)
    values = read_values(program, arguments, fixed, seed)
    with working(f"{program.name} on {program.device}"):
        result = program(*values, sizes=fixed)
    results: list[Any] = flatten([result])
    if outputs:
        for line in write_results(results, outputs):
            note(line)
    else:
        for each in results:
            print(text_of(each))
        note(f"{program.name} : {', '.join(map(describe, results))} on {program.device}")
    if timed:
        _time(program.specialise(*values, sizes=fixed), values)


def _time(specialisation: Any, values: Sequence[Any]) -> None:
    from lithify.program.explain import duration, timings

    with working("measuring"):
        seconds = timings(specialisation, values)
    low, _, high = statistics.quantiles(seconds, n=4)
    middle = statistics.median(seconds)
    note(f"time: {duration(middle)} ({duration(low)} .. {duration(high)}, median and quartiles of {len(seconds)} runs)")
