"""Tiles of operands that a group of work-items copies to memory of its own, and pipelines of such tiles.

When a nest has been cut into tiles and the reduction moved outside of it, the reduction reads views of the operands in
which its own dimension comes first. `operand_tiles` turns such views inside out: what remains outside is a plain array
of tiles, which can be staged, and the views of a tile are left to the readers.
"""

from __future__ import annotations

from lithify.lang.levels import HEAP, LOCAL, PRIVATE, SEQ, UNROLL, Level
from lithify.rewrite.rule import Example, rule
from lithify.rewrite.strategy import Strategy, first, repeat, seq
from lithify.rewrite.traversal import Where, at, topdown
from lithify.rules.fusion import map_fusion, reduce_map_fusion, zip_of_maps
from lithify.rules.layout import VIEW_RULES, transpose_map_map

ITEM = Level("item")  # for the examples

# ---- views of views, one map each ----------------------------------------------------------------------------------

map_transpose_apart = rule(
    "map-transpose-apart",
    "map (λx. T (e x)) xs -> map (λx. T x) (map (λx. e x) xs)",
    examples=[Example("λ (A : 2.4.6.f32). map (λX. transpose (split 2 (join X))) A")],
    law="map-fission of a transpose.",
)

map_split_apart = rule(
    "map-split-apart",
    "map (λx. split n (e x)) xs -> map (split n) (map (λx. e x) xs)",
    examples=[Example("λ (A : 2.4.6.f32). map (λX. split 3 (join X)) A")],
    law="map-fission of a split.",
)

map_map_apart = rule(
    "map-map-apart",
    "map (λx. map f (e x)) xs -> map (map f) (map (λx. e x) xs)",
    examples=[Example("λ (A : 2.4.6.f32). map (λX. map (split 3) (reorder reverse X)) A")],
    law="map-fission of a map whose function does not depend on the element.",
)

# ---- transposes past what moves only the outer dimension -----------------------------------------------------------

transpose_map_split = rule(
    "transpose-map-split",
    "T (map (split n) X) -> map T (split n (T X))",
    examples=[Example("λ (A : 4.6.f32). transpose (map (split 3) A)")],
    law="Blocks within rows, seen by their position, are blocks of columns.",
)

transpose_map_transpose_split = rule(
    "transpose-map-transpose-split",
    "T (map T (split n X)) -> map (split n) (T X)",
    examples=[Example("λ (A : 4.6.f32). transpose (map transpose (split 2 A))")],
    law="Columns of blocks of rows are columns in blocks.",
)

transpose_reindex = rule(
    "transpose-reindex",
    "T (reindex g X) -> map (reindex g) (T X)",
    examples=[Example("λ (A : 4.6.f32). transpose (reorder (stride 2) A)")],
    law="Columns of reordered rows are columns, reordered.",
)

_TO_TILES = first(
    transpose_map_map,
    transpose_map_split,
    transpose_map_transpose_split,
    transpose_reindex,
    VIEW_RULES["map-map-split"],
    VIEW_RULES["map-reindex"],
    map_transpose_apart,
    map_split_apart,
    map_map_apart,
)


def operand_tiles(reduction: Where) -> Strategy:
    """A reduction over views of two operands as one over their tiles: the views of a tile move into its function."""
    outside = repeat(at((2,), first(topdown(zip_of_maps), topdown(VIEW_RULES["split-map"]), topdown(map_fusion))))
    macro = seq(
        at(reduction, at((2,), repeat(topdown(_TO_TILES)))),
        at(reduction, outside),
        at(reduction, reduce_map_fusion),
    )
    macro.name = "operand-tiles"
    return macro


# ---- copies --------------------------------------------------------------------------------------------------------

copy_shared = rule(
    "copy-shared",
    """X -> split (width X) (join (join (map[rounds] (λr. map[level] (λv. map[vec] (λx. x) v) r)
                                                 (split n (split w (join X))))))""",
    parameters="rounds level n w",
    when=["w | width X", "(n * w) | (length X * width X)"],
    examples=[Example("λ (A : 4.6.f32). reorder reverse A", (UNROLL, SEQ, 3, 2))],
    law="A copy of a matrix by n that work at the same time, each of them w neighbours in a row at a time.",
)

copy_shared_across = rule(
    "copy-shared-across",
    """X -> T (split (length X) (join (join (map[rounds] (λr. map[level] (λv. map[vec] (λx. x) v) r)
                                                    (split n (split w (join (T X))))))))""",
    parameters="rounds level n w",
    when=["w | length X", "(n * w) | (length X * width X)"],
    examples=[Example("λ (A : 4.6.f32). reorder reverse A", (UNROLL, SEQ, 3, 2))],
    law="copy-shared along the columns: for a matrix that lies in memory transposed.",
)

_BY_ITEMS = "split s (join (map[unroll] (λr. map[worker] (λx. x) r) (split n (join {}))))"


def _in_squares(matrix: str, length: str, width: str) -> str:
    return f"""take ({length} X) (join (map[rows] (λb. map (take ({width} X)) (T (join (map[columns] (λtile.
       let t = to[memory] ({_BY_ITEMS.format("tile")}) in T ({_BY_ITEMS.format("(T t)")}))
     (split s (pad 0 (-{width} X % s) clamp (T b))))))) (split s (pad 0 (-{length} X % s) clamp {matrix}))))"""


copy_tiles_shared = rule(
    "copy-tiles-shared",
    f"X -> {_in_squares('X', 'length', 'width')}",
    parameters="rows columns worker n s memory",
    when=["n >= 1", "s >= 1", "n | (s * s)", "width X >= 0"],
    examples=[Example("λ (A : 4.6.f32). reorder reverse A", (SEQ, UNROLL, SEQ, 2, 2, PRIVATE))],
    law="""A copy of a matrix in squares of s x s: n items copy each to a memory along the columns of X, and from there
    along its rows. Squares at the edges are filled up with copies of the last rows and columns, which are dropped.""",
)

