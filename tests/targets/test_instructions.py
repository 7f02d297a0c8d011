"""Rows of the instruction tables on the targets: intrinsics where the machine has them, their meaning elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lithify.arith import const
from lithify.kernel import ir
from lithify.kernel.translate import translate
from lithify.lang import read_text
from lithify.machine import ROWS, InstructionRow, host, instruction, rows_for
from lithify.targets.c import CTarget, find_compiler
from lithify.targets.cpu import policy
from lithify.targets.cpu.target import CpuTarget
from lithify.targets.cpu.tiles import accumulations, zeros_before
from lithify.targets.opencl import OpenCLTarget
from tests.instruction_tiles import STEPS, tile, values

EACH_ROW = pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
ON_X86 = pytest.mark.skipif("x86" not in host().architecture, reason="these names are those of x86")


def program(row: InstructionRow, steps: int = STEPS) -> ir.Program:
    term = tile(row, steps)
    return translate(term.term, term.parameters)


def by_name(name: str) -> InstructionRow:
    row = instruction(name)
    if row not in rows_for(host()):
        pytest.skip(f"this machine has no {name}")
    return row


@EACH_ROW
def test_cpu(row: InstructionRow) -> None:
    arguments, expected = values(row)
    assert np.array_equal(CpuTarget(1).compile(program(row))(*arguments), expected)


@EACH_ROW
@pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")
def test_c(row: InstructionRow) -> None:
    arguments, expected = values(row)
    assert np.array_equal(CTarget(("-O1",), openmp=False).compile(program(row))(*arguments), expected)


@EACH_ROW
def test_opencl(row: InstructionRow, opencl_device: Any) -> None:
    arguments, expected = values(row)
    assert np.array_equal(OpenCLTarget(opencl_device.platform.name).compile(program(row))(*arguments), expected)


@ON_X86
@pytest.mark.parametrize(
    ("name", "instruction_"),
    [
        ("avx512.dot.16x2.bf16", "vdpbf16ps"),
        ("avx512.dot.16x4.u8i8", "vpdpbusd"),
        ("avx512.dot.16x4.i8u8", "vpdpbusd"),
        ("avx512.dot.16x2.i16", "vpdpwssd"),
        ("avx512.fma.16.f32", "vfmadd"),
    ],
)
def test_the_inner_loop_is_loads_and_instructions(name: str, instruction_: str) -> None:
    """One each, a load for the vector and at most one broadcast each; accumulators stay in registers."""
    text = CpuTarget(1).assembly(program(by_name(name), 64))
    loop = re.search(r"^\.LBB0_1:\n(.*?)^\tj\w+\t\.LBB0_1$", text, re.MULTILINE | re.DOTALL)
    assert loop is not None, text
    vector = [line.split()[0] for line in loop[1].splitlines() if "%zmm" in line]
    assert sum(word.startswith(instruction_) for word in vector) == 3
    assert len(vector) <= 3 + 1 + 3, loop[1]
    assert "(%rsp" not in loop[1], loop[1]


@ON_X86
def test_tiles_stay_in_their_registers() -> None:
    """In the loop: a load for each tile of a, one for that of b, then the instructions, each after some that do
    nothing; sums go to memory after it."""
    text = CpuTarget(1).assembly(program(by_name("amx.16x16x32.bf16"), 64))
    loop = re.search(r"^\.LBB0_1:\n(.*?)^\tj\w+\t\.LBB0_1$", text, re.MULTILINE | re.DOTALL)
    assert loop is not None, text
    tiles = [line.split()[0] for line in loop[1].splitlines() if "%tmm" in line]
    assert tiles == ["tileloadd"] * 4 + ["tdpbf16ps"] * 3
    spaced = re.findall(rf"(?:\tnop\n){{{policy.BETWEEN_TILES}}}(?:\t(?!nop\b).*\n)*?\t(tileloadd|tdpbf16ps)", loop[1])
    assert spaced == tiles
    assert text.count("ldtilecfg") == text.count("tilerelease") == 1


@ON_X86
@pytest.mark.parametrize("steps", [1, STEPS])
def test_sums_that_begin_with_zeros_begin_in_registers(steps: int) -> None:
    row = by_name("amx.16x16x64.i8")
    arguments, _ = values(row, steps)
    arguments[2][:] = 0
    kernels = _from_zeros(row, steps)
    text = CpuTarget(1).assembly(kernels)
    assert text.count("tilezero") == text.count("tilestored") == 3
    assert text.count("ldtilecfg") == text.count("tilerelease") == 1
    assert "memset" not in text
    expected = CpuTarget(1).compile(program(row, steps))(*arguments)
    assert np.array_equal(CpuTarget(1).compile(kernels)(*arguments[:2]), expected)


def _from_zeros(row: InstructionRow, steps: int = STEPS) -> ir.Program:
    zeros = read_text(f"""zeros = λ (a : {3 * row.shape[0]}.{steps * row.shape[2]}.i8) (b : {steps}.16.16.4.i8) .
      map[unroll] (map[vec] (λ x . x)) (reduce[seq, private] (λ acc ab .
        join (map[unroll] (λ (sums, as) . instr[{row.name}](as, join (map transpose ab.1), sums))
          (zip (split {row.shape[0]} acc) (split {row.shape[0]} ab.0)))
      ) (map[unroll] (map[vec] (λ x . x)) (replicate {3 * row.shape[0]} (replicate 16 (i32 0))))
        (zip (transpose (map (split {row.shape[2]}) a)) b))""")["zeros"].elaborate()
    return translate(zeros.term, zeros.parameters)


def test_which_zeros_are_left_out() -> None:
    """Those just before the loop that fill all tiles and nothing else; they were none without the loop's stores."""
    row = instruction("amx.16x16x64.i8")
    if row not in rows_for(host()):
        pytest.skip("this machine has no tile registers")
    block = _from_zeros(row).kernels[0].body
    ((place, accumulation),) = accumulations(block).items()
    tiles = accumulation.tiles
    assert zeros_before(block, place, tiles) == place == 48
    assert zeros_before(block[1:], place - 1, tiles) == 0, "a line is not set to zero"
    assert zeros_before(block, place, tiles[:2]) == 0, "lines of something else are set to zero as well"
    lanes = block[5]
    assert isinstance(lanes, ir.Lanes)
    assert isinstance(lanes.body[0], ir.Store)
    for value in (1, -0.0):
        store = replace(lanes.body[0], value=ir.Constant(value, lanes.body[0].buffer.scalar))
        changed = (*block[:5], replace(lanes, body=(store,)), *block[6:])
        assert zeros_before(changed, place, tiles) == 0, f"a line is set to {value}"
    guarded = replace(lanes, body=(replace(lanes.body[0], guard=(lanes.variable.expr - 3,)),))
    assert zeros_before((*block[:5], guarded, *block[6:]), place, tiles) == 0, "a part of a line is set"
    first = tiles[1].place
    flat = replace(first.buffer, name="flat", shape=(const(16 * 16),))
    elsewhere = replace(tiles[1], place=replace(first, buffer=flat, index=(const(0),)))
    assert zeros_before(block, place, (tiles[0], elsewhere)) == 0, "a tile is in an array of other dimensions"


@EACH_ROW
@pytest.mark.parametrize("steps", [1, 2])
def test_few_steps_on_the_cpu(row: InstructionRow, steps: int) -> None:
    """One step is no loop."""
    arguments, expected = values(row, steps, 5)
    term = tile(row, steps, 5)
    assert np.array_equal(CpuTarget(1).compile(translate(term.term, term.parameters))(*arguments), expected)


@ON_X86
def test_more_tiles_than_registers() -> None:
    row = by_name("amx.16x16x64.i8")
    arguments, expected = values(row, 3, 9)
    term = tile(row, 3, 9)
    assert np.array_equal(CpuTarget(1).compile(translate(term.term, term.parameters))(*arguments), expected)


@ON_X86
def test_subnormal_products_of_bf16_may_be_zero() -> None:
    """The one law that the instruction does not keep: it takes subnormal numbers for zeros."""
    row = by_name("avx512.dot.16x2.bf16")
    (a, b, c), _ = values(row)
    tiny = np.full_like(a, 1e-40)
    result = CpuTarget(1).compile(program(row))(tiny, np.full_like(b, 1.0), np.zeros_like(c))
    assert np.all((result == 0) | np.isclose(result, a.shape[1] * float(tiny[0, 0]), rtol=0.01))
