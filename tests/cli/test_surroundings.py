"""What is around a command: full disks, readers that leave, closed outputs, terminals, odd files."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Command

XS = ("--arg", "xs.npy")
FULL = Path("/dev/full")


def _command(folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", "from lithify.cli.main import main; main()", *arguments]
    return subprocess.run(call, cwd=folder, capture_output="stdout" not in options, text=True, check=False, **options)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [("rules",), ("check", "programs.lift")])
def test_an_output_that_is_full(folder: Path, arguments: tuple[str, ...]) -> None:
    """Those of rich and those of Python's print."""
    with FULL.open("w") as full:
        done = _command(folder, *arguments, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "error: the output: No space left on device\n"


@pytest.mark.parametrize("arguments", [("rules",), ("check", "programs.lift"), ("-h",)])
def test_a_reader_that_has_seen_enough(folder: Path, arguments: tuple[str, ...]) -> None:
    call = [sys.executable, "-c", "from lithify.cli.main import main; main()", *arguments]
    process = subprocess.Popen(call, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert (process.wait(), said) == (0, "")


def test_outputs_that_are_closed(folder: Path) -> None:
    start = "import sys; sys.stdout = sys.stderr = None; from lithify.cli.main import main; main()"
    for arguments, code in ((("rules",), 0), (("rules", "nope"), 2)):
        assert subprocess.run([sys.executable, "-c", start, *arguments], cwd=folder, check=False).returncode == code


def test_half_a_result_is_none(lithify: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, array: Any) -> None:
        path.write_bytes(b"a part")
        raise OSError("6 requested and 2 written")  # as NumPy says it

    monkeypatch.setattr(np, "save", full)
    outcome = lithify("run", "programs.lift:double", *XS, "-o", "result.npy")
    assert outcome.code == 2
    assert "result.npy cannot be written: is the disk full?" in outcome.err
    assert not (folder / "result.npy").exists()


@pytest.mark.parametrize("name", ["a_file/kernels", "read_only"])
def test_caches_that_cannot_be_written(
    lithify: Command, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a_file").write_text("")
    monkeypatch.setenv("LITHIFY_CACHE", str(folder / name))
    if name == "read_only":
        replace = Path.write_bytes

        def refused(path: Path, data: bytes) -> int:
            if path.parent.parent.name == name:
                raise OSError(errno.ENOSPC, "No space left on device")
            return replace(path, data)

        monkeypatch.setattr(Path, "write_bytes", refused)
    outcome = lithify("run", "programs.lift:double", *XS)
    assert outcome.code == 0, outcome.err
    assert lithify("cache", "stats").code == 0
    assert lithify("cache", "clear").code == 0


@pytest.mark.parametrize("damage", [b"", b"lithify1", bytes(range(256)) * 4], ids=["nothing", "cut off", "noise"])
def test_cached_kernels_that_are_damaged_are_made_again(
    lithify: Command, folder: Path, damage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHIFY_CACHE", str(folder / "kernels"))
    first = lithify("run", "programs.lift:double", *XS)
    entries = list((folder / "kernels").rglob("*.kernel"))
    assert entries
    for entry in entries:
        entry.write_bytes(damage)
    again = lithify("run", "programs.lift:double", *XS)
    assert (again.code, again.out) == (0, first.out)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lines_end_as_anywhere(lithify: Command, folder: Path, ends: str) -> None:
    text = ends.join(["-- a comment", "f (xs : n.f32) = sum xs", "g (xs : n.f32) = f xs", ""])
    for mark in (b"", b"\xef\xbb\xbf"):
        (folder / "ends.lift").write_bytes(mark + text.encode())
        outcome = lithify("check", "ends.lift")
        assert (outcome.code, outcome.out) == (0, "f : n.f32 -> f32\ng : n.f32 -> f32\n")


def test_other_encodings_are_told(lithify: Command, folder: Path) -> None:
    (folder / "other.lift").write_bytes("-- fine\nf xs = sum xs -- café\n".encode("latin-1"))
    outcome = lithify("check", "other.lift")
    assert outcome.code == 2
    assert "it is not UTF-8 text" in outcome.err
    assert "the first byte that is none is 0xe9, in line 2" in outcome.err


def test_control_characters_do_not_reach_the_terminal(lithify: Command, folder: Path) -> None:
    (folder / "odd.lift").write_text("f xs = \x1b[31m sum xs\0\n")
    outcome = lithify("check", "odd.lift")
    assert outcome.code == 2
    assert "\x1b" not in outcome.err
    assert "\0" not in outcome.err


def test_a_directory_is_no_file(lithify: Command, folder: Path) -> None:
    (folder / "dir.lift").mkdir()
    outcome = lithify("check", "dir.lift")
    assert outcome.code == 2
    assert "dir.lift is a directory" in outcome.err


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TERM": ""}, {"COLUMNS": "1"}, {"COLUMNS": "wide"}])
def test_terminals_of_all_kinds(lithify: Command, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for arguments in (("rules", "map-fusion"), ("strategies",), ("check", "programs.lift")):
        assert lithify(*arguments).code == 0
    assert lithify("rules", "nope").code == 2


def test_very_long_lines(lithify: Command, folder: Path) -> None:
    (folder / "long.lift").write_text(f"f (xs : n.f32) = map (λ x . {' + '.join(['x'] * 3000)}) xss\n")
    outcome = lithify("check", "long.lift")
    assert outcome.code == 2
    assert "xss" in outcome.err
