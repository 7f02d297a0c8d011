"""Printing and reading are inverse: for random terms over everything, and for each construct by name."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.arith import Expr, size
from lithify.lang import build as b
from lithify.lang import elaborate_term, parse_expression, parse_type, show, show_program, to_syntax
from lithify.lang.annotations import TypeReader
from lithify.lang.elaborate import elaborate
from lithify.lang.errors import LithifyError
from lithify.lang.index_functions import index_function, reverse, stride
from lithify.lang.levels import LOCAL, SEQ, VEC, Level, Memory
from lithify.lang.operate import operator_function
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import bf16, bool_, complex64, f32, f64, i8, i32, u8
from lithify.lang.term import Term, substitute_parameters, subterms
from lithify.lang.types import Index, Tuple, Type, array
from lithify.lang.unparse import unparse, unparse_type
from tests.evaluate.random_terms import LARGEST, Grower, random_type

WIDTHS = (1, 40, 100, 10**9)
n, m = size("n"), size("m")


def parameters_of(term: Term) -> dict[str, Term]:
    return {t.attrs[0]: t for t in subterms(term) if t.kind == "param"}


def assert_inverse(term: Term, **attributes: object) -> None:
    for width in WIDTHS:
        text = show(term, width)
        environment = {**parameters_of(term), "larger_pair": OPERATOR}
        assert elaborate_term(parse_expression(text), environment, attributes=attributes) is term, text


OPERATOR = operator_function(LARGEST)


@given(st.integers(0, 2**32), st.integers(1, 6))
@settings(max_examples=250)
def test_random_terms(seed: int, depth: int) -> None:
    r = Random(seed)
    grower = Grower(r)
    try:
        grown = grower.grow(random_type(r), depth)
    except LithifyError:  # the generator drew sizes that fit nothing
        return
    names = {name: b.param(f"v{i}", type_) for i, (name, type_) in enumerate(grower.inputs.items())}
    assert_inverse(substitute_parameters(grown, names))


xs, ys, mat = b.param("xs", array(12, f32)), b.param("ys", array(12, f32)), b.param("mat", array(4, 6, f32))
ids, x, z = b.param("ids", array(5, Index(12))), b.param("x", f32), b.param("z", complex64)
symbolic, flags = b.param("as", array(n, m, f64)), b.param("flags", array(12, bool_))
zero, one = b.const(0, f32), b.const(1, f32)


class Row:
    """An instruction: what a machine's table has."""

    name = "mma_2x2"

    def result_type(self, operands: tuple[Type, ...]) -> Type:
        return operands[0]


