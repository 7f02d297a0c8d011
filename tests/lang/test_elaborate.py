"""What texts mean: against NumPy for values, against built terms where the shape of the term matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lithify.arith import size
from lithify.evaluate import evaluate
from lithify.lang import build as b
from lithify.lang import elaborate_term, parse_expression, read_text
from lithify.lang.elaborate import elaborate
from lithify.lang.errors import LithifyError, ParseError, TypeMismatch
from lithify.lang.levels import LOCAL, SEQ, Level, Memory
from lithify.lang.scalars import bool_, f32, f64, i32
from lithify.lang.term import Term, abstract, size_of
from lithify.lang.types import Index, array

XS, YS = np.arange(12.0) - 3, np.arange(12.0) ** 2
MAT = np.arange(24.0).reshape(4, 6)
IDS = np.array([3, 0, 11, 3])
INPUTS: dict[str, Any] = {"xs": XS, "ys": YS, "mat": MAT, "ids": IDS, "a": 2.5}
ENVIRONMENT = {
    "xs": b.param("xs", array(12, f64)), "ys": b.param("ys", array(12, f64)), "mat": b.param("mat", array(4, 6, f64)),
    "ids": b.param("ids", array(4, Index(12))), "a": b.param("a", f64),
}  # fmt: skip


def term(text: str, **sizes: int) -> Term:
    return elaborate_term(parse_expression(text), ENVIRONMENT, sizes=sizes)


def value(text: str, **sizes: int) -> Any:
    elaborated = term(text, **sizes)
    return evaluate(elaborated, {name: INPUTS[name] for name in elaborated.parameters})


def windows(xs: Any, n: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(xs, n)


VALUES: dict[str, Any] = {
    # arithmetic, literals, conditions
    "a * 2 + 1": 6.0,
    "1 / 4 + a": 2.75,
    "-a ^ 2": -6.25,
    "(if a < 3 then 1 else 0) + a": 3.5,
    "f64 3 / 2": 1.5,
    "i32 a": 2,
    "max a (-inf)": 2.5,
    "i32 7 % 4": 3,
    "if 1 < 2 && not (a == a) then 1 else 2": 2,
    "(if a < 3 then 0.5 else 0) * 3 + a": 4.0,
    "xs[11] - xs[0]": 11.0,
    "mat[1][2]": 8.0,
    "(λ x y. x - y) a 1": 1.5,
    "(1 -) a": -1.5,
    "(- 1) + a": 1.5,
    "(* 2) a": 5.0,
    "let x = a * a in x + x": 12.5,
    "let (p, q) = (a, 2 * a) in p * q": 12.5,
    "let f = λ x. x * x in f (f a)": 39.0625,
    "(let y = a * a in λ x. x + y) 1": 7.25,
    "(a, 1).0 + (1, a).1": 5.0,
    "fst (a, xs) * snd (xs, a)": 6.25,
    "length xs * a": 30.0,
    # maps and zips
    "map (λ x. x * 2) xs": XS * 2,
    "xs |> map (* 2) |> map (+ 1)": XS * 2 + 1,
    "xs >> (map (* 2) >> map (+ 1))": XS * 2 + 1,
    "(map (+ 1) . map (* 2)) xs": XS * 2 + 1,
    "map (+ 1) . map (* 2) . xs": XS * 2 + 1,
    "map (+) (zip xs ys)": XS + YS,
    "map (+) zip(xs, ys)": XS + YS,
    "map (+) (xs, ys)": XS + YS,
    "map (λ x y. x - y) (zip xs ys)": XS - YS,
    "map (λ (x, y). x - y) (zip xs ys)": XS - YS,
    "map (λ p. p.0 - p.1) (zip xs ys)": XS - YS,
    "map (λ x y z. x - y * z) zip(xs, ys, xs)": XS - YS * XS,
    "map (-) (zip 1 xs)": 1 - XS,
    "map (-) (zip xs a)": XS - 2.5,
    "map abs xs": np.abs(XS),
    "map (max 0) xs": np.maximum(XS, 0),
    "map (map (+ 1)) mat": MAT + 1,
    "map (reduce (+) 0) (transpose mat)": MAT.sum(0),
    "xs + ys": XS + YS,
    "2 * xs - 1": 2 * XS - 1,
    "mat * a": MAT * 2.5,
    "map (λ x. if x < 0 then 0 else x) xs": np.maximum(XS, 0),
    "map id xs": XS,
    # reductions
    "reduce (+) 0 xs": XS.sum(),
    "sum xs / length xs": XS.mean(),
    "reduce max (-inf) xs": 8.0,
    "reduce (λ acc x. acc - x) 0 xs": -XS.sum(),
    "reduce (λ(acc, x). acc - x) 0 xs": -XS.sum(),
    "reduce (λ acc x y. acc + x * y) 0 (zip xs ys)": XS @ YS,
    "reduce (λ acc (x, y). acc + x * y) 0 (zip xs ys)": XS @ YS,
    "reduce (λ (s, c) x. (s + x, c + 1)) (0, 0) xs": (XS.sum(), 12),
    "reduce (λ (s, c) x. (s + x, c + 1)) 0 xs": (XS.sum(), 12),
    "(reduce (λ acc x. (acc.0 + x, max acc.1 x)) 0 xs).1": 8.0,
    "reduce (+) 0 mat": MAT.sum(0),
    "reduce (λ acc row. map (+) (zip acc row)) 0 mat": MAT.sum(0),
    "reduce (λ acc x. acc + i32 x) 0 xs": 30,
    "scan (+) 0 xs": np.cumsum(XS),
    "dot xs ys": XS @ YS,
    "dotProduct xs ys": XS @ YS,
    "partialReduce 3 (+) 0 xs": XS.reshape(4, 3).sum(1),
    "reducePart 3 (+) 0 xs": XS.reshape(4, 3).sum(1),
    # Lift's one-element arrays
    "reduce (+) 0 . join . map (reduce (+) 0) . split 4 . xs": XS.sum(),
    "join (toLocal (mapLocal (reduceSeq (+) 0)) (split 4 xs))": XS.reshape(3, 4).sum(1),
    "map (* 2) (reduce (+) 0 xs)": 2 * XS.sum(),
    "split 1 (reduce (+) 0 xs)": np.array([[XS.sum()]]),
    "concat (reduce (+) 0 xs) ys": np.concatenate([[XS.sum()], YS]),
    "a * take 1 ys": 0.0,
    "join (map (λ r. map (* a) (reduce (+) 0 r)) mat)": MAT.sum(1) * 2.5,
    # views
    "split 4 xs": XS.reshape(3, 4),
    "split n xs": XS.reshape(4, 3),
    "split (n * 4 / 2) xs": XS.reshape(2, 6),
    "joinVec (mapSeq (mapVec (+ 1)) (splitVec 4 xs))": XS + 1,
    "transpose mat": MAT.T,
    "take 3 (drop 2 xs)": XS[2:5],
    "slide 3 1 xs": windows(XS, 3),
    "slide 3 2 xs": windows(XS, 3)[::2],
    "pad 1 2 0 xs": np.pad(XS, (1, 2)),
    "pad 1 2 (fill a) xs": np.pad(XS, (1, 2), constant_values=2.5),
    "pad 1 2 clamp xs": np.pad(XS, (1, 2), "edge"),
    "pad 1 2 mirror xs": np.pad(XS, (1, 2), "symmetric"),
    "pad 1 2 wrap xs": np.pad(XS, (1, 2), "wrap"),
    "pad 1 0 9 mat": np.pad(MAT, ((1, 0), (0, 0)), constant_values=9),
    "reverse xs": XS[::-1],
    "reorder reverse xs": XS[::-1],
    "reorder (stride 4) xs": XS.reshape(3, 4).T.reshape(12),
    "reorder (λ i. 11 - i) xs": XS[::-1],
    "reorder (λ i. i / 2) xs": XS[np.arange(12) // 2],
    "gather ids xs": XS[IDS],
    "scatter (generate 12 id) xs": XS,
    "scatter[add] ids (take 4 ys)": np.array([1, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4.0]),
    "concat xs ys": np.concatenate([XS, YS]),
    "concat(xs, ys, xs)": np.concatenate([XS, YS, XS]),
    "unzip (zip xs ys)": (XS, YS),
    "replicate 3 a": np.full(3, 2.5),
    "generate 3 (λ i. f64 i * a)": np.arange(3) * 2.5,
    "generate 2 (λ i. generate 3 (λ j. i32 i * 10 + i32 j))": np.array([[0, 1, 2], [10, 11, 12]]),
    "map (λ i. xs[i]) ids": XS[IDS],
    "singleton a": np.array([2.5]),
    "untile (tile 2 3 mat)": MAT,
    "tile 2 3 mat": MAT.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3),
    "copy2D mat": MAT,
    # literals of arrays
    "[1, 2, 1]": np.array([1, 2, 1]),
    "[a, 1]": np.array([2.5, 1]),
    "map (dot [0.25, 0.5, 0.25]) (slide 3 1 xs)": windows(XS, 3) @ [0.25, 0.5, 0.25],
    "map (λ w. dot w [1, 2, 1] / 4) (slide 3 1 xs)": windows(XS, 3) @ [1, 2, 1] / 4,
    "map (+) (zip [[1, 2], [3, 4]][0] (take 2 xs))": XS[:2] + np.array([1, 2]),
    "[1, 2, 3][1] * a": 5.0,
    "concat [1] xs": np.concatenate([[1], XS]),
    "[1, 2, 3] * take 3 xs": XS[:3] * [1, 2, 3],
    # levels and memories leave values alone
    "mapGlobal 1 (mapGlobal 0 (+ 1)) mat": MAT + 1,
    "mapWorkgroup (mapLocal (mapSeq (+ 1))) (tile 2 3 mat)": (MAT + 1).reshape(2, 2, 2, 3).transpose(0, 2, 1, 3),
    "join . mapWarp (mapLane (+ 1)) . split 4 . xs": XS + 1,
    "toGlobal (mapLocal (+ 1)) xs": XS + 1,
    "toGlobal (mapLocal (+ 1) (toLocal (mapLocal id xs)))": XS + 1,
    "toPrivate a": 2.5,
    "iterate 3 (map (* 2)) xs": XS * 8,
    "iterate (map (* 2)) 3 xs": XS * 8,
    "iterate 2 (map (reduce (+) 0) . split 2) xs": XS.reshape(3, 4).sum(1),
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_value(text: str) -> None:
    found, expected = value(text, n=3), VALUES[text]
    for part, wanted in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        np.testing.assert_allclose(part, wanted, rtol=1e-12)
        assert np.shape(part) == np.shape(wanted)


def row_sums(level: Level | None = None) -> Term:
    return b.map_(lambda row: b.reduce_(b.add, b.const(0, f64), row), ENVIRONMENT["mat"], level)


TERMS: dict[str, Callable[[], Term]] = {
    "map (reduce (+) 0) mat": row_sums,
    "join (map (reduce (+) 0) mat)": row_sums,
    "map[item0] (reduce (+) 0) mat": lambda: row_sums(Level("item", 0)),
    "mapLocal 0 (reduce (+) 0) mat": lambda: row_sums(Level("item", 0)),
    "mapLocal (reduce (+) 0) mat": lambda: row_sums(Level("item")),
    "mapWorkgroup 1 (reduce (+) 0) mat": lambda: row_sums(Level("group", 1)),
    "mapSeq (reduce (+) 0) mat": lambda: row_sums(SEQ),
    "toLocal (map (reduce (+) 0) mat)": lambda: b.to(LOCAL, row_sums()),
    "toLocal (map (reduce (+) 0)) mat": lambda: b.to(LOCAL, row_sums()),
    "to[local] (map (reduce (+) 0)) mat": lambda: b.to(LOCAL, row_sums()),
    "toPrivate a": lambda: b.to(Memory.parse("private"), ENVIRONMENT["a"]),
    "reduceSeq (+) 0 xs": lambda: b.reduce_(b.add, b.const(0, f64), ENVIRONMENT["xs"], SEQ),
    "map (λ x. f32 x * 2) xs": lambda: b.map_(
        lambda x: b.mul(b.convert(f32, x), b.const(2, f32)), ENVIRONMENT["xs"]
    ),
    "(2 : f32)": lambda: b.const(2, f32),
    "([1, 2] : 2.f64)": lambda: b.array_literal(b.const(1, f64), b.const(2, f64)),
    "true": lambda: b.const(True, bool_),
    "2": lambda: b.const(2, i32),
    "2.0": lambda: b.const(2, f32),
    "let x = 2 in a * x": lambda: b.mul(ENVIRONMENT["a"], b.const(2, f64)),
    "let x = a * a in x * x": lambda: b.let(b.mul(ENVIRONMENT["a"], ENVIRONMENT["a"]), lambda x: b.mul(x, x)),
    "iterate 3 (map (* 2)) xs": lambda: b.iterate(
        3, lambda v: b.map_(lambda x: b.mul(x, b.const(2, f64)), v), ENVIRONMENT["xs"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", TERMS)
def test_term(text: str) -> None:
    assert term(text) is TERMS[text]()


def test_names_of_the_program_come_before_the_primitives() -> None:
    text = "map (λ map. map + 1) xs"
    assert term(text) is term("map (λ x. x + 1) xs")
    assert read_text("sum = λ xs. 1\np = λ xs. sum xs")["p"].elaborate([array(3, f32)]).term is b.const(1, i32)


def test_sizes_as_numbers() -> None:
    """A size is a number where one is needed; a symbolic one is an index constant, converted."""
    n = size("n")
    xs = b.param("xs", array(n, f32))
    mean = elaborate_term(parse_expression("sum xs / length xs"), {"xs": xs})
    assert float(evaluate(mean, {"xs": np.arange(5.0)})) == 2.0
    assert elaborate_term(parse_expression("x * n"), {"x": b.param("x", f32), "n": n}).args[1].kind == "op"


def test_environment_of_functions_terms_and_sizes() -> None:
    """What rule templates need: metavariables bound to terms, to functions, to sizes, to levels and names."""
    xs = ENVIRONMENT["xs"]
    double = abstract(f64, lambda x: b.add(x, x))
    level = Level("item", 0)
    found = elaborate_term(
        parse_expression("join (map[l]@a.block (λ b. map@a.tile f b) (split n xs))"),
        {"xs": xs, "f": double, "n": size("n") * 0 + 4},
        attributes={"l": level, "a": "m"},
    )
    expected = b.join(b.map_(lambda r: b.map_(double, r, None, "m.tile"), b.split(4, xs), level, "m.block"))
    assert found is expected
    by_python = elaborate_term(
        parse_expression("map (f 1) xs"), {"xs": xs, "f": lambda a, x: b.mul(b.convert(f64, a), x)}
    )
    assert by_python.args[0].args[0].kind == "op"
    unnamed = elaborate_term(parse_expression("map@a.tile f xs"), {"xs": xs, "f": double}, attributes={"a": None})
    assert unnamed["name"] == "tile"


def test_a_function_of_the_environment_is_applied_to_open_terms() -> None:
    """A metavariable under a binder: the function gets the bound variable."""
    seen: list[Term] = []

    def f(x: Term) -> Term:
        seen.append(x)
        return b.mul(x, x)

    found = elaborate_term(parse_expression("map (λ x. f x + a) xs"), {**ENVIRONMENT, "f": f})
    assert found is term("map (λ x. x * x + a) xs")
    assert seen[0].type is f64


def test_free_size_names_are_size_variables() -> None:
    n = size("n")
    xs = b.param("xs", array(n * 4, f32))
    assert elaborate_term(parse_expression("split n xs"), {"xs": xs}) is b.split(n, xs)


def test_functions_have_no_term() -> None:
    with pytest.raises(TypeMismatch, match="a value expected, a function"):
        elaborate_term(parse_expression("λ x. x"))
    assert "function" in repr(elaborate(parse_expression("λ x. x")))


@pytest.mark.parametrize("text", ["2 +", "map[", "x @ y", "0x10", "(a", "{a}"])
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ParseError):
        term(text)


def test_deep_nesting_is_linear() -> None:
    """Neither lets nor reductions are elaborated more than once at each depth."""
    lets = " in ".join(f"let x{i + 1} = x{i} * x{i}" for i in range(40))
    assert elaborate_term(parse_expression(f"{lets} in x40"), {"x0": b.param("x0", f64)}).type is f64
    calls = 0

    def count(x: Term) -> Term:
        nonlocal calls
        calls += 1
        return x

    nested = "f x"
    for _ in range(12):
        nested = f"reduce (λ acc x. acc + {nested}) 0 xs"
    elaborate_term(parse_expression(nested), {"xs": ENVIRONMENT["xs"], "f": count})
    assert calls == 1


def test_nesting_that_is_too_deep_is_an_error() -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        parse_expression("(" * 50_000 + "x" + ")" * 50_000)
    with pytest.raises(LithifyError, match="nested too deeply"):
        term("a" + " + a" * 50_000)


def test_programs_may_nest_deeply() -> None:
    assert parse_expression("(" * 2000 + "x" + ")" * 2000) == parse_expression("x")
    lets = " in ".join(f"let x{i + 1} = x{i} * x{i}" for i in range(110))
    read_text(f"p = λ x0. {lets} in x110" + " + 1" * 200)["p"].elaborate([f64])
    assert size_of(term("a" + " + a" * 2000)) == 2001


def test_errors_of_built_terms_have_no_place() -> None:
    with pytest.raises(LithifyError) as caught:
        b.split(5, ENVIRONMENT["xs"])
    assert caught.value.where is None


def test_of_long_lines_errors_show_what_is_near() -> None:
    with pytest.raises(ParseError) as caught:
        parse_expression("x + " * 1000 + ")" + " + x" * 1000)
    _, shown, carets = str(caught.value.where).split("\n")
    assert len(shown) < 210
    assert shown[carets.index("^")] == ")"


def test_a_size_of_zero_is_located() -> None:
    with pytest.raises(TypeMismatch, match="by 0") as caught:
        read_text("f xs = split 0 xs")["f"].elaborate([array(4, f64)])
    assert "split 0 xs" in str(caught.value.where)
