"""Products that are more than sums of products of stored numbers: work on operands, other reductions, other results."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.lang.errors import RewriteFailed
from lithify.lowering import lower
from lithify.lowering.families import recognise
from lithify.lowering.gemm.family import Gemm
from lithify.lowering.loops import name_loops
from lithify.program.tune import candidates_of
from lithify.rewrite import Derivation
from tests.lowering.gemm.test_random_products import DEVICES, run, where

RELU = "map (map (λ x . max 0 x))"
# What is read as the left and as the right operand.
WORK = {
    "on the left": (f"({RELU} a)", "b"),
    "on the right": ("a", f"({RELU} b)"),
    "below a view of the left": (f"(map reverse ({RELU} a))", "b"),
    "below a view of the right": ("a", f"(transpose ({RELU} (transpose b)))"),
    "on both, and zeros become ones": ("(map (map (λ x . x * 2 + 1)) a)", "(map (map (λ x . x * 2 + 1)) b)"),
}


@pytest.fixture(params=DEVICES)
def on(request: pytest.FixtureRequest) -> Any:
    if request.param != "cpu":
        request.getfixturevalue("opencl_device")
    return where(request.param)


def product(left: str, right: str, reduction: str = "reduce (+) 0 (map (*) (zip row col))") -> lf.Program:
    text = f"map (λ row . map (λ col . {reduction}) (transpose {right})) {left}"
    return lf.parse(f"main = λ a b . {text}")["main"]


def numbers(dtype: Any, *shapes: tuple[int, int]) -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("sizes", [(5, 7, 9), (33, 130, 70)], ids=str)
@pytest.mark.parametrize("form", WORK)
def test_work_on_operands(form: str, sizes: tuple[int, int, int], on: Any) -> None:
    m, n, k = sizes
    a, b = numbers(np.float32, (m, k), (k, n))
    done = {RELU: lambda x: np.maximum(x, 0), "2 + 1": lambda x: x * 2 + 1}
    left, right = WORK[form]
    x = next((f(a) for text, f in done.items() if text in left), a)
    y = next((f(b) for text, f in done.items() if text in right), b)
    expected = (x[:, ::-1] if "reverse" in left else x) @ y
    np.testing.assert_array_equal(run(product(left, right).on(on), [a, b], expected), expected)


def test_work_decides_which_problem_it_is() -> None:
    def line(left: str, right: str) -> str:
        program = product(left, right).specialise("33.40.f32", "40.50.f32")
        found = recognise(name_loops(program.elaborated.term))
        assert found is not None
        return found[1].line

    plain = line("a", "b")
    assert re.fullmatch(plain + " -workA [0-9a-f]{8}", line(*WORK["on the left"]))
    assert re.fullmatch(plain + " -workB [0-9a-f]{8}", line(*WORK["on the right"]))


# What the work on results reads beside the right operand: some of it for all rows, some of one row.
ZIPPED = {
    "one after another": ("(col, x, y)", "zip(transpose b, bias, s)"),
    "the operand in between": ("(x, col, y)", "zip(bias, transpose b, s)"),
    "the row's own first": ("(y, col, x)", "zip(s, transpose b, bias)"),
    "as pairs": ("(col, (x, y))", "zip (transpose b) (zip bias s)"),
    "in a pair of its own": ("((col, y), x)", "zip (zip (transpose b) s) bias"),
}


@pytest.mark.parametrize("zipped", ZIPPED)
def test_work_that_reads_more(zipped: str, on: Any) -> None:
    element, arrays = ZIPPED[zipped]
    rows = f"map (λ (row, s) . map (λ {element} . max 0 (dot row col + x) + y) ({arrays})) (zip x r)"
    program = lf.parse(f"main = λ a b bias res . map (λ (x, r) . {rows}) (zip a res)")["main"].on(on)
    a, b = numbers(np.float32, (2, 21, 130), (130, 70))
    bias, res = numbers(np.float32, (70,), (2, 21, 70))
    expected = np.maximum(0, a @ b + bias) + res
    np.testing.assert_array_equal(run(program, [a, b, bias, res], expected), expected)
    assert "map-reduce-interchange" in "".join(program.derivation(a, b, bias, res).names())


def test_where_the_family_fails_the_default_lowers() -> None:
    class Failing(Gemm):
        def derive(self, derivation: Derivation, *others: Any) -> None:
            super().derive(derivation, *others)
            raise RewriteFailed("nothing of the kind")

    term = name_loops(product("a", "b").specialise("33.40.f32", "40.50.f32").elaborated.term)
    model, family = where("cpu").model, Failing()
    problem = family.recognise(term)
    space = None if problem is None else family.space(problem, model)
    assert space is not None
    names = [lower(term, model, families=families).derivation.names() for families in ((family,), ())]
    assert names[0] == names[1]
    for more in ({"check": True}, {"parameters": space.default}):
        with pytest.raises(RewriteFailed, match="nothing of the kind"):
            lower(term, model, families=(family,), **more)  # type: ignore[arg-type]


# In blocks that do not divide the sum, nothing is known that could fill up the last one.
REDUCTIONS = {
    "reduce max 0 (map (+) (zip row col))": lambda r, x, y: np.maximum(r, x + y),
    "reduce (λ acc p . p.0 * p.1 - acc) 0 (zip row col)": lambda r, x, y: x * y - r,
    "reduce (+) 0 (map (λ (x, y) . x * y + 1) (zip row col))": lambda r, x, y: r + x * y + 1,
}


@pytest.mark.parametrize("dtype", [np.int32, np.complex64], ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("k", [8, 9])
def test_other_reductions(reduction: str, dtype: Any, k: int, on: Any) -> None:
    if dtype is np.complex64 and "max" in reduction:
        pytest.skip("complex numbers have no order")
    a, b = numbers(dtype, (6, k), (k, 18))
    expected = np.zeros((6, 18), dtype)
    for i in range(k):
        expected = REDUCTIONS[reduction](expected, a[:, i : i + 1], b[i : i + 1])
    np.testing.assert_array_equal(run(product("a", "b", reduction).on(on), [a, b], expected), expected)


def test_other_reductions_in_blocks() -> None:
    (reduction, *_) = REDUCTIONS
    a, b = numbers(np.int32, (6, 24), (24, 18))
    expected = np.maximum((a[:, :, None] + b[None]).max(1), 0)
    program = product("a", "b", reduction)
    candidates = candidates_of(program.specialise(a, b))
    for size, works in ((8, True), (12, True), (9, False)):
        parameters = candidates.space.default.updated(kPerBlock=size)
        if works:
            np.testing.assert_array_equal(run(program.tuned_by(str(parameters)), [a, b], expected), expected)
        else:
            with pytest.raises(RewriteFailed, match="kPerBlock=9 does not divide 24"):
                program.tuned_by(str(parameters)).lowered(a, b)


@pytest.mark.parametrize("text", ["(x, x + 1)", "let y = x in (y, y + 1)"])
def test_pairs_as_results(text: str, on: Any) -> None:
    a, b = numbers(np.float32, (5, 9), (9, 7))
    loops = "map (λ row . map (λ col . reduce (+) 0 (map (*) (zip row col))) (transpose b)) a"
    first, second = lf.parse(f"main = λ a b . map (map (λ x . {text})) ({loops})")["main"].on(on)(a, b)
    np.testing.assert_array_equal(first, a @ b)
    np.testing.assert_array_equal(second, a @ b + 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64], ids=lambda t: np.dtype(t).name)
def test_sums_that_are_read_several_times(dtype: Any, on: Any) -> None:
    """In Python a variable stands for its expression: the sum stands twice in the program."""

    @lf.program
    def squares(a, b):  # type: ignore[no-untyped-def]
        def result(row, column):  # type: ignore[no-untyped-def]
            total = lf.sum(lf.map(lambda p: p[0] * p[1], lf.zip(row, column)))
            return total * (total + 1)

        return a >> lf.map(lambda row: b >> lf.transpose >> lf.map(lambda column: result(row, column)))

    a, b = numbers(dtype, (17, 9), (9, 18))
    a, b = np.sign(a.real).astype(dtype), np.sign(b.real).astype(dtype)
    expected = (a @ b) * (a @ b + 1)
    np.testing.assert_array_equal(run(squares.on(on), [a, b], expected), expected)


def test_sums_in_f16(on: Any) -> None:
    """Sums that stay in registers are of the type that OpenCL computes in."""
    a, b = numbers(np.float16, (16, 9), (9, 27))
    expected = a @ b
    text = "main = λ a b . map (pad 1 2 7) (map (λ row . map (λ col . dot row col) (transpose b)) a)"
    expected = np.pad(expected, ((0, 0), (1, 2)), constant_values=7)
    np.testing.assert_array_equal(run(lf.parse(text)["main"].on(on), [a, b], expected), expected)


def test_blocks_of_more_terms_than_there_are() -> None:
    a, b = numbers(np.float32, (20, 3), (33, 3))
    program = product("a", "(transpose b)")
    parameters = candidates_of(program.specialise(a, b)).space.default.updated(kPerBlock=22, packB="thread")
    np.testing.assert_array_equal(run(program.tuned_by(str(parameters)), [a, b], a @ b.T), a @ b.T)


def test_a_batch_of_one_is_split_like_none(opencl_device: Any) -> None:
    del opencl_device
    a, b = numbers(np.float32, (16, 32), (32, 16))
    text = "main = λ a b . map (λ a . map (λ row . map (λ col . dot row col) (transpose b)) a) a"
    program = lf.parse(text)["main"].on(where("gpu"))
    space = candidates_of(program.specialise(a[None], b)).space
    parameters = next(p for p in space if p["splitK"] == 2 and space.against(p) is None)
    np.testing.assert_array_equal(run(program.tuned_by(str(parameters)), [a[None], b], (a @ b)[None]), (a @ b)[None])


def test_local_memory_for_operands_that_are_computed_first() -> None:
    """f16 converted before it is multiplied takes the room of f32; the space knows."""
    text = "main = λ a b . map (λ row . map (λ col . dot row col) (transpose b)) (map (drop 1) (map (map f32) a))"
    program = lf.parse(text)["main"].on(where("gpu"))
    types = "64.65.f16", "64.64.f32"
    space = candidates_of(program.specialise(*types)).space
    large = {"mPerBlock": 256, "nPerBlock": 32, "mPerThread": 8, "nPerThread": 4, "nPerWave": 2, "kPerBlock": 16}
    parameters = space.default.updated(**large, vectorA=1, vectorB=1, paddingA=0, paddingB=0, splitK=1, stages=2)
    assert space.against(parameters) == "the tiles take 36864 bytes of local memory; there are 32768"
    assert program.tuned_by(str(parameters.updated(stages=1))).kernels(*types)
