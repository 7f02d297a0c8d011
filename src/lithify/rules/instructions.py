"""Sums of products: on instructions of the machine, with operands of the types that these take.

A row of the instruction tables computes c + a b on small matrices (see `lithify.machine`). `use-instruction` puts it in
the place of a nest that means exactly that; the other rules bring sums of products to that form: factors are converted
before they are multiplied or not, signed factors become unsigned ones, complex numbers become pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

from lithify.lang.build import (
    add,
    array_literal,
    const,
    instr,
    join,
    let,
    map_,
    mul,
    op,
    proj,
    reduce_,
    split,
    transpose,
    tuple_,
    zip_,
)
from lithify.lang.scalars import SCALARS, Kind, Scalar
from lithify.lang.term import LAMBDA, Term, apply, bound, dangling, lambda_, mentions, rebuild, shift
from lithify.lang.types import Array, Tuple, Type
from lithify.machine import InstructionRow, instruction
from lithify.rewrite.rule import Example, Refused, code_rule
from lithify.rewrite.strategy import Context

# ---- instructions --------------------------------------------------------------------------------------------------

_DOTS = """λ (a : 2.bf16) (b : 16.2.bf16) (c : 16.f32).
    map (λs. reduce (λacc p. acc + f32 p.0 * f32 p.1) s.0 (zip a s.1)) (zip c b)"""


@code_rule(
    "use-instruction",
    "map (λs. reduce (λacc p. acc + f p.0 * f p.1) s.0 (zip xs s.1)) (zip cs bs) "
    "-> join (instr[row] (split k xs) (T bs) (split n cs))",
    kinds="map",
    parameters="row",
    when=["the row multiplies m x k by k x n", "k == length xs", "n == length cs", "scalar types are the row's"],
    examples=[Example(_DOTS, ("avx512.dot.16x2.bf16",))],
    law="""What the row means: n sums of k products, the first factors the same for all. Rows with k = 1 do one product
    each. Where m > 1, this stands in a map over m rows: map (λr. map (λs. ..) (zip r.0 bs)) (zip cs as), with r.1 for
    xs. Integers are exact; the order in which a floating point sum is rounded is the instruction's.""",
)
def use_instruction(term: Term, context: Context, row: str) -> Term | None:
    """The products may stand in any order, and are converted as the row's types say."""
    if context.policy == "exact" and instruction(row).scalars[2].is_float:
        raise Refused("sums round in an order of the instruction's own, and the policy is exact")
    chosen = instruction(row)
    if term["level"] is not None or chosen.lanes != 1 or not _is_pairs(term.args[1]):
        return None
    return _row_of_sums(term, chosen) if chosen.shape[0] == 1 else _rows_of_sums(term, chosen)


def _is_pairs(xs: Term) -> bool:
    return xs.kind == "zip" and len(xs.args) == 2


def _row_of_sums(term: Term, chosen: InstructionRow) -> Term | None:
    _, n, k = chosen.shape
    function, xs = term.args
    for sums in (0, 1):
        cs, bs = xs.args[sums], xs.args[1 - sums]
        found = _dots(function.args[0], sums, chosen) if k > 1 else _products(function.args[0], sums, chosen)
        if found is None or not _is_array(cs.type, n, chosen.scalars[2]):
            continue
        matrix = split(k, found) if k > 1 else array_literal(array_literal(found))
        columns = transpose(bs) if k > 1 else split(n, bs)
        return join(_instruction(chosen, matrix, columns, split(n, cs)))
    return None


def _rows_of_sums(term: Term, chosen: InstructionRow) -> Term | None:
    n = chosen.shape[1]
    (function, rows), inner = term.args, term.args[0].args[0]
    if inner.kind != "map" or inner["level"] is not None or not _is_pairs(inner.args[1]):
        return None
    row = bound(0, function.attrs[0])
    for sums, own in ((0, 0), (0, 1), (1, 0), (1, 1)):
        cs, bs = inner.args[1].args[sums], inner.args[1].args[1 - sums]
        if cs is not proj(own, row) or mentions(bs, 0) or not _is_array(cs.type, n, chosen.scalars[2]):
            continue
        if _dots(inner.args[0].args[0], sums, chosen) is proj(1 - own, row) and rows.args[own].type == chosen.types[2]:
            return _instruction(chosen, rows.args[1 - own], transpose(shift(bs, -1)), rows.args[own])
    return None


