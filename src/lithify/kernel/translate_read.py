"""How terms are read: values, structure, and maps without a level. Layouts are in `translate_views`."""

from __future__ import annotations

from collections.abc import Callable

from lithify.arith import Expr, const, loaded
from lithify.kernel import ir
from lithify.kernel.builder import Translator, index_value, reads
from lithify.kernel.conditions import conjunction, guard_loads, guarded, under
from lithify.kernel.places import ArrayValue, Environment, Readable, index_scalar
from lithify.lang.build import constant_value
from lithify.lang.levels import INLINE
from lithify.lang.operators import Typing
from lithify.lang.reading import has_work
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, contains, mentions
from lithify.lang.types import Array, Index, Tuple, Type

# ---- values --------------------------------------------------------------------------------------------------------


@reads("param")
def _param(tr: Translator, t: Term, env: Environment) -> Readable:
    found = tr.inputs.get(t["name"])
    if found is None:
        raise tr.rejected(t, f"{t['name']} is not a parameter of the program",
                          f"parameters are {', '.join(tr.inputs) or 'none'}")  # fmt: skip
    return found


@reads("bound")
def _bound(tr: Translator, t: Term, env: Environment) -> Readable:
    index: int = t["index"]
    return env[index]


@reads("const")
def _const(tr: Translator, t: Term, env: Environment) -> Readable:
    value = constant_value(t)
    if isinstance(t.type, Index):
        assert isinstance(value, Expr)
        return value
    assert isinstance(t.type, Scalar)
    return ir.Constant(value, t.type)


@reads("op")
def _op(tr: Translator, t: Term, env: Environment) -> Readable:
    operator = t["operator"]
    operands = [tr.readable(a, env) for a in t.args]
    if operator.typing is Typing.DEFINED:
        return _unfold(tr, operator.definition, operands)
    integer = _integer(t.args)
    values = tuple([index_value(o, integer) if isinstance(o, Expr) else o for o in operands])
    if isinstance(t.type, Index):  # a choice: in private memory, because an index formula has none
        assert integer is not None
        chosen = tr.materialised(ir.Apply(operator, values, integer))  # type: ignore[arg-type]
        return loaded(chosen.buffer, chosen.index, 0, t.type.size - 1)
    assert isinstance(t.type, Scalar)
    return ir.Apply(operator, values, t.type)  # type: ignore[arg-type]


def _integer(operands: tuple[Term, ...]) -> Scalar | None:
    """The integer type that holds all the indices among the operands."""
    types = [index_scalar(a.type.size) for a in operands if isinstance(a.type, Index)]
    return max(types, key=lambda scalar: scalar.bits, default=None)


@reads("index")
def _index(tr: Translator, t: Term, env: Environment) -> Readable:
    operands: list[Expr] = []
    for a in t.args:
        operand = tr.readable(a, env)
        assert isinstance(operand, Expr)
        operands.append(operand)
    found: Expr = t["formula"].of(operands)
    return ir.IndexValue(found, t.type) if isinstance(t.type, Scalar) else found


def _unfold(tr: Translator, definition: Term, operands: list[Readable]) -> Readable:
    inner: Environment = ()
    for operand in operands:
        inner = (shared(tr, operand), *inner)
        definition = definition.args[0]
    return tr.evaluated(definition, inner)


def shared(tr: Translator, value: Readable) -> Readable:
    """The value in a form that several readers may use: real work on scalars is done here, once."""
    if isinstance(value, tuple):
        return tuple([shared(tr, item) for item in value])
    if isinstance(value, (ir.Apply, ir.Choose)):
        return tr.materialised(value)
    return value


@reads("let")
def _let(tr: Translator, t: Term, env: Environment) -> Readable:
    return tr.evaluated(t.args[1].args[0], (let_value(tr, t.args[0], env), *env))


def let_value(tr: Translator, value: Term, env: Environment) -> Readable:
    """What a let binds: scalars evaluated once, there; arrays must be views or in memory.

    (Whether what a view shows is computed for one reader, the array that it shows watches.)
    """
    readable = tr.evaluated(value, env)
    if has_work(value):
        _check_let(tr, value, readable)
    return stored_once(tr, readable)


def _check_let(tr: Translator, value: Term, readable: Readable) -> None:
    if isinstance(readable, tuple):
        for item in readable:
            _check_let(tr, value, item)
    elif isinstance(readable, ArrayValue) and readable.work:
        raise tr.rejected(value, "a let binds an array that every reader would compute again",
                          "write it to memory: let x = to[private] (..), or say map[inline]")  # fmt: skip


