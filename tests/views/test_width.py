"""Vector widths, index widths and locality: known cases, and those that other systems got wrong."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.arith import ceil_div, clamp, const, size, var
from lithify.views import ViewError, bottom_up, everywhere, index_bits, locality, read, vector_widths


def widths(view, dim, cap=16, **more):
    found = vector_widths(view, dim, cap, **more)
    return found.unmasked.width, found.masked.width


def test_contiguous_rows():
    view = bottom_up(r=4, c=64).passthrough("r", "c").get()
    assert widths(view, "c") == (16, 16)
    assert widths(view, "r") == (1, 1)
    assert vector_widths(view, "c", 16).unmasked.alignment == 16
    assert widths(view, "c", strides=[70, 1], aligned=True) == (2, 2)
    assert widths(view, "c", base_alignment=4, aligned=True) == (4, 4)
    assert widths(view, "c", at={"r": 0}, strides=[3, 1], aligned=True) == (16, 16)


def test_padding_to_the_left_shifts_alignment_and_needs_a_mask():
    view = bottom_up(r=4, c=60).passthrough("r").pad("c", 4, 0).get()
    assert widths(view, "c") == (4, 16)
    assert vector_widths(view, "c", 16).masked.alignment == 4
    assert widths(view, "c", aligned=True) == (4, 4)


def test_sizes_that_a_width_does_not_divide():
    view = bottom_up(c=60).passthrough("c").get()
    assert widths(view, "c") == (4, 16)


def test_merged_rows_stay_contiguous():
    view = bottom_up(a=3, b=5, c=16).merge("abc", ["a", "b", "c"]).get()
    assert widths(view, "abc") == (16, 16)
    swapped = bottom_up(a=4, b=8, c=16).merge("acb", ["a", "c", "b"]).get()
    assert widths(swapped, "acb") == (1, 1)
    held = bottom_up(a=4, b=1, c=4).merge("acb", ["a", "c", "b"]).get()  # a dim of one element is no obstacle
    assert widths(held, "acb", 8) == (8, 8)


def test_strided_and_reversed_reads_are_no_vectors():
    view = bottom_up(x=32).embed("x", {"i": 16}, [2]).get()
    assert widths(view, "i") == (1, 1)
    view = bottom_up(x=16).embed("x", {"i": 16}, [-1], offset=15).get()
    assert widths(view, "i") == (1, 1)


def test_a_broadcast_scalar_is_no_vector():
    view = bottom_up(s=1).broadcast("s", 64).get()
    assert widths(view, "s") == (1, 1)
    assert widths(bottom_up(c=64).passthrough("c").add_dim("r", 8).get(), "r", 8) == (1, 1)


def test_a_merge_across_a_broadcast():
    """2x1x2x3 seen as 2x3x2x3, dims 2 and 3 merged: the batch must not be lost."""
    view = bottom_up(a=2, b=1, c=2, d=3).passthrough("a", "c", "d").broadcast("b", 3).get(["a", "b", "c", "d"])
    view = view.above().passthrough("a", "b").merge("cd", ["c", "d"]).get(["a", "b", "cd"])
    values = np.arange(12).reshape(2, 1, 2, 3)
    expected = np.broadcast_to(values, (2, 3, 2, 3)).reshape(2, 3, 6)
    np.testing.assert_array_equal(read(view, values), expected)
    merged = view.above().merge("all", ["b", "cd"]).passthrough("a").get(["a", "all"])
    np.testing.assert_array_equal(read(merged, values), expected.reshape(2, 18))
    assert widths(merged, "all") == (2, 2)


def test_validity_is_tested_at_the_maps_own_level():
    """An unmerge below a pad folds a coordinate outside onto a valid address; it is padding all the same."""
    view = bottom_up(x=12).unmerge("x", {"row": 3, "col": 4}).get()
    view = view.above().passthrough("row").pad("col", 1, 1).get()
    found = everywhere(view)
    np.testing.assert_array_equal(found.real, [[False, True, True, True, True, False]] * 3)
    assert found.index[0][1, 5] == 8  # the address of row 2, column 0


def test_dims_held_constant_in_an_unmerge():
    view = bottom_up(x=24).unmerge("x", {"a": 3, "b": 8}).get()
    assert widths(view, "b", at={"a": 1}) == (8, 16)
    assert widths(view, "a", at={"b": 0}, cap=2) == (1, 1)


def test_unknown_dim_and_nonsense():
    view = bottom_up(x=8).passthrough("x").get()
    with pytest.raises(ViewError, match="no upper dim 'y'"):
        vector_widths(view, "y", 4)
    with pytest.raises(ViewError, match="at least 1"):
        vector_widths(view, "x", 0)


@pytest.mark.parametrize(
    ("count", "bits"), [(2**31 - 1, 32), (2**31, 32), (2**31 + 1, 64), (3_270_680_000, 64), (2**29 * 63, 64)]
)
def test_index_width_is_computed(count, bits):
    """Elements 0 .. count - 1: 2^31 of them are the last that 32 bits can number."""
    assert index_bits([var("i", count)]) == bits
    assert index_bits([const(count - 1)]) == bits


def test_index_width_of_addresses():
    row, col = var("row", 2**16), var("col", 2**15)
    assert index_bits([row * 2**15 + col]) == 32
    assert index_bits([row * 2**16 + col]) == 64
    assert index_bits([var("i", 64) * 67_108_864]) == 64
    assert index_bits([var("i", size("n"))]) == 64
    big = var("big", 2**33)
    assert index_bits([big // 2**20]) == 64  # the numerator counts
    assert index_bits([clamp(big, 0, 5)]) == 64
    assert index_bits([big - big]) == 32
    assert index_bits([var("i", 2**16) * 2**15 - var("j", 2**16) * 2**15 - 2**20]) == 64


def test_locality():
    lane = var("lane", 32)

    def figures(view, coordinates, element=4, **more):
        return locality(view.access(coordinates), lane, 32, view.strides(), element, **more)

    tile = bottom_up(r=32, c=32).passthrough("r", "c").get()
    along, across = figures(tile, (0, lane)), figures(tile, (lane, 0))
    assert (along.lines, along.passes, along.conflict_degree) == (1, 1, 1.0)
    assert (across.lines, across.passes, across.conflict_degree) == (32, 32, 32.0)
    padded = bottom_up(r=32, c=33).passthrough("r").slice("c", 0, 32).get()
    assert figures(padded, (lane, 0)).conflict_degree == 1.0
    swizzled = bottom_up(r=32, c=32).xor("r", "c").get()
    assert figures(swizzled, (lane, 0)).conflict_degree == 1.0
    assert figures(swizzled, (5, lane)).lines == 1
    assert figures(tile, (3, 0)).passes == 1  # all lanes read one word
    wide = figures(tile, (lane // 8, 4 * (lane % 8)), vector=4)
    assert (wide.lines, wide.passes, wide.ideal_passes) == (4, 4, 4)
    halves = figures(tile, (0, lane), element=2)
    assert (halves.lines, halves.passes) == (1, 1)
    edge = bottom_up(c=20).pad("c", 0, 12).get()
    assert figures(edge, (lane,)).lanes == 20


def test_locality_of_other_variables():
    lane, step = var("lane", 32), var("step", 4)
    view = bottom_up(r=4, c=32).passthrough("r", "c").get()
    first = locality(view.access((step, lane)), lane, 32, [100, 1], 4)
    third = locality(view.access((step, lane)), lane, 32, [100, 1], 4, at={step: 3})
    assert (first.lines, third.lines) == (1, 2)
    with pytest.raises(ViewError, match="wider than all"):
        locality(view.access((step, lane)), lane, 32, [100, 1], 8, vector=32)


def test_tiles_of_an_odd_matrix():
    """1000 columns in tiles of 64: only the last tile's vectors need the mask, so none are unmasked beyond 8."""
    columns = 1000
    tiles = ceil_div(columns, 64)
    view = bottom_up(c=columns).pad("c", 0, 64 * tiles - columns).get()
    view = view.above().unmerge("c", {"tile": tiles, "item": 64}).get()
    assert widths(view, "item") == (8, 16)
    assert widths(view, "item", at={"tile": 3}) == (16, 16)
