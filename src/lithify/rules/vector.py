"""Vectors: loops whose iterations are the lanes of one vector."""

from __future__ import annotations

from lithify.rewrite.rule import Example, rule

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
