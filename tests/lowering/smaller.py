"""Makes a failing program small: replaces parts of it by inputs or by smaller parts while it fails in the same way."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

from lithify.lang.build import param
from lithify.lang.errors import LithifyError
from lithify.lang.printer import show_program
from lithify.lang.term import Term, apply, close, size_of, substitute_parameters, subterms
from lithify.lang.types import Function, Type

_numbers = itertools.count()


def smallest(term: Term, failure: Callable[[Term], str | None], attempts: int = 2000) -> Term:
    """A program that fails as `term` does, by the first words of what `failure` says of it; None says that it works."""
    kind = _kind(failure(term))
    found = True
    while found and attempts > 0:
        found = False
        for smaller in sorted({*_smaller(term), *_parts(term)}, key=size_of):
            if size_of(smaller) >= size_of(term) or isinstance(smaller.type, Function):
                continue
            attempts -= 1
            if _kind(failure(smaller)) == kind:
                term, found = smaller, True
                break
    return term


def text(term: Term) -> str:
    """The program with its inputs as parameters."""
    inputs = sorted((t for t in subterms(term) if t.kind == "param"), key=lambda t: str(t["name"]))
    renamed = {t["name"]: param(f"x{k}", t.type) for k, t in enumerate(inputs)}
    return show_program(substitute_parameters(term, renamed), [(p["name"], p.type) for p in renamed.values()])


def _kind(failure: str | None) -> str | None:
    return None if failure is None else re.sub(r"_?\d+", "", failure)[:40]


def _input(type_: Type) -> Term:
    return param(f"y{next(_numbers)}", type_)


def _opened(term: Term) -> Term:
    """The body of a function, with inputs for its parameters."""
    while term.kind == "lambda":
        term = apply(term, _input(term.attrs[0]))
    return term


def _parts(term: Term) -> Iterator[Term]:
    for a in map(_opened, term.args):
        yield a
        yield from _parts(a)


def _smaller(term: Term) -> Iterator[Term]:
    """Programs of the same type with one part replaced."""
    if term.kind == "lambda":
        variable = _input(term.attrs[0])
        yield from (close(variable, body) for body in _smaller(apply(term, variable)))
        return
    if term.kind not in ("param", "const", "bound"):
        yield _input(term.type)
    yield from itertools.islice((part for part in _parts(term) if part.type is term.type), 12)
    for k, a in enumerate(term.args):
        for replaced in _smaller(a):
            try:
                yield term.with_args((*term.args[:k], replaced, *term.args[k + 1 :]))
            except LithifyError:  # an operator that is particular about what it is given
                continue
