"""Compiled kernels on disk, so that no process compiles what an earlier one did.

One file an entry, in the user's cache directory or in LITHIFY_CACHE. A key is a digest of everything that matters:
what the caller says (program, strategy, target, device, compiler, threads, flags), this package's version, and its own
source files. Files are written under another name and moved into place, so that other processes see all of an entry or
nothing; each holds a checksum, and one that does not fit is removed. When the directory outgrows its bound, the entries
that were used longest ago go. Nothing here raises for a directory that cannot be written: then nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lithify.version import __version__

MOST_BYTES = 1 << 29
_MAGIC = b"lithify1"
_DIGEST = hashlib.blake2b
_DIGEST_BYTES = 16
_SUFFIX = ".kernel"


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the cache holds, and how this process used it."""

    directory: str
    entries: int
    bytes: int
    hits: int
    misses: int


@cache
def package_digest() -> str:
    """A digest of this package's source files: their names, sizes and times of change."""
    root = Path(__file__).resolve().parent.parent
    digest = _DIGEST(__version__.encode(), digest_size=_DIGEST_BYTES)
    for path, status in sorted(_sources(str(root))):
        digest.update(f"{path[len(str(root)) :]} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _sources(entry.path)
            elif entry.name.endswith((".py", ".lift")):
                yield entry.path, entry.stat()


class KernelCache:
    """A directory of entries (bytes by key), of bounded size, shared by processes."""

    def __init__(self, directory: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._written = 0
        self._hits = 0
        self._misses = 0

    @property
    def directory(self) -> Path:
        """Where the entries are: as constructed, LITHIFY_CACHE, or the user's cache directory."""
        if self._directory is not None:
            return self._directory
        named = os.environ.get("LITHIFY_CACHE")
        if named:
            return Path(named)
        import platformdirs

        return Path(platformdirs.user_cache_dir("lithify")) / "kernels"

    def key(self, *parts: str) -> str:
        """The key of what is determined by `parts`, by the package's version and by its source."""
        digest = _DIGEST(package_digest().encode(), digest_size=_DIGEST_BYTES)
        for part in parts:
            data = part.encode(errors="surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        """The entry, or None."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            self._misses += 1
            return None
        body = data[len(_MAGIC) + _DIGEST_BYTES :]
        if data[: len(_MAGIC) + _DIGEST_BYTES] != _MAGIC + _checksum(body):
            _remove(path)
            self._misses += 1
            return None
        self._hits += 1
        with contextlib.suppress(OSError):
            os.utime(path)  # it was used now
        return body

    def put(self, key: str, data: bytes) -> None:
        """Keep an entry."""
        path = self._path(key)
        # no other writer has this name: not another process, thread, or entry
        temporary = path.with_name(f".{key}-{os.getpid()}-{threading.get_ident()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(_MAGIC + _checksum(data) + data)
            os.replace(temporary, path)
        except OSError:
            _remove(temporary)
            return
        self._written += len(data)
        if self._written > self._most_bytes // 16 or self._written == len(data):
            self._written = 1
            self._shrink()

    def clear(self) -> int:
        """Remove all entries; how many were removed."""
        entries = self._entries()
        for path, _ in entries:
            _remove(path)
        return len(entries) - len(self._entries())

    def stats(self) -> Statistics:
        """What the cache holds now."""
        entries = self._entries()
        size = sum(status.st_size for _, status in entries)
        return Statistics(str(self.directory), len(entries), size, self._hits, self._misses)

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / (key + _SUFFIX)

    def _entries(self) -> list[tuple[Path, os.stat_result]]:
        found = []
        for path in self.directory.glob(f"*/*{_SUFFIX}"):
            try:
                found.append((path, path.stat()))
            except OSError:  # removed by another process meanwhile
                continue
        return found

    def _shrink(self) -> None:
        """Remove the entries used longest ago until the rest takes at most the bound."""
        entries = sorted(self._entries(), key=lambda entry: entry[1].st_mtime_ns)
        size = sum(status.st_size for _, status in entries)
        for path, status in entries:
            if size <= self._most_bytes:
                return
            _remove(path)
            size -= status.st_size


def _checksum(data: bytes) -> bytes:
    return _DIGEST(data, digest_size=_DIGEST_BYTES).digest()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


CACHE = KernelCache()
