"""Tokens, precedence, the layout of definitions, and places."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.lang.errors import ParseError
from lithify.lang.lexer import tokenize
from lithify.lang.parser import parse, parse_expression, parse_type
from lithify.lang.syntax import (
    Application,
    Attributed,
    Compose,
    DefinitionSyntax,
    Expression,
    Infix,
    Lambda,
    Name,
    NamePattern,
    Number,
    OperatorSyntax,
    Projection,
    Section,
    Source,
    TupleExpression,
    TuplePattern,
    free_names,
)
from lithify.lang.unparse import unparse, unparse_declaration

a, b, c, f, g, h, x = (Name(name) for name in "abcfghx")


def test_application_binds_tighter_than_composition_and_that_tighter_than_arithmetic() -> None:
    assert parse_expression("f a . g b c . h") == Compose(
        Application(f, (a,)), Compose(Application(g, (b, c)), h)
    )  # fmt: skip
    assert parse_expression("f . g + h") == Infix("+", Compose(f, g), h)
    assert parse_expression("f a * b") == Infix("*", Application(f, (a,)), b)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a ^ b ^ c", "a ^ (b ^ c)"),
        ("-a ^ b", "-(a ^ b)"),
        ("-a * b", "(-a) * b"),
        ("a < b && b < c || c == a", "((a < b) && (b < c)) || (c == a)"),
        ("a << b + c", "a << (b + c)"),
        ("a |> f |> g", "(a |> f) |> g"),
        ("a + b |> f", "(a + b) |> f"),
        ("f >> g", "g . f"),
        ("x |> f", "f . x"),
        ("f ∘ g", "f . g"),
        ("λ x . a + b", "λ x . (a + b)"),
        ("\\x -> a", "λ x . a"),
        ("λx → a", "λ x . a"),
        ("λ x . λ y . a", "λ x . (λ y . a)"),
        ("f λ x . a b", "f (λ x . a b)"),
        ("if a then b else c + a", "if a then b else (c + a)"),
        ("let x = a in b . c", "let x = a in (b . c)"),
        ("f(a, b)", "(f a b)"),
        ("f g(a) b", "f (g a) b"),
        ("x.0.1[a].2", "(((x.0).1)[a]).2"),
        ("f x.0", "f (x.0)"),
        ("`f` `(a)`", "f (a)"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert parse_expression(text) == parse_expression(same)


def test_a_dot_is_a_projection_only_behind_a_value() -> None:
    assert parse_expression("x.0") == Projection(x, 0)
    assert parse_expression("λx.0") == Lambda((NamePattern("x"),), Number(0))
    assert parse_expression("λx.0.5") == Lambda((NamePattern("x"),), Number(0.5))
    assert parse_expression("f . 0") == Compose(f, Number(0))
    assert parse_expression("f 0.5") == Application(f, (Number(0.5),))
    assert parse_expression("(λ(x : n.3.f32). x).0") == Projection(parse_expression("λ (x : n.3.f32) . x"), 0)


def test_parameters() -> None:
    pair = TuplePattern((NamePattern("a"), NamePattern("b")))
    assert parse_expression("λ x (a, b) . x") == Lambda((NamePattern("x"), pair), x)
    assert parse_expression("λ x, (a, b) . x") == Lambda((NamePattern("x"), pair), x), "as the slides print it"
    assert parse_expression("λ (a, b) . x") == Lambda((pair,), x)
    assert parse_expression("λ(x : n.f32). x") == Lambda((NamePattern("x", parse_type("n.f32")),), x)


def test_sections_and_negative_numbers() -> None:
    assert parse_expression("(+)") == Section("+")
    assert parse_expression("(-)") == Section("-")
    assert parse_expression("(* 2)") == Section("*", right=Number(2))
    assert parse_expression("(2 *)") == Section("*", left=Number(2))
    assert parse_expression("(- 2)") == Number(-2)
    assert parse_expression("f (-1)") == Application(f, (Number(-1),))
    assert parse_expression("a -1") == Infix("-", a, Number(1))


def test_attributes_are_glued_to_the_name() -> None:
    assert parse_expression("map[item0]") == Attributed("map", ("item0",))
    assert parse_expression("map@m.block") == Attributed("map", (), "m.block")
    assert parse_expression("reduce[seq, reg[item1, -]]@k") == Attributed("reduce", ("seq", "reg[item1, -]"), "k")
    assert parse_expression("map [a]") == parse_expression("map ([a])")


def test_tuples_and_calls() -> None:
    assert parse_expression("f (a, b)") == Application(f, (TupleExpression((a, b)),))
    call = parse_expression("f(a, b)")
    assert isinstance(call, Application)
    assert call.call


def test_numbers() -> None:
    values = {"0": 0, "12": 12, "1.5": 1.5, "2e3": 2000.0, "1.5e-3": 0.0015, "2j": 2j, "1.5j": 1.5j}
    for text, value in values.items():
        parsed = parse_expression(text)
        assert parsed == Number(value)
        assert type(parsed.value) is type(value)  # type: ignore[union-attr]


def test_definitions_need_no_indentation() -> None:
    text = """
       f = λ x .
      g x   -- a comment, with = and :
