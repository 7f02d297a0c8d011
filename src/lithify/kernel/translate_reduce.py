"""Reductions, scans and iterations: accumulators in memory, updated in place."""

from __future__ import annotations

from collections.abc import Callable

from lithify.arith import Expr, Variable, const
from lithify.kernel import ir
from lithify.kernel.builder import Translator, reads, writes
from lithify.kernel.inplace import conflict
from lithify.kernel.loops import loop
from lithify.kernel.places import Acceptor, ArrayValue, Environment, Readable
from lithify.kernel.translate_read import array, shared
from lithify.kernel.translate_write import contains_array, unwritten, uses, write_scalars
from lithify.kernel.walk import index_accesses, reads_buffer
from lithify.lang.index_functions import canonical_variable
from lithify.lang.levels import PRIVATE, SEQ, Level, LevelKind
from lithify.lang.term import Term
from lithify.lang.types import Array


def _level(tr: Translator, t: Term) -> Level:
    level: Level | None = t["level"]
    if level is None:
        raise tr.rejected(t, f"a {t.kind} has no level: nothing says how it is executed",
                          f"give it one: {t.kind}[seq] or {t.kind}[unroll]")  # fmt: skip
    if level.kind not in (LevelKind.SEQUENTIAL, LevelKind.UNROLLED):
        raise tr.rejected(
            t,
            f"a {t.kind} cannot run at level {level}: its steps depend on each other",
            "split it: a map at that level over reductions of parts, then a reduction of their results",
        )
    return level


def initialise(tr: Translator, initial: Term, accumulator: Acceptor, env: Environment) -> None:
    """accumulator := initial; nothing where it stands there already."""
    if contains_array(initial.type) and initial.kind in ("bound", "proj", "param"):
        if _stands_there(tr.readable(initial, env), accumulator.read()):
            return
    tr.write(initial, accumulator, env)


def _stands_there(value: Readable, there: Readable) -> bool:
    """Is `value` the memory `there`, by identity of a general element?"""
    if isinstance(value, tuple) and isinstance(there, tuple):
        return all(_stands_there(v, t) for v, t in zip(value, there, strict=True))
    return _general_element(value) == _general_element(there)


def _general_element(value: Readable) -> object:
    """A readable at general indices, for comparison; something equal to nothing where it is not plain memory."""
    while isinstance(value, ArrayValue):
        if value.work or value.type.size.constant == 0:
            return object()
        value = value.at(canonical_variable(value.type.size))
    return value if isinstance(value, ir.Load) else object()


def reduce_into(tr: Translator, t: Term, accumulator: Acceptor, env: Environment) -> None:
    """accumulator := initial, then accumulator := f accumulator x for every element."""
    function, initial, elements = t.args
    level = _level(tr, t)
    initialise(tr, initial, accumulator, env)
    assert isinstance(elements.type, Array)
    if elements.type.size.constant == 0:
        return
    xs = array(tr, elements, env)
    body = function.args[0].args[0]
    several = uses(body) > 1
    _check_aliases(tr, t, accumulator.buffers(), env)

    def step(i: Expr) -> None:
        element = _element(tr, xs.at(i), several)
        in_place(tr, t, accumulator, lambda: tr.write(body, accumulator, (element, accumulator.read(), *env)))

    loop(tr, elements.type.size, level, t["name"], t, step)


def _element(tr: Translator, element: Readable, several: bool) -> Readable:
    return shared(tr, element) if several else element


def in_place(tr: Translator, t: Term, accumulator: Acceptor, step: Callable[[], None]) -> None:
    """Write the new value over the accumulator it is made from, and check that this is right."""
    buffers = accumulator.buffers()
    tr.accumulators.append(buffers)
    with tr.collected() as block:
        step()
    tr.accumulators.pop()
    found = conflict(block, buffers)
    if found is not None:
        (buffer, stored), (other, read) = found
        raise tr.rejected(
            t,
            f"the accumulator is updated in place: {buffer}[{_text(stored)}] is stored, "
            f"and {other}[{_text(read)}] is read of it after that or meanwhile",
            DOUBLE_BUFFER,
        )
    tr.scope.block.extend(block)


DOUBLE_BUFFER = "double-buffer it: write the new value to other memory, to[..], and copy it over"


def _check_aliases(tr: Translator, t: Term, buffers: frozenset[ir.Buffer], env: Environment) -> None:
    """An accumulation inside another's accumulator may not read the outer one: its elements change meanwhile."""
    if not any(buffers & outer for outer in tr.accumulators):
        return
    function = t.args[0]
    for index, path in _mentioned(function):
        value = env[index]
        for component in path:
            assert isinstance(value, tuple)
            value = value[component]
        if _touches(tr, value, buffers):
            raise tr.rejected(
                t, "the function reads the memory of the accumulator under another name while it changes", DOUBLE_BUFFER
            )


def _mentioned(function: Term) -> set[tuple[int, tuple[int, ...]]]:
    """The variables that a term takes from outside, each with the components that are projected from it."""
    found: set[tuple[int, tuple[int, ...]]] = set()

    def visit(term: Term, depth: int, path: tuple[int, ...]) -> None:
        if term.open_depth <= depth:
            return
        if term.kind == "bound":
            found.add((term.attrs[0] - depth, path))
        elif term.kind == "proj":
            visit(term.args[0], depth, (term["component"], *path))
        else:
            for a in term.args:
                visit(a, depth + (term.kind == "lambda"), ())

    visit(function, 0, ())
    return found


