"""From a lowered program to kernels, by two mutually recursive functions over the term.

`readable(e)` appends statements and returns something that can be indexed; `write(e, acceptor)` writes e (Atkey et al.,
"Strategy-preserving compilation for parallel functional code", 2017). Layouts change the readable or the acceptor. The
translation decides nothing: the loop nest *is* the lowered program, and what does not say how it runs is rejected.

The functions of the patterns are in `translate_read` (values), `translate_views` (layouts), `translate_write` (maps,
and layouts in result position), `translate_reduce` and `translate_pipe` (accumulation), `translate_memory` (to[..],
scatter, kernels), `translate_instruction` (rows of the instruction tables); importing these declares them to `builder`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lithify.arith import Expr, Variable
from lithify.kernel import (
    ir,
    translate_instruction,
    translate_memory,
    translate_pipe,
    translate_read,
    translate_reduce,
    translate_views,
    translate_write,
)
from lithify.kernel.builder import Translator
from lithify.kernel.passes import Pass, pipeline_for, run
from lithify.kernel.places import Place, index_bounds, leaves
from lithify.lang.errors import Rejected
from lithify.lang.levels import HEAP
from lithify.lang.reading import permutations_of
from lithify.lang.term import Term
from lithify.lang.types import Tuple, Type, sizes_in
from lithify.machine import DeviceModel

DECLARING = (
    translate_instruction, translate_memory, translate_pipe, translate_read, translate_reduce, translate_views,
    translate_write,
)  # fmt: skip


def translate(
    term: Term,
    parameters: Sequence[Term] | Sequence[tuple[str, Type]],
    *,
    name: str = "kernel",
    device: DeviceModel | None = None,
    passes: tuple[Pass, ...] | None = None,
) -> ir.Program:
    """The kernel program of a closed lowered term.

    `parameters` are the inputs in the order of a call (`param` terms or names with types). `device` is a device model,
    asked for its levels, warp width, limits and kinds of copy; without one every level is allowed. `passes` are run
    over the result: the device's pipeline if none are given. Raises Rejected, naming the place and the remedy, when the
    term does not say everything or says something that no kernel can do.
    """
    typed = [(p["name"], p.type) if isinstance(p, Term) else p for p in parameters]
    tr = Translator(name, device)
    inputs: list[ir.Buffer] = []
    permutations = permutations_of(term)
    for parameter, type_ in typed:
        place = _parameter(tr, parameter, type_, parameter in permutations)
        inputs += place.leaf_buffers
        tr.inputs[parameter] = place.read()
    result = _result(tr, term.type)
    translate_memory.write_kernel(tr, term, term, result, ())
    temporaries = tuple(tr.temporaries)
    program = ir.Program(
        name, tuple(inputs), result.leaf_buffers, temporaries, tuple(tr.kernels), _sizes(term.type, typed)
    )
    program = run(program, pipeline_for(device) if passes is None else passes)
    if device is not None:
        _check_local_memory(program, device)
    return program


def _check_local_memory(program: ir.Program, device: DeviceModel) -> None:
    """Refuse a kernel whose group needs more local memory than there is."""
    for kernel in program.kernels:
        local = [b for b in kernel.scratch if b.memory.name == "local"]
        if not local:
            continue
        needed = sum(_bytes(b) for b in local)
        available = device.memory("local").bytes
        if available is not None and needed > available:
            parts = ", ".join(f"{b.name} {_bytes(b)}" for b in local)
            raise Rejected(
                f"a group of {kernel.name} needs {needed} bytes of local memory; {device} has {available}",
                where=f"in bytes: {parts}",
                hint="make the tiles smaller, or keep fewer of them in flight",
            )


def _bytes(buffer: ir.Buffer) -> int:
    count = 1
    for size in buffer.shape:
        count *= size.constant or 1
    return count * buffer.scalar.bytes


def _names(base: str, count: int) -> list[str]:
    return [base] if count == 1 else [f"{base}_{k}" for k in range(count)]


def _parameter(tr: Translator, name: str, type_: Type, distinct: bool) -> Place:
    stored = leaves(type_)
    names = [tr.fresh_name(n) for n in _names(name, len(stored))]
    buffers = [
        ir.Buffer(each, scalar, shape, HEAP, "input" if shape else "scalar", scalar.bytes, below, distinct)
        for each, (shape, scalar), below in zip(names, stored, index_bounds(type_), strict=True)
    ]
    return Place(type_, tuple(buffers))


def _result(tr: Translator, type_: Type) -> Place:
    stored = leaves(type_)
    several = isinstance(type_, Tuple) or len(stored) > 1
    names = [tr.fresh_name(f"out_{k}" if several else "out") for k in range(len(stored))]
    buffers = [
        ir.Buffer(each, scalar, shape, HEAP, "output", scalar.bytes)
        for each, (shape, scalar) in zip(names, stored, strict=True)
    ]
    return Place(type_, tuple(buffers))


def _sizes(result: Type, parameters: Sequence[tuple[str, Type]]) -> tuple[Variable, ...]:
    """The symbolic sizes, in the order in which the parameters mention them."""
    found: dict[Variable, None] = {}
    formulas: list[Expr] = [size for _, type_ in parameters for size in sizes_in(type_)]
    for formula in [*formulas, *sizes_in(result)]:
        found.update(dict.fromkeys(sorted(formula.variables(), key=lambda v: v.name)))
    return tuple(found)
