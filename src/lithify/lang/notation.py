"""What names mean that a program does not define: primitives, operators, constants, and the slides' names.

The slides' names are primitives at a level or a memory: `mapLocal 1 f` is `map[item1] f`, `toLocal` is `to[local]`.
"""

from __future__ import annotations

import math
from functools import cache

from lithify.lang import build
from lithify.lang.coerce import call
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, UNROLL, VEC, Level, Memory
from lithify.lang.operate import operator_function
from lithify.lang.operators import OPERATORS
from lithify.lang.primitives import PRIMITIVES, to_memory
from lithify.lang.scalars import bool_
from lithify.lang.values import FunctionValue, Numeral, PadMode, Resolve, Value

MAPS: dict[str, Level] = {
    "mapSeq": SEQ, "mapUnroll": UNROLL, "mapVec": VEC, "mapPar": PAR,
    "mapGlobal": Level("global"), "mapWorkgroup": Level("group"), "mapLocal": Level("item"),
    "mapWarp": Level("warp"), "mapLane": Level("lane"),
    "mapGlb": Level("global"), "mapWrg": Level("group"), "mapLcl": Level("item"),
}  # fmt: skip
FOLDS: dict[str, tuple[str, Level]] = {
    "reduceSeq": ("reduce", SEQ),
    "reduceUnroll": ("reduce", UNROLL),
    "scanSeq": ("scan", SEQ),
}
MEMORIES: dict[str, Memory] = {"toGlobal": HEAP, "toLocal": LOCAL, "toPrivate": PRIVATE}
ALIASES = {"splitVec": "split", "joinVec": "join", "reducePart": "partialReduce"}


def builtin(name: str, resolve: Resolve | None = None) -> Value | None:
    """The meaning of a name that the program does not define, or None; `resolve` gives meaning to free sizes."""
    name = ALIASES.get(name, name)
    if name == "partialReduce":
        return _partial_reduce(resolve)
    if name in PRIMITIVES:
        return PRIMITIVES[name].function(resolve)
    if name in MAPS:
        return _map_at(name, MAPS[name])
    if name in FOLDS:
        primitive, level = FOLDS[name]
        return PRIMITIVES[primitive].function(resolve, level=level)
    if name in MEMORIES:
        return to_memory(MEMORIES[name])
    if name in OPERATORS:
        return operator_function(name, resolve)
    return _constants().get(name)


def names() -> tuple[str, ...]:
    """All names that `builtin` knows, for suggestions."""
    return (*PRIMITIVES, *MAPS, *FOLDS, *MEMORIES, *ALIASES, *OPERATORS, *_constants())


def _map_at(name: str, level: Level) -> FunctionValue:
    """`mapLocal f xs` and `mapLocal 1 f xs`."""

    def start(first: Value) -> Value:
        if isinstance(first, Numeral) and isinstance(first.value, int):
            return PRIMITIVES["map"].function(level=Level(level.name, first.value))
        return call(PRIMITIVES["map"].function(level=level), first)

    return FunctionValue(name, 1, start)


def _partial_reduce(resolve: Resolve | None) -> FunctionValue:
    """`partialReduce n f z xs`; without n, as the slides write it, all elements are one part."""

    def start(first: Value) -> Value:
        whole = isinstance(first, FunctionValue)
        return call(PRIMITIVES["reduce" if whole else "partialReduce"].function(resolve), first)

    return FunctionValue("partialReduce", 1, start)


@cache
def _constants() -> dict[str, Value]:
    return {
        "true": build.const(True, bool_),
        "false": build.const(False, bool_),
        "inf": Numeral(math.inf),
        "nan": Numeral(math.nan),
        "pi": Numeral(math.pi),
        **{mode: PadMode(mode) for mode in ("clamp", "mirror", "wrap")},
    }
