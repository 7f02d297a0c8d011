"""What is written: results to the standard output, everything about them to the standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 1.0  # seconds after which something that takes longer says what it is


def out() -> Console:
    """The standard output. Texts are printed as they are: brackets are not markup, lines are not broken."""
    return _console(sys.stdout)


def err() -> Console:
    """The standard error."""
    return _console(sys.stderr)


@cache
def _console(stream: Any) -> Console:
    from rich.console import Console

    return Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=True)


def show_error(message: str, where: str | None, hint: str | None) -> None:
    """An error: what was wrong, where, and what to do."""
    from rich.text import Text

    first, newline, rest = message.partition("\n")
    text = Text.assemble(("error: ", "bold red"), (first, "bold"), newline + rest)
    if where:
        text.append("\n" + where)
    if hint:
        text.append("\nhint: ", style="bold cyan").append(hint)
    err().print(text)


def note(text: str) -> None:
    """A remark, on the standard error."""
    from rich.text import Text

    err().print(Text(text, style="dim"))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Something that may take a while: after a second it is said what it is, on a terminal with the time it takes."""
    console = err()
    if not console.is_terminal:
        timer = threading.Timer(PATIENCE, lambda: note(f"{what} ..."))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console,
                        transient=True)  # fmt: skip
    progress.add_task(what, total=None)
    timer = threading.Timer(PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
