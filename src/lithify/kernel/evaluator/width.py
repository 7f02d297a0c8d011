"""Which integers hold the element numbers of a program: decided from ranges, without running or allocating anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from lithify.arith import Atom, Expr, Floor, Loaded, Min, Variable
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
        kernel, statement, buffer, extreme = found
        raise EvaluationError(
            f"{bits}-bit indices overflow: element numbers of {buffer.name} reach {_bound(extreme)}",
            where=f"in {kernel.name}: {first_line(statement)}",
            hint=f"use 64-bit indices; {bits} bits hold numbers up to 2^{bits - 1} - 1",
        )


def _bound(high: float) -> str:
    return "any number" if high == inf else str(int(high))


Found = tuple[ir.Kernel, ir.Statement, ir.Buffer, float]


def _first_beyond(program: ir.Program, bits: int, sizes: Mapping[str, int]) -> Found | None:
    limit = 2 ** (bits - 1) - 1
    known: dict[Atom, Range] = {v: (sizes[v.name], sizes[v.name]) for v in program.sizes if v.name in sizes}
    for kernel in program.kernels:
        for statement in statements(kernel.body):
            for buffer, index in _touched(statement):
                low, high = _range(buffer.position(index), known)
                if high > limit or low < -limit - 1:
                    return kernel, statement, buffer, high if high > limit else low
    return None


Range = tuple[float, float]


def _range(e: Expr, known: dict[Atom, Range]) -> Range:
    """Bounds of a formula: its own, or those of interval arithmetic over what is known of the sizes."""
    if not known:
        return e.lo, e.hi
    low = high = float(e.offset)
    for monomial, coefficient in e.terms:
        part: Range = (coefficient, coefficient)
        for atom in monomial:
            part = _product(part, _atom_range(atom, known))
        low, high = low + part[0], high + part[1]
    return max(low, e.lo), min(high, e.hi)


def _product(a: Range, b: Range) -> Range:
    corners = [x * y if x and y else 0.0 for x in a for y in b]  # 0 times infinity is 0
    return min(corners), max(corners)


def _atom_range(atom: Atom, known: dict[Atom, Range]) -> Range:
    found = known.get(atom)
    if found is not None:
        return found
    low, high = atom.lo, atom.hi
    if isinstance(atom, Variable | Loaded):
        if atom.last is not None:
            high = min(high, _range(atom.last, known)[1])
    elif isinstance(atom, Floor):
        (a, b), (c, d) = _range(atom.numerator, known), _range(atom.divisor, known)
        low, high = max(low, a / (d if a >= 0 else c) - 1), min(high, b / (c if b >= 0 else d))
    elif isinstance(atom, Min):
        (a, b), (c, d) = _range(atom.left, known), _range(atom.right, known)
        low, high = max(low, min(a, c)), min(high, b, d)
    known[atom] = (low, high)
    return low, high


def _touched(statement: ir.Statement) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    match statement:
        case ir.Store(buffer, index, value, guard) | ir.AtomicUpdate(_, buffer, index, value, guard):
            yield buffer, index
            yield from accesses(value)
            yield from index_accesses((*index, *guard))
        case ir.If(guard, _, _):
            yield from index_accesses(guard)
        case ir.LastGroup(buffer, index, _, _):
            yield buffer, index
