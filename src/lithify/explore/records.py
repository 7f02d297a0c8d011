"""The file of tuning records: what was measured, and the best of each problem on each device, in one sqlite file.

Records that ship with the package (`shipped/*.jsonl`) are read beside it.

Processes may read and write at the same time. Every measurement is committed when it is made: a search that is
interrupted goes on where it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lithify.explore.place import path_of_records, shipped_files
from lithify.explore.record import Measured, Record, now
from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    import sqlite3

_WAIT = 10.0  # seconds that a writer waits for another
_ALIKE = 0.1  # how much the times of defaults may differ on machines that are alike

_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    problem TEXT NOT NULL, device TEXT NOT NULL, family TEXT NOT NULL, data TEXT NOT NULL, derivation BLOB,
    PRIMARY KEY (problem, device));
CREATE TABLE IF NOT EXISTS measurements (
    problem TEXT NOT NULL, device TEXT NOT NULL, build TEXT NOT NULL, candidate TEXT NOT NULL, state TEXT NOT NULL,
    seconds REAL, samples TEXT NOT NULL, detail TEXT NOT NULL, cost REAL NOT NULL, date TEXT NOT NULL,
    PRIMARY KEY (problem, device, build, candidate));
"""

_VERSION = 0  # sqlite's user_version: of a layout that this code cannot read it will be another
_RECORDED = "problem, device, family, data, derivation"
_MEASURED = "problem, device, build, candidate, state, seconds, samples, detail, cost, date"
_REPAIRED = "`lithify tune --fresh` measures the problem again; LITHIFY_RECORDS names another file"


