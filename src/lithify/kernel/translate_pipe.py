"""`pipe`: a reduction whose next tiles are fetched while the present one is used.

`slots` buffers are taken in turn. The first `slots - 1` tiles are fetched before the loop; in step k tile k must have
landed and everybody must be done with tile k - 1, then tile k + slots - 1 is fetched over it and tile k is used. Copies
are asynchronous where the device can do that. Where it cannot, and they are straight code, they are loaded into
registers before tile k is used and stored after it. Barriers between plain copies are inserted by the pass that inserts
all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lithify.arith import Expr, const
from lithify.kernel import ir
from lithify.kernel.builder import Translator, reads, writes
from lithify.kernel.hardware import within_one_item
from lithify.kernel.loops import loop
from lithify.kernel.places import Acceptor, ArrayValue, Environment, Place, Readable, TupleAcceptor
from lithify.kernel.translate_read import array
from lithify.kernel.translate_reduce import in_place, initialise
from lithify.kernel.translate_write import contains_array, unwritten, write_scalars
from lithify.kernel.walk import reads_of, statements
from lithify.lang.levels import PRIVATE, SEQ, Memory
from lithify.lang.term import Term
from lithify.lang.types import Array, Function, Tuple

# What a copy may read that nobody changes while the present tile is used.
_BEFORE_THE_TILE = {"heap", "private"}


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
    initialise(tr, initial, accumulator, env)
    assert isinstance(elements.type, Array) and isinstance(load.type, Function)
    size = elements.type.size
    if size.constant == 0:
        return
    tiles = _Tiles(tr, t, array(tr, elements, env), size, env)
    for k in range(tiles.slots - 1):
        tiles.ahead(const(k))()
    body = function.args[0].args[0]

    def use(k: Expr) -> None:
        present = tiles.slot(k).read()
        in_place(tr, t, accumulator, lambda: tr.write(body, accumulator, (present, accumulator.read(), *env)))

    loop(tr, size, SEQ, t["name"], t, lambda k: tiles.around(k, use))


class _Tiles:
    """The tiles of a pipe: the slots that they lie in, and how they come there."""

    def __init__(self, tr: Translator, t: Term, elements: ArrayValue, size: Expr, env: Environment) -> None:
        self._tr, self._elements, self._size, self._env = tr, elements, size, env
        self.slots: int = t["slots"]
        self._tile, self.slot = _ring(tr, t, t.args[1].args[0], self.slots)
        self._asynchronous = tr.device is not None and "async" in tr.device.copy_kinds
        if self._asynchronous:
            with tr.probed():
                self._asynchronous = _only_copies(self._fetched(const(0)))

    def _fetched(self, k: Expr) -> ir.Block:
        """Statements that bring tile k to its slot."""
        with self._tr.collected() as block:
            self._tr.write(self._tile, self.slot(k), (self._elements.at(k), *self._env))
        return tuple(block)

    def ahead(self, k: Expr) -> Callable[[], None]:
        """Begin to fetch tile k, where there is one; the function does what is left when the present tile was used."""
        tr, there = self._tr, (self._size - 1 - k,)
        left: list[ir.Block] = []

        def fetch() -> None:
            left.append(self._begin(k))

        tr.conditional(there, fetch)
        if self._asynchronous:
            tr.emit(ir.Commit())
        return lambda: tr.conditional(there, lambda: tr.scope.block.extend(left[0] if left else ()))

    def _begin(self, k: Expr) -> ir.Block:
        """Fetch tile k, and give what is left to do when the present tile has been used."""
        tr, body = self._tr, self._fetched(k)
        if self._asynchronous:
            tr.emit(ir.Async(body))
            return ()
        parts = _loads_and_stores(tr, body) if self.slots > 1 and k.constant is None else None
        loads, stores = parts or (body, ())
        tr.scope.block.extend(loads)
        return stores

    def around(self, k: Expr, use: Callable[[Expr], None]) -> None:
        """Use tile k when it has landed, with the tile that comes slots - 1 later on its way meanwhile."""
        tr, waits = self._tr, self._asynchronous
        if self.slots == 1:
            if waits:
                tr.emit(ir.Barrier())
            self.ahead(k)
        if waits:
            tr.emit(ir.Wait(max(0, self.slots - 2)))
            tr.emit(ir.Barrier())
        finish = self.ahead(k + (self.slots - 1)) if self.slots > 1 else None
        use(k)
        if finish is not None:
            finish()


def _ring(tr: Translator, t: Term, tile: Term, slots: int) -> tuple[Term, Callable[[Expr], Acceptor]]:
    """The tile as it is to be written, and where: in turn to one of `slots` places for each of its components.

    A component that says `to[memory]` lies there; others in local memory of the group, or in private memory where one
    work-item (or CPU thread) works alone.
    """
    scope = tr.scope
    shared = scope.hardware.present and not within_one_item(scope.entered)
    components = tile.args if tile.kind == "tuple" else (tile,)
    written = [c.args[0] if c.kind == "to" else c for c in components]
    places = [
        tr.allocate(Array(slots, c.type), c["memory"] if c.kind == "to" else Memory("local") if shared else PRIVATE, t)
        for c in components
    ]

    def slot(k: Expr) -> Acceptor:
        turn = k % slots
        items = [
            Place(c.type, p.leaf_buffers, (*p.index, turn), (), p.suffix) for c, p in zip(written, places, strict=True)
        ]
        if tile.kind != "tuple":
            return items[0]
        assert isinstance(tile.type, Tuple)
        return TupleAcceptor(tile.type, tuple(items))

    return (tile.with_args(tuple(written)) if tile.kind == "tuple" else written[0]), slot


def _loads_and_stores(tr: Translator, block: ir.Block) -> tuple[ir.Block, ir.Block] | None:
    """A block of copies from the heap to local memory as loads into registers, and stores from there.

    So what a plain copy waits for can arrive while the present tile is used. None where the block is not straight code.
    """
    loads: list[ir.Statement] = []
    stores: list[ir.Statement] = []
    for statement in block:
        if isinstance(statement, (ir.If, ir.Lanes)):
            if isinstance(statement, ir.Lanes):
                tr.scope.lane = (statement.variable.expr, statement.width)
            inner = _loads_and_stores(tr, statement.body)
            if isinstance(statement, ir.Lanes):
                tr.scope.lane = None
            if inner is None or (isinstance(statement, ir.If) and statement.otherwise):
                return None
            loads.append(replace(statement, body=inner[0]))
            if inner[1]:
                stores.append(replace(statement, body=inner[1]))
        elif isinstance(statement, ir.Store) and {b.memory.name for b, _ in reads_of(statement)} <= _BEFORE_THE_TILE:
            if statement.buffer.memory.name == "private":
                loads.append(statement)
                continue
            with tr.collected() as early:
                kept = tr.materialised(statement.value, statement.guard)
            loads += early
            stores.append(replace(statement, value=kept))
        else:
            return None
    return tuple(loads), tuple(stores)


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
