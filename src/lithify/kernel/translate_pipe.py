"""`pipe`: a reduction whose next tiles are fetched while the present one is used.

`slots` buffers are taken in turn. The first `slots - 1` tiles are fetched before the loop; in step k tile k must have
landed and everybody must be done with tile k - 1, then tile k + slots - 1 is fetched over it and tile k is used. Copies
are asynchronous where the device can do that. Barriers between plain copies are inserted by the pass that inserts all.
"""

from __future__ import annotations

from lithify.arith import Expr, const
from lithify.kernel import ir
from lithify.kernel.builder import Translator, reads, writes
from lithify.kernel.hardware import within_one_item
from lithify.kernel.places import Acceptor, Environment, Place, Readable
from lithify.kernel.translate_read import array
from lithify.kernel.translate_reduce import in_place, initialise
from lithify.kernel.translate_write import contains_array, unwritten, write_scalars
from lithify.kernel.walk import statements
from lithify.lang.levels import PRIVATE, SEQ, Memory
from lithify.lang.term import Term
from lithify.lang.types import Array, Function


@writes("pipe")
def _write_pipe(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    if not contains_array(t.type):
        write_scalars(tr, t, acceptor, tr.readable(t, env))
    else:
        _pipe_into(tr, t, acceptor, env)


@reads("pipe")
def _read_pipe(tr: Translator, t: Term, env: Environment) -> Readable:
    if contains_array(t.type):
        raise unwritten(tr, t)
    accumulator = tr.allocate(t.type, PRIVATE, t)
    _pipe_into(tr, t, accumulator, env)
    return accumulator.read()


def _pipe_into(tr: Translator, t: Term, accumulator: Acceptor, env: Environment) -> None:
    function, load, initial, elements = t.args
    if t["roles"] is not None or t["lag"]:
        raise tr.rejected(t, "this device has no roles and no instructions that run on (lag)", "say pipe[n] alone")
    slots: int = t["slots"]
    initialise(tr, initial, accumulator, env)
    assert isinstance(elements.type, Array) and isinstance(load.type, Function)
    size = elements.type.size
    if size.constant == 0:
        return
    xs = array(tr, elements, env)
    ring = _allocate_ring(tr, t, load.type, slots)

    def slot(k: Expr) -> Place:
        turn = k % slots
        return Place(ring.type, ring.leaf_buffers, (*ring.index, turn), (), ring.suffix)

    def fetch(k: Expr) -> ir.Block:
        with tr.collected() as block:
            tr.write(load.args[0], slot(k), (xs.at(k), *env))
        return tuple(block)

    asynchronous = tr.device is not None and "async" in tr.device.copy_kinds
    if asynchronous:
        with tr.probed():
            asynchronous = _only_copies(fetch(const(0)))

    def start(k: Expr) -> None:
        body = fetch(k)
        tr.emit(ir.Async(body)) if asynchronous else tr.scope.block.extend(body)

    def ahead(k: Expr) -> None:
        tr.conditional((size - 1 - k,), lambda: start(k))
        if asynchronous:
            tr.emit(ir.Commit())

    for k in range(slots - 1):
        ahead(const(k))
    body = function.args[0].args[0]

    def step(k: Expr) -> None:
        if slots == 1:
            if asynchronous:
                tr.emit(ir.Barrier())
            ahead(k)
        if asynchronous:
            tr.emit(ir.Wait(max(0, slots - 2)))
            tr.emit(ir.Barrier())
        if slots > 1:
            ahead(k + (slots - 1))
        tile = slot(k).read()
        in_place(tr, t, accumulator, lambda: tr.write(body, accumulator, (tile, accumulator.read(), *env)))

    tr.loop(size, SEQ, t["name"], t, step)


def _allocate_ring(tr: Translator, t: Term, load: Function, slots: int) -> Place:
    """Tiles in local memory of the group, or in private memory where one work-item (or CPU thread) works alone."""
    scope = tr.scope
    shared = scope.hardware.present and not within_one_item(scope.entered)
    place = tr.allocate(Array(slots, load.result), Memory("local") if shared else PRIVATE, t)
    return Place(load.result, place.leaf_buffers, place.index, (), place.suffix)


def _only_copies(block: ir.Block) -> bool:
    """Does the block only copy from the heap to local memory?"""
    return all(
        isinstance(s, (ir.Loop, ir.If))
        or (
            isinstance(s, ir.Store)
            and s.buffer.memory.name == "local"
            and isinstance(s.value, ir.Load)
            and not s.value.guard
            and s.value.buffer.memory.name == "heap"
        )
        for s in statements(block)
    )