class Records:
    """The records of a file (the user's if none is given)."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._connections: dict[tuple[int, str], sqlite3.Connection] = {}

    @property
    def path(self) -> Path | None:
        """Where the file is or will be; None where records are switched off (LITHIFY_RECORDS is empty)."""
        return self._path if self._path is not None else path_of_records()

    # ---- reading -----------------------------------------------------------------------------------------------------

    def find(self, problem: str, device: str) -> Record | None:
        """The record of exactly this problem on this device: the user's, else the shipped one."""
        row = self._one("SELECT data, derivation FROM records WHERE problem = ? AND device = ?", problem, device)
        if row is not None:
            return self._read(row)
        return next((r for r in self._shipped() if (r.problem, r.device) == (problem, device)), None)

    def of_family(self, family: str, device: str) -> list[Record]:
        """The records of a family of problems on a device; of equal problems the user's."""
        rows = self._all("SELECT data, derivation FROM records WHERE family = ? AND device = ?", family, device)
        return _distinct([*map(self._read, rows), *self._shipped(family=family, device=device)])

    def all(self) -> list[Record]:
        """Every record, the user's and the shipped ones, by device and problem."""
        return sorted(_distinct([*self.own(), *self._shipped()]), key=lambda r: (r.device, r.problem))

    def own(self) -> list[Record]:
        """The user's records alone, by device and problem."""
        rows = self._all("SELECT data, derivation FROM records ORDER BY device, problem")
        return list(map(self._read, rows))

    def measurements(self, problem: str, device: str, build: str | None = None) -> list[Measured]:
        """What was measured by this build of the package, in order; by all builds if none is given."""
        condition, values = "problem = ? AND device = ?", [problem, device]
        if build is not None:
            condition, values = f"{condition} AND build = ?", [*values, build]
        rows = self._all(
            f"SELECT candidate, state, seconds, samples, detail, cost FROM measurements WHERE {condition} "
            "ORDER BY rowid",
            *values,
        )
        return [self._measured(*row) for row in rows]

    # ---- writing -----------------------------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Raises LithifyError where nothing could be kept: a search should not find that out in the end."""
        self._write("DELETE FROM measurements WHERE problem = ?", [("",)])

    def add_measurement(self, problem: str, device: str, build: str, measured: Measured) -> None:
        """Keep a measurement; one of the same candidate is replaced."""
        samples = json.dumps([float(f"{s:.4g}") for s in measured.samples])
        values = (problem, device, build, measured.candidate, measured.state, measured.seconds, samples,
                  measured.detail, measured.cost, now())  # fmt: skip
        self._write(
            f"INSERT OR REPLACE INTO measurements ({_MEASURED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [values]
        )

    def put(self, record: Record) -> None:
        """Keep a record; one of the same problem and device is replaced."""
        self._put([record])

    def merge(self, records: Iterable[Record]) -> int:
        """Keep records of other machines: those of problems that are new here, or faster than what is here; how many.

        Faster counts only where the time of the default says that the machines are alike (within a tenth): otherwise
        the later one is kept.
        """
        kept = [r for r in records if self._is_better(r)]
        self._put(kept)
        return len(kept)

    def forget(self, problem: str, device: str) -> None:
        """Remove what was measured of a problem on a device, and its record."""
        for table in ("measurements", "records"):
            self._write(f"DELETE FROM {table} WHERE problem = ? AND device = ?", [(problem, device)])

    def close(self) -> None:
        """Close the file."""
        while self._connections:
            self._connections.popitem()[1].close()

    def _is_better(self, record: Record) -> bool:
        here = self.find(record.problem, record.device)
        if here is None:
            return True
        ours, theirs = here.default_seconds, record.default_seconds
        if ours is not None and theirs is not None and abs(ours / theirs - 1) < _ALIKE:
            return record.seconds < here.seconds
        return record.date > here.date

    def _put(self, records: Iterable[Record]) -> None:
        rows = [(r.problem, r.device, r.family, json.dumps({**asdict(r), "derivation": ""}, ensure_ascii=False),
                 zlib.compress(r.derivation.encode()) if r.derivation else None) for r in records]  # fmt: skip
        self._write(f"INSERT OR REPLACE INTO records ({_RECORDED}) VALUES (?, ?, ?, ?, ?)", rows)

    # ---- the file ----------------------------------------------------------------------------------------------------

    def _shipped(self, **wanted: str) -> Iterator[Record]:
        if self.path is None:
            return
        for record in shipped():
            if all(getattr(record, name) == value for name, value in wanted.items()):
                yield record

    def _read(self, row: tuple[str, bytes | None]) -> Record:
        try:
            return _record(*row)
        except LithifyError as error:
            error.hint = error.hint or _REPAIRED
            raise error.located(f"in {self.path}") from None

    def _measured(
        self, candidate: str, state: str, seconds: float | None, samples: str, detail: str, cost: float
    ) -> Measured:
        try:
            times = [float(each) for each in json.loads(samples)]
            best = None if seconds is None else float(seconds)
            return Measured(candidate, state, best, tuple(times), detail, float(cost))
        except (TypeError, ValueError) as error:
            raise LithifyError(
                f"what is recorded of {candidate} is no measurement: {error}", where=f"in {self.path}", hint=_REPAIRED
            ) from error

    def _one(self, query: str, *values: str) -> Any:
        return next(iter(self._all(query, *values)), None)

    def _all(self, query: str, *values: str) -> list[Any]:
        path = self.path
        if path is None or not path.exists():
            return []
        import sqlite3

        try:
            return self._connection(path).execute(query, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):  # made by another process, which has not filled it yet
                return []
            raise _unusable(path, error) from error
        except sqlite3.DatabaseError as error:
            raise _unusable(path, error) from error

    def _write(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        path = self.path
        if path is None:
            return
        import sqlite3

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = self._connection(path)
            with connection:
                connection.executemany(query, list(rows))
        except (OSError, sqlite3.DatabaseError) as error:
            raise _unusable(path, error) from error

    def _connection(self, path: Path) -> sqlite3.Connection:
        """This process's connection; a forked process makes its own."""
        import sqlite3

        key = (os.getpid(), str(path))
        found = self._connections.get(key)
        if found is None:
            if _is_writable(path):
                found = sqlite3.connect(path, timeout=_WAIT, check_same_thread=False)
                with contextlib.suppress(sqlite3.OperationalError):  # another process is at it
                    found.execute("PRAGMA journal_mode = WAL")
                    found.execute("PRAGMA synchronous = NORMAL")
                    found.executescript(_SCHEMA)
            else:  # and there is no place beside it for what sqlite tells other processes
                address = f"{path.absolute().as_uri()}?immutable=1"
                found = sqlite3.connect(address, uri=True, timeout=_WAIT, check_same_thread=False)
            later: int = found.execute("PRAGMA user_version").fetchone()[0]
            if later > _VERSION:
                found.close()
                raise LithifyError(
                    f"the tuning records in {path} were written by a later version of lithify",
                    hint="LITHIFY_RECORDS names another file; `lithify records export` of that version writes them out",
                )
            self._connections[key] = found
        return found


def read_file(path: Path) -> list[Record]:
    """The records of an exported file (lines of JSON) or of another database. Raises LithifyError."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
        if head.startswith(b"SQLite format 3"):
            other = Records(path)
            rows = other._all("SELECT data, derivation FROM records")
            other.close()
            return [_record(*row) for row in rows]
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is neither text nor a database"
        raise LithifyError(f"{path} cannot be read: {reason}") from error
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(Record.from_line(line))
            except LithifyError as error:
                raise error.located(f"{path}, line {number}") from None
    return found


@cache
def shipped() -> tuple[Record, ...]:
    """The records that come with the package."""
    return tuple([record for path in shipped_files() for record in read_file(path)])


def _record(data: str, derivation: bytes | None) -> Record:
    try:
        fields = json.loads(data)
        text = zlib.decompress(derivation).decode() if derivation else ""
    except (TypeError, ValueError, zlib.error) as error:
        raise LithifyError(f"this is no tuning record: {str(data)[:80]}") from error
    return replace(Record.from_data(fields, data), derivation=text)


def _distinct(records: Iterable[Record]) -> list[Record]:
    """The first of each problem and device."""
    found: dict[tuple[str, str], Record] = {}
    for record in records:
        found.setdefault((record.problem, record.device), record)
    return list(found.values())


def _is_writable(path: Path) -> bool:
    """Can the file be written, and what sqlite puts beside it?"""
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


def _unusable(path: Path, error: Exception) -> LithifyError:
    return LithifyError(
        f"the tuning records in {path} cannot be used: {error}",
        hint="LITHIFY_RECORDS names another file; empty, it switches records off",
    )


RECORDS = Records()
