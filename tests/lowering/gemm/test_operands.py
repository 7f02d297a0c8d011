"""Operands in other types than their sum's: every step checked, kernels evaluated, whatever the machine at hand has."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lithify import operators
from lithify.kernel.evaluator import run
from lithify.kernel.show import show
from lithify.kernel.translate import translate
from lithify.lang import read_text
from lithify.lang.module import Elaborated
from lithify.lang.scalars import SCALARS
from lithify.lowering import lower
from lithify.lowering.families import recognise
from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.gemm.operands import dot_products, unpacked
from lithify.lowering.tuning import Parameters
from lithify.machine import DeviceModel, cpu_model, read_cpu

AVX512 = frozenset({"avx512f", "avx512vl"})


def model(*flags: str) -> DeviceModel:
    return cpu_model(replace(read_cpu(), machine="x86_64", flags=AVX512 | frozenset(flags), cores=2))


DOTS = model("avx512_bf16", "avx512_vnni")
TILES = model("avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
PLAIN = model()
PROGRAMS = {"bf16": "matmulF32", "f16": "matmulF32", "i8": "matmulI32", "complex64": "matmul"}


def product(scalar: str, m: int, n: int, k: int, left: str = "a", right: str = "b") -> Elaborated:
    """A product of inputs that lie as they are read, or transposed."""
    a = f"{k}.{m}" if "transpose" in left else f"{m}.{k}"
    b = f"{n}.{k}" if "transpose" in right else f"{k}.{n}"
    text = f"main = λ (a : {a}.{scalar}) (b : {b}.{scalar}) . {PROGRAMS[scalar]} ({left}) ({right})"
    return read_text(f"{operators.path('blas').read_text()}\n{text}")["main"].elaborate()


def inputs(scalar: str, shape: tuple[int, int], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if scalar == "i8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    x = rng.integers(-8, 9, shape) + (1j * rng.integers(-8, 9, shape) if scalar == "complex64" else 0)
    return x.astype(SCALARS[scalar].dtype)


def check(
    scalar: str, device: DeviceModel, sizes: tuple[int, int, int], parameters: str | None = None, **how: str
) -> str:
    """Lower with every step compared, evaluate the kernel; its text."""
    e = product(scalar, *sizes, **how)
    found = recognise(e.term)
    assert found is not None
    chosen = None
    if parameters is not None:
        space = found[0].space(found[1], device)
        assert space is not None
        chosen = space.default.updated(**dict(Parameters.parse(parameters)))
    program = translate(lower(e.term, device, check=True, parameters=chosen).term, e.parameters, device=device)
    m, n, k = sizes
    a, b = inputs(scalar, (m, k), 1), inputs(scalar, (k, n), 2)
    wide = np.int64 if scalar == "i8" else np.complex128
    given = {
        "a": a.T if "transpose" in how.get("left", "") else a,
        "b": b.T if "transpose" in how.get("right", "") else b,
    }
    (result,) = run(program, given)
    np.testing.assert_array_equal(result.astype(wide), a.astype(wide) @ b.astype(wide))
    return show(program)


@pytest.mark.parametrize("device", [DOTS, PLAIN], ids=["dot products", "none"])
@pytest.mark.parametrize("scalar", PROGRAMS)
@pytest.mark.parametrize("sizes", [(5, 18, 8), (3, 17, 7)], ids=str)
def test_every_step(scalar: str, device: DeviceModel, sizes: tuple[int, int, int]) -> None:
    text = check(scalar, device, sizes)
    assert ("avx512.dot" in text) is (device is DOTS and scalar in ("bf16", "i8"))


@pytest.mark.parametrize("scalar", ["bf16", "i8"])
@pytest.mark.parametrize("sizes", [(5, 18, 8), (17, 17, 35), (32, 16, 64)], ids=str)
def test_every_step_in_tiles(scalar: str, sizes: tuple[int, int, int]) -> None:
    assert "amx.16x16x" in check(scalar, TILES, sizes)


@pytest.mark.parametrize("scalar", ["bf16", "i8"])
@pytest.mark.parametrize(("left", "right"), [("transpose a", "b"), ("a", "transpose b")])
def test_transposed_in_tiles(scalar: str, left: str, right: str) -> None:
    assert "amx.16x16x" in check(scalar, TILES, (17, 16, 32), left=left, right=right)


@pytest.mark.parametrize("scalar", PROGRAMS)
@pytest.mark.parametrize(
    ("left", "right"), [("transpose a", "b"), ("a", "transpose b"), ("transpose a", "transpose b")]
)
def test_transposed(scalar: str, left: str, right: str) -> None:
    check(scalar, DOTS, (5, 18, 6), left=left, right=right)


@pytest.mark.parametrize(
    ("scalar", "parameters"),
    [
        ("bf16", "packA=heap,packB=heap"),
        ("bf16", "outer=m,packB=heap"),
        ("i8", "instruction=avx512.dot.16x4.u8i8,packA=thread"),
        ("i8", "instruction=avx512.dot.16x4.u8i8,packA=heap,packB=heap"),
        ("i8", "instruction=none,packA=thread,packB=thread"),
        ("bf16", "packA=thread,packB=thread,kPerBlock=2"),
        ("i8", "packA=thread,packB=thread,kPerBlock=4"),
        ("f16", "packA=thread,packB=thread,kPerBlock=5"),
        ("complex64", "packA=thread,packB=thread,kPerBlock=5"),
        ("complex64", "packA=heap,packB=heap"),
    ],
)
def test_other_choices(scalar: str, parameters: str) -> None:
    check(scalar, DOTS, (5, 18, 9) if "kPerBlock" in parameters else (5, 18, 8), parameters)


@pytest.mark.parametrize(
    ("scalar", "parameters"),
    [
        ("bf16", "mPerThread=16,nPerThread=64,mPerBlock=48,nPerBlock=64,outer=m"),
        ("bf16", "mPerThread=64,nPerThread=16,mPerBlock=64,nPerBlock=32,packA=thread,outer=n"),
        ("i8", "mPerThread=16,nPerThread=16,mPerBlock=16,nPerBlock=16,packA=heap,packB=heap"),
    ],
)
def test_other_tiles(scalar: str, parameters: str) -> None:
    assert "amx.16x16x" in check(scalar, TILES, (48, 17, 32), parameters)


@pytest.mark.parametrize("scalar", ["bf16", "i8"])
@pytest.mark.parametrize(("right", "in_turn"), [("b", True), ("transpose b", False)])
def test_panels_are_packed_in_turn_where_their_rows_follow_one_another(scalar: str, right: str, in_turn: bool) -> None:
    m, n, k = 16, 64, 128
    e = product(scalar, m, n, k, right=right)
    found = recognise(e.term)
    assert found is not None
    space = found[0].space(found[1], TILES)
    assert space is not None
    chosen = space.default.updated(mPerThread=16, mPerBlock=16, nPerThread=16, nPerBlock=64, packB="thread", outer="n")
    program = translate(lower(e.term, TILES, parameters=chosen).term, e.parameters, device=TILES)
    a, b = inputs(scalar, (m, k), 1), inputs(scalar, (k, n), 2)
    (result,) = run(program, {"a": a, "b": b if in_turn else b.T})
    np.testing.assert_array_equal(result, a.astype(np.float64) @ b.astype(np.float64))
    text = show(program)
    (stored,) = set(re.findall(r"t\[(\w[\w.]*), (\w[\w.]*), [^]]*\] := b\[", text))
    loops = [text.index(f"{name} < ") for name in stored]
    assert (loops[1] < loops[0]) is in_turn  # the steps of the sum around the panels


@pytest.mark.parametrize("scalar", ["bf16", "i8"])
@pytest.mark.parametrize("size", [1024, 2048, 4096])
def test_rows_that_pass_by_take_little_of_the_second_cache(scalar: str, size: int) -> None:
    found = recognise(product(scalar, size, size, size).term)
    assert found is not None
    space = found[0].space(found[1], TILES)
    assert space is not None
    rows, line = space.default.number("mPerBlock"), size * SCALARS[scalar].bytes
    room = Machine.of(found[1], TILES).room
    assert rows == space.default.number("mPerThread") or 16 * rows * line <= room


@pytest.mark.parametrize(
    ("sizes", "parameters", "in_result"),
    [
        ((32, 32, 64), "", True),
        ((32, 32, 32), "outer=m,mPerThread=16,nPerThread=32,mPerBlock=32,nPerBlock=32", True),
        ((32, 16, 32), "mPerThread=16,nPerThread=16,mPerBlock=16,nPerBlock=16,packA=heap,packB=heap", True),
        ((17, 16, 32), "", False),
        ((32, 17, 32), "", False),
    ],
)
def test_sums_of_whole_tiles_are_made_where_the_result_lies(
    sizes: tuple[int, int, int], parameters: str, in_result: bool
) -> None:
    for scalar in ("bf16", "i8"):
        text = check(scalar, TILES, sizes, parameters or None)
        assert (re.search(r"out\[.*\] := amx", text) is not None) is in_result


@pytest.mark.parametrize("result", ["transpose ({})", "map (map (λ x . x + 1)) ({})"])
def test_sums_of_results_that_lie_otherwise(result: str) -> None:
    """Tiles that lie across the result, or are worked on, have memory of their own."""
    text = f"main = λ (a : 32.32.bf16) (b : 32.32.bf16) . {result.format('matmulF32 a b')}"
    e = read_text(f"{operators.path('blas').read_text()}\n{text}")["main"].elaborate()
    program = translate(lower(e.term, TILES, check=True).term, e.parameters, device=TILES)
    a, b = inputs("bf16", (32, 32), 1), inputs("bf16", (32, 32), 2)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    (got,) = run(program, {"a": a, "b": b})
    np.testing.assert_array_equal(got, exact.T if "transpose" in result else exact + 1)
    assert "amx" in show(program)


@pytest.mark.parametrize(("scalar", "k"), [("bf16", 64), ("bf16", 70), ("i8", 100)])
def test_blocks_of_sums_in_tiles(scalar: str, k: int) -> None:
    parameters = f"packA=thread,packB=thread,kPerBlock={32 if scalar == 'bf16' else 64}"
    e = product(scalar, 17, 16, k)
    found = recognise(e.term)
    assert found is not None
    space = found[0].space(found[1], TILES)
    assert space is not None
    chosen = space.default.updated(**dict(Parameters.parse(parameters)))
    program = translate(lower(e.term, TILES, parameters=chosen).term, e.parameters, device=TILES)
    a, b = inputs(scalar, (17, k), 1), inputs(scalar, (k, 16), 2)
    (result,) = run(program, {"a": a, "b": b})
    np.testing.assert_array_equal(result, a.astype(np.float64) @ b.astype(np.float64))
    assert "amx" in show(program)


@pytest.mark.parametrize(
    ("sizes", "packed", "pieces"),
    [
        ((4096, 4096, 4096), "heap", 4),
        ((4096, 64, 4096), "none", 2),  # read for few columns
        ((256, 256, 256), "none", 2),  # in the caches all the time
        ((4095, 4096, 4096), "heap", 4),
        ((33, 256, 32), "heap", 2),  # rows left over
    ],
    ids=str,
)
def test_when_the_left_operand_is_packed_for_tiles(sizes: tuple[int, int, int], packed: str, pieces: int) -> None:
    found = recognise(product("bf16", *sizes).term)
    assert found is not None
    space = found[0].space(found[1], TILES)
    assert space is not None
    assert space.against(space.default) is None
    assert space.default["packA"] == packed
    assert -(-sizes[1] // space.default.number("nPerBlock")) >= pieces


@pytest.mark.parametrize(
    ("m", "n", "tile"),
    [(1000, 1001, (32, 32)), (2048, 2048, (32, 32)), (16, 4096, (16, 64)), (4096, 9, (64, 16)), (16, 16, (16, 16))],
)
def test_results_that_tile_registers_hold(m: int, n: int, tile: tuple[int, int]) -> None:
    """What is loaded serves as many instructions as can be, even where a little is computed for nothing."""
    found = recognise(product("bf16", m, n, 64).term)
    assert found is not None
    space = found[0].space(found[1], TILES)
    assert space is not None
    assert (space.default.number("mPerThread"), space.default.number("nPerThread")) == tile


def test_which_dot_products_there_are() -> None:
    def names(scalar: str, device: DeviceModel) -> list[str]:
        found = recognise(product(scalar, 5, 18, 8).term)
        assert found is not None
        return [row.name for row in dot_products(found[1], device)]

    assert names("bf16", DOTS) == ["avx512.dot.16x2.bf16"]
    assert names("bf16", TILES) == ["amx.16x16x32.bf16", "avx512.dot.16x2.bf16"]
    assert names("i8", TILES) == ["amx.16x16x64.i8", "avx512.dot.16x4.i8u8", "avx512.dot.16x4.u8i8"]
    assert names("i8", DOTS) == ["avx512.dot.16x4.i8u8", "avx512.dot.16x4.u8i8"]
    assert names("f16", DOTS) == names("bf16", PLAIN) == names("i8", PLAIN) == names("complex64", DOTS) == []


@pytest.mark.parametrize(
    ("scalar", "parameters", "reason"),
    [
        ("bf16", "packB=none", r"packB=none: avx512\.dot\.16x2\.bf16 takes it in groups"),
        ("f16", "packA=none", "packA=none: its elements would be computed at every use"),
        ("bf16", "instruction=none,packB=none", "packB=none: its elements"),
        ("i8", "instruction=avx512.dot.16x4.u8i8,packA=none", "packA=none"),
    ],
)
def test_what_must_be_packed(scalar: str, parameters: str, reason: str) -> None:
    found = recognise(product(scalar, 5, 18, 8).term)
    assert found is not None
    space = found[0].space(found[1], DOTS)
    assert space is not None
    assert unpacked(space.default, found[1]) is None
    against = space.against(
        space.default.updated(**({"packA": "thread", "packB": "thread"} | dict(Parameters.parse(parameters))))
    )
    assert against is not None
    assert re.search(reason, against), against


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("packA=none", "packA=none: amx.16x16x32.bf16 takes it in groups"),
        ("packA=thread,kPerBlock=64", "kPerBlock=64: equal blocks are wanted for amx.16x16x32.bf16, of 96 terms"),
        ("packA=thread,kPerBlock=40", "kPerBlock=40 is not a multiple of the 32 terms of amx.16x16x32.bf16"),
        ("mPerThread=8,mPerBlock=8", "mPerThread=8 is not a multiple of amx.16x16x32.bf16's 16"),
        ("mPerThread=64,mPerBlock=64,nPerThread=32,nPerBlock=32", "registers: 8 tiles of 4"),
        ("mPerThread=64,mPerBlock=64,nPerThread=16,nPerBlock=16,instruction=none", "registers: 64 x 1"),
    ],
)
def test_what_is_against_tiles(parameters: str, reason: str) -> None:
    found = recognise(product("bf16", 40, 33, 70).term)
    assert found is not None
    space = found[0].space(found[1], TILES)
    assert space is not None
    assert space.against(space.default) is None
    assert reason in str(space.against(space.default.updated(**dict(Parameters.parse(parameters)))))


def test_rows_left_over_are_packed() -> None:
    found = recognise(product("bf16", 40, 33, 64).term)
    assert found is not None
    space = found[0].space(found[1], TILES)
    assert space is not None
    against = space.against(space.default.updated(packA="none"))
    assert "whole tiles, and there are rows left over" in str(against)


def test_more_than_a_conversion_is_no_dot_product() -> None:
    text = "main = λ (a : 5.8.bf16) (b : 8.18.bf16) . matmul (map (map (λ x . f32 x * 2)) a) (map (map f32) b)"
    e = read_text(f"{operators.path('blas').read_text()}\n{text}")["main"].elaborate()
    found = recognise(e.term)
    assert found is not None
    assert " -prologue " in found[1].line
    assert dot_products(found[1], DOTS) == ()