def stored_once(tr: Translator, value: Readable) -> Readable:
    """Scalars of the value in private memory, unless they are constants or stand in private memory already."""
    if isinstance(value, tuple):
        return tuple([stored_once(tr, item) for item in value])
    if isinstance(value, (ir.Apply, ir.Choose)) or (
        isinstance(value, ir.Load) and value.buffer.role not in ("scratch", "temporary")
    ):
        return tr.materialised(value)
    return value


# ---- structure -----------------------------------------------------------------------------------------------------


@reads("tuple")
def _tuple(tr: Translator, t: Term, env: Environment) -> Readable:
    return tuple([tr.readable(a, env) for a in t.args])


@reads("proj")
def _proj(tr: Translator, t: Term, env: Environment) -> Readable:
    value = tr.readable(t.args[0], env)
    assert isinstance(value, tuple)
    component: int = t["component"]
    return value[component]


def array(tr: Translator, t: Term, env: Environment) -> ArrayValue:
    """A term of array type, read."""
    value = tr.readable(t, env)
    assert isinstance(value, ArrayValue), value
    return value


def view(t: Term, at: Callable[[Expr], Readable], *below: ArrayValue) -> ArrayValue:
    """An array of the term's type over other arrays."""
    assert isinstance(t.type, Array)
    return ArrayValue(t.type, at, any(b.work for b in below))


def rows(t: Term, at: Callable[[Expr, Expr], Readable], below: ArrayValue) -> ArrayValue:
    """An array of arrays over another array."""
    assert isinstance(t.type, Array) and isinstance(t.type.element, Array)
    row = t.type.element
    return view(t, lambda i: ArrayValue(row, lambda j: at(i, j), below.work), below)


def read_at(value: Readable, index: Expr) -> Readable:
    """An element of an array."""
    assert isinstance(value, ArrayValue)
    return value.at(index)


@reads("array")
def _array(tr: Translator, t: Term, env: Environment) -> Readable:
    items = [tr.readable(a, env) for a in t.args]

    def at(i: Expr) -> Readable:
        if i.constant is not None and 0 <= i.constant < len(items):
            return items[i.constant]
        result = items[-1]
        for k in range(len(items) - 2, -1, -1):
            result = choose(tr, t.args[k].type, (const(k) - i,), items[k], result)
        return result

    return view(t, at)


@reads("at")
def _at(tr: Translator, t: Term, env: Environment) -> Readable:
    xs = array(tr, t.args[0], env)
    index = tr.readable(t.args[1], env)
    assert isinstance(index, Expr)
    return xs.at(index)


_REAL_WORK = frozenset({"reduce", "scan", "pipe", "iterate", "to", "scatter", "instr"})


def _holds_loops(body: Term) -> bool:
    return contains(body, lambda s: s.kind in _REAL_WORK or (s.kind == "map" and s["level"] not in (None, INLINE)))


@reads("map")
def _map(tr: Translator, t: Term, env: Environment) -> Readable:
    level, body = t["level"], t.args[0].args[0]
    if level is not None and level is not INLINE and level != INLINE:
        raise tr.rejected(t, f"map[{level}] is read where nobody has written it",
                          "write it first: to[private], to[thread], to[local] or to[heap] around it")  # fmt: skip
    inline = level is not None
    if not inline and _holds_loops(body):
        raise tr.rejected(t, "a map without a level is recomputed at every read, and its body holds loops",
                          "give it a level and write it to memory, or say map[inline]")  # fmt: skip
    xs = array(tr, t.args[1], env)
    assert isinstance(t.type, Array)
    reads_element = mentions(body, 0)

    def element(i: Expr) -> Readable:
        return tr.evaluated(body, (xs.at(i) if reads_element else (), *env))

    if inline or not (has_work(body) or (xs.work and reads_element)):
        return ArrayValue(t.type, element)
    work = _Work(tr, t)
    return ArrayValue(t.type, lambda i: work.watched(element(i), (i,)), True)


