"""Algorithmic choices: how the elements of a map are grouped, how iterations are cut, what is named."""

from __future__ import annotations

from lithify.lang.build import let
from lithify.lang.levels import SEQ, UNROLL
from lithify.lang.term import Term
from lithify.rewrite.rule import Example, code_rule, rule
from lithify.rewrite.strategy import Context, Strategy, first, repeat
from lithify.rewrite.template import instantiate
from lithify.rules.holes import find, plug

split_join = rule(
    "split-join",
    """map@a f xs -> take (length xs) (join (map@a.outer (map@a.inner f)
                                            (split n (pad 0 (-length xs % n) clamp xs))))""",
    parameters="n",
    defaults={"outer": "block", "inner": "tile"},
    when=["n >= 1"],
    examples=[Example("λ (xs : 7.f32). map (λx. x * 2) xs", (4,))],
    law="""Elements in blocks of n. The last block is filled up with copies of the last element, so that f meets no
    element that it did not meet before, and the extra results are dropped; both vanish when n divides the length.""",
)

split_join_zip = rule(
    "split-join-zip",
    """map@a f (zip xs ys) -> take (length xs) (join (map@a.block (λq. map@a.tile f (zip q.0 q.1))
        (zip (split n (pad 0 (-length xs % n) clamp xs)) (split n (pad 0 (-length xs % n) clamp ys)))))""",
    parameters="n",
    when=["n >= 1"],
    examples=[Example("λ (xs : 7.f32) (ys : 7.f32). map (*) (zip xs ys)", (4,))],
    law="split-join for pairs: the blocks of both arrays, so that each stays by itself.",
)

split_join_zeros = rule(
    "split-join-zeros",
    """map@a f xs -> take (length xs) (join (map@a.block (map@a.tile f)
                                            (split n (pad 0 (-length xs % n) (fill o) xs))))""",
    parameters="n",
    when=["n >= 1", "zeros o xs"],
    examples=[Example("λ (xs : 7.f32). map (λx. x * 2) xs", (4,))],
    law="""split-join whose last block is filled up with zeros: what f makes of them is dropped. Vectors read them under
    a mask, where copies of the last element would be gathered.""",
)

split_join_zeros_zip = rule(
    "split-join-zeros-zip",
    """map@a f (zip xs ys) -> take (length xs) (join (map@a.block (λq. map@a.tile f (zip q.0 q.1))
        (zip (split n (pad 0 (-length xs % n) (fill o) xs)) (split n (pad 0 (-length xs % n) (fill z) ys)))))""",
    parameters="n",
    when=["n >= 1", "zeros o xs", "zeros z ys"],
    examples=[Example("λ (xs : 7.f32) (ys : 7.f32). map (*) (zip xs ys)", (4,))],
    law="split-join-zeros for pairs: the blocks of both arrays, so that each stays by itself.",
)

split_loop = rule(
    "split-loop",
    """map[l]@a f xs -> take (length xs) (join (map[outer]@a.block (map[inner]@a.tile f)
                                               (split n (pad 0 (-length xs % n) clamp xs))))""",
    parameters="n outer inner",
    when=["n >= 1"],
    examples=[Example("λ (xs : 8.f32). map[seq] (λx. x * 2) xs", (4, SEQ, UNROLL))],
    law="split-join for a loop that has a level already: an outer and an inner loop, each with its own level.",
)

join_map_map = rule(
    "join-map-map",
    "join (map@a (map@b f) X) -> map@a/b f (join X)",
    examples=[Example("λ (A : 4.6.f32). join (map (map (λx. x * 2)) A)")],
    law="split-join backwards: a nest over rows is a map over the elements of all rows.",
)

single_row = rule(
    "single-row",
    "map@a f xs -> split (length f) (f (nth 0 xs))",
    when=["length xs == 1", "length f >= 1"],
    examples=[Example("λ (A : 1.6.f32). map (λrow. map (λx. x * 2) row) A")],
    law="A loop of one iteration is that iteration: its row is the only one of a matrix.",
)

flatten = rule(
    "flatten",
    """map@a (λx. map@b (h x) (p x)) A
       -> split (length p) (map@a/b (λc. h c.0 c.1) (join (map (λx. map (λy. (x, y)) (p x)) A)))""",
    when=["length p >= 1"],
    examples=[Example("λ (A : 4.6.f32). map (λrow. map (λx. x * row[0]) row) A")],
    law="A nest of two loops is one loop over all pairs of their elements: what is spread over a machine is longer.",
)

