"""Convolutions as matrix products: every stack against direct loops, in all three directions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lithify.arith import const, size
from lithify.views import ViewError, read, vector_widths, write
from lithify.views.convolution import Axis, Convolution, Gemm

# size, filter, stride, dilation, left, right
AXES = [
    Axis(*values)
    for values in product((1, 4, 5), (1, 2, 3), (1, 2, 3), (1, 2), (0, 1, 3, 4), (0, 2))
    if values[0] + values[4] + values[5] > values[3] * (values[1] - 1)
]
CASES_2D = [
    Convolution(2, 3, 2, (Axis(4, 3, 1, 1, 1, 1), Axis(5, 3, 1, 1, 1, 1))),
    Convolution(2, 3, 2, (Axis(4, 2, 2, 1, 2, 1), Axis(4, 2, 2, 1, 2, 0))),  # asymmetric padding
    Convolution(1, 2, 2, (Axis(6, 2, 2, 1, 0, 0), Axis(7, 1, 3, 1, 0, 0))),  # ids of backward data are 0 and 3
    Convolution(2, 1, 1, (Axis(5, 3, 2, 2, 1, 0), Axis(6, 2, 3, 2, 0, 3)), g=3),
    Convolution(2, 4, 4, (Axis(8, 1, 1), Axis(8, 4, 3))),
    Convolution(1, 2, 3, (Axis(4, 1, 2), Axis(4, 1, 2))),  # 1x1 with stride: most gradients are zero
    Convolution(2, 3, 4, (Axis(4, 3, 1, 1, 1, 1), Axis(5, 2, 2, 1, 1, 0)), 2, ("g", "k", "y", "x", "c"),
                ("n", "hi", "wi", "g", "c"), ("n", "ho", "wo", "g", "k")),  # channels last
]  # fmt: skip


def tensors(p: Convolution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small integers for filter, input and output gradient, in the layouts of the problem."""
    rng = np.random.default_rng(0)
    layouts = (p.filter_layout, p.input_layout, p.output_layout)
    return tuple(rng.integers(-4, 5, [n for _, n in p._tensor(layout)]).astype(np.float64) for layout in layouts)


def canonical(p: Convolution, filters, inputs, outputs):
    """The tensors as g k c y.., n g c hi.., n g k ho.. whatever their layouts."""
    wanted = (("g", "k", "c", *p.filters), ("n", "g", "c", *p.inputs), ("n", "g", "k", *p.outputs))
    layouts = (p.filter_layout, p.input_layout, p.output_layout)
    found = zip((filters, inputs, outputs), layouts, wanted, strict=True)
    return [array.transpose([layout.index(name) for name in names]) for array, layout, names in found]


def pairs(p: Convolution):
    """(y.., ho.., hi..) of all products of a filter and an input element, by the definition of a convolution."""
    for out in product(*[range(axis.output) for axis in p.axes]):
        for y in product(*[range(axis.filter) for axis in p.axes]):
            place = tuple(o * a.stride + f * a.dilation - a.left for o, f, a in zip(out, y, p.axes, strict=True))
            if all(0 <= i < a.size for i, a in zip(place, p.axes, strict=True)):
                yield y, out, place


