"""Fusion of producers and consumers, and the fissions that undo it."""

from __future__ import annotations

from collections.abc import Callable

from lithify.lang.build import element_type, map_, proj, tuple_, zip_
from lithify.lang.term import LAMBDA, Term, bound, dangling, lambda_, mentions, rebuild, shift
from lithify.rewrite.rule import Example, code_rule, rule
from lithify.rewrite.strategy import Context
from lithify.rewrite.template import instantiate
from lithify.rules.holes import carve

_Components = tuple[int, ...]

map_fusion = rule(
    "map-fusion",
    "map@a f (map@b g xs) -> map@a/b (λx. f (g x)) xs",
    examples=[Example("λ (xs : 8.f32). map (λx. x + 1) (map (λx. x * 2) xs)")],
    law="*f . *g = *(f . g)",
)

map_fusion_levels = rule(
    "map-fusion-levels",
    "map[l]@a f (map[l]@b g xs) -> map[l]@a/b (λx. f (g x)) xs",
    examples=[Example("λ (xs : 8.f32). map[seq] (λx. x + 1) (map[seq] (λx. x * 2) xs)")],
    law="*f . *g = *(f . g), for two loops of one level.",
)

reduce_map_fusion = rule(
    "reduce-map-fusion",
    "reduce@a f z (map@b g xs) -> reduce@a/b (λacc x. f acc (g x)) z xs",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). reduce (+) 0 (map (*) (zip xs ys))")],
    law="""reduce f z . *g = reduce (λacc x. f acc (g x)) z. The new operator is no longer associative: the rules that
    reorder a reduction come first.""",
)

reduce_map_fusion_levels = rule(
    "reduce-map-fusion-levels",
    "reduce[l, m]@a f z (map[l]@b g xs) -> reduce[l, m]@a/b (λacc x. f acc (g x)) z xs",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). reduce[seq] (+) 0 (map[seq] (*) (zip xs ys))")],
    law="reduce-map-fusion for two loops of one level: the slides' reduceSeq f z . mapSeq g.",
)

scan_map_fusion = rule(
    "scan-map-fusion",
    "scan@a f z (map@b g xs) -> scan@a/b (λacc x. f acc (g x)) z xs",
    examples=[Example("λ (xs : 8.f32). scan (+) 0 (map (λx. x * 2) xs)")],
    law="scan f z . *g = scan (λacc x. f acc (g x)) z",
)

map_replicate = rule(
    "map-replicate",
    "map f (replicate n x) -> replicate n (f x)",
    examples=[Example("λ (x : f32). map (λy. y * y) (replicate 8 x)")],
    law="The same result at every position is computed once.",
)

zip_same = rule(
    "zip-same",
    "map@a f (zip xs xs) -> map@a (λx. f (x, x)) xs",
    examples=[Example("λ (xs : 8.f32). map (*) (zip xs xs)")],
    law="An array zipped with itself holds pairs of equal elements.",
)

reduce_zip_same = rule(
    "reduce-zip-same",
    "reduce@a f z (zip xs xs) -> reduce@a (λacc x. f acc (x, x)) z xs",
    examples=[Example("λ (xs : 8.f32). reduce (λacc p. acc + p.0 * p.1) 0 (zip xs xs)")],
    law="An array zipped with itself holds pairs of equal elements.",
)

zip_replicate_left = rule(
    "zip-replicate-left",
    "zip (replicate n x) ys -> map (λy. (x, y)) ys",
    examples=[Example("λ (x : f32) (ys : 8.f32). map (*) (zip (replicate 8 x) ys)")],
    law="A value paired with every element.",
)

zip_replicate_right = rule(
    "zip-replicate-right",
    "zip xs (replicate n y) -> map (λx. (x, y)) xs",
    examples=[Example("λ (xs : 8.f32) (y : f32). map (*) (zip xs (replicate 8 y))")],
    law="A value paired with every element.",
)

