"""Rows on GPUs that are too short to be shared out: one item a row, by way of local memory.

Items whose neighbours walk along rows of their own would meet a line of memory each. So a group copies its rows to
local memory, neighbours reading neighbours, and each item works on a row there; rows that it makes go out the same way.
A row lies apart from the next by an odd number of elements, so that the items meet all banks.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.levels import LOCAL, SEQ, UNROLL, Level, Memory
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Type
from lithify.lowering.facts import element_of, is_elementwise
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Path, is_scalar
from lithify.lowering.work import count, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at, first, id_, seq
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import flatten, let_inline, let_introduction, split_join, split_join_zip
from lithify.rules.lowering import to_memory
from lithify.rules.memory import hoist_let_expanded
from lithify.rules.parallel import map_level
from lithify.rules.tiles import copy_shared

_GROUP, _ITEM = Level("group", 0), Level("item")


@dataclass(frozen=True)
class Team:
    """Items that work on a row together: the level of their maps, how many they are, and how many teams a group has.

    `last`: so many sums every item adds up by itself in the end, all reading the same. Each is an instruction of
    every warp; where a warp has a row of its own, another barrier is cheaper than 32 of these.
    """

    level: Level
    items: int
    in_group: int = 1
    last: int = 32


GROUP_TEAM = Team(Level("item", 0), 256)
# Rows up to these lengths go to one item each: where they make rows element by element, rows one after another, and
# single values. (Shorter ones share lines of memory anyway.)
LONGEST, LONGEST_SCANNED, LONGEST_READ, SHORTEST = 64, 128, 224, 4
# Items of a group: as many as their rows leave room for, within these numbers.
_MOST_ITEMS, _LEAST_ITEMS = 128, 32
_ROOM = 24 << 10
# The share of a group's local memory that it may fill.
LOCAL_SHARE = 0.75
# Views that name no element twice.
_ONCE = frozenset({"split", "join", "take", "drop", "zip", "transpose", "reindex", "param", "bound"})


def staged(m: Term, model: DeviceModel, loops: Loops) -> Strategy | None:
    """The map with its rows in local memory; None where its elements are no short rows that lie along memory."""
    xs = m.args[1]
    rows = list(xs.args) if xs.kind == "zip" else [xs]
    places = [k for k, x in enumerate(rows) if not is_scalar(element_of(x))]
    lengths = [_row(element_of(rows[k])) for k in places]
    result = _row(element_of(m))
    if not places or None in lengths or not (result or is_scalar(element_of(m))):
        return None
    elementwise = result is not None and _ends_elementwise(m)
    longest = LONGEST_READ if result is None else LONGEST if elementwise else LONGEST_SCANNED
    if not all(SHORTEST <= n <= longest for n in (*filter(None, lengths), *([result] if result else []))):
        return None
    if any(t.kind not in _ONCE for x in rows for t in subterms(x)) or not _walks_along_rows(m, loops):
        return None
    both = sum(_bytes(element_of(rows[k])) for k in places) + (_bytes(element_of(m)) if result else 0)
    # results need no room where each is written as it is computed, which is worth the while if room is short
    values_first = elementwise and _MOST_ITEMS * both > _ROOM
    if values_first:
        both -= _bytes(element_of(m))
    items = _MOST_ITEMS
    while items > _LEAST_ITEMS and items * both > _ROOM:
        items //= 2
    room = model.memory(LOCAL.name).bytes or 0
    if items * both > LOCAL_SHARE * room or length_of(m) < items or (xs.kind == "zip" and len(rows) != 2):
        return None

    def moved(n: int | None, before: bool) -> Strategy:
        memory = Memory(LOCAL.name, padding=1 - (n or 0) % 2)
        copy = copy_shared(UNROLL, _ITEM, items, 1)
        return copy >> to_memory(memory) if before else to_memory(memory) >> copy

    tile: Strategy = id_
    for k, n in zip(places, lengths, strict=True):
        tile = tile >> at((1, k) if xs.kind == "zip" else (1,), moved(n, True))
    if values_first:
        tile = tile >> _values_first(m, len(places), items)
    elif result:
        tile = map_level(_ITEM) >> tile >> moved(result, False)
    else:
        tile = map_level(_ITEM) >> tile
    split = first(split_join_zip(items), split_join(items))
    name = m["name"]
    return split >> at(loop_of(f"{name}.block", "map"), map_level(_GROUP)) >> at(loop_of(f"{name}.tile", "map"), tile)


def _ends_elementwise(m: Term) -> bool:
    """Is an iteration's row made elementwise in the end, of values that the iteration names?"""
    body = m.args[0].args[0]
    named = 0
    while body.kind == "let":
        named += is_scalar(body.args[0].type)
        body = body.args[1].args[0]
    return named > 0 and body.kind == "map" and body["level"] is None and is_elementwise(body)


def _values_first(m: Term, copies: int, items: int) -> Strategy:
    """The values that rows name, an item a row, in local memory; then all elements of all rows, an item each.

    The copies of the rows get names, because several loops read them.
    """
    strategy: Strategy = seq(*[at((*(1, 0) * k,), let_introduction("to")) for k in range(copies)])
    here: Path = (1, 0) * copies
    body = m.args[0].args[0]
    while body.kind == "let":
        if is_scalar(body.args[0].type):
            values = at((*here, 0, 0), map_level(_ITEM))
            strategy, here = strategy >> at(here, hoist_let_expanded(LOCAL)) >> values, (*here, 1, 0)
        else:
            strategy = strategy >> at((*here, 0, 0), let_inline)
        body = body.args[1].args[0]
    rounds = split_join(items) >> at((0,), map_level(SEQ) >> at((0, 0), map_level(_ITEM)))
    return strategy >> at(here, flatten >> at((0,), rounds))


def _row(type_: Type) -> int | None:
    """The length of a row of scalars; None for other types, and where it is not known."""
    if isinstance(type_, Array) and isinstance(type_.element, Scalar) and type_.size.constant is not None:
        return count(type_.size)
    return None


def _bytes(type_: Type) -> int:
    assert isinstance(type_, Array) and isinstance(type_.element, Scalar)
    return (count(type_.size) + 1) * type_.element.bytes


def _walks_along_rows(m: Term, loops: Loops) -> bool:
    """Is there a loop in each iteration along memory, and the iterations are apart?"""
    for t in subterms(m.args[0]):
        if t.kind in ("reduce", "scan"):
            walk = loops.walk(t)
            if walk is not None and walk.contiguous > walk.strided:
                return True
    return False
