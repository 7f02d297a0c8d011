"""Sums of products, done by matrix multiplication: they mean the same, and large ones take seconds, not minutes.

Only in exact arithmetic, where the order of a sum is not part of its value, and for floats: integers wrap around.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from lithify.evaluate.values import Leaf
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, dangling, lambda_


@dataclass(frozen=True)
class Contraction:
    """`reduce (+) z (map (λx. left x * right x) xs)`, or the same within the reduction's own function.

    `inside` says that: then the functions stand below an accumulator, which they do not mention.
    """

    left: Term
    right: Term
    xs: Term
    inside: bool


def contraction(term: Term) -> Contraction | None:
    """The sum of products that a reduction is; None where it is another one."""
    if term.kind != "reduce" or not isinstance(term.type, Scalar) or not (term.type.is_float or term.type.is_complex):
        return None
    function, _, xs = term.args
    body = function.args[0].args[0]
    if not _is(body, "add") or body.args[0].kind != "bound" or body.args[0].attrs[0] != 1:
        return None
    product, element, inside = body.args[1], function.args[0].attrs[0], True
    if product.kind == "bound" and product.attrs[0] == 0 and xs.kind == "map":
        product, element, xs, inside = xs.args[0].args[0], xs.args[0].attrs[0], xs.args[1], False
    if not _is(product, "mul") or product.type is not term.type or (inside and 1 in dangling(product)):
        return None
    left, right = (lambda_(element, factor) for factor in product.args)
    return Contraction(left, right, xs, inside)


def is_outer(product: Contraction) -> bool:
    """Whether the elements are pairs whose components depend on one variable each: then no product is ever held."""
    xs = product.xs
    return xs.kind == "zip" and len(xs.args) == 2 and all(len(dangling(operand)) <= 1 for operand in xs.args)


def _is(t: Term, operator: str) -> bool:
    return t.kind == "op" and t.attrs[0].name == operator and len(t.args) == 2


def sum_of_products(left: Leaf, right: Leaf, depth: int) -> Leaf:
    """The sum over axis `depth` of the product; of the axes before it, those of length 1 belong to one factor only."""
    both = [k for k in range(depth) if (left.shape[k] > 1) == (right.shape[k] > 1)]
    rows = [k for k in range(depth) if left.shape[k] > 1 and right.shape[k] == 1]
    columns = [k for k in range(depth) if left.shape[k] == 1 and right.shape[k] > 1]
    n = left.shape[depth]
    a = left.transpose([*both, *rows, depth, *columns])
    b = right.transpose([*both, depth, *columns, *rows])
    shape = [a.shape[: len(both)], a.shape[len(both) : len(both) + len(rows)], b.shape[len(both) + 1 :][: len(columns)]]
    outer = shape[0]
    product = np.matmul(a.reshape((*outer, prod(shape[1]), n)), b.reshape((*outer, n, prod(shape[2]))))
    found: Leaf = product.reshape((*outer, *shape[1], *shape[2]))
    order = [*both, *rows, *columns]
    return found.transpose([order.index(k) for k in range(depth)])