at_map = rule(
    "at-map",
    "at (map f xs) i -> f (at xs i)",
    examples=[Example("λ (xs : 8.f32). (map (λx. x * 2) xs)[3]")],
    law="Only the element that is read is computed.",
)


@code_rule(
    "zip-of-maps",
    "zip (map f xs) (map g ys) -> map (λp. (f p.0, g p.1)) (zip xs ys)",
    kinds="zip",
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32). map (+) (zip (map (λx. x * 2) xs) ys)")],
    law="""Abstract maps under a zip come out of it, so that the consumer can take them in. Operands that are not maps
    stay as they are.""",
)
def zip_of_maps(term: Term, context: Context) -> Term | None:
    """zip takes any number of arrays, the notation says one number."""
    del context
    maps = [a for a in term.args if a.kind == "map" and a["level"] is None]
    if not maps:
        return None
    sources = [a.args[1] if a in maps else a for a in term.args]

    def element(p: Term) -> Term:
        parts = [proj(i, p) for i in range(len(term.args))]
        return tuple_(
            *[instantiate(a.args[0], (part,)) if a in maps else part for a, part in zip(term.args, parts, strict=True)]
        )

    names = {a["name"] for a in maps}
    return map_(element, zip_(*sources), name=names.pop() if len(names) == 1 else None)


@code_rule(
    "zip-unread",
    "map f (zip xs ys) -> map (λx. f (x, _)) xs",
    kinds="map",
    when=["f does not read every array"],
    examples=[Example("λ (xs : 8.f32) (ys : 8.f32) (zs : 8.f32). map (λp. p.0.0 * p.1) (zip (zip xs ys) zs)")],
    law="What nobody reads need not be there. Zips within zips are looked through.",
)
def zip_unread(term: Term, context: Context) -> Term | None:
    """zip takes any number of arrays, of which any may be zips; the notation says one number."""
    del context
    function, xs = term.args
    if xs.kind != "zip":
        return None
    read = _components_read(function.args[0])
    kept = _kept(xs, read)
    if kept is None or kept[0] is xs:
        return None
    array, moved = kept

    def narrowed(t: Term, depth: int) -> Term | None:
        """Where an old component of the variable lies in the new one."""
        components: list[int] = []
        inner = t
        while inner.kind == "proj":
            components.insert(0, inner["component"])
            inner = inner.args[0]
        if inner.kind != "bound" or inner.attrs[0] != depth:
            return None
        place, rest = _longest(moved, tuple(components))
        result = bound(depth, element_type(array))
        for component in (*moved[place], *rest):
            result = proj(component, result)
        return result

    return map_(lambda_(element_type(array), rebuild(function.args[0], narrowed)), array, term["level"], term["name"])


def _longest(moved: dict[_Components, _Components], components: _Components) -> tuple[_Components, _Components]:
    """The longest beginning that is known, and the rest."""
    for end in range(len(components), -1, -1):
        if components[:end] in moved:
            return components[:end], components[end:]
    raise AssertionError(f"component {components} is read but was not kept")


def _components_read(body: Term) -> set[_Components]:
    """The components of variable 0 that a function's body reads: () is all of it, (0, 1) is x.0.1."""
    found: set[_Components] = set()
    seen: set[tuple[int, int, _Components]] = set()

    def look(t: Term, depth: int, components: _Components) -> None:
        if depth not in dangling(t) or (t.id, depth, components) in seen:
            return
        seen.add((t.id, depth, components))
        if t.kind == "bound":
            found.add(components)
        elif t.kind == "proj":
            look(t.args[0], depth, (t["component"], *components))
        else:
            for child in t.args:
                look(child, depth + 1 if t.pattern.name == LAMBDA else depth, ())

    look(body, 0, ())
    return found