def _instruction(row: InstructionRow, a: Term, b: Term, c: Term) -> Term:
    if (a.type, b.type) != row.types[:2]:
        raise Refused(f"{row.name} takes {row.types[0]} and {row.types[1]}, not {a.type} and {b.type}")
    return instr(row, a, b, c)


def _is_array(type_: Type, n: int, element: Scalar) -> bool:
    return isinstance(type_, Array) and type_.size.constant == n and type_.element is element


def _dots(body: Term, sums: int, row: InstructionRow) -> Term | None:
    """The factors xs that all sums share, where the body is a sum of products from component `sums` of its variable."""
    if body.kind != "reduce" or body["level"] is not None:
        return None
    function, initial, pairs = body.args
    if pairs.kind != "zip" or len(pairs.args) != 2 or initial is not _component(sums, initial):
        return None
    for own in (0, 1):
        shared = pairs.args[1 - own]
        if pairs.args[own] is not _component(1 - sums, pairs.args[own]) or mentions(shared, 0):
            continue
        accumulator, factors = bound(1, row.scalars[2]), bound(0, function.args[0].attrs[0])
        first, second = (proj(1 - own, factors), proj(own, factors))
        if function.args[0].args[0] in _sums(accumulator, first, second, row):
            return shift(shared, -1)
    return None


def _products(body: Term, sums: int, row: InstructionRow) -> Term | None:
    """The factor that all lanes share, where the body adds one product to component `sums` of its variable."""
    for factor in _factors(body):
        if not mentions(factor, 0) and isinstance(factor.type, Scalar):
            variable = next((t for t in _variables(body) if isinstance(t.type, Tuple)), None)
            if variable is None:
                return None
            if body in _sums(proj(sums, variable), factor, proj(1 - sums, variable), row):
                return shift(factor, -1)
    return None


def _factors(body: Term) -> Iterator[Term]:
    """The factors of products in a sum, without their conversions."""
    if body.kind == "op" and body["operator"].name in ("add", "mul"):
        for a in body.args:
            yield a
            yield from _factors(a)


def _variables(body: Term) -> Iterator[Term]:
    if body.kind == "bound" and body.attrs[0] == 0:
        yield body
    for a in body.args:
        if a.pattern.name != LAMBDA:
            yield from _variables(a)


def _component(number: int, like: Term) -> Term | None:
    """Component `number` of variable 0, if `like` is one."""
    if like.kind == "proj" and like["component"] == number and like.args[0].kind == "bound":
        return like if like.args[0].attrs[0] == 0 else None
    return None


def _sums(accumulator: Term, first: Term, second: Term, row: InstructionRow) -> tuple[Term, ...]:
    """accumulator + first * second in any order, the factors converted as the row does."""
    a, b, c = row.scalars
    if not isinstance(first.type, Scalar) or (first.type, second.type) != (a, b):
        return ()
    left, right = (x if x.type is c else op(c.name, x) for x in (first, second))
    products = (mul(left, right), mul(right, left))
    return tuple(s for product in products for s in (add(accumulator, product), add(product, accumulator)))


# ---- operands ------------------------------------------------------------------------------------------------------

_WIDE = "λ (xs : 8.bf16) (ys : 8.bf16). reduce (λs p. s + f32 p.0 * f32 p.1) 0 (zip xs ys)"


