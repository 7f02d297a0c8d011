"""Where tuning records lie, and a mark that changes with them: all that a call needs where nothing was tuned since."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_SHIPPED = Path(__file__).resolve().parent / "shipped"


def path_of_records() -> Path | None:
    """The file: LITHIFY_RECORDS, or `records.sqlite` in the user's data directory; None where LITHIFY_RECORDS is empty,
    which switches records off.
    """
    named = os.environ.get("LITHIFY_RECORDS")
    if named is not None:
        return Path(named) if named else None
    return _default_path()


def state_of_records(device: str) -> str:
    """A text that changes when records of a device (its fingerprint) may have; "" where there are none at all.

    Takes microseconds.
    """
    path = path_of_records()
    if path is None:
        return ""
    return " ".join(filter(None, (_mark(path), _mark(path.with_name(path.name + "-wal")), _shipped_mark(device))))


@cache
def shipped_files() -> tuple[Path, ...]:
    """The files of records that come with the package, each named by the device that its records are of."""
    return tuple(sorted(_SHIPPED.glob("*.jsonl")))


@cache
def _default_path() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("lithify")) / "records.sqlite"


def _mark(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{path} {status.st_size} {status.st_mtime_ns}" if status.st_size else ""


@cache
def _shipped_mark(device: str) -> str:
    return _mark(_SHIPPED / f"{device}.jsonl")