copy_tiles_shared_across = rule(
    "copy-tiles-shared-across",
    f"X -> T ({_in_squares('(T X)', 'width', 'length')})",
    parameters="rows columns worker n s memory",
    when=["n >= 1", "s >= 1", "n | (s * s)", "width X >= 0"],
    examples=[Example("λ (A : 4.6.f32). reorder reverse A", (SEQ, UNROLL, SEQ, 2, 2, PRIVATE))],
    law="copy-tiles-shared where X is read along its rows and written along its columns.",
)

# ---- pipelines -----------------------------------------------------------------------------------------------------

pipeline_tiles = rule(
    "pipeline-tiles",
    """reduce@k f z (zip xs ys)
       -> pipe[lag, roles]@k slots (λacc t. f acc (t.0, t.1)) (λx. (to[first] x.0, to[second] x.1)) z (zip xs ys)""",
    parameters="slots first second",
    defaults={"lag": 0, "roles": None},
    when=["slots >= 1"],
    law="A tile of each of two operands is loaded before it is used, with `slots` pairs of tiles in flight.",
    examples=[
        Example(
            "λ (A : 4.6.f32) (B : 4.6.f32). reduce (λacc x. acc + reduce (+) 0 (map (*) (zip x.0 x.1))) 0 (zip A B)",
            (2, LOCAL, LOCAL),
        )
    ],
)

accumulate_pipe = rule(
    "accumulate-pipe",
    "pipe[lag, roles]@k n f load z xs -> to[memory] (pipe[lag, roles]@k n f load (copy[levels] z) xs)",
    parameters="memory levels",
    law="The accumulator of a pipeline has a memory of its own; the initial value is copied in by named loops.",
    examples=[
        Example(
            "λ (A : 4.6.f32). pipe[2] (λacc row. map[seq] (+) (zip acc row)) (λrow. map[seq] (λx. x) row) "
            "(replicate 6 (f32 0)) A",
            (PRIVATE, (SEQ,)),
        )
    ],
)

copy_out = rule(
    "copy-out",
    "to[memory] e -> copy[levels] (to[memory] e)",
    parameters="memory levels",
    when=["array e"],
    examples=[Example("λ (xs : 8.f32). to[private] (map[seq] (λx. x * 2) xs)", (PRIVATE, (SEQ,)))],
    law="What was written to a memory is copied to where the result goes, by loops of its own.",
)

# ---- tiles of vectors ----------------------------------------------------------------------------------------------

_BLOCKS = "(split n (join (pad 0 ((-length xs % n) // w) clamp (split w {}))))"
_WHEN = ["n >= 1", "w | n", "w | length xs"]

split_join_vectors = rule(
    "split-join-vectors",
    f"map@a f xs -> take (length xs) (join (map@a.block (map@a.tile f) {_BLOCKS.format('xs')}))",
    parameters="n w",
    when=_WHEN,
    examples=[Example("λ (xs : 10.f32). map (λx. x * 2) xs", (4, 2))],
    law="""split-join where the last block is filled up with copies of the last w elements, in order: so w elements that
    are neighbours in a block are neighbours in the array.""",
)

split_join_vectors_zip = rule(
    "split-join-vectors-zip",
    f"""map@a f (zip xs ys) -> take (length xs) (join (map@a.block (λq. map@a.tile f (zip q.0 q.1))
        (zip {_BLOCKS.format("xs")} {_BLOCKS.format("ys")})))""",
    parameters="n w",
    when=_WHEN,
    examples=[Example("λ (xs : 10.f32) (ys : 10.f32). map (*) (zip xs ys)", (4, 2))],
    law="split-join-vectors for pairs: the blocks of both arrays, so that each stays by itself.",
)

# ---- sums in parts -------------------------------------------------------------------------------------------------


def _of_parts(operands: str, of_part: str) -> str:
    return f"""map@m (λx. map@n (λy. reduce@k f z (map@j g (zip {operands}))) B) A
       -> let parts = to[memory] (map@k.part (λc.
              map@m (λx. map@n (λy. reduce@k f e (map@j g (zip {of_part}))) c.1) c.0)
              (zip (T (map (λx. split s (p x)) A)) (T (map (λy. split s (q y)) B)))) in
          map@m.sum (λr. map@n.sum (λt. reduce@k.sum f z t) r) (map (λr. T r) (T parts))"""


split_sum = rule(
    "split-sum",
    _of_parts("(p x) (q y)", "x y"),
    parameters="s",
    defaults={"memory": HEAP},
    when=["s | length p", "length p >= 1", "associative f", "neutral e f"],
    examples=[Example("λ (A : 4.6.f32) (B : 5.6.f32). map (λx. map (λy. reduce (+) 0 (map (*) (zip x y))) B) A", (3,))],
    law="""A matrix of sums as the sum of matrices of partial sums, one for each s products (split-K): more of it can be
    done at the same time. The partial sums are written down, and a loop of its own adds them up.""",
)

split_sum_swapped = rule(
    "split-sum-swapped",
    _of_parts("(q y) (p x)", "y x"),
    parameters="s",
    defaults={"memory": HEAP},
    when=["s | length p", "length p >= 1", "associative f", "neutral e f"],
    examples=[Example("λ (A : 4.6.f32) (B : 5.6.f32). map (λx. map (λy. reduce (+) 0 (map (*) (zip y x))) B) A", (3,))],
    law="split-sum where the pairs hold the column's element first.",
)
