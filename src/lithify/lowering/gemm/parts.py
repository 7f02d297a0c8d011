"""The sum of a product in parts: products of parts of the operands, side by side in a batch, and the sum of these."""

from __future__ import annotations

from lithify.lowering.gemm.problem import Product, product_in
from lithify.lowering.gemm.register import results_apart
from lithify.rewrite import Derivation, Strategy, at, repeat, seq, topdown
from lithify.rewrite.traversal import loop_of
from lithify.rules.algorithmic import let_out, single_row
from lithify.rules.fusion import reduce_map_fission, reduce_map_fusion
from lithify.rules.tiles import split_sum, split_sum_swapped


def without_batch(derivation: Derivation, product: Product) -> None:
    """A batch of one product is no batch: only then can its sum be split."""
    for loop in product.loops.batch:
        derivation.apply(at(loop, single_row))


def split_in_parts(derivation: Derivation, product: Product, part: int) -> Product:
    """A product with a sum in parts of `part` terms, which divides it; returns the batch of products of parts."""
    derivation.apply(_in_parts(product, part))
    found = product_in(derivation.term)
    assert found is not None, "the partial sums are a product, too"
    return found


def _in_parts(product: Product, part: int) -> Strategy:
    """The product as a sum of products of parts of its operands; work on the results is done on the sums."""
    m, n, k = product.loops.m, product.loops.n, product.loops.k
    here = loop_of(k, "reduce")
    in_parts = split_sum_swapped if product.swapped else split_sum
    return seq(
        results_apart(m, n),
        at(here, reduce_map_fission),
        at(m, in_parts(part)),
        repeat(topdown(let_out)),
        at(here, reduce_map_fusion),
    )
