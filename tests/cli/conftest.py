"""The command in this process: what it printed, what it said about it, and its exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from lithify.cli import console
from lithify.cli.main import run

PROGRAMS = """
dot = λ xs ys . reduce (+) 0 (map (*) (zip xs ys))
scal = λ (a : f32) (xs : n.f32) . map (λ x . x * a) xs
invert = λ img . map (map (λ x . 1 - x)) img
blocks = λ xs . map (λ b . reduce (+) 0 b) (split blockSize xs)
both = λ xs . (map (λ x . x + 1) xs, reduce (+) 0 xs)
double = map (λ x . x * 2)
"""


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("LITHIFY_DEBUG", raising=False)


@pytest.fixture
def lithify(capfd: pytest.CaptureFixture[str], folder: Path) -> Command:
    """Run the command in a directory with some files."""

    def command(*arguments: str) -> Outcome:
        console._console.cache_clear()
        capfd.readouterr()
        code = run(list(arguments))
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: programs, arrays, a picture, and files that are not what their names say."""
    from PIL import Image

    (tmp_path / "programs.lift").write_text(PROGRAMS, encoding="utf-8")
    (tmp_path / "total.lift").write_text("total = λ xs . reduce (+) 0 xs\n", encoding="utf-8")
    (tmp_path / "broken.lift").write_text("f = λ x . (x +\ng = λ y . y\n", encoding="utf-8")
    (tmp_path / "unknown.lift").write_text("f = λ xs . map nope xs\n", encoding="utf-8")
    (tmp_path / "empty.lift").write_text("-- nothing\n", encoding="utf-8")
    (tmp_path / "latin.lift").write_bytes(b"f = \xe9")
    np.save(tmp_path / "xs.npy", np.arange(6, dtype=np.float32))
    np.save(tmp_path / "doubles.npy", np.arange(6, dtype=np.float64))
    np.save(tmp_path / "swapped.npy", np.arange(6, dtype=">f4"))
    np.save(tmp_path / "objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "xs.npy").read_bytes()[:-8])
    (tmp_path / "text.npy").write_text("this is no array")
    (tmp_path / "text.png").write_text("this is no picture")
    (tmp_path / "notes.txt").write_text("these are notes")
    pixels = np.arange(12 * 16, dtype=np.uint8).reshape(12, 16)
    Image.fromarray(pixels).save(tmp_path / "grey.png")
    Image.fromarray(np.stack([pixels] * 3, axis=2)).save(tmp_path / "colour.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path