class _Work:
    """Watches the readers of an abstract map that computes: no element may be computed twice.

    An element is read again where the same index is read twice, or below a loop (entered since the map was made) whose
    variable the index does not mention. The lanes of a vector share a value.
    """

    def __init__(self, tr: Translator, t: Term) -> None:
        self.tr, self.term = tr, t
        self.around = tr.scope.repeating
        self.seen: set[tuple[Expr, ...]] = set()

    def watched(self, value: Readable, index: tuple[Expr, ...]) -> Readable:
        """The value at an index, rows watched too."""
        if isinstance(value, ArrayValue):
            return ArrayValue(value.type, lambda i: self.watched(value.at(i), (*index, i)), True)
        if isinstance(value, tuple) and any(isinstance(item, ArrayValue) for item in value):
            return tuple([self.watched(item, (*index, const(k))) for k, item in enumerate(value)])
        if not self.tr.probing:
            self._read(index)
        return value

    def _read(self, index: tuple[Expr, ...]) -> None:
        mentioned = frozenset().union(*[i.variables() for i in index])
        repeated = self.tr.scope.repeating - self.around - mentioned
        if repeated or index in self.seen:
            again = f"for every {min(v.name for v in repeated)}" if repeated else "by several readers"
            raise self.tr.rejected(self.term, f"a map without a level is computed again {again}",
                                   "write it to memory first (to[..] with a level), or say map[inline]")  # fmt: skip
        self.seen.add(index)


@reads("generate")
def _generate(tr: Translator, t: Term, env: Environment) -> Readable:
    body = t.args[0].args[0]
    return view(t, lambda i: tr.evaluated(body, (i, *env)))


# ---- choices between readables -------------------------------------------------------------------------------------


def where(tr: Translator, conditions: ir.Guard, read: Callable[[], Readable]) -> Readable:
    """What `read` gives, for use where the conditions hold: the statements that it needs run only there."""
    with tr.collected() as block:
        value = read()
    guard = conjunction((), conditions)
    if guard is not None:
        for statement in block:
            tr.emit(under(statement, guard))
    return value


def _materialised_choice(
    tr: Translator, type_: Index, guard: ir.Guard, then: Expr, otherwise: Expr, unless: ir.Guard = ()
) -> Expr:
    """An index that depends on a condition: in private memory, because an index formula has no choice.

    `unless` holds wherever the guard does not; without it the other index can be evaluated anywhere.
    """
    scalar = index_scalar(type_.size)
    stored = tr.materialised(guard_loads(index_value(otherwise, scalar), unless), unless)
    tr.emit(ir.Store(stored.buffer, stored.index, guard_loads(index_value(then, scalar), guard), guard))
    return loaded(stored.buffer, stored.index, 0, type_.size - 1)


def guarded_readable(tr: Translator, type_: Type, value: Readable, conditions: ir.Guard, fill: Readable) -> Readable:
    """`value` where the conditions hold, else `fill`."""
    if isinstance(value, ArrayValue):
        assert isinstance(fill, ArrayValue)
        element, other = value.type.element, fill

        def at(i: Expr) -> Readable:
            return guarded_readable(tr, element, where(tr, conditions, lambda: value.at(i)), conditions, other.at(i))

        return ArrayValue(value.type, at, value.work)
    if isinstance(value, tuple):
        assert isinstance(fill, tuple) and isinstance(type_, Tuple)
        return tuple(
            [guarded_readable(tr, s, v, conditions, f) for s, v, f in zip(type_.items, value, fill, strict=True)]
        )
    if isinstance(value, Expr):
        assert isinstance(fill, Expr) and isinstance(type_, Index)
        needed = conjunction((), conditions)
        if needed is None:
            return fill
        return _materialised_choice(tr, type_, needed, value, fill) if needed else value
    assert not isinstance(fill, (Expr, ArrayValue, tuple))
    return guarded(value, conditions, fill)


def choose(tr: Translator, type_: Type, conditions: ir.Guard, then: Readable, otherwise: Readable) -> Readable:
    """`then` where the one condition holds, else `otherwise`, each read only where it is chosen."""
    unless = (-conditions[0] - 1,)
    needed = conjunction((), conditions)
    if needed is None:
        return otherwise
    if not needed:
        return then
    if isinstance(then, ArrayValue):
        assert isinstance(otherwise, ArrayValue)
        element, other = then.type.element, otherwise

        def at(i: Expr) -> Readable:
            here = where(tr, conditions, lambda: then.at(i))
            return choose(tr, element, conditions, here, where(tr, unless, lambda: other.at(i)))

        return ArrayValue(then.type, at, then.work or other.work)
    if isinstance(then, tuple):
        assert isinstance(otherwise, tuple) and isinstance(type_, Tuple)
        return tuple([choose(tr, s, conditions, a, b) for s, a, b in zip(type_.items, then, otherwise, strict=True)])
    if isinstance(then, Expr):
        assert isinstance(otherwise, Expr) and isinstance(type_, Index)
        return _materialised_choice(tr, type_, needed, then, otherwise, unless)
    assert not isinstance(otherwise, (Expr, ArrayValue, tuple))
    return guarded(then, needed, guard_loads(otherwise, unless))
