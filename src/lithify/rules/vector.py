"""Vectors: loops whose iterations are the lanes of one vector."""

from __future__ import annotations

from lithify.lang.levels import PRIVATE, SEQ, UNROLL, VEC
from lithify.rewrite.rule import Example, rule
from lithify.rewrite.strategy import Strategy, repeat, seq, try_
from lithify.rewrite.traversal import at, one, topdown
from lithify.rules.fusion import map_fusion, reduce_map_fission, reduce_map_fusion, zip_of_maps
from lithify.rules.layout import VIEW_RULES
from lithify.rules.memory import accumulate
from lithify.rules.parallel import map_level, reduce_level
from lithify.rules.reduction import pad_reduce, reduce_lanes

vectorise = rule(
    "vectorise",
    """map@a f xs -> take (length xs) (join (map@a.vector (map[vec]@a.lane f)
                                            (split w (pad 0 (-length xs % w) clamp xs))))""",
    parameters="w",
    when=["w >= 1", "element f", "vec may enclose f"],
    examples=[Example("λ (xs : 7.f32). map (λx. x * 2) xs", (4,))],
    law="""map f = joinVec . map (mapVec f) . splitVec w. The last vector is filled up with copies of the last element
    and the extra results are dropped; both vanish when w divides the length.""",
)

vectorise_loop = rule(
    "vectorise-loop",
    """map[l]@a f xs -> take (length xs) (join (map[l]@a.vector (map[vec]@a.lane f)
                                               (split w (pad 0 (-length xs % w) clamp xs))))""",
    parameters="w",
    when=["w >= 1", "element f", "vec may enclose f"],
    examples=[Example("λ (xs : 8.f32). map[seq] (λx. x * 2) xs", (4,))],
    law="vectorise for a loop that has a level already.",
)


split_lanes = rule(
    "split-lanes",
    "map[vec]@a f xs -> join (map[unroll]@a.vector (map[vec]@a.lane f) (split w xs))",
    parameters="w",
    when=["w >= 1", "w | length xs"],
    examples=[Example("λ (xs : 8.f32). map[vec] (λx. x * 2) xs", (4,))],
    law="A vector that is longer than those of a machine is several side by side.",
)


def vectorised_reduction(name: str, lanes: int) -> Strategy:
    """A reduction in vector registers: `lanes` partial results side by side, combined at the end.

    The array is filled up to a multiple of `lanes`; reduce-lanes; what makes the elements is fused into the step; the
    accumulator is private, its lanes are a vector.
    The operator must be associative and commutative.
    """
    step = f"{name}.step"
    fused = one(topdown(VIEW_RULES["split-map"])) | reduce_map_fusion
    filled = reduce_map_fusion >> pad_reduce(lanes) >> reduce_map_fission
    macro = seq(
        try_(at(name, filled)),
        at(name, reduce_lanes(lanes)),
        repeat(at(step, fused)),
        repeat(at(f"{name}.lane", one(topdown(zip_of_maps)) | map_fusion)),
        at(f"{name}.lane", map_level(VEC)),
        at(step, accumulate(SEQ, PRIVATE, (VEC,), (VEC,))),
        at(f"{name}.lanes", reduce_level(UNROLL)),
    )
    macro.name = f"vectorised-reduction({name}, {lanes})"
    return macro
