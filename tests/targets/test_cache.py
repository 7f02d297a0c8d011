"""The cache of compiled kernels: keys, broken entries, bounds, several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lithify.targets import cache
from lithify.targets.cache import KernelCache


@pytest.fixture
def store(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "kernels")


def test_what_was_put_is_got(store: KernelCache) -> None:
    key = store.key("program", "cpu")
    assert store.get(key) is None
    store.put(key, b"code")
    assert store.get(key) == b"code"
    assert KernelCache(store.directory).get(key) == b"code"
    stats = store.stats()
    assert (stats.entries, stats.hits, stats.misses) == (1, 1, 1)
    assert stats.bytes > 4


def test_keys_depend_on_every_part_and_where_it_ends(store: KernelCache) -> None:
    keys = {store.key(*parts) for parts in (("a", "b"), ("ab",), ("a", "b", ""), ("b", "a"), ())}
    assert len(keys) == 5


def test_keys_depend_on_the_source_files(store: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.key("program")
    monkeypatch.setattr(cache, "package_digest", lambda: "another version")
    assert store.key("program") != before


def test_the_digest_sees_a_change_of_one_file(tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    before = sorted((p, s.st_size, s.st_mtime_ns) for p, s in cache._sources(str(tmp_path)))
    assert len(before) == 2
    (tmp_path / "sub/b.py").write_text("x = 12")
    assert sorted((p, s.st_size, s.st_mtime_ns) for p, s in cache._sources(str(tmp_path))) != before


@pytest.mark.parametrize("damage", [b"", b"lithify1", b"lithify1" + bytes(16) + b"code", b"\0" * 100])
def test_broken_entries_are_ignored_and_removed(store: KernelCache, damage: bytes) -> None:
    key = store.key("program")
    store.put(key, b"code")
    (path,) = store.directory.glob("*/*.kernel")
    path.write_bytes(damage)
    assert store.get(key) is None
    assert not path.exists()


def test_an_entry_cut_short_by_one_byte_is_broken(store: KernelCache) -> None:
    key = store.key("program")
    store.put(key, b"code")
    (path,) = store.directory.glob("*/*.kernel")
    path.write_bytes(path.read_bytes()[:-1])
    assert store.get(key) is None


def test_the_entries_used_longest_ago_go_first(tmp_path: Path) -> None:
    store = KernelCache(tmp_path, most_bytes=3000)
    keys = [store.key(str(k)) for k in range(6)]
    for age, key in enumerate(keys[:5]):
        store.put(key, bytes(500))
        os.utime(store._path(key), (1000 + age, 1000 + age))
    assert store.get(keys[0]) is not None  # used now
    store.put(keys[5], bytes(1000))
    assert store.stats().bytes <= 3000
    assert store.get(keys[0]) is not None
    assert store.get(keys[1]) is None
    assert store.get(keys[5]) is not None


def test_clear(store: KernelCache) -> None:
    for k in range(3):
        store.put(store.key(str(k)), b"code")
    assert store.clear() == 3
    assert store.stats().entries == 0


def test_a_directory_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = KernelCache(tmp_path / "file" / "kernels")
    store.put(store.key("program"), b"code")
    assert store.get(store.key("program")) is None
    assert store.clear() == 0


def test_the_directory_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITHIFY_CACHE", str(tmp_path / "named"))
    assert KernelCache().directory == tmp_path / "named"
    monkeypatch.delenv("LITHIFY_CACHE")
    assert "lithify" in str(KernelCache().directory)


_WRITER = """
import sys
from pathlib import Path
from lithify.targets.cache import KernelCache
store = KernelCache(Path(sys.argv[1]), most_bytes=20000)
for round in range(40):
    for k in range(8):
        key = store.key(str(k))
        data = bytes([k]) * 3000
        store.put(key, data)
        found = store.get(key)
        assert found is None or found == data, "a torn entry"
"""


def test_several_processes_see_whole_entries_only(tmp_path: Path) -> None:
    source = str(Path(cache.__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": source}
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], env=environment, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors.decode()
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".kernel"], "left-over files"
