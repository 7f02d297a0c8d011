"""`to[memory]`: where intermediate results are written, and where one kernel ends and the next begins."""

from __future__ import annotations

from dataclasses import replace

from lithify.arith import Expr
from lithify.kernel import ir
from lithify.kernel.builder import KernelScope, Translator, reads, writes
from lithify.kernel.exchange import missing_exchange
from lithify.kernel.hardware import plan_launch, within_one_item
from lithify.kernel.places import Acceptor, Environment, Place, Readable, ViewAcceptor
from lithify.kernel.translate_read import array
from lithify.kernel.walk import Substitution, reads_of, statements
from lithify.lang.build import const as const_term
from lithify.lang.build import map_, replicate
from lithify.lang.errors import Rejected
from lithify.lang.levels import PRIVATE, SEQ, VEC, Level
from lithify.lang.operators import Operator
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term
from lithify.lang.types import Array


@reads("to")
def _to(tr: Translator, t: Term, env: Environment) -> Readable:
    memory, value = t["memory"], t.args[0]
    if memory.name == "heap" and not tr.scope.depth:
        place = tr.allocate(t.type, memory, t)
        write_kernel(tr, t, value, place, env)
        return place.read()
    if memory.name == "heap" and tr.scope.hardware.present and not tr.scope.entered:
        raise tr.rejected(t, "to[heap] stands inside a kernel",
                          "bind it in front of the kernel: let x = to[heap] (..) in ..")  # fmt: skip
    place = tr.allocate(t.type, memory, t)
    tr.write(value, place, env)
    return place.read()


@reads("launch")
def _launch(tr: Translator, t: Term, env: Environment) -> Readable:
    raise tr.rejected(t, "launch roots a kernel that writes a result; here the value is read",
                      "put to[heap] around it")  # fmt: skip


def write_kernel(tr: Translator, root: Term, value: Term, acceptor: Acceptor, env: Environment) -> None:
    """Write `value` in a kernel of its own, which runs before the one under construction."""
    outer = tr.scope
    try:
        scope = tr.scope = KernelScope(plan_launch(root, tr.device))
    except Rejected as error:
        raise tr.rejected(root, error.message, error.hint) from None
    tr.write(value, acceptor, env)
    tr.scope = outer
    if scope.block:
        _check_crossing(tr, root, scope)
        kernel = _finished(tr, scope)
        missing = missing_exchange(kernel)
        if missing is not None:
            raise tr.rejected(root, missing, "go through local memory: to[local] (copy ..), or let each read its own")
        tr.kernels.append(kernel)


def _check_crossing(tr: Translator, root: Term, scope: KernelScope) -> None:
    """A kernel cannot read what another one keeps in registers or local memory."""
    for statement in statements(tuple(scope.block)):
        for buffer, _ in reads_of(statement):
            if tr.owner.get(buffer, scope) is not scope:
                raise tr.rejected(
                    root,
                    f"this kernel reads a value that another one computes and keeps in {buffer.memory} memory",
                    "let that be evaluated to the heap: let s = to[heap] (..) in ..",
                )


def _finished(tr: Translator, scope: KernelScope) -> ir.Kernel:
    body = tuple(scope.block)
    hardware = scope.hardware
    narrow = {
        next(iter(alias.variables())): hardware.index[level]
        for (level, _), alias in scope.aliases.items()
        if alias.constant is None
    }
    if narrow:
        body = Substitution(narrow).block(body)
    name = tr.name if not tr.kernels else f"{tr.name}_{len(tr.kernels)}"
    return ir.Kernel(name, body, hardware.grid, hardware.group, hardware.variables, tuple(scope.scratch))


@writes("scatter")
def _scatter(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    mode = t["mode"]
    ids = array(tr, t.args[0], env)
    elements = t.args[1].type
    assert isinstance(elements, Array)

    def element(i: Expr) -> Acceptor:
        index = ids.at(i)
        assert isinstance(index, Expr)
        return acceptor.at(index)

    if mode == "permutation":
        tr.write(t.args[1], ViewAcceptor(elements, element, (acceptor,)), env)
        return
    _initialise_scatter(tr, t, mode, acceptor)

    def atomic(i: Expr) -> Acceptor:
        place = element(i)
        if not isinstance(place, Place):
            raise tr.rejected(t, "an atomic scatter updates scalars in memory")
        if place.atomic is not None:
            raise tr.rejected(t, "what is still being updated cannot update something else",
                              "let it be evaluated to memory first: map[..] id (to[..] (..))")  # fmt: skip
        return replace(place, atomic=mode)

    tr.write(t.args[1], ViewAcceptor(elements, atomic, (acceptor,)), env)


def _initialise_scatter(tr: Translator, t: Term, operator: Operator, acceptor: Acceptor) -> None:
    """Every element starts as the operator's neutral element: in a kernel of its own in front of a whole kernel, where
    it does not lie in this one's memory."""
    assert isinstance(t.type, Array) and isinstance(t.type.element, Scalar)
    if not (operator.commutative and operator.associative and operator.neutral is not None):
        raise tr.rejected(t, f"{operator.name} cannot combine in any order: it must be associative and commutative, "
                             "with a neutral element")  # fmt: skip
    scope, scalar = tr.scope, t.type.element
    if scope.hardware.present:
        own = all(buffer.memory == PRIVATE for buffer in acceptor.buffers())
        alone = own or within_one_item(scope.entered) or VEC in scope.entered
        level = SEQ if alone else Level("item") if scope.depth else Level("global", 0)
    else:
        level = SEQ
    neutral = const_term(operator.neutral(scalar), scalar)
    initial = map_(lambda _: neutral, replicate(t.type.size, neutral), level)
    if scope.depth or any(buffer in tr.owner for buffer in acceptor.buffers()):
        tr.write(initial, acceptor, ())
    else:
        write_kernel(tr, initial, initial, acceptor, ())
