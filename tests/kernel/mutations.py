"""Systematic mistakes: operators that turn a program in the kernel language into programs with one thing wrong.

A mutation is data: a name, and what it makes of one statement (each result is one mutant). They apply to any program,
written by hand or translated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lithify.arith import const, minimum
from lithify.kernel import ir
from lithify.kernel.walk import Substitution, blocks_of
from lithify.lang.levels import PAR, SEQ

Change = Callable[[ir.Statement], Iterator[ir.Block]]


@dataclass(frozen=True)
class Mutation:
    """What can go wrong at one statement, or (`whole`) in the body of a kernel."""

    name: str
    change: Change | None = None
    whole: Callable[[ir.Block], Iterator[ir.Block]] | None = None


@dataclass(frozen=True)
class Mutant:
    """A program with one mistake, and the statement that was changed (None: several)."""

    mutation: str
    place: ir.Statement | None
    program: ir.Program


def mutants(program: ir.Program, mutation: Mutation) -> Iterator[Mutant]:
    """Every program that the mutation makes of this one."""
    for k, kernel in enumerate(program.kernels):
        changed: list[tuple[ir.Statement | None, ir.Block]] = []
        if mutation.change is not None:
            changed += _changed(kernel.body, mutation.change)
        if mutation.whole is not None:
            changed += [(None, body) for body in mutation.whole(kernel.body)]
        for place, body in changed:
            kernels = (*program.kernels[:k], replace(kernel, body=body), *program.kernels[k + 1 :])
            yield Mutant(mutation.name, place, replace(program, kernels=kernels))


def _changed(block: ir.Block, change: Change) -> Iterator[tuple[ir.Statement, ir.Block]]:
    for position, statement in enumerate(block):
        before, after = block[:position], block[position + 1 :]
        for new in change(statement):
            yield statement, (*before, *new, *after)
        for which, inner in enumerate(blocks_of(statement)):
            for place, changed in _changed(inner, change):
                yield place, (*before, _with_block(statement, which, changed), *after)


def _with_block(statement: ir.Statement, which: int, block: ir.Block) -> ir.Statement:
    if isinstance(statement, ir.If) and which == 1:
        return replace(statement, otherwise=block)
    assert isinstance(statement, ir.If | ir.Loop | ir.Lanes | ir.Async | ir.LastGroup)
    return replace(statement, body=block)


# ---- statements that are missing -----------------------------------------------------------------------------------


def without(*kinds: type) -> Change:
    def change(statement: ir.Statement) -> Iterator[ir.Block]:
        if isinstance(statement, kinds):
            yield ()

    return change


def initialisation(statement: ir.Statement) -> Iterator[ir.Block]:
    """Stores of constants."""
    if isinstance(statement, ir.Store) and isinstance(statement.value, ir.Constant):
        yield ()


def weaker_wait(statement: ir.Statement) -> Iterator[ir.Block]:
    if isinstance(statement, ir.Wait):
        yield (ir.Wait(statement.pending + 1),)


def synchronous(statement: ir.Statement) -> Iterator[ir.Block]:
    """Not atomic any more."""
    if isinstance(statement, ir.AtomicUpdate):
        old = ir.Load(statement.buffer, statement.index)
        value = ir.Apply(statement.operator, (old, statement.value), statement.buffer.scalar)
        yield (ir.Store(statement.buffer, statement.index, value, statement.guard),)


def parallel(statement: ir.Statement) -> Iterator[ir.Block]:
    """A loop whose order matters, over threads."""
    if isinstance(statement, ir.Loop) and statement.level is SEQ:
        yield (replace(statement, level=PAR),)


def by_all(statement: ir.Statement) -> Iterator[ir.Block]:
    """What the last group does is done by every one, when it gets there."""
    if isinstance(statement, ir.LastGroup):
        yield (ir.Barrier("group", ("local", "heap")), *statement.body)


def expecting(more: int) -> Change:
    """The last group is looked for too early or too late."""

    def change(statement: ir.Statement) -> Iterator[ir.Block]:
        if isinstance(statement, ir.LastGroup):
            yield (replace(statement, groups=statement.groups + more),)

    return change


def elsewhere(statement: ir.Statement) -> Iterator[ir.Block]:
    """All groups count themselves at the first counter."""
    if isinstance(statement, ir.LastGroup) and statement.index[0].constant is None:
        yield (replace(statement, index=(const(0),)),)


def read_before(statement: ir.Statement) -> Iterator[ir.Block]:
    """What the last group does first with the others' results, it does before it knows that it is the last."""
    if isinstance(statement, ir.LastGroup):
        first, *rest = statement.body
        yield first, replace(statement, body=tuple(rest))


