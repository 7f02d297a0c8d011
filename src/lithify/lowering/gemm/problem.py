"""Which programs are matrix multiplications: two nested maps around one reduction of pairs.

    map@m (λx. map@n (λy. .. reduce@k f z (zip (p x) (q y)) ..) B) A

p makes a row of the left operand of an element of A, q a column of the right operand of one of B; A and B may hold more
beside them, which the work after the reduction reads. f is any function: sums of products are but one case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from lithify.lang.build import constant_value
from lithify.lang.digest import digest
from lithify.lang.operators import Typing
from lithify.lang.scalars import SCALARS, Scalar, accumulator_of, i32, result_of
from lithify.lang.term import BOUND, LAMBDA, Term, contains, dangling, subterms
from lithify.lang.types import Array, Tuple, Type, shape_of
from lithify.lowering.facts import element_of
from lithify.lowering.needs import is_lazy, is_scalar
from lithify.lowering.tuning import Problem
from lithify.lowering.work import is_constant, length_of
from lithify.rewrite import Strategy, at, first, only, repeat, topdown
from lithify.rules.algorithmic import let_atom, let_introduction
from lithify.rules.fusion import map_fusion, reduce_map_fusion, zip_of_maps, zip_unread

# Flags whose values are digests of parts of the program: `whole` of a sum that nothing is known to fill up, `workA` and
# `workB` of operands whose elements are computed as they are read.
APART = ("reduction", "epilogue", "prologue", "whole", "workA", "workB")


@dataclass(frozen=True)
class Loops:
    """The names of the loops: `batch` outside, then those over rows, columns and products."""

    batch: tuple[str, ...]
    m: str
    n: str
    k: str


@dataclass(frozen=True)
class Product:
    """A matrix multiplication within a program in normal form.

    `nest` is the outermost map, `rows` and `columns` the maps over m and n, `reduction` what is in them; `swapped` says
    that the pairs of the reduction hold the column's element first.
    """

    nest: tuple[Term, ...]
    reduction: Term
    swapped: bool

    @property
    def loops(self) -> Loops:
        """The loops' names."""
        *batch, m, n = [t["name"] for t in self.nest]
        return Loops(tuple(batch), m, n, self.reduction["name"])

    @property
    def sizes(self) -> dict[str, int]:
        """g (the product of all batch dimensions), m, n, k."""
        *batch, m, n = [length_of(t) for t in self.nest]
        return {"g": prod(batch), "m": m, "n": n, "k": length_of(self.reduction.args[2])}

    def length(self, loop: str) -> int:
        """How many iterations the nest's loop of that name has."""
        return next(length_of(t) for t in self.nest if t["name"] == loop)

    @property
    def operands(self) -> tuple[Term, Term]:
        """A row of the left operand and a column of the right one."""
        left, right = self.reduction.args[2].args
        return (right, left) if self.swapped else (left, right)


def normal_form() -> Strategy:
    """Maps around the product fused with its loops, and the multiplication with the reduction.

    Names for operands of a batch are replaced by what they stand for. A sum that the work after it reads several times
    has a name: it stands at one place.
    """
    around = topdown(only(_holds_reduction, first(map_fusion, zip_of_maps, zip_unread), "with-reduction"))
    named = topdown(only(_repeats_its_sum, at((0, 0), let_introduction("reduce")), "sum-named"))
    strategy = repeat(first(topdown(let_atom), around, topdown(reduce_map_fusion), named))
    strategy.name = "normal-form"
    return strategy


def _repeats_its_sum(t: Term) -> bool:
    """Is it a map whose body, a scalar, reads a reduction at several places?"""
    return t.kind == "map" and is_scalar(t.args[0].args[0].type) and _reductions(t.args[0].args[0]) > 1


def _reductions(body: Term) -> int:
    """At how many places of a scalar's term a reduction stands, functions aside."""
    if body.kind == "reduce":
        return 1
    return sum(_reductions(a) for a in body.args) if body.kind in ("op", "tuple") else 0


