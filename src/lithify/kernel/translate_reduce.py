"""Reductions, scans and iterations: accumulators in memory, updated in place."""

from __future__ import annotations

from collections.abc import Callable

from lithify.arith import Expr, const
from lithify.kernel import ir
from lithify.kernel.builder import Translator, reads, writes
from lithify.kernel.inplace import conflict
from lithify.kernel.places import Acceptor, Environment, Readable
from lithify.kernel.translate_read import array, shared
from lithify.kernel.translate_write import contains_array, unwritten, uses, write_scalars
from lithify.lang.levels import PRIVATE, SEQ, Level, LevelKind
from lithify.lang.term import Term
from lithify.lang.types import Array


def _level(tr: Translator, t: Term) -> Level:
    level: Level | None = t["level"]
    if level is None:
        raise tr.rejected(t, f"a {t.kind} has no level: nothing says how it is executed",
                          f"give it one: {t.kind}[seq] or {t.kind}[unroll]")  # fmt: skip
    if level.kind not in (LevelKind.SEQUENTIAL, LevelKind.UNROLLED):
        raise tr.rejected(t, f"a {t.kind} cannot run at level {level}: its steps depend on each other",
                          "split it: a map at that level over reductions of parts, then a reduction of their results")  # fmt: skip
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
    return probe(value) == probe(there)


def probe(value: Readable) -> object:
    """A readable at general indices, for comparison by identity; None when it is no plain memory."""
    from lithify.kernel.places import ArrayValue
    from lithify.lang.index_functions import canonical_variable

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
    accumulate(
        tr, t, level, elements.type.size, accumulator,
        lambda i: tr.write(body, accumulator, (_element(tr, xs.at(i), several), accumulator.read(), *env)),
    )  # fmt: skip


def _element(tr: Translator, element: Readable, several: bool) -> Readable:
    return shared(tr, element) if several else element


def accumulate(
    tr: Translator, t: Term, level: Level, size: Expr, accumulator: Acceptor, step: Callable[[Expr], None]
) -> None:
    """Run the steps of an accumulation in place, and check that it may be in place."""
    buffers = accumulator.buffers()

    def checked(i: Expr) -> None:
        with tr.collected() as block:
            step(i)
        found = conflict(block, buffers)
        if found is not None:
            (buffer, stored), (other, read) = found
            raise tr.rejected(
                t, f"the accumulator is updated in place: {buffer}[{_text(stored)}] is stored, "
                f"and {other}[{_text(read)}] is read of it after that or meanwhile",
                "double-buffer it: write the new value to other memory, to[..], and copy it over")  # fmt: skip
        tr.scope.block.extend(block)

    tr.loop(size, level, t["name"] if "name" in t.pattern.attributes else None, t, checked)


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
        xs = array(tr, elements, env)
        start = tr.readable(initial, env)
        tr.write(body, acceptor.at(const(0)), (_element(tr, xs.at(const(0)), several), shared(tr, start), *env))

        def next_row(i: Expr) -> None:
            previous = acceptor.at(i).read()
            tr.write(body, acceptor.at(i + 1), (_element(tr, xs.at(i + 1), several), previous, *env))

        tr.loop(size - 1, level, t["name"], t, next_row)
        return
    if contains_array(t.type.element):
        raise tr.rejected(t, "a scan keeps its accumulator apart from its result, and no loop copies an array there",
                          "say scan[.., out]: each row is made from the one before it")  # fmt: skip
    accumulator = tr.allocate(t.type.element, memory or PRIVATE, t)
    initialise(tr, initial, accumulator, env)
    xs = array(tr, elements, env)

    def step(i: Expr) -> None:
        tr.write(body, accumulator, (_element(tr, xs.at(i), several), accumulator.read(), *env))
        write_scalars(tr, t, acceptor.at(i), accumulator.read())

    accumulate(tr, t, level, size, accumulator, step)


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
    accumulate(tr, t, SEQ, t["count"], place, lambda i: tr.write(body, place, (place.read(), *env)))
    return place.read()
