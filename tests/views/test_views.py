"""Stacks of maps against their definition, at every coordinate: index, validity, inversion, vectors, elaboration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.arith import as_variable
from lithify.evaluate import evaluate
from lithify.lang import build
from lithify.lang.scalars import i32
from lithify.lang.types import array
from lithify.views import AddDim, View, ViewError, as_term, everywhere, read, vector_widths, view_of, write
from lithify.views.concrete import shape
from tests.views.stacks import views


def normal_form_everywhere(view: View):
    """Index and validity of the whole stack's normal form (`everywhere` goes map by map)."""
    names = view.variables()
    extents = shape(view.upper)
    grids = np.indices(extents)
    values = {v: g for v, g in zip(names, grids, strict=True) if v.terms}
    access = view.access(names)
    index = [np.broadcast_to(e.evaluate(values), extents) for e in access.index]
    fill = np.full(extents, None, object)
    for guard in reversed(access.guards):
        ok = np.ones(extents, bool)
        for condition in guard.conditions:
            ok &= np.broadcast_to(condition.evaluate(values), extents) >= 0
        fill[~ok] = guard.fill
    return index, fill


@given(views())
def test_the_normal_form_of_a_stack(view):
    index, fill = normal_form_everywhere(view)
    expected = everywhere(view)
    np.testing.assert_array_equal(fill, expected.fill)
    for got, wanted, dim in zip(index, expected.index, shape(view.lower), strict=True):
        np.testing.assert_array_equal(got[expected.real], wanted[expected.real])
        assert np.all((wanted[expected.real] >= 0) & (wanted[expected.real] < dim))


@given(views(maps=3, kinds="UMXRA"))
def test_inverses(view):
    if any(isinstance(t, AddDim) and t.parameters() != "1" for m in view.maps for t in m.transforms):
        with pytest.raises(ViewError, match=r"AddDim.* has no inverse"):
            view.inverse()
        return
    inverse = view.inverse()
    assert inverse.upper == view.lower
    assert inverse.lower == view.upper
    there, back = everywhere(view), view.over(inverse)
    assert there.real.all()
    for got, wanted in zip(everywhere(back).index, np.indices(shape(view.upper)), strict=True):
        np.testing.assert_array_equal(got, wanted)


@given(views(maps=3, kinds="UM"))
def test_split_and_join_of_an_inverse_cancel_in_the_normal_form(view):
    names = view.variables()
    assert view.over(view.inverse()).index(names) == names


@given(views(kinds="PEUMXRw"))
def test_writing_through_a_view(view):
    expected = everywhere(view)
    values = np.arange(1, expected.real.size + 1).reshape(expected.real.shape)
    target = np.zeros(shape(view.lower), int)
    write(view, target, values)
    written = np.zeros(shape(view.lower), bool)
    written[tuple(a[expected.real] for a in expected.index)] = True
    assert np.all((target != 0) == written)
    assert np.all(target[tuple(a[expected.real] for a in expected.index)] >= values[expected.real])


@given(data=st.data())
def test_vectors(data):
    """All elements of a vector are consecutive, aligned as claimed, and real together unless there is a mask."""
    view = data.draw(views(maps=3))
    dim = data.draw(st.integers(0, len(view.upper) - 1))
    base = data.draw(st.sampled_from([1, 2, 8, 64]))
    aligned = data.draw(st.booleans())
    widths = vector_widths(view, view.upper[dim].name, 8, base_alignment=base, aligned=aligned)
    found = everywhere(view)
    strides = [s.constant for s in view.strides()]
    address = sum(np.asarray(i) * s for i, s in zip(found.index, strides, strict=True))
    rows = np.moveaxis(np.broadcast_to(address, found.real.shape), dim, -1)
    real = np.moveaxis(found.real, dim, -1)
    for claim, masked in ((widths.unmasked, False), (widths.masked, True)):
        assert base % claim.alignment == 0
        assert not aligned or claim.alignment % claim.width == 0
        for start in range(0, rows.shape[-1], claim.width):
            lanes, ok = rows[..., start : start + claim.width], real[..., start : start + claim.width]
            starts = lanes - np.arange(lanes.shape[-1])
            least, greatest = np.where(ok, starts, 1 << 40).min(-1), np.where(ok, starts, -(1 << 40)).max(-1)
            assert np.all((least == greatest) & (least % claim.alignment == 0), where=ok.any(-1))
            if not masked:
                assert lanes.shape[-1] == claim.width
                assert np.all(ok.all(-1) == ok.any(-1))
    assert widths.unmasked.width <= widths.masked.width


@given(views(maps=3))
def test_a_stack_is_a_chain_of_layouts(view):
    extents = shape(view.lower)
    below = build.param("xs", array(*extents, i32))
    term = as_term(view, below)
    values = np.arange(1, int(np.prod(extents)) + 1, dtype=np.int32).reshape(extents)
    expected = read(view, values)
    np.testing.assert_array_equal(evaluate(term, {"xs": values}), expected)
    back, bottom = view_of(term)
    assert bottom is below
    np.testing.assert_array_equal(read(back, values), expected)


@given(views(maps=3, kinds="UMSPwA"))
def test_layouts_have_the_normal_form_of_the_stack(view):
    """Not only the same values: the chain of layouts reads at the identical index under the identical conditions."""
    below = build.param("xs", array(*shape(view.lower), i32))
    back, _ = view_of(as_term(view, below))
    names = view.variables()
    if len(back.upper) == len(names):
        assert back.index(names) == view.index(names)
        assert set(back.access(names).conditions) == set(view.access(names).conditions)


@given(views(maps=2))
def test_printing_names_every_dim(view):
    text = str(view)
    for space in (view.upper, view.lower):
        for dim in space:
            assert dim.name in text
    for m in view.maps:
        for transform in m.transforms:
            assert str(transform) in text
            assert len(transform.equations()) == len(transform.lower)


@given(views())
def test_conditions_name_only_upper_variables(view):
    names = view.variables()
    own = {as_variable(v) for v in names if v.terms}
    for condition in view.access(names).conditions:
        assert condition.variables() <= own


@pytest.mark.parametrize("kind", "PSEUMABXRpw")
def test_every_kind_of_transform_is_drawn(kind):
    """The random stacks above are worth something only if they hold what they should."""
    from hypothesis import find

    kinds = {"P": "Pad", "S": "Slice", "E": "Embed", "U": "Unmerge", "M": "Merge", "A": "AddDim", "B": "Broadcast",
             "X": "Xor", "R": "Reindex", "p": "Pad", "w": "Embed"}  # fmt: skip
    wanted = kinds[kind]
    found = find(views(kinds=kind), lambda v: any(type(t).__name__ == wanted for m in v.maps for t in m.transforms))
    assert found.maps
