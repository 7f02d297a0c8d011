"""The launch of a kernel: extents of its hardware levels, and their index variables.

Variables are made for group d and item d, or for warp and lane (then item = W warp + lane, W from the device model)
in a kernel with one dimension of items that uses them. All other levels are formulas over these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lithify.arith import Expr, Variable, as_variable, ceil_div, const, maximum, var
from lithify.lang.errors import Rejected
from lithify.lang.levels import Level, LevelKind
from lithify.lang.term import Term
from lithify.lang.types import Array
from lithify.machine import DeviceModel

_WITHIN_ONE_ITEM = ("lane", "item", "global")
_DEFAULT_WARP = 32  # where no device says otherwise
# Items of a group along dimension 0 when nothing in the kernel says how many: many for long rows, because starting a
# group takes as long as a hundred items take to read and write an element.
_SHORT_GROUP, _LONG_GROUP = 64, 128


@dataclass(slots=True)
class Hardware:
    """The launch of one kernel and the indices of its levels.

    `index[level]` is the level's index as a formula, `extent[level]` the number of its values. `variables` are
    the indices that are variables of the kernel rather than formulas over others.
    """

    grid: tuple[Expr, ...] = ()
    group: tuple[Expr, ...] = ()
    variables: dict[Level, Variable] = field(default_factory=dict)
    index: dict[Level, Expr] = field(default_factory=dict)
    extent: dict[Level, Expr] = field(default_factory=dict)

    @property
    def present(self) -> bool:
        """Does the kernel run on hardware indices (a GPU launch) at all?"""
        return bool(self.index)

    def item_variables(self) -> frozenset[Variable]:
        """What distinguishes the work-items of one group."""
        return frozenset(v for level, v in self.variables.items() if level.name != "group")

    def all_variables(self) -> frozenset[Variable]:
        """What distinguishes the work-items of the launch."""
        return frozenset(self.variables.values())


def maps_of_kernel(root: Term) -> Iterator[Term]:
    """The maps of the kernel that writes `root`; values written to the heap are kernels of their own."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        term = stack.pop()
        if term.id in seen or (term.kind == "to" and term["memory"].name == "heap" and term is not root):
            continue
        seen.add(term.id)
        if term.kind == "map":
            yield term
        stack.extend(reversed(term.args))


def _largest(sizes: list[Expr]) -> Expr:
    result = sizes[0]
    for size in sizes[1:]:
        result = maximum(result, size)
    return result


def _launch_of(root: Term) -> Term | None:
    """The `launch` that roots the kernel, below lets and layouts."""
    term = root
    while True:
        if term.kind == "launch":
            return term
        if term.kind == "let":
            term = term.args[1].args[0]
        elif term.kind == "to" or (term.pattern.layout and len(term.args) == 1):
            term = term.args[0]
        else:
            return None


def plan_launch(root: Term, device: DeviceModel | None) -> Hardware:
    """Extents and index variables for the kernel that writes `root`: from its `launch`, else from its maps."""
    warp_width = _DEFAULT_WARP if device is None else device.warp_width
    used: dict[Level, list[Expr]] = {}
    for term in maps_of_kernel(root):
        level = term["level"]
        if level is None or level.kind is not LevelKind.HARDWARE or not isinstance(term.type, Array):
            continue
        if term.type.size.constant != 0:  # an empty map leaves nothing that could use an index
            used.setdefault(level, []).append(term.type.size)
    if not used:
        return Hardware()
    for level in used:
        if device is not None and not device.has_level(level):
            raise Rejected(missing_level(level, device))
    launch = _launch_of(root)
    if launch is not None:
        grid, group = launch["grid"], launch["group"]
    else:
        grid, group = _computed(used, warp_width)
    items = 1
    for size in group:
        if size.constant is None:
            raise Rejected(f"the items of a group must be a constant number, not {size}",
                           hint="say launch[grid, group], or split by a constant")  # fmt: skip
        items *= size.constant
    if device is not None and items > device.group_items:
        raise Rejected(
            f"a group of {items} work-items is larger than {device} allows ({device.group_items})",
            hint="say launch[grid, group] with a smaller group: longer maps become strided loops",
        )
    return _indices(tuple(grid), tuple(group), used, warp_width)


