"""Reductions: in blocks, in order, in lanes, in trees; scans in blocks.

partialReduce n f e = map (reduce f e) . split n. These rules come before `reduce-map-fusion`, whose fused operator has
no declared algebra.
"""

from __future__ import annotations

from lithify.lang.index_functions import reverse
from lithify.lang.levels import HEAP, PRIVATE, SEQ, UNROLL, VEC
from lithify.rewrite.rule import Example, rule
from lithify.rewrite.strategy import Strategy, try_

_FILLED = "(pad 0 (-length xs % n) (fill e) xs)"

partial_reduce = rule(
    "partial-reduce",
    f"reduce@k f z xs -> reduce@k f z (map@k.block (reduce@k.tile f e) (split n {_FILLED}))",
    parameters="n",
    when=["n >= 1", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 7.f32). reduce (+) 0 xs", (4,))],
    law="""reduce f z = reduce f z . partialReduce n f e. Each block starts afresh with the neutral element; the last
    block is filled up with it.""",
)

reduce_columns = rule(
    "reduce-columns",
    f"reduce@k f z xs -> reduce@k f z (map@k.block (reduce@k.tile f e) (T (split n {_FILLED})))",
    parameters="n",
    when=["n >= 1", "associative f", "commutative f", "neutral e f"],
    examples=[Example("λ (xs : 7.f32). reduce (+) 0 xs", (4,))],
    law="""partial-reduce of columns: n partial results, of elements that lie n apart, for any length: the last row of n
    is filled up with the neutral element.""",
)

blocked_reduce = rule(
    "blocked-reduce",
    f"reduce@k f z xs -> reduce@k.block (λacc b. f acc (reduce@k.tile f e b)) z (split n {_FILLED})",
    parameters="n",
    when=["n >= 1", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 xs", (4,))],
    law="partial-reduce, with the combination of the blocks fused to it.",
)

split_reduce = rule(
    "split-reduce",
    "reduce@k f z xs -> reduce@k.block (λacc b. reduce@k.tile f acc b) z (split n xs)",
    parameters="n",
    when=["n | length xs"],
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). reduce (λacc p. acc + p.0 * p.1) 0 (zip xs ys)", (4,))],
    law="The same combinations in the same order, in blocks: nothing is asked of f.",
)

pad_reduce = rule(
    "pad-reduce",
    "reduce@k f z xs -> reduce@k f z (pad 0 (-length xs % n) (fill c) xs)",
    parameters="n",
    when=["n >= 1", "ignored c f"],
    examples=[Example("λ (xs : 7.f32) (ys : 7.f32). reduce (λacc p. acc + p.0 * p.1) 0 (zip xs ys)", (4,))],
    law="Elements c with f a c = a for all a change nothing: the length is brought up to a multiple of n.",
)


def split_reduce_any(n: int) -> Strategy:
    """split-reduce for any length: the array is filled up first where n does not divide its length."""
    return try_(pad_reduce(n)) >> split_reduce(n)


split_reduce_back = rule(
    "split-reduce-back",
    "reduce@k (λacc b. reduce@l f acc b) z X -> reduce@k/l f z (join X)",
    examples=[Example("λ (A : 4.6.f32). reduce (λacc row. reduce (+) acc row) 0 A")],
    law="split-reduce backwards.",
)

reduce_join = rule(
    "reduce-join",
    "reduce@k f z (join X) -> reduce@k.block (λacc b. reduce@k.tile f acc b) z X",
    examples=[Example("λ (A : 4.6.f32). reduce (+) 0 (join A)")],
    law="A reduction over joined rows is one row after another.",
)

reduce_concat = rule(
    "reduce-concat",
    "reduce@k f z (concat xs ys) -> reduce@k.rest f (reduce@k.first f z xs) ys",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). reduce (+) 0 (concat xs ys)")],
    law="First the elements of xs, then those of ys.",
)

reduce_range = rule(
    "reduce-range",
    "reduce@k f z xs -> reduce@k.rest f (reduce@k.first f z (take n xs)) (drop n xs)",
    parameters="n",
    when=["n >= 0", "n <= length xs"],
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 xs", (6,))],
    law="The first n elements, then the rest: index-set splitting of a reduction.",
)

reduce_empty = rule(
    "reduce-empty",
    "reduce f z xs -> z",
    when=["length xs == 0"],
    examples=[Example("λ (xs : 0.f32). reduce (+) 1 xs")],
    law="There is nothing to combine.",
)

reduce_initial = rule(
    "reduce-initial",
    "reduce@k f z xs -> f z (reduce@k f e xs)",
    when=["associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32) (z : f32). reduce (+) z xs")],
    law="The initial value may come in at the end.",
)

