"""`lithify bench`: a program's time on one or more devices, beside the machine's bound and the reference evaluator."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lithify.cli.console import note, out, working
from lithify.cli.inputs import read_sizes, read_values
from lithify.cli.programs import find_program
from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from lithify.program import Program
    from lithify.program.explain import Explanation

_REFERENCE_SECONDS = 2.0


def bench_program(
    reference: str,
    arguments: Sequence[str],
    sizes: Sequence[str],
    devices: Sequence[str],
    strategy: str | None,
    evaluator: bool,
    seed: int,
) -> None:
    """Measure, and print a table."""
    program: Program = find_program(reference, strategy=strategy)
    targets = [program.on(name) for name in devices]
    fixed = read_sizes(sizes)
    values = read_values(program, arguments, fixed, seed)
    found: dict[str, Explanation] = {}
    for each in targets:
        with working(f"{each.name} on {each.device}"):
            found[each.device.name] = each.explain(*values, sizes=fixed)
    by_reference = None
    if evaluator:
        with working("the reference evaluator"):
            by_reference = _reference_seconds(targets[0], values, fixed)
    _print(found, by_reference)


def _reference_seconds(program: Program, values: Sequence[Any], sizes: dict[str, int]) -> float | None:
    """Seconds that the reference evaluator takes; None where it does not get through."""
    from lithify.evaluate import evaluate

    elaborated = program.specialise(*values, sizes=sizes).elaborated
    inputs = dict(zip([name for name, _ in elaborated.parameters], values, strict=True))
    try:
        return _median(lambda: evaluate(elaborated.term, inputs, exact=False), _REFERENCE_SECONDS)
    except (LithifyError, MemoryError) as error:
        note(f"the reference evaluator fails: {error}")
        return None


def _median(run: Callable[[], object], budget: float) -> float:
    seconds: list[float] = []
    while not seconds or (sum(seconds) < budget and len(seconds) < 7):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _print(found: Mapping[str, Explanation], by_reference: float | None) -> None:
    """A table with a row for each device, by its short name; below it what each is and what to bear in mind."""
    from rich.table import Table

    from lithify.program.explain import duration, why_above

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("device")
    for title in ("time", "GB/s", "G/s", "bound", "share"):
        table.add_column(title, justify="right")
    table.add_column("what binds")
    for name, each in found.items():
        operations = sum(each.work.operations.values())
        table.add_row(
            name,
            duration(each.seconds),
            f"{each.work.bytes / each.seconds / 1e9:.3g}",
            f"{operations / each.seconds / 1e9:.3g}",
            duration(each.bound.seconds),
            f"{each.share:.0%}",
            f"{each.binds}, estimated" if each.estimated else each.binds,
        )
    if by_reference is not None:
        faster = by_reference / next(iter(found.values())).seconds
        # it evaluates pattern by pattern and is no measure of what NumPy can do
        table.add_row("reference evaluator", duration(by_reference), "", "", "", "", f"{faster:.3g} times slower")
    out().print(table, soft_wrap=False)
    for name, each in found.items():
        note(each.device)
        if each.estimated:
            note(f"{name}: the rate of {each.binds} is an estimate, and so are the bound and the share of it")
        why = why_above(each.share, each.bound.resource)
        if why:
            note(f"{name}: a share of {each.share:.0%}{why}")
        for text in each.notes:
            note(f"{name}: {text}")
        note(f"{name}: {next(text for title, text in each.rows() if title == 'derivation')}")
