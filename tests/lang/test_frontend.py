"""Programs as Python functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.arith import size
from lithify.evaluate import evaluate
from lithify.lang import array, elaborate_term, frontend, parse_expression, read_text
from lithify.lang import build as b
from lithify.lang.errors import LithifyError, TypeMismatch, UnboundSize
from lithify.lang.frontend import build, declared
from lithify.lang.levels import SEQ, Level, Memory
from lithify.lang.operators import OPERATORS
from lithify.lang.primitives import PRIMITIVES
from lithify.lang.scalars import SCALARS, bool_, f32, f64, i32
from lithify.lang.term import Term
from lithify.lang.types import Index, Tuple

n, m, k = frontend.sizes("n m k")
XS, YS = array(12, f64), array(12, f64)
MAT = array(4, 6, f64)


def matmul(a: lf.Array[m, k, lf.f32], c: lf.Array[k, n, lf.f32]):  # type: ignore[valid-type,no-untyped-def]
    return a >> lf.map(lambda row: c >> lf.transpose >> lf.map(lambda col: lf.dot(row, col)))


def test_the_matrix_product_of_the_documentation() -> None:
    program = build(matmul, [array(4, 5, f32), array(5, 6, f32)])
    text = read_text("p = λ a c. map (λ row. map (λ col. dot row col) (transpose c)) a")["p"]
    assert program.term is text.elaborate(program_types := [array(4, 5, f32), array(5, 6, f32)]).term
    assert program.parameters == tuple(zip("ac", program_types, strict=True))
    assert {name: value.constant for name, value in program.sizes.items()} == {"m": 4, "k": 5, "n": 6}
    assert str(build(matmul).type) == "m.n.f32"
    assert declared(matmul) == [array(m, k, f32), array(k, n, f32)]


# a Python function of arrays xs, ys (12.f64) and mat (4.6.f64), and the text that means the same
SAME: list[tuple[Callable[..., Any], str]] = [
    (lambda xs, ys, mat: lf.map(lambda x: x * 2 + 1, xs), "map (λ x. x * 2 + 1) xs"),
    (lambda xs, ys, mat: xs >> lf.map(lambda x: 1 - x / 2), "map (λ x. 1 - x / 2) xs"),
    (lambda xs, ys, mat: lf.map(lambda x: x)(xs), "xs"),
    (lambda xs, ys, mat: xs >> (lf.map(lf.sqrt) >> lf.map(abs)), "map abs (map sqrt xs)"),
    (lambda xs, ys, mat: lf.map(lf.add, lf.zip(xs, ys)), "map (+) (zip xs ys)"),
    (lambda xs, ys, mat: lf.map(lambda x, y: x - y, lf.zip(xs, ys)), "map (-) (zip xs ys)"),
    (lambda xs, ys, mat: lf.map(lambda p: p[0] - p[1], lf.zip(xs, ys)), "map (-) (zip xs ys)"),
    (lambda xs, ys, mat: lf.map(lambda x, y, z: x + y * z, lf.zip(xs, ys, xs)),
     "map (λ x y z. x + y * z) zip(xs, ys, xs)"),
    (lambda xs, ys, mat: lf.reduce(lf.add, 0, xs), "reduce (+) 0 xs"),
    (lambda xs, ys, mat: lf.reduce(operator.mul, 1, xs), "reduce (*) 1 xs"),
    (lambda xs, ys, mat: xs >> lf.reduce(lf.max, float("-inf")), "reduce max (-inf) xs"),
    (lambda xs, ys, mat: lf.reduce(lambda acc, x: (acc[0] + x, acc[1] + 1), (0, 0), xs),
     "reduce (λ acc x. (acc.0 + x, acc.1 + 1)) (0, 0) xs"),
    (lambda xs, ys, mat: lf.reduce(lambda acc, x, y: acc + x * y, 0, lf.zip(xs, ys)),
     "reduce (λ acc x y. acc + x * y) 0 (zip xs ys)"),
    (lambda xs, ys, mat: lf.reduce(lf.add, 0, mat), "reduce (+) 0 mat"),
    (lambda xs, ys, mat: lf.scan(lf.add, 0, xs), "scan (+) 0 xs"),
    (lambda xs, ys, mat: lf.sum(xs) / lf.length(xs), "sum xs / length xs"),
    (lambda xs, ys, mat: mat >> lf.map(lf.sum), "map sum mat"),
    (lambda xs, ys, mat: xs >> lf.split(4) >> lf.transpose >> lf.join, "join (transpose (split 4 xs))"),
    (lambda xs, ys, mat: xs >> lf.pad(1, 1, "clamp") >> lf.slide(3, 1), "slide 3 1 (pad 1 1 clamp xs)"),
    (lambda xs, ys, mat: lf.pad(1, 1, lf.fill(2.5), xs), "pad 1 1 (fill 2.5) xs"),
    (lambda xs, ys, mat: lf.pad(1, 1, 0, xs), "pad 1 1 0 xs"),
    (lambda xs, ys, mat: xs[1:4], "drop 1 (take 4 xs)"),
    (lambda xs, ys, mat: xs[3] * mat[1][2], "xs[3] * mat[1][2]"),
    (lambda xs, ys, mat: lf.concat(xs, ys, xs), "concat(xs, ys, xs)"),
    (lambda xs, ys, mat: lf.concat(xs, ys), "concat xs ys"),
    (lambda xs, ys, mat: lf.reverse(xs), "reverse xs"),
    (lambda xs, ys, mat: lf.reorder(lf.stride(4), xs), "reorder (stride 4) xs"),
    (lambda xs, ys, mat: lf.reorder(lambda i: 11 - i, xs), "reorder (λ i. 11 - i) xs"),
    (lambda xs, ys, mat: lf.generate(5, lambda i: lf.f64(i) * 2), "generate 5 (λ i. f64 i * 2)"),
    (lambda xs, ys, mat: lf.generate(12, lambda i: xs[i]), "generate 12 (λ i. xs[i])"),
    (lambda xs, ys, mat: lf.replicate(3, xs), "replicate 3 xs"),
    (lambda xs, ys, mat: lf.iterate(3, lf.map(lambda x: x * x), xs), "iterate 3 (map (λ x. x * x)) xs"),
    (lambda xs, ys, mat: lf.map(lambda x: lf.select(x < 0, -x, x), xs), "map (λ x. if x < 0 then -x else x) xs"),
    (lambda xs, ys, mat: lf.map(lambda x: lf.select((x >= 0) & ~(x == 1) | (x != x), 1, 0) + x, xs),
     "map (λ x. (if x >= 0 && not (x == 1) || x != x then 1 else 0) + x) xs"),
    (lambda xs, ys, mat: lf.map(lambda x: x**2, xs), "map (λ x. x ^ 2) xs"),
    (lambda xs, ys, mat: lf.map(lambda x: lf.i32(x) % 3 ^ lf.i32(x) << 2, xs),
     "map (λ x. xor (i32 x % 3) (i32 x << 2)) xs"),
    (lambda xs, ys, mat: 2**xs[0] + 7 // 2, "2 ^ xs[0] + 3"),
    (lambda xs, ys, mat: lf.let(lf.sum(xs), lambda total: lf.map(lambda x: x / total, xs)),
     "let total = sum xs in map (λ x. x / total) xs"),
    (lambda xs, ys, mat: lf.map(lambda w: lf.dot(w, [1, 2, 1]) / 4, lf.slide(3, 1, xs)),
     "map (λ w. dot w [1, 2, 1] / 4) (slide 3 1 xs)"),
    (lambda xs, ys, mat: lf.map(lambda w: lf.dot(w, np.array([0.5, 0.25])), lf.slide(2, 1, xs)),
     "map (λ w. dot w [f64 0.5, 0.25]) (slide 2 1 xs)"),
    (lambda xs, ys, mat: np.float32(2) * xs[0] + np.int64(1), "2 * xs[0] + 1"),
    (lambda xs, ys, mat: (xs, mat[0], 1), "(xs, mat[0], 1)"),
    (lambda xs, ys, mat: xs + ys * 2, "xs + ys * 2"),
    (lambda xs, ys, mat: lf.untile(lf.tile(2, 3, mat)), "untile (tile 2 3 mat)"),
    (lambda xs, ys, mat: lf.partial_reduce(3, lf.add, 0, xs), "partialReduce 3 (+) 0 xs"),
    (lambda xs, ys, mat: lf.map(lambda x: x + 1, xs, level="seq", name="k"), "map[seq]@k (λ x. x + 1) xs"),
    (lambda xs, ys, mat: lf.map(level=Level("item", 0))(lambda x: x + 1)(xs), "map[item0] (λ x. x + 1) xs"),
    (lambda xs, ys, mat: lf.reduce(lf.add, 0, xs, level=SEQ, memory="private"), "reduce[seq, private] (+) 0 xs"),
    (lambda xs, ys, mat: lf.to("local", lf.map(lambda x: x + 1, xs)), "to[local] (map (λ x. x + 1) xs)"),
    (lambda xs, ys, mat: xs >> lf.to(Memory.parse("heap"), lf.map(lambda x: x + 1)), "to[heap] (map (λ x. x + 1) xs)"),
    (lambda xs, ys, mat: lf.unzip(lf.zip(xs, ys))[1], "(unzip (zip xs ys)).1"),
    (lambda xs, ys, mat: lf.scatter(lf.generate(12, lf.id), xs), "scatter (generate 12 id) xs"),
    (lambda xs, ys, mat: lf.scatter(lf.generate(12, lf.id), xs, mode="add"), "scatter[add] (generate 12 id) xs"),
    (lambda xs, ys, mat: lf.convert(f32, xs[0]), "f32 xs[0]"),
    (lambda xs, ys, mat: lf.map(lambda x, w=2: x * w, xs), "map (λ x. x * 2) xs"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "text"), SAME, ids=[text for _, text in SAME])
def test_python_and_text_are_one_program(function: Callable[..., Any], text: str) -> None:
    environment = {"xs": b.param("xs", XS), "ys": b.param("ys", YS), "mat": b.param("mat", MAT)}
    assert build(function, [XS, YS, MAT]).term is elaborate_term(parse_expression(text), environment)


def test_every_primitive_and_operator_is_a_function() -> None:
    special = {"partialReduce": "partial_reduce", "and": "and_", "or": "or_", "not": "not_"}
    for name in (*PRIMITIVES, *OPERATORS, "dot", "tile"):
        if name not in SCALARS:
            function = getattr(lf, special.get(name, name))
            assert "argument" in repr(function)
            assert special.get(name, name) in frontend.__all__
    with pytest.raises(AttributeError):
        frontend.no_such_pattern  # noqa: B018


def test_sizes_in_the_body_are_those_of_the_arguments() -> None:
    def variance(rows: lf.Array[m, n, lf.f64]) -> Any:  # type: ignore[valid-type]
        def one(row: Any) -> Any:
            return lf.let(lf.sum(row) / n, lambda mean: lf.sum(lf.map(lambda x: (x - mean) ** 2, row)) / n)

        return lf.map(one, rows)

    values = np.random.default_rng(3).random((4, 7))
    for program in (build(variance, [array(4, 7, f64)]), build(variance)):
        np.testing.assert_allclose(evaluate(program.term, {"rows": values}), values.var(1))

    def halves(xs: lf.Array[n, lf.f32]) -> Any:  # type: ignore[valid-type]
        return lf.split(n // 2, xs)

    assert build(halves, [array(6, f32)]).type is array(2, 3, f32)


def test_given_sizes() -> None:
    def blocks(xs):  # type: ignore[no-untyped-def]
        return lf.split(k, xs)

    assert build(blocks, [array(6, f32)], {"k": 3}).type is array(2, 3, f32)
    with pytest.raises(UnboundSize, match=r"the size is not known: k \(in blocks\)"):
        build(blocks, [array(6, f32)])
    with pytest.raises(UnboundSize, match="k"):
        build(lambda x: lf.replicate(k, x), [f32])
    assert build(lambda x: lf.replicate(n, x), [array(n, f32)]).type is array(n, n, f32)


def test_annotations() -> None:
    def scaled(a: lf.f32, xs: lf.Array[n, lf.f32]) -> lf.Array[n, lf.f32]:  # type: ignore[valid-type]
        return lf.map(lambda x: a * x, xs)

    assert build(scaled).type is array(n, f32)
    assert build(scaled, {"xs": array(3, f32), "a": f32}).type is array(3, f32)
    with pytest.raises(TypeMismatch, match=r"f32 expected, f64 given \(xs : 3.f64\)"):
        build(scaled, [f32, array(3, f64)])
    with pytest.raises(TypeMismatch, match=r"two values of size k: 3 \(a : 2.3.f32\) and 4 \(c : 4.3.f32\)"):
        build(matmul, [array(2, 3, f32), array(4, 3, f32)])

    def wrong(xs: lf.Array[n, lf.f32]) -> lf.Array[n, lf.f64]:  # type: ignore[valid-type]
        return xs

    with pytest.raises(TypeMismatch, match=r"f64 expected, f32 given \(the result of wrong"):
        build(wrong)

    def pairs(p: (lf.f32, lf.Array[n, lf.i32])):  # type: ignore[no-untyped-def,valid-type]
        return p[1]

    assert build(pairs, [Tuple(f32, array(2, i32))]).type is array(2, i32)


def test_functions_made_while_the_program_runs() -> None:
    """No source text is read: what `exec` or a notebook defines works as well."""
    scope: dict[str, Any] = {"lf": lf, "n": size("n")}
    exec("def f(xs: lf.Array[n, lf.f32]):\n  return xs >> lf.map(lambda x: x + 1)", scope)
    assert build(scope["f"], [array(3, f32)]).type is array(3, f32)


def fails(function: Callable[..., Any], *types: Any) -> LithifyError:
    with pytest.raises(LithifyError) as caught:
        build(function, types)
    return caught.value


def test_errors_name_the_line_of_the_user() -> None:
    error = fails(lambda xs: lf.map(lambda x: x + True, xs), XS)
    assert "different types: f64 and bool" in str(error)
    assert "test_frontend.py, line " in str(error)
    assert "in <lambda>" in str(error)
    assert "test_frontend.py" in str(fails(lambda xs: lf.split(5, xs), XS))
    assert "test_frontend.py" in str(fails(lambda xs: xs[12], XS))
    assert "test_frontend.py" in str(fails(lambda xs: xs + "a", XS))


def test_mistakes_that_python_invites() -> None:
    assert "lf.select" in str(fails(lambda x: x if x > 0 else -x, f32))
    assert "use lf.max or a lambda" in str(fails(lambda xs: lf.reduce(max, 0, xs), XS))
    assert "takes no parameters" in str(fails(lambda xs: lf.map(lambda: 1, xs), XS))
    assert "only tuples can be unpacked" in str(fails(lambda xs: [x for x in xs][0], XS))  # noqa: C416, RUF015
    assert "a slice has no step" in str(fails(lambda xs: xs[::2], XS))
    assert "an argument is missing" in str(fails(lambda xs: lf.map(lf.add, xs), XS))
    assert "is an argument missing?" in str(fails(lambda xs: lf.map(lambda x: x), XS))
    assert "is no function" in str(fails(lambda xs: lf.map(lf.id, xs, xs), XS))
    assert "no value of a program" in str(fails(lambda xs: {"a": 1}, XS))
    assert "no level named" in str(fails(lambda xs: lf.map(lf.id, xs, level="foo"), XS))
    assert "takes no attribute" in str(fails(lambda xs: lf.map(lf.id, xs, memory="local"), XS))
    assert "keyword arguments" in str(fails(lambda xs: lf.sqrt(xs, level="seq"), XS))


def test_pythons_own_functions_are_told_apart() -> None:
    import math

    for function, written in (
        (lambda xs: round(xs[0]), "lf.round(x)"),
        (lambda xs: math.floor(xs[0]), "lf.floor(x)"),
        (lambda xs: math.ceil(xs[0]), "lf.ceil(x)"),
        (lambda xs: divmod(xs[0], 2), "x % y"),
        (lambda xs: range(xs[0]), "lf.let([1, 2]"),
        (lambda xs: [1, 2, 3][xs[0]], "lf.let([1, 2]"),
        (lambda xs: complex(xs[0]), "lf.f32(x)"),
        (lambda xs: xs.__setitem__(0, 1), "lf.generate"),
    ):
        assert written in str(fails(function, XS))


def test_what_numpy_and_arrays_would_do_is_said_in_the_language() -> None:
    """Each of these does something in NumPy; here the error says what to write."""
    a = array(3, 4, f32)
    for function, written in (
        (lambda x: np.tanh(x), "lf.tanh(x)"),
        (lambda x: np.maximum(x, 0), "lf.max(a, b)"),
        (lambda x: np.sum(x), "lf.sum(xs)"),
        (lambda x: np.add.reduce(x), "lf.sum(xs)"),
        (lambda x: np.dot(x, x), "lf.dot(row, column)"),
        (lambda x: np.where(x > 0, x, 0), "lf.select(condition, a, b)"),
        (lambda x: np.asarray(x), "values already"),
        (lambda x: np.linalg.inv(x), "lf.map, lf.reduce"),
        (lambda x: x @ x, "lf.dot(row, column)"),
        (lambda x: np.ones((3, 3), np.float32) @ x, "lf.dot(row, column)"),
        (lambda x: x.sum(), "lf.sum(xs)"),
        (lambda x: x.T, "lf.transpose(a)"),
        (lambda x: x.shape[0], "lf.length(xs)"),
        (lambda x: x.frobnicate(), "lf.map, lf.reduce"),
        (lambda x: len(x), "lf.length(xs)"),
        (lambda x: sum(x), "lf.sum"),
        (lambda x: max(x[0][0], 0), "lf.max(a, b)"),
        (lambda x: x[0] >> lf.map(np.sqrt), "lf.sqrt(x)"),
    ):
        error = fails(function, a)
        assert written in str(error.hint), error
        assert "test_frontend.py" in str(error.where), error


def test_an_array_that_is_too_large_to_be_written_out_is_to_be_a_parameter() -> None:
    weights = np.ones((60, 60), np.float32)
    several = weights[:9]
    for function, elements in (
        (lambda x: lf.add(x, weights), 3600),
        (lambda x: x + several, 540),
        (lambda x: lf.map(lf.add, lf.zip(x[0], weights[0].repeat(20))), 1200),
    ):
        error = fails(function, array(9, 1200, f32))
        assert f"an array of {elements} elements stands in a program" in str(error)
        assert "make it a parameter" in str(error.hint)
        assert "test_frontend.py" in str(error.where)


def test_operators_with_numpys_arrays_on_either_side() -> None:
    xs = np.arange(1, 5, dtype=np.float32)
    for left, right in (
        (lambda x: xs - x, lambda x: lf.sub(xs, x)),
        (lambda x: x / xs, lambda x: lf.div(x, xs)),
        (lambda x: np.float32(2) - x, lambda x: 2 - x),
        (lambda x: xs <= x, lambda x: lf.le(xs, x)),
        (lambda x: xs**x, lambda x: lf.pow(xs, x)),
    ):
        assert build(left, [array(4, f32)]).term is build(right, [array(4, f32)]).term


def test_a_let_of_numbers_leaves_their_type_open() -> None:
    """As in texts: what has no type yet takes that of what it meets."""
    for value in ([1, 2, 1], (1, 2, 1), [1.0, 2.0, 1.0]):

        def scaled(xs):  # type: ignore[no-untyped-def]
            return lf.let(value, lambda w: lf.map(lambda x: x * w[1], xs))  # noqa: B023

        assert build(scaled, [array(4, f64)]).term.type is array(4, f64)
    weighted = build(lambda xs: lf.let([1, 2], lambda w: lf.dot(w, xs)), [array(2, f32)]).term
    assert evaluate(weighted, {"xs": np.array([3, 4])}) == 11


def test_names_that_are_nearly_right() -> None:
    import lithify

    with pytest.raises(AttributeError, match=r"did you mean .*sqrt"):
        lithify.sqr  # noqa: B018


def test_everything_that_there_is_is_listed() -> None:
    """`dir` lists it, it can be named, and nothing else can."""
    import lithify

    listed = dir(lithify)
    for name in (*PRIMITIVES, "dot", "tile", "copy2d", "load", "program", "operator", "sizes", "f32", "TypeMismatch"):
        assert {"partialReduce": "partial_reduce"}.get(name, name) in listed
    for name in listed:
        assert getattr(lithify, name) is not None
    for name in ("located", "build", "declared", "_function"):
        assert name not in listed
        with pytest.raises(AttributeError):
            getattr(lithify, name)


def test_sizes() -> None:
    """However many names there are, `sizes` gives a tuple, and `size` one."""
    assert frontend.sizes("n m") == (frontend.size("n"), frontend.size("m"))
    assert frontend.sizes("k") == (frontend.size("k"),)
    with pytest.raises(TypeMismatch, match="no name of a size"):
        frontend.size("n m")
    with pytest.raises(TypeMismatch, match=r"lf\.size"):
        frontend.Array[frontend.sizes("k"), f32]  # type: ignore[index]
    with pytest.raises(TypeMismatch, match=r"the text 'k' is given\nhint: n = lf\.size\('k'\) makes a variable"):
        frontend.Array["k", f32]  # type: ignore[index]


def test_dimensions_too_many_or_too_few() -> None:
    for given, fix in ((array(3, f32), "(1, 3)"), (array(3, 1, 4, f32), "(3, 4)")):
        error = fails_with(TypeMismatch, matmul, given, array(4, 5, f32))
        assert f"m.k.f32 expected, {given} given" in str(error)
        assert f".reshape{fix} has 2" in str(error)
    assert ".reshape" not in str(fails_with(TypeMismatch, matmul, array(3, 3, 4, f32), array(4, 5, f32)))
    error = fails(lambda a, bias: a >> lf.map(lambda row: row + bias), array(3, 4, f32), array(1, 4, f32))
    assert "1.4.f32 fits as .reshape(4)" in str(error)


def fails_with(kind: type[Exception], function: Callable[..., Any], *types: Any) -> Exception:
    with pytest.raises(kind) as caught:
        build(function, types)
    return caught.value


def test_wrong_calls_of_build() -> None:
    with pytest.raises(TypeMismatch, match="takes 2 arguments"):
        build(matmul, [f32])
    with pytest.raises(TypeMismatch, match="takes a, c, not a"):
        build(matmul, {"a": f32})

    def f(x):  # type: ignore[no-untyped-def]
        return x

    def g(x: int) -> Any:
        return x

    with pytest.raises(TypeMismatch, match="the type of parameter x of f"):
        build(f)
    with pytest.raises(TypeMismatch, match="the annotation of x is no type"):
        build(g, [f32])


def test_traced_values_outside_of_a_program() -> None:
    x = frontend.Traced(b.param("x", f32))
    assert repr(x + 1) == "x + 1"
    assert (x * 2).type is f32
    assert isinstance((x * 2).term, Term)
    assert (x < 1).type is bool_
    assert frontend.Traced(b.param("i", Index(3))).type is Index(3)
    assert lf.f32(2).term is b.const(2, f32)
    assert (lf.f32(2) * n).type is f32


def test_a_shift_that_is_written_as_an_application() -> None:
    with pytest.raises(TypeMismatch, match=r"the number 6 is no function.*\n.*\n?.*shr\(x, n\) in Python"):
        lf.program(lambda x: x >> 6)(np.int32(640))
    assert lf.program(lambda x: lf.shr(x, 6))(np.int32(640)) == 10
