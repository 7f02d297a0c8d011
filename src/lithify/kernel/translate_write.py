"""How terms are written: maps as loops, structure, and the layouts as views of the acceptor."""

from __future__ import annotations

from collections.abc import Callable

from lithify.arith import Expr, const
from lithify.kernel import ir
from lithify.kernel.builder import Translator, writes
from lithify.kernel.loops import loop
from lithify.kernel.places import Acceptor, ArrayValue, Environment, Place, Readable, TupleAcceptor, ViewAcceptor
from lithify.kernel.translate_read import let_value, shared
from lithify.kernel.translate_views import check_swizzle, swizzled
from lithify.kernel.walk import reads_buffer
from lithify.lang.levels import INLINE, PRIVATE
from lithify.lang.reading import is_only_element, is_written
from lithify.lang.term import Term, mentions
from lithify.lang.types import Array, Tuple, Type, shape_of

# ---- scalars and tuples --------------------------------------------------------------------------------------------


def write_scalars(tr: Translator, t: Term, acceptor: Acceptor, value: Readable) -> None:
    """Store a scalar or a tuple of scalars; all components are evaluated before one that they read is overwritten."""
    stores: list[tuple[Place, Readable]] = []

    def flatten(a: Acceptor, v: Readable) -> None:
        if isinstance(v, tuple):
            for k, item in enumerate(v):
                flatten(a.component(k), item)
        elif isinstance(v, ArrayValue):
            raise unwritten(tr, t)
        else:
            assert isinstance(a, Place)
            stores.append((a, v))

    flatten(acceptor, value)
    for k, (place, v) in enumerate(stores):
        if k and any(reads_buffer(v, earlier.leaf_buffers[0]) for earlier, _ in stores[:k]):
            stores = [(p, evaluated(tr, w)) for p, w in stores]
            break
        del place
    for place, v in stores:
        tr.store(t, place, v)


def evaluated(tr: Translator, value: Readable) -> Readable:
    """The scalar in private memory, now."""
    if isinstance(value, Expr):
        from lithify.kernel.builder import index_value

        value = index_value(value)
    assert not isinstance(value, (ArrayValue, tuple))
    return value if isinstance(value, ir.Constant) else tr.materialised(value)


def unwritten(tr: Translator, t: Term) -> Exception:
    """The error for an array result that no loop writes."""
    if t.kind == "to":
        memory, copy = t["memory"], "id"
        for _ in shape_of(t.type)[0]:
            copy = f"map[seq] {copy}" if copy == "id" else f"map[seq] ({copy})"
        return tr.rejected(t, f"the result is left in {memory} memory, which ends with the kernel",
                           f"copy it, {copy} (to[{memory}] ..), or leave out to[{memory}]")  # fmt: skip
    return tr.rejected(t, "an array result is nowhere told how to be written",
                       "write it with a map that has a level, for example a copy: map[seq] id (..)")  # fmt: skip


