"""What tuning found: the best for a problem on a device, and each measurement on the way to it.

A record is written as one line of JSON when it is exported, so that files of several machines can be compared, merged
and shipped.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lithify.lang.errors import LithifyError

_FORMAT = 1


@dataclass(frozen=True)
class Record:
    """The best that was found for a problem on a device.

    `parameters` is the candidate's key (`key=value,..`), `seconds` its median, `low` and `high` the quartiles;
    `default_seconds` is what the device's default takes, measured side by side (None where it is not right),
    `bound_seconds` the least time by the roofline (None where that is not known); `measured` counts candidates. `sizes`
    and `scalars` are the problem's, for finding near ones; `derivation` is the saved form of the rewriting ("" if there
    is none).
    """

    problem: str
    device: str
    family: str
    parameters: str
    seconds: float
    low: float
    high: float
    default_seconds: float | None
    bound_seconds: float | None
    measured: int
    state: str = field(repr=False)
    sizes: Mapping[str, int]
    scalars: Mapping[str, str]
    versions: Mapping[str, str] = field(repr=False)
    date: str
    derivation: str = field(default="", repr=False)

    @property
    def gain(self) -> float | None:
        """How many times faster than the default."""
        return None if self.default_seconds is None else self.default_seconds / self.seconds

    def as_line(self) -> str:
        """The record as one line of JSON."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, ensure_ascii=False)

    @staticmethod
    def from_line(line: str) -> Record:
        """The inverse of `as_line`. Raises LithifyError for a line that is none."""
        try:
            data = json.loads(line)
            if data.pop("format") != _FORMAT:
                raise LithifyError("a tuning record of another format", hint=f"this version reads format {_FORMAT}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LithifyError(f"this is no tuning record: {line[:80]}") from error
        return Record.from_data(data, line)

    @staticmethod
    def from_data(data: Any, text: str) -> Record:
        """The record of its fields by name, which `text` says. Raises LithifyError where one is missing or no such."""
        try:
            record = Record(**data)
        except TypeError as error:
            raise LithifyError(f"this is no tuning record: {text[:80]}") from error
        wrong = next((name for name, (right, _) in _FIELDS.items() if not right(getattr(record, name))), None)
        if wrong is not None:
            shown = f"{wrong} is {getattr(record, wrong)!r}"
            raise LithifyError(f"this is no tuning record: {shown[:80]}", hint=f"{wrong} should be {_FIELDS[wrong][1]}")
        return record


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _are(type_: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(isinstance(v, type_) for v in value.values())


_TEXT = (lambda value: isinstance(value, str), "a text")
_TIME = (_is_time, "a time in seconds")
_OR_NONE = (lambda value: value is None or _is_time(value), "a time in seconds, or null")
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("problem", "device", "family", "parameters", "state", "date", "derivation"), _TEXT),
    **dict.fromkeys(("seconds", "low", "high"), _TIME),
    **dict.fromkeys(("default_seconds", "bound_seconds"), _OR_NONE),
    "measured": (lambda value: isinstance(value, int), "a number of candidates"),
    "sizes": (_are(int), "numbers by name"),
    "scalars": (_are(str), "types by name"),
    "versions": (_are(str), "texts by name"),
}
"""What each field of a record has to be: files of records come from anywhere."""


@dataclass(frozen=True)
class Measured:
    """One candidate's measurement: how it ended (right, wrong, failed, crashed, timeout), and seconds if it was right.

    `cost` is how long the search was busy with it.
    """

    candidate: str
    state: str
    seconds: float | None = None
    samples: tuple[float, ...] = ()
    detail: str = ""
    cost: float = 0.0


def now() -> str:
    """The time, as records say it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
