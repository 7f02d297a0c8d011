"""Arrays of a kernel whose length only a call knows, on devices whose kernels have none: memory of the call holds them.

Each group (of local memory) or work-item (of its own) has its part, by its place in the launch. Not in the pipeline:
targets that can give such arrays to their threads do that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lithify.arith import Variable
from lithify.kernel import ir
from lithify.kernel.walk import Renaming
from lithify.lang.levels import HEAP

_OF_ITEMS = ("private", "thread")
_OF_GROUPS = ("local",)


def arrays_of_the_call(program: ir.Program) -> ir.Program:
    """The program with local and private arrays of unknown length in heap memory."""
    temporaries = list(program.temporaries)
    kernels = tuple([_kernel(kernel, temporaries) for kernel in program.kernels])
    return program if kernels == program.kernels else replace(program, kernels=kernels, temporaries=tuple(temporaries))


def _kernel(kernel: ir.Kernel, temporaries: list[ir.Buffer]) -> ir.Kernel:
    groups = tuple([v for level, v in kernel.hardware.items() if level.name == "group"])
    prefixes: dict[ir.Buffer, tuple[Variable, ...]] = {}
    moved: dict[ir.Buffer, ir.Buffer] = {}
    for buffer in kernel.scratch:
        if all(size.constant is not None for size in buffer.shape):
            continue
        if buffer.memory.name in _OF_GROUPS:
            prefixes[buffer] = groups
        elif buffer.memory.name in _OF_ITEMS:
            prefixes[buffer] = tuple(kernel.hardware.values())
        else:
            continue
        shape = (*[v.extent for v in prefixes[buffer] if v.extent is not None], *buffer.shape)
        name = f"{kernel.name}_{buffer.name}"
        moved[buffer] = replace(buffer, name=name, shape=shape, memory=HEAP, role="temporary")
    if not moved:
        return kernel
    temporaries += moved.values()
    shared = any(buffer.memory.name in _OF_GROUPS for buffer in moved)
    body = _Moving(moved, prefixes, shared=shared).block(kernel.body)
    return replace(kernel, body=body, scratch=tuple([b for b in kernel.scratch if b not in moved]))


class _Moving(Renaming):
    """Buffers replaced by a part of larger ones; with `shared`, barriers are for what now lies on the heap, too."""

    def __init__(
        self,
        buffers: Mapping[ir.Buffer, ir.Buffer],
        prefixes: Mapping[ir.Buffer, tuple[Variable, ...]],
        *,
        shared: bool,
    ) -> None:
        super().__init__(buffers)
        self._prefixes, self._shared = prefixes, shared

    def index_of(self, buffer: ir.Buffer, index: ir.Index) -> ir.Index:
        prefix = tuple([variable.expr for variable in self._prefixes.get(buffer, ())])
        return (*prefix, *super().index_of(buffer, index))

    def statement(self, statement: ir.Statement) -> ir.Block:
        if isinstance(statement, ir.Barrier) and self._shared and "heap" not in statement.memory:
            return (replace(statement, memory=(*statement.memory, "heap")),)
        return super().statement(statement)
