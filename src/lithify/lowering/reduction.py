"""The case study of parallel reduction: seven versions, each a derivation from `reduce f z xs`.

M. Harris, "Optimizing Parallel Reduction in CUDA" (2007), in the form in which the Lift talks show it. What a version
changes in the kernel is a change of rules here: who adds what to what, and how often all wait. Two of the hand-written
kernels are not portable (5 and 6 count on 32 work-items moving in lockstep) and one is wrong (7 adds elements more than
once). These are right everywhere: a barrier stands wherever an item reads what another wrote.

All versions reduce blocks in work-groups and write one result a group; the rest is left to the device's default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from lithify.lang.errors import RewriteFailed
from lithify.lang.levels import HEAP, LOCAL, Level
from lithify.lowering.needs import Path, is_scalar
from lithify.lowering.work import length_of
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, Strategy, at, id_
from lithify.rules.lowering import copy_loop, every_nth, name_initial, one_item, to_memory
from lithify.rules.memory import materialise
from lithify.rules.parallel import map_level
from lithify.rules.reduction import partial_reduce, reduce_range, reduce_stride

GROUP, ITEM = Level("group", 0), Level("item", 0)
# Work-items of a group.
ITEMS = 256
# Sums that every item adds up by itself instead of waiting once more.
LAST = 32
# Groups a multiprocessor where each takes as many elements as there are.
GROUPS_PER_CORE = 8

# From `let p = to[heap] (join (map[group] (λb. let s = reduce .. in ..) ..)) in ..` to that reduce.
_GROUP_SUM: Path = (0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Version:
    """One version. `loads`: elements that an item combines while loading (None: as many as there are).

    `partners`: whether an item adds neighbours or elements half the length apart; `idle`: whether the items that do not
    add are chosen by a modulo among all, or none are asked; `fan_in`: values that an item combines in a step of the
    tree; `last`: the number of values that are left to every item.
    """

    name: str
    purpose: str
    loads: int | None = 1
    partners: Literal["neighbours", "halves"] = "halves"
    idle: Literal["modulo", "none"] = "none"
    fan_in: int = 2
    last: int = 1
    devices: ClassVar[str] = "devices with work-groups (OpenCL)"

    def __call__(self, derivation: Derivation, model: DeviceModel) -> None:
        """Apply the version to a program that is a reduction of scalars.

        Raises RewriteFailed for other programs, and on devices without work-groups.
        """
        r = derivation.term
        if r.kind != "reduce" or not is_scalar(r.type):
            raise RewriteFailed(f"{self.name} is for a program `reduce f z xs` of scalars, not for {r}")
        if not (model.has_level(GROUP) and model.has_level(ITEM)):
            raise RewriteFailed(
                f"{self.name} is for {self.devices}, not for {model}",
                hint=f'choose the device first: p.on("opencl:0").by("{self.name}"), or -d opencl:0',
            )
        n = length_of(r.args[2])
        shares = self.loads or max(2, n // (model.cores * GROUPS_PER_CORE * ITEMS))
        block = ITEMS * shares
        if n < block:
            raise RewriteFailed(f"{self.name} needs at least {block} elements, {n} given")
        where: Path = ()
        if n % block:
            derivation.apply(reduce_range(n // block * block) >> name_initial)
            where = (0,)
        derivation.apply(at(where, partial_reduce(block) >> materialise(HEAP)))
        derivation.apply(at((*where, 0, 0), one_item(GROUP, ITEM)))
        inner = (*where, *_GROUP_SUM)
        derivation.apply(at(inner, self._load(shares)))
        values = ITEMS
        while values > self.last:
            fan_in = min(self.fan_in, values // self.last)
            derivation.apply(at(inner, self._step(values, fan_in)))
            values //= fan_in

    def _load(self, shares: int) -> Strategy:
        """Every item brings one value to local memory."""
        if shares == 1:
            return at((2,), copy_loop(ITEM) >> to_memory(LOCAL))
        return reduce_stride(ITEMS) >> partial_reduce(shares) >> at((2,), map_level(ITEM) >> to_memory(LOCAL))

    def _step(self, values: int, fan_in: int) -> Strategy:
        """From `values` values to one in `fan_in` of them."""
        order = reduce_stride(values // fan_in) if self.partners == "halves" else id_
        items: Strategy = map_level(ITEM)
        if self.idle == "modulo":
            items = every_nth(ITEMS * fan_in // values) >> at((0, 1, 0), items)
        return order >> partial_reduce(fan_in) >> at((2,), items >> to_memory(LOCAL))


VERSIONS = (
    Version("reduction-1", "neighbours, by the items that a modulo chooses", partners="neighbours", idle="modulo"),
    Version("reduction-2", "neighbours, by the first items", partners="neighbours"),
    Version("reduction-3", "elements half the length apart"),
    Version("reduction-4", "the first addition while loading", loads=2),
    Version("reduction-5", "no waiting for the last 32 sums", loads=2, last=LAST),
    Version("reduction-6", "eight values a step, so that all wait twice", loads=2, fan_in=8, last=LAST),
    Version("reduction-7", "as many elements an item as there are", loads=None, fan_in=8, last=LAST),
)