g y = h
  y
h (x : n.f32) (y, z) = x
k : n.f32 -> f32
k = reduce (+) 0
operator best (λ a b . a) associative commutative neutral (-inf)
operator plus (λ a b . a + b) inverse (-) commutative absorbing inf
last = 1 == 2
"""
    declarations = parse(text)
    assert [d.name for d in declarations] == ["f", "g", "h", "k", "best", "plus", "last"]
    first, second, third, fourth, operator, plus, last = declarations
    assert isinstance(first, DefinitionSyntax)
    assert first.value == parse_expression("λ x . g x")
    assert second == DefinitionSyntax("g", parse_expression("λ y . h y"))
    assert third == DefinitionSyntax("h", parse_expression("λ (x : n.f32) (y, z) . x"))
    assert fourth == DefinitionSyntax("k", parse_expression("reduce (+) 0"), parse_type("n.f32 -> f32"))
    assert operator == OperatorSyntax(
        "best", parse_expression("λ a b . a"), ("associative", "commutative"), parse_expression("-inf")
    )
    minus, infinity = parse_expression("(-)"), parse_expression("inf")
    assert plus == OperatorSyntax(
        "plus", parse_expression("λ a b . a + b"), ("commutative",), absorbing=infinity, inverse=minus
    )
    assert last == DefinitionSyntax("last", parse_expression("1 == 2"))
    for declaration in declarations:
        assert parse(unparse_declaration(declaration)) == [declaration]


def test_a_line_in_brackets_or_in_let_starts_no_definition() -> None:
    (definition,) = parse("f = g (\n  let\nx = a in\n x) (a\n == b)")
    assert definition == DefinitionSyntax("f", parse_expression("g (let x = a in x) (a == b)"))


def test_places() -> None:
    source = Source("f = λ x .\n\tg x + ys", "here")
    (definition,) = parse(source)
    assert isinstance(definition, DefinitionSyntax)
    assert isinstance(definition.value, Lambda)
    body = definition.value.body
    assert isinstance(body, Infix)
    assert str(body.right.span) == "here, line 2, column 8:\n        g x + ys\n              ^^"
    assert source.position(body.left.span.start) == (2, 2)


def test_free_names() -> None:
    names = free_names(parse_expression("λ (xs : n.f32) . let (a, b) = f xs in map (λ c . c + a + d) (split n ys)"))
    assert [name.name for name in names] == ["f", "map", "d", "split", "ys"]


NAMES = st.sampled_from([a, b, c, Name("α"), Name("x'"), Name("_y2")])


def expressions() -> st.SearchStrategy[Expression]:
    def deeper(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        patterns = st.sampled_from([NamePattern("x"), TuplePattern((NamePattern("p"), NamePattern("q")))])
        return st.one_of(
            st.builds(Infix, st.sampled_from(["+", "-", "*", "/", "%", "^", "&&", "||", "<<", ">>>"]), inner, inner),
            st.builds(Infix, st.sampled_from(["==", "<"]), NAMES, NAMES),
            st.builds(Compose, inner, inner),
            st.builds(Application, inner.filter(lambda e: not isinstance(e, Application)), several),
            st.builds(Lambda, st.lists(patterns, min_size=1, max_size=2, unique=True).map(tuple), inner),
            st.builds(Projection, inner, st.integers(0, 3)),
            st.builds(Section, st.sampled_from(["+", "*"]), right=inner),
            st.lists(inner, min_size=2, max_size=3).map(lambda items: TupleExpression(tuple(items))),
        )

    numbers = st.one_of(st.integers(-5, 100), st.floats(allow_nan=False, allow_infinity=False)).map(Number)
    return st.recursive(NAMES | numbers, deeper, max_leaves=12)


@given(expressions(), st.sampled_from([1, 30, 1000]))
def test_unparse_and_parse_are_inverse(expression: Expression, width: int) -> None:
    assert parse_expression(unparse(expression, width)) == expression


@given(st.text(max_size=60) | st.text("λ().,[]+-*=:xyf0 \n\t\\>|", max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    problem = None
    try:
        parse(text)
    except ParseError as error:
        problem = str(error)
    assert problem is None or "line " in problem


@given(st.text("abλ.()[]0 \n-+=", max_size=40))
def test_tokens_cover_the_text(text: str) -> None:
    try:
        tokens = tokenize(Source(text))
    except ParseError:
        return
    for token in tokens[:-1]:
        assert text[token.span.start : token.span.end] == token.text
    between = [(s.span.end, t.span.start) for s, t in pairwise(tokens)]
    for start, end in between:
        rest = "\n".join(line.split("--")[0] for line in text[start:end].split("\n"))
        assert not rest.strip()
