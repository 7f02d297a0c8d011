"""How a kernel's loops walk through memory: the facts by which a strategy chooses what to vectorise and to spread.

The program is first lowered in the plainest way (every loop sequential, every loop named) and translated; the index
normal forms of its loads and stores then say, for each loop, how far apart in memory consecutive iterations are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from lithify.arith import ArithError, Expr, Variable, const
from lithify.kernel import ir


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store in the program text.

    `strides` maps the name of each enclosing loop to the distance in elements between consecutive iterations (None
    where data decides it); `times` is how often the access is executed.
    """

    buffer: ir.Buffer
    is_store: bool
    strides: dict[str, int | None]
    times: int


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


def accesses(program: ir.Program) -> list[Access]:
    """All accesses to parameters, results and temporaries (private memory costs nothing to walk through)."""
    found: list[Access] = []
    for kernel in program.kernels:
        _walk(kernel.body, (), found)
    return found


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
            case ir.Store(buffer, index, value, _) | ir.AtomicUpdate(_, buffer, index, value, _):
                _note(buffer, index, True, loops, found)
                for load in loads(value):
                    _note(load.buffer, load.index, False, loops, found)
            case ir.Async(body):
                _walk(body, loops, found)
            case _:
                pass


def loads(value: ir.Value) -> Iterator[ir.Load]:
    """All loads in a value."""
    match value:
        case ir.Load(_, _, _, fill):
            yield value
            if fill is not None:
                yield from loads(fill)
        case ir.Apply(_, operands, _):
            for operand in operands:
                yield from loads(operand)
        case ir.Choose(_, then, otherwise):
            yield from loads(then)
            yield from loads(otherwise)
        case _:
            pass


def linear(buffer: ir.Buffer, index: ir.Index) -> Expr:
    """The row-major element number of an index vector."""
    position = const(0)
    for size, at in zip(buffer.shape, index, strict=True):
        position = position * size + at
    return position


def _note(buffer: ir.Buffer, index: ir.Index, is_store: bool, loops: _Loops, found: list[Access]) -> None:
    if buffer.role in ("scratch", "scalar"):
        return
    position = linear(buffer, index)
    middle = {variable: extent // 2 for variable, _, extent in loops}
    strides = {name: _stride(position, variable, middle) for variable, name, _ in loops}
    found.append(Access(buffer, is_store, strides, prod(extent for _, _, extent in loops)))


def _stride(position: Expr, variable: Variable, middle: dict[Variable, int]) -> int | None:
    """The step in memory around the middle of the loops, where no padding is met; None when data decides it."""
    exact = position.coefficient(variable)
    if exact is not None:
        return exact
    sizes = {v: 1024 for v in position.variables() if v not in middle}
    try:
        here = position.evaluate(sizes | middle)
        return position.evaluate(sizes | middle | {variable: middle[variable] + 1}) - here
    except ArithError:  # an index that is loaded from a buffer
        return None


def walk_of(name: str, found: list[Access]) -> Walk:
    """How the loop of that name moves through memory."""
    strides = [access.strides[name] for access in found if name in access.strides]
    return Walk(strides.count(1), strides.count(0), sum(1 for s in strides if s not in (0, 1)))
