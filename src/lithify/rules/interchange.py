"""Interchanges: which loop is outside."""

from __future__ import annotations

from collections.abc import Iterator

from lithify.lang.build import map_, proj, tuple_, zip_
from lithify.lang.term import Term, lambda_, mentions
from lithify.rewrite.rule import Example, code_rule, rule
from lithify.rewrite.strategy import Context, first, try_
from lithify.rewrite.template import instantiate

map_map_interchange = rule(
    "map-map-interchange",
    "map@m (λa. map@n (λb. e a b) B) A -> T (map@n (λb. map@m (λa. e a b) A) B)",
    examples=[Example("λ (A : 4.f32) (B : 6.f32). map (λa. map (λb. a * b) B) A")],
    law="The inner array may not depend on the outer element; the results come out transposed.",
)

map_map_interchange_back = rule(
    "map-map-interchange-back",
    "T (map@n (λb. map@m (λa. e a b) A) B) -> map@m (λa. map@n (λb. e a b) B) A",
    examples=[Example("λ (A : 4.f32) (B : 6.f32). transpose (map (λb. map (λa. a * b) A) B)")],
    law="map-map-interchange backwards.",
)

map_map_interchange_rows = rule(
    "map-map-interchange-rows",
    "map@m (λa. map@n (h a) (p a)) A -> T (map@n (λy. map@m (λc. h c.0 c.1) (zip A y)) (T (map@m p A)))",
    examples=[Example("λ (A : 4.6.f32). map (λrow. map (λx. x * 2) row) A")],
    law="The inner arrays depend on the outer element: their columns are visited instead.",
)

map_map_interchange_left = rule(
    "map-map-interchange-left",
    """map@m (λa. map@n g (zip (p a) q)) A
       -> T (map@n (λy. map@m (λc. g (c, y.1)) y.0) (zip (T (map@m p A)) q))""",
    examples=[Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. map (*) (zip row q)) A")],
    law="map-map-interchange-rows over a zip whose second array is the same for all: it is shared.",
)

map_map_interchange_right = rule(
    "map-map-interchange-right",
    """map@m (λa. map@n g (zip q (p a))) A
       -> T (map@n (λy. map@m (λc. g (y.0, c)) y.1) (zip q (T (map@m p A))))""",
    examples=[Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. map (*) (zip q row)) A")],
    law="map-map-interchange-rows over a zip whose first array is the same for all: it is shared.",
)

map_map_interchange_left_rows = rule(
    "map-map-interchange-left-rows",
    """map@m (λa. map@n (h a) (zip (p a) q)) A
       -> T (map@n (λy. map@m (λc. h c.0 (c.1, y.1)) (zip A y.0)) (zip (T (map@m p A)) q))""",
    examples=[
        Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. map (λp. p.0 * p.1 + row[0]) (zip row q)) A"),
    ],
    law="map-map-interchange-left where the function too depends on the outer element.",
)

map_map_interchange_right_rows = rule(
    "map-map-interchange-right-rows",
    """map@m (λa. map@n (h a) (zip q (p a))) A
       -> T (map@n (λy. map@m (λc. h c.0 (y.0, c.1)) (zip A y.1)) (zip q (T (map@m p A))))""",
    examples=[
        Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. map (λp. p.0 * p.1 + row[0]) (zip q row)) A"),
    ],
    law="map-map-interchange-right where the function too depends on the outer element.",
)


@code_rule(
    "zip-apart",
    "map@m (λa. map@n h zip(q, p a, r)) A -> map@m (λa. map@n (λy. h (y.1.0, y.0, y.1.1)) (zip (p a) (zip q r))) A",
    kinds="map",
    when=["some of the arrays depend on a, some do not, and they are not two already"],
    examples=[
        Example("λ (A : 4.6.f32) (q : 6.f32) (r : 6.f32). map (λrow. map (λp. p.0 * p.1 + p.2) zip(q, row, r)) A"),
        Example(
            "λ (A : 4.6.f32) (q : 6.f32) (r : 6.f32). map (λrow. map (λp. p.0.0 * p.0.1 + p.1) (zip (zip q row) r)) A"
        ),
    ],
    law="""What is the same for all is zipped apart from what is not, so that it can be shared. Zips in zips are looked
    through.""",
)
def zip_apart(term: Term, context: Context) -> Term | None:
    """zip takes any number of arrays, of which any may be zips; the notation says one number."""
    del context
    inner = term.args[0].args[0]
    if inner.kind != "map" or inner.args[1].kind != "zip":
        return None
    whole = inner.args[1]
    if len(whole.args) == 2 and all(_alike(side) for side in whole.args):
        return None
    arrays = list(_arrays(whole))
    groups = [[a for a in arrays if mentions(a) is varies] for varies in (True, False)]
    if not all(groups):
        return None
    groups = [list(dict.fromkeys(group)) for group in groups]

    def element(p: Term) -> Term:
        parts: dict[Term, Term] = {}
        for number, group in enumerate(groups):
            side = proj(number, p)
            parts |= {a: proj(k, side) if len(group) > 1 else side for k, a in enumerate(group)}
        return instantiate(inner.args[0], (_as_zipped(whole, parts),))

    apart = map_(element, zip_(*[zip_(*g) if len(g) > 1 else g[0] for g in groups]), inner["level"], inner["name"])
    return map_(lambda_(term.args[0].attrs[0], apart), term.args[1], term["level"], term["name"])


def _arrays(t: Term) -> Iterator[Term]:
    """What zips hold, zips in them looked through."""
    if t.kind != "zip":
        yield t
    else:
        for a in t.args:
            yield from _arrays(a)


def _alike(t: Term) -> bool:
    """Whether all or none of a zip's arrays depend on the variable outside."""
    return len({mentions(a) for a in _arrays(t)}) == 1


