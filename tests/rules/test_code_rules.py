"""The rules whose work is done by Python functions: the same checks, on terms made for each of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lithify.lang.build import at, generate, join, let, map_, proj, reduce_, scan, take, to, transpose, tuple_, zip_
from lithify.lang.levels import HEAP, LOCAL, PRIVATE, SEQ
from lithify.lang.term import Term, apply
from lithify.lang.types import Array, Tuple, Type, shape_of
from lithify.rewrite import Context, Failure, Rule, difference
from lithify.rewrite.rule import Code
from lithify.rules import all_rules, family_of
from tests.generators import Terms, element_of
from tests.rules.laws import INSTANCES

# ---- terms on which each rule fires, more often than not -----------------------------------------------------------


def _fission(t: Terms) -> Term:
    xs = t.rows(t.size())
    middle = t.value_type()
    f, g = t.function([middle], t.value_type()), t.function([element_of(xs.type)], middle)
    return map_(lambda x: apply(f, apply(g, x)), xs, name="m")


def _epilogue(t: Terms) -> Term:
    xs = t.term(t.type(2))
    f, h = t.function([t.scalar, t.atom], t.scalar), t.function([t.scalar, element_of(xs.type)], t.value_type())
    return map_(lambda x: apply(h, reduce_(lambda a, e: apply(f, a, e), t.constant(t.scalar), x), x), xs)


def _reduce_fission(t: Terms) -> Term:
    xs, accumulator, middle = t.rows(t.size()), t.value_type(), t.value_type()
    f, g = t.function([accumulator, middle], accumulator), t.function([element_of(xs.type)], middle)
    return reduce_(lambda a, x: apply(f, a, apply(g, x)), t.term(accumulator), xs)


def _zip_of_maps(t: Terms) -> Term:
    n = t.size()
    arrays = [t.rows(n) for _ in range(t.rng.choice((2, 3)))]
    place = t.rng.randrange(len(arrays))
    f = t.function([element_of(arrays[place].type)], t.value_type())
    arrays[place] = map_(f, arrays[place])
    return zip_(*arrays)


def _let_introduction(t: Terms) -> Term:
    shared = reduce_(lambda a, x: t.combine(a, x), t.constant(t.scalar), t.input(Array(t.size(), t.scalar)))
    xs = t.rows(t.size())
    return map_(lambda x: t.combine(t.using(x, t.scalar, (), 1), t.combine(shared, shared)), xs)


def _let_out(t: Terms) -> Term:
    value = t.term(t.value_type())
    inner = let(value, lambda x: t.using(x, Array(t.size(), t.atom), (), 2))
    consumer = t.rng.randrange(4)
    if consumer == 0:
        return map_(lambda x: t.using(x, t.scalar, (), 1), inner)
    if consumer == 1:
        return reduce_(lambda a, x: t.combine(a, t.using(x, t.scalar, (), 1)), t.constant(t.scalar), inner)
    return zip_(t.term(inner.type), inner) if consumer == 2 else tuple_(inner, t.term(t.scalar))


def _zip_unread(t: Terms) -> Term:
    """A map over a zip, perhaps of zips, of whose components some are read."""
    n = t.size()
    arrays = [t.input(Array(n, t.atom)) for _ in range(4)]
    inner = zip_(*arrays[1:3])
    xs = t.rng.choice((zip_(*arrays), zip_(arrays[0], inner), zip_(inner, arrays[0], arrays[3]), zip_(inner, inner)))
    if t.rng.random() < 0.3:
        return map_(t.function([element_of(xs.type)], t.value_type()), xs)
    read = t.rng.sample(range(len(xs.args)), t.rng.randrange(len(xs.args)))
    parts = [element_of(xs.args[i].type) for i in read]
    function = t.function(parts, t.value_type()) if parts else None
    constant = t.constant(t.scalar)
    return map_(lambda x: apply(function, *[proj(i, x) for i in read]) if function else constant, xs, name="m")


def _zip_apart(t: Terms) -> Term:
    """Loops whose inner loop reads rows of the outer one's and arrays that are the same for all, zipped somehow."""
    m, n = t.size(), t.size()
    rows = t.input(Array(m, Array(n, t.atom)))
    q, r = (t.input(Array(n, t.atom)) for _ in range(2))

    shapes: tuple[Callable[[Term], Term], ...] = (
        lambda x: zip_(q, x, r),
        lambda x: zip_(x, q, x),
        lambda x: zip_(zip_(q, x), r),
        lambda x: zip_(x, zip_(r, x)),
        lambda x: zip_(x, zip_(q, r)),
    )
    zipped = t.rng.choice(shapes)
    f = t.function([element_of(zipped(q).type)], t.value_type())
    return map_(lambda x: map_(f, zipped(x), name="n"), rows, name="m")


