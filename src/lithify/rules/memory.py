"""Memories: where results are written, staging, and moving allocations outwards."""

from __future__ import annotations

from lithify.lang.build import let, map_, proj, to, zip_
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, UNROLL, Level
from lithify.lang.term import Term, below_parameters, lambda_, subterms
from lithify.rewrite.rule import Example, Refused, code_rule, rule
from lithify.rewrite.strategy import Context
from lithify.rewrite.template import instantiate
from lithify.rules.holes import carve, find, plug

store = rule(
    "store",
    "map[l]@a f xs -> to[memory] (map[l]@a f xs)",
    parameters="memory",
    examples=[Example("λ (xs : 8.f32). map[item] (λx. x * 2) xs", (LOCAL,))],
    law="A memory says where a result lies, not what it is: the slides' mapLocal f -> toLocal (mapLocal f).",
)

store_reduce = rule(
    "store-reduce",
    "reduce[l, m]@a f z xs -> to[memory] (reduce[l, m]@a f z xs)",
    parameters="memory",
    examples=[Example("λ (xs : 8.f32). reduce[seq] (+) 0 xs", (PRIVATE,))],
    law="store for the result of a reduction.",
)

copy_to = rule(
    "copy-to",
    "e -> to[memory] (copy[levels] e)",
    parameters="memory levels",
    when=["array e"],
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 xs", (LOCAL, (SEQ,)))],
    law="A copy in another memory, made by the loops that `levels` names, one a dimension.",
)

set_memory = rule(
    "set-memory",
    "to[old] e -> to[memory] e",
    parameters="old memory",
    examples=[Example("λ (xs : 8.f32). map (λx. x + 1) (to[local] (map[item] (λx. x * 2) xs))", (LOCAL, PRIVATE))],
    law="Another memory for a result that has one.",
)

drop_store = rule(
    "drop-store",
    "to[m] e -> e",
    examples=[Example("λ (xs : 8.f32). map (λx. x + 1) (to[local] (map[item] (λx. x * 2) xs))")],
    law="Without a memory the value is computed where it is read.",
)

materialise = rule(
    "materialise",
    "reduce@k f z (map@a g xs) -> let p = to[memory] (map@a g xs) in reduce@k f z p",
    parameters="memory",
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 (map (λx. x * 2) xs)", (HEAP,))],
    law="The elements are computed first, all of them, and read back.",
)

# ---- staging: the reader is unchanged, what it reads lies elsewhere ------------------------------------------------

stage = rule(
    "stage",
    "map@a f xs -> map@a f (to[memory] (copy[levels] xs))",
    parameters="memory levels",
    examples=[Example("λ (A : 4.6.f32). map (reduce (+) 0) A", (HEAP, (SEQ, SEQ)))],
    law="What is read is copied first.",
)

stage_transposed = rule(
    "stage-transposed",
    "map@a f xs -> map@a (λp. f (T p)) (to[memory] (copy[levels] (map T xs)))",
    parameters="memory levels",
    examples=[Example("λ (A : 2.4.6.f32). map (λt. map (reduce (+) 0) t) A", (HEAP, (PAR, SEQ, SEQ)))],
    law="stage with each element transposed in memory: packing. The reader sees it as it was.",
)

stage_element = rule(
    "stage-element",
    "map@a f xs -> map@a (λx. let p = to[memory] (copy[levels] x) in f p) xs",
    parameters="memory levels",
    when=["array xs"],
    examples=[Example("λ (A : 4.6.f32). map (reduce (+) 0) A", (LOCAL, (SEQ,)))],
    law="Each element is copied before it is used.",
)

stage_element_transposed = rule(
    "stage-element-transposed",
    "map@a f xs -> map@a (λx. let p = to[memory] (copy[levels] (T x)) in f (T p)) xs",
    parameters="memory levels",
    examples=[Example("λ (A : 2.4.6.f32). map (λt. map (reduce (+) 0) t) A", (LOCAL, (SEQ, SEQ)))],
    law="stage-element with the element transposed in memory.",
)

stage_left = rule(
    "stage-left",
    "map@a f (zip xs ys) -> map@a f (zip (to[memory] (copy[levels] xs)) ys)",
    parameters="memory levels",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). map (*) (zip xs ys)", (LOCAL, (SEQ,)))],
    law="The first of two zipped arrays is copied first: tuples are staged by component.",
)

stage_right = rule(
    "stage-right",
    "map@a f (zip xs ys) -> map@a f (zip xs (to[memory] (copy[levels] ys)))",
    parameters="memory levels",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). map (*) (zip xs ys)", (LOCAL, (SEQ,)))],
    law="The second of two zipped arrays is copied first.",
)