def multiply(gemm: Gemm, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("gkm,gkn->gmn", read(gemm.a, a), read(gemm.b, b))


def check(p: Convolution) -> None:
    filters, inputs, outputs = tensors(p)
    w, x, dy = canonical(p, filters, inputs, outputs)
    forward, weight, data = np.zeros_like(dy), np.zeros_like(w), np.zeros_like(x)
    for y, o, i in pairs(p):
        wy, xi, do = w[..., *y], x[..., *i], dy[..., *o]
        forward[..., *o] += np.einsum("gkc,ngc->ngk", wy, xi)
        weight[..., *y] += np.einsum("ngk,ngc->gkc", do, xi)
        data[..., *i] += np.einsum("gkc,ngk->ngc", wy, do)

    gemm = p.forward()
    got = np.full_like(outputs, np.nan)
    write(gemm.c, got, multiply(gemm, filters, inputs))
    np.testing.assert_array_equal(canonical(p, filters, inputs, got)[2], forward)

    for blocks in {1, p.n}:
        gemm = p.backward_weight(blocks)
        product_ = multiply(gemm, outputs, inputs)
        got = np.zeros_like(filters)
        for block in product_.reshape(blocks, -1, *product_.shape[1:]):
            one = np.zeros_like(filters)
            write(p.backward_weight(1).c, one, block)
            got += one
        np.testing.assert_array_equal(canonical(p, got, inputs, outputs)[0], weight)

    got = np.full_like(inputs, np.nan)
    for _, gemm in p.backward_data():
        one = np.full_like(inputs, np.nan)
        write(gemm.c, one, multiply(gemm, filters, outputs))
        assert np.isnan(got[~np.isnan(one)]).all(), "an input gradient is written twice"
        got[~np.isnan(one)] = one[~np.isnan(one)]
    assert np.isnan(got).any() == p.backward_data_needs_zero()
    np.testing.assert_array_equal(canonical(p, filters, np.nan_to_num(got), outputs)[1], data)


@pytest.mark.parametrize("first", range(0, len(AXES), 40))
def test_one_axis(first):
    for axis in AXES[first : first + 40]:
        check(Convolution(2, 1, 2, (axis,)))


@pytest.mark.parametrize("p", CASES_2D, ids=range(len(CASES_2D)))
def test_two_axes(p):
    check(p)


def test_three_axes():
    check(Convolution(1, 2, 1, (Axis(3, 2, 1, 1, 1, 0), Axis(3, 2, 2), Axis(4, 3, 1, 1, 1, 1))))


def test_ids_need_not_be_contiguous():
    p = Convolution(1, 1, 1, (Axis(6, 2, 2), Axis(7, 1, 3)))
    assert [number for number, _ in p.backward_data()] == [0, 3]


@pytest.mark.parametrize(("stride", "filter"), [(3, 4), (5, 7), (5, 8)])
def test_backward_data_where_an_older_slice_formula_was_wrong(stride, filter):
    check(Convolution(1, 4, 4, (Axis(8, filter, stride, 1, 0, 0),)))
    check(Convolution(1, 1, 2, (Axis(8, filter, stride, 1, 1, 2),)))


def test_backward_weight_of_a_strided_1x1():
    p = Convolution(4, 3, 5, (Axis(14, 1, 2), Axis(14, 1, 2)))
    check(p)
    assert [axis.output for axis in p.axes] == [7, 7]


def test_right_padding_is_not_vectorised_away():
    """n64 c64 64x64, 2x2 filter, right padding 2: an unmasked vector may not reach into the padding."""
    p = Convolution(64, 64, 64, (Axis(64, 2, 1, 1, 0, 2), Axis(64, 2, 1, 1, 0, 2)))
    widths = vector_widths(p.forward().b, "gemmN", 16)
    assert widths.unmasked.width == 1


@pytest.mark.parametrize(("n", "image", "masked"), [(4, 16, 16), (1, 14, 16), (4, 14, 4)])
def test_a_patch_read_is_contiguous_across_image_rows(n, image, masked):
    """Same padding: the output is as wide as the input, so pixels in a row of the gemm are neighbours in memory.

    Across images they are not: 14 x 14 pixels are a multiple of 4 only.
    """
    p = Convolution(n, 16, 32, (Axis(image, 3, 1, 1, 1, 1), Axis(image, 3, 1, 1, 1, 1)))
    widths = vector_widths(p.forward().b, "gemmN", 16)
    assert (widths.unmasked.width, widths.masked.width) == (1, masked)


def test_channels_last_is_contiguous_in_channels():
    p = Convolution(4, 16, 32, (Axis(14, 3, 1, 1, 1, 1), Axis(14, 3, 1, 1, 1, 1)), 1, (),
                    ("n", "hi", "wi", "g", "c"), ("n", "ho", "wo", "g", "k"))  # fmt: skip
    gemm = p.forward()
    assert vector_widths(gemm.b, "gemmK", 16).unmasked.width == 16
    assert vector_widths(gemm.c, "gemmM", 16).unmasked.width == 16
    assert vector_widths(gemm.c, "gemmM", 16).unmasked.alignment == 16


def test_symbolic_batch_and_channels():
    n, c, k = size("n"), size("c"), size("k")
    gemm = Convolution(n, c, k, (Axis(16, 3, 1, 1, 1, 1), Axis(16, 3, 1, 1, 1, 1))).forward()
    assert [d.size for d in gemm.b.upper] == [const(1), 9 * c, 256 * n]
    assert vector_widths(gemm.b, "gemmN", 16).masked.width == 16


def test_misuse():
    with pytest.raises(ViewError, match="larger than the padded input"):
        Axis(3, 5)
    with pytest.raises(ViewError, match="1, 2 or 3 spatial axes"):
        Convolution(1, 1, 1, ())
    with pytest.raises(ViewError, match="names each of"):
        Convolution(1, 1, 1, (Axis(3, 1),), input_layout=("n", "c", "wi"))
    with pytest.raises(ViewError, match="do not divide"):
        Convolution(3, 1, 1, (Axis(3, 1),)).backward_weight(2)
