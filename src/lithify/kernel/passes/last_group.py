"""Two kernels in one launch: what few groups do with the results of many is done by the last of these.

    kernel a, many groups: .. p[group] := s          kernel a: .. p[group] := s
    kernel b, one group: .. p[0] .. p[n] ..    ->              last of n groups: .. p[0] .. p[n] ..

A launch takes some microseconds, in which a device like NVIDIA's H200 reads ten million numbers. Nothing is computed in
another order. Where b has several groups (sums of columns in parts), each must read what certain groups of a wrote and
no others: then the last of these goes on, and each group of b has a counter of its own. What one group does next
(the root of a sum) it does at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from lithify.arith import Expr, Floor, Variable, ceil_div, const, minimum
from lithify.kernel import ir
from lithify.kernel.passes.fetching import fetch_first
from lithify.kernel.walk import Substitution, blocks_of, reads_of, statements
from lithify.lang.levels import HEAP, Level
from lithify.lang.scalars import i32
from lithify.machine import DeviceModel

# All groups wait for memory once more, and count themselves: that is hidden where a multiprocessor has few of them, or
# where their items read this much.
_GROUPS_A_CORE, _READS = 32, 16
# So often a loop runs of which nothing is known.
_ROUNDS = 16
# Bytes of private memory that the second kernel may hold where the first one holds less, and how much more local memory
# than this one: a share of all. More would leave room for fewer groups.
_PRIVATE, _LOCAL_SHARE = 256, 16


def finish_in_last_groups(program: ir.Program, *, device: DeviceModel) -> ir.Program:
    """The program with fewer kernels, where the device's groups can count themselves."""
    counters: list[ir.Buffer] = []
    kernels: list[ir.Kernel] = []
    for kernel in program.kernels:
        following = _following(kernels[-1], kernel, device) if kernels else None
        joined = _joined(kernels[-1], kernel, program, device, len(counters)) if kernels else None
        if following is not None:
            kernels[-1] = following
        elif joined is not None:
            kernels[-1], counter = joined
            counters.append(counter)
        else:
            kernels.append(kernel)
    return replace(program, kernels=tuple(kernels), temporaries=(*program.temporaries, *counters))


def _joined(
    first: ir.Kernel, second: ir.Kernel, program: ir.Program, device: DeviceModel, number: int
) -> tuple[ir.Kernel, ir.Buffer] | None:
    """Both kernels as one, and its counter; None where that is impossible, or no gain."""
    handed = _handed_over(first, second)
    if not handed or not all(extent.lo >= 1 for extent in first.grid) or not _is_worth(first, second, device):
        return None
    items = _items(first, second)
    places = _places(first, second, handed)
    if items is None or places is None:
        return None
    of_items, guard = items
    of_groups = {v: place.index for v, place in places.items()}
    counter = ir.Buffer(
        _unused_name(f"arrived_{number}" if number else "arrived", program),
        i32,
        tuple(_grid(second).values()),
        HEAP,
        "counter",
        i32.bytes,
    )
    index = tuple(of_groups.values())
    own: list[ir.Buffer] = []
    body = fetch_first(Substitution({**of_items, **of_groups}).block(second.body), handed, own)
    last = ir.LastGroup(counter, index, _arriving(first, places.values()), _under(guard, body))
    return replace(first, body=(*first.body, last), scratch=(*first.scratch, *second.scratch, *own)), counter


def _following(first: ir.Kernel, second: ir.Kernel, device: DeviceModel) -> ir.Kernel | None:
    """Both kernels as one where a single group does all of the second one, and what the first one ends with: its only
    group or the last of all. Barriers between the two are left to the pass that inserts them."""
    last = first.body[-1] if isinstance(first.body[-1], ir.LastGroup) else None
    single = _is_single(first) if last is None else not last.index
    items = _items(first, second) if single and _is_single(second) and _fits(first, second, device) else None
    if items is None:
        return None
    of_items, guard = items
    more = _under(guard, Substitution(of_items).block(second.body))
    ends = (replace(last, body=(*last.body, *more)),) if last is not None else (*first.body[-1:], *more)
    return replace(first, body=(*first.body[:-1], *ends), scratch=(*first.scratch, *second.scratch))


