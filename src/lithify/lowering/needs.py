"""What a program still lacks before it can be translated: the places where a level, a memory or a copy must be chosen.

The walk mirrors the translation to kernels (a term is *written* to an acceptor or *read* by someone) and reports the
first place, outermost first, that the translation would refuse. It decides nothing: a strategy answers each need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from lithify.arith import Expr
from lithify.lang.levels import HEAP, INLINE, OUT, SEQ, Level, LevelKind, Memory
from lithify.lang.reading import has_work, is_only_element
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, below_parameters, dangling, subterms
from lithify.lang.types import Array, Index, Tuple, Type

Path = tuple[int, ...]
# The levels of the maps around a place, and the memories below the heap that are written there, outermost first. A
# map that its reader computes stands for itself, as `inline`: it runs in the reader's loop.
Nest = tuple[Level | Memory, ...]


class Lack(Enum):
    """The kinds of choice that a place may ask for."""

    LEVEL = "a map that writes has no level"
    REDUCTION = "a reduction or scan has no level"
    COPY = "an array is handed on as a result, with no loop that writes it"
    COMPONENTS = "a tuple of arrays is handed on as a result as it stands"
    MEMORY = "a computed array is read several times, or by a loop of its own, and has no memory"
    BINDING = "an array, or a scalar outside of all loops, is bound by let and has no memory"
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


_Look = Callable[[Term, Path, Nest], Need | None]

ACCEPTORS = frozenset({"split", "join", "transpose", "take", "drop", "zip", "concat", "unzip"})
_LEAVES = frozenset({"param", "bound", "const"})
# Whose elements are elements, or rows of elements, of what lies below.
_SHOWING = ACCEPTORS | {"reindex", "slide", "proj", "tuple"}
_REPEATING = frozenset({"slide", "replicate", "gather"})  # and what `_repeats` adds
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


def is_named_view(t: Term) -> bool:
    """Nothing but views and projections: a name for it names nothing new."""
    return t.kind in _LEAVES or (is_lazy(t) and not has_work(t))


def has_loops(t: Term) -> bool:
    """Does computing the value take a loop?"""
    return any(u.kind in _LOOPS for u in subterms(t))


def uses(body: Term, index: int = 0) -> int:
    """How often the bound variable is read: uses below another lambda count as many, components apart.

    The result is the largest number over the components of the variable; 2 stands for "more than once".
    """
    return _most(_counted(body, index, within=False))


def reads_within(body: Term, index: int = 0) -> int:
    """How often the elements of the bound variable, an array or a tuple with arrays in it, are read: as `uses`, but the
    users count of a view of it that has a name, of its rows where a loop goes through them, and of what views repeat.
    """
    return _most(_counted(body, index, within=True))


# A part of a variable's value: a component of a tuple, or the elements before or behind a place in an array.
_Part = int | tuple[str, Expr]
_Counts = Counter[tuple[_Part, ...]]


def _most(counts: _Counts, component: tuple[_Part, ...] = ()) -> int:
    """The largest number over the parts of a component of a variable."""
    whole = sum(n for at, n in counts.items() if at == component[: len(at)])
    below: dict[_Part, _Counts] = {}
    for at, n in counts.items():
        if len(at) > len(component) and at[: len(component)] == component:
            below.setdefault(at[len(component)], Counter())[at[len(component) + 1 :]] += n
    most = {part: _most(inner) for part, inner in below.items()}
    components = max((n for part, n in most.items() if isinstance(part, int)), default=0)
    cuts = {part[1] for part in most if isinstance(part, tuple)}  # what lies on either side of one is apart
    return min(2, whole + components + sum(max(most.get(("take", k), 0), most.get(("drop", k), 0)) for k in cuts))


def _counted(body: Term, index: int, *, within: bool) -> _Counts:
    """How often each part of the bound variable is read, by what leads to it."""
    counts: _Counts = Counter()
    met: Counter[tuple[int, int, tuple[_Part, ...]]] = Counter()

    def count(t: Term, at: int, parts: tuple[_Part, ...], weight: int) -> None:
        if at not in dangling(t):
            return
        key = (t.id, at, parts)
        if met[key] >= 2:  # a third visit cannot make "more than once" of anything that the first two did not
            return
        met[key] += weight
        if t.kind == "bound":
            counts[parts] += weight
        elif t.kind == "proj":
            count(t.args[0], at, (t["component"], *parts), weight)
        elif within and t.kind in ("take", "drop"):
            count(t.args[0], at, ((t.kind, t["size"]),), weight)
        else:
            for number, child in enumerate(t.args):
                inner, depth = below_parameters(child)
                if depth:
                    count(inner, at + depth, (), weight if t.kind == "let" else 2)
                elif within and at in dangling(child) and number == _source(t):
                    through(t, child, at, weight)
                else:
                    count(child, at, (), 2 if within and _repeats(t, number) else weight)

    def through(t: Term, source: Term, at: int, weight: int) -> None:
        """What a loop goes through, or a let names, is read as often as the function reads its variable."""
        function, _ = below_parameters(t.args[1] if t.kind == "let" else t.args[0])
        inner = _counted(function, 0, within=True)
        sources: list[tuple[Term, tuple[_Part, ...]]] = [(source, ())]
        if source.kind == "zip":
            sources = [(a, (k,)) for k, a in enumerate(source.args)]
        for each, component in sources:
            named = each.type.element if t.kind != "let" and isinstance(each.type, Array) else each.type
            several = not is_scalar(named) and _most(inner, component) > 1
            count(each, at, (), 2 if several else weight)

    count(body, index, (), 1)
    return counts


def _source(t: Term) -> int | None:
    """Which argument the function of a loop or a let is given, or the elements of which; None where there is none."""
    if t.kind in ("map", "reduce", "scan"):
        return len(t.args) - 1
    return 0 if t.kind == "let" else None


def subterm(program: Term, path: Path) -> Term:
    """The term at a path."""
    for index in path:
        program = program.args[index]
    return program


def front_of(program: Term, path: Path) -> Path:
    """The outermost place on the path where all variables are bound that the term at its end mentions."""
    depth = min(dangling(subterm(program, path)), default=-1)
    for length in range(len(path), 0, -1):
        if depth < 0:
            break
        if subterm(program, path[: length - 1]).kind == "lambda":
            if depth == 0:
                return path[:length]
            depth -= 1
    return ()


def is_repeated(program: Term, path: Path, front: Path) -> bool:
    """Is what stands on the path below `front` in the function of a loop between the two?"""
    functions = (k for k in range(len(front) + 1, len(path)) if subterm(program, path[:k]).kind == "lambda")
    return any(subterm(program, path[: k - 1]).kind != "let" for k in functions)


def updates(program: Term, path: Path) -> bool:
    """Is what stands there scattered by an operator that updates each element atomically? (Lanes cannot do that.)"""
    for depth, index in enumerate(path):
        t = subterm(program, path[:depth])
        if t.kind == "scatter" and t["mode"] != "permutation" and index == 1:
            return True
    return False


def accumulates(program: Term, path: Path) -> bool:
    """Is what stands there written over an accumulator, an array, while it is read?"""
    for depth in range(len(path) - 1, -1, -1):
        t = subterm(program, path[:depth])
        if t.kind == "to":
            return False
        if t.kind == "reduce" and path[depth] == 0:
            return not is_scalar(t.type)
    return False


def is_permuted(t: Term) -> bool:
    """A reordering with an inverse: a result can be written through it."""
    return t.kind == "reindex" and t["function"].inverse is not None


def _repeats(t: Term, number: int = 0) -> bool:
    """Does a view show elements of what lies below it, its argument of that number, several times?"""
    if t.kind == "pad":
        return number == 1 or bool(t["mode"] != "fill")
    return t.kind in _REPEATING or (t.kind == "reindex" and not is_permuted(t))


def _is_updated(t: Term) -> bool:
    """Are elements of an array that is written there stored several times, each once more updated?"""
    if t.kind == "scatter":
        return t["mode"] != "permutation" or _is_updated(t.args[1])
    if t.kind == "map":
        return _is_updated(t.args[1] if is_layout_map(t) else t.args[0].args[0])
    if t.kind == "let":
        return _is_updated(t.args[1].args[0])
    if t.kind in ACCEPTORS or is_permuted(t) or is_only_element(t):
        return any(map(_is_updated, t.args))
    return False


def is_layout_map(t: Term) -> bool:
    """`map` of a chain of acceptor layouts, such as `map transpose`: a layout itself, also for acceptors."""
    if t.kind != "map" or t["level"] is not None:
        return False
    body = t.args[0].args[0]
    while True:
        if body.kind == "bound" and body["index"] == 0:
            return True
        if body.kind in ("split", "join", "transpose", "take", "drop") or is_permuted(body):
            body = body.args[0]
        elif is_layout_map(body):
            body = body.args[1]
        else:
            return False


def is_cut(program: Term, path: Path) -> bool:
    """Do views that leave elements out stand around what is written there, and leave out some of its own?

    `outer` counts the dimensions, at least, that loops around have put before its own.
    """
    outer = 0
    for length in range(len(path) - 1, -1, -1):
        t, number = subterm(program, path[:length]), path[length]
        if t.kind in ("take", "drop") and outer == 0:
            return True
        if t.kind == "map" and number == 1:
            inner = t.args[0].args[0]
            if outer <= 1 and any(u.kind in ("take", "drop") for u in subterms(inner)):
                return True
        elif t.kind == "map":
            outer += 1
        elif t.kind in ("join", "at"):
            outer = max(0, outer - 1)
        elif t.kind == "transpose":
            outer = outer if outer > 1 else 0
        elif t.kind == "split" and outer:
            outer += 1
        elif t.kind in ("reduce", "scan", "iterate", "pipe", "to", "generate"):
            return False
    return False


def _is_scan_of_rows(t: Term) -> bool:
    """Does a scan make each row from the one before, where it is written? (A result that does not keep all of it, see
    `is_cut`, is no place for that.)"""
    return t.kind == "scan" and isinstance(t.type, Array) and not is_scalar(t.type.element)


def computed_elements(xs: Term) -> bool:
    """Are the elements of the array (or of a component of a zip) computed by an abstract map when they are read?"""
    if xs.kind == "map":
        computes = (xs["level"] is None or xs["level"].kind is not LevelKind.INLINE) and has_work(xs.args[0])
        return computes or computed_elements(xs.args[1])
    if xs.kind == "generate":
        return has_work(xs.args[0])
    if xs.kind == "let":
        return computed_elements(xs.args[1].args[0])
    if xs.kind == "at":  # a row of what has loops has memory of its own before it is read
        return is_lazy(xs.args[0]) and computed_elements(xs.args[0])
    if xs.kind in _SHOWING:
        return any(computed_elements(a) for a in xs.args)
    return False


def _shares(body: Term, xs: Term) -> bool:
    """Does a function read elements of the array several times that are arrays, and computed when they are read?"""
    element = xs.type.element if isinstance(xs.type, Array) else xs.type
    return not is_scalar(element) and computed_elements(xs) and reads_within(body) > 1


class Search:
    """Finds the first need of a program. What was found to lack nothing is never searched again."""

    def __init__(self) -> None:
        self._complete: set[tuple[int, str, bool]] = set()
        self._scanning: dict[int, bool] = {}  # does a term have a scan of rows?
        self._program: Term | None = None

    def first(self, term: Term) -> Need | None:
        """The outermost, leftmost missing choice; None when the program can be translated."""
        self._program = term
        return self._write(term, (), ())

    def inside(self, generated: Term) -> Need | None:
        """What the function of a generated array lacks to be computed by the array's reader."""
        return self._read(generated.args[0].args[0], (0, 0), (INLINE,), shared=False)

    def _write(self, t: Term, path: Path, nest: Nest) -> Need | None:
        return self._once(t, path, nest, "write", self._written)

    def _read(self, t: Term, path: Path, nest: Nest, *, shared: bool) -> Need | None:
        if t.kind in _LEAVES:
            return None
        if shared:
            return self._once(t, path, nest, "shared", partial(self._readable, shared=True))
        return self._once(t, path, nest, "read", partial(self._readable, shared=False))

    def _once(self, t: Term, path: Path, nest: Nest, position: str, look: _Look) -> Need | None:
        """(Of what stands around a place, it only matters for completeness whether there is anything; but for a scan of
        rows that is written there, also whether all of it is kept, so this is always asked.)"""
        if position == "write" and self._scans_rows(t):
            return look(t, path, nest)
        key = (t.id, position, bool(nest))
        if key in self._complete:
            return None
        need = look(t, path, nest)
        if need is None:
            self._complete.add(key)
        return need

    def _scans_rows(self, t: Term) -> bool:
        found = self._scanning.get(t.id)
        if found is None:
            found = self._scanning[t.id] = _is_scan_of_rows(t) or any(map(self._scans_rows, t.args))
        return found

    def _written(self, t: Term, path: Path, nest: Nest) -> Need | None:
        kind = t.kind
        if kind == "let":
            return self._let(t, path, nest, self._write)
        if is_scalar(t.type):
            if kind == "tuple":
                return self._parts(t, path, nest)
            if is_only_element(t):
                return self._write(t.args[0], (*path, 0), nest)
            return self._read(t, path, nest, shared=False)
        if kind == "map":
            if is_layout_map(t):
                return self._write(t.args[1], (*path, 1), nest)
            if t["level"] is None or t["level"].kind is LevelKind.INLINE:
                return Need(Lack.LEVEL, path, t, nest)
            body = t.args[0].args[0]
            return self._elements(t, path, nest) or self._write(body, (*path, 0, 0), (*nest, t["level"]))
        if kind == "reduce" and t["level"] is not None and t["memory"] != OUT:
            return Need(Lack.COMPONENTS if isinstance(t.type, Tuple) else Lack.COPY, path, t, nest)
        if _is_scan_of_rows(t) and self._program is not None and is_cut(self._program, path):
            return Need(Lack.COPY, path, t, nest)
        if kind in ("reduce", "scan"):
            return self._reduction(t, path, nest)
        if kind == "to":
            if t["memory"].name == "heap":
                return Need(Lack.RESULT, path, t, nest)
            return self._stored(t, path, nest)
        if kind in ACCEPTORS or kind in ("tuple", "launch"):
            return self._parts(t, path, nest)
        if is_permuted(t):
            return self._write(t.args[0], (*path, 0), nest)
        if kind == "scatter":
            ids, values = t.args
            need = self._read(ids, (*path, 0), nest, shared=False)
            if need is None and t["mode"] != "permutation" and _is_updated(values):
                need = Need(Lack.COPY, (*path, 1), values, nest)
            return need or self._write(values, (*path, 1), nest)
        if kind == "iterate":
            return Need(Lack.ITERATION, path, t, nest)
        if kind == "pipe":
            return self._pipe(t, path, nest)
        if kind == "instr":
            found = (self._read(a, (*path, i), nest, shared=False) for i, a in enumerate(t.args) if a.kind != "lambda")
            return next((need for need in found if need is not None), None)
        if isinstance(t.type, Tuple):
            return Need(Lack.COMPONENTS, path, t, nest)
        return self._read(t, path, nest, shared=False) or Need(Lack.COPY, path, t, nest)

    def _parts(self, t: Term, path: Path, nest: Nest) -> Need | None:
        found = (self._write(child, (*path, i), nest) for i, child in enumerate(t.args))
        return next((need for need in found if need is not None), None)

    def _elements(self, t: Term, path: Path, nest: Nest) -> Need | None:
        """The array that a map or reduction runs over, in view of how often its function uses an element."""
        function, xs, last = t.args[0], t.args[-1], len(t.args) - 1
        body = function.args[0] if t.kind == "map" else function.args[0].args[0]
        if _shares(body, xs):
            return Need(Lack.SHARING, path, t, nest)
        return self._read(xs, (*path, last), nest, shared=False)

    def _reduction(self, t: Term, path: Path, nest: Nest) -> Need | None:
        if t["level"] is None:
            return Need(Lack.REDUCTION, path, t, nest)
        function, initial, _ = t.args
        stands_there = t["memory"] == OUT and initial.kind in ("bound", "proj")  # an outer accumulator, or refused
        body = function.args[0].args[0]
        if stands_there or (t.kind == "scan" and t["memory"] == OUT):
            several = not is_scalar(initial.type) and reads_within(body, 1) > 1
            need = self._read(initial, (*path, 1), nest, shared=several)
        else:
            if not is_scalar(initial.type) and t["memory"] not in (None, OUT, HEAP):
                nest = (*nest, t["memory"])
            need = self._write(initial, (*path, 1), nest)
        inside = (*nest, t["level"])
        return need or self._elements(t, path, nest) or self._write(body, (*path, 0, 0, 0), inside)

    def _pipe(self, t: Term, path: Path, nest: Nest) -> Need | None:
        function, load, initial, xs = t.args
        inside = (*nest, SEQ)
        return (
            self._write(initial, (*path, 2), nest)
            or self._read(xs, (*path, 3), nest, shared=False)
            or self._write(load.args[0], (*path, 1, 0), inside)
            or self._write(function.args[0].args[0], (*path, 0, 0, 0), inside)
        )

    def _stored(self, t: Term, path: Path, nest: Nest) -> Need | None:
        memory: Memory = t["memory"]
        return self._write(t.args[0], (*path, 0), nest if memory.name == "heap" else (*nest, memory))

    def _let(self, t: Term, path: Path, nest: Nest, body: _Look) -> Need | None:
        value, function = t.args
        if value.kind == "to":
            need = self._stored(value, (*path, 0), nest)
        elif is_scalar(value.type):
            if not nest:
                return Need(Lack.BINDING, path, t, nest)
            need = self._read(value, (*path, 0), nest, shared=False)
        elif is_named_view(value) and (nest or not isinstance(value.type, Tuple)):
            need = self._read(value, (*path, 0), nest, shared=True)
        else:
            return Need(Lack.BINDING, path, t, nest)
        return need or body(function.args[0], (*path, 1, 0), nest)

    def _readable(self, t: Term, path: Path, nest: Nest, *, shared: bool) -> Need | None:
        kind = t.kind
        if kind == "map":
            level = t["level"]
            inline = level is not None and level.kind is LevelKind.INLINE
            recomputed = shared and has_work(t.args[0])
            if not inline and (level is not None or not is_lazy(t.args[0]) or recomputed):
                return Need(Lack.MEMORY, path, t, nest)
            if not inline and _shares(t.args[0].args[0], t.args[1]):
                return Need(Lack.SHARING, path, t, nest)
            xs = self._read(t.args[1], (*path, 1), nest, shared=shared)
            return xs or self._read(t.args[0].args[0], (*path, 0, 0), (*nest, INLINE), shared=shared)
        if kind == "scan" or kind == "scatter" or (kind == "generate" and shared and has_work(t.args[0])):
            return Need(Lack.MEMORY, path, t, nest)
        if kind == "reduce":
            return self._reduction(t, path, nest)
        if kind == "pipe":
            return self._pipe(t, path, nest)
        if kind == "to":
            return self._stored(t, path, nest)
        if kind == "let":
            return self._let(t, path, nest, partial(self._read, shared=shared))
        if kind == "iterate":
            return Need(Lack.ITERATION, path, t, nest)
        if kind == "generate":
            return self._read(t.args[0].args[0], (*path, 0, 0), (*nest, INLINE), shared=shared)
        of_rows = kind == "array" and len(t.args) > 1 and not is_scalar(t.args[0].type)
        repeats = shared or of_rows
        found = (
            self._read(child, (*path, i), nest, shared=repeats or _repeats(t, i)) for i, child in enumerate(t.args)
        )
        return next((need for need in found if need is not None), None)
