"""The documentation holds: its examples run and print what is shown, and its links lead somewhere.

In README.md, CONTRIBUTING.md and docs/**/*.md the blocks of a page are run in order, in one folder of their own:

* ```` ```lift file=NAME ```` writes the block to the file NAME;
* ```` ```python ```` is run (with all Python blocks before it); the ```` ```text ```` block that follows it, if any,
  is what it prints;
* ```` ```console ````: each line `$ lithify ...` is run; the lines below it, if any, are what it prints.

In expected output `...` stands for anything, and runs of blanks do not matter. ```` ```python no-run ```` is only
shown. A page has tuning records of its own.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [p for p in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))) if p.exists()]
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after the fence, its text, its first line in the page."""

    words: tuple[str, ...]
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""


def blocks(page: str) -> list[Block]:
    return [
        Block(tuple(m["info"].split()), m["body"], page.count("\n", 0, m.start("body")) + 1)
        for m in _FENCE.finditer(page)
    ]


def output(command: list[str], folder: Path) -> str:
    """What a command prints; fails the test, with what it said, where it does not succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LITHIFY_RECORDS": str(folder / "records.sqlite")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{' '.join(command[-1:])}\n{done.stdout}{done.stderr}"
    return done.stdout


def assert_prints(expected: str, got: str, where: str) -> None:
    same = doctest.OutputChecker().check_output(expected.strip() + "\n", got.strip() + "\n", _OPTIONS)
    assert same, f"{where} prints\n{got}\nbut the page shows\n{expected}"


def console_steps(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it."""
    steps: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        elif steps:
            steps[-1] = (steps[-1][0], steps[-1][1] + line + "\n")
    return steps


def run_page(text: str, folder: Path) -> None:
    """Run every block of a page that can be run."""
    before = ""
    pending: tuple[str, str] | None = None  # what the last Python block printed, and where
    for block in blocks(text):
        where = f"line {block.line}"
        if block.language == "text" and pending:
            assert_prints(block.text, *pending)
        pending = None
        if block.language == "python" and "no-run" not in block.words:
            mark = "\x00"
            program = f"{before}\nprint({mark!r}, end='')\n{block.text}"
            printed = output([sys.executable, "-c", program], folder)
            pending = (printed.split(mark, 1)[1], where)
            before += block.text
        for word in block.words:
            if word.startswith("file="):
                (folder / word.removeprefix("file=")).write_text(block.text, encoding="utf-8")
        if block.language == "console":
            for command, expected in console_steps(block.text):
                assert command.startswith("lithify "), f"{where}: only lithify is run, not {command}"
                got = output(
                    ["sh", "-c", f"{sys.executable} -m lithify.cli {command.removeprefix('lithify ')}"], folder
                )
                if expected.strip():
                    assert_prints(expected, got, f"{where}: {command}")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples(page: Path, tmp_path: Path) -> None:
    run_page(page.read_text(encoding="utf-8"), tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links(page: Path) -> None:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [match["target"] for match in _LINK.finditer(prose)]
    local = [target.split("#")[0] for target in targets if "://" not in target]
    assert not [target for target in local if target and not (page.parent / target).exists()]


PAGE = """\
```python
x = 2
print("a  long line", x)
```
```text
a long ... 2
```
```lift file=a.lift
id = λ x. x
```
```python
print(x + 1, open("a.lift").read().strip())
```
```text
{shown}
```
"""


def test_a_page_that_holds(tmp_path: Path) -> None:
    run_page(PAGE.format(shown="3 id = λ x. x"), tmp_path)


def test_a_page_that_does_not_hold(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"line 12 prints\s+3 id"):
        run_page(PAGE.format(shown="4 id = λ x. x"), tmp_path)


def test_console_blocks_are_split_at_the_prompts() -> None:
    assert console_steps("$ lithify a\nx\ny\n$ lithify b\n") == [("lithify a", "x\ny\n"), ("lithify b", "")]
