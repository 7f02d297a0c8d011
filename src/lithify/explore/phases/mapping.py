"""The second phase: which part of the machine runs a loop, where accumulators lie, which operands are copied closer.

The mapping of the outer loops is fixed for each kind of device, as best practice has it; what is chosen is which
operands are packed. What is left open is for the device's default.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from lithify.explore.phases import filters
from lithify.explore.phases.shape import is_loop
from lithify.lang.errors import RewriteFailed
from lithify.lang.levels import HEAP, LOCAL, OUT, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Level, Memory
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, shape_of
from lithify.lowering.facts import element_of
from lithify.lowering.needs import Path, has_loops, is_scalar, subterm
from lithify.lowering.work import count
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, Strategy, at, loop_of, repeat, topdown
from lithify.rules.lowering import copy_loop
from lithify.rules.memory import accumulate, hoist_let, materialise, stage, stage_transposed
from lithify.rules.parallel import map_level, reduce_level

_PLAIN, _TRANSPOSED = "p", "t"
# Rows that are copied as vectors; longer ones by loops.
_VECTORS = (4, 8, 16, 32, 64)


@dataclass(frozen=True, order=True)
class Mapping:
    """Which loops' arrays are packed before the loop: (name, "p" as it lies or "t" with rows and columns swapped)."""

    packed: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return "+".join(f"{loop}:{how}" for loop, how in self.packed) or "-"

    @staticmethod
    def parse(text: str) -> Mapping:
        """Read what `str` gives. Raises RewriteFailed for anything else."""
        if text == "-":
            return Mapping()
        packed = []
        for part in text.split("+"):
            loop, _, how = part.partition(":")
            if how not in (_PLAIN, _TRANSPOSED):
                raise RewriteFailed(f"{text!r} does not say how operands are packed")
            packed.append((loop, how))
        return Mapping(tuple(packed))


def mappings(program: Term, model: DeviceModel) -> Iterator[Mapping]:
    """The choices for a program on a device, the plainest first."""
    yield Mapping()
    scratch = scratch_memory(model)
    if scratch is None:
        return
    candidates = [loop["name"] for loop in _spine(program)[0][1:] if _has_panels(loop)]
    for number in range(1, int(filters.PACKED.limit) + 1):
        for loops in itertools.combinations(candidates, number):
            for hows in itertools.product((_PLAIN, _TRANSPOSED), repeat=number):
                yield Mapping(tuple(zip(loops, hows, strict=True)))


def scratch_memory(model: DeviceModel) -> Memory | None:
    """Where a thread, or a group of one item, keeps what it has packed; None on machines where items share that."""
    if model.kind == "gpu":
        return None
    return THREAD if model.has_level(PAR) else LOCAL


def outer_levels(model: DeviceModel, depth: int) -> tuple[Level, ...]:
    """The levels of the outermost loops, of which there are `depth`: the fixed part of the mapping."""
    if model.kind != "gpu":
        return (PAR if model.has_level(PAR) else Level("group", 0),)
    if depth >= 4:
        return (Level("group", 1), Level("group", 0), Level("item", 1), Level("item", 0))
    return (Level("global", 1), Level("global", 0)) if depth >= 2 else (Level("global", 0),)


def map_to_machine(derivation: Derivation, mapping: Mapping, model: DeviceModel) -> None:
    """Apply a mapping. Raises RewriteFailed where it does not fit the program."""
    scratch = scratch_memory(model)
    for loop, how in mapping.packed:
        if scratch is None:
            raise RewriteFailed(f"{model} has no memory in which one loop packs for itself", hint="leave packing out")
        derivation.once(_pack(_loop(derivation.term, loop), how == _TRANSPOSED, scratch), loop_of(loop, "map"))
        derivation.apply(repeat(topdown(hoist_let)))
    spine, core = _spine(derivation.term)
    if not spine and core is not None and _is_sum_of_sums(core):
        derivation.once(materialise(HEAP), loop_of(core["name"], "reduce"))
        spine = _spine(derivation.term.args[0])[0]
    levels = outer_levels(model, len(spine))
    for number, outer in enumerate(spine):
        level = levels[number] if number < len(levels) else None
        if level is None and not is_scalar(element_of(outer)):
            level = SEQ
        if level is not None:
            derivation.once(map_level(level), loop_of(outer["name"], "map"))
    for term in subterms(derivation.term):
        if term.kind == "reduce" and isinstance(term.type, Array) and term["name"] is not None:
            _accumulators(derivation, term)
            break


