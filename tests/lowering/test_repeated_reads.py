"""What views show several times is computed once: padding that repeats elements, orders without an inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lithify as lf
from lithify.program.devices import device

COMPUTED = "map (map (λ x . x * 2 + 1))"
PADDED = {"clamp": "edge", "mirror": "symmetric", "wrap": "wrap"}


def run(text: str, name: str, *arguments: Any) -> Any:
    return lf.parse(f"main = λ a . {text}")["main"].on(name)(*arguments)


@pytest.mark.parametrize("mode", PADDED)
@pytest.mark.parametrize("shape", [(5, 7), (1, 3), (40, 67)], ids=str)
@pytest.mark.parametrize("name", ["cpu", "opencl"])
def test_padding_of_what_is_computed(mode: str, shape: tuple[int, int], name: str, request: Any) -> None:
    if name == "opencl":
        request.getfixturevalue("opencl_device")
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    computed, numpy_mode = a * 2 + 1, PADDED[mode]
    both = np.pad(computed, ((1, 0), (0, 0)), mode=numpy_mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(run(f"pad 1 0 {mode} ({COMPUTED} a)", name, a), both)
    both = np.pad(computed, ((0, 0), (1, 1)), mode=numpy_mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(run(f"map (pad 1 1 {mode}) ({COMPUTED} a)", name, a), both)


def test_an_order_without_an_inverse() -> None:
    a = np.arange(12, dtype=np.float32).reshape(4, 3)
    got = run(f"reorder (λ i . i / 2) ({COMPUTED} a)", "cpu", a)
    np.testing.assert_array_equal(got, (a * 2 + 1)[[0, 0, 1, 1]])


def test_what_is_copied_with_borders_is_computed_once() -> None:
    """The copy is taken apart for the borders; what it copies is not."""
    program = lf.parse("main = λ a . pad 1 1 clamp (map (λ x . sqrt x) a)")["main"].on(device("cpu"))
    kernels = program.kernels("40.f32")
    stored = [b for b in kernels.temporaries if b.memory.name == "heap"]
    assert len(stored) == 1
