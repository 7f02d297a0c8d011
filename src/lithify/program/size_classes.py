"""Classes of sizes: what a program for any size is compiled for when it is called.

How rows are best worked on depends on how long they are, much less on how many there are. So a kernel for any size is
made for a class of row lengths: for one length where rows are short, of which there are few, else for all lengths from
a bound on. Every other size stays open, so that a program has a few kernels, made when a call first needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lithify.arith import Variable
from lithify.lang.types import Array, Tuple, Type
from lithify.program.sources import Sizes

# Rows up to this length are handled as what they are.
LONGEST_EXACT = 256
# Longer ones as one of all that are at least so long.
LEAST = (LONGEST_EXACT + 1, 2_048, 32_768, 1 << 20)


def classes_of(declared: Sequence[Type], given: Sequence[Type]) -> tuple[Sizes, Sizes]:
    """The class of the given types: values of some of the sizes that the declared ones name, and bounds of others."""
    found: dict[str, int] = {}
    for one, other in zip(declared, given, strict=False):
        for name, length in _rows(one, other):
            found.setdefault(name, length)
    known = sorted(found.items())
    exact = tuple([(name, length) for name, length in known if length <= LONGEST_EXACT])
    least = [(name, max(b for b in LEAST if b <= length)) for name, length in known if length > LONGEST_EXACT]
    return exact, tuple(least)


def _rows(declared: Type, given: Type, depth: int = 0) -> Iterable[tuple[str, int]]:
    """The names and values of sizes that are lengths of rows: of the last of several dimensions."""
    if isinstance(declared, Tuple) and isinstance(given, Tuple):
        for one, other in zip(declared.items, given.items, strict=False):
            yield from _rows(one, other, depth)
    if not (isinstance(declared, Array) and isinstance(given, Array)):
        return
    variable, length = declared.size.single, given.size.constant
    if depth and not isinstance(declared.element, Array) and isinstance(variable, Variable) and length:
        yield variable.name, length
    yield from _rows(declared.element, given.element, depth + 1)