reduce_reorder = rule(
    "reduce-reorder",
    "reduce@k f z xs -> reduce@k f z (reindex g xs)",
    parameters="g",
    when=["associative f", "commutative f", "invertible g", "length xs == source(g)"],
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 xs", (reverse(8),))],
    law="reduce f z = reduce f z . reorder, for an order that names every element once.",
)

reduce_stride = rule(
    "reduce-stride",
    "reduce@k f z xs -> reduce@k f z (reindex (stride(s, length xs)) xs)",
    parameters="s",
    when=["s | length xs", "associative f", "commutative f"],
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 xs", (4,))],
    law="reduce-reorder with elements that lie s apart brought together.",
)

partial_reduce_reorder = rule(
    "partial-reduce-reorder",
    """reduce@k f z (map@m (reduce@l f e) (split n xs))
       -> reduce@k f z (map@m (reduce@l f e) (split n (reindex (stride(s, length xs)) xs)))""",
    parameters="s",
    when=["s | length xs", "associative f", "commutative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). reduce (+) 0 (map (reduce (+) 0) (split 2 xs))", (4,))],
    law="partialReduce n f e . reorder gives other partial results with the same total.",
)

partial_reduce_split = rule(
    "partial-reduce-split",
    "map@a (reduce@k f e) (split n xs) -> join (map@a.block (λb. map@a.tile (reduce@k f e) (split n b)) (split m xs))",
    parameters="m",
    when=["n | m", "m | length xs"],
    examples=[Example("λ (xs : 8.f32). map (reduce (+) 0) (split 2 xs)", (4,))],
    law="partialReduce n f e = J . *(partialReduce n f e) . S m",
)

partial_reduce_step = rule(
    "partial-reduce-step",
    """map@a (reduce@k f e) (split m xs)
       -> map@a (reduce@k f e) (split (m // n) (map@a.step (reduce@k.step f e) (split n xs)))""",
    parameters="n",
    when=["n | m", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). map (reduce (+) 0) (split 4 xs)", (2,))],
    law="""One level of a tree: blocks of m are blocks of m / n partial results of n elements. Repeated it is
    iterate (partialReduce n), written out, as iterate keeps the type.""",
)

reduce_lanes = rule(
    "reduce-lanes",
    f"""reduce@k f z xs
        -> reduce@k.lanes f z (reduce@k.step (λacc v. map@k.lane (λp. f p.0 p.1) (zip acc v))
                                             (replicate n e) (split n {_FILLED}))""",
    parameters="n",
    when=["n >= 1", "associative f", "commutative f", "neutral e f"],
    examples=[Example("λ (xs : 7.f32). reduce (+) 0 xs", (4,))],
    law="n partial results side by side: lane i takes the elements i, i + n, i + 2 n, ..",
)

# (The blocks' sums have a name, as the scan of them may read them more than once.)
_OF_SUMS = """let own = to[memory] (map@k.block (reduce@k.tile f e) (split n {xs})) in
     let sums = to[memory] (scan@k.sums f z own) in
     {result}"""
_BLOCKS = """join (map@k.block (λp. scan@k.tile f p.0 p.1)
       (zip (take (length xs // n) (concat (singleton z) sums)) (split n {xs})))"""
_WHOLE = "(take (length xs - length xs % n) xs)"

scan_of_sums = rule(
    "scan-of-sums",
    f"scan@k f z xs -> {_OF_SUMS.format(xs='xs', result=_BLOCKS.format(xs='xs'))}",
    parameters="n",
    defaults={"memory": HEAP},
    when=["n | length xs", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). scan (+) 0 xs", (4,))],
    law="""The sums of the blocks first; their scan says where the scan of each block starts. So xs is read twice, but
    nothing is written twice.""",
)

_AND_REST = f"""concat ({_BLOCKS.format(xs=_WHOLE)})
       (scan@k.rest f (nth (length xs // n - 1) sums) (drop (length xs - length xs % n) xs))"""

scan_of_sums_rest = rule(
    "scan-of-sums-rest",
    f"scan@k f z xs -> {_OF_SUMS.format(xs=_WHOLE, result=_AND_REST)}",
    parameters="n",
    defaults={"memory": HEAP},
    when=["n >= 1", "n <= length xs", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 7.f32). scan (+) 0 xs", (3,))],
    law="scan-of-sums for any length: what whole blocks leave over goes on from the last sum.",
)

scan_lanes = rule(
    "scan-lanes",
    """scan@k f z xs
       -> let C = to[memory] (copy[across] (T (split n xs))) in
          let S = to[memory] (scan[unroll, out]@k.step (λa v. map[vec]@k.lane (λp. f p.0 p.1) (zip a v))
                                                       (replicate (length xs // n) e) C) in
          let sums = to[memory] (scan@k.sums f z (nth (n - 1) S)) in
          join (map[vec]@k.lane (λp. map[unroll]@k.step (λx. f p.0 x) p.1)
                                (zip (take (length xs // n) (concat (singleton z) sums)) (T S)))""",
    parameters="n memory across",
    when=["n | length xs", "n >= 1", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). scan (+) 0 xs", (2, PRIVATE, (VEC, UNROLL)))],
    law="""scan-blocked with the blocks side by side, one a lane: they are turned so that lanes are neighbours, scanned
    at the same time, and what came before a block is added to all of it.""",
)