stage_reduce = rule(
    "stage-reduce",
    "reduce@k f z xs -> reduce@k (λacc x. let p = to[memory] (copy[levels] x) in f acc p) z xs",
    parameters="memory levels",
    examples=[Example("λ (A : 4.6.f32). reduce (λacc row. acc + reduce (+) 0 row) 0 A", (LOCAL, (SEQ,)))],
    law="Each element is copied before it is combined.",
)

stage_reduce_left = rule(
    "stage-reduce-left",
    """reduce@k f z (zip xs ys)
       -> reduce@k (λacc x. let p = to[memory] (copy[levels] x.0) in f acc (p, x.1)) z (zip xs ys)""",
    parameters="memory levels",
    examples=[
        Example(
            "λ (A : 4.6.f32) (B : 4.6.f32). reduce (λacc p. acc + reduce (+) 0 (map (*) (zip p.0 p.1))) 0 (zip A B)",
            (LOCAL, (SEQ,)),
        )
    ],
    law="The first component of each element is copied before it is combined.",
)

stage_reduce_right = rule(
    "stage-reduce-right",
    """reduce@k f z (zip xs ys)
       -> reduce@k (λacc x. let p = to[memory] (copy[levels] x.1) in f acc (x.0, p)) z (zip xs ys)""",
    parameters="memory levels",
    examples=[
        Example(
            "λ (A : 4.6.f32) (B : 4.6.f32). reduce (λacc p. acc + reduce (+) 0 (map (*) (zip p.0 p.1))) 0 (zip A B)",
            (LOCAL, (SEQ,)),
        )
    ],
    law="The second component of each element is copied before it is combined.",
)

stage_reduce_both = rule(
    "stage-reduce-both",
    """reduce@k f z (zip xs ys)
       -> reduce@k (λacc x. let p = to[memory] (copy[left] x.0) in
                            let q = to[memory] (copy[right] x.1) in f acc (p, q)) z (zip xs ys)""",
    parameters="memory left right",
    examples=[
        Example(
            "λ (A : 4.6.f32) (B : 4.6.f32). reduce (λacc p. acc + reduce (+) 0 (map (*) (zip p.0 p.1))) 0 (zip A B)",
            (LOCAL, (SEQ,), (SEQ,)),
        )
    ],
    law="Both components of each element are copied before they are combined: a tile of each operand.",
)

stage_out = rule(
    "stage-out",
    "map@a f xs -> copy[levels] (to[memory] (map@a f xs))",
    parameters="memory levels",
    examples=[Example("λ (xs : 8.f32). map (λx. x * 2) xs", (LOCAL, (SEQ,)))],
    law="The result is written to a memory and copied out from there.",
)

# ---- accumulators --------------------------------------------------------------------------------------------------

accumulate = rule(
    "accumulate",
    "reduce@k f z xs -> copy[copy_out] (reduce[level, memory]@k f (copy[copy_in] z) xs)",
    parameters="level memory copy_in copy_out",
    when=["sequential level"],
    examples=[
        Example(
            "λ (A : 4.6.f32). reduce (λacc row. map (+) (zip acc row)) (replicate 6 (f32 0)) A",
            (SEQ, PRIVATE, (UNROLL,), (UNROLL,)),
        )
    ],
    law="The accumulator has a memory of its own; the initial value is copied in and the result out, by named loops.",
)

accumulate_read = rule(
    "accumulate-read",
    "reduce@k f z xs -> reduce[level, memory]@k f (copy[copy_in] z) xs",
    parameters="level memory copy_in",
    when=["sequential level"],
    examples=[
        Example(
            "λ (A : 4.6.f32). map (λs. s * 2) (reduce (λacc row. map (+) (zip acc row)) (replicate 6 (f32 0)) A)",
            (SEQ, PRIVATE, (UNROLL,)),
        )
    ],
    law="accumulate where a loop reads the result from the accumulator: there is nothing to copy out.",
)

double_buffer = rule(
    "double-buffer",
    "reduce[l, m]@k f z xs -> reduce[l, m]@k (λacc x. copy[levels] (to[memory] (f acc x))) z xs",
    parameters="memory levels",
    examples=[
        Example(
            "λ (A : 4.6.f32). "
            "reduce[seq, private] (λacc row. map[seq] (+) (zip (reorder reverse acc) row)) (replicate 6 (f32 0)) A",
            (PRIVATE, (UNROLL,)),
        )
    ],
    law="""The new accumulator is written elsewhere and then copied over the old one, so that f may read any element of
    the old one.""",
)

