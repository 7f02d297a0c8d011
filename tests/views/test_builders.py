"""Builders, printing, and what is refused."""

from __future__ import annotations

import pytest

from lithify.arith import const, size
from lithify.views import View, ViewError, bottom_up, top_down

n, m = size("n"), size("m")


def test_a_printed_stack():
    padded = bottom_up(c=4, hi=5, wi=6).passthrough("c").pad(["hi", "wi"], (1, 0), (1, 2), ["hipad", "wipad"]).get()
    windows = padded.above().passthrough("c").embed("hipad", {"y": 3, "ho": 5}, [1, 1])
    windows = windows.embed("wipad", {"x": 3, "wo": 3}, [1, 2]).get()
    view = windows.above().merge("gemmK", ["c", "y", "x"]).merge("gemmN", ["ho", "wo"]).get()
    assert (
        str(view)
        == """\
[gemmK 36, gemmN 15]
  Merge{4, 3, 3}["gemmK"] <- ["c", "y", "x"]
  Merge{5, 3}["gemmN"] <- ["ho", "wo"]
[c 4, y 3, ho 5, x 3, wo 3]
  PassThrough["c"] <- ["c"]
  Embed{1, 1}["y", "ho"] <- ["hipad"]
  Embed{1, 2}["x", "wo"] <- ["wipad"]
[c 4, hipad 7, wipad 8]
  PassThrough["c"] <- ["c"]
  Pad{(1, 1)}["hipad"] <- ["hi"]
  Pad{(0, 2)}["wipad"] <- ["wi"]
[c 4, hi 5, wi 6]"""
    )


def test_other_transforms_printed():
    view = bottom_up(a=8, b=8, d=6).xor("a", "b", 2).slice("d", 1, 4).get()
    view = view.above().passthrough("a").unmerge("b", {"b0": 2, "b1": 4}).broadcast("d", 7).add_dim("e", 5).get()
    assert (
        str(view)
        == """\
[a 8, b0 2, b1 4, d 7, e 5]
  PassThrough["a"] <- ["a"]
  Unmerge{2, 4}["b0", "b1"] <- ["b"]
  Broadcast{3}["d"] <- ["d"]
  AddDim{5}["e"] <- []
[a 8, b 8, d 3]
  Xor{2}["a", "b"] <- ["a", "b"]
  Slice{1:4}["d"] <- ["d"]
[a 8, b 8, d 6]"""
    )
    held = top_down(i=4).passthrough("i").const_dim("g", 2, 3, position=0).get()
    assert 'ConstDim{2 of 3}[] <- ["g"]' in str(held)
    assert [d.name for d in held.lower] == ["g", "i"]
    assert held.index((3,)) == (const(2), const(3))


def test_both_directions_build_the_same_stack():
    up = bottom_up(k=6, c=5).passthrough("c").unmerge("k", {"k0": 3, "k1": 2}).get()
    up = up.above().passthrough("k0").pad("c", 1, 2, "cpad").passthrough("k1").get(["k0", "cpad", "k1"])
    down = top_down(k0=3, cpad=8, k1=2).passthrough("k0", "k1").pad("cpad", 1, 2, "c").get(["k0", "k1", "c"])
    down = down.below().unmerge("k", ["k0", "k1"]).passthrough("c").get()
    names = up.variables()
    assert up.access(names) == down.access(names)


