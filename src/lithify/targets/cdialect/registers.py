"""Where the elements of a kernel's own buffers live: in variables where every index is known, else in an array.

Private arrays are always one-dimensional in the text: some OpenCL compilers get multi-dimensional ones wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lithify.arith import Expr
from lithify.kernel.ir import Buffer
from lithify.targets.cdialect.names import Names
from lithify.targets.cdialect.walk import Access

# More variables than this are not registers on any machine, and slow every compiler down.
MOST_VARIABLES = 1024


@dataclass(slots=True)
class Place:
    """A buffer in the text: a pointer or array `name`, or variables.

    `cells` gives for a position the variable that holds it, the first position that the variable holds, and how many
    it holds (a vector variable holds more than one).
    """

    name: str
    buffer: Buffer
    alignment: int  # of the first element, in bytes
    cells: dict[int, tuple[str, int, int]] | None = None
    stored: bool = False  # in the storage form of its scalar type
    is_array: bool = False
    block: int = 1  # elements of aligned blocks that may be read whole (see `blocks`)
    volatile: bool = False  # other groups change it while the kernel runs

    def elements(self, position: int, width: int, components: str) -> str:
        """The variable, or the components of one, that hold `width` elements from a position on."""
        assert self.cells is not None
        name, first, held = self.cells[position]
        return name if held == width else f"{name}.s{components[position - first : position - first + width]}"

    def variables(self) -> list[tuple[str, int]]:
        """The variables with the number of elements of each, in order."""
        assert self.cells is not None
        return list(dict.fromkeys((name, width) for _, (name, _, width) in sorted(self.cells.items())))


@dataclass(slots=True)
class _Use:
    scalars: set[int] = field(default_factory=set)
    vectors: set[int] = field(default_factory=set)
    widths: set[int] = field(default_factory=set)
    dynamic: bool = False


def private_places(
    buffers: Iterable[Buffer], accesses: Iterable[Access], names: Names, *, vectors: bool
) -> list[Place]:
    """Places for private buffers, those that nothing accesses left out. `vectors`: lanes are vectors, not loops."""
    uses: dict[Buffer, _Use] = {buffer: _Use() for buffer in buffers}
    touched: set[Buffer] = set()
    for access in accesses:
        use = uses.get(access.buffer)
        if use is not None:
            touched.add(access.buffer)
            _note(use, access.buffer.position(access.index), access, vectors)
    return [_place(buffer, use, names) for buffer, use in uses.items() if buffer in touched]


def _note(use: _Use, position: Expr, access: Access, vectors: bool) -> None:
    if position.constant is not None:
        use.scalars.add(position.constant)
    elif vectors and access.lane is not None and position is access.lane.expr + position.offset:
        if position.offset % access.width:
            use.dynamic = True
        use.vectors.add(position.offset)
        use.widths.add(access.width)
    else:
        use.dynamic = True


def _place(buffer: Buffer, use: _Use, names: Names) -> Place:
    if use.dynamic or len(use.scalars) + len(use.vectors) > MOST_VARIABLES:
        return Place(names.fresh(buffer.name), buffer, buffer.alignment, is_array=True)
    cells: dict[int, tuple[str, int, int]] = {}
    width = max(use.widths, default=1)  # narrower accesses are to components
    for start in sorted({position // width * width for position in use.vectors}):
        name = names.fresh(_cell_name(buffer, start, width))
        cells.update({start + i: (name, start, width) for i in range(width)})
    for position in sorted(use.scalars - cells.keys()):
        cells[position] = (names.fresh(_cell_name(buffer, position, 1)), position, 1)
    return Place(buffer.name, buffer, buffer.alignment, cells)


def _cell_name(buffer: Buffer, position: int, width: int) -> str:
    """`acc_2_3` for element (2, 3); a vector that is a whole row leaves the last index out."""
    shape = [size.constant for size in buffer.shape]
    index: list[int] = []
    for size in reversed(shape):
        assert size is not None
        index.append(position % size)
        position //= size
    index.reverse()
    if shape and shape[-1] == width and width > 1:
        index.pop()
    return "_".join([buffer.name, *map(str, index)]) if any(s != 1 for s in shape) else buffer.name
