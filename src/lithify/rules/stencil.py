"""Stencils: windows in tiles, windows before splits, windows that rotate through registers, separable convolutions."""

from __future__ import annotations

from lithify.arith import Expr, ceil_div, maximum
from lithify.rewrite.metaterms import formula_function
from lithify.rewrite.rule import Example, rule
from lithify.rewrite.strategy import Strategy, repeat, seq
from lithify.rewrite.traversal import topdown
from lithify.rules.fusion import map_fusion
from lithify.rules.layout import VIEW_RULES, map_join


@formula_function
def tile_padding(length: Expr, window: Expr, step: Expr, tile: Expr) -> Expr:
    """How many elements are missing for whole tiles: v / s windows a tile, for v = tile + step - window."""
    windows, each = (length - window) // step + 1, (tile + step - window) // step
    missing = ceil_div(windows, each) * each - windows
    return maximum(0, step * missing - (length - window) % step)


slide_tile = rule(
    "slide-tile",
    "slide n s xs -> join (map (slide n s) (slide u (u + s - n) xs))",
    parameters="u",
    when=["u >= n", "s | (u + s - n)", "(u + s - n) | (((length xs - n) // s + 1) * s)", "u <= length xs"],
    examples=[Example("λ (xs : 10.f32). map (reduce (+) 0) (slide 3 1 xs)", (6,))],
    law="""Overlapped tiling: tiles of u elements that share n - s elements with the next. A tile holds v / s windows,
    for v = u + s - n; the tiles hold all windows, and no window twice, when v / s divides their number.""",
)

slide_tile_any = rule(
    "slide-tile-any",
    """slide n s xs -> take ((length xs - n) // s + 1) (join (map (slide n s) (slide u (u + s - n)
                              (pad 0 (tile_padding(length xs, n, s, u)) clamp xs))))""",
    parameters="u",
    when=["u >= n", "s | (u + s - n)", "length xs >= 1"],
    examples=[Example("λ (xs : 11.f32). map (reduce (+) 0) (slide 3 1 xs)", (6,))],
    law="slide-tile for any number of windows: the array is lengthened to whole tiles, and the extra windows left out.",
)

slide_tile_2d = rule(
    "slide-tile-2d",
    """map T (slide n s (map (slide m r) X))
       -> join (map (λR. map join (T R)) (map (map (λt. map T (slide n s (map (slide m r) t))))
                (map T (slide u (u + s - n) (map (slide w (w + r - m)) X)))))""",
    parameters="u w",
    when=[
        "u >= n",
        "s | (u + s - n)",
        "(u + s - n) | (((length X - n) // s + 1) * s)",
        "u <= length X",
        "w >= m",
        "r | (w + r - m)",
        "(w + r - m) | (((width X - m) // r + 1) * r)",
        "w <= width X",
    ],
    law="""slide-tile in both dimensions: windows n x m in tiles of u x w elements, and the rows of windows put together
    again. Three dimensions are slide-tile once more around it.""",
    examples=[
        Example(
            "λ (X : 6.6.f32). map (map (λw. reduce (+) 0 (join w))) (map transpose (slide 3 1 (map (slide 3 1) X)))",
            (4, 4),
        )
    ],
)

slide_split = rule(
    "slide-split",
    "split k (slide n s xs) -> map (slide n s) (slide (s * (k - 1) + n) (s * k) xs)",
    examples=[Example("λ (xs : 10.f32). split 4 (slide 3 1 xs)")],
    law="""Blocks of k windows are the windows of longer windows, s k apart. (The form with length k + n - s and step k
    is right only for s = 1.)""",
)

slide_split_back = rule(
    "slide-split-back",
    "map (slide n s) (slide u v xs) -> split (v // s) (slide n s xs)",
    when=["u >= n", "s | v", "u == v - s + n"],
    examples=[Example("λ (xs : 10.f32). map (slide 3 1) (slide 6 4 xs)")],
    law="slide-split backwards.",
)

slide_rotate = rule(
    "slide-rotate",
    "slide n s xs -> drop (n - 1) (scan (λw x. concat (drop 1 w) (singleton x)) (take n xs) xs)",
    when=["s == 1", "n >= 1"],
    examples=[Example("λ (xs : 8.f32). map (reduce (+) 0) (slide 3 1 xs)")],
    law="""A window moves on by one element: what it holds is kept (in registers, or in a circular buffer of rows) and
    each element is read once. The first n - 1 states are not full windows.""",
)

reduce_window_rows = rule(
    "reduce-window-rows",
    "reduce@k f z (join X) -> reduce@k.rows (λacc row. let s = reduce@k.columns f e row in f acc s) z X",
    when=["associative f", "neutral e f"],
    examples=[Example("λ (W : 3.3.f32). reduce (+) 0 (join W)")],
    law="A reduction over a window of rows: each row by itself, then the rows.",
)

separate_convolution = rule(
    "separate-convolution",
    """reduce (λacc p. add acc (mul p.0 p.1)) z (zip (join (map (λa. map (λb. mul a b) v) u)) (join X))
       -> reduce (λacc q. add acc (mul q.0 q.1)) z
                 (zip u (map (λrow. reduce (λacc p. add acc (mul p.0 p.1)) o (zip v row)) X))""",
    when=["reassociable z", "zero o z", "length X == length u", "width X == length v"],
    examples=[
        Example(
            "λ (u : 3.f32) (v : 3.f32) (W : 3.3.f32). "
            "reduce (λacc p. acc + p.0 * p.1) 0 (zip (join (map (λa. map (λb. a * b) v) u)) (join W))"
        )
    ],
    law="""Weights that are the products of a column u and a row v: first along the rows, then across them. Sums and
    products are reassociated, and the factor u of each row is taken out of its sum.""",
)


def tiled_stencil(size: int) -> Strategy:
    """A map over windows in tiles of `size` elements: overlapped tiling, then map and windows in each tile.

    slide-tile where the tiles come out even, slide-tile-any otherwise; map-take and map-join; map-fusion.
    """
    macro = seq(
        topdown(slide_tile(size) | slide_tile_any(size)),
        repeat(topdown(VIEW_RULES["map-take"] | map_join)),
        repeat(topdown(map_fusion)),
    )
    macro.name = f"tiled-stencil({size})"
    return macro
