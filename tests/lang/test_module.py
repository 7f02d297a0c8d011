"""Files of definitions: templates, annotations and sizes, declared operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lithify.arith import size
from lithify.evaluate import evaluate
from lithify.lang import Type, array, read_file, read_text
from lithify.lang import build as b
from lithify.lang.algebra import algebra_of
from lithify.lang.errors import ParseError, TypeMismatch, UnboundSize
from lithify.lang.operators import Operator
from lithify.lang.scalars import f16, f32, f64, i32
from lithify.lang.types import Tuple

n, m = size("n"), size("m")


def test_a_module_is_a_mapping_of_its_definitions_in_order() -> None:
    module = read_text("b = 1\na = λ x (y : f32). x\nc (p, q) = p")
    assert list(module) == ["b", "a", "c"]
    assert len(module) == 3
    assert "a" in module
    assert "d" not in module
    assert module["a"].name == "a"
    assert module["a"].parameters == ("x", "y")
    assert module["c"].parameters == ("arg1",)
    with pytest.raises(ParseError, match="defines no `aa`") as caught:
        module["aa"]
    assert "a" in str(caught.value.hint)


def test_read_file(tmp_path: Path) -> None:
    path = tmp_path / "double.lift"
    path.write_text("double = map (* 2) -- λ\n", encoding="utf-8")
    assert read_file(path)["double"].elaborate([array(4, f32)]).type is array(4, f32)
    path.write_text("double = map (* ", encoding="utf-8")
    with pytest.raises(ParseError, match=r"never closed\n.*double.lift, line 1, column 14"):
        read_file(path)
    with pytest.raises(ParseError, match=r"missing.lift cannot be read"):
        read_file(tmp_path / "missing.lift")


@pytest.mark.parametrize("scalar", [f16, f32, f64, i32])
def test_a_definition_is_a_template(scalar: Type) -> None:
    definition = read_text("scal = λ a xs. map (λ x. x * a + 1) xs")["scal"]
    by_order = definition.elaborate([scalar, array(5, scalar)])
    by_name = definition.elaborate({"xs": array(5, scalar), "a": scalar})
    assert by_order.term is by_name.term
    assert by_order.type is array(5, scalar)
    assert by_order.parameters == by_name.parameters == (("a", scalar), ("xs", array(5, scalar)))


def test_point_free_definitions_number_their_parameters() -> None:
    program = read_text("p = map (+) . zip [1, 2, 3]\nq = p")["q"].elaborate([array(3, f32)])
    assert program.parameters == (("arg1", array(3, f32)),)
    half = read_text("p = λ xs. zip xs")["p"].elaborate([array(3, f32), array(3, f64)])
    assert [name for name, _ in half.parameters] == ["xs", "arg2"]
    named = read_text("p = reduce (+) 0")["p"].elaborate({"values": array(3, f32)})
    assert named.parameters == (("values", array(3, f32)),)


def test_a_definition_without_parameters() -> None:
    program = read_text("eye = generate 3 (λ i. generate 3 (λ j. if i == j then 1 else 0))")["eye"].elaborate()
    np.testing.assert_array_equal(evaluate(program.term), np.eye(3))


MATMUL = """
matmul (a : m.k.f32) (b : k.n.f32) = map (λ row. map (dot row) (transpose b)) a
sizes : m.k.f32 -> k.n.f32 -> m.n.f32
sizes a b = map (λ row. map (λ column. dot row column + m) (transpose b)) a
"""


@pytest.mark.parametrize("name", ["matmul", "sizes"])
def test_annotations_bind_sizes(name: str) -> None:
    definition = read_text(MATMUL)[name]
    program = definition.elaborate([array(4, 5, f32), array(5, 6, f32)])
    assert {k: v.constant for k, v in program.sizes.items()} == {"m": 4, "k": 5, "n": 6}
    a, c = np.random.default_rng(1).random((2, 5, 5))
    symbolic = definition.elaborate()
    assert [str(t) for _, t in symbolic.parameters] == ["m.k.f32", "k.n.f32"]
    assert str(symbolic.type) == "m.n.f32"
    np.testing.assert_allclose(evaluate(symbolic.term, {"a": a, "b": c}), a @ c + (5 if name == "sizes" else 0))


def test_symbolic_arguments() -> None:
    program = read_text(MATMUL)["matmul"].elaborate([array(n, m, f32), array(m, n * 2, f32)])
    assert str(program.type) == "n.(2*n).f32"
    assert program.sizes == {"m": n, "k": m, "n": n * 2}


def test_annotated_sizes_may_be_formulas() -> None:
    definition = read_text("p = λ (xs : n.f32) (ys : (n / 2 + 1).f32). ys")["p"]
    assert definition.elaborate([array(8, f32), array(5, f32)]).type is array(5, f32)
    with pytest.raises(TypeMismatch, match=r"two values of size n / 2 \+ 1: 5 and 4"):
        definition.elaborate([array(8, f32), array(4, f32)])


def test_sizes_are_given_or_inferred_or_missing() -> None:
    definition = read_text("p = λ (xs : n.f32). split k (take n (concat xs xs))")["p"]
    assert definition.elaborate([array(6, f32)], {"k": 2}).type is array(3, 2, f32)
    with pytest.raises(UnboundSize, match="not known: k") as caught:
        definition.elaborate([array(6, f32)])
    assert "--size k=.." in str(caught.value)
    with pytest.raises(TypeMismatch, match=r"n = 7 was given.*and 6 \(xs : 6.f32\)"):
        definition.elaborate([array(6, f32)], {"k": 2, "n": 7})


def test_annotations_of_inner_definitions_are_local() -> None:
    """The same size name means another size at each use."""
    text = """
    halves (xs : n.f32) = split (n / 2) xs
    p = λ (xs : n.f32) (ys : m.f32). (halves xs, halves ys, n)
    """
    program = read_text(text)["p"].elaborate([array(8, f32), array(6, f32)])
    assert str(program.type) == "(2.4.f32, 2.3.f32, i32)"
    assert {k: v.constant for k, v in program.sizes.items()} == {"n": 8, "m": 6}


def test_arguments_that_do_not_fit_the_parameters() -> None:
    definition = read_text("p = λ xs ys. zip xs ys")["p"]
    with pytest.raises(TypeMismatch, match="no argument for ys"):
        definition.elaborate({"xs": array(3, f32)})
    with pytest.raises(TypeMismatch, match="no parameter zs"):
        definition.elaborate({"xs": array(3, f32), "ys": array(3, f32), "zs": f32})
    with pytest.raises(TypeMismatch, match="the type of parameter xs of `p` is not known"):
        definition.elaborate()
    with pytest.raises(TypeMismatch, match="takes 2 arguments"):
        definition.elaborate([array(3, f32)])


ARGMAX = """
operator argmax (λ(a, i) (b, j). if a < b then (b, j) else (a, i)) associative commutative neutral (-inf, 0)
where = λ xs. (reduce argmax (-inf, 0) (zip xs (generate 7 (λ i. i32 i)))).1
blocks = λ xs. reduce argmax (-inf, 0) (map (λ b. reduce argmax (-inf, 0) b) (split 2 xs))
"""


def test_declared_operators() -> None:
    module = read_text(ARGMAX)
    program = module["where"].elaborate([array(7, f32)])
    values = np.array([1, 5, 2, 9, 3, 9, 0.0])
    assert evaluate(program.term, {"xs": values}) == 3
    reduction = program.term.args[0]
    algebra = algebra_of(reduction.args[0])
    assert (algebra.associative, algebra.commutative, algebra.idempotent) == (True, True, False)
    assert algebra.neutral is b.tuple_(b.const(float("-inf"), f32), b.const(0, i32))
    assert algebra.neutral is reduction.args[1]


def test_a_declared_operator_is_one_for_each_type_and_checked_once() -> None:
    checked: list[tuple[str, Type]] = []

    def check(operator: Operator, type_: Type) -> None:
        assert operator.definition is not None
        checked.append((operator.name, type_))

    module = read_text(ARGMAX, check=check)
    pairs = array(8, Tuple(f64, i32))
    first, again = module["blocks"].elaborate([pairs]), module["blocks"].elaborate([pairs])
    assert first.term is again.term
    module["where"].elaborate([array(7, f64)])
    module["where"].elaborate([array(7, f32)])
    assert checked == [("argmax", Tuple(f64, i32)), ("argmax", Tuple(f32, i32))]


def test_a_check_may_refuse_an_operator() -> None:
    def refuse(operator: Operator, _type: Type) -> None:
        raise TypeMismatch(f"{operator.name} is not associative")

    module = read_text("operator minus (λ a b. a - b) associative\np = reduce minus 0", check=refuse)
    with pytest.raises(TypeMismatch, match="minus is not associative"):
        module["p"].elaborate([array(4, f32)])


def test_a_declared_operator_is_a_function() -> None:
    text = "operator hypot (λ a b. sqrt (a * a + b * b)) commutative\np = λ xs ys. map hypot (zip xs ys)"
    program = read_text(text)["p"].elaborate([array(2, f64), array(2, f64)])
    np.testing.assert_allclose(evaluate(program.term, {"xs": np.array([3, 5]), "ys": np.array([4, 12])}), [5, 13])


def test_definitions_may_hide_primitives_and_the_prelude() -> None:
    program = read_text("map = λ f x. f (f x)\ndot = λ x. map (* 2) x\np = dot")["p"].elaborate([f32])
    assert evaluate(program.term, {"arg1": 3.0}) == 12