# ---- guards --------------------------------------------------------------------------------------------------------


def guards(edit: Callable[[ir.Guard], Iterator[ir.Guard]]) -> Change:
    """Change the guards of conditionals, stores and loads."""

    def change(statement: ir.Statement) -> Iterator[ir.Block]:
        if isinstance(statement, ir.If | ir.Store | ir.AtomicUpdate):
            for guard in edit(statement.guard):
                yield (replace(statement, guard=guard),)
        if isinstance(statement, ir.Store | ir.AtomicUpdate):
            for value in _edit_loads(statement.value, lambda load: (replace(load, guard=g) for g in edit(load.guard))):
                yield (replace(statement, value=value),)

    return change


def dropped(guard: ir.Guard) -> Iterator[ir.Guard]:
    for k in range(len(guard)):
        yield guard[:k] + guard[k + 1 :]


def off_by(amount: int) -> Callable[[ir.Guard], Iterator[ir.Guard]]:
    def edit(guard: ir.Guard) -> Iterator[ir.Guard]:
        for k, condition in enumerate(guard):
            yield (*guard[:k], condition + amount, *guard[k + 1 :])

    return edit


# ---- indices -------------------------------------------------------------------------------------------------------


def indices(edit: Callable[[ir.Buffer, ir.Index], Iterator[ir.Index]]) -> Change:
    """Change the indices of stores and loads."""

    def change(statement: ir.Statement) -> Iterator[ir.Block]:
        if isinstance(statement, ir.Store | ir.AtomicUpdate):
            for index in edit(statement.buffer, statement.index):
                yield (replace(statement, index=index),)
            for value in _edit_loads(
                statement.value, lambda load: (replace(load, index=i) for i in edit(load.buffer, load.index))
            ):
                yield (replace(statement, value=value),)

    return change


def shifted(amount: int) -> Callable[[ir.Buffer, ir.Index], Iterator[ir.Index]]:
    def edit(_buffer: ir.Buffer, index: ir.Index) -> Iterator[ir.Index]:
        for k, i in enumerate(index):
            yield (*index[:k], i + amount, *index[k + 1 :])

    return edit


def fewer_slots(body: ir.Block) -> Iterator[ir.Block]:
    """A ring one slot too small: its last slot is the one before. Rings are local, and all work-items use one slot."""
    rings = {b for b, _ in _accesses(body) if b.memory.name == "local" and len(b.shape) > 1}
    for ring in rings:
        slots = ring.shape[0].constant
        if slots is not None and slots > 1:
            yield _block_with_index(body, ring, lambda i, n=slots: (minimum(i[0], n - 2), *i[1:]))


def further_ahead(statement: ir.Statement) -> Iterator[ir.Block]:
    """A fetch of the tile after the one that should be fetched, into its slot."""
    if isinstance(statement, ir.Loop):
        ahead = Substitution({statement.variable: statement.variable.expr + 1})

        def later(inner: ir.Statement) -> Iterator[ir.Block]:
            guarded = isinstance(inner, ir.If) and any(isinstance(s, ir.Async) for s in inner.body)
            if guarded or isinstance(inner, ir.Async):
                yield ahead.statement(inner)

        for _, body in _changed(statement.body, later):
            yield (replace(statement, body=body),)


