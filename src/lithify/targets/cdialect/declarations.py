"""What a kernel's text declares before its statements: hardware indices, local memory, private variables and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lithify.arith import Expr, Variable, const
from lithify.kernel.ir import Block, Buffer, If, Kernel, LastGroup, Loop, Statement
from lithify.kernel.walk import written_in
from lithify.lang.errors import LithifyError
from lithify.lang.levels import PAR, Level
from lithify.lang.scalars import Scalar, bool_
from lithify.targets.cdialect.dialect import computed
from lithify.targets.cdialect.names import Names
from lithify.targets.cdialect.registers import Place, private_places
from lithify.targets.cdialect.values import ValuePrinter
from lithify.targets.cdialect.walk import accesses, handed_over, partly_written, used_variables

_ALIGNMENT = 64
_VARIABLES_A_LINE = 8


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a kernel's function takes: buffers (and scalars), then sizes. Buffers not `written` are constant in it, and
    `handed_over` are those that others change while it runs."""

    buffers: tuple[Buffer, ...]
    sizes: tuple[Variable, ...]
    written: frozenset[Buffer]
    handed_over: frozenset[Buffer]


def parameters_of(kernel: Kernel, buffers: Iterable[Buffer]) -> Parameters:
    """Those of the program's buffers that the kernel touches, in their order, and the sizes that its text mentions."""
    touched, written = {access.buffer for access in accesses(kernel.body)}, written_in(kernel.body)
    variables = used_variables(kernel).union(*[size.variables() for b in kernel.scratch for size in b.shape])
    sizes = {v for v in variables if v.last is None}
    ordered = tuple(b for b in buffers if b in touched), tuple(sorted(sizes, key=lambda v: v.name))
    return Parameters(*ordered, written, handed_over(kernel.body))


