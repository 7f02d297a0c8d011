"""Stores of neighbours from lane to lane, which the cpu target makes one contiguous store."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.kernel.translate import translate
from lithify.lang import read_text
from lithify.lang.scalars import SCALARS
from lithify.targets.cpu.target import CpuTarget

STEPS = (2, 3, 4, 5, 8, 16)
LLVM_STORE = re.compile(r"store <(\d+) x (\w+)>")
LLVM_SHUFFLE = re.compile(r"shufflevector .*, <\d+ x i32> <(.*)>")


def program(text: str) -> ir.Program:
    term = read_text(text)["f"].elaborate()
    return translate(term.term, term.parameters)


def transposed(scalar: str, step: int, lanes: int = 16) -> ir.Program:
    """Columns become rows: lane v writes element p of row v."""
    return program(f"f = λ (xs : {step}.{lanes}.{scalar}) . map[vec] (map[unroll] (λ x . x)) (transpose xs)")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("scalar", ["f32", "bf16", "f16", "i8", "u8", "i64", "bool", "f64", "complex64"])
def test_a_transpose_in_lanes(scalar: str, step: int) -> None:
    numbers = np.random.default_rng(step).integers(-9, 9, (step, 16))
    xs = numbers.astype(SCALARS[scalar].dtype)
    assert np.array_equal(CpuTarget(1).compile(transposed(scalar, step))(xs), xs.T)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("scalar", ["f32", "f64", "i8", "i16", "i32", "bool"])
def test_squares_are_transposed_without_orders_in_registers(scalar: str, lanes: int) -> None:
    """Each step reorders elements within 16 bytes, or 16 bytes at a time: an instruction has its order in itself."""
    f, part = transposed(scalar, lanes, lanes), 16 // SCALARS[scalar].bytes
    numbers = np.random.default_rng(lanes).integers(0, 2 if scalar == "bool" else 99, (lanes, lanes))
    xs = numbers.astype(SCALARS[scalar].dtype)
    assert np.array_equal(CpuTarget(1).compile(f)(xs), xs.T)
    if lanes % part:
        return
    orders = [[int(i) for i in re.findall(r"i32 (\d+)", t)] for t in LLVM_SHUFFLE.findall(CpuTarget(1).source(f))]
    assert len(orders) == lanes * (lanes.bit_length() - 1)
    for order in orders:
        within = all(i % lanes // part == at // part for at, i in enumerate(order))
        whole = all(i % part == at % part for at, i in enumerate(order))
        assert within or whole


@pytest.mark.parametrize("step", [2, 4, 8])
def test_it_is_stores_of_whole_vectors(step: int) -> None:
    """Vectors as wide as the lanes: of one very wide vector LLVM made three times as many instructions."""
    text = CpuTarget(1).source(transposed("f32", step))
    assert LLVM_STORE.findall(text) == [("16", "float")] * step
    assert text.count("shufflevector <16 x float>") == step * (step.bit_length() - 1)


def test_other_steps_are_several_stores() -> None:
    text = CpuTarget(1).source(transposed("f32", 3))
    assert "masked.scatter" in text
    assert not LLVM_STORE.findall(text)


@pytest.mark.parametrize("scalar", ["f32", "bf16", "u8"])
def test_conversion_and_arithmetic_on_the_way(scalar: str) -> None:
    f = program(f"f = λ (xs : 4.16.i32) . map[vec] (map[unroll] (λ x . {scalar} (x * 3 + 1))) (transpose xs)")
    xs = np.random.default_rng(0).integers(0, 9, (4, 16)).astype(np.int32)
    assert np.array_equal(CpuTarget(1).compile(f)(xs), (xs.T * 3 + 1).astype(SCALARS[scalar].dtype))


def test_neighbours_that_are_read_meanwhile() -> None:
    """Accumulators side by side: a store of one reads only itself, but the buffer is read."""
    f = program(
        """f = λ (xs : 5.16.2.i32) .
          map[vec] (map[unroll] (λ x . x)) (reduce[seq, private] (λ acc x .
            map[vec] (λ (p, q) . map[unroll] (λ (s, y) . s * 2 + y) (zip p q)) (zip acc x)
          ) (map[vec] (map[unroll] (λ x . x)) (replicate 16 (replicate 2 (i32 1)))) xs)"""
    )
    xs = np.random.default_rng(0).integers(-9, 9, (5, 16, 2)).astype(np.int32)
    expected = np.ones((16, 2), np.int32)
    for x in xs:
        expected = expected * 2 + x
    assert np.array_equal(CpuTarget(1).compile(f)(xs), expected)


def test_part_of_the_lanes() -> None:
    f = program("f = λ (xs : 2.13.f32) . take 13 (map[vec] (map[unroll] (λ x . x)) (pad 0 3 clamp (transpose xs)))")
    xs = np.arange(26, dtype=np.float32).reshape(2, 13)
    assert np.array_equal(CpuTarget(1).compile(f)(xs), xs.T)
