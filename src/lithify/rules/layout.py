"""Movement of views past maps, zips and one another. For search and for reading; strategies that tile from the outside
in need few of them."""

from __future__ import annotations

from lithify.lang.build import map_
from lithify.lang.term import LAMBDA, Term, lambda_
from lithify.rewrite.rule import Rule, code_rule, rule
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


def _view_rules() -> dict[str, Rule]:
    found: list[Rule] = []
    for name, view in _ELEMENT_VIEWS:
        of_map, of_zip = view.format("(map@a f xs)"), view.format("(zip xs ys)")
        law = f"{name} chooses elements, and map works on each: the order does not matter."
        found += [
            rule(f"{name}-map", f"{of_map} -> map@a f ({view.format('xs')})", law=law),
            rule(f"map-{name}", f"map@a f ({view.format('xs')}) -> {of_map}", law=law),
        ]
        law = f"{name} chooses the same elements of both arrays."
        zipped = f"zip ({view.format('xs')}) ({view.format('ys')})"
        same = ["length xs == length ys"]
        found += [
            rule(f"{name}-zip", f"{of_zip} -> {zipped}", law=law),
            rule(f"zip-{name}", f"{zipped} -> {of_zip}", law=law, when=same),
        ]
    for name, view in _ROW_VIEWS:
        rows = view.format("xs")
        law = f"The rows of {name} hold elements, and map works on each."
        suffix = (".block", ".tile") if name == "split" else ("", "")
        found += [
            rule(
                f"{name}-map",
                f"{view.format('(map@a f xs)')} -> map@a{suffix[0]} (map@a{suffix[1]} f) ({rows})",
                law=law,
            ),
            rule(f"map-map-{name}", f"map@a (map@b f) ({rows}) -> {view.format('(map@a/b f xs)')}", law=law),
            rule(
                f"{name}-zip",
                f"{view.format('(zip xs ys)')} -> map (λp. zip p.0 p.1) (zip ({rows}) ({view.format('ys')}))",
                law=f"The rows of {name} of both arrays, zipped.",
            ),
        ]
    return {found_rule.name: found_rule for found_rule in found}


VIEW_RULES = _view_rules()

map_join = rule(
    "map-join",
    "map@a f (join X) -> join (map@a (map@a f) X)",
    law="*f . J = J . **f",
)

zip_join = rule(
    "zip-join",
    "zip (join X) (join Y) -> join (map (λp. zip p.0 p.1) (zip X Y))",
    when=["length X == length Y", "width X == width Y"],
    law="Joined rows of equal lengths, zipped, are zipped rows, joined.",
)

map_concat = rule(
    "map-concat",
    "map@a f (concat xs ys) -> concat (map@a f xs) (map@a f ys)",
    law="Each part by itself.",
)

reduce_split_zip = rule(
    "reduce-split-zip",
    "reduce@k f z (split n (zip xs ys)) -> reduce@k (λacc p. f acc (zip p.0 p.1)) z (zip (split n xs) (split n ys))",
    law="A reduction over blocks of pairs takes the blocks of both arrays.",
)

map_split_zip = rule(
    "map-split-zip",
    "map@a f (split n (zip xs ys)) -> map@a (λp. f (zip p.0 p.1)) (zip (split n xs) (split n ys))",
    law="A map over blocks of pairs takes the blocks of both arrays.",
)

pad_fill_zip = rule(
    "pad-fill-zip",
    "pad l r (fill c) (zip xs ys) -> zip (pad l r (fill c.0) xs) (pad l r (fill c.1) ys)",
    law="Each array is lengthened by its component.",
)

unzip_zip = rule("unzip-zip", "unzip (zip xs ys) -> (xs, ys)", law="unzip undoes zip.")

zip_unzip = rule("zip-unzip", "zip (unzip xs).0 (unzip xs).1 -> xs", when=["pairs xs"], law="zip undoes unzip.")

zip_components = rule(
    "zip-components",
    "zip (map (λx. x.0) xs) (map (λx. x.1) xs) -> xs",
    when=["pairs xs"],
    law="The components of pairs, zipped, are the pairs.",
)

unzip_map = rule(
    "unzip-map",
    "unzip (map@a (λx. (f x, g x)) xs) -> (map@a f xs, map@a g xs)",
    law="Each component by itself.",
)

# ---- transposes ----------------------------------------------------------------------------------------------------

transpose_map_map = rule(
    "transpose-map-map",
    "T (map@a (map@b f) X) -> map@b (map@a f) (T X)",
    law="T . **f = **f . T",
)

map_map_transpose = rule(
    "map-map-transpose",
    "map@a (map@b f) X -> T (map@b (map@a f) (T X))",
    law="**f = T . **f . T",
)

split_transpose = rule(
    "split-transpose",
    "split n (T X) -> map T (T (map (split n) X))",
    law="Blocks of columns.",
)

map_split_transpose = rule(
    "map-split-transpose",
    "map (split n) (T X) -> T (map T (split n X))",
    law="Blocks within columns are blocks of rows, transposed.",
)

transpose_join = rule(
    "transpose-join",
    "T (join X) -> map join (T (map T X))",
    law="Columns of joined blocks of rows.",
)