class Declarations:
    """Writes the declarations of one kernel and records the place of every buffer in `values.places`."""

    def __init__(self, kernel: Kernel, values: ValuePrinter, names: Names, line: Callable[[str], None]) -> None:
        self._kernel, self._values, self._names, self._line = kernel, values, names, line
        self._dialect = values.dialect
        self._accesses = tuple(accesses(kernel.body))
        self._partly_written = frozenset(partly_written(kernel.body))
        touched = {access.buffer for access in self._accesses}
        self._scratch = [b for b in kernel.scratch if b in touched]
        self._offsets: dict[Buffer, Expr] = {}  # in the workspace
        self.workspace_bytes = const(0)
        self.flag = ""  # what the group knows of its being the last
        limit = self._dialect.stack_bytes
        for buffer in self._scratch:
            if not buffer.memory.of_one_item or limit is None:
                continue
            size = buffer.count * max(buffer.scalar.bytes, computed(buffer.scalar).bytes)
            if size.constant is None or size.constant > limit:
                self._offsets[buffer] = self.workspace_bytes
                self.workspace_bytes += (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT

    def at_the_top(self) -> None:
        """Everything but the private memory of parallel iterations."""
        self._hardware()
        shared = [b for b in self._scratch if not b.memory.of_one_item]
        for buffer in shared:
            self._array(Place(self._names.fresh(buffer.name), buffer, buffer.alignment, stored=True, is_array=True))
        if self._dialect.last_group is not None and any(isinstance(s, LastGroup) for s in self._kernel.body):
            self.flag = self._names.fresh("last")
            self._line(self._dialect.last_group.declaration.format(flag=self.flag))
        outside = {access.buffer for access in accesses(_without_parallel(self._kernel.body))}
        self._private(b for b in self._scratch if b not in shared and b in outside)

    def in_parallel_loop(self, loop: Loop) -> None:
        """The private memory of one iteration of an outermost parallel loop."""
        inner = {access.buffer for access in accesses(loop.body)}
        known = self._values.places
        outside = {access.buffer for access in accesses(_without_parallel(self._kernel.body))}
        self._private(b for b in self._scratch if b in inner and b not in outside and b.memory.of_one_item)
        assert inner <= known.keys()

    # ---- hardware indices -------------------------------------------------------------------------------------

    def _hardware(self) -> None:
        used = used_variables(self._kernel)
        for level, variable in self._kernel.hardware.items():
            if variable in used:
                name = self._names.fresh(variable.name)
                type_ = self._values.indices.declare(variable, name)
                self._line(f"const {type_} {name} = {self._hardware_index(level)};")

    def _hardware_index(self, level: Level) -> str:
        hardware = self._dialect.hardware
        form = hardware.get(level.name)
        if form is None:
            raise LithifyError(
                f"{self._dialect.name} has no level {level}",
                hint=f"its levels are {', '.join(('seq', 'unroll', 'vec', *hardware) if hardware else ('seq', 'par'))}",
            )
        if level.dim is not None:
            return form.format(dim=level.dim)
        linear = self._linear(form, level.name)
        if level.name not in ("warp", "lane"):
            return linear
        lane = self._kernel.hardware.get(Level("lane"))
        if lane is None:
            raise LithifyError("the index of a warp needs the number of its lanes: the kernel has no level lane")
        return f"({linear}) {'/' if level.name == 'warp' else '%'} {int(lane.hi) + 1}"

    def _linear(self, form: str, level: str) -> str:
        """The index over all dimensions; dimension 0 varies fastest."""
        extents = self._kernel.grid if level == "group" else self._kernel.group
        terms: list[str] = []
        stride = 1
        for dim, extent in enumerate(extents):
            size = extent.constant
            if size is None:
                raise LithifyError(f"a linear {level} index over the symbolic extent {extent}",
                                   hint="name the dimensions, for example group0")  # fmt: skip
            if size != 1:
                index = form.format(dim=dim)
                terms.append(index if stride == 1 else f"{stride} * {index}")
            stride *= size
        return " + ".join(terms) if terms else "0"

    # ---- memory -----------------------------------------------------------------------------------------------

    def _private(self, buffers: Iterable[Buffer]) -> None:
        wanted = [b for b in buffers if b not in self._values.places]
        small = [b for b in wanted if b not in self._offsets]
        vectors = self._dialect.vectors is not None
        for place in private_places(small, self._accesses, self._names, vectors=vectors):
            if place.cells is None:
                self._array(place)
            else:
                self._values.places[place.buffer] = place
                self._variables(place)
        for buffer in wanted:
            if buffer in self._offsets:
                place = Place(self._names.fresh(buffer.name), buffer, buffer.alignment, is_array=True)
                self._values.places[buffer] = place
                names = {"t": self._dialect.types[computed(buffer.scalar)], "name": place.name}
                stride, offset = self._in_bytes(self.workspace_bytes), self._in_bytes(self._offsets[buffer])
                self._line(self._dialect.workspace.format(stride=stride, offset=offset, **names))

    def _variables(self, place: Place) -> None:
        by_type: dict[str, list[str]] = {}
        partly = place.buffer in self._partly_written  # its other lanes are read then
        for name, width in place.variables():
            declared = self._variable_type(place.buffer.scalar, width)
            by_type.setdefault(declared, []).append(f"{name} = ({declared})(0)" if partly and width > 1 else name)
        for declared, names in by_type.items():
            for start in range(0, len(names), _VARIABLES_A_LINE):
                self._line(f"{declared} {', '.join(names[start : start + _VARIABLES_A_LINE])};")

    def _variable_type(self, scalar: Scalar, width: int) -> str:
        if width == 1:
            return self._dialect.types[computed(scalar)]
        if scalar is bool_:  # a mask
            return f"{self._dialect.index_types[32]}{width}"
        return f"{self._dialect.types[computed(scalar)]}{width}"

    def _array(self, place: Place) -> None:
        self._values.places[place.buffer] = place
        buffer = place.buffer
        storage = self._dialect.storage.get(buffer.scalar) if place.stored else None
        element = self._dialect.types[computed(buffer.scalar)] if storage is None else storage.array
        parts = (
            self._dialect.aligned.format(bytes=buffer.alignment),
            self._dialect.spaces.get(buffer.memory.name, ""),
            element,
            f"{place.name}[{max(self._count(buffer), 1)}]",
        )
        shape = f"  // {'.'.join(map(str, buffer.shape))}" if len(buffer.shape) > 1 else ""
        self._line(" ".join(part for part in parts if part) + ";" + shape)

    def _count(self, buffer: Buffer) -> int:
        count = buffer.count.constant
        if count is None:
            raise LithifyError(
                f"{buffer} in {buffer.memory} memory has {buffer.count} elements; arrays of a kernel need a "
                "constant size",
                hint="specialise the program to its sizes",
            )
        return count

    def _in_bytes(self, size: Expr) -> str:
        return str(size.constant) if size.constant is not None else f"({self._values.indices.text(size, 64).text})"


def _without_parallel(block: Block) -> Block:
    """The statements of a block that stand outside parallel loops."""
    kept: list[Statement] = []
    for statement in block:
        match statement:
            case Loop(level=level) if level == PAR:
                continue
            case Loop() | LastGroup():
                kept.append(replace(statement, body=_without_parallel(statement.body)))
            case If():
                body, otherwise = _without_parallel(statement.body), _without_parallel(statement.otherwise)
                kept.append(replace(statement, body=body, otherwise=otherwise))
            case _:
                kept.append(statement)
    return tuple(kept)
