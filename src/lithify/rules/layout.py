"""Movement of views past maps, zips and one another. For search and for reading; strategies that tile from the outside
in need few of them."""

from __future__ import annotations

from lithify.lang.build import map_
from lithify.lang.index_functions import reverse
from lithify.lang.term import LAMBDA, Term, lambda_
from lithify.rewrite.rule import Example, Rule, code_rule, rule
from lithify.rewrite.strategy import Context

# ---- a view of a map is a map of a view ----------------------------------------------------------------------------
# (name of the rule, the view; what it shows are elements of xs)

_ELEMENT_VIEWS = (
    ("take", "take n {}"),
    ("drop", "drop n {}"),
    ("reindex", "reindex g {}"),
    ("pad", "pad l r mode {}"),
    ("gather", "gather ids {}"),
)
# (what it shows are rows of elements of xs)
_ROW_VIEWS = (("split", "split n {}"), ("slide", "slide n s {}"))

_EXAMPLES = {
    "take-map": "λ (xs : 8.f32). take 3 (map (λx. x * 2) xs)",
    "map-take": "λ (xs : 8.f32). map (λx. x * 2) (take 3 xs)",
    "take-zip": "λ (xs : 8.f32) (ys : 8.f32). take 3 (zip xs ys)",
    "zip-take": "λ (xs : 8.f32) (ys : 8.f32). zip (take 3 xs) (take 3 ys)",
    "drop-map": "λ (xs : 8.f32). drop 3 (map (λx. x * 2) xs)",
    "map-drop": "λ (xs : 8.f32). map (λx. x * 2) (drop 3 xs)",
    "drop-zip": "λ (xs : 8.f32) (ys : 8.f32). drop 3 (zip xs ys)",
    "zip-drop": "λ (xs : 8.f32) (ys : 8.f32). zip (drop 3 xs) (drop 3 ys)",
    "reindex-map": "λ (xs : 8.f32). reorder (stride 4) (map (λx. x * 2) xs)",
    "map-reindex": "λ (xs : 8.f32). map (λx. x * 2) (reorder (stride 4) xs)",
    "reindex-zip": "λ (xs : 8.f32) (ys : 8.f32). reorder (stride 4) (zip xs ys)",
    "zip-reindex": "λ (xs : 8.f32) (ys : 8.f32). zip (reorder (stride 4) xs) (reorder (stride 4) ys)",
    "pad-map": "λ (xs : 8.f32). pad 1 1 clamp (map (λx. x * 2) xs)",
    "map-pad": "λ (xs : 8.f32). map (λx. x * 2) (pad 1 1 clamp xs)",
    "pad-zip": "λ (xs : 8.f32) (ys : 8.f32). pad 1 1 clamp (zip xs ys)",
    "zip-pad": "λ (xs : 8.f32) (ys : 8.f32). zip (pad 1 1 clamp xs) (pad 1 1 clamp ys)",
    "gather-map": "λ (ids : 4.idx[8]) (xs : 8.f32). gather ids (map (λx. x * 2) xs)",
    "map-gather": "λ (ids : 4.idx[8]) (xs : 8.f32). map (λx. x * 2) (gather ids xs)",
    "gather-zip": "λ (ids : 4.idx[8]) (xs : 8.f32) (ys : 8.f32). gather ids (zip xs ys)",
    "zip-gather": "λ (ids : 4.idx[8]) (xs : 8.f32) (ys : 8.f32). zip (gather ids xs) (gather ids ys)",
    "split-map": "λ (xs : 8.f32). split 4 (map (λx. x * 2) xs)",
    "map-map-split": "λ (xs : 8.f32). map (map (λx. x * 2)) (split 4 xs)",
    "split-zip": "λ (xs : 8.f32) (ys : 8.f32). split 4 (zip xs ys)",
    "slide-map": "λ (xs : 8.f32). slide 3 1 (map (λx. x * 2) xs)",
    "map-map-slide": "λ (xs : 8.f32). map (map (λx. x * 2)) (slide 3 1 xs)",
    "slide-zip": "λ (xs : 8.f32) (ys : 8.f32). slide 3 1 (zip xs ys)",
}


