"""Which integers hold the element numbers of a program: decided from ranges, without running or allocating anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lithify.arith import Expr, const, proves
from lithify.kernel import ir
from lithify.kernel.evaluator.reports import first_line
from lithify.kernel.walk import accesses, index_accesses, statements
from lithify.lang.errors import EvaluationError


def index_bits(program: ir.Program, sizes: Mapping[str, int] | None = None) -> int:
    """32 where every element number of every access fits into a signed 32-bit integer, else 64."""
    return 64 if _first_beyond(program, 32, sizes or {}) is not None else 32


def check_index_width(program: ir.Program, bits: int, sizes: Mapping[str, int] | None = None) -> None:
    """Raise EvaluationError where an element number can exceed a signed integer of `bits` bits.

    The number of an element is its row-major position. The ranges of the index variables decide; a symbolic size that
    is not in `sizes` has no upper bound.
    """
    found = _first_beyond(program, bits, sizes or {})
    if found is not None:
        kernel, statement, buffer, linear = found
        raise EvaluationError(
            f"{bits}-bit indices overflow: element numbers of {buffer.name} reach {_bound(linear)}",
            where=f"in {kernel.name}: {first_line(statement)}",
            hint=f"use 64-bit indices; {bits} bits hold numbers up to 2^{bits - 1} - 1",
        )


def _bound(linear: Expr) -> str:
    return "any number" if linear.hi == float("inf") else str(int(linear.hi))


Found = tuple[ir.Kernel, ir.Statement, ir.Buffer, Expr]


def _first_beyond(program: ir.Program, bits: int, sizes: Mapping[str, int]) -> Found | None:
    limit = 2 ** (bits - 1) - 1
    facts = [f for v in program.sizes if v.name in sizes for f in (v.expr - sizes[v.name], sizes[v.name] - v.expr)]
    for kernel in program.kernels:
        for statement in statements(kernel.body):
            for buffer, index in _touched(statement):
                linear = _linear(buffer, index)
                above = linear.hi > limit and not proves(limit - linear, facts)
                below = linear.lo < -limit - 1 and not proves(linear + limit + 1, facts)
                if above or below:
                    return kernel, statement, buffer, linear
    return None


def _touched(statement: ir.Statement) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    match statement:
        case ir.Store(buffer, index, value, guard) | ir.AtomicUpdate(_, buffer, index, value, guard):
            yield buffer, index
            yield from accesses(value)
            yield from index_accesses((*index, *guard))
        case ir.If(guard, _, _):
            yield from index_accesses(guard)


def _linear(buffer: ir.Buffer, index: ir.Index) -> Expr:
    linear = const(0)
    for size, i in zip(buffer.shape, index, strict=True):
        linear = linear * size + i
    return linear