def _touches(tr: Translator, value: Readable, buffers: frozenset[ir.Buffer]) -> bool:
    """Does reading the value (at a general element) read one of the buffers?"""
    if isinstance(value, tuple):
        return any(_touches(tr, item, buffers) for item in value)
    if isinstance(value, ArrayValue):
        if value.type.size.constant == 0:
            return False
        with tr.probed():
            return _touches(tr, value.at(canonical_variable(value.type.size)), buffers)
    return any(reads_buffer(value, buffer) for buffer in buffers)


def _check_stored(tr: Translator, t: Term, acceptor: Acceptor) -> None:
    """An accumulator that lies in the result is read again: all of it must be stored, not only what is kept of it."""
    known = frozenset(tr.owner)
    with tr.probed():
        if _partly_stored(acceptor.read(), frozenset(), known):
            raise tr.rejected(
                t,
                f"the accumulator of this {t.kind} lies in the result, but only a part of it is kept there",
                "give it other memory: to[..] around it",
            )


def _partly_stored(value: Readable, inside: frozenset[Variable], known: frozenset[ir.Buffer]) -> bool:
    """Does it depend on the element whether it is stored: on variables `inside`, or on what is computed from them?"""
    if isinstance(value, tuple):
        return any(_partly_stored(item, inside, known) for item in value)
    if isinstance(value, ArrayValue):
        if value.type.size.constant == 0:
            return False
        element = canonical_variable(value.type.size)
        return _partly_stored(value.at(element), inside | element.variables(), known)
    if not isinstance(value, ir.Load):
        return False
    computed = any(b.role == "scratch" and b not in known for b, _ in index_accesses(value.guard))
    return computed or any(inside & condition.variables() for condition in value.guard)


def _text(index: ir.Index) -> str:
    return ", ".join(map(str, index))


@reads("reduce")
def _read_reduce(tr: Translator, t: Term, env: Environment) -> Readable:
    _level(tr, t)
    accumulator = tr.allocate(t.type, t["memory"] or PRIVATE, t)
    reduce_into(tr, t, accumulator, env)
    return accumulator.read()


@writes("reduce")
def _write_reduce(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    memory = t["memory"]
    if memory is not None and memory.name == "out":
        _check_stored(tr, t, acceptor)
        reduce_into(tr, t, acceptor, env)
        return
    if contains_array(t.type):
        _level(tr, t)
        raise unwritten(tr, t)
    write_scalars(tr, t, acceptor, tr.readable(t, env))


@writes("scan")
def _write_scan(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    function, initial, elements = t.args
    level, memory = _level(tr, t), t["memory"]
    assert isinstance(t.type, Array)
    size, body = t.type.size, function.args[0].args[0]
    if size.constant == 0:
        return
    several = uses(body) > 1
    if memory is not None and memory.name == "out":
        _check_stored(tr, t, acceptor)
        xs = array(tr, elements, env)
        start = tr.readable(initial, env)
        tr.write(body, acceptor.at(const(0)), (_element(tr, xs.at(const(0)), several), shared(tr, start), *env))

        def next_row(i: Expr) -> None:
            previous = acceptor.at(i).read()
            tr.write(body, acceptor.at(i + 1), (_element(tr, xs.at(i + 1), several), previous, *env))

        loop(tr, size - 1, level, t["name"], t, next_row)
        return
    if contains_array(t.type.element):
        raise tr.rejected(t, "a scan keeps its accumulator apart from its result, and no loop copies an array there",
                          "say scan[.., out]: each row is made from the one before it")  # fmt: skip
    accumulator = tr.allocate(t.type.element, memory or PRIVATE, t)
    initialise(tr, initial, accumulator, env)
    xs = array(tr, elements, env)

    def step(i: Expr) -> None:
        element = _element(tr, xs.at(i), several)
        in_place(tr, t, accumulator, lambda: tr.write(body, accumulator, (element, accumulator.read(), *env)))
        write_scalars(tr, t, acceptor.at(i), accumulator.read())

    loop(tr, size, level, t["name"], t, step)


@reads("scan")
def _read_scan(tr: Translator, t: Term, env: Environment) -> Readable:
    raise tr.rejected(t, "a scan is read where nobody has written it", "put to[private] (or another memory) around it")


@reads("iterate")
def _iterate(tr: Translator, t: Term, env: Environment) -> Readable:
    if contains_array(t.type):
        raise tr.rejected(t, "iterate over arrays needs memory for every step",
                          "expand it: let x1 = to[..] (f x0) in ..")  # fmt: skip
    function, initial = t.args
    if t["count"].constant == 0:
        return tr.readable(initial, env)
    place = tr.allocate(t.type, PRIVATE, t)
    initialise(tr, initial, place, env)
    body = function.args[0]

    def step(_k: Expr) -> None:
        in_place(tr, t, place, lambda: tr.write(body, place, (place.read(), *env)))

    loop(tr, t["count"], SEQ, None, t, step)
    return place.read()


@writes("iterate")
def _write_iterate(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    write_scalars(tr, t, acceptor, tr.readable(t, env))
