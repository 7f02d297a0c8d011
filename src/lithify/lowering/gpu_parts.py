"""Sums on GPUs in a loop with too few iterations to keep the device busy: in parts, by a kernel of their own.

    map (λx. C[reduce f z (e x)]) xs
      -> let p = to[heap] (map (λx. map (reduce f e) (split n (e x))) xs) in map (λ(x, s). C[reduce f z s]) (zip xs p)

Where the sum runs along memory, a group makes a part. Where the loop does (sums of columns), parts are the outer loop,
so that neighbours still read neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

from lithify.arith import Expr
from lithify.lang.levels import HEAP, INLINE, LOCAL, Level
from lithify.lang.term import Term, dangling
from lithify.lowering import gpu_scans
from lithify.lowering.facts import has_lanes, is_flat
from lithify.lowering.gpu_rows import GROUP_TEAM
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Path, has_loops, is_lazy, is_scalar
from lithify.lowering.work import elements, is_constant, length_of, size_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import let_inline
from lithify.rules.fusion import map_fusion
from lithify.rules.interchange import map_map_shared
from lithify.rules.layout import VIEW_RULES
from lithify.rules.lowering import bind_transposed, one_item, to_memory
from lithify.rules.memory import hoist_expanded, hoist_let_expanded
from lithify.rules.parallel import map_level
from lithify.rules.reduction import pad_scan, partial_reduce, reduce_columns, scan_of_sums

_GROUP, _ITEM = tuple(Level("group", dim) for dim in range(2)), Level("item", 0)
# Groups that a multiprocessor has room for, and that keep it busy evenly; items that sum alone and keep it busy.
_ROOM, _GROUPS, _ITEMS = 8, 32, 1_024
# Elements of a part at least.
_LEAST_OF_GROUP, _LEAST_OF_ITEM = 8_192, 32
# Elements in all that are worth another kernel, and elements that an item alone reads as long as one takes to start.
_LEAST, _LEAST_ALONE = 1 << 20, 256
# Rows of at least this length, where it is not known, have parts: as many as leave each item so many rounds, or as keep
# a device busy with one row.
_LEAST_OPEN, _ROUNDS, _MOST_OPEN = 1 << 15, 8, 128
# In `let own = to[..] (map .. xs) in let sums = to[..] (scan f z own) in join (map .. pieces)`: the two maps.
_SUMS: Path = (0, 0)
_PIECES: Path = (1, 0, 1, 0, 0)


def parts(m: Term, model: DeviceModel, loops: Loops) -> Strategy | None:
    """The next step towards parts of the sums or scans of a loop; None where it has iterations enough for the device,
    or nothing that can be cut."""
    if "staged" in (m["name"] or "").split("."):
        return None
    body = m.args[0].args[0]
    if body.kind == "let" and _goes_on(m, body):
        return _named_apart(m, body, model, loops)
    scan = _scan_in(m, model)
    if scan is not None:
        return _scan_in_parts(m, scan, model)
    found = _cut(m, _sum_in(body, (0, 0)), model, loops, _ROOM) if is_flat(m) else None
    return None if found is None else _sum_in_parts(m, *found)


def _named_apart(m: Term, let: Term, model: DeviceModel, loops: Loops) -> Strategy | None:
    """A value that the loop names, by a loop of its own: where its sum has parts, or few rows need it. What is named
    of rows with a sum to cut, and only computed, is no value but the rows again."""
    value = let.args[0]
    if is_scalar(value.type):
        has_parts = _cut(m, _sum_in(value, (0, 0, 0)), model, loops, _GROUPS) is not None
        return hoist_let_expanded(HEAP) if has_parts or _is_apart(m, value, model) else None
    return at((0, 0), let_inline) if is_lazy(value) and _sum_in(let.args[1].args[0], ()) else None


def _sum_in_parts(m: Term, path: Path, part: Strategy, along: bool) -> Strategy:
    """The sums of all parts first: by a group each where they run along memory, else with parts as the outer loop."""
    name = m["name"]
    cut = at(path, part) >> hoist_expanded(HEAP)
    staged = loop_of(f"{name}.staged", "map")
    if not along:
        return cut >> at(staged, map_map_shared) >> bind_transposed
    rows, of_row = _GROUP if not is_constant(m) else _GROUP[::-1]  # any number of groups fits in the first dimension
    return cut >> at(staged, map_level(rows) >> at((0, 0), one_item(of_row, _ITEM)))


def _goes_on(m: Term, let: Term) -> bool:
    """Is there more to do, in loops, once the named value is known?"""
    return not is_flat(m) or has_loops(let.args[1])


def _is_apart(m: Term, value: Term, model: DeviceModel) -> bool:
    """Is a value that each of a few long rows names one of its own, and all of a row's elements need it?"""
    if is_flat(m) or has_loops(value):
        return False
    if not is_constant(m):
        return _is_long(size_of(m.args[0].args[0]))
    return 2 * length_of(m) <= model.cores * _GROUPS and elements(m.type) >= _LEAST