def longer(amount: int) -> Change:
    """More or fewer iterations."""

    def change(statement: ir.Statement) -> Iterator[ir.Block]:
        if isinstance(statement, ir.Loop):
            yield (replace(statement, extent=statement.extent + amount),)

    return change


# ---- walking -------------------------------------------------------------------------------------------------------


def _edit_loads(value: ir.Value, edit: Callable[[ir.Load], Iterator[ir.Load]]) -> Iterator[ir.Value]:
    """The value with one of its loads changed, in every way."""
    match value:
        case ir.Load():
            yield from edit(value)
        case ir.Apply(_, operands, _):
            for k, operand in enumerate(operands):
                for new in _edit_loads(operand, edit):
                    yield replace(value, operands=(*operands[:k], new, *operands[k + 1 :]))
        case ir.Choose(_, then, otherwise):
            for new in _edit_loads(then, edit):
                yield replace(value, then=new)
            for new in _edit_loads(otherwise, edit):
                yield replace(value, otherwise=new)


def _accesses(block: ir.Block) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    for statement in block:
        if isinstance(statement, ir.Store | ir.AtomicUpdate):
            yield statement.buffer, statement.index
        for inner in blocks_of(statement):
            yield from _accesses(inner)


def _block_with_index(block: ir.Block, of: ir.Buffer, edit: Callable[[ir.Index], ir.Index]) -> ir.Block:
    return tuple(_with_index(s, of, edit) for s in block)


def _with_index(statement: ir.Statement, of: ir.Buffer, edit: Callable[[ir.Index], ir.Index]) -> ir.Statement:
    """The statement with every index of one buffer changed."""

    def value(v: ir.Value) -> ir.Value:
        match v:
            case ir.Load():
                return replace(v, index=edit(v.index)) if v.buffer is of else v
            case ir.Apply():
                return replace(v, operands=tuple(map(value, v.operands)))
            case ir.Choose():
                return replace(v, then=value(v.then), otherwise=value(v.otherwise))
        return v

    def block(b: ir.Block) -> ir.Block:
        return _block_with_index(b, of, edit)

    match statement:
        case ir.Store() | ir.AtomicUpdate():
            index = edit(statement.index) if statement.buffer is of else statement.index
            return replace(statement, index=index, value=value(statement.value))
        case ir.If():
            return replace(statement, body=block(statement.body), otherwise=block(statement.otherwise))
        case ir.Loop() | ir.Lanes() | ir.Async() | ir.LastGroup():
            return replace(statement, body=block(statement.body))
    return statement


MUTATIONS: tuple[Mutation, ...] = (
    Mutation("no barrier", without(ir.Barrier)),
    Mutation("no wait", without(ir.Wait)),
    Mutation("weaker wait", weaker_wait),
    Mutation("no commit", without(ir.Commit)),
    Mutation("no initialisation", initialisation),
    Mutation("no store", without(ir.Store)),
    Mutation("no fetch", without(ir.Async)),
    Mutation("not atomic", synchronous),
    Mutation("loop over threads", parallel),
    Mutation("no guard", guards(dropped)),
    Mutation("guard too wide", guards(off_by(1))),
    Mutation("guard too narrow", guards(off_by(-1))),
    Mutation("index + 1", indices(shifted(1))),
    Mutation("index - 1", indices(shifted(-1))),
    Mutation("one slot too few", whole=fewer_slots),
    Mutation("fetch too far ahead", further_ahead),
    Mutation("an iteration more", longer(1)),
    Mutation("an iteration less", longer(-1)),
    Mutation("not only the last group", by_all),
    Mutation("a group too early", expecting(-1)),
    Mutation("a group too late", expecting(1)),
    Mutation("one counter for all", elsewhere),
    Mutation("read before", read_before),
)