def _holds_reduction(t: Term) -> bool:
    """A map or zip around the product, not one within its operands."""
    return t.kind in ("map", "zip") and any(u.kind == "reduce" for u in subterms(t))


def product_in(program: Term) -> Product | None:
    """The matrix multiplication in a program in normal form; None where there is none, or it has levels already."""
    for nest in _nests(program):
        product = _product(nest)
        if product is not None:
            return product
    return None


def _nests(program: Term) -> Iterator[tuple[Term, ...]]:
    """The outermost nests of maps: each map makes the elements of the one before."""
    stack = [program]
    while stack:
        t = stack.pop()
        if t.kind == "map":
            nest = [t]
            while (body := nest[-1].args[0].args[0]).kind == "map":
                nest.append(body)
            yield tuple(nest)
        elif t.kind == "let":
            stack += [t.args[1].args[0], t.args[0]]
        elif t.kind not in ("reduce", "scan", "generate", "iterate", LAMBDA):
            stack += reversed(t.args)


def _product(nest: tuple[Term, ...]) -> Product | None:
    if len(nest) < 2 or any(t["level"] is not None or not is_constant(t) for t in nest):
        return None
    body = nest[-1].args[0].args[0]
    if not is_scalar(body.type):
        return None
    loops = [t for t in subterms(body) if t.kind in ("reduce", "scan", "iterate", "to", "pipe")]
    if len(loops) != 1 or loops[0].kind != "reduce" or not _at_depth_0(body, loops[0]):
        return None
    (r,) = loops
    pairs = r.args[2]
    if r["level"] is not None or pairs.kind != "zip" or len(pairs.args) != 2 or not is_constant(pairs):
        return None
    if not isinstance(r.type, Scalar) or {0, 1} & (dangling(r.args[0]) | dangling(r.args[1])):
        return None
    of = [{0, 1} & dangling(operand) for operand in pairs.args]
    if of not in ([{1}, {0}], [{0}, {1}]) or _combines_arrays(r):
        return None
    return Product(nest, r, swapped=of == [{0}, {1}])


def _at_depth_0(body: Term, wanted: Term) -> bool:
    """Is a term in the body outside of all functions but those of lets?"""
    if body is wanted:
        return True
    return any(_at_depth_0(a, wanted) for a in body.args if a.kind != LAMBDA)


def _combines_arrays(r: Term) -> bool:
    """Are elements of the operands arrays? (Then it is no matrix multiplication, but something around one.)"""
    return not all(is_scalar(element_of(a)) for a in r.args[2].args)


def problem_of(product: Product, stored: Product, *, plain: bool, fills_up: bool) -> Problem:
    """The problem's line, sizes and scalars ("a", "b": what the operands are stored as; "acc"; "c").

    `stored` is the product with the work on its operands inside of the reduction; `plain` says that this converts them
    and does nothing else; `fills_up` that there are terms which do not change its sums.
    """
    left, right = stored.operands
    body = product.nest[-1].args[0].args[0]
    scalars = {"a": _stored(left), "b": _stored(right), "acc": str(product.reduction.type), "c": str(body.type)}
    a, b = (goes_over_columns(t) for t in (product.nest[-2], product.nest[-1]))
    sizes = product.sizes
    apart = {}
    if body is not product.reduction and not (is_conversion(body) and body.args[0] is product.reduction):
        apart["epilogue"] = digest(body)[:8]
    if not plain:
        apart["prologue"] = digest(product.nest[0])[:8]
    elif not sums_products(stored.reduction):
        apart["reduction"] = "".join(digest(t)[:4] for t in stored.reduction.args[:2])
    if not fills_up:
        apart["whole"] = digest(stored.reduction.args[0])[:8]
    for side, operand, loop in zip("AB", product.operands, product.nest[-2:], strict=True):
        if _is_computed(operand) or _is_computed(loop.args[1]):
            apart[f"work{side}"] = "".join(digest(t)[:4] for t in (operand, loop.args[1]))
    return Problem("gemm", line_of(scalars, (a, not b), sizes, apart), sizes, scalars)


