"""The rewrite rules, one file a family. `all_rules()` lists them by name.

    algorithmic   split-join(n), split-loop(n, outer, inner), join-map-map, split-range(n), iterate-.., let-..
    fusion        map-fusion, reduce-map-fusion, scan-map-fusion, zip-of-maps, ..; map-fission, epilogue-fission,
                  reduce-map-fission
    interchange   map-map-interchange, map-reduce-interchange (plain, -left, -right, -invariant, -general;
                  `map_reduce_shared` is the first that fits), map-scan-, reduce-reduce-interchange
    reduction     partial-reduce(n), blocked-reduce(n), split-reduce(n), pad-reduce(n), reduce-lanes(n),
                  reduce-stride(s), partial-reduce-.., reduce-join, scan-blocked(n), ..
    layout        movement of views past maps, zips and each other; reindex-both(g), coalesce(s); layout-out
    accumulators  accumulator-layout: joins, takes and transposes out of a reduction of arrays
    memory        store(memory), stage(memory, levels) and its variants, stage-out, accumulate(level, memory, copy_in,
                  copy_out), double-buffer, hoist, hoist-expanded, ..
    parallel      map-level(level), map-relevel(old, level), reduce-level(level, memory), `nest(levels)`
    tiles         tiles that a group of items copies: `operand_tiles`, copy-shared(..), pipeline-tiles(slots, first,
                  second), accumulate-pipe(memory, levels), copy-out(memory, levels), split-join-vectors(n, w),
                  copy-tiles-shared(..), split-sum(s)
    instructions  use-instruction(row), reduce-operand-fission(i), offset-signed(i), planar-sum
    vector        vectorise(w), vectorise-loop(w); `vectorised_reduction`
    lowering      to-memory, bind-memory, copy-loop, .. : the small steps of the default lowerings
    matrix        macro rules (strategies): tile, outer_product, block_reduction, tiling, register_blocking, .._2d
    stencil       slide-tile(u), slide-tile-any(u), slide-tile-2d(u, w), slide-split, slide-rotate,
                  separate-convolution; `tiled_stencil`

A rule is a strategy: at once if it has no parameters, otherwise when called with them. Lengths need not be divisible
where the list says (n) without a condition: padding is part of the rule and vanishes where n divides.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType

from lithify.rewrite.rule import Rule
from lithify.rules import (
    accumulators,
    algorithmic,
    fusion,
    instructions,
    interchange,
    layout,
    lowering,
    matrix,
    memory,
    parallel,
    reduction,
    stencil,
    tiles,
    vector,
)

FAMILIES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        algorithmic,
        fusion,
        interchange,
        reduction,
        layout,
        accumulators,
        memory,
        parallel,
        tiles,
        vector,
        instructions,
        stencil,
        lowering,
        matrix,
    )
}


def _declared(module: ModuleType) -> Iterator[Rule]:
    """The rules of a family, in order: those that have names in its module, then those of its table."""
    for value in (*vars(module).values(), *getattr(module, "VIEW_RULES", {}).values()):
        if isinstance(value, Rule):
            yield value


@cache
def _families() -> dict[str, tuple[Rule, str]]:
    """Every rule by name, with its family: the first that has it, as later ones may import it."""
    found: dict[str, tuple[Rule, str]] = {}
    for family, module in FAMILIES.items():
        for each in _declared(module):
            found.setdefault(each.name, (each, family))
    return found


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule by name, in the order of the families."""
    return {name: rule for name, (rule, _) in _families().items()}


def family_of(rule: Rule) -> str:
    """The family (file) that declares the rule."""
    return _families()[rule.name][1]