def _is_single(kernel: ir.Kernel) -> bool:
    return all(extent.constant == 1 for extent in kernel.grid)


def _under(guard: ir.Guard, body: ir.Block) -> ir.Block:
    return (ir.If(guard, body),) if guard else body


def _unused_name(name: str, program: ir.Program) -> str:
    used = {b.name for b in (*program.parameters, *program.results, *program.temporaries)}
    while name in used:
        name += "_"
    return name


# ---- what is handed over -------------------------------------------------------------------------------------------


def _reads(kernel: ir.Kernel) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    for statement in statements(kernel.body):
        yield from reads_of(statement)


def _writes(kernel: ir.Kernel) -> Iterator[tuple[ir.Buffer, ir.Index]]:
    for statement in statements(kernel.body):
        if isinstance(statement, ir.Store | ir.AtomicUpdate) and statement.buffer.role != "scratch":
            yield statement.buffer, statement.index


def _handed_over(first: ir.Kernel, second: ir.Kernel) -> frozenset[ir.Buffer]:
    """What the first kernel writes and the second one reads; nothing where more than that orders the two."""
    if any(isinstance(s, ir.LastGroup) for k in (first, second) for s in statements(k.body)):
        return frozenset()
    written, overwritten = ({b for b, _ in _writes(k)} for k in (first, second))
    read = {b for b, _ in _reads(first)}
    if overwritten & (written | read):
        return frozenset()
    return frozenset(written & {b for b, _ in _reads(second)})


# ---- who does it ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """An index of the first kernel's groups, divided: `several` of them share a counter."""

    variable: Variable
    several: int

    @staticmethod
    def of(form: Expr) -> _Place | None:
        """The form as such an index; None where it is another one."""
        atom = form.single
        if isinstance(atom, Variable):
            return _Place(atom, 1)
        if isinstance(atom, Floor) and isinstance(atom.numerator.single, Variable):
            several = atom.divisor.constant
            return None if several is None else _Place(atom.numerator.single, several)
        return None

    @property
    def index(self) -> Expr:
        """That of the counter."""
        return self.variable.expr // self.several


def _extents(extents: Iterable[Expr]) -> tuple[Expr, ...]:
    """Without those of 1 at the end."""
    found = list(extents)
    while found and found[-1].constant == 1:
        found.pop()
    return tuple(found)


def _grid(kernel: ir.Kernel) -> dict[Variable, Expr]:
    """The indices of its groups with their extents, by dimension."""
    indices = ((kernel.hardware.get(Level("group", dim)), extent) for dim, extent in enumerate(kernel.grid))
    return {variable: extent for variable, extent in indices if variable is not None}


def _linear_item(kernel: ir.Kernel) -> Expr:
    hardware = kernel.hardware
    if Level("warp") in hardware or Level("lane") in hardware:
        warp, lane = (hardware.get(Level(name)) for name in ("warp", "lane"))
        width = int(lane.hi) + 1 if lane is not None else 1
        return (const(0) if warp is None else warp.expr * width) + (const(0) if lane is None else lane.expr)
    linear, stride = const(0), 1
    for dim, extent in enumerate(kernel.group):
        variable = hardware.get(Level("item", dim))
        if variable is not None:
            linear = linear + variable.expr * stride
        assert extent.constant is not None
        stride *= extent.constant
    return linear