def _cut(
    m: Term, found: tuple[Path, Term] | None, model: DeviceModel, loops: Loops, groups: int
) -> tuple[Path, Strategy, bool] | None:
    """Where a sum is, how it is cut, and whether it runs along memory; None where there is none, or the rows are as
    many as half of so many groups a multiprocessor, or one part is enough."""
    if found is None:
        return None
    path, r = found
    walk, n = loops.walk(r), length_of(r.args[2])
    if walk is None:
        return None
    along = walk.contiguous > walk.strided
    if not is_constant(r.args[2]):
        return (path, _open_parts(size_of(r.args[2])), along) if along else None
    if not is_constant(m) or length_of(m) == 0:
        return None
    if along and 2 * length_of(m) > model.cores * groups:
        return None
    workers, least = (_GROUPS, _LEAST_OF_GROUP) if along else (_ITEMS, _LEAST_OF_ITEM)
    count = min(model.cores * workers // length_of(m), n // least)
    if count < 2 or (n * length_of(m) < _LEAST if along else n <= _LEAST_ALONE):
        return None
    part = partial_reduce(part_of(n, count, GROUP_TEAM.items if along else 1))
    return path, part >> at((2,), to_memory(HEAP)), along


def _is_long(size: Expr) -> bool:
    """Is a row of a length that is not known before the call worth parts, however many rows there are?"""
    return size.lo >= _LEAST_OPEN


def _open_parts(size: Expr) -> Strategy:
    """So many parts whatever the length is: groups take turns at what their items read side by side."""
    items = GROUP_TEAM.items
    count = min(_MOST_OPEN, max(1, int(size.lo) // (items * _ROUNDS)))
    by_items = at((0, 0, 2), map_level(_ITEM) >> to_memory(LOCAL))
    part = at((1,), VIEW_RULES["split-map"]) >> map_fusion >> by_items >> to_memory(HEAP)
    return reduce_columns(count * items) >> partial_reduce(items) >> at((2,), part)


def _scan_in(m: Term, model: DeviceModel) -> tuple[Path, Term] | None:
    """A scan of the loop's function that depends on nothing but its element, and takes several pieces of a group."""
    found = _find(m.args[0].args[0], (0, 0), lambda t: t.kind == "scan" and gpu_scans.is_shared(t))
    if found is None or not is_constant(m) or not is_constant(found[1]):
        return None
    n = length_of(found[1])
    if length_of(m) * 2 > model.cores * _GROUPS or n * length_of(m) < _LEAST:
        return None
    return found if n > gpu_scans.longest(found[1], GROUP_TEAM, model) else None


def _scan_in_parts(m: Term, found: tuple[Path, Term], model: DeviceModel) -> Strategy:
    """The sums of all pieces first, their scans, and the scans of the pieces: a kernel each."""
    path, s = found
    piece = gpu_scans.longest(s, GROUP_TEAM, model)
    if length_of(s) % piece:
        return at(path, pad_scan(piece))
    computed = gpu_scans.place_of_work(s.args[2])
    if computed is not None:
        return at((*path, 2, *computed), map_level(INLINE))
    name = m["name"]
    sums, pieces = at(_SUMS, one_item(_GROUP[0], _ITEM)), at(_PIECES, map_level(_GROUP[0]))
    cut = at(path, scan_of_sums(piece, HEAP) >> sums >> pieces)
    rows, loop = map_level(_GROUP[1]), loop_of(name, "map")
    own = hoist_expanded(HEAP) >> at(loop_of(f"{name}.staged", "map"), rows) >> at(loop, at(path, let_inline))
    return cut >> own >> at(loop, hoist_expanded(HEAP)) >> at(loop, rows)


def part_of(n: int, count: int, unit: int) -> int:
    """The length of a part: whole units, and equal parts, if that does not make them much fewer."""
    shortest = -(-n // (count * unit)) * unit
    return next((k for k in range(shortest, min(2 * shortest, n), unit) if n % k == 0), shortest)


def _sum_in(body: Term, place: Path) -> tuple[Path, Term] | None:
    """A long sum in a function's body that depends on nothing but its element."""
    return _find(body, place, lambda t: t.kind == "reduce" and is_scalar(t.type) and has_lanes(t))


def _find(body: Term, place: Path, wanted: Callable[[Term], bool]) -> tuple[Path, Term] | None:
    """A loop without a level in a function's body, over an array that depends on nothing but the function's element and
    is of a known length, or long: outermost first."""
    stack: list[tuple[Path, Term]] = [(place, body)]
    while stack:
        path, t = stack.pop()
        if wanted(t) and t["level"] is None and dangling(t.args[2]) == {0}:
            if is_constant(t.args[2]) or _is_long(size_of(t.args[2])):
                return path, t
        if t.kind not in ("map", "reduce", "scan", "generate", "iterate", "lambda"):
            stack.extend(((*path, k), a) for k, a in reversed(list(enumerate(t.args))))
    return None