def _hoist(t: Terms) -> Term:
    xs = t.rows(t.size())
    written = to(t.rng.choice((LOCAL, HEAP)), map_(lambda x: x, t.term(Array(t.size(), t.atom)), SEQ))
    body = t.function([element_of(xs.type), written.type], t.value_type())
    loop = t.rng.randrange(3)
    if loop == 0:
        return map_(lambda x: apply(body, x, written), xs)
    combine = t.function([t.scalar, element_of(xs.type), written.type], t.scalar)
    make = reduce_ if loop == 1 else scan
    return make(lambda a, x: apply(combine, a, x, written), t.constant(t.scalar), xs)


def _hoist_expanded(t: Terms) -> Term:
    xs = t.rows(t.size())
    row = Array(t.size(), t.atom)
    e, rest = t.function([element_of(xs.type)], row), t.function([element_of(xs.type), row], t.value_type())
    return map_(lambda x: apply(rest, x, to(HEAP, apply(e, x))), xs)


def _layout_out(t: Terms) -> Term:
    xs = t.rows(t.size())
    inner = t.function([element_of(xs.type), t.atom], Array(t.size(), t.scalar))
    ys = t.input(Array(t.size(), t.atom))
    return map_(lambda x: transpose(map_(lambda y: apply(inner, x, y), ys)), xs, name="m")


def _hoist_reduction(t: Terms) -> Term:
    xs, summed = t.rows(t.size()), t.input(Array(t.size(), t.atom))
    f = t.function([t.scalar, t.atom], t.scalar)
    total = reduce_(lambda a, x: apply(f, a, x), t.constant(t.scalar), summed)
    body = t.function([element_of(xs.type), t.scalar], t.value_type())
    if t.rng.random() < 0.5:
        return map_(lambda x: apply(body, x, total), xs)
    combine = t.function([t.scalar, element_of(xs.type), t.scalar], t.scalar)
    make = t.rng.choice((reduce_, scan))
    return make(lambda a, x: apply(combine, a, x, total), t.constant(t.scalar), xs)


def _generated(t: Terms) -> Term:
    value = t.value_type()
    return generate(t.size(), lambda i: t.term(value, (i, i)))


def _hoist_array(t: Terms) -> Term:
    """Rows beside something that depends on the index: an array that does not, as often as not read there, too."""
    array = t.term(t.type(1))
    scope = [array] if t.rng.random() < 0.5 else []
    value = t.value_type()
    return generate(t.size(), lambda i: tuple_(array, t.term(value, (i, *scope))))


def _double_buffer(t: Terms) -> Term:
    pair = Tuple(*[t.value_type() for _ in range(t.rng.choice((2, 3)))])
    f = t.function([pair, t.atom], pair)
    return reduce_(lambda a, x: apply(f, a, x), t.term(pair), t.input(Array(t.size(), t.atom)), SEQ)


def _by_components(t: Terms) -> Term:
    pair = Tuple(*[t.value_type() for _ in range(t.rng.choice((2, 3)))])
    if t.rng.random() < 0.3:
        return t.term(pair)
    f = t.function([pair, t.atom], pair)
    return reduce_(lambda a, x: apply(f, a, x), t.term(pair), t.input(Array(t.size(), t.atom)))


def _accumulator_layout(t: Terms) -> Term:
    """A layout of new elements that are combined with an accumulator of two or three dimensions, one by one."""
    sizes = [t.rng.randrange(1, 4) for _ in range(3)]
    inside = t.rng.random() < 0.5
    kind = t.rng.choice(("join", "take", "transpose"))
    rows = Array(sizes[0], Array(sizes[1], Array(sizes[2], t.scalar) if kind == "join" or inside else t.scalar))
    if kind == "join" and inside:
        rows = Array(sizes[0], Array(2, Array(sizes[1], Array(sizes[2], t.scalar))))
    kept = t.rng.randrange(1, (sizes[1] if inside else sizes[0]) + 1)
    layout = {"join": join, "take": lambda x: take(kept, x), "transpose": transpose}[kind]

    def laid_out(x: Term) -> Term:
        return map_(layout, x) if inside else layout(x)

    xs = t.input(Array(t.size(), rows))
    f = t.function([Tuple(t.scalar, t.scalar)], t.scalar)

    def combine(accumulator: Term, new: Term, dims: int) -> Term:
        if dims == 1:
            return map_(f, zip_(accumulator, new), name=t.rng.choice((None, "m")))
        return map_(lambda p: combine(proj(0, p), proj(1, p), dims - 1), zip_(accumulator, new))

    start = t.input(laid_out(t.input(rows)).type)
    dims = len(shape_of(start.type)[0])
    return reduce_(lambda a, x: combine(a, laid_out(x), dims), start, xs, name="k")


def _copied(t: Terms) -> Term:
    type_: Type = t.atom
    for _ in range(t.rng.randrange(2, 4)):
        type_ = Array(2 * t.rng.randrange(1, 3), type_)
    return t.term(type_)