def _view_rules() -> dict[str, Rule]:
    found: dict[str, Rule] = {}

    def declare(name: str, text: str, law: str, when: tuple[str, ...] = ()) -> None:
        found[name] = rule(name, text, law=law, when=when, examples=[Example(_EXAMPLES[name])])

    for name, view in _ELEMENT_VIEWS:
        of_map, of_zip = view.format("(map@a f xs)"), view.format("(zip xs ys)")
        law = f"{name} chooses elements, and map works on each: the order does not matter."
        declare(f"{name}-map", f"{of_map} -> map@a f ({view.format('xs')})", law)
        declare(f"map-{name}", f"map@a f ({view.format('xs')}) -> {of_map}", law)
        law = f"{name} chooses the same elements of both arrays."
        zipped = f"zip ({view.format('xs')}) ({view.format('ys')})"
        declare(f"{name}-zip", f"{of_zip} -> {zipped}", law)
        declare(f"zip-{name}", f"{zipped} -> {of_zip}", law, ("length xs == length ys",))
    for name, view in _ROW_VIEWS:
        rows = view.format("xs")
        law = f"The rows of {name} hold elements, and map works on each."
        outer, inner = ("@a.block", "@a.tile") if name == "split" else ("@a", "@a")
        declare(f"{name}-map", f"{view.format('(map@a f xs)')} -> map{outer} (map{inner} f) ({rows})", law)
        declare(f"map-map-{name}", f"map@a (map@b f) ({rows}) -> {view.format('(map@a/b f xs)')}", law)
        zipped = f"map (λp. zip p.0 p.1) (zip ({rows}) ({view.format('ys')}))"
        declare(
            f"{name}-zip", f"{view.format('(zip xs ys)')} -> {zipped}", f"The rows of {name} of both arrays, zipped."
        )
    return found


VIEW_RULES = _view_rules()

map_join = rule(
    "map-join",
    "map@a f (join X) -> join (map@a (map@a f) X)",
    examples=[Example("λ (A : 4.6.f32). map (λx. x * 2) (join A)")],
    law="*f . J = J . **f",
)

zip_join = rule(
    "zip-join",
    "zip (join X) (join Y) -> join (map (λp. zip p.0 p.1) (zip X Y))",
    when=["length X == length Y", "width X == width Y"],
    examples=[Example("λ (A : 4.6.f32) (B : 4.6.f32). map (*) (zip (join A) (join B))")],
    law="Joined rows of equal lengths, zipped, are zipped rows, joined.",
)

map_concat = rule(
    "map-concat",
    "map@a f (concat xs ys) -> concat (map@a f xs) (map@a f ys)",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). map (λx. x * 2) (concat xs ys)")],
    law="Each part by itself.",
)

reduce_split_zip = rule(
    "reduce-split-zip",
    "reduce@k f z (split n (zip xs ys)) -> reduce@k (λacc p. f acc (zip p.0 p.1)) z (zip (split n xs) (split n ys))",
    examples=[
        Example(
            "λ (xs : 8.f32) (ys : 8.f32). reduce (λacc b. reduce (λs p. s + p.0 * p.1) acc b) 0 (split 4 (zip xs ys))"
        )
    ],
    law="A reduction over blocks of pairs takes the blocks of both arrays.",
)

map_split_zip = rule(
    "map-split-zip",
    "map@a f (split n (zip xs ys)) -> map@a (λp. f (zip p.0 p.1)) (zip (split n xs) (split n ys))",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). map (map (*)) (split 4 (zip xs ys))")],
    law="A map over blocks of pairs takes the blocks of both arrays.",
)

map_pad_fill = rule(
    "map-pad-fill",
    "map@a f (pad l r (fill c) xs) -> pad l r (fill (f c)) (map@a f xs)",
    examples=[Example("λ (xs : 8.f32). map (λx. x + 1) (pad 1 1 (fill 0) xs)")],
    law="What is computed from the fill is the same everywhere, and becomes the fill.",
)

pad_fill_zip = rule(
    "pad-fill-zip",
    "pad l r (fill c) (zip xs ys) -> zip (pad l r (fill c.0) xs) (pad l r (fill c.1) ys)",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). map (*) (pad 0 1 (fill 0) (zip xs ys))")],
    law="Each array is lengthened by its component.",
)