split_range = rule(
    "split-range",
    "map@a f xs -> concat (map@a.first f (take n xs)) (map@a.rest f (drop n xs))",
    parameters="n",
    defaults={"first": "first", "rest": "rest"},
    when=["n >= 0", "n <= length xs"],
    examples=[Example("λ (xs : 8.f32). map (λx. x * 2) xs", (6,))],
    law="The first n elements apart from the rest: index-set splitting, which frees the larger part of conditions.",
)

iterate_split = rule(
    "iterate-split",
    "iterate n f x -> iterate (n - m) f (iterate m f x)",
    parameters="m",
    when=["m >= 0", "m <= n"],
    examples=[Example("λ (xs : 8.f32). iterate 6 (map (λx. x * 2)) xs", (2,))],
    law="Applying f n times is applying it m times, then n - m times.",
)

iterate_nest = rule(
    "iterate-nest",
    "iterate n f x -> iterate (n // m) (λy. iterate m f y) x",
    parameters="m",
    when=["m | n"],
    examples=[Example("λ (xs : 8.f32). iterate 6 (map (λx. x * 2)) xs", (2,))],
    law="Applying f n times is n / m times applying it m times.",
)

iterate_step = rule(
    "iterate-step",
    "iterate n f x -> iterate (n - 1) f (f x)",
    when=["n >= 1"],
    examples=[Example("λ (xs : 8.f32). iterate 3 (map (λx. x * 2)) xs")],
    law="The definition of iterate, for at least one application.",
)

iterate_zero = rule(
    "iterate-zero",
    "iterate n f x -> x",
    when=["n == 0"],
    examples=[Example("λ (xs : 8.f32). iterate 0 (map (λx. x * 2)) xs")],
    law="The definition of iterate, for no application.",
)


def iterate_unroll() -> Strategy:
    """`iterate n f x` for a constant n, as n applications of f."""
    return repeat(first(iterate_step, iterate_zero))


generate_map = rule(
    "generate-map",
    "map f (generate n g) -> generate n (λi. f (g i))",
    examples=[Example("map (λx. x * 2) (generate 8 (λi. f32 i))")],
    law="A map over a generated array generates the results.",
)

# ---- let -----------------------------------------------------------------------------------------------------------

let_atom = rule(
    "let-atom",
    "let x = e in b x -> b e",
    when=["atomic e"],
    examples=[Example("λ (xs : 8.f32). map (λx. let y = x in y * y) xs")],
    law="A name for a variable, a constant or a component of one is that itself.",
)

let_inline = rule(
    "let-inline",
    "let x = e in b x -> b e",
    examples=[Example("λ (xs : 8.f32). map (λx. let y = x + 1 in y * y) xs")],
    law="Beta. The value is computed again wherever the body reads it: for values that are cheap or read once.",
)

let_unused = rule(
    "let-unused",
    "let x = e in b -> b",
    examples=[Example("λ (xs : 8.f32). map (λx. let y = x + 1 in x) xs")],
    law="A value that the body does not read is not needed.",
)


@code_rule(
    "let-introduction",
    "C[e] -> let x = e in C[x]",
    kinds="map reduce scan op tuple join transpose take drop split zip",
    parameters="kind",
    when=["e is closed inside C"],
    examples=[Example("λ (xs : 8.f32). map (λx. x * reduce (+) 0 xs) xs", ("reduce",))],
    law="A value that is read several times is computed once, under a name.",
)
def let_introduction(term: Term, context: Context, kind: str) -> Term | None:
    """A context hole cannot be said in the notation: e is the first subterm of the pattern `kind`, itself excluded,
    that mentions no variable bound between the root and it; all its occurrences are replaced."""
    del context
    found = find(term, lambda t: t.kind == kind and t is not term)
    return None if found is None else let(found, lambda x: plug(term, found, x))


@code_rule(
    "let-out",
    "p (let x = e in b x) -> let x = e in p (b x)",
    kinds="map reduce scan op tuple join transpose take drop split zip slide pad let to at proj",
    examples=[Example("λ (x : f32). (let y = x + 1 in y * y) + 3")],
    law="A let in an argument that is evaluated once anyway moves in front of the pattern.",
)
def let_out(term: Term, context: Context) -> Term | None:
    """One rule for every pattern and each of its arguments that is not a function; the notation would need one each."""
    del context
    for place, argument in enumerate(term.args):
        if argument.kind == "let" and not (term.kind == "let" and place == 1):
            value, body = argument.args

            def outside(x: Term, place: int = place, body: Term = body) -> Term:
                args = list(term.args)
                args[place] = instantiate(body, (x,))
                return term.with_args(tuple(args))

            return let(value, outside)
    return None