ROW = Row()
TERMS: dict[str, Term] = {
    "the numbers of a type": b.tuple_(*[b.const(v, f32) for v in (0, -0.0, 1.5, -2, 1e30, 0.1, math.inf, -math.inf)]),
    "not a number": b.const(math.nan, f64),
    "an integer": b.const(-128, i8),
    "a 16-bit float": b.add(b.const(1, bf16), b.const(2, bf16)),
    "a complex number": b.mul(z, b.const(complex(1.5, -2), complex64)),
    "both operands literal": b.op("lt", b.const(1, i32), b.const(2, i32)),
    "a conversion of a literal": b.op("f32", b.const(3, i32)),
    "a conversion": b.map_(lambda e: b.convert(i32, e), xs),
    "negation of a literal": b.op("neg", one),
    "a negative literal": b.op("sub", x, b.const(-1, f32)),
    "precedence": b.op("mul", b.add(x, one), b.op("sub", x, b.op("sub", one, x))),
    "powers": b.op("pow", b.op("pow", x, x), b.op("pow", x, x)),
    "shifts": b.op("shr", b.op("shl", b.const(1, i32), b.const(3, i32)), b.const(1, i32)),
    "comparisons of comparisons": b.op("eq", b.op("lt", x, one), b.op("gt", x, zero)),
    "select": b.select(b.op("lt", x, zero), zero, x),
    "select of literals": b.select(b.op("lt", x, zero), zero, one),
    "select of tuples": b.select(b.op("lt", x, zero), b.tuple_(x, one), b.tuple_(zero, x)),
    "three operands": b.op("fma", x, one, zero),
    "bools": b.map_(lambda e: b.op("and", b.op("not", e), b.const(True, bool_)), flags),
    "a section": b.reduce_(b.add, zero, xs),
    "a section on pairs": b.map_(lambda p: b.mul(b.proj(0, p), b.proj(1, p)), b.zip_(xs, ys)),
    "operands in the other order": b.map_(lambda p: b.op("sub", b.proj(1, p), b.proj(0, p)), b.zip_(xs, ys)),
    "three arrays": b.map_(lambda p: b.add(b.proj(2, p), b.proj(0, p)), b.zip_(xs, ys, xs)),
    "an initial value of another type": b.reduce_(lambda a, e: b.add(a, b.convert(f64, e)), b.const(0, f64), xs),
    "an accumulator of arrays": b.reduce_(
        lambda a, row: b.map_(lambda p: b.add(b.proj(0, p), b.proj(1, p)), b.zip_(a, row)), b.replicate(6, zero), mat
    ),
    "an accumulator that ignores the element": b.reduce_(lambda a, _: a, b.const(0, i32), xs),
    "a reduction's level and memory": b.reduce_(b.add, zero, xs, SEQ, Memory.parse("private"), "k"),
    "a reduction's memory": b.scan(b.add, zero, xs, None, Memory.parse("local:3")),
    "registers": b.reduce_(b.add, zero, xs, SEQ, Memory.parse("reg[item1,-,item0]")),
    "levels with dimensions": b.map_(lambda row: b.map_(lambda e: e, row, Level("item", 0)), mat, Level("group", 1)),
    "names": b.map_(lambda row: b.map_(lambda e: e, row, VEC, "n.lane"), mat, None, "m.block"),
    "pipe": b.pipe(b.add, lambda row: b.at(row, 0), zero, mat, 3, 1, "producer", "k"),
    "iterate": b.iterate(3, lambda v: b.map_(lambda e: b.mul(e, e), v), xs),
    "generate": b.generate(4, lambda i: b.generate(5, lambda j: b.tuple_(i, j, b.at(xs, b.const(2, Index(12)))))),
    "comparison of indices": b.generate(4, lambda i: b.op("eq", i, b.const(2, Index(4)))),
    "an index constant by itself": b.convert(i32, b.const(3, Index(12))),
    "indexing": b.at(b.at(mat, 1), 2),
    "let": b.let(b.mul(x, x), lambda v: b.let(b.add(v, one), lambda w: b.mul(v, w))),
    "let of a tuple": b.let(b.tuple_(x, one), lambda p: b.add(b.proj(0, p), b.proj(1, p))),
    "let in an operand": b.add(b.let(x, lambda v: b.mul(v, v)), x),
    "projection of an operator": b.proj(1, b.proj(0, b.reduce_(lambda a, e: a, b.tuple_(b.tuple_(x, x), x), xs))),
    "array literals": b.array_literal(b.array_literal(x, one), b.array_literal(zero, one)),
    "memories": b.to(Memory.parse("local:2"), b.to(LOCAL, b.map_(lambda e: e, xs, SEQ))),
    "split and join": b.split(3, b.join(mat)),
    "transpose": b.transpose(b.transpose(b.split(2, xs))),
    "windows": b.slide(3, 2, b.take(9, b.drop(1, xs))),
    "padding": b.pad(1, 2, zero, b.pad_mode("mirror", 1, 0, b.pad_mode("wrap", 0, 1, b.pad_mode("clamp", 1, 1, xs)))),
    "padding with rows": b.pad(1, 1, one, mat),
    "padding with other rows": b.pad(1, 1, b.at(mat, 0), mat),
    "padding of tuples": b.pad(1, 0, b.tuple_(zero, one), b.zip_(xs, ys)),
    "unzip": b.proj(1, b.unzip(b.zip_(xs, ys))),
    "concat": b.concat(xs, ys, xs),
    "reverse": b.reindex(reverse(12), xs),
    "stride": b.reindex(stride(4, 12), xs),
    "an inverse": b.reindex(stride(4, 12).inverted(), xs),
    "an index function of its own": b.reindex(index_function("every other", 6, 12, lambda i: 2 * i), xs),
    "gather": b.gather(ids, xs),
    "scatter": b.scatter("permutation", b.generate(12, lambda i: i), xs),
    "atomic scatter": b.scatter(OPERATORS["add"], ids, b.take(5, xs)),
    "swizzle": b.swz(32, mat),
    "launch": b.launch((4, n + 1), (16,), b.map_(lambda e: e, xs, Level("global", 0))),
    "launch without groups": b.launch((), (), xs),
    "symbolic sizes": b.split(m, b.join(symbolic)),
    "symbolic arithmetic": b.take(n // 2 + 1, b.drop(n * 3 - 2, b.replicate(n * 4, x))),
    "symbolic index": b.at(symbolic, b.const(n - 1, Index(n))),
    "a symbolic stride": b.reindex(stride(m, n * m), b.join(symbolic)),
    "a number made of a size": b.convert(f64, b.const(n, Index(n + 1))),
    "a declared operator": b.op(LARGEST, b.param("p", Tuple(i32, i8)), b.tuple_(b.const(1, i32), b.const(2, i8))),
    "a user's name that the printer would choose": b.map_(lambda e: b.map_(lambda f: b.add(b.add(e, f), x), xs), xs),
}  # fmt: skip


@pytest.mark.parametrize("name", TERMS)
def test_construct(name: str) -> None:
    assert_inverse(TERMS[name])


def test_instructions_are_found_by_name() -> None:
    assert_inverse(b.instr(ROW, x), mma_2x2=ROW)
    assert_inverse(b.instr(ROW, xs, ys, x), mma_2x2=ROW)


@pytest.mark.parametrize("operator", [o for o in OPERATORS.values() if o.definition is None], ids=lambda o: o.name)
def test_operators(operator: object) -> None:
    """Every operator, by itself and applied to variables, on each type for which it is defined."""
    for scalar in (f32, i32, u8, bool_, complex64):
        operands = [b.param(f"p{i}", scalar) for i in range(operator.arity)]  # type: ignore[attr-defined]
        if operator.name == "select":  # type: ignore[attr-defined]
            operands[0] = b.param("p0", bool_)
        try:
            term = b.op(operator, *operands)  # type: ignore[arg-type]
        except LithifyError:
            continue
        assert_inverse(term)


@pytest.mark.parametrize(
    "text",
    [
        "f32",
        "n.f32",
        "4.n.f32",
        "(n + 1).f32",
        "(n / 2).(f32, idx[n])",
        "idx[2 * n]",
        "n.f32 -> (f32 -> i32) -> 2.bool",
    ],
)
def test_types(text: str) -> None:
    def number(value: object) -> Expr:
        found = elaborate(value)  # type: ignore[arg-type]
        return found.as_size(lambda free: size(free.name))  # type: ignore[union-attr]

    read = TypeReader({}, number).type(parse_type(text))
    assert unparse_type(parse_type(text)) == text
    assert TypeReader({}, number).type(parse_type(str(read))) is read


def test_text_of_the_matrix_product() -> None:
    a, c = b.param("A", array(n, m, f32)), b.param("B", array(m, n, f32))
    product = b.map_(
        lambda row: b.map_(
            lambda column: b.reduce_(
                b.add, zero, b.map_(lambda p: b.mul(b.proj(0, p), b.proj(1, p)), b.zip_(row, column))
            ),
            b.transpose(c),
        ),
        a,
    )
    assert repr(product) == "map (λx. map (λx1. reduce (+) 0 (map (*) (zip x x1))) (transpose B)) A"
    assert show(product, 40) == (
        "map (λx.\n"
        "  map (λx1.\n"
        "    reduce (+) 0 (map (*) (zip x x1))\n"
        "  ) (transpose B)\n"
        ") A"
    )  # fmt: skip
    program = show_program(product, [("A", a.type), ("B", c.type)])
    assert program.startswith("λ(A : n.m.f32) (B : m.n.f32).")
    assert elaborate_term(parse_expression(show(product)), parameters_of(product)) is product


def test_lines_are_not_longer_than_the_width() -> None:
    term = b.map_(lambda e: b.add(b.mul(e, e), b.mul(b.add(e, one), b.add(e, x))), b.concat(xs, ys, xs, ys))
    for width in (30, 40, 60):
        assert max(map(len, show(term, width).splitlines())) <= width + 4


def test_dangling_variables_are_marked() -> None:
    body = b.map_(lambda e: b.add(e, x), xs).args[0].args[0]
    assert show(body) == "?0 + x"


@pytest.mark.parametrize(
    "text",
    [
        "λ(acc, x) (y : n.f32). acc . x",
        "f . (g . h) . k",
        "let (a, b) = p in a + b",
        "if a < b then a else b",
        "map[item0]@m.block (λx. x.0[1]) (zip(a, b, c))",
        "(+ 1) . (2 *) . (+)",
        "-x * (-2) - (a - b) - c / (d / e)",
        "[f (-1), (a, b), (x : 3.f32)]",
        "(if a then f else g) x",
        "(λx. x) y",
        "(let x = 1 in x) + 2",
    ],
)
def test_surface_syntax(text: str) -> None:
    parsed = parse_expression(text)
    for width in WIDTHS:
        assert parse_expression(unparse(parsed, width)) == parsed, unparse(parsed, width)


def test_to_syntax_is_what_show_prints() -> None:
    for term in TERMS.values():
        assert unparse(to_syntax(term)) == show(term)
