"""The tables of instruction rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.machine import GENERIC_GPU, ROWS, InstructionRow, host, instruction, rows_for


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_a_row_is_consistent(row: InstructionRow) -> None:
    m, n, k = row.shape
    assert [held * row.lanes for held in row.elements] == [m * k, k * n, m * n]
    assert row.operations == 2 * m * n * k
    assert row.operation_on("cpu")
    assert row.operation_on("telegraph") is None
    assert ROWS[row.name] is instruction(row.name)


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("x86_64 avx512", ["avx512.fma.16.f32", "avx512.fma.8.f64", "fma.f32", "fma.f64"]),
        ("x86_64 avx2", ["avx2.fma.8.f32", "avx2.fma.4.f64", "fma.f32", "fma.f64"]),
        ("aarch64 neon", ["neon.fma.4.f32", "neon.fma.2.f64", "fma.f32", "fma.f64"]),
        ("riscv64 scalar", ["fma.f32", "fma.f64"]),
    ],
)
def test_a_machine_gets_its_own_rows_the_largest_first(architecture: str, names: list[str]) -> None:
    assert [row.name for row in rows_for(replace(host(), architecture=architecture))] == names


def test_a_gpu_has_the_scalar_rows() -> None:
    assert [row.shape for row in rows_for(GENERIC_GPU)] == [(1, 1, 1)] * 2


def test_an_unknown_row_is_named_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"no instruction named mma; there are fma\.f32"):
        instruction("mma")
