"""Problem lines: every spelling that the lists of the field have, what they mean, and what is said of wrong ones."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.explore.problems import is_problem, normalised, read_problem
from lithify.lang.errors import ParseError
from lithify.lowering.families import FAMILIES, recognise
from lithify.lowering.loops import name_loops
from lithify.program import Program, parse
from lithify.program.check import sample


def program_of(line: str) -> Program:
    named = read_problem(line)
    return parse(named.text)[named.name]


SPELLINGS = (
    "gemm -t f32 -transA false -transB true -g 1 -m 3 -n 4 -k 5",
    "-t f32 -out_datatype f32 -transA false -transB true -g 1 -m 3 -n 4 -k 5",
    "gemm --t=f32 --transB=true --m=3 --n=4 --k=5",
    "gemm -k 5 -n 4 -m 3 --ta 0 --tb 1 --dtype fp32",
)


@pytest.mark.parametrize("line", SPELLINGS)
def test_spellings_of_one_problem(line: str) -> None:
    assert is_problem(line)
    assert read_problem(line).text == read_problem(SPELLINGS[0]).text
    types, result = program_of(line).types()
    assert [*map(str, types), str(result)] == ["3.5.f32", "4.5.f32", "3.4.f32"]


@pytest.mark.parametrize("scalar", ["f64", "f32", "f16", "bf16", "i8", "i32", "complex64"])
@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
@pytest.mark.parametrize("g", [1, 2])
def test_what_a_gemm_computes(scalar: str, a: bool, b: bool, g: int) -> None:
    program = program_of(f"gemm -t {scalar} -transA {a} -transB {b} -g {g} -m 3 -n 4 -k 5")
    types, result = program.types()
    random = np.random.default_rng(1)
    left, right = (sample(each, random) for each in types)
    kind = complex if scalar == "complex64" else float
    x = np.swapaxes(left, -1, -2) if a else left
    y = np.swapaxes(right, -1, -2) if b else right
    expected = x.astype(kind) @ y.astype(kind)
    found = program(left, right)
    assert found.shape == ((g, 3, 4) if g > 1 else (3, 4))
    assert str(result).endswith("i32" if scalar == "i8" else scalar)
    np.testing.assert_allclose(found.astype(kind), expected, rtol=2e-2 if scalar == "bf16" else 2e-3)


@pytest.mark.parametrize(("out", "scalar"), [("f32", "f16"), ("f16", "f16"), ("i32", "i8"), ("f32", "f32")])
def test_types_of_results(out: str, scalar: str) -> None:
    result = program_of(f"-t {scalar} -out_datatype {out} -m 3 -n 4 -k 5").types()[1]
    assert str(result) == f"3.4.{out}"


def test_the_family_recognises_the_problem() -> None:
    line = "gemm -t f32 -transA false -transB true -g 1 -m 3 -n 4 -k 5"
    found = recognise(name_loops(program_of(line).term()), FAMILIES)
    assert found is not None
    assert found[1].line == line
    assert program_of(found[1].line).term() is program_of(line).term()


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("gemm -t f32 -m 3 -n 4", "-k is missing", 21),
        ("gemm -m 3 -n 4 -k 5", "-t is missing", 19),
        ("gemm -t f33 -m 3 -n 4 -k 5", "`f33` is no value of -t", 8),
        ("gemm -t f32 -m 0 -n 4 -k 5", "`0` is no value of -m", 15),
        ("gemm -t f32 -m three", "`three` is no value of -m", 15),
        ("gemm -t f32 --transA=maybe", "`maybe` is no value of -transA", 21),
        ("gemm -t f32 -tranA true -m 3 -n 4 -k 5", "gemm has no flag -tranA", 12),
        ("gemm -t f32 -m 3 -m 4 -n 4 -k 5", "-m is given twice", 17),
        ("gemm -t f32 -m", "-m has no value", 14),
        ("gemm f32", "`f32` is no flag", 5),
        ("genm -t f32", "there is no operator `genm`", 0),
    ],
)
def test_wrong_lines(line: str, message: str, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        read_problem(line)
    assert caught.value.message == message
    assert caught.value.where == f"{line}\n{' ' * column}^"


FLAGS = "it has -t, -transA, -transB, -g, -m, -n, -k, -b_datatype, -acc_datatype, -out_datatype"


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("-tranA", f"did you mean -transA or -transB? {FLAGS}"),
        ("-transx", f"did you mean -transB or -transA? {FLAGS}"),
        ("-q", FLAGS),
    ],
)
def test_flags_that_there_are_not(flag: str, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_problem(f"gemm -t f32 {flag} true -m 3 -n 4 -k 5")
    assert caught.value.hint == hint


def line_of(text: str) -> str:
    """The line by which the problem of a program is known."""
    found = recognise(name_loops(parse(text)["f"].term()), FAMILIES)
    assert found is not None
    return found[1].line


SCALARS = st.sampled_from(["f64", "f32", "f16", "bf16", "f8e4m3", "i8", "u8", "i16", "i32", "complex64"])


@st.composite
def products(draw: st.DrawFn) -> tuple[str, bool]:
    """A program with a product in it, and whether that is a product alone: then its line says all of it."""
    a, b, acc, c = (draw(SCALARS) for _ in "abrc")
    if draw(st.booleans()):
        a = b = acc = c
    m, n, k = (draw(st.integers(1, 70)) for _ in "mnk")
    left, shape_a = draw(st.sampled_from([("a", f"{m}.{k}"), ("(transpose a)", f"{k}.{m}")]))
    right, shape_b = draw(st.sampled_from([("b", f"{n}.{k}"), ("(transpose b)", f"{k}.{n}")]))
    x, y = (name if of == acc else f"{acc} {name}" for name, of in (("x", a), ("y", b)))
    step, reduction, after = f"{x} * {y}", "(+) 0", "({})"
    kind = draw(st.sampled_from(["alone", "alone", "work before", "other sum", "starts at 1", "work after"]))
    if kind == "work before":
        step = f"({x} + {x}) * {y}"
    elif kind == "other sum":
        step, reduction = f"{x} + {y}", "(*) 1"
    elif kind == "starts at 1":
        reduction = "(+) 1"
    elif kind == "work after":
        after = "(2 * {} + 1)"
    dot = after.format(f"reduce {reduction} (map (λ (x, y) . {step}) (zip row col))")
    product = f"map (λ row . map (λ col . {dot if acc == c else f'{c} {dot}'}) {right}) {left}"
    if draw(st.booleans()):
        return f"f = λ (a : {shape_a}.{a}) (b : {shape_b}.{b}) . {product}", kind == "alone"
    batched = f"(as : 3.{shape_a}.{a}) (bs : 3.{shape_b}.{b}) . map (λ (a, b) . {product}) (zip as bs)"
    return f"f = λ {batched}", kind == "alone"


@settings(deadline=None, max_examples=60)
@given(products(), st.randoms(use_true_random=False))
def test_what_is_printed_is_read(program: tuple[str, bool], order: random.Random) -> None:
    text, alone = program
    line = line_of(text)
    assert normalised(line) == line
    words = line.split()[1:]
    flags = [f"{name}={value}" for name, value in zip(words[::2], words[1::2], strict=True)]
    order.shuffle(flags)
    assert normalised(" ".join(flags)) == line
    if alone:
        named = read_problem(line)
        assert line_of(named.text.replace(named.name, "f", 1)) == line
    else:
        with pytest.raises(ParseError, match="stands for is in the program"):
            read_problem(line)


def test_what_only_a_program_says() -> None:
    line = "gemm -t f32 -m 3 -n 4 -k 5 -epilogue"
    with pytest.raises(ParseError, match="what -epilogue 0123abcd stands for") as caught:
        read_problem(f"{line} 0123abcd")
    assert caught.value.where == f"{line} 0123abcd\n{' ' * 37}^"
    with pytest.raises(ParseError, match="`relu` is no value of -epilogue") as caught:
        read_problem(f"{line} relu")
    assert "written in a program" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["image.lift", "image.lift:harris", "module:name", "gemm", "-t"])
def test_names_of_programs_are_no_problems(text: str) -> None:
    assert not is_problem(text)
