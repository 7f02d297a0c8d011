"""Rules on programs of symbolic sizes: what they need is proved for all sizes; the steps are checked at small ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lithify.arith import Expr, size
from lithify.lang.build import add, const, map_, mul, param, proj, reduce_, scan, slide, split, transpose, zip_
from lithify.lang.errors import RewriteFailed
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import array
from lithify.rewrite import Derivation, at, topdown
from lithify.rewrite.strategy import Strategy
from lithify.rules.algorithmic import split_join
from lithify.rules.matrix import block_reduction, outer_product, register_blocking, tile, tiling
from lithify.rules.reduction import blocked_reduce, partial_reduce, reduce_lanes, scan_blocked, split_reduce
from lithify.rules.stencil import slide_split, slide_tile, tiled_stencil
from lithify.rules.vector import vectorised_reduction

N, M, K = size("n"), size("m"), size("k")


def vector(length: Expr) -> Term:
    return param("xs", array(length, f32))


def total(xs: Term) -> Term:
    return reduce_(lambda a, x: add(a, x), const(0, f32), xs, name="k")


def doubled(length: Expr) -> Term:
    return map_(lambda x: add(x, x), vector(length), name="m")


def windows_summed(length: Expr) -> Term:
    return map_(total, slide(3, 1, vector(length)))


def matmul() -> Term:
    a, b = param("A", array(M, K, f32)), param("B", array(K, N, f32))

    def dot(row: Term, column: Term) -> Term:
        return total(map_(lambda p: mul(proj(0, p), proj(1, p)), zip_(row, column)))

    return map_(lambda row: map_(lambda column: dot(row, column), transpose(b), name="n"), a, name="m")


DERIVATIONS: dict[str, tuple[Callable[[], Term], Strategy]] = {
    "split-join": (lambda: doubled(N), split_join(4)),
    "split-join by a size": (lambda: doubled(N * M), split_join(M)),
    "split-reduce of a multiple": (lambda: total(vector(4 * N)), split_reduce(4)),
    "blocked-reduce": (lambda: total(vector(N)), blocked_reduce(4)),
    "partial-reduce by a size": (lambda: total(vector(N * M)), partial_reduce(M)),
    "reduce-lanes": (lambda: total(vector(N)), reduce_lanes(4)),
    "vectorised reduction": (lambda: total(vector(N)), vectorised_reduction("k", 4)),
    "scan-blocked": (lambda: scan(lambda a, x: add(a, x), const(0, f32), vector(4 * N)), scan_blocked(4)),
    "slide-split": (lambda: split(4, slide(3, 1, vector(4 * N + 2))), slide_split),
    "slide-tile of a multiple": (lambda: windows_summed(4 * N + 2), topdown(slide_tile(6))),
    "tiled stencil": (lambda: windows_summed(N + 2), tiled_stencil(6)),
    "tiles of matrices": (matmul, tile("m", "n", 3, 2) >> outer_product("m.tile", "n.tile")),
    "blocks of the sum": (
        matmul,
        tile("m", "n", 3, 2) >> outer_product("m.tile", "n.tile") >> block_reduction("k", 2),
    ),
    "tiling": (matmul, tiling("m", "n", "k", (3, 2, 2))),
    "register blocking": (matmul, register_blocking("m", 2)),
}


@pytest.mark.parametrize("name", DERIVATIONS)
def test_derivation(name: str) -> None:
    program, strategy = DERIVATIONS[name]
    derivation = Derivation(program(), check=True).apply(strategy)
    assert derivation.steps
    for number in range(3):  # the check took one choice of sizes; take others
        derivation.check_steps(seed=100 * number)


@pytest.mark.parametrize(
    ("program", "strategy", "reason"),
    [
        (total(vector(N)), split_reduce(4), "`n | length xs` fails: 4 is not known to divide n"),
        (total(vector(4 * N)), split_reduce(M), "`n | length xs` fails: m is not known to divide 4\\*n"),
        (windows_summed(N + 2), topdown(slide_tile(6)), "is not known to divide"),
        (total(vector(N)), at("k", split_reduce(N + 1)), "is not known to divide n"),
    ],
)
def test_what_holds_for_some_sizes_only_is_refused(program: Term, strategy: Strategy, reason: str) -> None:
    with pytest.raises(RewriteFailed, match=reason):
        strategy.apply(program)
