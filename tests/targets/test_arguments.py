"""What a call accepts, and what it says about arguments that do not fit."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from lithify.lang.errors import LaunchError
from lithify.lang.scalars import bf16
from lithify.targets.arguments import Arguments
from lithify.targets.base import Argument, Interface, SizeSource, size_function
from lithify.targets.memory import MemoryPool, address_of, aligned_empty

MATRIX = Interface(
    "scale",
    (Argument("a", "f32", (), "scalar"), Argument("xs", "f32", (3, 4), "input")),
    (Argument("out", "f32", (3, 4), "output"),),
)
SYMBOLIC = Interface(
    "stencil",
    (Argument("xs", "f32", ("n", "(2*m + 1)"), "input"), Argument("ys", "f32", ("n",), "input")),
    (Argument("out", "f32", ("n", "m"), "output"),),
    ("n", "m"),
    (SizeSource("n", 0, 0, 1, 0), SizeSource("m", 0, 1, 2, 1)),
    (1, 1),
)
CHECK = Arguments(MATRIX)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def scalar(name: str, value: Any) -> Any:
    return Arguments(Interface("f", (Argument("a", name, (), "scalar"),), ())).check((value,)).values[0]


def test_contiguous_arrays_are_not_copied() -> None:
    assert CHECK.check((2.0, X)).values[1] is X


def test_other_layouts_are_copied_and_left_alone() -> None:
    strided = np.asfortranarray(X)
    got = CHECK.check((2.0, strided)).values[1]
    assert got.flags.c_contiguous
    assert not np.shares_memory(got, strided)
    np.testing.assert_array_equal(got, X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2.0,), r"scale takes 2 argument\(s\) \(a, xs\), 1 given"),
        ((2.0, X.T), r"argument xs of scale is 4\.3\.f32, but it takes 3\.4\.f32"),
        ((2.0, X.astype(np.float64)), r"argument xs is 3\.4\.f64, but the program takes 3\.4\.f32"),
        ((2.0, X.astype(np.dtype(">f4") if sys.byteorder == "little" else np.dtype("<f4"))), "other byte order"),
        ((2.0, X.astype(str)), "argument xs is 3.4.<U32, but"),
        ((2.0, [[1.0]]), "argument xs is a list, neither an array"),
        ((2.0, None), "argument xs is None"),
        ((2.0, np.ma.masked_array(X, X > 3)), "its mask would be lost"),
        ((X, X), r"argument a is 3\.4\.f32, but the program takes the scalar f32"),
        (("2", X), r"argument a is '2' \(str\), but the program takes f32"),
        ((2j, X), r"argument a is 2j \(complex\), but the program takes f32"),
        ((True, X), r"argument a is True \(bool\), but"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        CHECK.check(arguments)


def test_scalars_become_the_parameters_type() -> None:
    assert scalar("i8", -128) == np.int8(-128)
    assert scalar("f32", 3).dtype == np.float32
    assert scalar("f32", np.float64(0.1)) == np.float32(0.1)
    assert scalar("u64", 2**64 - 1) == np.uint64(2**64 - 1)
    assert scalar("bf16", 1.5).dtype == bf16.dtype
    assert scalar("complex64", 1).dtype == np.complex64
    assert scalar("bool", np.True_) == np.True_
    assert scalar("i32", np.array(7)) == 7


@pytest.mark.parametrize(("name", "value"), [("i8", 128), ("u8", -1), ("i32", 1.5), ("bool", 1), ("i32", True)])
def test_numbers_that_a_scalar_cannot_hold(name: str, value: Any) -> None:
    with pytest.raises(LaunchError, match="argument a is"):
        scalar(name, value)


def test_sizes_follow_from_shapes() -> None:
    check = Arguments(SYMBOLIC)
    call = check.check((np.zeros((5, 7), np.float32), np.zeros(5, np.float32)))
    assert call.sizes == {"n": 5, "m": 3}
    assert check.results(None, call)[0][0].shape == (5, 3)


@pytest.mark.parametrize(
    ("shapes", "sizes", "message"),
    [
        (((5, 8), (5,)), None, r"dimension 1 of argument xs is 8, which is not \(2\*m \+ 1\) for any size m"),
        (
            ((5, 7), (4,)),
            None,
            r"argument ys of stencil is 4.f32, but it takes 5.f32 \(n.f32|argument ys .* takes 5\.f32",
        ),
        (((5, 7), (5,)), {"n": 6}, "size n is given as 6, but dimension 0 of argument xs makes it 5"),
        (((0, 7), (0,)), None, "size n of stencil is 0; the kernel is for 1 or more"),
        (((5, 7), (5,)), {"k": 6}, "has no size k; its sizes are: n, m"),
    ],
)
def test_sizes_that_do_not_fit(shapes: Any, sizes: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        Arguments(SYMBOLIC).check([np.zeros(s, np.float32) for s in shapes], sizes)


def test_sizes_that_nothing_determines_are_asked_for() -> None:
    interface = Interface("iota", (), (Argument("out", "i32", ("n",), "output"),), ("n",), (), (0,))
    with pytest.raises(LaunchError, match=r"size\(s\) n of iota do not follow") as error:
        Arguments(interface).check(())
    assert 'sizes={"n": ..}' in str(error.value)
    assert Arguments(interface).check((), {"n": 3}).sizes == {"n": 3}


# ---- results ---------------------------------------------------------------------------------------------------------


def test_new_results_are_aligned() -> None:
    (result,), copies = CHECK.results(None, CHECK.check((1.0, X)))
    assert address_of(result) % 64 == 0
    assert result.shape == (3, 4)
    assert not copies


def test_out_is_used_as_it_is_or_copied_to() -> None:
    call = CHECK.check((1.0, X))
    out = np.empty((3, 4), np.float32)
    assert CHECK.results(out, call)[0][0] is out
    strided = np.empty((3, 8), np.float32)[:, ::2]
    (result,), ((target, source),) = CHECK.results(strided, call)
    assert target is strided
    assert source is result


def read_only() -> Any:
    array = np.empty((3, 4), np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((4, 3), np.float32), r"out is 4\.3\.f32, but the result is 3\.4\.f32"),
        (np.empty((3, 4), np.float64), r"out is 3\.4\.f64, but"),
        (read_only(), "read-only"),
        (X, "shares memory with argument xs"),
        (X[::-1], "shares memory with argument xs"),
        (np.lib.stride_tricks.as_strided(np.empty(8, np.float32), (3, 4), (4, 4)), "elements that share memory"),
        ((np.empty((3, 4), np.float32),) * 2, r"has 1 result\(s\), out has 2"),
        (3.0, "out is the float 3.0, not an array"),
    ],
)
def test_outputs_that_do_not_fit(out: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        CHECK.results(out, CHECK.check((1.0, X)))


def test_results_that_overlap_each_other() -> None:
    two = Interface("two", (), (Argument("p", "f32", (4,), "output"), Argument("q", "f32", (4,), "output")))
    check = Arguments(two)
    memory = np.empty(6, np.float32)
    with pytest.raises(LaunchError, match="shares memory with another result"):
        check.results((memory[:4], memory[2:]), check.check(()))


# ---- other libraries -------------------------------------------------------------------------------------------------


class Foreign:
    """An array of another library, as DLPack shows it."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0)) -> None:
        self._array, self._device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def test_dlpack_arrays_are_read_in_place() -> None:
    assert np.shares_memory(CHECK.check((1.0, Foreign(X))).values[1], X)


