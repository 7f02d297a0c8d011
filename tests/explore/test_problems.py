"""Problem lines: every spelling that the lists of the field have, what they mean, and what is said of wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.explore.problems import is_problem, read_problem
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


def test_a_flag_that_is_nearly_right() -> None:
    with pytest.raises(ParseError) as caught:
        read_problem("gemm -t f32 -tranA true -m 3 -n 4 -k 5")
    assert caught.value.hint is not None
    assert "did you mean -transA" in caught.value.hint


@pytest.mark.parametrize("text", ["image.lift", "image.lift:harris", "module:name", "gemm", "-t"])
def test_names_of_programs_are_no_problems(text: str) -> None:
    assert not is_problem(text)
