"""What the filters of the first phase measure: nesting, the distance of a sum from its summands, blocked sums."""

from __future__ import annotations

import pytest

from lithify.explore.phases.shape import blocked_dimensions, distance, nesting_depth, nests
from lithify.lang.term import Term
from lithify.lowering.loops import name_loops
from lithify.lowering.matrix_multiplication import VERSIONS
from lithify.machine import host
from lithify.rewrite import Derivation
from lithify.rules.fusion import reduce_map_fusion
from tests.explore.phases.programs import dot, gemv, jacobi, product


def derived(name: str) -> Term:
    (version,) = [v for v in VERSIONS if v.name == name]
    derivation = Derivation(name_loops(product(16, 8, 24).term))
    version.with_sizes({"n": 4, "m": 8, "k": 4, "l": 2})(derivation, host())
    return derivation.term


def test_distance_is_zero_where_summands_are_made_in_the_sum() -> None:
    assert distance(product(8, 8, 8).term) == 1
    assert distance(Derivation(product(8, 8, 8).term).once(reduce_map_fusion).term) == 0
    assert distance(dot(16).term) == 1


def test_tiles_of_partial_sums_keep_their_distance() -> None:
    assert distance(derived("tiled")) == 1
    assert distance(derived("tiled-blocked-vectorised")) == 0


@pytest.mark.parametrize(("name", "depth"), [("tiled", 8), ("register-blocking", 5)])
def test_nesting_depth(name: str, depth: int) -> None:
    assert nesting_depth(derived(name)) == depth
    assert nesting_depth(product(8, 8, 8).term) == 4


def test_views_are_no_loops() -> None:
    named = [n.loop["name"] for n in nests(name_loops(product(8, 8, 8).term))]
    assert len(named) == 4
    assert all(n.loop.kind in ("map", "reduce") for n in nests(jacobi(10, 12).term))


def test_directly_nested_maps() -> None:
    first = next(nests(name_loops(product(8, 8, 8).term)))
    assert len(first.inside) == 1
    assert first.names(2) == (first.loop["name"], first.inside[0]["name"])


def test_dimensions_of_what_is_summed_into() -> None:
    assert blocked_dimensions(product(8, 8, 8).term) == 0
    assert blocked_dimensions(gemv(8, 8).term) == 0
    assert blocked_dimensions(derived("register-blocking")) == 1
    assert blocked_dimensions(derived("tiled-blocked-vectorised")) == 2
