"""Levels of the machine and memories: attributes of patterns, not patterns of their own (LANGUAGE, "Core terms").

The core knows the *kinds* of level; which levels a machine has, their extents and how they nest, is data
(`lithify.machine`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum


class LevelKind(Enum):
    """How the iterations of a map at a level are executed."""

    SEQUENTIAL = "one after another, in a loop"
    UNROLLED = "one after another, as straight code with constant indices"
    VECTOR = "as the lanes of one vector"
    THREADS = "by a pool of CPU threads"
    INLINE = "by every reader anew, at the element it reads"
    HARDWARE = "by hardware indices of a launch (groups, warps, items)"


_KINDS: dict[str, LevelKind] = {
    "seq": LevelKind.SEQUENTIAL,
    "unroll": LevelKind.UNROLLED,
    "vec": LevelKind.VECTOR,
    "inline": LevelKind.INLINE,
    "par": LevelKind.THREADS,
}


def declare_level(name: str) -> None:
    """Declare a hardware level (a machine's data does this for each level it has); declaring twice is harmless."""
    if _KINDS.setdefault(name, LevelKind.HARDWARE) is not LevelKind.HARDWARE:
        raise ValueError(f"{name} is not a hardware level")


for _name in ("global", "group", "cluster", "warpgroup", "warp", "lane", "item"):
    declare_level(_name)


@dataclass(frozen=True, slots=True, order=True)
class Level:
    """A level: `seq`, `unroll`, `vec`, `par`, or a hardware level with an optional dimension (`group1`, `item0`)."""

    name: str
    dim: int | None = None

    def __str__(self) -> str:
        return self.name if self.dim is None else f"{self.name}{self.dim}"

    @property
    def kind(self) -> LevelKind:
        return _KINDS[self.name]

    @staticmethod
    def parse(text: str) -> Level:
        """Read `seq`, `group1`, ...; raises ValueError for names that no machine declares."""
        name = text.rstrip("0123456789")
        if name not in _KINDS:
            raise ValueError(f"no level named {text}; levels are {', '.join(sorted(_KINDS))}")
        return Level(name, int(text[len(name) :]) if len(name) < len(text) else None)


SEQ, UNROLL, VEC, PAR, INLINE = (Level(n) for n in ("seq", "unroll", "vec", "par", "inline"))


@dataclass(frozen=True, slots=True)
class Memory:
    """Where a result is written.

    `out` (the acceptor itself), `heap` (visible to the whole device), `thread` (one a CPU thread), `local` (shared by
    a work-group; `slots` > 1 are taken in turn), `private` (one a work-item), or `reg` with one entry a dimension of
    the value: a level whose hardware index *is* that dimension (no storage), or None. In local memory rows (the last
    dimension) may lie `padding` elements further apart than they are long, so that columns meet different banks.
    """

    name: str
    slots: int = 1
    distribution: tuple[Level | None, ...] = ()
    padding: int = 0

    def __str__(self) -> str:
        if self.name == "reg" and self.distribution:
            return "reg[" + ",".join("-" if level is None else str(level) for level in self.distribution) + "]"
        turns = "" if self.slots == 1 else f":{self.slots}"
        return f"{self.name}{turns}" + (f"+{self.padding}" if self.padding else "")

    @property
    def of_one_item(self) -> bool:
        """Whether each work-item, or thread of a CPU, has such memory of its own, which no other one sees."""
        return self.name in ("thread", "private", "reg")

    @staticmethod
    def parse(text: str) -> Memory:
        """Read `heap`, `local:2`, `local+4`, `reg[item1,item0,-,-]`, ...; raises ValueError for anything else."""
        if text.startswith("reg[") and text.endswith("]"):
            entries = [entry.strip() for entry in text[4:-1].split(",")]
            return Memory("reg", 1, tuple(None if e == "-" else Level.parse(e) for e in entries))
        local = re.fullmatch(r"local(?::([1-9]\d*))?(?:\+(\d+))?", text)
        if local:
            slots, padding = (int(given or default) for given, default in zip(local.groups(), (1, 0), strict=True))
            return replace(LOCAL, slots=slots, padding=padding) if (slots, padding) != (1, 0) else LOCAL
        if text not in MEMORIES:
            raise ValueError(f"no memory named {text}; memories are {', '.join(MEMORIES)}, local:n, local+n, reg[..]")
        return MEMORIES[text]


OUT, HEAP, THREAD, LOCAL, PRIVATE, REG = (Memory(n) for n in ("out", "heap", "thread", "local", "private", "reg"))
MEMORIES: dict[str, Memory] = {m.name: m for m in (OUT, HEAP, THREAD, LOCAL, PRIVATE, REG)}
