"""What a kernel computes before its loops over CPU threads, and those read, must be where all threads can read it.

A private scalar is copied to memory of the call in front of the loop; a private array becomes memory of the call.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.kernel import ir
from lithify.kernel.walk import Renaming, blocks_of, read_in, reads_of, with_blocks
from lithify.lang.levels import HEAP, LevelKind


def share_with_threads(program: ir.Program) -> ir.Program:
    """The program with private memory that crosses into a loop over threads on the heap."""
    temporaries = list(program.temporaries)
    kernels = tuple([_kernel(kernel, temporaries) for kernel in program.kernels])
    return replace(program, kernels=kernels, temporaries=tuple(temporaries))


def _kernel(kernel: ir.Kernel, temporaries: list[ir.Buffer]) -> ir.Kernel:
    inside: set[ir.Buffer] = set()
    written_inside: set[ir.Buffer] = set()
    outside: set[ir.Buffer] = set()
    _collect(kernel.body, False, inside, written_inside, outside)
    crossing = [b for b in kernel.scratch if b.memory.name in ("private", "thread") and b in inside and b in outside]
    if not crossing:
        return kernel
    copies: dict[ir.Buffer, ir.Buffer] = {}
    moved: dict[ir.Buffer, ir.Buffer] = {}
    for buffer in crossing:
        shared = replace(buffer, name=f"{buffer.name}_shared", memory=HEAP, role="temporary")
        temporaries.append(shared)
        if buffer.shape or buffer in written_inside:
            moved[buffer] = shared
        else:
            copies[buffer] = shared
    body = Renaming(moved).block(kernel.body)
    if copies:
        body = _with_copies(body, copies)
    scratch = tuple([b for b in kernel.scratch if b not in moved])
    return replace(kernel, body=body, scratch=scratch)


def _is_threads(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.Loop) and statement.level.kind is LevelKind.THREADS


def _collect(
    block: ir.Block, within: bool, inside: set[ir.Buffer], written: set[ir.Buffer], outside: set[ir.Buffer]
) -> None:
    for statement in block:
        touched = inside if within else outside
        touched.update(buffer for buffer, _ in reads_of(statement))
        if isinstance(statement, (ir.Store, ir.AtomicUpdate)):
            touched.add(statement.buffer)
            if within:
                written.add(statement.buffer)
        for inner in blocks_of(statement):
            _collect(inner, within or _is_threads(statement), inside, written, outside)


def _with_copies(block: ir.Block, copies: dict[ir.Buffer, ir.Buffer]) -> ir.Block:
    result: list[ir.Statement] = []
    for statement in block:
        if _is_threads(statement):
            read = read_in((statement,))
            used = {buffer: shared for buffer, shared in copies.items() if buffer in read}
            result += [ir.Store(shared, (), ir.Load(buffer, ())) for buffer, shared in used.items()]
            result += Renaming(used).block((statement,))
        else:
            result.append(with_blocks(statement, lambda inner: _with_copies(inner, copies)))
    return tuple(result)
