"""Committed text speaks of the project alone: no paths of one machine, no registry addresses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FORBIDDEN = {
    "an absolute path of one machine": re.compile(r"(?<![\w.$}/-])/(?:home|root|work|workspace|Users)/"),
    "a package registry's address": re.compile(
        r"pypi\.org|pythonhosted\.org|conda\.anaconda|registry\.npmjs|(?:extra-)?index[-_]url\s*="
    ),
    "a word of the workplace where it was made": re.compile(
        r"\bhelpers?\b|\bissues\s+show\b|`issues?`|\bthe\s+spike\b|\bgive_?back\b", re.IGNORECASE
    ),
}
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b")


def committed_files() -> Iterator[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    yield from (ROOT / name for name in listing.stdout.split("\0") if name)


def texts() -> Iterator[tuple[Path, str]]:
    for path in committed_files():
        if path.name == "LICENSE" or not path.is_file():
            continue
        try:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # pictures and arrays
            continue


def mentions(text: str, pattern: re.Pattern[str]) -> list[int]:
    """The lines of `text` on which the pattern is found, counted from 1."""
    return [text.count("\n", 0, match.start()) + 1 for match in pattern.finditer(text)]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_committed_text_names(what: str) -> None:
    found = [f"{path}:{line}" for path, text in texts() for line in mentions(text, FORBIDDEN[what])]
    assert not found, f"{what}: {', '.join(found)}"


def test_source_is_finished() -> None:
    found = [
        f"{path}:{line}"
        for path, text in texts()
        if path.suffix == ".py" and path.name != Path(__file__).name
        for line in mentions(text, UNFINISHED)
    ]
    assert not found, f"unfinished: {', '.join(found)}"


def test_the_patterns_find_what_they_are_for() -> None:
    path, registry, _ = FORBIDDEN.values()
    assert mentions("a\nsee " + "/wo" + "rk/main", path) == [2]
    assert not mentions("src/work/x and ./root/y and $HOME/home/", path)
    assert mentions("https://pypi" + ".org/simple", registry) == [1]
