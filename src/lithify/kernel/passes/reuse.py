"""Buffers of one memory that are never alive at the same time share storage.

Statements are numbered in the order of the text. A buffer is alive from the first statement that touches it to the
last; below the innermost loop that holds all of its accesses, an access inside a deeper loop counts as all of that
loop. (What is touched only inside a loop is made anew in every iteration: memory is allocated where the value is
written.) Local and thread memory is shared within a kernel, heap memory between kernels, counted in kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lithify.kernel import ir
from lithify.kernel.walk import Renaming, blocks_of, reads_of, statements
from lithify.lang.levels import LevelKind

_NEVER = 1 << 62
_SHARED_IN_KERNEL = ("local", "thread")


def reuse_memory(program: ir.Program) -> ir.Program:
    """The program with fewer and larger buffers."""
    kernels = [_kernel(kernel) for kernel in program.kernels]
    spans = _spans_over_kernels(program)
    merged = _merge(program.temporaries, spans)
    temporaries = _kept(program.temporaries, merged)
    kernels = [replace(k, body=Renaming(merged, linear=True).block(k.body)) if merged else k for k in kernels]
    return replace(program, kernels=tuple(kernels), temporaries=temporaries)


def _kernel(kernel: ir.Kernel) -> ir.Kernel:
    candidates = [b for b in kernel.scratch if b.memory.name in _SHARED_IN_KERNEL]
    if len(candidates) < 2:
        return kernel
    spans = _until_all_have_read(kernel, _spans(kernel.body, frozenset(candidates)))
    merged: dict[ir.Buffer, ir.Buffer] = {}
    for together in _by_threads(kernel.body, candidates):
        merged |= _merge(together, spans)
    if not merged:
        return kernel
    return replace(kernel, body=Renaming(merged, linear=True).block(kernel.body), scratch=_kept(kernel.scratch, merged))


@dataclass(frozen=True, slots=True)
class _Span:
    """First and last statement, inclusive."""

    first: int
    last: int

    def overlaps(self, other: _Span) -> bool:
        return self.first <= other.last and other.first <= self.last


def _touched(statement: ir.Statement) -> set[ir.Buffer]:
    found = {buffer for buffer, _ in reads_of(statement)}
    if isinstance(statement, (ir.Store, ir.AtomicUpdate)):
        found.add(statement.buffer)
    return found


def _spans(body: ir.Block, candidates: frozenset[ir.Buffer]) -> dict[ir.Buffer, _Span]:
    accesses: dict[ir.Buffer, list[tuple[int, tuple[_Span, ...]]]] = {}
    counter = 0

    def visit(block: ir.Block, around: tuple[_Span, ...]) -> None:
        nonlocal counter
        for statement in block:
            counter += 1
            number = counter
            for buffer in _touched(statement) & candidates:
                accesses.setdefault(buffer, []).append((number, around))
            inner = blocks_of(statement)
            if inner:
                length = sum(1 for _ in statements((statement,))) - 1
                repeated = isinstance(statement, ir.Loop)
                within = (*around, _Span(number, number + length)) if repeated else around
                for each in inner:
                    visit(each, within)

    visit(body, ())
    return {buffer: _span(found) for buffer, found in accesses.items()}


def _by_threads(body: ir.Block, buffers: list[ir.Buffer]) -> list[list[ir.Buffer]]:
    """Buffers by the loop over threads that they stand in: memory of a thread belongs to one such loop."""
    loops = [s for s in statements(body) if isinstance(s, ir.Loop) and s.level.kind is LevelKind.THREADS]
    touched = [{b for s in statements(loop.body) for b in _touched(s)} for loop in loops]
    groups: dict[tuple[bool, ...], list[ir.Buffer]] = {}
    for buffer in buffers:
        groups.setdefault(tuple([buffer in inside for inside in touched]), []).append(buffer)
    return list(groups.values())


def _until_all_have_read(kernel: ir.Kernel, spans: dict[ir.Buffer, _Span]) -> dict[ir.Buffer, _Span]:
    """Local buffers live on until a barrier that stands there anyway, so that sharing storage brings no new one.

    When another buffer is written after the last read of this one, and then read, there is a barrier between the two,
    and all items have passed it who read that other buffer. So buffers take turns, two by two.
    """
    local = {b: span for b, span in spans.items() if b.memory.name == "local"}
    first_reads: dict[ir.Buffer, int] = {}
    for number, statement in enumerate(statements(kernel.body), 1):
        for buffer, _ in reads_of(statement):
            first_reads.setdefault(buffer, number)
    result = dict(spans)
    for buffer, span in local.items():
        later = [first_reads[b] for b, other in local.items() if other.first >= span.last and b in first_reads]
        result[buffer] = _Span(span.first, max(span.last, min(later, default=_NEVER) - 1))
    return result


def _span(accesses: list[tuple[int, tuple[_Span, ...]]]) -> _Span:
    """From the first access to the last, in the loops that all of them share."""
    shared = 0
    loops = [around for _, around in accesses]
    while all(len(around) > shared for around in loops) and len({around[shared] for around in loops}) == 1:
        shared += 1
    ends = [around[shared] if len(around) > shared else _Span(number, number) for number, around in accesses]
    return _Span(min(e.first for e in ends), max(e.last for e in ends))


def _spans_over_kernels(program: ir.Program) -> dict[ir.Buffer, _Span]:
    found: dict[ir.Buffer, _Span] = {}
    for number, kernel in enumerate(program.kernels):
        for statement in statements(kernel.body):
            for buffer in _touched(statement):
                if buffer.role == "temporary":
                    span = found.get(buffer, _Span(number, number))
                    found[buffer] = _Span(span.first, number)
    return found


def _merge(buffers: Iterable[ir.Buffer], spans: dict[ir.Buffer, _Span]) -> dict[ir.Buffer, ir.Buffer]:
    """For each buffer that shares storage, the one-dimensional buffer that it lives in: first fit, largest first."""
    groups: list[list[ir.Buffer]] = []
    sized = [(b, b.count.constant) for b in buffers if b in spans and b.memory.slots == 1]
    for buffer, _ in sorted([s for s in sized if s[1]], key=lambda s: -(s[1] or 0) * s[0].scalar.bytes):
        for group in groups:
            fits = group[0].scalar is buffer.scalar and group[0].memory == buffer.memory
            if fits and not any(spans[buffer].overlaps(spans[other]) for other in group):
                group.append(buffer)
                break
        else:
            groups.append([buffer])
    merged: dict[ir.Buffer, ir.Buffer] = {}
    for group in groups:
        if len(group) > 1:
            storage = replace(group[0], shape=(group[0].count,))
            merged |= dict.fromkeys(group, storage)
    return merged


def _kept(buffers: tuple[ir.Buffer, ...], merged: dict[ir.Buffer, ir.Buffer]) -> tuple[ir.Buffer, ...]:
    return tuple(dict.fromkeys(merged.get(buffer, buffer) for buffer in buffers))