pipeline = rule(
    "pipeline",
    """reduce@k (λacc x. let p = to[m] (load x) in f acc p) z xs
       -> pipe[lag, roles]@k slots (λacc t. f acc t) (λx. load x) z xs""",
    parameters="slots",
    defaults={"lag": 0, "roles": None},
    when=["slots >= 1"],
    law="""A reduction that loads each element before it combines it, with `slots` loaded elements in flight. The memory
    is that of the pipeline.""",
    examples=[
        Example(
            "λ (A : 4.6.f32). reduce (λacc x. let p = to[local] (map[seq] (λy. y) x) in acc + reduce (+) 0 p) 0 A",
            (2,),
        )
    ],
)

pipeline_both = rule(
    "pipeline-both",
    """reduce@k (λacc x. let p = to[m] (left x) in let q = to[m] (right x) in f acc p q) z xs
       -> pipe[lag, roles]@k slots (λacc t. f acc t.0 t.1) (λx. (left x, right x)) z xs""",
    parameters="slots",
    defaults={"lag": 0, "roles": None},
    when=["slots >= 1"],
    law="pipeline for a reduction that loads a part of each of two operands.",
    examples=[
        Example(
            "λ (A : 4.6.f32) (B : 4.6.f32). reduce (λacc x. "
            "let p = to[local] (map[seq] (λy. y) x.0) in let q = to[local] (map[seq] (λy. y) x.1) in "
            "acc + reduce (+) 0 (map (*) (zip p q))) 0 (zip A B)",
            (2,),
        )
    ],
)

# ---- moving allocations outwards -----------------------------------------------------------------------------------


@code_rule(
    "hoist",
    "map (λx. C[to[m] e]) xs -> let p = to[m] e in map (λx. C[p]) xs",
    kinds="map reduce scan generate iterate",
    defaults={"memory": None},
    when=["e mentions neither x nor a variable bound inside"],
    examples=[Example("λ (A : 4.f32) (ys : 6.f32). map (λa. reduce (+) a (to[heap] (map[seq] (λy. y * 2) ys))) A")],
    law="What does not depend on the iteration is written once, before the loop.",
)
def hoist(term: Term, context: Context, memory: object) -> Term | None:
    """A context hole cannot be said in the notation: the first such `to` in the body, outermost first, of the memory if
    one is given."""
    del context
    body, binders = below_parameters(term.args[0])
    found = find(body, lambda t: t.kind == "to" and memory in (None, t["memory"]), binders)
    if found is None:
        if any(t.kind == "to" for t in subterms(body)):
            raise Refused("every `to[..]` inside depends on a variable bound in the loop")
        return None
    return let(found, lambda p: term.with_args((plug(term.args[0], found, p), *term.args[1:])))


hoist_let = rule(
    "hoist-let",
    "map[l]@a (λx. let p = e in b x p) xs -> let p = e in map[l]@a (λx. b x p) xs",
    examples=[Example("λ (A : 4.f32) (y : f32). map (λa. let s = sqrt y in a * s) A")],
    law="A value that does not depend on the iteration is computed once, before the loop.",
)

hoist_let_expanded = rule(
    "hoist-let-expanded",
    """map@a (λx. let v = e x in b x v) xs
       -> let V = to[memory] (map@a.value e xs) in map@a (λp. b p.0 p.1) (zip xs V)""",
    parameters="memory",
    examples=[
        Example("λ (A : 4.6.f32). map (λrow. let s = reduce (+) 0 row in map (λx. x / s) row) A", (HEAP,)),
    ],
    law="A loop apart computes the values that the iterations name; each iteration reads its own.",
)


@code_rule(
    "hoist-expanded",
    "map (λx. C[to[m] (e x)]) xs -> let p = to[m] (map e xs) in map (λq. C[q.1]) (zip xs p)",
    kinds="map",
    defaults={"memory": None, "level": None},
    when=["e mentions no other variable bound inside"],
    examples=[Example("λ (A : 4.6.f32). map (λrow. reduce (+) 0 (to[heap] (map[seq] (λx. x * 2) row))) A")],
    law="What each iteration writes becomes a row of one array, written by a loop of its own, of that level, before.",
)
def hoist_expanded(term: Term, context: Context, memory: object, level: Level | None) -> Term | None:
    """A context hole cannot be said in the notation: the first such `to` in the body that mentions x."""
    del context
    function, xs = term.args
    body = function.args[0]
    carved = carve(body, lambda t: t.kind == "to" and memory in (None, t["memory"]), whole=False)
    if carved is None:
        return None
    written, rest = carved
    element = function.attrs[0]
    own = map_(
        lambda_(element, written.args[0]),
        xs,
        level or term["level"],
        f"{term['name']}.staged" if term["name"] else None,
    )
    array = to(written["memory"], own)
    reader = lambda_(element, lambda_(written.type, rest))
    return let(
        array,
        lambda p: map_(
            lambda q: instantiate(reader, (proj(0, q), proj(1, q))), zip_(xs, p), term["level"], term["name"]
        ),
    )
