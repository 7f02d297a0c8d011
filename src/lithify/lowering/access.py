"""How a kernel's loops walk through memory: the facts by which a strategy chooses what to vectorise and to spread.

The program is first lowered in the plainest way (every loop sequential, every loop named) and translated; the index
normal forms of its loads and stores then say, for each loop, how far apart in memory consecutive iterations are.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lithify.arith import ArithError, Expr, Loaded, Variable
from lithify.kernel import ir
from lithify.kernel.walk import parts


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store in the program text.

    `strides` maps the name of each enclosing loop to the distance in elements between consecutive iterations (None
    where data decides it), `borders` to the number of iterations at its two ends that meet padding; `times` is how
    often the access is executed. `places(name)` are the elements that short loops (over windows) reach in one iteration
    of the loop of that name, all others being in their middle; none where data decides it.
    """

    buffer: ir.Buffer
    is_store: bool
    strides: dict[str, int | None]
    borders: dict[str, tuple[int, int]]
    times: int
    places: Callable[[str], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Walk:
    """How one loop moves through memory: the accesses below it that are contiguous, invariant, or neither along it."""

    contiguous: int
    invariant: int
    strided: int

    @property
    def vectorises(self) -> bool:
        """Every access below is a vector access or a splat along this loop, and there is something to load or store."""
        return self.strided == 0 and self.contiguous > 0


@dataclass(frozen=True, slots=True)
class Reuse:
    """What consecutive iterations of a loop read in common: the elements that one reads, and those of them that the
    next one reads again. `reads` holds, for each buffer, the elements and how far the next iteration's are from them.
    """

    reads: tuple[tuple[frozenset[int], int], ...]

    @property
    def loads(self) -> int:
        """Elements that one iteration reads."""
        return sum(len(places) for places, _ in self.reads)

    @property
    def shared(self) -> int:
        """Those of them that the next iteration reads, too."""
        return sum(len(places & {p + step for p in places}) for places, step in self.reads)

    def loads_of(self, iterations: int) -> int:
        """Elements that so many consecutive iterations read together."""
        return iterations * self.loads - (iterations - 1) * self.shared

    def rows(self, iterations: int) -> int:
        """How many places far apart so many consecutive iterations read from at the same time."""
        return sum(_clusters({p + k * step for p in places for k in range(iterations)}) for places, step in self.reads)


def _clusters(places: set[int]) -> int:
    ordered = sorted(places)
    return sum(1 for a, b in itertools.pairwise([-_FAR_APART, *ordered]) if b - a >= _FAR_APART)


def accesses(program: ir.Program) -> list[Access]:
    """All accesses to arrays in memory (private memory and scalars cost nothing to walk through)."""
    found: list[Access] = []
    for kernel in program.kernels:
        _walk(kernel.body, (), found)
    return found


# A symbolic size, for probing; the widest border that is looked for.
_SIZE, _BORDER = 1024, 32
# Elements that are as far apart as this are in different rows; more elements of a window than this are not looked at.
_FAR_APART, _LARGEST_WINDOW = 64, 4_096

_Loops = tuple[tuple[Variable, str, int], ...]


def _walk(block: ir.Block, loops: _Loops, found: list[Access]) -> None:
    for statement in block:
        match statement:
            case ir.Loop(variable, extent, _, body, name):
                _walk(body, (*loops, (variable, name or "", extent.constant or 1)), found)
            case ir.Lanes(variable, width, body, name):
                _walk(body, (*loops, (variable, name or "", width)), found)
            case ir.If(_, body, otherwise):
                _walk(body, loops, found)
                _walk(otherwise, loops, found)
            case ir.Store(buffer, index, value, guard) | ir.AtomicUpdate(_, buffer, index, value, guard):
                _note(buffer, index, guard, True, loops, found)
                for load in loads(value):
                    _note(load.buffer, load.index, load.guard, False, loops, found)
            case ir.Async(body) | ir.Instruction(_, _, _, _, body):
                _walk(body, loops, found)
            case _:
                pass


def loads(value: ir.Value) -> Iterator[ir.Load]:
    """All loads in a value."""
    return (part for part in parts(value) if isinstance(part, ir.Load))


def _note(
    buffer: ir.Buffer, index: ir.Index, guard: ir.Guard, is_store: bool, loops: _Loops, found: list[Access]
) -> None:
    if buffer.role == "scalar" or buffer.memory.name in ("private", "reg"):
        return
    position = buffer.position(index)
    probe = _Probe(position, guard, loops)
    strides = {name: probe.stride(variable) for variable, name, _ in loops}
    borders = {name: probe.borders(variable, extent) for variable, name, extent in loops}
    variables = {name: variable for variable, name, _ in loops}
    times = prod(extent for _, _, extent in loops)
    found.append(Access(buffer, is_store, strides, borders, times, lambda name: probe.places(variables[name])))


def mentions_data(form: Expr) -> bool:
    """Does the value depend on an index that is loaded from a buffer?"""
    return any(
        isinstance(atom, Loaded) or any(map(mentions_data, atom.parts()))
        for monomial, _ in form.terms
        for atom in monomial
    )


class _Probe:
    """Evaluates an index around the middle of its loops and at their ends."""

    def __init__(self, position: Expr, guard: ir.Guard, loops: _Loops) -> None:
        self.position, self.guard = position, guard
        mentioned = position.variables().union(*[g.variables() for g in guard])
        self.loops = [(v, extent) for v, _, extent in loops if v in mentioned]
        own = {v for v, _ in self.loops}
        self.middle = dict.fromkeys(mentioned - own, _SIZE) | {v: extent // 2 for v, extent in self.loops}
        self.by_data = any(mentions_data(form) for form in (position, *guard))
        self.plain = not guard and all(position.coefficient(v) is not None for v in own)

    def stride(self, variable: Variable) -> int | None:
        """The step in memory around the middle of the loops, where no padding is met; None when data decides it."""
        exact = self.position.coefficient(variable)
        if exact is not None:
            return exact
        try:
            there = self.position.evaluate(self.middle | {variable: self.middle[variable] + 1})
            return int(there - self.position.evaluate(self.middle))
        except ArithError:  # an index that is loaded from a buffer
            return None

    def borders(self, variable: Variable, extent: int) -> tuple[int, int]:
        """How many iterations at either end do not continue the middle (padding is met there); (0, 0) if too many."""
        step = self.stride(variable)
        if self.by_data or self.plain or step is None or variable not in self.middle or extent < 2 * _BORDER:
            return 0, 0
        corners = self._corners(variable)
        low = max(self._irregular(range(_BORDER), corner, variable, step) for corner in corners)
        high = max(
            self._irregular(range(extent - 1, extent - 1 - _BORDER, -1), corner, variable, step) for corner in corners
        )
        return (low, high) if max(low, high) < _BORDER else (0, 0)

    def places(self, variable: Variable) -> frozenset[int]:
        """See `Access`."""
        short = [(v, n) for v, n in self.loops if v is not variable and 1 < n <= _BORDER]
        if self.by_data or prod(n for _, n in short) > _LARGEST_WINDOW:
            return frozenset()
        grid = np.meshgrid(*[np.arange(n) for _, n in short], indexing="ij", sparse=True)
        values: dict[Variable, Any] = self.middle | {v: at for (v, _), at in zip(short, grid, strict=True)}
        found = self.position.evaluate(values)
        return frozenset(np.unique(found).tolist())

    def _corners(self, variable: Variable) -> list[dict[Variable, int]]:
        """The ends of short loops inside (windows), combined; long loops at their middle."""
        corners = [dict(self.middle)]
        for v, extent in self.loops:
            if v is not variable and 1 < extent <= _BORDER:
                corners = [corner | {v: end} for corner in corners for end in (0, extent - 1)]
        return corners

    def _irregular(self, ends: range, corner: dict[Variable, int], variable: Variable, step: int) -> int:
        """The number of iterations from an end on up to the last that is off the line through the middle."""
        base = corner[variable]
        here = self.position.evaluate(corner)
        count = 0
        for number, i in enumerate(ends, 1):
            values = corner | {variable: i}
            fits = self.position.evaluate(values) == here + step * (i - base)
            if not fits or any(g.evaluate(values) < 0 for g in self.guard):
                count = number
        return count


def walk_of(name: str, found: list[Access]) -> Walk:
    """How the loop of that name moves through memory."""
    strides = [access.strides[name] for access in found if name in access.strides]
    return Walk(strides.count(1), strides.count(0), sum(1 for s in strides if s not in (0, 1)))


def borders_of(name: str, found: list[Access]) -> tuple[int, int]:
    """How many iterations at either end of the loop of that name meet padding in some access."""
    ends = [access.borders[name] for access in found if name in access.borders]
    return max((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)


def reuse_of(name: str, found: list[Access]) -> Reuse:
    """What consecutive iterations of the loop of that name read in common."""
    reads: dict[tuple[ir.Buffer, int], set[int]] = defaultdict(set)
    for access in found:
        step = access.strides.get(name)
        if step is not None and not access.is_store:
            reads[access.buffer, step] |= access.places(name)
    return Reuse(tuple((frozenset(places), step) for (_, step), places in reads.items()))
