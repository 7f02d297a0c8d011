"""The built-in function for plain calls does what the way through Python does, or nothing."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.kernel import ir
from lithify.lang.errors import LithifyError
from lithify.lang.levels import HEAP, OUT, PAR, THREAD
from lithify.lang.scalars import SCALARS, Scalar, bf16, f32
from lithify.targets.base import never
from lithify.targets.cpu import CpuTarget, native_call
from lithify.targets.cpu.executable import CpuExecutable
from tests.targets.handmade import buffer, index, loop, op, program, random

SHAPE = (2, 3)
NAMES = ("f32", "f64", "f16", "bf16", "i8", "u8", "i32", "u32", "i64", "u64", "bool", "complex64", "complex128")

pytestmark = pytest.mark.skipif(native_call._native() is None, reason="plain calls go through Python here")


def copies(scalar: Scalar, results: int = 2) -> ir.Program:
    """(s, xs) -> (xs, s everywhere), or only the first of them."""
    s, x = buffer("s", scalar=scalar, role="scalar"), buffer("x", *SHAPE, scalar=scalar)
    outs = [buffer(f"out{k}", *SHAPE, scalar=scalar, role="output", memory=OUT) for k in range(results)]
    i, j = index("i", SHAPE[0]), index("j", SHAPE[1])
    values = [ir.Load(x, (i, j)), ir.Load(s, ())]
    stores = [ir.Store(out, (i, j), value) for out, value in zip(outs, values, strict=False)]
    return program([s, x], outs, loop(i, SHAPE[0], loop(j, SHAPE[1], *stores)))


@cache
def quick_and_slow(name: str, results: int = 2) -> tuple[CpuExecutable, CpuExecutable]:
    """The same program, called natively, and never so."""
    scalar = SCALARS[name]
    quick = CpuTarget(1).compile(copies(scalar, results))
    slow = CpuTarget(1).load(quick.serialize())
    slow._quick_for = lambda kinds: never  # type: ignore[method-assign]
    plain = (scalar.dtype.type(1), np.ones(SHAPE, scalar.dtype))
    for _ in range(2):
        quick(*plain)
    assert quick.quick(plain) is not never
    return quick, slow


def outcome(call: Callable[..., Any], arguments: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """What a call returns, fills, warns of and raises, in a form that can be compared."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*arguments, out=out)
        except LithifyError as error:
            return "raises", type(error), str(error)
    said = [(w.category, str(w.message)) for w in caught]
    arrays = result if isinstance(result, tuple | list) else (result,)
    return "returns", [(a.dtype, a.shape, a.tobytes(), type(a)) for a in arrays], said, result is out


class Special(np.ndarray[Any, np.dtype[Any]]):
    """A class of arrays of somebody else's."""


def laid_out(array: Any, how: str) -> Any:
    """The values of an array, otherwise laid out, typed or wrapped."""
    if how == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype) if array.ndim else array.copy()
        view = wide[..., ::2] if array.ndim else wide
        view[...] = array
        return view
    if how == "misaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
        raw[:] = np.frombuffer(array.tobytes(), np.uint8)
        return raw.view(array.dtype).reshape(array.shape)
    if how == "readonly":
        fixed = array.copy()
        fixed.flags.writeable = False
        return fixed
    ways: dict[str, Callable[[], Any]] = {
        "plain": lambda: array,
        "fortran": lambda: np.asfortranarray(array),
        "reversed": lambda: array[::-1].copy()[::-1] if array.ndim else array,
        "swapped": lambda: array.astype(array.dtype.newbyteorder()) if array.dtype.isbuiltin == 1 else array,
        "special": lambda: array.view(Special),
        "masked": lambda: np.ma.masked_array(array),
        "list": lambda: array.tolist(),
        "memoryview": lambda: memoryview(array) if array.dtype.isbuiltin == 1 else None,
    }
    return ways[how]()


LAYOUTS = ["plain"] * 25 + [
    "strided", "misaligned", "readonly", "fortran", "reversed", "swapped", "special", "masked", "list", "memoryview",
]  # fmt: skip
SHAPES = st.sampled_from([SHAPE] * 20 + [(3, 2), (6,), (2, 3, 1), (), (0, 3), (2, 4)])
OTHERS = st.sampled_from(NAMES)


@st.composite
def array(draw: st.DrawFn, name: str) -> Any:
    dtype = SCALARS[name if draw(st.integers(0, 9)) else draw(OTHERS)].dtype
    shape = draw(SHAPES)
    values = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)
    return laid_out(values, draw(st.sampled_from(LAYOUTS)))


