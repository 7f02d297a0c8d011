"""The target `opencl` on the OpenCL devices of this machine, against NumPy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.arith import as_variable, size, var
from lithify.evaluate import evaluate
from lithify.kernel import ir
from lithify.kernel.translate import translate
from lithify.lang.errors import LaunchError
from lithify.lang.levels import OUT
from lithify.lang.module import read_text
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.machine import H200_OPENCL
from lithify.targets.opencl import OpenCLExecutable, OpenCLTarget, select
from tests.targets.group_programs import CASES, close, transpose
from tests.targets.handmade import buffer, loop, program


@pytest.fixture(scope="session")
def target(opencl_device: Any) -> OpenCLTarget:
    return OpenCLTarget(opencl_device.platform.name)


def test_a_device_that_is_not_there(opencl_device: Any) -> None:
    with pytest.raises(LaunchError, match="there is no OpenCL device opencl:99"):
        select("opencl:99")


@pytest.mark.parametrize("name", CASES)
def test_groups(target: OpenCLTarget, name: str) -> None:
    case = CASES[name]()
    executable = target.compile(case.program)
    got = executable(*case.arguments)
    for one, wanted in zip(got if isinstance(got, tuple) else (got,), case.expected, strict=True):
        close(one, wanted)
        assert one.shape == wanted.shape


@pytest.mark.parametrize("name", [name for name in CASES if "one launch" in name])
def test_counters_are_every_calls_own(target: OpenCLTarget, name: str) -> None:
    """One call after another, several at a time, from bytes, and with other temporaries full of NaN."""
    case = CASES[name]()
    executable = target.compile(case.program)
    assert isinstance(executable, OpenCLExecutable)
    first = executable(*case.arguments)
    close(first, case.expected[0])
    loaded = target.load(executable.serialize())
    loaded.poisoned = True
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(e, *case.arguments) for e in (executable, loaded) for _ in range(20)]
        for call in calls:
            np.testing.assert_array_equal(call.result(), first)
    executable.time(case.arguments, 3)
    np.testing.assert_array_equal(executable(*case.arguments), first)


@pytest.mark.parametrize(("text", "shape"), [
    ("total (xs : n.f32) = reduce (+) 0 xs", (2_000_000,)),
    ("total (xs : n.f32) = reduce (+) 0 (concat xs xs)", (300_000,)),
    ("total (xs : n.f32) = map (λ x . x - 1) (scan (+) 0 xs)", (300_000,)),
    ("total (a : n.m.f32) = map (λ column . reduce (+) 0 column) (transpose a)", (2048, 1030)),
])  # fmt: skip
def test_groups_count_themselves_in_call_after_call(target: OpenCLTarget, text: str, shape: tuple[int, ...]) -> None:
    """Each begins with the counter that the one before has left, and has arguments of its own."""
    subject = read_text(text)["total"].elaborate([array(*shape, f32)])
    lowered = lower(subject.term, H200_OPENCL, check=False)
    kernels = translate(lowered.term, subject.parameters, device=H200_OPENCL)
    assert any(b.role == "counter" for b in kernels.temporaries)
    executable = target.compile(kernels)
    for call in range(4):
        x = (call + 1) * np.random.default_rng(call).random(shape, np.float32)
        (name, _), *_ = subject.parameters
        expected = evaluate(subject.term, {name: x})
        np.testing.assert_allclose(executable(x), expected, rtol=1e-3)


def test_indices_of_64_bits_where_sizes_need_them(target: OpenCLTarget) -> None:
    """y[i] = x[(i m) mod n]: with m = 3,000,000,001 the product leaves 32 bits, although the arrays are small."""
    n, m = size("n"), size("m")
    x, y = buffer("x", n), buffer("y", n, role="output", memory=OUT)
    i = var("i", n)
    body = loop(i, n, ir.Store(y, (i,), ir.Load(x, ((i * m) % n,))))
    executable = target.compile(program([x], [y], body, sizes=(as_variable(n), as_variable(m))))
    data = np.arange(7, dtype=np.float32)
    for factor in (3, 3_000_000_001):
        wanted = np.arange(7) * factor % 7
        np.testing.assert_array_equal(executable(data, sizes={"m": factor}), wanted)
        np.testing.assert_array_equal(target.load(executable.serialize())(data, sizes={"m": factor}), wanted)


def test_arguments_on_the_device(target: OpenCLTarget) -> None:
    case = CASES["transpose"]()
    executable = target.compile(case.program)
    assert isinstance(executable, OpenCLExecutable)
    (uploaded,) = executable.upload(*case.arguments)
    out = np.empty_like(case.expected[0])
    assert executable(uploaded, out=out) is out
    np.testing.assert_array_equal(out, case.expected[0])
    seconds = executable.time([uploaded], 3)
    assert len(seconds) == 3
    assert all(s > 0 for s in seconds)
    other = target.compile(transpose(21, 37).program).upload(case.expected[0])
    with pytest.raises(LaunchError, match=r"argument x of transpose is 21\.37\.f32, but it takes 37\.21\.f32"):
        executable(*other)


@pytest.mark.parametrize("count", [1, 5, 16, 96])
def test_indices_in_registers_that_lanes_read(opencl_device: Any, count: int) -> None:
    ids = [(7 * k + k * k) % 4 for k in range(count)]
    first, *rest = map(str, ids)
    program = lf.parse(f"f (xs : 4.i32) = gather [{', '.join([f'({first} : idx[4])', *rest])}] xs")["f"]
    xs = np.arange(10, 14, dtype=np.int32)
    for name in ("opencl", "cpu"):
        np.testing.assert_array_equal(program.on(name)(xs), xs[ids])


@pytest.mark.parametrize("shape", [(5, 7), (3, 700), (2, 128)], ids=str)
def test_a_register_that_some_lanes_read(opencl_device: Any, shape: tuple[int, int]) -> None:
    """The mean, one for all lanes, behind the guard of those that have an element."""
    text = """variance (rows : n.m.f32) = rows |> map (λ row .
        let mean = reduce (+) 0 row / m in
        reduce (+) 0 (map (λ x . (x - mean) * (x - mean)) row) / m)"""
    program = lf.parse(text)["variance"].on("opencl").for_any_size()
    rows = np.random.default_rng(4).random(shape, dtype=np.float32)
    np.testing.assert_allclose(program(rows), rows.var(axis=1), rtol=1e-5)
