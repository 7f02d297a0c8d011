"""How layouts are read: arithmetic on indices, moving no data."""

from __future__ import annotations

from lithify.arith import Expr, maximum, proves_divisible, xor
from lithify.kernel import ir
from lithify.kernel.builder import Translator, reads
from lithify.kernel.conditions import conjunction
from lithify.kernel.places import ArrayValue, Environment, Readable
from lithify.kernel.translate_read import array, choose, guarded_readable, read_at, rows, shared, view, where
from lithify.lang.index_functions import padding_source
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term
from lithify.lang.types import Array, Tuple, Type


@reads("split")
def _split(tr: Translator, t: Term, env: Environment) -> Readable:
    size, xs = t["size"], array(tr, t.args[0], env)
    return rows(t, lambda i, j: xs.at(i * size + j), xs)


@reads("join")
def _join(tr: Translator, t: Term, env: Environment) -> Readable:
    xs = array(tr, t.args[0], env)
    assert isinstance(xs.type.element, Array)
    size = xs.type.element.size
    if size.constant == 0:
        return view(t, lambda i: i)
    some = maximum(size, 1)  # of rows that may have no elements: where there is an element to read, they have some

    def element(i: Expr) -> Readable:
        row = i // some
        return read_at(xs.at(row), i - row * size)

    return view(t, element, xs)


@reads("transpose")
def _transpose(tr: Translator, t: Term, env: Environment) -> Readable:
    xs = array(tr, t.args[0], env)
    return rows(t, lambda i, j: read_at(xs.at(j), i), xs)


@reads("take")
def _take(tr: Translator, t: Term, env: Environment) -> Readable:
    xs = array(tr, t.args[0], env)
    return view(t, xs.at, xs)


@reads("drop")
def _drop(tr: Translator, t: Term, env: Environment) -> Readable:
    size, xs = t["size"], array(tr, t.args[0], env)
    return view(t, lambda i: xs.at(i + size), xs)


def _read_once(tr: Translator, t: Term, xs: ArrayValue) -> None:
    """Views that read elements several times may not stand on work."""
    if xs.work:
        raise tr.rejected(t, f"{t.kind} reads elements several times, and below it they are computed at every read",
                          "write them to memory first (to[..]), or say map[inline]")  # fmt: skip


@reads("slide")
def _slide(tr: Translator, t: Term, env: Environment) -> Readable:
    step, xs = t["step"], array(tr, t.args[0], env)
    if (t["size"] - step - 1).hi >= 0:
        _read_once(tr, t, xs)
    return rows(t, lambda i, j: xs.at(i * step + j), xs)


@reads("pad")
def _pad(tr: Translator, t: Term, env: Environment) -> Readable:
    left, right, mode = t.attrs
    xs = array(tr, t.args[0], env)
    n, element = xs.type.size, xs.type.element
    if mode == "fill":
        fill = tr.readable(t.args[1], env)
        if isinstance(fill, (ir.Apply, ir.Choose)):
            fill = shared(tr, fill)
        if n.constant == 0:
            return view(t, lambda i: fill)

        def at(i: Expr) -> Readable:
            conditions = (i - left, n - 1 - (i - left))
            if conjunction((), conditions) is None:
                return fill
            return guarded_readable(tr, element, where(tr, conditions, lambda: xs.at(i - left)), conditions, fill)

        return view(t, at, xs)
    _read_once(tr, t, xs)
    return view(t, lambda i: xs.at(padding_source(mode, i - left, n, left, right)), xs)


@reads("zip")
def _zip(tr: Translator, t: Term, env: Environment) -> Readable:
    arrays = [array(tr, a, env) for a in t.args]
    return view(t, lambda i: tuple([a.at(i) for a in arrays]), *arrays)


@reads("unzip")
def _unzip(tr: Translator, t: Term, env: Environment) -> Readable:
    xs = array(tr, t.args[0], env)
    assert isinstance(t.type, Tuple)

    def column(k: int, type_: Type) -> ArrayValue:
        def at(i: Expr) -> Readable:
            item = xs.at(i)
            assert isinstance(item, tuple)
            return item[k]

        assert isinstance(type_, Array)
        return ArrayValue(type_, at, xs.work)

    return tuple([column(k, type_) for k, type_ in enumerate(t.type.items)])


@reads("concat")
def _concat(tr: Translator, t: Term, env: Environment) -> Readable:
    parts = [array(tr, a, env) for a in t.args]
    parts = [p for p in parts if p.type.size.constant != 0] or parts[:1]
    element = parts[0].type.element

    def at(i: Expr) -> Readable:
        return _concat_at(tr, element, parts, i)

    return view(t, at, *parts)


def _concat_at(tr: Translator, element: Type, parts: list[ArrayValue], i: Expr) -> Readable:
    first, *rest = parts
    if not rest:
        return first.at(i)
    inside = first.type.size - 1 - i
    if conjunction((), (inside,)) is None:
        return _concat_at(tr, element, rest, i - first.type.size)
    if conjunction((), (inside,)) == ():
        return first.at(i)
    here = where(tr, (inside,), lambda: first.at(i))
    there = where(tr, (-inside - 1,), lambda: _concat_at(tr, element, rest, i - first.type.size))
    return choose(tr, element, (inside,), here, there)


@reads("replicate")
def _replicate(tr: Translator, t: Term, env: Environment) -> Readable:
    element = tr.readable(t.args[0], env)
    if isinstance(element, ArrayValue):
        _read_once(tr, t, element)
    element = shared(tr, element)
    return view(t, lambda i: element)


@reads("reindex")
def _reindex(tr: Translator, t: Term, env: Environment) -> Readable:
    function, xs = t["function"], array(tr, t.args[0], env)
    if function.inverse is None:
        _read_once(tr, t, xs)
    return view(t, lambda i: xs.at(function.at(i)), xs)


@reads("gather")
def _gather(tr: Translator, t: Term, env: Environment) -> Readable:
    ids, xs = array(tr, t.args[0], env), array(tr, t.args[1], env)
    _read_once(tr, t, xs)

    def at(i: Expr) -> Readable:
        index = ids.at(i)
        assert isinstance(index, Expr)
        return xs.at(index)

    return view(t, at, xs, ids)


@reads("swz")
def _swz(tr: Translator, t: Term, env: Environment) -> Readable:
    check_swizzle(tr, t)
    xs = array(tr, t.args[0], env)
    return rows(t, lambda i, j: read_at(xs.at(i), swizzled(t, i, j)), xs)


def check_swizzle(tr: Translator, t: Term) -> None:
    """swz permutes within lines of `width` bytes, so rows are whole lines of scalars."""
    assert isinstance(t.type, Array) and isinstance(t.type.element, Array)
    row, width = t.type.element, t["width"]
    if not isinstance(row.element, Scalar) or not proves_divisible(row.size * row.element.bytes, width):
        raise tr.rejected(t, f"swz {width} of rows of type {row}", f"a row is scalars, in whole lines of {width} bytes")


def swizzled(t: Term, row: Expr, column: Expr) -> Expr:
    """The column below `swz width`: its 16-byte chunk xored by the row, within `width` bytes; its own inverse."""
    assert isinstance(t.type, Array) and isinstance(t.type.element, Array)
    scalar = t.type.element.element
    assert isinstance(scalar, Scalar)
    width: int = t["width"]
    per_chunk, chunks = 16 // scalar.bytes, width // 16
    chunk: Expr = column // per_chunk
    within = chunk % chunks
    turned = xor(within, row * width // 128 % chunks)
    return column + (turned - within) * per_chunk