@st.composite
def number(draw: st.DrawFn, name: str) -> Any:
    limits = [2**k + d for k in (7, 8, 15, 24, 31, 32, 53, 63, 64, 1000) for d in (-1, 0, 1)]
    floats = [0.0, -0.0, 1e-46, 1.2e-38, 3.4028235e38, 3.4028235677973366e38, 3.5e38, 1e308]
    kind = draw(st.integers(0, 12))
    if kind < 3:
        return draw(st.floats() | st.sampled_from(floats).flatmap(lambda x: st.sampled_from([x, -x])))
    if kind < 6:
        return draw(st.integers() | st.sampled_from(limits).flatmap(lambda x: st.sampled_from([x, -x])))
    if kind == 6:
        return draw(st.booleans() | st.complex_numbers() | st.none() | st.text(max_size=3))
    dtype = SCALARS[draw(OTHERS) if kind == 7 else name].dtype
    scalar = dtype.type(draw(st.integers(0, 100)))
    return [scalar, scalar, np.asarray(scalar), np.asarray([scalar])][draw(st.integers(0, 3))]


@st.composite
def call(draw: st.DrawFn, name: str) -> tuple[tuple[Any, ...], Any]:
    """Arguments and out, right or wrong."""
    x = draw(array(name))
    arguments = (draw(number(name)), x, x)[: draw(st.sampled_from([2] * 20 + [0, 1, 3]))]
    kind = draw(st.integers(0, 6))
    if kind < 3:
        return arguments, None
    outs = [draw(array(name)), draw(array(name))]
    if kind == 6:
        outs[draw(st.integers(0, 1))] = [x, outs[0], None][draw(st.integers(0, 2))]
    return arguments, [*[tuple(outs)] * 4, outs, outs[0], tuple(outs[:1])][draw(st.integers(0, 6))]


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_agree(name: str) -> None:
    quick, slow = quick_and_slow(name)
    native, taken = quick._quick, []

    @settings(max_examples=150, deadline=None)
    @given(call(name))
    def agree(example: tuple[tuple[Any, ...], Any]) -> None:
        arguments, out = example
        taken.append(native(arguments, out) is not NotImplemented)
        outs = out if isinstance(out, tuple | list) else [out]
        if any(o is a for o in outs for a in arguments if o is not None):  # Python may write it, from a copy
            assert not taken[-1]
            return
        expected = outcome(slow, arguments, out)
        assert outcome(quick, arguments, out) == expected
        if taken[-1]:
            assert expected[0] == "returns"

    agree()
    assert not all(taken)  # what is always taken, the next test says


def plain(name: str) -> tuple[Any, ...]:
    dtype = SCALARS[name].dtype
    return dtype.type(1), np.arange(6).reshape(SHAPE).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
def test_plain_arguments_are_taken(name: str) -> None:
    quick, _ = quick_and_slow(name)
    s, x = plain(name)
    native = quick.quick((s, x))
    first, second = native((s, x), None)
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, np.full(SHAPE, s))
    outs = (np.zeros_like(x), np.zeros_like(x))
    assert native((s, x), outs) is outs
    np.testing.assert_array_equal(outs[0], x)


def test_new_results_are_as_python_makes_them() -> None:
    quick, slow = quick_and_slow("f32", 1)
    native, made = quick.quick(plain("f32"))(plain("f32"), None), slow(*plain("f32"))
    assert native.flags.num == made.flags.num
    assert native.ctypes.data % 64 == 0
    assert type(native.base) is type(made.base) is np.ndarray
    native += 1  # its own memory


@pytest.mark.parametrize(
    ("name", "first", "taken", "refused"),
    [
        ("f32", 1.5, [2.5, float("nan"), float("inf"), 0.0], [2, np.float32(2), True, 1e300, 1e-45]),
        ("f32", 2, [3, -(2**24), 2**24], [2.5, np.float32(2), True, 2**24 + 1, 2**70]),
        ("f32", np.float32(1), [np.float32(3)], [2.5, 2, np.float64(2), np.float16(2)]),
        ("i8", 1, [-128, 127], [128, -129, 1.0, True, np.int8(1)]),
        ("i64", 1, [-(2**63), 2**63 - 1], [2**63, 1.0]),
        ("bf16", bf16.dtype.type(1), [bf16.dtype.type(3)], [1.5, 1]),
    ],
)
def test_a_function_takes_what_it_is_made_for(name: str, first: Any, taken: list[Any], refused: list[Any]) -> None:
    quick, slow = quick_and_slow(name)
    x = plain(name)[1]
    native = quick.quick((first, x))
    for value in taken:
        expected = slow(value, x)[1]
        assert native((value, x), None)[1].tobytes() == expected.tobytes()
    for value in refused:
        assert native((value, x), None) is NotImplemented


def test_what_has_no_native_function() -> None:
    quick, _ = quick_and_slow("f32")
    x = plain("f32")[1]
    for arguments in ((True, x), (None, x), (1.0,), (1.0, x.tolist()), (x, x), (1.0, 1.0)):
        assert quick.quick(arguments) is never


def test_nothing_is_kept() -> None:
    """References and memory after many calls, taken and refused, are what they were."""
    quick, _ = quick_and_slow("f32")
    s, x = 1.25, plain("f32")[1]
    outs = (np.zeros_like(x), np.zeros_like(x))
    native = quick.quick((s, x))
    wrong = [((s, x), (outs[0], x)), ((s, x), (outs[0], outs[0])), ((s,), None), ((s, x[::2]), None), ((s, x), s)]
    watched = [s, x, *outs, outs, x.dtype, np.ndarray, native, np.dtype(np.uint8)]

    def many() -> None:
        for _ in range(2000):
            native((s, x), None)
            native((s, x), outs)
            for arguments, out in wrong:
                assert native(arguments, out) is NotImplemented

    many()
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    many()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    assert [sys.getrefcount(each) for each in watched] == before
    assert grown < 20_000