unzip_zip = rule(
    "unzip-zip",
    "unzip (zip xs ys) -> (xs, ys)",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). unzip (zip xs ys)")],
    law="unzip undoes zip.",
)

zip_unzip = rule(
    "zip-unzip",
    "zip (unzip xs).0 (unzip xs).1 -> xs",
    when=["pairs xs"],
    examples=[Example("λ (ps : 8.(f32, f32)). zip (unzip ps).0 (unzip ps).1")],
    law="zip undoes unzip.",
)

zip_components = rule(
    "zip-components",
    "zip (map (λx. x.0) xs) (map (λx. x.1) xs) -> xs",
    when=["pairs xs"],
    examples=[Example("λ (ps : 8.(f32, f32)). zip (map (λx. x.0) ps) (map (λx. x.1) ps)")],
    law="The components of pairs, zipped, are the pairs.",
)

unzip_map = rule(
    "unzip-map",
    "unzip (map@a (λx. (f x, g x)) xs) -> (map@a f xs, map@a g xs)",
    examples=[Example("λ (xs : 8.f32). unzip (map (λx. (x * 2, x + 1)) xs)")],
    law="Each component by itself.",
)

# ---- transposes ----------------------------------------------------------------------------------------------------

transpose_map_map = rule(
    "transpose-map-map",
    "T (map@a (map@b f) X) -> map@b (map@a f) (T X)",
    examples=[Example("λ (A : 4.6.f32). transpose (map (map (λx. x * 2)) A)")],
    law="T . **f = **f . T",
)

map_map_transpose = rule(
    "map-map-transpose",
    "map@a (map@b f) X -> T (map@b (map@a f) (T X))",
    examples=[Example("λ (A : 4.6.f32). map (map (λx. x * 2)) A")],
    law="**f = T . **f . T",
)

split_transpose = rule(
    "split-transpose",
    "split n (T X) -> map T (T (map (split n) X))",
    examples=[Example("λ (A : 4.6.f32). split 3 (transpose A)")],
    law="Blocks of columns.",
)

map_split_transpose = rule(
    "map-split-transpose",
    "map (split n) (T X) -> T (map T (split n X))",
    examples=[Example("λ (A : 4.6.f32). map (split 2) (transpose A)")],
    law="Blocks within columns are blocks of rows, transposed.",
)

transpose_join = rule(
    "transpose-join",
    "T (join X) -> map join (T (map T X))",
    examples=[Example("λ (A : 2.4.6.f32). transpose (join A)")],
    law="Columns of joined blocks of rows.",
)

transpose_map_join = rule(
    "transpose-map-join",
    "T (map join X) -> join (map T (T X))",
    examples=[Example("λ (A : 4.2.3.f32). transpose (map join A)")],
    law="Columns of rows that are joined from blocks.",
)

interleaved = rule(
    "interleaved",
    "X -> map (λB. map join (T B)) (map (λB. T (map (split n) B)) X)",
    parameters="n",
    examples=[Example("λ (X : 3.4.6.f32). map (map (reduce (+) 0)) X", (2,))],
    law="Rows of matrices in groups of n, of which those of all rows come before the next ones, and back.",
)

transpose_take = rule(
    "transpose-take",
    "T (take n X) -> map (take n) (T X)",
    examples=[Example("λ (A : 4.6.f32). transpose (take 3 A)")],
    law="The first rows, transposed, are the first elements of each column.",
)

slide_transpose = rule(
    "slide-transpose",
    "slide n s (T X) -> map T (T (map (slide n s) X))",
    examples=[Example("λ (A : 4.6.f32). slide 3 1 (transpose A)")],
    law="Windows of columns.",
)

transpose_map_slide = rule(
    "transpose-map-slide",
    "T (map (slide n s) X) -> map T (slide n s (T X))",
    examples=[Example("λ (A : 4.6.f32). transpose (map (slide 3 1) A)")],
    law="Windows within rows, seen by their position.",
)

transpose_replicate = rule(
    "transpose-replicate",
    "T (replicate n xs) -> map (replicate n) xs",
    examples=[Example("λ (xs : 8.f32). transpose (replicate 3 xs)")],
    law="Equal columns.",
)