@code_rule(
    "reduce-operand-fission",
    "reduce (λs p. f s (g p.i)) z (zip xs ys) -> reduce (λs p. f s p.i) z (zip xs (map (λy. g y) ys)), here for i = 1",
    kinds="reduce",
    parameters="i",
    examples=[Example(_WIDE, (1,))],
    law="""What a reduction of pairs makes of one component alone, by scalar operators, is made before: then it can be
    stored. Where it makes several things of it, these become a tuple.""",
)
def reduce_operand_fission(term: Term, context: Context, i: int) -> Term | None:
    """g is a term and not a variable, or several: the largest ones that read nothing but the component."""
    del context
    function, z, pairs = term.args
    if term["level"] is not None or pairs.kind != "zip" or not i < len(pairs.args):
        return None
    body, element = function.args[0].args[0], function.args[0].attrs[0]
    assert isinstance(element, Tuple)
    made = list(dict.fromkeys(_made_of(body, i)))
    component = element.items[i]
    if not made or any(g.kind == "proj" for g in made):
        return None
    images = [lambda_(component, _of_component(g, i, element)) for g in made]
    several = len(images) > 1

    def image(x: Term) -> Term:
        parts = [apply(g, x) for g in images]
        return tuple_(*parts) if several else parts[0]

    mapped = map_(image, pairs.args[i], name=term["name"])
    arrays = [mapped if k == i else a for k, a in enumerate(pairs.args)]
    assert isinstance(mapped.type, Array)
    inner = Tuple(*[mapped.type.element if k == i else t for k, t in enumerate(element.items)])

    def leaf(t: Term, d: int) -> Term | None:
        for number, g in enumerate(made):
            if t is shift(g, d):
                own = proj(i, bound(d, inner))
                return proj(number, own) if several else own
        if t.kind == "proj" and t.args[0].kind == "bound" and t.args[0].attrs[0] == d:
            return proj(t["component"], bound(d, inner))
        return None

    changed = lambda_(function.attrs[0], lambda_(inner, rebuild(body, leaf)))
    return term.with_args((changed, z, zip_(*arrays)))


def _made_of(body: Term, i: int) -> Iterator[Term]:
    """The largest terms of scalar operators in a body that read component i of variable 0 and nothing else.

    Where it is read in another way, what is given is that component itself.
    """
    if body.kind == "op" and _reads_only(body, i):
        if 0 in dangling(body):
            yield body
        return
    if body.kind == "proj" and body.args[0].kind == "bound" and body.args[0].attrs[0] == 0:
        if body["component"] == i:
            yield body
        return
    for a in body.args:
        if a.pattern.name == LAMBDA:
            if 1 in dangling(a.args[0]):
                yield proj(i, bound(0, _variable_type(body)))  # inside another function: not looked at
        else:
            yield from _made_of(a, i)


def _variable_type(body: Term) -> Type:
    """The type of variable 0 in a body that mentions it."""
    stack = [(body, 0)]
    while stack:
        t, d = stack.pop()
        if t.kind == "bound" and t.attrs[0] == d:
            return t.type
        stack += [(a, d + (t.pattern.name == LAMBDA)) for a in t.args]
    raise AssertionError("variable 0 is not mentioned")


def _reads_only(t: Term, i: int) -> bool:
    """Scalar operators on component i of variable 0 and constants?"""
    if t.kind == "const":
        return True
    if t.kind == "proj" and t.args[0].kind == "bound":
        return bool(t.args[0].attrs[0] == 0 and t["component"] == i)
    return t.kind == "op" and all(_reads_only(a, i) for a in t.args)


def _of_component(g: Term, i: int, element: Tuple) -> Term:
    """The body of a function of the component, from a term over the tuple."""
    whole = proj(i, bound(0, element))
    return rebuild(g, lambda t, d: bound(d, element.items[i]) if t is shift(whole, d) else None)


_SIGNED = "λ (xs : 8.i8) (ys : 8.i8). reduce (λs p. s + i32 p.0 * i32 p.1) 0 (zip xs ys)"


