"""What is written: results to the standard output, everything about them to the standard error."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_NARROW = 20  # columns: on less, texts are not broken
_PIECE = re.compile(r"\s+|[^\s,]+,*|,+")  # what stays together: a word, or a part of one up to its comma
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

    first, newline, rest = visible(message).partition("\n")
    text = Text.assemble(("error: ", "bold red"), (first, "bold"), newline + rest)
    if where:
        text.append("\n" + visible(where))
    if hint:
        text.append("\nhint: ", style="bold cyan").append(fitted(visible(hint), len("hint: "), err()))
    err().print(text)


def visible(text: str) -> str:
    """The text with control characters, which a terminal would obey, replaced by one that is seen."""
    return text if text.isprintable() else "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)


def note(text: str) -> None:
    """A remark, on the standard error."""
    from rich.text import Text

    err().print(Text(fitted(text, 2, err()), style="dim"))


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Titles and their texts, one under the other. On a terminal texts that are longer than it is wide are broken."""
    shown = list(rows)
    width = max((len(title) for title, _ in shown), default=0)
    for title, text in shown:
        out().print(f"{title:{width}}  {fitted(text, width + 2, out())}")


def fitted(text: str, indent: int, console: Console) -> str:
    """The text with its lines broken to a terminal's width, the following ones indented; as it is elsewhere."""
    width = console.width - indent
    if not console.is_terminal or width < _NARROW:
        return text
    return f"\n{' ' * indent}".join(line for part in text.splitlines() or [""] for line in broken(part, width))


def broken(text: str, width: int) -> list[str]:
    """A text as lines of at most a width, broken at blanks or after commas; a longer word stays whole."""
    lines = [""]
    for piece in _PIECE.findall(text):
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1].strip():
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        if lines[-1] or len(lines) == 1 or not piece.isspace():
            lines[-1] += piece
    return lines


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