transpose_map_replicate = rule(
    "transpose-map-replicate",
    "T (map (replicate n) xs) -> replicate n xs",
    examples=[Example("λ (xs : 8.f32). transpose (map (replicate 3) xs)")],
    law="Equal columns, transposed.",
)

split_replicate = rule(
    "split-replicate",
    "split m (replicate n x) -> replicate (n // m) (replicate m x)",
    examples=[Example("λ (x : f32). split 2 (replicate 8 x)")],
    law="Blocks of equal elements.",
)

join_replicate = rule(
    "join-replicate",
    "join (replicate n (replicate m x)) -> replicate (n * m) x",
    examples=[Example("λ (x : f32). join (replicate 4 (replicate 2 x))")],
    law="Rows of equal elements.",
)

pad_replicate = rule(
    "pad-replicate",
    "pad l r mode (replicate n x) -> replicate (l + n + r) x",
    when=["n >= 1"],
    examples=[Example("λ (x : f32). pad 0 1 clamp (replicate 7 x)")],
    law="More of the same.",
)

# ---- splits and joins of one another -------------------------------------------------------------------------------

join_join = rule(
    "join-join",
    "join (join X) -> join (map join X)",
    examples=[Example("λ (A : 2.3.4.f32). join (join A)")],
    law="Joining is associative.",
)

join_map_join = rule(
    "join-map-join",
    "join (map join X) -> join (join X)",
    examples=[Example("λ (A : 2.3.4.f32). join (map join A)")],
    law="Joining is associative.",
)

split_split = rule(
    "split-split",
    "split n (split m xs) -> map (split m) (split (n * m) xs)",
    examples=[Example("λ (xs : 8.f32). split 2 (split 2 xs)")],
    law="Blocks of blocks are large blocks, each split.",
)

map_split_split = rule(
    "map-split-split",
    "map (split m) (split k xs) -> split (k // m) (split m xs)",
    when=["m | k"],
    examples=[Example("λ (xs : 8.f32). map (split 2) (split 4 xs)")],
    law="Large blocks, each split, are blocks of blocks.",
)

split_join_rows = rule(
    "split-join-rows",
    "split n (join X) -> join (map (split n) X)",
    when=["n | width X"],
    examples=[Example("λ (A : 4.6.f32). split 3 (join A)")],
    law="Blocks within rows.",
)

split_join_groups = rule(
    "split-join-groups",
    "split n (join X) -> map join (split (n // width X) X)",
    when=["width X | n", "(n // width X) | length X"],
    examples=[Example("λ (A : 4.6.f32). split 12 (join A)")],
    law="Blocks of whole rows.",
)

take_take = rule(
    "take-take",
    "take m (take n xs) -> take m xs",
    examples=[Example("λ (xs : 8.f32). take 2 (take 5 xs)")],
    law="The shorter prefix.",
)

drop_drop = rule(
    "drop-drop",
    "drop m (drop n xs) -> drop (m + n) xs",
    examples=[Example("λ (xs : 8.f32). drop 2 (drop 3 xs)")],
    law="Both are left out.",
)

take_drop = rule(
    "take-drop",
    "take m (drop n xs) -> drop n (take (m + n) xs)",
    examples=[Example("λ (xs : 8.f32). take 4 (drop 2 xs)")],
    law="A slice, cut at the other end first.",
)

drop_take = rule(
    "drop-take",
    "drop n (take m xs) -> take (m - n) (drop n xs)",
    examples=[Example("λ (xs : 8.f32). drop 2 (take 6 xs)")],
    law="A slice, cut at the other end first.",
)

take_join = rule(
    "take-join",
    "take n (join X) -> join (take (n // width X) X)",
    when=["width X | n"],
    examples=[Example("λ (A : 4.6.f32). take 12 (join A)")],
    law="Whole rows.",
)

take_pad = rule(
    "take-pad",
    "take n (pad 0 r mode xs) -> xs",
    when=["n == length xs"],
    examples=[Example("λ (xs : 8.f32). take 8 (pad 0 4 clamp xs)")],
    law="What was added behind is left out again.",
)

take_pad_fill = rule(
    "take-pad-fill",
    "take n (pad 0 r (fill c) xs) -> xs",
    when=["n == length xs"],
    examples=[Example("λ (xs : 8.f32). take 8 (pad 0 4 (fill 0) xs)")],
    law="What was added behind is left out again.",
)