def part_length(k: int, count: int, step: int) -> int:
    """The length of `count` parts of a sum: equal ones where it divides, else whole steps, of which the last are
    missing."""
    return k // count if k % count == 0 else -(-k // (count * step)) * step


def lies_across(problem: Problem) -> dict[str, bool]:
    """By operand: is it contiguous along k?"""
    return {"a": "-transA false" in problem.line, "b": "-transB true" in problem.line}


def line_of(
    scalars: Mapping[str, str], transposed: tuple[bool, bool], sizes: Mapping[str, int], apart: Mapping[str, str]
) -> str:
    """A problem's line: its flags in one order, those that follow from others left out.

    `apart` are the digests of what only the program says: its work on operands or results, another reduction than a sum
    of products. (`lithify.explore.problems` reads lines.)
    """
    flags = {"t": scalars["a"], "transA": _flag(transposed[0]), "transB": _flag(transposed[1])}
    flags |= {name: str(sizes[name]) for name in "gmnk"} | _other_types(scalars)
    flags |= {name: apart[name] for name in APART if name in apart}
    return "gemm " + " ".join(f"-{name} {value}" for name, value in flags.items())


def _other_types(scalars: Mapping[str, str]) -> dict[str, str]:
    """The flags of the types that do not follow from `-t`, the left operand's."""
    t = scalars["a"]
    flags = {} if scalars["b"] == t else {"b_datatype": scalars["b"]}
    scalar = SCALARS.get(t, i32)  # an index is an integer
    if scalars["acc"] != str(accumulator_of(scalar)):
        flags["acc_datatype"] = scalars["acc"]
    if set(scalars.values()) != {t} or scalars["c"] != str(result_of(scalar)):
        flags["out_datatype"] = scalars["c"]
    return flags


def is_conversion(t: Term) -> bool:
    """Is a term the conversion of a value to another scalar type?"""
    return bool(t.kind == "op" and t["operator"].typing is Typing.CONVERT)


def sums_products(reduction: Term) -> bool:
    """Does a product's reduction add products to 0: acc + c p.0 * d p.1, in any order, with conversions c and d?"""
    parts = [_without_conversion(t) for t in _factors(reduction.args[0].args[0].args[0])]
    zero = reduction.args[1]
    return (
        sorted(str(p.attrs[0]) for p in parts if p.kind == "proj") == ["0", "1"]
        and len(parts) == 3
        and zero.kind == "const"
        and constant_value(zero) == 0
    )


def _factors(t: Term) -> Iterator[Term]:
    if t.kind == "op" and t["operator"].name == "add":
        left, right = t.args
        products = [a for a in (left, right) if a.kind == "op" and a["operator"].name == "mul"]
        if len(products) == 1:
            yield from products[0].args
            yield right if products[0] is left else left


def _without_conversion(t: Term) -> Term:
    return t.args[0] if is_conversion(t) else t


def _is_computed(xs: Term) -> bool:
    """Are elements computed as they are read, beyond a conversion?"""
    return is_lazy(xs) and contains(xs, lambda t: t.kind == "op" and not is_conversion(t))


def _flag(value: bool) -> str:
    return str(value).lower()


def goes_over_columns(loop: Term) -> bool:
    """Does a loop go over the columns of a matrix, as it lies in memory?"""
    xs, transposed = loop.args[1], False
    while True:
        if xs.kind == "transpose":
            transposed = not transposed
        elif xs.kind not in ("zip", "map", "take", "drop", "pad"):
            return transposed
        xs = xs.args[0] if xs.kind == "zip" else xs.args[-1]


def _stored(operand: Term) -> str:
    """The scalar type that an operand is stored as, before any work on it."""
    while operand.kind not in (BOUND, "param", "proj", "generate"):
        if not operand.args:
            break
        operand = operand.args[-1]
    return str(_scalar_of(operand.type))


def _scalar_of(type_: Type) -> Type:
    while not isinstance(type_, Scalar):
        if isinstance(type_, Array):
            type_ = shape_of(type_)[1]
        elif isinstance(type_, Tuple):
            type_ = type_.items[0]
        else:
            break
    return type_