def _as_zipped(t: Term, parts: dict[Term, Term]) -> Term:
    """The element of a zip, of those of its arrays."""
    return tuple_(*[_as_zipped(a, parts) for a in t.args]) if t.kind == "zip" else parts[t]


_map_map = first(
    map_map_interchange,
    map_map_interchange_left,
    map_map_interchange_right,
    map_map_interchange_left_rows,
    map_map_interchange_right_rows,
    map_map_interchange_rows,
)
_map_map.name = "map-map-interchange"

map_map_shared = try_(zip_apart) >> _map_map
"""The form of the map-map interchange that keeps every invariant part shared; zips are zipped apart for it."""
map_map_shared.name = "map-map-shared"

map_reduce_interchange = rule(
    "map-reduce-interchange",
    """map@m (λa. reduce@k f z (e a)) A
       -> reduce@k (λacc y. map@m (λp. f p.0 p.1) (zip acc y)) (replicate (length A) z) (T (map@m e A))""",
    examples=[Example("λ (A : 4.6.f32). map (reduce (+) 0) A")],
    law="Many reductions side by side are one reduction of arrays.",
)

map_reduce_interchange_left = rule(
    "map-reduce-interchange-left",
    """map@m (λa. reduce@k f z (zip (p a) q)) A
       -> reduce@k (λacc y. map@m (λc. f c.0 (c.1, y.1)) (zip acc y.0))
                   (replicate (length A) z) (zip (T (map@m p A)) q)""",
    examples=[Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. reduce (λacc p. acc + p.0 * p.1) 0 (zip row q)) A")],
    law="map-reduce-interchange where the second array is the same for all: it is shared, not replicated.",
)

map_reduce_interchange_right = rule(
    "map-reduce-interchange-right",
    """map@m (λa. reduce@k f z (zip q (p a))) A
       -> reduce@k (λacc y. map@m (λc. f c.0 (y.0, c.1)) (zip acc y.1))
                   (replicate (length A) z) (zip q (T (map@m p A)))""",
    examples=[Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. reduce (λacc p. acc + p.0 * p.1) 0 (zip q row)) A")],
    law="map-reduce-interchange where the first array is the same for all: it is shared, not replicated.",
)

map_reduce_interchange_left_each = rule(
    "map-reduce-interchange-left-each",
    """map@m (λa. reduce@k f (z a) (zip (p a) q)) A
       -> reduce@k (λacc y. map@m (λc. f c.0 (c.1, y.1)) (zip acc y.0)) (map z A) (zip (T (map@m p A)) q)""",
    examples=[Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. reduce (λs p. s + p.0 * p.1) row[0] (zip row q)) A")],
    law="map-reduce-interchange-left where each reduction has its own initial value.",
)

map_reduce_interchange_right_each = rule(
    "map-reduce-interchange-right-each",
    """map@m (λa. reduce@k f (z a) (zip q (p a))) A
       -> reduce@k (λacc y. map@m (λc. f c.0 (y.0, c.1)) (zip acc y.1)) (map z A) (zip q (T (map@m p A)))""",
    examples=[Example("λ (A : 4.6.f32) (q : 6.f32). map (λrow. reduce (λs p. s + p.0 * p.1) row[0] (zip q row)) A")],
    law="map-reduce-interchange-right where each reduction has its own initial value.",
)

map_reduce_interchange_invariant = rule(
    "map-reduce-interchange-invariant",
    """map@m (λa. reduce@k (f a) z xs) A
       -> reduce@k (λacc x. map@m (λp. f p.1 p.0 x) (zip acc A)) (replicate (length A) z) xs""",
    examples=[Example("λ (A : 4.f32) (xs : 6.f32). map (λa. reduce (λacc x. acc + a * x) 0 xs) A")],
    law="All read the same array, and the combining function differs: the array is read once.",
)

map_reduce_interchange_general = rule(
    "map-reduce-interchange-general",
    """map@m (λa. reduce@k (f a) (z a) (e a)) A
       -> reduce@k (λacc y. map@m (λp. f p.1 p.0 p.2) (zip acc A y)) (map@m z A) (T (map@m e A))""",
    examples=[Example("λ (A : 4.6.f32). map (λrow. reduce (λacc x. acc + x * row[0]) 0 row) A")],
    law="Many reductions side by side, each with its own initial value and combining function.",
)

map_reduce_shared = first(
    map_reduce_interchange_left,
    map_reduce_interchange_right,
    map_reduce_interchange_left_each,
    map_reduce_interchange_right_each,
    map_reduce_interchange,
    map_reduce_interchange_invariant,
    map_reduce_interchange_general,
)
"""The form of the map-reduce interchange that keeps every invariant part shared."""
map_reduce_shared.name = "map-reduce-interchange"

reduce_reduce_interchange = rule(
    "reduce-reduce-interchange",
    "reduce@a f z (map@m (λx. reduce@b f e (h x)) X) -> reduce@b f z (map@m (λx. reduce@a f e x) (T (map@m h X)))",
    when=["associative f", "commutative f", "neutral e f"],
    examples=[Example("λ (A : 4.6.f32). reduce (+) 0 (map (reduce (+) 0) A)")],
    law="A double sum may be taken in either order.",
)

map_scan_interchange = rule(
    "map-scan-interchange",
    """map@m (λa. scan@k f z (e a)) A
       -> T (scan@k (λacc y. map@m (λp. f p.0 p.1) (zip acc y)) (replicate (length A) z) (T (map@m e A)))""",
    examples=[Example("λ (A : 4.6.f32). map (scan (+) 0) A")],
    law="Many scans side by side are one scan of arrays.",
)