# ---- reordering ----------------------------------------------------------------------------------------------------

reindex_inverse = rule(
    "reindex-inverse",
    "reindex h (reindex g xs) -> xs",
    when=["inverse h g"],
    examples=[Example("λ (xs : 8.f32). reorder reverse (reorder reverse xs)")],
    law="A reordering undone by its declared inverse.",
)

reindex_both = rule(
    "reindex-both",
    "map@a f xs -> reindex (inverse(g)) (map@a f (reindex g xs))",
    parameters="g",
    when=["invertible g", "length xs == source(g)"],
    examples=[Example("λ (xs : 8.f32). map (λx. x * 2) xs", (reverse(8),))],
    law="""The elements in another order, and the results put back in place by the declared inverse (not by g itself:
    that would be right only for a reordering that is its own inverse).""",
)

coalesce = rule(
    "coalesce",
    """map@a f xs -> reindex (inverse(stride(s, length xs))) (map@a f (reindex (stride(s, length xs)) xs))""",
    parameters="s",
    when=["s | length xs", "length xs >= 1"],
    examples=[Example("λ (xs : 8.f32). map (λx. x * 2) xs", (4,))],
    law="""reindex-both with a stride: elements that lie s apart follow one another, so that neighbouring threads, each
    with a run of elements, read neighbouring addresses; the results go back the same way.""",
)

gather_scatter = rule(
    "gather-scatter",
    "gather ids (scatter permutation ids xs) -> xs",
    examples=[Example("λ (ids : 8.idx[8]) (xs : 8.f32). gather ids (scatter ids xs)")],
    law="What is written to ids[i] is read from there.",
)

scatter_gather = rule(
    "scatter-gather",
    "scatter permutation ids (gather ids xs) -> xs",
    examples=[Example("λ (ids : 8.idx[8]) (xs : 8.f32). scatter ids (gather ids xs)")],
    law="What is read from ids[i] is written back there; ids names every position once.",
)

map_scatter = rule(
    "map-scatter",
    "map@a f (scatter permutation ids xs) -> scatter permutation ids (map@a f xs)",
    examples=[Example("λ (ids : 8.idx[8]) (xs : 8.f32). map (λx. x * 2) (scatter ids xs)")],
    law="Where a result is written does not change it.",
)

scatter_map = rule(
    "scatter-map",
    "scatter permutation ids (map@a f xs) -> map@a f (scatter permutation ids xs)",
    examples=[Example("λ (ids : 8.idx[8]) (xs : 8.f32). scatter ids (map (λx. x * 2) xs)")],
    law="Where a result is written does not change it.",
)

# ---- layouts out of maps -------------------------------------------------------------------------------------------


@code_rule(
    "layout-out",
    "map (λx. L (e x)) xs -> map L (map e xs)",
    kinds="map",
    when=["L is a chain of views that do not depend on x"],
    examples=[Example("λ (A : 4.6.f32) (q : 3.f32). map (λrow. join (map (λy. map (λx. x * y) row) q)) A")],
    law="Views of each result are views of the results: e is left as a map of its own, for the next interchange.",
)
def layout_out(term: Term, context: Context) -> Term | None:
    """L stands for a chain of views of any length, which no pattern of the notation matches."""
    del context
    if term["level"] is not None:
        return None
    function, xs = term.args
    chain, body = [], function.args[0]
    while _is_view(body):
        chain.append(body)
        body = body.args[-1]
    if not chain or body.kind not in ("map", "reduce", "scan", "let"):
        return None

    def view(inner: Term) -> Term:
        for layout in reversed(chain):
            inner = layout.with_args((*layout.args[:-1], inner))
        return inner

    return map_(view, map_(lambda_(function.attrs[0], body), xs, name=term["name"]))


def _is_view(t: Term) -> bool:
    """One array in, the same elements out, nothing else read: a view, or a map of closed views."""
    if t.pattern.layout and len(t.args) == 1 and t.kind != "unzip":
        return True
    if t.kind == "map" and t["level"] is None and t.args[0].open_depth == 0:
        body = t.args[0].args[0]
        if body.kind in ("bound", LAMBDA):
            return False
        while _is_view(body):
            body = body.args[-1]
        return body.kind == "bound"
    return False
