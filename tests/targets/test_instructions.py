"""Rows of the instruction tables on the targets: intrinsics where the machine has them, their meaning elsewhere."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.kernel.translate import translate
from lithify.machine import ROWS, InstructionRow, host, instruction, rows_for
from lithify.targets.c import CTarget, find_compiler
from lithify.targets.cpu.target import CpuTarget
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
    """In the loop: a load for each tile of a, one for that of b, and the instructions; sums go to memory after it."""
    text = CpuTarget(1).assembly(program(by_name("amx.16x16x32.bf16"), 64))
    loop = re.search(r"^\.LBB0_1:\n(.*?)^\tj\w+\t\.LBB0_1$", text, re.MULTILINE | re.DOTALL)
    assert loop is not None, text
    tiles = [line.split()[0] for line in loop[1].splitlines() if "%tmm" in line]
    assert sorted(tiles) == ["tdpbf16ps"] * 3 + ["tileloadd"] * 4
    assert text.count("ldtilecfg") == text.count("tilerelease") == 1


@EACH_ROW
@pytest.mark.parametrize("steps", [1, 2])
def test_few_steps_on_the_cpu(row: InstructionRow, steps: int) -> None:
    """One step is no loop: what is summed goes to memory after each instruction."""
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
