"""Stores of part of a vector: no lane beyond it is touched, whatever is converted on the way."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.kernel.translate import translate
from lithify.lang import read_text
from lithify.lang.scalars import SCALARS
from lithify.targets.cpu.target import CpuTarget

NARROWING = [("i32", "i8"), ("i32", "u8"), ("i32", "i16"), ("i64", "i32"), ("i64", "i8"), ("f32", "bf16"),
             ("f32", "f16"), ("f32", "i8"), ("f64", "f32"), ("f32", "f8e5m2"),
             ("i32", "bool"), ("i32", "i32")]  # fmt: skip


@pytest.mark.parametrize("lanes", [8, 16, 64, 100, 256])
@pytest.mark.parametrize(("source", "target"), NARROWING)
def test_the_row_after_it_is_not_touched(source: str, target: str, lanes: int) -> None:
    """Rows of one, two, .. elements, each written by one vector, the last row first: a store too wide shows."""
    numbers = np.random.default_rng(lanes).integers(1, 50, (3, lanes)).astype(SCALARS[source].dtype)
    for kept in {1, 2, 3, lanes - 1}:
        text = f"""f = λ (xs : 3.{lanes}.{source}) . reorder reverse (map[unroll] (λ row .
          take {kept} (map[vec] (λ x . {target} x) row)) (reorder reverse xs))"""
        term = read_text(text)["f"].elaborate()
        got = CpuTarget(1).compile(translate(term.term, term.parameters))(numbers)
        wanted = numbers[:, :kept].astype(SCALARS[target].dtype)
        np.testing.assert_array_equal(got.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))