def test_dims_by_position_and_symbolic():
    view = bottom_up(x=n * 4, y=m).unmerge(0, {"block": n, "item": 4}).passthrough(-1, upper="row").get()
    assert [d.name for d in view.upper] == ["block", "item", "row"]
    block, item, row = view.variables()
    assert view.index((block, item, row)) == (4 * block + item, row)
    inverse = view.inverse()
    x, y = inverse.variables()
    assert inverse.index((x, y)) == (x // 4, x - 4 * (x // 4), y)


def test_expanded_dims_stand_in_place():
    view = bottom_up(a=2, b=6, c=3).passthrough("a", "c").unmerge("b", {"b0": 2, "b1": 3}).get()
    assert [d.name for d in view.upper] == ["a", "b0", "b1", "c"]
    view = bottom_up(a=2, b=6, c=3).merge("ca", ["c", "a"]).passthrough("b").add_dim("z", 4, position=1).get()
    assert [d.name for d in view.upper] == ["ca", "z", "b"]
    assert [d.name for d in view.above().passthrough(0, 1, 2).get(["b", "z", "ca"]).upper] == ["b", "z", "ca"]


def test_symbolic_validity():
    view = bottom_up(x=n).pad("x", 0, (n + 15) // 16 * 16 - n).get()
    tiles = view.above().unmerge("x", {"tile": (n + 15) // 16, "item": 16}).get()
    tile, item = tiles.variables()
    assert tiles.access((tile, item)).conditions == (n - 1 - 16 * tile - item,)


def test_conditions_that_follow_are_dropped():
    padded = bottom_up(x=8).pad("x", 2, 2).get()
    assert len(padded.access().conditions) == 2
    inner = padded.above().slice("x", 2, 10).get()
    assert inner.access().conditions == ()
    # The conditions of an outer padding follow from those of the inner one, but they choose the fill: they stay.
    again = padded.above().pad("x", 1, 1, value=7).get()
    (u,) = again.variables()
    outer, inside = again.access((u,)).guards
    assert (outer.conditions, outer.fill) == ((u - 1, 12 - u), 7)
    assert (inside.conditions, inside.fill) == ((u - 3, 10 - u), 0)


def test_embed_looks_at_the_exact_interval():
    inside = bottom_up(x=7).embed("x", {"a": 3, "b": 3}, [1, 2]).get()
    assert inside.access().conditions == ()
    above = bottom_up(x=6).embed("x", {"a": 3, "b": 3}, [1, 2]).get()
    assert len(above.access().conditions) == 1
    # rocMLIR looks at each dim alone; the sum stays inside though one term is negative
    mixed = bottom_up(x=7).embed("x", {"a": 3, "b": 3}, [-1, 2], offset=2).get()
    assert mixed.access().conditions == ()
    below = bottom_up(x=7).embed("x", {"a": 3, "b": 3}, [-1, 2], offset=1).get()
    assert len(below.access().conditions) == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bottom_up(a=2, b=3).passthrough("a").get(), "dims \\[b 3\\] are not used"),
        (lambda: bottom_up(a=2).passthrough("a").pad("a", 1, 1), "used twice"),
        (lambda: bottom_up(a=2).passthrough("z"), "no dim 'z'"),
        (lambda: bottom_up(a=2).passthrough(3), "no dim at position 3"),
        (lambda: bottom_up(a=6).unmerge("a", {"x": 2, "y": 2}), "expected 4"),
        (lambda: bottom_up(a=6).unmerge("a", {"x": 2, "y": 3}).get(["x"]), "does not name each"),
        (lambda: bottom_up(a=6, b=6).passthrough("a", "b", upper=["x", "x"]).get(), "occurs twice"),
        (lambda: bottom_up(a=6).slice("a", 2, 8), "not known to lie"),
        (lambda: bottom_up(a=6).slice("a", 0, n), "not known to lie"),
        (lambda: bottom_up(a=6).pad("a", -1, 0), "use Slice"),
        (lambda: bottom_up(a=6).pad("a", 1, 0, mode="zero"), "the mode is one of"),
        (lambda: bottom_up(a=4, b=6).xor("a", "b"), "power of two"),
        (lambda: bottom_up(a=6).embed("a", {"x": 2}, [1, 2]), "one coefficient for each"),
        (lambda: bottom_up(a=n - 2).passthrough("a"), "may be negative"),
        (lambda: top_down(a=4).passthrough("a").const_dim("b", 3, 3), "not known to lie"),
        (lambda: bottom_up(a=4).pad("a", 1, 1).get().inverse(), "Pad.* has no inverse"),
        (lambda: bottom_up(a=4).passthrough("a").get().over(View(top_down(b=4).passthrough("b").get().upper,
                 top_down(b=4).passthrough("b").get().maps)), "above it stands"),
        (lambda: bottom_up(a=4).passthrough("a").get().access({"b": 1}), "no upper dims"),
        (lambda: bottom_up(a=4).passthrough("a").get().access((1, 2)), "2 coordinates"),
    ],
)  # fmt: skip
def test_what_is_refused(build, message):
    with pytest.raises(ViewError, match=message):
        build()