def _kept(xs: Term, read: set[_Components]) -> tuple[Term, dict[_Components, _Components]] | None:
    """What is read of an array, and where each old component lies in a new element; None where nothing is read."""
    if xs.kind != "zip" or () in read:
        return (xs, {(): ()}) if read else None
    parts = []
    for i, array in enumerate(xs.args):
        kept = _kept(array, {r[1:] for r in read if r[0] == i})
        if kept is not None:
            parts.append((i, kept))
    if not parts:
        return None
    single = len(parts) == 1
    moved: dict[_Components, _Components] = {}
    for new, (old, (_, inside)) in enumerate(parts):
        moved.update({(old, *k): v if single else (new, *v) for k, v in inside.items()})
    return (parts[0][1][0] if single else zip_(*[array for _, (array, _) in parts])), moved


# ---- fission: backwards, where what is split off is a term and not a variable (no pattern with one solution) --------


def _made_by(kind: str | None) -> Callable[[Term], bool] | None:
    return None if kind is None else lambda t: t.kind == kind


@code_rule(
    "map-fission",
    "map (λx. f (g x)) xs -> map f (map (λx. g x) xs)",
    kinds="map",
    defaults={"kind": None},
    examples=[Example("λ (xs : 8.f32). map (λx. sqrt (x * 2)) xs")],
    law="map-fusion backwards.",
)
def map_fission(term: Term, context: Context, kind: str | None) -> Term | None:
    """f is applied to a term, not to a variable, so it is not a pattern with one solution: g is the largest subterm
    through which alone the body reads x, of the given pattern if one is given."""
    del context
    function, xs = term.args
    carved = None if term["level"] is not None else carve(function.args[0], _made_by(kind), whole=True)
    if carved is None:
        return None
    g, rest = carved
    first = map_(lambda_(function.attrs[0], g), xs, name=term["name"])
    return map_(lambda_(g.type, shift(rest, -1, 1)), first, name=term["name"])


@code_rule(
    "epilogue-fission",
    "map (λx. h (r x) x) xs -> map (λp. h p.0 p.1) (zip (map r xs) xs)",
    kinds="map",
    defaults={"kind": "reduce"},
    examples=[Example("λ (A : 4.6.f32). map (λrow. reduce (+) 0 row / row[0]) A")],
    law="What is done with the result of an inner computation (a reduction, by default) becomes a map of its own.",
)
def epilogue_fission(term: Term, context: Context, kind: str) -> Term | None:
    """The result of r is an argument of h, which is not a pattern with one solution: r is the largest subterm of the
    given pattern that mentions x. Where h reads x only through r, this is map-fission."""
    del context
    function, xs = term.args
    carved = None if term["level"] is not None else carve(function.args[0], _made_by(kind), whole=False)
    if carved is None:
        return None
    r, rest = carved
    inner = map_(lambda_(function.attrs[0], r), xs, name=term["name"])
    if not mentions(rest, 1):
        return map_(lambda_(r.type, shift(rest, -1, 1)), inner, name=term["name"])
    h = lambda_(function.attrs[0], lambda_(r.type, rest))
    return map_(lambda p: instantiate(h, (proj(1, p), proj(0, p))), zip_(inner, xs), name=term["name"])


@code_rule(
    "reduce-map-fission",
    "reduce (λacc x. f acc (g x)) z xs -> reduce f z (map (λx. g x) xs)",
    kinds="reduce",
    examples=[Example("λ (xs : 8.f32). reduce (λacc x. acc + x * x) 0 xs")],
    law="reduce-map-fusion backwards: the combining function alone, whose algebra is declared.",
)
def reduce_map_fission(term: Term, context: Context) -> Term | None:
    """f is applied to a term, not to a variable: g is the largest subterm through which alone the body reads x, and it
    may not mention acc."""
    del context
    function, z, xs = term.args
    if term["level"] is not None or term["memory"] is not None:
        return None
    accumulator, element = function.attrs[0], function.args[0].attrs[0]
    carved = carve(function.args[0].args[0], without=(1,), whole=True)
    if carved is None:
        return None
    g, rest = carved
    f = lambda_(accumulator, lambda_(g.type, shift(rest, -1, 1)))
    return term.with_args((f, z, map_(lambda_(element, shift(g, -1, 1)), xs, name=term["name"])))