def test_the_function_outlives_its_program() -> None:
    executable = CpuTarget(1).compile(copies(f32))
    for _ in range(2):
        executable(*plain("f32"))
    native = executable.quick(plain("f32"))
    del executable
    gc.collect()
    np.testing.assert_array_equal(native(plain("f32"), None)[0], plain("f32")[1])


def test_a_poisoned_program_is_not_called_quickly() -> None:
    executable = CpuTarget(1).compile(copies(f32))
    for _ in range(2):
        executable(*plain("f32"))
    native = executable.quick(plain("f32"))
    executable.poisoned = True
    assert native(plain("f32"), None) is NotImplemented
    executable.poisoned = False
    assert native(plain("f32"), None) is not NotImplemented


def through_memory(n: int, place: Any) -> ir.Program:
    """out = -xs by way of memory of the call, or of each thread, in a parallel loop over rows."""
    x, out = buffer("x", 4, n), buffer("out", 4, n, role="output", memory=OUT)
    r, i, j = index("r", 4), index("i", n), index("j", n)
    if place is HEAP:
        between, at = buffer("t", 4, n, role="temporary"), (r, i)
    else:
        between, at = buffer("t", n, role="scratch", memory=THREAD), (i,)
    back = (r, j) if place is HEAP else (j,)
    first = loop(i, n, ir.Store(between, at, op("neg", ir.Load(x, (r, i)))))
    second = loop(j, n, ir.Store(out, (r, j), ir.Load(between, back)))
    more = {"temporaries": (between,)} if place is HEAP else {"scratch": (between,)}
    return program([x], [out], loop(r, 4, first, second, level=PAR), **more)


@pytest.mark.parametrize("place", [HEAP, THREAD], ids=str)
@pytest.mark.parametrize("n", [5, 700, 2_000, 5_000, 100_000])
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_for_temporaries(place: Any, n: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the stack, in the program's own block, in blocks that are kept, and with results that come from such, too."""
    monkeypatch.setattr("lithify.targets.cpu.policy.LEAST_WORK", 0)
    run = CpuTarget(threads).compile(through_memory(n, place))
    x = random(4, n)
    for _ in range(2):
        run(x)
    native = run.quick((x,))
    for _ in range(20):
        np.testing.assert_array_equal(native((x,), None), -x)


@pytest.mark.parametrize("n", [700, 3_000])
def test_threads_with_small_stacks(n: int) -> None:
    """Temporaries of 11 and 48 KiB, in threads that have 64 KiB for everything."""
    run = CpuTarget(1).compile(through_memory(n, HEAP))
    x, out = random(4, n), np.empty((4, n), np.float32)
    run(x, out=out)
    before = threading.stack_size(64 << 10)
    try:
        thread = threading.Thread(target=lambda: [run(x, out=out) for _ in range(3)])
        out[:] = np.nan
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(out, -x)


@pytest.mark.parametrize("n", [300, 3_000])
def test_many_threads_call_at_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lithify.targets.cpu.policy.LEAST_WORK", 0)
    run = CpuTarget(2).compile(through_memory(n, THREAD))
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            x = np.random.default_rng(seed).standard_normal((4, n)).astype(np.float32)
            out = np.empty_like(x)
            for _ in range(300):
                np.testing.assert_array_equal(run(x), -x)
                np.testing.assert_array_equal(run(x, out=out), -x)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_results_without_elements_and_without_dimensions() -> None:
    x, out = buffer("x", 0, 3), buffer("out", role="output", memory=OUT)
    run = CpuTarget(1).compile(program([x], [out], ir.Store(out, (), ir.Constant(2.0, f32))))
    empty = np.zeros((0, 3), np.float32)
    for _ in range(4):
        got = run(empty)
        assert got.shape == ()
        assert got == 2
    assert run.quick((empty,))((empty,), None) == 2


def test_where_nothing_is_known_python_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_call, "_native", lambda: None)
    run = CpuTarget(1).compile(copies(f32))
    for _ in range(3):
        np.testing.assert_array_equal(run(*plain("f32"))[0], plain("f32")[1])
    assert run.quick(plain("f32")) is never


def test_other_layouts_of_objects_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert native_call._interpreter_is_known()
    assert native_call._arrays_are_known()
    for offset in ("ARRAY_DATA", "ARRAY_NDIM", "ARRAY_DESCR", "ARRAY_FLAGS"):
        with monkeypatch.context() as patch:
            patch.setattr(native_call.native_text, offset, 48)
            assert not native_call._arrays_are_known()
    monkeypatch.setattr(native_call.native_text, "HEAD", 24)
    assert not native_call._interpreter_is_known()
