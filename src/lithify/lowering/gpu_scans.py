"""Scans on GPUs: sums of pieces, their scan, and the scan of each piece from there; a piece by the items of a group.

A group copies its piece to local memory, its items scan a block each, and all add what came before. The items' blocks
are an odd number of elements apart there, so that the items meet all banks. What is read twice and written once moves
at two thirds of a copy's speed at most.
"""

from __future__ import annotations

from math import gcd

from lithify.lang.levels import HEAP, INLINE, LOCAL, Level, Memory
from lithify.lang.reading import has_work
from lithify.lang.term import Term
from lithify.lowering.facts import bytes_of, element_of, has_start
from lithify.lowering.gpu_rows import GROUP_TEAM, LOCAL_SHARE, Team
from lithify.lowering.needs import Path, has_loops, is_scalar
from lithify.lowering.work import is_constant, length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Strategy, at, first
from lithify.rules.parallel import map_level
from lithify.rules.reduction import pad_scan, scan_alone, scan_of_sums, scan_shared

_GROUP = Level("group", 0)
# Fewer elements are left to one item.
_ALONE = 32
# Elements of an item's block at most, where there are so many, and at least.
_BLOCK, _SHORTEST = 16, 8
# Pieces that a single group scans one after another sooner than two more kernels would start.
_PIECES_OF_ONE_GROUP = 8


def is_shared(s: Term) -> bool:
    """May the scan begin afresh in each piece?"""
    return is_scalar(element_of(s)) and has_start(s) and not has_loops(s.args[1])


def longest(s: Term, team: Team, model: DeviceModel) -> int:
    """The most elements that a team scans at a time."""
    room = (model.memory("local").bytes or 0) * LOCAL_SHARE
    block = _BLOCK
    while block > 1 and 2 * team.items * team.in_group * (block + 1) * bytes_of(element_of(s)) > room:
        block //= 2
    return team.items * block


def step(s: Term, team: Team | None, model: DeviceModel) -> Strategy | None:
    """The next step for a scan outside of all loops, or below a map whose iterations a team of items works on.

    None where it is left to one item: sums of sums of an unknown number.
    """
    n = length_of(s)
    computed = place_of_work(s.args[2])
    if team is None:
        piece = longest(s, GROUP_TEAM, model)
        if not is_constant(s) and (s["name"] or "").count(".sums") > 1:
            return None
        alone = n <= piece or (n <= _PIECES_OF_ONE_GROUP * piece and computed is None)
        return scan_alone(_GROUP) if alone else _in_pieces(piece, HEAP)
    if n <= _ALONE or not is_constant(s):
        return scan_alone(team.level)
    piece = longest(s, team, model)
    if n > piece:
        return _in_pieces(piece, LOCAL) if computed is None else at((2, *computed), map_level(INLINE))
    block = max(_SHORTEST, -(-n // team.items))
    if n % block:
        return pad_scan(block)
    workers = max(n // block, gcd(n, team.items))
    return scan_shared(block, workers, team.level, Memory(LOCAL.name, padding=1 - block % 2), LOCAL)


def _in_pieces(piece: int, memory: Memory) -> Strategy:
    """Pieces of so many elements, whose sums go to a memory; other lengths are filled up first."""
    return first(scan_of_sums(piece, memory), pad_scan(piece))


def place_of_work(xs: Term) -> Path | None:
    """Where the first map without a level computes elements of the array, if one does."""
    if xs.kind == "map" and xs["level"] is None and has_work(xs.args[0]):
        return ()
    if xs.kind == "map" or xs.pattern.layout:
        for k, a in enumerate(xs.args):
            below = None if a.kind == "lambda" else place_of_work(a)
            if below is not None:
                return (k, *below)
    return None
