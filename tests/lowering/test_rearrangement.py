"""Copies that change the order of dimensions, in tiles: any sizes; dimensions that follow one another are one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lithify as lf

SIZES = [(1024, 1024), (1000, 1024), (1024, 1000), (1040, 515), (515, 1040), (777, 530), (16, 1024), (768, 99),
         (1008, 96), (96, 1008), (720, 720), (32, 1024)]  # fmt: skip


@pytest.mark.parametrize("scalar", [np.float32, np.float64, np.float16, np.complex64, np.uint8])
@pytest.mark.parametrize("size", SIZES)
def test_transposes_of_any_size(size: tuple[int, int], scalar: type[np.generic]) -> None:
    x = np.random.default_rng(size[0]).integers(0, 100, size).astype(scalar)
    out = np.full(size[::-1], 101, scalar)
    lf.library("layout")["transpose2D"](x, out=out)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("shape", [(2, 64, 7, 7), (1, 48, 30, 31), (17, 33, 5, 20), (3, 16, 4, 4), (40, 3, 32, 32)])
@pytest.mark.parametrize(
    ("name", "order"), [("channelsLast", (0, 2, 3, 1)), ("reverseDims", (3, 2, 1, 0)), ("swapMiddle", (0, 2, 1, 3))]
)
def test_orders_of_four_dimensions(name: str, order: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(shape[1]).random(shape, dtype=np.float32)
    out = np.full(tuple(shape[k] for k in order), np.nan, np.float32)
    lf.library("layout")[name](x, out=out)
    np.testing.assert_array_equal(out, x.transpose(order))


def test_few_images_behind_opencl(opencl_devices: tuple[Any, ...]) -> None:
    """Groups stand outside of all loops, however short the outermost is."""
    x = np.random.default_rng(0).random((2, 64, 7, 7), dtype=np.float32)
    for number in range(len(opencl_devices)):
        found = lf.library("layout")["channelsLast"].on(f"opencl:{number}")(x)
        np.testing.assert_array_equal(found, x.transpose(0, 2, 3, 1))


def test_dimensions_that_follow_one_another_are_one() -> None:
    """Images of 7 x 7 have no row that fills a tile; together their rows have three."""
    names = lf.library("layout")["channelsLast"].derivation("16.64.7.7.f32").names()
    assert "copy-merged(2)" in names
    assert any(name.startswith("copy-tiles") for name in names)


@pytest.mark.parametrize(("rows", "beside"), [(1024, 2), (1008, 3), (976, 1), (1000, 1), (1016, 1)])
def test_tiles_side_by_side_write_whole_lines(rows: int, beside: int) -> None:
    """As many as fit; one where rows of the result begin within a line of memory."""
    names = lf.library("layout")["transpose2D"].derivation(f"{rows}.1024.f32").names()
    (tiles,) = [name for name in names if name.startswith("copy-tiles")]
    assert f"16, {beside}, private" in tiles
