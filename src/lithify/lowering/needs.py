"""What a program still lacks before it can be translated: the places where a level, a memory or a copy must be chosen.

The walk mirrors the translation to kernels (a term is *written* to an acceptor or *read* by someone) and reports the
first place, outermost first, that the translation would refuse. It decides nothing: a strategy answers each need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from lithify.lang.levels import OUT, Level, LevelKind, Memory
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Index, Tuple, Type

Path = tuple[int, ...]
# The levels of the maps around a place, and the memories below the heap that are written there, outermost first.
Nest = tuple[Level | Memory, ...]


class Lack(Enum):
    """The kinds of choice that a place may ask for."""

    LEVEL = "a map that writes has no level"
    REDUCTION = "a reduction or scan has no level"
    COPY = "an array is handed on as a result, with no loop that writes it"
    MEMORY = "a computed array is read several times, or by a loop of its own, and has no memory"
    BINDING = "an array, or what loops outside of all others compute, is bound by let and has no memory"
    SHARING = "a computed element, an array, is used several times by the function that is mapped over it"
    RESULT = "memory of the whole device inside a parallel loop, for what is written to the result anyway"
    ITERATION = "an iteration is not expanded"


@dataclass(frozen=True, slots=True)
class Need:
    """One missing choice: what, where, and what is around it."""

    lack: Lack
    path: Path
    term: Term
    nest: Nest


ACCEPTORS = frozenset({"split", "join", "transpose", "take", "drop", "zip", "concat", "unzip"})
_LEAVES = frozenset({"param", "bound", "const"})
_REPEATING = frozenset({"slide", "replicate", "gather"})
_LOOPS = frozenset({"reduce", "scan", "pipe", "iterate", "to", "instr", "scatter"})


def is_scalar(type_: Type) -> bool:
    """A scalar, an index, or a tuple of such."""
    if isinstance(type_, Tuple):
        return all(map(is_scalar, type_.items))
    return isinstance(type_, Scalar | Index)


def is_lazy(t: Term) -> bool:
    """Views, projections and scalar operators only: may be computed by its reader, element by element."""
    for u in subterms(t):
        if u.kind in _LOOPS:
            return False
        if u.kind == "map" and u["level"] is not None and u["level"].kind is not LevelKind.INLINE:
            return False
    return True


def has_loops(t: Term) -> bool:
    """Does computing the value take a loop?"""
    return any(u.kind in _LOOPS for u in subterms(t))


def has_work(t: Term) -> bool:
    """Does reading an element compute anything? (Maps marked inline declare that it may be computed again.)"""
    if t.kind == "op":
        return True
    if t.kind == "map" and t["level"] is not None and t["level"].kind is LevelKind.INLINE:
        return has_work(t.args[1])
    return any(has_work(a) for a in t.args)


def uses(body: Term, index: int = 0) -> int:
    """How often the bound variable is read: uses below another lambda count as many, components apart.

    The result is the largest number over the components of the variable; 2 stands for "more than once".
    """
    counts: Counter[tuple[int, ...]] = Counter()
    _count(body, index, (), 1, counts)
    whole = counts.pop((), 0)
    return min(2, whole + max(counts.values(), default=0))


def _count(t: Term, index: int, components: tuple[int, ...], weight: int, counts: Counter[tuple[int, ...]]) -> None:
    if t.open_depth <= index:
        return
    if t.kind == "bound":
        if t["index"] == index:
            counts[components] += weight
        return
    if t.kind == "proj":
        _count(t.args[0], index, (t["component"], *components), weight, counts)
        return
    for child in t.args:
        if child.kind == "lambda":
            body, depth = child, 0
            while body.kind == "lambda":
                body, depth = body.args[0], depth + 1
            _count(body, index + depth, (), weight if t.kind == "let" else 2, counts)
        else:
            _count(child, index, (), weight, counts)


def subterm(program: Term, path: Path) -> Term:
    """The term at a path."""
    for index in path:
        program = program.args[index]
    return program


def is_layout_map(t: Term) -> bool:
    """`map` of a chain of acceptor layouts, such as `map transpose`: a layout itself, also for acceptors."""
    if t.kind != "map" or t["level"] is not None:
        return False
    body = t.args[0].args[0]
    while True:
        if body.kind == "bound" and body["index"] == 0:
            return True
        if body.kind in ("split", "join", "transpose", "take", "drop"):
            body = body.args[0]
        elif is_layout_map(body):
            body = body.args[1]
        else:
            return False


def needs(term: Term) -> Iterator[Need]:
    """The missing choices, outermost first; a place below another need is reported only once that one is answered."""
    yield from _write(term, (), ())


def _write(t: Term, path: Path, nest: Nest) -> Iterator[Need]:
    kind = t.kind
    if is_scalar(t.type):
        if kind == "let":
            yield from _let(t, path, nest, writes=True)
        elif kind == "tuple":
            for i, child in enumerate(t.args):
                yield from _write(child, (*path, i), nest)
        else:
            yield from _read(t, path, nest, shared=False)
    elif kind == "map":
        if is_layout_map(t):
            yield from _write(t.args[1], (*path, 1), nest)
            return
        if t["level"] is None or t["level"].kind is LevelKind.INLINE:
            yield Need(Lack.LEVEL, path, t, nest)
            return
        yield from _mapped(t, path, nest)
        yield from _write(t.args[0].args[0], (*path, 0, 0), (*nest, t["level"]))
    elif kind == "let":
        yield from _let(t, path, nest, writes=True)
    elif kind == "reduce" and t["level"] is not None and t["memory"] != OUT:
        yield Need(Lack.COPY, path, t, nest)
    elif kind in ("reduce", "scan"):
        yield from _reduction(t, path, nest)
    elif kind == "to":
        if t["memory"].name == "heap" and nest:
            yield Need(Lack.RESULT, path, t, nest)
            return
        yield from _stored(t, path, nest)
    elif kind in ACCEPTORS or kind in ("tuple", "launch"):
        for i, child in enumerate(t.args):
            yield from _write(child, (*path, i), nest)
    elif kind == "reindex":
        if t["function"].inverse is None:
            yield Need(Lack.COPY, path, t, nest)
        else:
            yield from _write(t.args[0], (*path, 0), nest)
    elif kind == "scatter":
        yield from _read(t.args[0], (*path, 0), nest, shared=False)
        yield from _write(t.args[1], (*path, 1), nest)
    elif kind == "iterate":
        yield Need(Lack.ITERATION, path, t, nest)
    elif kind in ("pipe", "instr"):
        for i, child in enumerate(t.args):
            if child.kind != "lambda":
                yield from _read(child, (*path, i), nest, shared=False)
    else:
        yield Need(Lack.COPY, path, t, nest)


def _mapped(t: Term, path: Path, nest: Nest) -> Iterator[Need]:
    """The array that a map or reduction runs over, in view of how often its function uses an element."""
    function, xs, at = t.args[0], t.args[-1], len(t.args) - 1
    body = function.args[0]
    if t.kind != "map":
        body = body.args[0]
    element = xs.type.element if isinstance(xs.type, Array) else xs.type
    if not is_scalar(element) and uses(body) > 1 and computed_elements(xs):
        yield Need(Lack.SHARING, path, t, nest)
        return
    yield from _read(xs, (*path, at), nest, shared=False)


def computed_elements(xs: Term) -> bool:
    """Are the elements of the array (or of a component of a zip) computed by an abstract map when they are read?"""
    if xs.kind == "map":
        return (xs["level"] is None or xs["level"].kind is not LevelKind.INLINE) and has_work(xs.args[0])
    if xs.kind == "generate":
        return has_work(xs.args[0])
    if xs.kind in ("zip", "split", "join", "take", "drop", "transpose", "reindex", "concat", "slide"):
        return any(computed_elements(a) for a in xs.args)
    return False


def _reduction(t: Term, path: Path, nest: Nest) -> Iterator[Need]:
    if t["level"] is None:
        yield Need(Lack.REDUCTION, path, t, nest)
        return
    function, initial, _ = t.args
    if is_scalar(initial.type):
        yield from _read(initial, (*path, 1), nest, shared=False)
    else:
        yield from _write(initial, (*path, 1), nest)
    yield from _mapped(t, path, nest)
    yield from _write(function.args[0].args[0], (*path, 0, 0, 0), (*nest, t["level"]))


def _stored(t: Term, path: Path, nest: Nest) -> Iterator[Need]:
    memory: Memory = t["memory"]
    yield from _write(t.args[0], (*path, 0), nest if memory.name == "heap" else (*nest, memory))


def _let(t: Term, path: Path, nest: Nest, *, writes: bool) -> Iterator[Need]:
    value, function = t.args
    if value.kind == "to":
        yield from _stored(value, (*path, 0), nest)
    elif is_scalar(value.type):
        if not nest and has_loops(value):
            yield Need(Lack.BINDING, path, t, nest)
            return
        yield from _write(value, (*path, 0), nest)
    elif value.kind in _LEAVES or (is_lazy(value) and not has_work(value)):
        yield from _read(value, (*path, 0), nest, shared=True)
    else:
        yield Need(Lack.BINDING, path, t, nest)
        return
    body, below = function.args[0], (*path, 1, 0)
    yield from _write(body, below, nest) if writes else _read(body, below, nest, shared=False)


def _read(t: Term, path: Path, nest: Nest, *, shared: bool) -> Iterator[Need]:
    kind = t.kind
    if kind in _LEAVES:
        return
    if kind == "map":
        level = t["level"]
        inline = level is not None and level.kind is LevelKind.INLINE
        lazy = is_lazy(t.args[0])
        if not inline and (level is not None or not lazy or (shared and has_work(t.args[0]))):
            yield Need(Lack.MEMORY, path, t, nest)
            return
        yield from _read(t.args[1], (*path, 1), nest, shared=shared)
        yield from _read(t.args[0].args[0], (*path, 0, 0), nest, shared=shared)
    elif kind in ("reduce", "scan"):
        if isinstance(t.type, Array) and kind == "scan":
            yield Need(Lack.MEMORY, path, t, nest)
            return
        yield from _reduction(t, path, nest)
    elif kind == "to":
        yield from _stored(t, path, nest)
    elif kind == "let":
        yield from _let(t, path, nest, writes=False)
    elif kind == "iterate":
        yield Need(Lack.ITERATION, path, t, nest)
    elif kind == "scatter":
        yield Need(Lack.MEMORY, path, t, nest)
    elif kind == "generate":
        if shared and has_work(t.args[0]):
            yield Need(Lack.MEMORY, path, t, nest)
            return
        yield from _read(t.args[0].args[0], (*path, 0, 0), nest, shared=shared)
    else:
        repeats = shared or kind in _REPEATING
        for i, child in enumerate(t.args):
            yield from _read(child, (*path, i), nest, shared=repeats)
