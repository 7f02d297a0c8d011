"""The language's layout patterns as views: against the reference evaluator, and there and back."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.arith import size, var
from lithify.evaluate import evaluate
from lithify.lang import build
from lithify.lang.index_functions import reverse, stride
from lithify.lang.levels import SEQ
from lithify.lang.scalars import f16, f32, i32
from lithify.lang.types import array
from lithify.views import Embed, ViewError, as_term, bottom_up, layout_of, read, vector_widths, view_of
from lithify.views.convolution import Axis, Convolution

xs = build.param("xs", array(12, i32))
xss = build.param("xss", array(6, 4, i32))
n, m = size("n"), size("m")

LAYOUTS = {
    "split": build.split(4, xs),
    "join": build.join(xss),
    "transpose": build.transpose(xss),
    "take": build.take(5, xs),
    "drop": build.drop(5, xs),
    "slide": build.slide(5, 3, xs),
    "pad": build.pad(2, 3, build.const(9, i32), xs),
    "pad rows": build.pad(1, 2, build.const(9, i32), xss),
    "clamp": build.pad_mode("clamp", 3, 20, xs),
    "mirror": build.pad_mode("mirror", 3, 5, xs),
    "mirror far": build.pad_mode("mirror", 30, 41, xs),
    "wrap": build.pad_mode("wrap", 30, 5, xs),
    "replicate": build.replicate(3, xss),
    "reverse": build.reindex(reverse(12), xs),
    "stride": build.reindex(stride(3, 12), xs),
    "map": build.map_(lambda row: build.split(2, build.reindex(reverse(4), row)), xss),
    "chain": build.slide(2, 1, build.transpose(build.map_(lambda row: build.pad_mode("clamp", 1, 1, row), xss))),
    "deep": build.map_(lambda column: build.map_(lambda w: build.drop(1, w), build.slide(3, 1, column)), xss),
}
VALUES = {"xs": np.arange(1, 13, dtype=np.int32), "xss": np.arange(1, 25, dtype=np.int32).reshape(6, 4)}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_its_view(name):
    term = LAYOUTS[name]
    view, bottom = view_of(term)
    assert bottom in (xs, xss)
    values = VALUES[bottom["name"]]
    np.testing.assert_array_equal(read(view, values), evaluate(term, VALUES))
    np.testing.assert_array_equal(evaluate(as_term(view, bottom), VALUES), evaluate(term, VALUES))
    index = view.variables()
    assert view_of(as_term(view, bottom))[0].index(index) == view.index(index)


@pytest.mark.parametrize("width", [128, 64, 32])
@pytest.mark.parametrize(("scalar", "rows", "columns"), [(f16, 16, 64), (f32, 10, 64), (f16, 9, 128)])
def test_swizzles(width, scalar, rows, columns):
    tile = build.param("tile", array(rows, columns, scalar))
    term = build.swz(width, tile)
    view, _ = view_of(term)
    values = np.arange(rows * columns, dtype=np.float64).reshape(rows, columns)
    expected = evaluate(term, {"tile": values % 2048 if scalar is f16 else values})
    np.testing.assert_array_equal(read(view, values % 2048 if scalar is f16 else values), expected)
    assert vector_widths(view, view.upper[1].name, 16).unmasked.width == 16 // scalar.bytes
    row, column = view.variables()
    assert view.index(view.index((row, column))) == (row, column)  # its own inverse, by the normal form


def test_what_is_no_layout_stays():
    loop = build.map_(lambda x: build.op("add", x, x), xs)
    view, bottom = view_of(build.split(3, loop))
    assert bottom is loop
    assert [d.size.constant for d in view.upper] == [4, 3]
    copied = build.map_(lambda x: x, xs, SEQ)
    assert view_of(copied)[1] is copied
    pair = build.zip_(xs, xs)
    assert view_of(build.take(2, pair))[1] is pair
    variable_fill = build.pad(1, 1, build.param("c", i32), xs)
    assert view_of(variable_fill)[1] is variable_fill
    with pytest.raises(ViewError, match="zip is not a layout"):
        layout_of(pair)


def test_one_layout():
    view = layout_of(build.slide(5, 3, build.drop(2, xs)))
    window, offset = view.variables()
    assert view.index((window, offset)) == (3 * window + offset,)
    assert [d.size.constant for d in view.lower] == [10]


def test_symbolic_sizes():
    below = build.param("a", array(n * 4, m, i32))
    view = bottom_up(r=n * 4, c=m).unmerge("r", {"block": n, "item": 4}).passthrough("c").get(["c", "block", "item"])
    term = as_term(view, below)
    assert term.type is array(m, n, 4, i32)
    back, bottom = view_of(term)
    assert bottom is below
    index = view.variables()
    assert back.index(index) == view.index(index)
    c, block = var("c", m), var("block", n)
    assert view.index((c, block, 3)) == (4 * block + 3, c)


def test_convolution_operands_are_terms():
    p = Convolution(2, 2, 3, (Axis(5, 3, 2, 1, 1, 1), Axis(4, 2, 1, 2, 1, 1)))
    problems = [p.forward(), p.backward_weight(2), *[gemm for _, gemm in p.backward_data()]]
    for gemm in problems:
        for view in (gemm.a, gemm.b):
            sizes = [d.size.constant for d in view.lower]
            below = build.param("t", array(*sizes, i32))
            values = np.arange(1, int(np.prod(sizes)) + 1, dtype=np.int32).reshape(sizes)
            np.testing.assert_array_equal(evaluate(as_term(view, below), {"t": values}), read(view, values))


def test_windows_become_slides():
    view = bottom_up(x=12).embed("x", {"window": 4, "offset": 3}, [3, 1]).get()
    assert as_term(view, xs) is build.take(4, build.slide(3, 3, xs))
    assert isinstance(view.maps[0].transforms[0], Embed)


def test_a_term_of_other_dims():
    view = bottom_up(x=11).passthrough("x").get()
    with pytest.raises(ViewError, match="does not have the dims"):
        as_term(view, xs)
    tuples = build.zip_(xs, xs)
    padded = bottom_up(x=12).pad("x", 1, 0).get()
    with pytest.raises(ViewError, match="only scalars"):
        as_term(padded, tuples)
