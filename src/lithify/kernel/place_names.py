"""How a term is named in an error: its pattern with level and memory, its type, and its beginning as text."""

from __future__ import annotations

from lithify.lang.printer import show
from lithify.lang.term import Term

_LONGEST = 100


def describe(term: Term) -> str:
    """`reduce[seq] : f32  (reduce[seq] (+) 0 xs)`."""
    text = " ".join(show(term).split())
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return f"{text} : {term.type}"
