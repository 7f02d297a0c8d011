"""`lithify devices`."""

from __future__ import annotations

from lithify.cli.console import out, working


def list_devices() -> None:
    """A table of what there is and what is missing."""
    from rich.table import Table

    from lithify.program.devices import DEFAULT, devices

    with working("looking for devices"):
        found = devices()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("device", "is", "state"):
        table.add_column(title, overflow="fold")
    for each in found:
        state = "ready, the default" if each.name == DEFAULT else "ready"
        if not each.available:
            state = each.reason + (f"\n{each.hint}" if each.hint else "")
        table.add_row(each.name, each.description, state, style=None if each.available else "dim")
    out().print(table, soft_wrap=False)
