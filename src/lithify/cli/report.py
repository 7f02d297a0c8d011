"""`lithify report`: pages and pictures made from the code and from what was recorded."""

from __future__ import annotations

from pathlib import Path

from lithify.cli.console import note
from lithify.lang.errors import LithifyError


def write_derivations(folder: str) -> None:
    """Write the pages of derivations."""
    from lithify.report.derivations import all_texts

    for name, text in all_texts().items():
        _write(Path(folder) / name, text)
    note(f"{folder}: the pages of derivations")


def write_names(folder: str) -> None:
    """Write the page of all names."""
    from lithify.report.names import PAGE, text

    _write(Path(folder) / PAGE, text())
    note(f"{folder}/{PAGE}: all names")


def draw_pictures(folder: str, recorded: str) -> None:
    """Draw the pictures of exploration from recorded data."""
    from lithify.report.pictures import draw_all

    for path in draw_all(Path(recorded), Path(folder)):
        note(str(path))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LithifyError(f"{path} cannot be written: {error.strerror or error}") from error
