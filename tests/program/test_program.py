"""Program objects: calls, kinds of arguments, devices, what can be asked of them."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.lang.errors import LaunchError, LithifyError, TypeMismatch, UnboundSize
from lithify.program.program import Program

TEXT = """
dot = λ xs ys . reduce (+) 0 (map (*) (zip xs ys))
scal = λ a xs . map (λ x . x * a) xs
typed = λ (a : f32) (xs : n.f32) . map (λ x . x * a + n) xs
both = λ xs . (map (λ x . x + 1) xs, reduce (+) 0 xs)
pairs = λ (ps : n.(f32, f32)) . map (λ p . p.0 - p.1) ps
nested = λ xs . (map (λ x . (x, x * 2)) xs, (reduce max (-inf) xs, xs))
blocks = λ xs . map (λ b . reduce (+) 0 b) (split blockSize xs)
count = map (λ x . x + 1)
"""
n, m = lf.sizes("n m")


@pytest.fixture(scope="module")
def programs() -> lf.Module:
    return lf.parse(TEXT)


@lf.program
def centred(rows: lf.Array[n, m, lf.f32]):  # type: ignore[no-untyped-def, valid-type]
    """Every row minus its mean."""
    return rows >> lf.map(lambda row: row >> lf.map(lambda x: x - lf.sum(row) / m))


def xs_of(size: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.random.default_rng(size).random(size).astype(dtype)


# ---- calls -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7, 16, 33, 1000, 250_001])
def test_dot(programs: lf.Module, size: int) -> None:
    xs, ys = xs_of(size), xs_of(size + 1)[1:]
    expected = xs.astype(np.float64) @ ys
    np.testing.assert_allclose(programs["dot"](xs, ys), expected, rtol=1e-5)


def test_arguments_by_name_and_in_order(programs: lf.Module) -> None:
    xs = xs_of(9)
    scal = programs["scal"]
    for result in (scal(2.0, xs), scal(2.0, xs=xs), scal(a=2.0, xs=xs), scal(xs=xs, a=2.0)):
        np.testing.assert_array_equal(result, xs * 2)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((1.0,), {}, "2 arguments"),
        ((1.0,), {"ys": 2}, "no parameter ys"),
        ((1.0,), {"a": 2.0}, "given twice"),
        ((), {"a": 2.0}, "no value is given for xs"),
    ],
)
def test_wrong_arguments(programs: lf.Module, arguments: Any, named: Any, message: str) -> None:
    with pytest.raises(LithifyError, match=message):
        programs["scal"](*arguments, **named)


def test_out_is_filled_and_returned(programs: lf.Module) -> None:
    xs = xs_of(100)
    out = np.zeros_like(xs)
    assert programs["scal"](3.0, xs, out=out) is out
    np.testing.assert_array_equal(out, xs * np.float32(3))


def test_out_of_the_wrong_shape_is_refused(programs: lf.Module) -> None:
    with pytest.raises(LaunchError, match=r"out .*5\.f32.*4\.f32"):
        programs["scal"](3.0, xs_of(4), out=np.zeros(5, np.float32))


def test_types_that_do_not_fit(programs: lf.Module) -> None:
    with pytest.raises(TypeMismatch, match=r"(?s)4.*5"):
        programs["dot"](xs_of(4), xs_of(5))
    with pytest.raises(TypeMismatch, match=r"(?s)f32.*f64"):
        programs["dot"](xs_of(4), xs_of(4, np.float64))


def test_an_argument_that_is_none(programs: lf.Module) -> None:
    with pytest.raises(LaunchError, match="argument ys is an object, neither an array nor a number"):
        programs["dot"](xs_of(4), object())
    with pytest.raises(LaunchError, match=r"argument ys is a list(?s:.*)np\.asarray"):
        programs["dot"](xs_of(4), [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(LaunchError, match="dtype"):
        programs["dot"](xs_of(4), np.array(["a", "b", "c", "d"]))


def test_other_byte_order_says_what_to_do(programs: lf.Module) -> None:
    with pytest.raises(LaunchError, match="byte order"):
        programs["dot"](xs_of(4), xs_of(4).astype(">f4"))


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[3:]])
def test_views_of_arrays(programs: lf.Module, view: slice) -> None:
    xs = xs_of(40)[view]
    np.testing.assert_array_equal(programs["scal"](2.0, xs), xs * 2)


def test_several_and_nested_results(programs: lf.Module) -> None:
    xs = xs_of(20)
    plus, total = programs["both"](xs)
    np.testing.assert_array_equal(plus, xs + 1)
    np.testing.assert_allclose(total, xs.sum(), rtol=1e-6)
    (same, twice), (largest, again) = programs["nested"](xs)
    np.testing.assert_array_equal(same, xs)
    np.testing.assert_array_equal(twice, xs * 2)
    np.testing.assert_array_equal(again, xs)
    assert largest == xs.max()


def test_an_array_of_tuples_is_given_as_a_tuple_of_arrays(programs: lf.Module) -> None:
    a, b = xs_of(11), xs_of(12)[:11]
    np.testing.assert_array_equal(programs["pairs"]((a, b)), a - b)
    with pytest.raises(LaunchError, match="lengths"):
        programs["pairs"]((a, b[:5]))


def test_point_free_definitions_take_arguments(programs: lf.Module) -> None:
    xs = xs_of(6)
    np.testing.assert_array_equal(programs["count"](xs), xs + 1)


def test_a_result_may_be_an_argument_again(programs: lf.Module) -> None:
    xs = xs_of(50)
    scal = programs["scal"]
    np.testing.assert_array_equal(scal(0.5, scal(2.0, xs)), xs)


def test_arguments_are_not_changed(programs: lf.Module) -> None:
    xs = xs_of(50)
    before = xs.copy()
    programs["scal"](2.0, xs)
    np.testing.assert_array_equal(xs, before)


# ---- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("number", [3, np.int8(3)])
def test_numbers_take_the_type_of_the_arrays(programs: lf.Module, dtype: Any, number: Any) -> None:
    xs = (xs_of(8) * 10).astype(dtype)
    if isinstance(number, np.int8):
        with pytest.raises(TypeMismatch):  # NumPy's scalars have a type
            programs["scal"](number, xs)
        return
    result = programs["scal"](number, xs)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, xs * 3)


def test_numbers_take_the_declared_type() -> None:
    both = lf.parse("f = λ (k : i32) (xs : n.f32) . map (λ x . x * f32 k) xs")["f"]
    np.testing.assert_array_equal(both(2, np.ones(3, np.float32)), [2, 2, 2])


def test_a_number_alone_is_f32_or_i32() -> None:
    twice = lf.parse("twice = λ x . x + x")["twice"]
    assert twice(1.5) == 3.0
    assert twice(1.5).dtype == np.float32
    assert twice(2).dtype == np.int32


# ---- sizes -----------------------------------------------------------------------------------------------------------


def test_free_sizes(programs: lf.Module) -> None:
    xs = xs_of(12)
    for size in (1, 3, 12):
        expected = xs.reshape(-1, size).sum(1)
        np.testing.assert_allclose(programs["blocks"](xs, sizes={"blockSize": size}), expected, rtol=1e-6)
    with pytest.raises(UnboundSize, match="blockSize"):
        programs["blocks"](xs)
    with pytest.raises(LithifyError, match="5"):
        programs["blocks"](xs, sizes={"blockSize": 5})


def test_sizes_of_annotations(programs: lf.Module) -> None:
    np.testing.assert_array_equal(programs["typed"](2.0, np.ones(5, np.float32)), np.full(5, 7.0))


def test_an_index_that_is_outside_for_some_sizes_is_refused() -> None:
    """Where sizes are symbolic, as for any size, an index constant has to be inside whatever they are."""
    module = lf.parse(
        "end (xs : n.f32) = xs[n]\nother (xs : n.f32) (ys : m.f32) = xs[m]\nthird (xs : n.f32) = xs[3]\n"
        "first (xs : n.f32) = xs[0]\nlast (xs : n.f32) = xs[n - 1]\n"
    )
    xs = np.arange(5, dtype=np.float32)
    for name in ("end", "other", "third"):
        with pytest.raises(TypeMismatch, match=r"is outside|is not inside"):
            module[name].for_any_size().types()
    with pytest.raises(TypeMismatch, match="index 5 is outside"):
        module["end"](xs)
    assert module["third"](xs) == 3
    for name, value in (("first", 0), ("last", 4)):
        assert module[name].for_any_size()(xs) == value
        assert module[name](xs) == value


def test_what_needs_arguments_says_so(programs: lf.Module) -> None:
    typed = programs["typed"]
    for ask in (typed, typed.check, typed.explain, typed.tune):
        with pytest.raises(LaunchError, match="no value is given for") as caught:
            ask()
        assert "takes" in str(caught.value.hint)
    assert typed.derivation().steps  # types are written: they will do


def test_kernels_are_printed_as_loops(programs: lf.Module) -> None:
    text = str(programs["scal"].kernels("f32", "1000.f32"))
    assert text.startswith("program scal\n")
    assert "Buffer(" not in text
    assert " := " in text


def test_for_any_size(programs: lf.Module) -> None:
    typed = programs["typed"].for_any_size()
    for size in (1, 5, 16, 100):
        xs = xs_of(size)
        np.testing.assert_allclose(typed(2.0, xs), xs * 2 + size, rtol=1e-6)
    assert len({id(typed.specialise(xs_of(s), 1.0).compiled) for s in (3, 4)}) == 1
    with pytest.raises(LaunchError, match="not written"):
        programs["dot"].for_any_size()
    assert typed.check(2.0, xs_of(1000))
    assert typed.explain(2.0, xs_of(1000)).work.written == 4000
    assert not typed.for_these_sizes().any_size


@pytest.mark.parametrize("device", ["cpu", "c"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reduce (+) 0 xs", lambda xs: xs.sum()),
        ("reduce max (-inf) (map abs xs)", lambda xs: np.abs(xs).max(initial=-np.inf)),
        ("reduce (λ (a, b) x . (a + x, b + x * x)) (0, 0) xs", lambda xs: (xs.sum(), (xs * xs).sum())),
        ("map (λ x . x / (1 + sum xs)) xs", lambda xs: xs / (1 + xs.sum())),
        ("scan (+) 0 xs", np.cumsum),
    ],
)
def test_sums_for_any_size(device: str, text: str, expected: Any) -> None:
    """One kernel for all lengths; of the partial sums of unknown many blocks no partial sums are made."""
    if device == "c":
        pytest.importorskip("lithify.targets.c")
    program = lf.parse(f"p (xs : n.f64) = {text}")["p"].on(device).for_any_size()
    for size in (0, 1, 7, 33, 4096, 5000, 70_000):
        xs = xs_of(size, np.float64)
        np.testing.assert_allclose(program(xs), expected(xs), rtol=1e-9)


def test_kernels_for_any_size_are_not_those_for_no_elements(programs: lf.Module) -> None:
    """Sizes of 0 are compiled for, each by itself; calls of other sizes before and after it do not mind."""
    typed = programs["typed"].for_any_size()
    for size in (0, 3, 0, 5):
        xs, out = xs_of(size), np.full(size, np.nan, np.float32)
        np.testing.assert_array_equal(typed(2.0, xs), xs * 2 + np.float32(size))
        assert typed(2.0, xs, out=out) is out
        np.testing.assert_array_equal(out, xs * 2 + np.float32(size))


# ---- places of errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "name", "shapes", "words"),
    [
        ("blas", "gemv", ((4, 5), (4,), (4,), (), ()), "lengths: 5 and 4"),
        ("blas", "matmulF32", ((4, 5), (4, 5)), "lengths: 5 and 4"),
        ("rows", "layernorm", ((4, 5), (4,), (5,), ()), "lengths: 5 and 4"),
        ("rows", "softmax", ((5,),), "an array"),
        ("image", "harris", ((5,), ()), "pad takes an array, f32 given"),
        ("stencil", "jacobi2D5", ((0, 5),), "pad 1 1 clamp of an empty array, 0.7.f32"),
    ],
)
def test_in_a_shipped_program_what_was_given_comes_first(
    library: str, name: str, shapes: tuple[tuple[int, ...], ...], words: str
) -> None:
    """Whoever calls a program that lithify ships has not written the line where it does not fit together."""
    program = lf.library(library)[name]
    with pytest.raises(TypeMismatch, match=words) as caught:
        program(*[np.ones(shape, np.float32) if shape else 1.0 for shape in shapes])
    types = [".".join((*map(str, shape), "f32")) for shape in shapes]
    first, second, *_ = str(caught.value.where).splitlines()
    given = ", ".join(f"{p} : {t}" for p, t in zip(program.parameters, types, strict=True))
    assert first == f"in the use of `{name}` with {given}"
    assert second.startswith("which does not fit at ")
    assert f"{library}.lift, line" in second


def test_in_the_prelude_the_place_is_the_users() -> None:
    @lf.program
    def product(a, b):  # type: ignore[no-untyped-def]
        return lf.tile(2, 2, a) >> lf.map(lambda t: lf.dot(t, b))

    xs = np.ones(5, np.float32)
    for program, arguments, line in (
        (lf.parse("p xs ys = 1 + dot xs ys")["p"], (xs, xs.astype(np.int32)), "1 + dot xs ys"),
        (lf.parse("p xs = xs |> tile 2 2")["p"], (np.ones((4, 5), np.float32),), "|> tile 2 2"),
        (product, (np.ones((4, 5), np.float32), xs), "test_program.py, line"),
    ):
        with pytest.raises(TypeMismatch) as caught:
            program(*arguments)
        assert line in str(caught.value.where)
        assert "prelude" not in str(caught.value)


def test_arguments_of_no_type_are_named() -> None:
    words = np.array(["a", "b"])
    module = lf.parse("named xs = map (λ x . x) xs\nfree = map (λ x . x)\npair (a, b) c = map (+) (zip a b)")
    for program, arguments, called in (
        (module["named"], (words,), "argument xs has"),
        (module["free"], (words,), "argument 1 has"),
        (module["pair"], ((np.ones(2), words), 1.0), "argument arg1.1 has"),
        (module["pair"], ((np.ones(2), np.ones(2)), words), "argument c has"),
    ):
        with pytest.raises(LaunchError) as caught:
            program(*arguments)
        assert str(caught.value).startswith(f"{called} dtype <U1")


def test_parameters_that_are_taken_apart_have_names_of_their_own() -> None:
    program = lf.parse("p (a, b) arg1 _ _ = map (λ (x, y) . x * y + arg1) (zip a b)")["p"]
    assert program.parameters == ("arg1_", "arg1", "arg3", "arg4")
    xs = np.ones(3, np.float32)
    np.testing.assert_array_equal(program((xs, xs * 2), np.float32(3), 0, 0), [5, 5, 5])


# ---- Python functions ------------------------------------------------------------------------------------------------


def test_a_python_function() -> None:
    rows = xs_of(35).reshape(5, 7)
    np.testing.assert_allclose(centred(rows), rows - rows.mean(1, keepdims=True), atol=1e-6)
    assert centred.__doc__ == "Every row minus its mean."
    assert centred.parameters == ("rows",)
    assert centred.annotated
    with pytest.raises(TypeMismatch):
        centred(xs_of(7))


def test_the_decorator_whatever_was_imported_first() -> None:
    import lithify.program as package

    made = package(lambda xs: lf.sum(xs))  # type: ignore[operator]
    assert isinstance(made, Program)
    assert isinstance(lf.program(lambda xs: lf.sum(xs)), Program)


# ---- texts -----------------------------------------------------------------------------------------------------------


def test_modules_are_mappings(programs: lf.Module) -> None:
    assert list(programs)[:2] == ["dot", "scal"]
    assert "dot" in programs
    assert "dott" not in programs
    with pytest.raises(LithifyError, match="did you mean dot"):
        programs["dott"]
    assert programs["dot"] is programs["dot"]


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "a.lift"
    path.write_text("total = λ xs . reduce (+) 0 xs\n", encoding="utf-8")
    assert lf.load(path)["total"](np.ones(5, np.float32)) == 5
    with pytest.raises(LithifyError, match="cannot be read"):
        lf.load(tmp_path / "b.lift")
    (tmp_path / "c.lift").write_bytes(b"f = \xff\xfe")
    with pytest.raises(LithifyError, match="UTF-8"):
        lf.load(tmp_path / "c.lift")


def test_load_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.lift").write_text("total = λ xs . reduce (+) 0 xs\n", encoding="utf-8-sig")
    assert lf.load(tmp_path / "a.lift")["total"](np.ones(5, np.float32)) == 5


def test_copies_of_a_program() -> None:
    total = lf.parse("total = λ xs . reduce (+) 0 xs")["total"]
    assert copy.copy(total) is total
    assert copy.deepcopy({"total": total})["total"] is total
    with pytest.raises(TypeError, match="program total cannot be pickled: load or build it"):
        pickle.dumps(total)


def test_the_library() -> None:
    assert lf.library("blas")["dot"](np.ones(4, np.float32), np.ones(4, np.float32)) == 4
    with pytest.raises(LithifyError, match=r"no programs named blass(?s:.*)blas, image"):
        lf.library("blass")


def test_errors_of_a_text_are_raised_when_it_is_parsed() -> None:
    with pytest.raises(lf.ParseError, match=r"line 1, column"):
        lf.parse("f = λ x . ) x")


# ---- devices ---------------------------------------------------------------------------------------------------------


def test_devices_say_what_there_is() -> None:
    found = {status.name: status for status in lf.devices()}
    assert found["cpu"].available
    assert all(status.available or status.reason for status in found.values())
    assert lf.device().name == "cpu"
    with pytest.raises(LaunchError, match="no device 'gpu'"):
        lf.device("gpu")
    with pytest.raises(LaunchError, match="cpu:7"):
        lf.device("cpu:7")


@pytest.mark.opencl
def test_on_opencl(programs: lf.Module, opencl_device: object) -> None:
    xs, ys = xs_of(1000), xs_of(1001)[:1000]
    np.testing.assert_allclose(programs["dot"].on("opencl:0")(xs, ys), xs @ ys, rtol=1e-4)
    with pytest.raises(LaunchError, match="opencl:99"):
        programs["dot"].on("opencl:99")


def test_on_returns_another_program(programs: lf.Module) -> None:
    dot = programs["dot"]
    assert dot.on("cpu") is not dot
    assert dot.on(lf.device("cpu"))(xs_of(4), xs_of(4)) == dot(xs_of(4), xs_of(4))


# ---- looking ---------------------------------------------------------------------------------------------------------


def test_types_and_terms(programs: lf.Module) -> None:
    parameters, result = programs["dot"].types("8.f32", "8.f32")
    assert [*map(str, parameters), str(result)] == ["8.f32", "8.f32", "f32"]
    assert str(programs["dot"].term("8.f32", "8.f32")) == "reduce (+) 0 (map (*) (zip xs ys))"
    parameters, result = programs["typed"].types()
    assert [*map(str, parameters), str(result)] == ["f32", "n.f32", "n.f32"]
    with pytest.raises(lf.ParseError, match="not the type"):
        programs["dot"].types("8.f33", "8.f32")


@pytest.mark.parametrize(
    ("target", "word"), [("opencl", "__kernel void dot"), ("c", "dot("), ("cpu", "define"), (None, "define")]
)
def test_source(programs: lf.Module, target: str | None, word: str) -> None:
    assert word in programs["dot"].source("1000.f32", "1000.f32", target=target)


def test_lowered_and_derivation(programs: lf.Module) -> None:
    xs = xs_of(1000)
    derivation = programs["dot"].derivation(xs, xs)
    assert derivation.names()
    assert derivation.term is programs["dot"].lowered(xs, xs)
    assert programs["dot"].kernels(xs, xs).kernels


def test_explain(programs: lf.Module) -> None:
    xs = xs_of(100_000)
    found = programs["scal"].explain(2.0, xs)
    assert found.work.read == 400_000 + 4
    assert found.work.written == 400_000
    assert found.work.operations == {"f32": 100_000}
    assert found.seconds > 0
    assert found.bound.seconds > 0
    text = str(found)
    for title in ("program", "device", "moves at least", "least time", "share of the bound", "derivation"):
        assert title in text


def test_check_executes_every_level(programs: lf.Module) -> None:
    found = programs["dot"].check(xs_of(5000), xs_of(5000))
    assert found
    assert [str(t) for t in found.types] == ["13.f32", "13.f32"]
    assert len(found.levels) == 4
    assert all(level.right for level in found.levels)
    assert "ok" in str(found)


@pytest.mark.parametrize("body", ["map (λx. " + "x + " * 600 + "x) xs", "map (+ 1)" + " . map (+ 1)" * 300])
def test_programs_that_nest_deeply(body: str) -> None:
    xs = np.arange(4, dtype=np.int32)
    expected = xs * 601 if body.endswith("xs") else xs + 301
    np.testing.assert_array_equal(lf.parse(f"f {'xs' if body.endswith('xs') else ''} = {body}")["f"](xs), expected)


# ---- mistakes --------------------------------------------------------------------------------------------------------


def test_programs_are_no_attributes(programs: lf.Module) -> None:
    with pytest.raises(AttributeError, match=r"module\['dot'\]"):
        programs.dot  # noqa: B018


def test_types_that_are_not_converted(programs: lf.Module) -> None:
    for program, arguments in ((programs["typed"], (1.0, xs_of(3, np.float64))), (centred, (np.ones((2, 3)),))):
        with pytest.raises(TypeMismatch, match=r"f32 expected, f64 given") as error:
            program(*arguments)
        assert "astype" in (error.value.hint or "")


def test_a_forgotten_return() -> None:
    @lf.program
    def nothing(xs: lf.Array[n, lf.f32]):  # type: ignore[no-untyped-def, valid-type]
        lf.sum(xs)

    with pytest.raises(TypeMismatch, match="None is no value") as error:
        nothing(xs_of(3))
    assert "return" in (error.value.hint or "")
    assert "test_program.py" in (error.value.where or "")


def test_functions_of_python_do_not_take_what_is_not_known_yet() -> None:
    @lf.program
    def sines(xs: lf.Array[n, lf.f32]):  # type: ignore[no-untyped-def, valid-type]
        return xs >> lf.map(lambda x: math.sin(x))

    with pytest.raises(TypeMismatch, match="not known while the program is built") as error:
        sines(xs_of(3))
    assert "lf.sin" in (error.value.hint or "")


def test_a_derivation_is_printed_as_its_steps(programs: lf.Module) -> None:
    derivation = programs["count"].derivation("100.f32")
    lines = str(derivation).splitlines()
    assert len(lines) == len(derivation.steps) > 0
    assert all(name in line for name, line in zip(derivation.names(), lines, strict=True))


def test_a_histogram_by_generate() -> None:
    text = "h (xs : n.u8) = generate 256 (λ b . sum (map (λ x . if i32 x == i32 b then 1 else 0) xs))"
    histogram = lf.parse(text)["h"]
    xs = np.random.default_rng(0).integers(0, 256, 5000).astype(np.uint8)
    np.testing.assert_array_equal(histogram(xs), np.bincount(xs, minlength=256))
