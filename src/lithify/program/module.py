"""Programs from `.lift` texts: `load("image.lift")["harris"]`, `parse("dot = ..")["dot"]`."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.lang.errors import LithifyError
from lithify.program.program import Program
from lithify.program.sources import TextSource

if TYPE_CHECKING:
    from lithify.lang.module import Module as Definitions


class Text:
    """A text and, once they are asked for, its definitions."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def module(self) -> Definitions:
        from lithify.lang.module import read_text

        return read_text(self.text, self.name)

    def surely_defines(self, name: str) -> bool:
        """Whether a line starts like a definition of the name: true without reading the text, False: not sure."""
        return re.search(rf"^{re.escape(name)}(?:\s+[\w(][^=\n]*)?\s*=(?!=)", self.text, re.MULTILINE) is not None


class Module(Mapping[str, Program]):
    """The programs of a text, by name."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._programs: dict[str, Program] = {}

    @property
    def name(self) -> str:
        """The name under which errors speak of the text: the file's."""
        return self._text.name

    def __getitem__(self, name: str) -> Program:
        found = self._programs.get(name)
        if found is None:
            if not self._text.surely_defines(name) and name not in self._text.module:
                raise UnknownProgram(name, list(self), self.name)
            found = self._programs[name] = Program(TextSource(self._text, name))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._text.module)

    def __len__(self) -> int:
        return len(self._text.module)

    def __repr__(self) -> str:
        return f"<programs of {self.name}: {', '.join(self)}>"


class UnknownProgram(LithifyError, KeyError):
    """A text has no definition of a name."""

    def __init__(self, name: str, known: list[str], where: str) -> None:
        close = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"it defines {', '.join(known) or 'nothing'}"
        super().__init__(f"{where} defines no {name}", hint=hint)


def parse(text: str, name: str = "<text>") -> Module:
    """The programs of a text; `name` is what errors call it. Raises ParseError."""
    module = Module(Text(text, name))
    len(module)  # errors are raised here, not at the first call
    return module


def load(path: str | Path) -> Module:
    """The programs of a `.lift` file. Its text is parsed when a program is first used that was never compiled before.

    Raises OSError for a file that cannot be read; ParseError comes with the first use.
    """
    path = Path(path)
    return Module(Text(path.read_text(encoding="utf-8"), str(path)))