def missing_level(level: Level, device: DeviceModel) -> str:
    """What to say of a level that the device does not have."""
    return f"{device} has no level {level}; it has {', '.join(map(str, device.levels))}"


def _by_dimension(used: dict[Level, list[Expr]], name: str) -> dict[int, Expr]:
    found: dict[int, list[Expr]] = {}
    for level, sizes in used.items():
        if level.name == name:
            found.setdefault(level.dim or 0, []).extend(sizes)
    return {dim: _largest(sizes) for dim, sizes in found.items()}


def _computed(used: dict[Level, list[Expr]], warp_width: int) -> tuple[list[Expr], list[Expr]]:
    groups, globals_ = _by_dimension(used, "group"), _by_dimension(used, "global")
    items = _by_dimension({k: v for k, v in used.items() if k.dim is not None}, "item")
    linear = used.get(Level("item"))
    warps = used.get(Level("warp"), [])
    needs_warp = warps or Level("lane") in used
    if not items and (linear or needs_warp):
        size = _largest(linear) if linear else const(warp_width)
        if needs_warp:
            size = maximum(size, _largest(warps) * warp_width if warps else const(warp_width))
        items = {0: size}
    dims = 1 + max([*groups, *globals_, *items], default=0)
    group = [items.get(d) or const(_default_group(globals_[d]) if d == 0 and d in globals_ else 1) for d in range(dims)]
    grid = []
    for d in range(dims):
        size = groups.get(d, const(1))
        if d in globals_:
            size = maximum(size, ceil_div(globals_[d], group[d]))
        grid.append(size)
    return grid, group


def _default_group(size: Expr) -> int:
    """Items of a group for so many iterations along dimension 0."""
    return _LONG_GROUP if size.lo >= 4 * _LONG_GROUP else _SHORT_GROUP


def _indices(
    grid: tuple[Expr, ...], group: tuple[Expr, ...], used: dict[Level, list[Expr]], warp_width: int
) -> Hardware:
    dims = max(len(grid), len(group), 1)
    grid = grid + (const(1),) * (dims - len(grid))
    group = group + (const(1),) * (dims - len(group))
    result = Hardware(grid, group)
    needs_warp = any(level.name in ("warp", "lane", "warpgroup") for level in used)
    total = const(1)
    for size in group:
        total = total * size

    def declare(level: Level, extent: Expr) -> Expr:
        index = var(str(level), extent)
        if index.constant is None:
            result.variables[level] = as_variable(index)
        return index

    for d in range(dims):
        result.index[Level("group", d)], result.extent[Level("group", d)] = declare(Level("group", d), grid[d]), grid[d]
    flat = total is group[0]
    warps = total // warp_width
    if needs_warp and total % warp_width is not const(0):
        raise Rejected(f"{total} items of a group are not whole warps of {warp_width}",
                       hint=f"let the group be a multiple of {warp_width}")  # fmt: skip
    if needs_warp and flat:
        warp, lane = declare(Level("warp"), warps), declare(Level("lane"), const(warp_width))
        linear = warp * warp_width + lane
        items = [linear] + [const(0)] * (dims - 1)
    else:
        items = [declare(Level("item", d), group[d]) for d in range(dims)]
        linear, stride = const(0), const(1)
        for index, size in zip(items, group, strict=True):
            linear, stride = linear + index * stride, stride * size
        warp, lane = linear // warp_width, linear % warp_width
    for d in range(dims):
        result.index[Level("item", d)], result.extent[Level("item", d)] = items[d], group[d]
        result.index[Level("global", d)] = result.index[Level("group", d)] * group[d] + items[d]
        result.extent[Level("global", d)] = grid[d] * group[d]
    result.index[Level("item")], result.extent[Level("item")] = linear, total
    if needs_warp:
        result.index[Level("warp")], result.extent[Level("warp")] = warp, warps
        result.index[Level("lane")], result.extent[Level("lane")] = lane, const(warp_width)
    for name in ("group", "global"):
        result.index[Level(name)], result.extent[Level(name)] = (
            result.index[Level(name, 0)],
            result.extent[Level(name, 0)],
        )
    return result


def within_one_item(entered: tuple[Level, ...]) -> bool:
    """Is this one work-item's own code (below a map over items or lanes)?"""
    return any(level.name in _WITHIN_ONE_ITEM for level in entered)