@code_rule(
    "offset-signed",
    "reduce (λs p. s + i32 p.0 * i32 p.1) z (zip xs ys) "
    "-> reduce (λs p. s + i32 p.0 * i32 p.1) z (zip xs (map (λy. xor (u8 y) 128) ys)) "
    "+ -128 * reduce (+) 0 (map i32 xs), here for i = 1",
    kinds="reduce",
    parameters="i",
    when=["component i of the pairs is i8"],
    examples=[Example(_SIGNED, (1,))],
    law="""y = u - 128 for the unsigned number u whose bits are those of y with the sign turned over, so that
    sum x y = sum x u - 128 sum x: exact, as sums of i32 wrap around.""",
)
def offset_signed(term: Term, context: Context, i: int) -> Term | None:
    """The other factor is any scalar term; the one with the offset is converted and nothing else."""
    del context
    function, z, pairs = term.args
    if term["level"] is not None or pairs.kind != "zip" or len(pairs.args) != 2:
        return None
    body, element = function.args[0].args[0], function.args[0].attrs[0]
    i8, u8, i32 = (SCALARS[name] for name in ("i8", "u8", "i32"))
    if element.items[i] is not i8 or term.type is not i32:
        return None
    accumulator, variable = bound(1, i32), bound(0, element)
    factor = op("i32", proj(i, variable))
    other = next((f for f in _factors(body) if f is not factor and not mentions(f, 1) and f.kind != "const"
                  and body in _plain_sums(accumulator, f, factor)), None)  # fmt: skip
    if other is None or not _reads_only(other, 1 - i):
        return None
    unsigned = map_(lambda y: op("xor", op("u8", y), const(128, u8)), pairs.args[i], name=term["name"])
    arrays = [unsigned if k == i else a for k, a in enumerate(pairs.args)]
    inner = Tuple(*[u8 if k == i else t for k, t in enumerate(element.items)])

    def leaf(t: Term, d: int) -> Term | None:
        return bound(d, inner) if t.kind == "bound" and t.attrs[0] == d else None

    changed = lambda_(i32, lambda_(inner, rebuild(body, leaf)))
    own = element.items[1 - i]
    made = rebuild(other, lambda t, d: bound(d, own) if t is shift(proj(1 - i, variable), d) else None)
    wide = map_(lambda_(own, made), pairs.args[1 - i], name=term["name"])
    summed = reduce_(add, const(0, i32), wide, name=f"{term['name']}.sum" if term["name"] else None)
    return add(term.with_args((changed, z, zip_(*arrays))), mul(const(-128, i32), summed))


def _plain_sums(accumulator: Term, first: Term, second: Term) -> tuple[Term, ...]:
    if first.type is not second.type:
        return ()
    products = (mul(first, second), mul(second, first))
    return tuple(s for product in products for s in (add(accumulator, product), add(product, accumulator)))


_COMPLEX = "λ (xs : 8.complex64) (ys : 8.complex64). reduce (λs p. s + p.0 * p.1) 0 (zip xs ys)"


@code_rule(
    "planar-sum",
    "reduce (λs p. s + f p * g p) z xs -> let r = reduce (λs p. (s.0 + re (f p) * re (g p) - im (f p) * im (g p), "
    "s.1 + re (f p) * im (g p) + im (f p) * re (g p))) (re z, im z) xs in complex r.0 r.1",
    kinds="reduce",
    when=["complex numbers", "the policy lets sums be reordered"],
    examples=[Example(_COMPLEX)],
    law="""Real and imaginary part of a sum of complex products, each a sum of real products: every step of it is one
    fused multiply-add.""",
)
def planar_sum(term: Term, context: Context) -> Term | None:
    """The factors are any scalar terms."""
    function, z, xs = term.args
    if not isinstance(term.type, Scalar) or term.type.kind is not Kind.COMPLEX or term["level"] is not None:
        return None
    body, element = function.args[0].args[0], function.args[0].attrs[0]
    accumulator = bound(1, term.type)
    factors = [f for f in _factors(body) if not mentions(f, 1)]
    pairs = ((f, g) for f in factors for g in factors if body in _plain_sums(accumulator, f, g))
    pair = next(pairs, None)
    if pair is None:
        return None
    if context.policy == "exact":
        raise Refused("the sums are rounded in another order, and the policy is exact")
    f, g = pair
    (a, b), (c, d) = ((op("re", x), op("im", x)) for x in (f, g))
    part = a.type
    sums = bound(1, Tuple(part, part))
    real = op("sub", add(proj(0, sums), mul(a, c)), mul(b, d))
    imaginary = add(add(proj(1, sums), mul(a, d)), mul(b, c))
    step = lambda_(Tuple(part, part), lambda_(element, tuple_(real, imaginary)))
    planar = term.with_args((step, tuple_(op("re", z), op("im", z)), xs))
    return let(planar, lambda r: op("complex", proj(0, r), proj(1, r)))
