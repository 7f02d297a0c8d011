"""The types of arguments, the structure of tuples, and arrays of other libraries."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lithify as lf
from lithify.lang.errors import LaunchError, ParseError
from lithify.lang.scalars import SCALARS, bf16, complex64, f32, f64, i32
from lithify.lang.types import Array, Index, Tuple, array
from lithify.program.arguments import (
    Number,
    decide,
    describe,
    flatten,
    key_of,
    nest,
    read_type,
    returner,
    structure_of,
)


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_every_scalar_type_is_described(name: str) -> None:
    scalar = SCALARS[name]
    assert describe(np.zeros((2, 3), scalar.dtype), "x") is array(2, 3, scalar)
    assert describe(np.zeros((), scalar.dtype), "x") is scalar


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("f32", f32),
        ("16.f32", array(16, f32)),
        ("2.3.f64", array(2, 3, f64)),
        ("(2.f32, i32)", Tuple(array(2, f32), i32)),
        ("4.(f32, f64)", Array(4, Tuple(f32, f64))),
        ("5.idx[7]", Array(5, Index(7))),
    ],
)
def test_read_type(text: str, type_: Any) -> None:
    assert read_type(text) is type_
    assert describe(text, "x") is type_


@pytest.mark.parametrize("text", ["", "f33", "2.", "2.f32.3", "f32 -> f32", "(n + 1).f32"])
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(ParseError):
        read_type(text)


def test_keys_tell_types_apart() -> None:
    values = [
        1,
        1.0,
        True,
        1j,
        np.float32(1),
        np.zeros(1, np.float32),
        np.zeros((1, 1), np.float32),
        np.zeros(1),
        "f32",
    ]
    assert len({key_of(v) for v in values}) == len(values)
    assert key_of(np.zeros(3)) == key_of(np.ones(6)[::2])
    assert key_of((1, 2.0)) == key_of((3, 4.0)) != key_of((1.0, 2))


@pytest.mark.parametrize(
    ("others", "python", "expected"),
    [
        ([], float, f32),
        ([], int, i32),
        ([], complex, complex64),
        ([array(3, f64)], float, f64),
        ([array(3, f32), f64], float, f64),
        ([array(3, i32)], float, f32),
        ([array(3, i32)], int, i32),
        ([array(3, bf16)], int, bf16),
        ([array(3, complex64)], complex, complex64),
    ],
)
def test_numbers(others: list[Any], python: type, expected: Any) -> None:
    assert decide([*others, Number(python)], [])[-1] is expected


def test_a_declared_type_wins() -> None:
    assert decide([Number(int), array(2, f32)], [i32, None])[0] is i32


trees = st.recursive(st.none(), lambda inner: st.lists(inner, min_size=2, max_size=3), max_leaves=8)


@given(trees)
def test_nest_is_the_inverse_of_flatten(structure: Any) -> None:
    counter = iter(range(100))

    def fill(s: Any) -> Any:
        return next(counter) if s is None else tuple([fill(item) for item in s])

    value = fill(structure)
    assert nest(structure, flatten([value])) == value


def test_the_structure_of_a_type() -> None:
    assert structure_of(array(3, f32)) is None
    assert structure_of(Tuple(f32, Array(3, Tuple(f32, Tuple(f32, i32))))) == [None, [None, [None, None]]]


# ---- another library -------------------------------------------------------------------------------------------------


class Foreign:
    """An array of a library that speaks DLPack."""

    def __init__(self, array_: np.ndarray[Any, Any]) -> None:
        self.array = array_
        self.dtype, self.shape = array_.dtype, array_.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


Foreign.__module__ = "foreign_arrays.core"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("foreign_arrays")
    module.from_dlpack = lambda x: Foreign(np.from_dlpack(x))
    monkeypatch.setitem(sys.modules, "foreign_arrays", module)


@pytest.mark.usefixtures("library")
def test_results_are_of_the_arguments_library() -> None:
    scal = lf.parse("scal = λ a xs . map (λ x . x * a) xs")["scal"]
    xs = np.arange(5, dtype=np.float32)
    result = scal(2.0, Foreign(xs))
    assert isinstance(result, Foreign)
    np.testing.assert_array_equal(result.array, xs * 2)
    out = Foreign(np.zeros(5, np.float32))
    assert scal(2.0, Foreign(xs), out=out) is out
    np.testing.assert_array_equal(out.array, xs * 2)
    assert isinstance(scal(2.0, xs), np.ndarray)


def test_numpy_arguments_need_no_conversion() -> None:
    assert returner([np.zeros(3), 1.0, np.float32(1)]) is None


def test_an_array_on_a_device_is_refused() -> None:
    class Elsewhere(Foreign):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(LaunchError, match="cuda:0"):
        lf.parse("total = λ xs . reduce (+) 0 xs")["total"](Elsewhere(np.zeros(3, np.float32)))


def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    scal = lf.parse("scal = λ a xs . map (λ x . x * a) xs")["scal"]
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.uint16):
        xs = torch.arange(5).to(dtype)
        result = scal(2, xs)
        assert result.dtype == dtype
        assert result.tolist() == [0, 2, 4, 6, 8]


# ---- indices ---------------------------------------------------------------------------------------------------------

INDEXING = """
taken (xs : n.f32) (ids : m.idx[n]) = gather ids xs
element (xs : n.f32) (i : idx[n]) = xs[i]
pairs (xs : n.f32) (ids : m.(idx[n], idx[3])) = map (λ(i, j). xs[i] + f32 j) ids
moved (xs : 4.f32) (ids : 4.idx[4]) = scatter ids xs
"""


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_integers_are_indices_where_the_program_says_so(dtype: Any) -> None:
    xs, ids = np.arange(5, dtype=np.float32), np.array([4, 0, 0, 3], dtype)
    program = lf.parse(INDEXING)
    np.testing.assert_array_equal(program["taken"](xs, ids), xs[ids.astype(int)])
    np.testing.assert_array_equal(program["pairs"](xs, (ids, ids // 2)), xs[ids.astype(int)] + ids // 2)
    moved = np.array([3, 1, 0, 2], dtype)
    np.testing.assert_array_equal(program["moved"](xs[:4], moved)[moved.astype(int)], xs[:4])


@pytest.mark.parametrize("index", [3, np.int64(3), np.uint8(3)])
def test_one_index(index: Any) -> None:
    assert lf.parse(INDEXING)["element"](np.arange(5, dtype=np.float32), index) == 3


@pytest.mark.parametrize("wrong", [-1, 5, 2**31 - 1, -(2**31), 2**31, 2**32, 2**63 - 1])
def test_indices_outside_the_array_are_refused_at_every_call(wrong: int) -> None:
    xs, ids = np.arange(5, dtype=np.float32), np.array([4, 0, 0], np.int64)
    program = lf.parse(INDEXING)
    for name, good, bad in (("taken", ids, np.array([1, wrong, 2])), ("element", 4, np.int64(wrong))):
        program[name](xs, good)
        with pytest.raises(LaunchError, match=rf"(index|is) {wrong}\b"):
            program[name](xs, bad)


def test_indices_of_kernels_for_any_size_are_compared_with_the_size_of_the_call() -> None:
    taken = lf.parse(INDEXING)["taken"].for_any_size()
    ids = np.array([3], np.int32)
    assert taken(np.arange(4, dtype=np.float32), ids) == [3]
    with pytest.raises(LaunchError, match="index 3, but there are 3"):
        taken(np.arange(3, dtype=np.float32), ids)


@pytest.mark.parametrize("device", ["cpu", "c", "opencl"])
def test_what_is_no_permutation_is_refused_at_every_call(device: str, request: pytest.FixtureRequest) -> None:
    """An element that no index names would stay what was in the memory."""
    if device == "opencl":
        request.getfixturevalue("opencl_device")
    program = lf.parse(INDEXING + "all (ids : n.idx[n]) (xs : n.f32) = map (λ x . x * 2) (scatter ids xs)").__getitem__
    xs, order = np.arange(4, dtype=np.float32), np.array([3, 1, 0, 2])
    for call in (
        lambda ids: program("moved").on(device)(xs, ids),
        lambda ids: program("all").on(device)(ids, xs) / 2,
        lambda ids: program("all").on(device).for_any_size()(ids, xs) / 2,
    ):
        for _ in range(2):
            np.testing.assert_array_equal(call(order)[order], xs)
            with pytest.raises(LaunchError, match="ids is no permutation: it has the index 1 3 times"):
                call(np.array([1, 1, 1, 2]))


def test_indices_into_an_empty_array() -> None:
    taken, empty = lf.parse(INDEXING)["taken"], np.zeros(0, np.float32)
    assert taken(empty, np.zeros(0, int)).shape == (0,)
    with pytest.raises(lf.LithifyError):
        taken(empty, np.zeros(1, int))


def test_indices_that_lie_on_a_device(opencl_device: Any) -> None:
    taken, xs = lf.parse(INDEXING)["taken"].on("opencl"), np.arange(5, dtype=np.float32)
    executable = taken.specialise(xs, np.array([4, 0], np.int32)).compiled.executable
    with pytest.raises(LaunchError, match="index 7"):
        executable.upload(xs, np.array([4, 7], np.int32))
    resident = executable.upload(xs, np.array([4, 0], np.int32))
    np.testing.assert_array_equal(executable(*resident), [4, 0])
    smaller = taken.specialise(xs[:3], np.array([2, 0], np.int32)).compiled.executable
    with pytest.raises(LaunchError, match="not known whether"):
        smaller(xs[:3], resident[1])


def test_indices_are_no_fractions() -> None:
    with pytest.raises(lf.LithifyError, match=r"idx\[n\] expected, f32 given"):
        lf.parse(INDEXING)["taken"](np.arange(5, dtype=np.float32), np.zeros(2, np.float32))
