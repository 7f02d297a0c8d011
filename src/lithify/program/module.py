"""Programs from `.lift` texts: `load("image.lift")["harris"]`, `parse("dot = ..")["dot"]`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lithify.lang.errors import LithifyError, ParseError
from lithify.lang.given import kind_of, text_given
from lithify.lang.spelling import choices
from lithify.program.program import Program
from lithify.program.sources import TextSource

if TYPE_CHECKING:
    from lithify.lang.module import Module as Definitions


_OPERATORS = Path(__file__).resolve().parent.parent / "operators"  # the texts that lithify ships


class Text:
    """A text of definitions. What a call needs of one that was compiled before is remembered on disk with the kernels:
    then the text is not read again.
    """

    def __init__(self, text: str, name: str, shipped: bool = False) -> None:
        self.text, self.name, self.shipped = text, name, shipped

    @cached_property
    def digest(self) -> str:
        """Identifies the text."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()

    @cached_property
    def module(self) -> Definitions:
        """The definitions. Raises ParseError."""
        from lithify.lang.module import read_text
        from lithify.program.declared import check_declared

        return read_text(self.text, self.name, check_declared, shipped=self.shipped)

    @cached_property
    def parameters(self) -> dict[str, list[str]]:
        """The names of each definition's parameters. Raises ParseError."""
        from lithify.targets.cache import CACHE

        key = CACHE.key("parameters", self.digest)
        stored = CACHE.get(key)
        if stored is not None:
            found: dict[str, list[str]] = json.loads(stored)
            return found
        found = {name: list(definition.parameters) for name, definition in self.module.items()}
        CACHE.put(key, json.dumps(found).encode())
        return found


class Module(Mapping[str, Program]):
    """The programs of a text, by name."""

    def __init__(self, text: Text) -> None:
        if not isinstance(text, Text):
            raise LithifyError(f"a module is made by lf.load, lf.parse or lf.library, {kind_of(text)} is given")
        self._text = text
        self._programs: dict[str, Program] = {}

    @property
    def name(self) -> str:
        """The name under which errors speak of the text: the file's."""
        return self._text.name

    def __getitem__(self, name: str) -> Program:
        found = self._programs.get(name) if isinstance(name, str) else None
        if found is None:
            if not isinstance(name, str):
                raise UnknownProgram(kind_of(name), list(self), self.name)
            if name not in self._text.parameters:
                raise UnknownProgram(name, list(self), self.name)
            found = self._programs[name] = Program(TextSource(self._text, name))
        return found

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a module has no attribute {name!r}; its programs are taken by name: module[{name!r}]")

    def __iter__(self) -> Iterator[str]:
        return iter(self._text.parameters)

    def __len__(self) -> int:
        return len(self._text.parameters)

    def __repr__(self) -> str:
        return f"<programs of {self.name}: {', '.join(self)}>"


class UnknownProgram(LithifyError, KeyError):
    """A text has no definition of a name."""

    def __init__(self, name: str, known: list[str], where: str) -> None:
        super().__init__(f"{where} defines no {name}", hint=choices(name, known, "it defines"))


def parse(text: str, name: str = "<text>") -> Module:
    """The programs of a text; `name` is what errors call it. Raises ParseError."""
    text = text_given(text, "a program's text", "lf.load(path) reads a file", ParseError)
    return _read(Text(text, text_given(name, "name", "it is what errors call the text", ParseError)))


def _read(text: Text) -> Module:
    module = Module(text)
    len(module)  # what is wrong with the text is said here, not at the first call
    return module


def load(path: str | Path) -> Module:
    """The programs of a `.lift` file. Raises LithifyError where it cannot be read, ParseError where it is wrong."""
    try:
        path = Path(path)
    except TypeError:
        hint = 'write lf.load("programs.lift"); lf.parse(text) reads a text'
        raise LithifyError(f"load takes the path of a file, {kind_of(path)} is given", hint=hint) from None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LithifyError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        hint = f"save it as UTF-8; the first byte that is none is 0x{error.object[error.start]:02x}, in line {line}"
        raise LithifyError(f"{path} cannot be read: it is not UTF-8 text", hint=hint) from error
    except ValueError as error:  # a path with a zero byte
        raise LithifyError(f"{str(path)!r} is no path: {error}") from error
    return _read(Text(text, str(path), shipped=path.resolve().parent == _OPERATORS))


def library(name: str) -> Module:
    """The programs that lithify ships: "blas", "image", "layout", "rows", "science", "stencil".

    Raises LithifyError for a name that there is no text of.
    """
    known = sorted(path.stem for path in _OPERATORS.glob("*.lift"))
    text_given(name, "a library's name", f"there are {', '.join(known)}")
    if name not in known:
        raise LithifyError(f"lithify ships no programs named {name}", hint=choices(name, known))
    return load(_OPERATORS / f"{name}.lift")