@writes("at")
def _only_element(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    """The element of an array of one: who writes the array writes the element."""
    xs = t.args[0]
    if is_only_element(t):
        assert isinstance(xs.type, Array)
        tr.write(xs, ViewAcceptor(xs.type, lambda _: acceptor, (acceptor,)), env)
    else:
        _value(tr, t, acceptor, env)


@writes("param", "bound", "const", "op", "index", "array", "generate", "proj", "replicate", "gather", "slide",
        "pad")  # fmt: skip
def _value(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    if isinstance(t.type, Array):
        if t.kind == "array":
            for k, item in enumerate(t.args):
                tr.write(item, acceptor.at(const(k)), env)
            return
        if t.pattern.layout:
            raise tr.rejected(t, f"{t.kind} has no inverse, so a result cannot be written through it",
                              "copy it: map[seq] id (..) with a level that writes")  # fmt: skip
        raise unwritten(tr, t)
    write_scalars(tr, t, acceptor, tr.evaluated(t, env))


@writes("tuple")
def _tuple(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    if not any(contains_array(a.type) or is_written(a) for a in t.args):
        write_scalars(tr, t, acceptor, tr.evaluated(t, env))
        return
    if tr.accumulators and not contains_array(t.type):  # a component may read what another overwrites
        apart = tr.allocate(t.type, PRIVATE, t)
        _write_components(tr, t, apart, env)
        write_scalars(tr, t, acceptor, apart.read())
        return
    _write_components(tr, t, acceptor, env)


def _write_components(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    for k, item in enumerate(t.args):
        tr.write(item, acceptor.component(k), env)


def contains_array(type_: Type) -> bool:
    """Is the type an array or a tuple with one in it?"""
    return isinstance(type_, Array) or (isinstance(type_, Tuple) and any(map(contains_array, type_.items)))


@writes("let")
def _let(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    tr.write(t.args[1].args[0], acceptor, (let_value(tr, t.args[0], env), *env))


@writes("to")
def _to(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    if t["memory"].name == "out":
        tr.write(t.args[0], acceptor, env)
    else:
        write_scalars(tr, t, acceptor, tr.evaluated(t, env))


@writes("launch")
def _launch(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    if tr.scope.depth:
        raise tr.rejected(t, "launch roots a kernel; here it stands inside one")
    tr.write(t.args[0], acceptor, env)


# ---- maps ----------------------------------------------------------------------------------------------------------


@writes("map")
def _map(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    level, body = t["level"], t.args[0].args[0]
    if level is None or level == INLINE:
        layout = layout_of_body(tr, t.args[0])
        if layout is None:
            raise tr.rejected(t, "a map has no level: nothing says how it is executed",
                              "give it one: map[seq], map[unroll], map[vec], map[par], map[group0], ...")  # fmt: skip
        element = acceptor
        tr.write(t.args[1], ViewAcceptor(_array_type(t.args[1]), lambda i: layout(element.at(i)), (acceptor,)), env)
        return
    assert isinstance(t.type, Array)
    if t.type.size.constant == 0:
        return
    xs = tr.evaluated(t.args[1], env)
    assert isinstance(xs, ArrayValue)
    readers = uses(body)

    def run(i: Expr) -> None:
        element = xs.at(i) if readers else ()
        tr.write(body, acceptor.at(i), (shared(tr, element) if readers > 1 else element, *env))

    loop(tr, t.type.size, level, t["name"], t, run)


def _array_type(t: Term) -> Array:
    assert isinstance(t.type, Array)
    return t.type


def uses(body: Term, index: int = 0) -> int:
    """How often a body mentions a bound variable (2 stands for more)."""
    if not mentions(body, index):
        return 0
    if body.kind == "bound":
        return 1
    inner = index + 1 if body.kind == "lambda" else index
    count = 0
    for a in body.args:
        count += uses(a, inner)
        if count > 1:
            return 2
    return count


# ---- layouts in result position ------------------------------------------------------------------------------------

Layout = Callable[[Acceptor], Acceptor]


def layout_of_body(tr: Translator, function: Term) -> Layout | None:
    """The acceptor view of `map (layouts)`: from the acceptor of an element's result to that of the element."""
    chain: list[Term] = []
    body = function.args[0]
    while not (body.kind == "bound" and body.attrs[0] == 0):
        invertible = body.kind in _LAYOUTS or (body.kind == "map" and body["level"] is None)
        if not invertible or not body.args:
            return None
        if body.kind == "map" and layout_of_body(tr, body.args[0]) is None:
            return None
        chain.append(body)
        body = body.args[-1]

    def through(acceptor: Acceptor) -> Acceptor:
        for step in chain:
            acceptor = layout_acceptor(tr, step, acceptor)
        return acceptor

    return through


def layout_acceptor(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    """The acceptor for the argument of a layout whose result goes to `acceptor`."""
    if t.kind == "map":
        layout = layout_of_body(tr, t.args[0])
        assert layout is not None
        return ViewAcceptor(_array_type(t.args[1]), lambda i: layout(acceptor.at(i)), (acceptor,))
    return _LAYOUTS[t.kind](tr, t, acceptor)


def _rows(t: Term, acceptor: Acceptor, element: Callable[[Expr, Expr], Acceptor]) -> Acceptor:
    """An acceptor of the argument's type, an array of arrays."""
    type_ = _array_type(t.args[0])
    row = type_.element
    assert isinstance(row, Array)
    return ViewAcceptor(type_, lambda i: ViewAcceptor(row, lambda j: element(i, j), (acceptor,)), (acceptor,))


def _join(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    row = _array_type(t.args[0]).element
    assert isinstance(row, Array)
    size = row.size
    return _rows(t, acceptor, lambda i, j: acceptor.at(i * size + j))


def _split(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    size = t["size"]
    return ViewAcceptor(_array_type(t.args[0]), lambda i: acceptor.at(i // size).at(i % size), (acceptor,))


def _transpose(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    return _rows(t, acceptor, lambda i, j: acceptor.at(j).at(i))


def _take(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    size = t["size"]
    return ViewAcceptor(_array_type(t.args[0]), lambda i: acceptor.at(i).guarded((size - 1 - i,)), (acceptor,))


def _drop(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    size = t["size"]
    return ViewAcceptor(_array_type(t.args[0]), lambda i: acceptor.at(i - size).guarded((i - size,)), (acceptor,))


def _reindex(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    function = t["function"]
    if function.inverse is None:
        raise tr.rejected(t, f"reindex {function} has no declared inverse, so a result cannot be written through it",
                          "copy it with a map that has a level")  # fmt: skip
    return ViewAcceptor(_array_type(t.args[0]), lambda i: acceptor.at(function.back(i)), (acceptor,))


def _swz(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    check_swizzle(tr, t)
    return _rows(t, acceptor, lambda i, j: acceptor.at(i).at(swizzled(t, i, j)))


def _unzip(tr: Translator, t: Term, acceptor: Acceptor) -> Acceptor:
    type_ = _array_type(t.args[0])
    element = type_.element
    assert isinstance(element, Tuple)
    columns = [acceptor.component(k) for k in range(len(element.items))]
    return ViewAcceptor(type_, lambda i: TupleAcceptor(element, tuple([c.at(i) for c in columns])), (acceptor,))


_LAYOUTS: dict[str, Callable[[Translator, Term, Acceptor], Acceptor]] = {
    "join": _join,
    "split": _split,
    "transpose": _transpose,
    "take": _take,
    "drop": _drop,
    "reindex": _reindex,
    "swz": _swz,
    "unzip": _unzip,
}


@writes(*_LAYOUTS)
def _layout(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    tr.write(t.args[0], layout_acceptor(tr, t, acceptor), env)


@writes("zip")
def _zip(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    for k, a in enumerate(t.args):
        column = ViewAcceptor(_array_type(a), _component_of(acceptor, k), (acceptor,))
        tr.write(a, column, env)


def _component_of(acceptor: Acceptor, number: int) -> Callable[[Expr], Acceptor]:
    return lambda i: acceptor.at(i).component(number)


@writes("concat")
def _concat(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    offset = const(0)
    for a in t.args:
        type_ = _array_type(a)
        tr.write(a, ViewAcceptor(type_, _shifted(acceptor, offset), (acceptor,)), env)
        offset = offset + type_.size


def _shifted(acceptor: Acceptor, offset: Expr) -> Callable[[Expr], Acceptor]:
    return lambda i: acceptor.at(i + offset)