def test_arrays_on_other_devices_are_refused() -> None:
    with pytest.raises(LaunchError, match="argument xs lies on cuda:1, not in the memory of the CPU"):
        CHECK.check((1.0, Foreign(X, (2, 1))))


def test_arrays_that_dlpack_cannot_describe_are_refused() -> None:
    class Sparse(Foreign):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise ValueError("a sparse layout")

    with pytest.raises(LaunchError, match="argument xs cannot be read through DLPack: a sparse layout"):
        CHECK.check((1.0, Sparse(X)))


def test_types_that_dlpack_cannot_hand_over_go_through_the_array_protocol() -> None:
    class Jax(Foreign):
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self._array

    array = np.ones((3, 4), bf16.dtype)
    interface = Interface("f", (Argument("xs", "bf16", (3, 4), "input"),), ())
    assert Arguments(interface).check((Jax(array),)).values[0] is array


def test_torch_tensors_of_types_that_numpy_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for torch: what is called is what torch's documentation gives."""
    array = np.arange(12, dtype=np.int16).reshape(3, 4)

    class Tensor(Foreign):
        dtype = "torch.bfloat16"

        def detach(self) -> Any:
            return self

        def view(self, dtype: str) -> Any:
            assert dtype == "torch.int16"
            return types.SimpleNamespace(numpy=lambda: self._array)

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor, int16="torch.int16"))
    interface = Interface("f", (Argument("xs", "bf16", (3, 4), "input"),), ())
    got = Arguments(interface).check((Tensor(array),)).values[0]
    assert got.dtype == bf16.dtype
    assert np.shares_memory(got, array)


