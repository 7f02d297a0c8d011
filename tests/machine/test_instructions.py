"""The tables of instruction rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.lang import ParseError, TypeMismatch, array, elaborate_term, parse_expression
from lithify.lang.build import instr, param
from lithify.lang.scalars import Kind, f32
from lithify.lang.term import apply
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
        ("aarch64 neon bf16", ["neon.dot.4x2.bf16", "neon.fma.4.f32", "neon.fma.2.f64", "fma.f32", "fma.f64"]),
        (
            "x86_64 avx2 avxvnni",
            [
                "avx2.dot.8x4.u8i8",
                "avx2.dot.8x4.i8u8",
                "avx2.dot.8x2.i16",
                "avx2.fma.8.f32",
                "avx2.fma.4.f64",
                "fma.f32",
                "fma.f64",
            ],
        ),
    ],
)
def test_a_machine_gets_its_own_rows_the_largest_first(architecture: str, names: list[str]) -> None:
    assert [row.name for row in rows_for(replace(host(), architecture=architecture))] == names


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_the_meaning_is_the_matrix_product_added(row: InstructionRow) -> None:
    m, n, k = row.shape
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(0 if s.kind is Kind.UNSIGNED else -9, 9, size) for s, size in
               zip(row.scalars, ((m, k), (k, n), (m, n)), strict=True))  # fmt: skip
    names = [param(name, type_) for name, type_ in zip("abc", row.types, strict=True)]
    for term in (apply(row.definition, *names), instr(row, *names)):
        given = dict(zip("abc", (x.astype(s.dtype) for x, s in zip((a, b, c), row.scalars, strict=True)), strict=True))
        assert np.array_equal(evaluate(term, given), a @ b + c)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_the_layouts_hold_every_element_once(row: InstructionRow) -> None:
    for layout, matrix, held in zip(row.layouts, row.types, row.elements, strict=True):
        numbers = np.arange(row.lanes * held, dtype=np.int32).reshape(row.lanes, held)
        shown = evaluate(apply(layout, param("held", layout.attrs[0])), {"held": numbers})
        assert sorted(shown.reshape(-1)) == list(range(row.lanes * held))
        assert str(array(*shown.shape, f32)) == str(matrix).rpartition(".")[0] + ".f32"


def test_operands_of_other_types_are_refused() -> None:
    row = instruction("avx512.dot.16x2.bf16")
    a, b, c = (param(name, type_) for name, type_ in zip("abc", row.types, strict=True))
    with pytest.raises(TypeMismatch, match=r"takes \(1\.2\.bf16, 2\.16\.bf16, 1\.16\.f32\), not \(2\.16\.bf16, 1\.2"):
        instr(row, b, a, c)


def test_rows_are_named_in_text() -> None:
    term = elaborate_term(parse_expression("instr[fma.f32](a, a, a)"), {"a": param("a", array(1, 1, f32))})
    assert term["row"] is instruction("fma.f32")
    with pytest.raises(ParseError, match=r"no instruction named mma; there are fma\.f32, "):
        elaborate_term(parse_expression("instr[mma](1, 2)"))


def test_a_gpu_has_the_scalar_rows() -> None:
    assert [row.shape for row in rows_for(GENERIC_GPU)] == [(1, 1, 1)] * 2


def test_an_unknown_row_is_named_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"no instruction named mma; there are fma\.f32"):
        instruction("mma")
