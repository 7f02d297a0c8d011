"""Pictures: the path of an element, and drawings that are well-formed and complete."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from lithify.arith import size
from lithify.views import ViewError, bottom_up, everywhere, picture
from lithify.views.convolution import Axis, Convolution

SVG = "{http://www.w3.org/2000/svg}"
GEMM = Convolution(1, 2, 3, (Axis(4, 3, 1, 1, 1, 1), Axis(5, 3, 1, 1, 1, 1))).forward()


def test_the_path_of_an_element():
    assert (
        picture.text(GEMM.b, {"gemmG": 0, "gemmK": 4, "gemmN": 7})
        == """\
gemmG = 0, gemmK = 4, gemmN = 7
    c = gemmK div 9
    y = (gemmK div 3) mod 3
    x = gemmK mod 3
    n = gemmN div 20
    ho = (gemmN div 5) mod 4
    wo = gemmN mod 5
    g = gemmG
n = 0, g = 0, c = 0, y = 1, ho = 1, x = 1, wo = 2
    hipad = y + ho
    wipad = x + wo
n = 0, g = 0, c = 0, hipad = 2, wipad = 3
    hi = hipad - 1
    wi = wipad - 1
n = 0, g = 0, c = 0, hi = 1, wi = 2"""
    )


def test_the_path_ends_in_padding():
    view = bottom_up(x=4).pad("x", 1, 1, value=7).get().above().unmerge("x", {"a": 3, "b": 2}).get()
    steps = picture.trace(view, (0, 0))
    assert [step.real for step in steps] == [True, True, False]
    assert str(steps[-1]) == "x = -1: padding, reads 7"
    assert all(step.real for step in picture.trace(view, (0, 1)))
    below = bottom_up(x=4).unmerge("x", {"row": 2, "col": 2}).get()
    below = below.above().passthrough("row").pad("col", 1, 0).get()
    assert len(picture.trace(below, (1, 0))) == 2  # below the padding there is no path, though an address exists
    assert len(picture.trace(below, (1, 1))) == 3


@pytest.mark.parametrize("view", [GEMM.a, GEMM.b, GEMM.c], ids="abc")
def test_a_drawing(view):
    found = everywhere(view)
    root = ElementTree.fromstring(picture.svg(view))
    upper, lower = root.findall(f"{SVG}g")
    cells = upper.findall(f"{SVG}rect")
    assert len(cells) == found.real.size
    assert len(upper.findall(f"{SVG}path")) == np.count_nonzero(~found.real)  # one hatching a padded cell
    assert len(lower.findall(f"{SVG}rect")) == np.prod([d.size.constant for d in view.lower])
    places = {(cell.get("x"), cell.get("y")) for cell in cells}
    assert len(places) == len(cells)  # no cell covers another
    width = float(root.get("width"))
    assert all(float(cell.get("x")) < width for cell in cells)
    notes = [cell.find(f"{SVG}title").text for cell in cells]
    assert sum("padding" in note for note in notes) == np.count_nonzero(~found.real)


def test_equal_elements_have_equal_colours():
    view = bottom_up(x=8).embed("x", {"window": 4, "offset": 3}, [1, 1]).get()
    root = ElementTree.fromstring(picture.svg(view, (1, 1)))
    upper, lower = root.findall(f"{SVG}g")
    colours = np.array([cell.get("fill") for cell in upper.findall(f"{SVG}rect")]).reshape(4, 3)
    below = [cell.get("fill") for cell in lower.findall(f"{SVG}rect")]
    for window in range(4):
        for offset in range(3):
            assert colours[window, offset] == below[window + offset]
    assert below[6:] == ["white", "white"]  # shown by nobody


def test_what_cannot_be_drawn():
    with pytest.raises(ViewError, match="symbolic sizes"):
        picture.svg(bottom_up(x=size("n")).passthrough("x").get())
    with pytest.raises(ViewError, match="too large to draw"):
        picture.svg(bottom_up(x=5000).passthrough("x").get())
    with pytest.raises(ViewError, match="not a number from 0 to 3"):
        picture.trace(bottom_up(x=4).passthrough("x").get(), (4,))