def test_real_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(12.0).reshape(3, 4)
    for value in (tensor, tensor.clone().requires_grad_()):
        assert address_of(CHECK.check((1.0, value)).values[1]) == value.data_ptr()
    brain = Arguments(Interface("f", (Argument("xs", "bf16", (3, 4), "input"),), ()))
    value = tensor.to(torch.bfloat16)
    assert address_of(brain.check((value,)).values[0]) == value.data_ptr()
    out = torch.empty(3, 4)
    (result,), _ = CHECK.results(out, CHECK.check((1.0, tensor)))
    assert address_of(result) == out.data_ptr()
    with pytest.raises(LaunchError, match="cannot be read through DLPack"):
        CHECK.check((1.0, tensor.to_sparse()))


def test_tensors_that_show_other_numbers_than_they_hold_are_no_place_for_results() -> None:
    torch = pytest.importorskip("torch")
    interface = Interface("f", (), (Argument("out", "complex64", (3,), "output"),))
    check = Arguments(interface)
    call = check.check(())
    plain = torch.zeros(3, dtype=torch.complex64)
    assert address_of(check.results(plain, call)[0][0]) == plain.data_ptr()
    with pytest.raises(LaunchError, match="shows a copy of its elements"):
        check.results(plain.conj(), call)


def test_numbers_of_thousands_of_digits_are_refused_in_words() -> None:
    for number in (10**5000, -(10**5000)):
        with pytest.raises(LaunchError, match="an integer of 16610 bits, which f32 cannot hold"):
            CHECK.check((number, X))


# ---- the interface and the memory ------------------------------------------------------------------------------------


def test_interfaces_are_data() -> None:
    assert Interface.from_data(SYMBOLIC.as_data()) == SYMBOLIC


def test_size_functions() -> None:
    f = size_function(("n", "(n // 4)", "min(n, 3)", 7), ("n",))
    assert f({"n": 10}) == (10, 2, 3, 7)
    with pytest.raises(LaunchError, match="cannot be the name of a size"):
        size_function(("n",), ("n; import os",))


def test_aligned_memory_of_no_elements() -> None:
    assert aligned_empty((0, 3), np.dtype(np.float32)).shape == (0, 3)
    with pytest.raises(MemoryError, match="unable to allocate"):  # a size that no number of the machine holds
        aligned_empty((10**26,), np.dtype(np.float32))


def test_memory_is_used_again_when_nobody_uses_it() -> None:
    pool = MemoryPool(kept_bytes=10 << 20)
    first = pool.array((1 << 20,), np.dtype(np.float32))
    place = address_of(first)
    view = first[5:]
    del first
    assert pool.kept == 0, "a view keeps the memory"
    other = pool.array((1 << 20,), np.dtype(np.float32))
    assert address_of(other) != place
    del view
    assert pool.kept == 4 << 20
    assert address_of(pool.array((1000, 1024), np.dtype(np.float32))) == place


def test_what_is_kept_is_bounded() -> None:
    pool = MemoryPool(kept_bytes=5 << 20)
    arrays = [pool.array((1 << 20,), np.dtype(np.float32)) for _ in range(3)]
    arrays.clear()
    assert pool.kept == 4 << 20