def _items(first: ir.Kernel, second: ir.Kernel) -> tuple[dict[Variable, Expr], ir.Guard] | None:
    """The second kernel's items as items of the first, and the condition of those that there are; None where there are
    more."""
    ours, theirs = _extents(first.group), _extents(second.group)
    of_items = {level: v for level, v in second.hardware.items() if level.name != "group"}
    if ours == theirs and of_items.keys() <= first.hardware.keys():
        return {v: first.hardware[level].expr for level, v in of_items.items()}, ()
    if len(theirs) > 1:
        return None
    count, have = prod(e.constant or 0 for e in theirs), prod(e.constant or 0 for e in ours)
    if count > have or (count < have and any(isinstance(s, ir.Barrier) for s in statements(second.body))):
        return None
    item = _linear_item(first)
    lane = second.hardware.get(Level("lane"))
    width = 1 if lane is None else int(lane.hi) + 1
    decoded = {"item": item, "warp": item // width, "lane": item % width}
    return {v: decoded[level.name] for level, v in of_items.items()}, (count - 1 - item,) if count < have else ()


def _places(first: ir.Kernel, second: ir.Kernel, handed: frozenset[ir.Buffer]) -> dict[Variable, _Place] | None:
    """Which groups of the first kernel write what a group of the second one reads, for each of this one's indices; None
    where others may."""
    reads = [(b, index) for b, index in _reads(second) if b in handed]
    writes = [(b, index) for b, index in _writes(first) if b in handed]
    ours, theirs = _grid(first), _grid(second)
    found: dict[Variable, _Place] = {}
    for v, extent in theirs.items():
        place = _place(v, reads, writes)
        if place is None or place.variable not in ours or any(p.variable is place.variable for p in found.values()):
            return None
        if extent is not ceil_div(ours[place.variable], place.several):
            return None
        found[v] = place
    return found


def _place(
    v: Variable, reads: list[tuple[ir.Buffer, ir.Index]], writes: list[tuple[ir.Buffer, ir.Index]]
) -> _Place | None:
    """What the writers of all elements have in common that are read where a group's index is v."""
    found: set[_Place | None] = set()
    for buffer in {b for b, _ in reads}:
        wanted = [index for b, index in reads if b is buffer]
        written = [index for b, index in writes if b is buffer]
        found.add(_common(v, wanted, written))
    return found.pop() if len(found) == 1 else None


def _common(v: Variable, wanted: list[ir.Index], written: list[ir.Index]) -> _Place | None:
    """An index of blocks of the buffer that is v for all elements read, and says of all written who writes them."""
    for dim, form in enumerate(wanted[0]):
        unit = form.coefficient(v)
        if unit and unit > 0 and all(index[dim] // unit is v.expr for index in wanted):
            blocks = {index[dim] // unit for index in written}
            place = _Place.of(blocks.pop()) if len(blocks) == 1 else None
            if place is not None:
                return place
    return None


def _arriving(first: ir.Kernel, places: Iterable[_Place]) -> Expr:
    """How many groups arrive at a counter."""
    of_index = {place.variable: place for place in places}
    count = const(1)
    for dim, extent in enumerate(first.grid):
        variable = first.hardware.get(Level("group", dim))
        place = None if variable is None else of_index.get(variable)
        count = count * (extent if place is None else minimum(place.several, extent - place.several * place.index))
    return count


# ---- whether it pays -----------------------------------------------------------------------------------------------


def _is_worth(first: ir.Kernel, second: ir.Kernel, device: DeviceModel) -> bool:
    groups = prod(extent.constant or 0 for extent in first.grid)
    few = 0 < groups <= device.cores * _GROUPS_A_CORE
    return bool(first.grid) and (few or _elements_read(first.body) >= _READS) and _fits(first, second, device)


def _fits(first: ir.Kernel, second: ir.Kernel, device: DeviceModel) -> bool:
    """Is there as much room for groups as without what the second kernel does?"""
    room = device.memory("local").bytes
    local = 0 if room is None else _held(second, "local") - room // _LOCAL_SHARE
    return local <= _held(first, "local") and _held(second, "private") <= max(_held(first, "private"), _PRIVATE)


def _held(kernel: ir.Kernel, memory: str) -> int:
    """Bytes; what is not known is not counted."""
    return sum(b.bytes.constant or 0 for b in kernel.scratch if b.memory.name == memory)


def _elements_read(block: ir.Block) -> int:
    """Elements that an item reads from memory."""
    total = 0
    for statement in block:
        times = 1
        if isinstance(statement, ir.Loop):
            times = _ROUNDS if statement.extent.constant is None else statement.extent.constant
        elif isinstance(statement, ir.Lanes):
            times = statement.width
        total += sum(1 for buffer, _ in reads_of(statement) if buffer.role not in ("scratch", "scalar"))
        total += times * sum(map(_elements_read, blocks_of(statement)))
    return total
