"""Generated arrays whose function computes arrays or has loops: they become loops themselves.

`generate n g` is read element by element, wherever and however often its reader likes, so g may compute nothing but a
scalar, without loops. What else it holds either does not depend on the index, and is computed once, before,

    generate n (λi. C[e])  ->  let p = e in generate n (λi. C[p])

or makes of the array a loop over the indices, which has a level, a memory and a place among the other loops:

    generate n g  ->  map g (generate n (λi. i))
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from lithify.lang.reading import has_work
from lithify.lang.term import Term, subterms
from lithify.lowering.facts import element_of
from lithify.lowering.needs import Lack, Path, Search, front_of, is_scalar
from lithify.rewrite import Derivation, Strategy, at
from lithify.rules.lowering import generate_loop, hoist_array


def settle_generated(derivation: Derivation) -> None:
    """Leave no generated array whose function computes rows, or lacks a level or a memory."""
    search = Search()
    while (step := _next(derivation.term, search)) is not None:
        path, strategy = step
        derivation.apply(at(path, strategy))


def _next(program: Term, search: Search) -> tuple[Path, Strategy] | None:
    """The next step and where to take it, outermost first."""
    for path, t in _generated(program):
        need = search.inside(t)
        if need is not None and need.lack is Lack.MEMORY:
            place = (*path, *need.path)
            front = front_of(program, place)
            if len(front) <= len(path):
                return front, hoist_array(place[len(front) :])
        if need is None and (is_scalar(element_of(t)) or not has_work(t.args[0])):
            continue
        taken = {u["name"] for u in subterms(program) if u.kind in ("map", "reduce", "scan")}
        return path, generate_loop(next(name for name in (f"g{k}" for k in count()) if name not in taken))
    return None


def _generated(program: Term) -> Iterator[tuple[Path, Term]]:
    """The generated arrays of a program, outermost first, each once."""
    seen: set[int] = set()
    level: list[tuple[Path, Term]] = [((), program)]
    while level:
        inner: list[tuple[Path, Term]] = []
        for path, t in level:
            if t.id in seen:
                continue
            seen.add(t.id)
            if t.kind == "generate":
                yield path, t
            inner += [((*path, k), a) for k, a in enumerate(t.args)]
        level = inner
