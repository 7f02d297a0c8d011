"""Matrix multiplication by work-groups, as lowered terms: the largest nests that the kernel tests translate."""

from __future__ import annotations

from lithify.lang.build import (
    add,
    join,
    let,
    map_,
    mul,
    pipe,
    proj,
    reduce_,
    replicate,
    split,
    to,
    transpose,
    tuple_,
    zip_,
)
from lithify.lang.levels import LOCAL, OUT, SEQ, UNROLL
from lithify.lang.term import Term
from tests.kernel.translated import ZERO, L, M, copied, matrix

REGISTERS = M("reg[item1,item0,-,-]")
Y, X = L("item1"), L("item0")


def staged(tile: Term) -> Term:
    """A tile copied by all items of the group."""
    return split(tile.type.element.size, copied(join(tile), L("item")))  # type: ignore[attr-defined]


def multiply_add(c: Term, a: Term, b: Term) -> Term:
    """One item's register tile, over the depth of the staged tiles."""

    def outer_product(acc: Term, ab: Term) -> Term:
        def row(r: Term) -> Term:
            return map_(lambda s: add(proj(0, s), mul(proj(1, r), proj(1, s))), zip_(proj(0, r), proj(1, ab)), UNROLL)

        return map_(row, zip_(acc, proj(0, ab)), UNROLL)

    return reduce_(outer_product, copied(c, UNROLL, UNROLL), zip_(a, b), SEQ, OUT, "k.inner")


def matmul_by_groups(
    m: int, n: int, k: int, tile: tuple[int, int, int] = (8, 16, 4), item: tuple[int, int] = (2, 4), slots: int = 0
) -> Term:
    """A B in tiles of a work-group and register tiles of an item; with slots, tiles are fetched ahead (`pipe`)."""
    (bm, bn, bk), (tm, tn) = tile, item
    a, b = matrix("A", m, k), matrix("B", k, n)

    def blocks(rows: Term) -> Term:
        return map_(transpose, transpose(map_(lambda r: split(bk, r), rows)))

    def multiply(acc: Term, sa: Term, sb: Term) -> Term:
        left = transpose(map_(lambda r: split(tm, r), sa))
        right = transpose(map_(lambda r: split(tn, r), sb))
        return map_(
            lambda p: map_(lambda q: multiply_add(proj(0, q), proj(1, p), proj(1, q)), zip_(proj(0, p), right), X),
            zip_(acc, left),
            Y,
        )

    def group(ab: Term, bb: Term) -> Term:
        zeros = copied(
            replicate(bm // tm, replicate(bn // tn, replicate(tm, replicate(tn, ZERO)))), Y, X, UNROLL, UNROLL
        )
        tiles = zip_(blocks(ab), blocks(bb))
        if slots:
            product = to(
                REGISTERS,
                pipe(
                    lambda acc, t: multiply(acc, proj(0, t), proj(1, t)),
                    lambda x: tuple_(staged(proj(0, x)), staged(proj(1, x))),
                    zeros,
                    tiles,
                    slots,
                ),
            )
        else:
            product = reduce_(
                lambda acc, t: let(
                    to(LOCAL, staged(proj(0, t))),
                    lambda sa: let(to(LOCAL, staged(proj(1, t))), lambda sb: multiply(acc, sa, sb)),
                ),
                zeros,
                tiles,
                SEQ,
                REGISTERS,
                "k",
            )
        return map_(join, join(map_(transpose, copied(product, Y, X, UNROLL, UNROLL))))

    grid = map_(
        lambda ab: map_(lambda bb: group(ab, bb), split(bn, transpose(b)), L("group0"), "n"),
        split(bm, a),
        L("group1"),
        "m",
    )
    return map_(join, join(map_(transpose, grid)))