def _is_sum_of_sums(core: Term) -> bool:
    """A sum of scalars that are sums themselves: partial sums, which may run in parallel."""
    return is_scalar(core.type) and core.args[2].kind == "map" and has_loops(core.args[2].args[0])


def _accumulators(derivation: Derivation, outermost: Term) -> None:
    """An array that is accumulated lies in registers; reductions inside go on in place; its last dimension is lanes."""
    dims = len(shape_of(outermost.type)[0])
    levels = (UNROLL,) * (dims - 1) + (VEC,)
    name = outermost["name"]
    derivation.once(accumulate(SEQ, PRIVATE, levels, levels), loop_of(name, "reduce"))
    in_place = reduce_level(SEQ, OUT) >> at((1,), _copy(levels))
    path = _find(derivation.term, name)
    path = (*path, 0, 0, 0)
    while True:
        body = subterm(derivation.term, path)
        if body.kind == "reduce" and isinstance(body.type, Array):
            derivation.apply(at(path, in_place))
            path = (*path, 0, 0, 0)
        elif body.kind == "let":
            path = (*path, 1, 0)
        else:
            break
    for level in levels:
        body = subterm(derivation.term, path)
        if body.kind != "map" or body["level"] is not None:
            return
        derivation.apply(at(path, map_level(level)))
        path = (*path, 0, 0)


def _copy(levels: tuple[Level, ...]) -> Strategy:
    first, *rest = levels
    return copy_loop(first) >> at((0, 0), _copy(tuple(rest))) if rest else copy_loop(first)


def _pack(loop: Term, transposed: bool, memory: Memory) -> Strategy:
    sizes = [count(size) for size in shape_of(loop.args[1].type)[0]]
    inner = sizes[-2] if transposed else sizes[-1]
    levels = (SEQ,) * (len(sizes) - 1) + (VEC if inner in _VECTORS else SEQ,)
    return stage_transposed(memory, levels) if transposed else stage(memory, levels)


# ---- finding loops -------------------------------------------------------------------------------------------------


def _spine(program: Term) -> tuple[list[Term], Term | None]:
    """The maps from the outermost inwards, views aside, and the reduction that they stand around, if any."""
    found, term = [], program
    while True:
        if term.kind == "let":
            term = term.args[1].args[0]
        elif term.kind == "map" and not is_loop(term):
            term = term.args[1]
        elif term.kind == "map":
            found.append(term)
            term = term.args[0].args[0]
        elif term.kind in ("join", "transpose", "take", "drop", "split", "to"):
            term = term.args[0]
        else:
            return found, term if term.kind == "reduce" else None


def _has_panels(loop: Term) -> bool:
    """A loop over blocks of rows: what it runs over has at least three dimensions, so packing makes panels of it."""
    return len(shape_of(loop.args[1].type)[0]) >= 3 and loop.args[1].kind != "zip"


def _loop(program: Term, name: str) -> Term:
    for loop in _spine(program)[0]:
        if loop["name"] == name:
            return loop
    raise RewriteFailed(f"there is no loop {name} to pack for")


def _find(term: Term, name: str) -> Path:
    """The place of the reduction of a name, the outermost one."""
    wanted = loop_of(name, "reduce")

    def search(t: Term) -> Path | None:
        if wanted(t):
            return ()
        for index, child in enumerate(t.args):
            found = search(child)
            if found is not None:
                return (index, *found)
        return None

    found = search(term)
    if found is None:
        raise RewriteFailed(f"there is no reduction {name}")
    return found
