"""The kernel language: what comes out of the translation of a lowered program, and what targets print.

Imperative and small: buffers, loops, loads and stores at index normal forms under conditions, barriers, asynchronous
copies, matrix instructions. Every index is a vector of normal forms, one a dimension of the buffer; it is linearised at
emission. A *condition* is a normal form required to be >= 0; a guard is a tuple of them, all required. They are tested
in order, and what is guarded (an index that a buffer holds included) is evaluated only where all of them hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lithify.arith import Expr, Variable, const
from lithify.lang.levels import Level, Memory
from lithify.lang.operators import Operator
from lithify.lang.scalars import Scalar
from lithify.machine import InstructionRow

Index = tuple[Expr, ...]
Guard = tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """An array of scalars in one memory, row-major. Compared by identity.

    `role` is "input", "output", "scalar" (shape (), passed by value), "temporary" (heap memory of the call, shared by
    the kernels of the program), "counter" (the same, of zeros when a call begins and when it ends) or "scratch"
    (thread, local, private or register memory of one kernel).
    `alignment` is in bytes and promised for the first element. A scratch buffer in local memory with `memory.slots` > 1
    has the slot as its first dimension. In a register buffer the distributed dimensions are not part of `shape`.
    An input that holds indices is relied on to hold values from 0 to below `below`, no two of which are equal where
    they are `distinct`: whoever launches must see to it.
    """

    name: str
    scalar: Scalar
    shape: tuple[Expr, ...]
    memory: Memory
    role: str
    alignment: int
    below: Expr | None = None
    distinct: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def count(self) -> Expr:
        """How many elements it has."""
        count = const(1)
        for size in self.shape:
            count = count * size
        return count

    @property
    def bytes(self) -> Expr:
        """How many bytes it takes."""
        return self.count * self.scalar.bytes

    def position(self, index: Index) -> Expr:
        """An element's number in memory, row-major. Raises ValueError where there are too few or too many indices."""
        position = const(0)
        for size, i in zip(self.shape, index, strict=True):
            position = position * size + i
        return position


# ---- values --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; `value` is a Python bool, int, float or complex."""

    value: Any
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index normal form as a value of an integer type."""

    index: Expr
    scalar: Scalar


class ElementAccess:
    """What loads and stores have in common: they name one element of a buffer."""

    __slots__ = ()
    buffer: Buffer
    index: Index

    @property
    def position(self) -> Expr:
        """The element's number in memory, see `Buffer.position`."""
        return self.buffer.position(self.index)


@dataclass(frozen=True, slots=True)
class Load(ElementAccess):
    """buffer[index], or `fill` where a condition of the guard fails (then nothing is read)."""

    buffer: Buffer
    index: Index
    guard: Guard = ()
    fill: Value | None = None

    @property
    def scalar(self) -> Scalar:
        return self.buffer.scalar


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar operator (never a user-defined one: those are unfolded) on values; `scalar` is the result type."""

    operator: Operator
    operands: tuple[Value, ...]
    scalar: Scalar


@dataclass(frozen=True, slots=True)
class Choose:
    """`then` where all conditions hold, else `otherwise`. Loads inside `then` are guarded by themselves."""

    guard: Guard
    then: Value
    otherwise: Value

    @property
    def scalar(self) -> Scalar:
        return self.then.scalar


Value = Constant | IndexValue | Load | Apply | Choose


# ---- statements ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Store(ElementAccess):
    """buffer[index] := value, where the guard holds."""

    buffer: Buffer
    index: Index
    value: Value
    guard: Guard = ()


@dataclass(frozen=True, slots=True)
class AtomicUpdate(ElementAccess):
    """buffer[index] := operator(buffer[index], value), indivisibly, where the guard holds."""

    operator: Operator
    buffer: Buffer
    index: Index
    value: Value
    guard: Guard = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """for variable in 0 .. extent - 1; `level` is seq (in order) or par (iterations are independent CPU tasks).

    `name` is the name of the map or reduction that it came from.
    """

    variable: Variable
    extent: Expr
    level: Level
    body: Block
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Lanes:
    """The body for all lanes of a vector at once; an access is a vector, a splat or a gather by the lane's coefficient.

    Stores of different lanes go to different elements; loads and stores of one statement are not interleaved.
    """

    variable: Variable
    width: int
    body: Block
    name: str | None = None


@dataclass(frozen=True, slots=True)
class If:
    """The body where all conditions hold, `otherwise` elsewhere."""

    guard: Guard
    body: Block
    otherwise: Block = ()


@dataclass(frozen=True, slots=True)
class Barrier:
    """Every work-item of the scope ("group", "warp") waits for the others; writes to `memory` become visible.

    `memory` names "local", "heap" or both.
    """

    scope: str = "group"
    memory: tuple[str, ...] = ("local",)


@dataclass(frozen=True, slots=True)
class Async:
    """Copies (stores whose value is a load) that run asynchronously until a Wait covers their commit group."""

    body: Block


@dataclass(frozen=True, slots=True)
class Commit:
    """Ends a group of asynchronous copies."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until at most `pending` commit groups of this work-item are still in flight."""

    pending: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """result := what the row computes on a, b and c, by one instruction where the target has it.

    An operand is a load of its first element: those of all registers follow one another in memory, in the order in
    which the row holds them, or those of each line of registers do: then `pitches` are the elements from the beginning
    of one line to that of the next, for the result and each operand. `body` says the same in other statements, for
    targets that have no such instruction and for all that asks what is read and written.
    """

    row: InstructionRow
    result: Load
    operands: tuple[Load, Load, Load]
    pitches: tuple[Expr, Expr, Expr, Expr]
    body: Block


@dataclass(frozen=True, slots=True)
class LastGroup(ElementAccess):
    """What the last of several groups does with what all of them wrote; the end of a kernel, outside of everything.

    All work-items of the group wait for each other; then the group counts itself at buffer[index], a counter. The one
    that is number `groups` there runs the body, and sees what each of them wrote to the heap before it counted itself.
    Others are done. The counter is 0 when the first arrives, and again when the last has counted itself.
    """

    buffer: Buffer
    index: Index
    groups: Expr
    body: Block


Statement = Store | AtomicUpdate | Loop | Lanes | If | Barrier | Async | Commit | Wait | Instruction | LastGroup
Block = tuple[Statement, ...]


# ---- kernels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch.

    `grid` and `group` are extents by dimension (`group` entries are constants). Both are empty where one thread or
    work-item runs the body: on a CPU, where Loop[par] carries the parallelism, and in sequential kernels of a GPU.
    `hardware` gives the variable that stands for each hardware level's index: Level("group", d), and Level("item", d)
    or Level("warp") and Level("lane") (then item 0 = width * warp + lane, and the group has one dimension). An index
    with one value has no variable.
    """

    name: str
    body: Block
    grid: tuple[Expr, ...] = ()
    group: tuple[Expr, ...] = ()
    hardware: dict[Level, Variable] = field(default_factory=dict)
    scratch: tuple[Buffer, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels run one after another, with the buffers between them.

    `parameters` are the inputs in the order of the program's parameters (arrays of tuples: one buffer a component),
    `results` the outputs (a tuple result: one a component, in order), `temporaries` the heap buffers that live from one
    kernel to the next, and counters. `sizes` are the symbolic sizes that a call passes (none in a specialised program).
    """

    name: str
    parameters: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    temporaries: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    sizes: tuple[Variable, ...] = ()

    def __str__(self) -> str:
        from lithify.kernel.show import show

        return show(self)