transpose_map_join = rule(
    "transpose-map-join",
    "T (map join X) -> join (map T (T X))",
    law="Columns of rows that are joined from blocks.",
)

slide_transpose = rule(
    "slide-transpose",
    "slide n s (T X) -> map T (T (map (slide n s) X))",
    law="Windows of columns.",
)

transpose_map_slide = rule(
    "transpose-map-slide",
    "T (map (slide n s) X) -> map T (slide n s (T X))",
    law="Windows within rows, seen by their position.",
)

transpose_replicate = rule("transpose-replicate", "T (replicate n xs) -> map (replicate n) xs", law="Equal columns.")

transpose_map_replicate = rule(
    "transpose-map-replicate",
    "T (map (replicate n) xs) -> replicate n xs",
    law="Equal columns, transposed.",
)

split_replicate = rule(
    "split-replicate",
    "split m (replicate n x) -> replicate (n // m) (replicate m x)",
    law="Blocks of equal elements.",
)

join_replicate = rule(
    "join-replicate",
    "join (replicate n (replicate m x)) -> replicate (n * m) x",
    law="Rows of equal elements.",
)

# ---- splits and joins of one another -------------------------------------------------------------------------------

join_join = rule("join-join", "join (join X) -> join (map join X)", law="Joining is associative.")

join_map_join = rule("join-map-join", "join (map join X) -> join (join X)", law="Joining is associative.")

split_split = rule(
    "split-split",
    "split n (split m xs) -> map (split m) (split (n * m) xs)",
    law="Blocks of blocks are large blocks, each split.",
)

map_split_split = rule(
    "map-split-split",
    "map (split m) (split k xs) -> split (k // m) (split m xs)",
    when=["m | k"],
    law="Large blocks, each split, are blocks of blocks.",
)

split_join_rows = rule(
    "split-join-rows",
    "split n (join X) -> join (map (split n) X)",
    when=["n | width X"],
    law="Blocks within rows.",
)

split_join_groups = rule(
    "split-join-groups",
    "split n (join X) -> map join (split (n // width X) X)",
    when=["width X | n", "(n // width X) | length X"],
    law="Blocks of whole rows.",
)

take_take = rule("take-take", "take m (take n xs) -> take m xs", law="The shorter prefix.")

drop_drop = rule("drop-drop", "drop m (drop n xs) -> drop (m + n) xs", law="Both are left out.")

take_drop = rule(
    "take-drop", "take m (drop n xs) -> drop n (take (m + n) xs)", law="A slice, cut at the other end first."
)

drop_take = rule(
    "drop-take", "drop n (take m xs) -> take (m - n) (drop n xs)", law="A slice, cut at the other end first."
)

take_join = rule(
    "take-join",
    "take n (join X) -> join (take (n // width X) X)",
    when=["width X | n"],
    law="Whole rows.",
)

take_pad = rule(
    "take-pad",
    "take n (pad 0 r mode xs) -> xs",
    when=["n == length xs"],
    law="What was added behind is left out again.",
)

take_pad_fill = rule(
    "take-pad-fill",
    "take n (pad 0 r (fill c) xs) -> xs",
    when=["n == length xs"],
    law="What was added behind is left out again.",
)

# ---- reordering ----------------------------------------------------------------------------------------------------

reindex_inverse = rule(
    "reindex-inverse",
    "reindex h (reindex g xs) -> xs",
    when=["inverse h g"],
    law="A reordering undone by its declared inverse.",
)

reindex_both = rule(
    "reindex-both",
    "map@a f xs -> reindex (inverse(g)) (map@a f (reindex g xs))",
    parameters="g",
    when=["invertible g", "length xs == source(g)"],
    law="""The elements in another order, and the results put back in place by the declared inverse (not by g itself:
    that would be right only for a reordering that is its own inverse).""",
)

coalesce = rule(
    "coalesce",
    """map@a f xs -> reindex (inverse(stride(s, length xs))) (map@a f (reindex (stride(s, length xs)) xs))""",
    parameters="s",
    when=["s | length xs", "length xs >= 1"],
    law="""reindex-both with a stride: elements that lie s apart follow one another, so that neighbouring threads, each
    with a run of elements, read neighbouring addresses; the results go back the same way.""",
)

gather_scatter = rule(
    "gather-scatter",
    "gather ids (scatter permutation ids xs) -> xs",
    law="What is written to ids[i] is read from there.",
)

scatter_gather = rule(
    "scatter-gather",
    "scatter permutation ids (gather ids xs) -> xs",
    law="What is read from ids[i] is written back there; ids names every position once.",
)

map_scatter = rule(
    "map-scatter",
    "map@a f (scatter permutation ids xs) -> scatter permutation ids (map@a f xs)",
    law="Where a result is written does not change it.",
)

scatter_map = rule(
    "scatter-map",
    "scatter permutation ids (map@a f xs) -> map@a f (scatter permutation ids xs)",
    law="Where a result is written does not change it.",
)

# ---- layouts out of maps -------------------------------------------------------------------------------------------


@code_rule(
    "layout-out",
    "map (λx. L (e x)) xs -> map L (map e xs)",
    kinds="map",
    when=["L is a chain of views that do not depend on x"],
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