scan_vectors = rule(
    "scan-vectors",
    """scan@k f z xs
       -> let S = to[memory] (map[unroll]@k.block (scan@k.tile f e) (split n xs)) in
          let B = to[memory] (scan[unroll, out]@k.sums (λa b. map[vec]@k.lane (λq. f q (nth (n - 1) b)) a)
                                                       (replicate n z) S) in
          join (map[unroll]@k.block (λp. map[vec]@k.lane (λq. f q.0 q.1) (zip p.0 p.1))
                                    (zip (take (length xs // n) (concat (singleton (replicate n z)) B)) S))""",
    parameters="n memory",
    when=["n | length xs", "n >= 1", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). scan (+) 0 xs", (2, PRIVATE))],
    law="""scan-blocked with a block a vector, where what came before a block stands in every lane: all that moves are
    vectors.""",
)


def _doubling(n: int) -> str:
    """Sums of 1, 2, 4, .. elements up to each, one line each: to those of d elements come those of the d before."""
    lines, d = ["let S1 = to[memory] (map[vec]@k.lane (λx. x) xs) in"], 1
    while d < n:
        pairs = f"(zip (pad {d} 0 (fill z) (take {n - d} S{d})) S{d})"
        step = f"map[vec]@k.lane (λp. f p.0 p.1) {pairs}"
        lines.append(step if 2 * d == n else f"let S{2 * d} = to[memory] ({step}) in")
        d *= 2
    return " ".join(lines)


scan_steps = {
    n: rule(
        f"scan-steps-{n}",
        f"scan@k f z xs -> {_doubling(n)}",
        parameters="memory",
        when=[f"length xs == {n}", "associative f", "neutral z f"],
        examples=[Example(f"λ (xs : {n}.f32). scan (+) 0 xs", (PRIVATE,))],
        law="""In lanes: in step k, each takes over the sum that lies 2^k to its left, if there is one (W. Hillis and G.
        Steele 1986).""",
    )
    for n in (2, 4, 8, 16)
}

scan_blocked = rule(
    "scan-blocked",
    """scan@k f z xs
       -> let S = to[memory] (map@k.block (scan@k.tile f e) (split n xs)) in
          let sums = to[memory] (scan@k.sums f z (map (λb. nth (n - 1) b) S)) in
          join (map@k.block (λp. map@k.tile (λx. f p.0 x) p.1)
                            (zip (take (length xs // n) (concat (singleton z) sums)) S))""",
    parameters="n",
    defaults={"memory": HEAP},
    when=["n | length xs", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). scan (+) 0 xs", (4,))],
    law="Scans of the blocks; the scan of their totals; and what came before it added to each block.",
)

pad_scan = rule(
    "pad-scan",
    f"scan@k f z xs -> take (length xs) (scan@k f z {_FILLED})",
    parameters="n",
    when=["n >= 1", "neutral e f"],
    examples=[Example("λ (xs : 7.f32). scan (+) 0 xs", (4,))],
    law="What comes behind the last element does not matter: the length is brought up to a multiple of n.",
)

scan_alone = rule(
    "scan-alone",
    "scan@k f z xs -> join (map[level] (λx. scan@k f z x) (singleton xs))",
    parameters="level",
    examples=[Example("λ (xs : 8.f32). scan (+) 0 xs", (SEQ,))],
    law="A loop of one iteration: a single group, or a single item of one, scans everything.",
)

scan_shared = rule(
    "scan-shared",
    """scan@k f z xs
       -> let X = to[memory] (split n (join (map[unroll] (λr. map[worker] (λx. x) r) (split w xs)))) in
          let S = to[memory] (map[worker]@k.block (scan@k.tile f e) X) in
          let sums = to[totals] (scan@k.sums f z (map (λb. nth (n - 1) b) S)) in
          map@k.all (λp. f p.0 p.1) (zip (join (map (λo. replicate n o)
                                                   (take (length xs // n) (concat (singleton z) sums)))) (join S))""",
    parameters="n w worker memory totals",
    when=["n | length xs", "w | length xs", "associative f", "neutral e f"],
    examples=[Example("λ (xs : 8.f32). scan (+) 0 xs", (4, 2, SEQ, HEAP, HEAP))],
    law="""scan-blocked by w workers that share memory: they copy the elements together, each scans a block of n, and
    together they add to each element what came before its block.""",
)