MAKERS: dict[str, tuple[Callable[[Terms], Term], tuple[object, ...]]] = {
    "map-fission": (_fission, ()),
    "epilogue-fission": (_epilogue, ()),
    "reduce-map-fission": (_reduce_fission, ()),
    "zip-of-maps": (_zip_of_maps, ()),
    "zip-unread": (_zip_unread, ()),
    "zip-apart": (_zip_apart, ()),
    "let-introduction": (_let_introduction, ("reduce",)),
    "let-out": (_let_out, ()),
    "hoist": (_hoist, ()),
    "hoist-expanded": (_hoist_expanded, ()),
    "layout-out": (_layout_out, ()),
    "accumulator-layout": (_accumulator_layout, ()),
    "by-components": (_by_components, ()),
    "double-buffer-components": (_double_buffer, (PRIVATE,)),
    "hoist-reduction": (_hoist_reduction, ()),
    "hoist-array": (_hoist_array, ((0, 0, 0),)),
    "generate-loop": (_generated, ("m",)),
    "copy-joined": (_copied, (2, SEQ, 2)),
    "copy-merged": (_copied, (1,)),
}


def code_rules() -> list[Rule]:
    """Those of instructions have tests of their own: they want terms of certain scalar types."""
    return [r for r in all_rules().values() if isinstance(r.body, Code) and family_of(r) != "instructions"]


@pytest.mark.parametrize("rule", code_rules(), ids=lambda rule: rule.name)
def test_law(rule: Rule) -> None:
    make, arguments = MAKERS[rule.name]
    applied, rng, fired = rule(*arguments), random.Random(rule.name), 0
    for number in range(5 * INSTANCES):
        before = make(Terms(rng))
        after = applied.run(before, Context())
        if isinstance(after, Failure):
            continue
        wrong = difference(before, after, seed=number)
        assert wrong is None, f"{applied.name}, instance {number}: {wrong}\n{before}\n  ->\n{after}"
        fired += 1
        if fired == INSTANCES:
            return
    pytest.fail(f"{rule.name} fired on {fired} of {5 * INSTANCES} terms")


# ---- where they must refuse ----------------------------------------------------------------------------------------


def test_what_depends_on_the_loop_is_not_hoisted() -> None:
    t = Terms(random.Random(0), atoms=False)
    xs = t.input(Array(4, Array(3, t.scalar)))
    loop = map_(lambda x: to(LOCAL, map_(lambda e: e, x, SEQ)), xs)
    reason = all_rules()["hoist"].explain(loop)
    assert reason == "every `to[..]` inside depends on a variable bound in the loop"


def test_an_array_that_depends_on_the_index_is_not_hoisted() -> None:
    t = Terms(random.Random(0), atoms=False)
    xs = t.input(Array(4, Array(3, t.scalar)))
    rows = generate(4, lambda i: map_(lambda x: t.combine(x, x), at(xs, i)))
    hoisted = all_rules()["hoist-array"]
    assert hoisted((0, 0)).explain(rows) == "the array depends on a variable that is bound around it"
    assert hoisted((0, 7)).explain(rows) == "the term does not have its form"


def test_fission_refuses_an_element_that_is_read_twice_in_different_ways() -> None:
    t = Terms(random.Random(0), atoms=False)
    xs = t.input(Array(4, tuple_(t.input(t.scalar), t.input(t.scalar)).type))
    twice = map_(lambda p: tuple_(proj(1, p), proj(0, p)), xs)
    assert all_rules()["map-fission"].explain(twice) is not None


def test_a_reduction_that_reads_its_accumulator_in_the_load_is_not_split() -> None:
    t = Terms(random.Random(0), atoms=False)
    xs = t.input(Array(4, t.scalar))
    mixed = reduce_(lambda a, x: t.combine(t.combine(a, x), t.combine(x, a)), t.constant(t.scalar), xs)
    assert all_rules()["reduce-map-fission"].explain(mixed) is not None


def test_views_that_depend_on_the_element_stay_inside() -> None:
    t = Terms(random.Random(0), atoms=False)
    xs = t.input(Array(4, t.scalar))
    inside = map_(lambda x: map_(lambda y: t.combine(x, y), xs), xs)
    assert all_rules()["layout-out"].explain(inside) is not None


def test_an_accumulator_that_is_read_elsewhere_keeps_its_layout() -> None:
    t = Terms(random.Random(0), atoms=False)
    xs = t.input(Array(3, Array(2, Array(2, t.scalar))))
    start = t.input(Array(2, Array(2, t.scalar)))

    def combine(a: Term, new: Term) -> Term:
        rows = zip_(a, new)
        return map_(lambda p: map_(lambda q: t.combine(proj(0, q), proj(1, q)), zip_(proj(0, p), proj(1, p))), rows)

    rule = all_rules()["accumulator-layout"]
    assert rule.explain(reduce_(lambda a, x: combine(a, transpose(x)), start, xs)) is None
    assert rule.explain(reduce_(lambda a, x: combine(a, x), start, xs)) is not None
    mixed = reduce_(lambda a, x: combine(a, transpose(combine(x, a))), start, xs)
    assert rule.explain(mixed) is not None
