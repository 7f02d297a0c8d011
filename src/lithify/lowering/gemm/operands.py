"""The operands of a product: in which types they are multiplied, and what they are made into before that.

a dot product of the machine (bf16, i8)   converted where they are multiplied, by the instruction; k in groups
other types than the sum's (f16)          converted when they are packed
other work (max 0 x)                      done when they are packed, or wherever they are read
complex numbers                           sums and packed operands planar: real parts apart from imaginary ones
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.levels import HEAP, INLINE, UNROLL, VEC, Level
from lithify.lang.scalars import SCALARS
from lithify.lang.term import Term, contains, subterms
from lithify.lowering.gemm.problem import Product, is_conversion, normal_form, product_in, sums_products
from lithify.lowering.gemm.register import NARROW
from lithify.lowering.needs import is_lazy
from lithify.lowering.tuning import Parameters, Problem
from lithify.machine import DeviceModel, InstructionRow, instruction, rows_for
from lithify.rewrite import (
    Context,
    Derivation,
    Failure,
    Strategy,
    at,
    everywhere,
    first,
    loop_of,
    only,
    repeat,
    seq,
    topdown,
    try_,
)
from lithify.rewrite.unaffected import ignored_element
from lithify.rules.algorithmic import let_atom, split_join_zip
from lithify.rules.fusion import map_fusion, reduce_map_fusion, zip_of_maps
from lithify.rules.instructions import offset_signed, planar_sum, reduce_operand_fission, use_instruction
from lithify.rules.interchange import map_map_shared
from lithify.rules.layout import layout_out, pad_fill_zip, reduce_split_zip, transpose_map_map
from lithify.rules.memory import hoist, hoist_expanded, store_reduce
from lithify.rules.parallel import map_level
from lithify.rules.reduction import split_reduce_any

NONE = "none"
OFFSET = {("i8", "u8", "i32"): "b", ("u8", "i8", "i32"): "a"}
"""For rows of unsigned with signed bytes: the operand that is signed in the program and gets an offset."""


@dataclass(frozen=True)
class Prepared:
    """A product whose operands are as they will be multiplied.

    `reduction` is the loop whose steps add products of tiles, each `terms` terms of the sum; `epilogue` says that there
    is work on its results, and `group` the levels that packing needs for the terms of a step. `interleaved`: so many
    terms of each column follow one another where the right operand is packed, then those of the next column; 0: all
    terms of a step do. `apart` are the components of the pairs of which packing makes something: see `made_apart`.
    """

    reduction: str
    epilogue: bool
    terms: int = 1
    group: tuple[Level, ...] = ()
    interleaved: int = 0
    apart: tuple[int, ...] = ()

    @property
    def as_stored(self) -> bool:
        """Whether packing only moves elements."""
        return not self.group and not self.apart


# ---- which instructions --------------------------------------------------------------------------------------------


def dot_products(problem: Problem, model: DeviceModel) -> tuple[InstructionRow, ...]:
    """The dot products that compute a problem on a device, the one that does most at once first.

    The left operand needs no packing for those that leave it as it is.
    """
    scalars = tuple(problem.scalars[name] for name in ("a", "b", "acc"))
    if "-prologue" in problem.line:
        return ()
    signed = scalars == ("i8", "i8", "i32")
    rows = [row for row in rows_for(model) if row.shape[2] > 1 and row.lanes == 1]
    found = [
        row for row in rows if row.operands == scalars or (signed and row.operands in OFFSET and row.shape[0] == 1)
    ]
    return tuple(sorted(found, key=lambda row: (-row.operations, OFFSET.get(row.operands) == "a")))


def chosen(parameters: Parameters) -> InstructionRow | None:
    """The instruction of a set of parameters; None where sums are computed by ordinary operators."""
    name = parameters["instruction"]
    return None if name == NONE else instruction(str(name))


def computes(problem: Problem) -> tuple[bool, bool]:
    """Whether elements of the left and of the right operand are computed of what is stored: converted, say."""
    left, right = (problem.scalars[name] != problem.scalars["acc"] for name in "ab")
    return left or "-workA " in problem.line, right or "-workB " in problem.line


def wants_packing(problem: Problem, name: str) -> tuple[bool, bool]:
    """Which operands (left, right) must be packed, given the instruction: to be converted, or to lie as it takes them.

    The instruction takes groups of products that follow one another in memory.
    """
    if name == NONE:
        return computes(problem)
    whole = problem.sizes["k"] % instruction(name).shape[2] == 0
    offset = OFFSET.get(instruction(name).operands) if problem.scalars["a"] == problem.scalars["b"] else None
    return not whole or "-transA true" in problem.line or offset == "a", True


def unpacked(parameters: Parameters, problem: Problem) -> str | None:
    """Why a set of parameters is invalid: operands that must be packed and are not."""
    name = str(parameters["instruction"])
    for operand, wanted in zip("AB", wants_packing(problem, name), strict=True):
        if wanted and parameters[f"pack{operand}"] == NONE:
            why = "its elements would be computed at every use" if name == NONE else f"{name} takes it in groups"
            return f"pack{operand}=none: {why}"
    in_tiles = name != NONE and instruction(name).shape[0] > 1
    if in_tiles and parameters["packA"] == NONE and problem.sizes["m"] % parameters.number("mPerThread"):
        return f"packA=none: {name} takes whole tiles, and there are rows left over"
    return None


def fills_up(reduction: Term) -> bool:
    """Is it known how the sum can be filled up with terms that change nothing, and cut into sums?

    Sums of products can; of complex numbers, they alone are computed in planar form.
    """
    if SCALARS[str(reduction.type)].is_complex:
        return not isinstance(planar_sum.run(reduction, Context()), Failure)
    return ignored_element(reduction.args[0]) is not None


def stored(program: Term, product: Product) -> tuple[Product, bool]:
    """The product of a program in normal form with the work on its operands inside of the reduction.

    And whether these are rows and columns of matrices as they are stored, converted where they are multiplied and
    nothing else. Where nothing is converted, it does not matter, and the product stays as it is.
    """
    if not contains(program, is_conversion):
        return product, True
    made = inside(product.loops.k).run(program, Context())
    changed = product if isinstance(made, Failure) else product_in(made) or product
    arrays = (*changed.reduction.args[2].args, *[loop.args[1] for loop in changed.nest])
    return changed, sums_products(changed.reduction) and all(map(_is_stored, arrays))


def _is_stored(xs: Term) -> bool:
    """An input, a variable or a component of one, whole or transposed; or several zipped."""
    if xs.kind in ("transpose", "proj", "zip"):
        return all(map(_is_stored, xs.args))
    return xs.kind in ("param", "bound")


# ---- before the product is tiled -----------------------------------------------------------------------------------


def prepare(derivation: Derivation, product: Product, parameters: Parameters) -> Prepared:
    """Bring the operands of a product in normal form to what the parameters say."""
    row, k = chosen(parameters), product.loops.k
    epilogue = product.nest[-1].args[0].args[0] is not product.reduction
    left, right = (1, 0) if product.swapped else (0, 1)
    packed = tuple([i for i, name in ((left, "packA"), (right, "packB")) if parameters[name] != NONE])
    if SCALARS[str(product.reduction.type)].is_complex:
        derivation.apply(at(loop_of(k, "reduce"), planar_sum))
        derivation.apply(computed_where_read(product))
        return Prepared(k, True, apart=packed)
    if not contains(derivation.term, is_conversion):
        derivation.apply(computed_where_read(product))
        return Prepared(k, epilogue)
    derivation.apply(try_(inside(k)))
    derivation.apply(computed_where_read(product))
    if row is None:
        return Prepared(k, epilogue, apart=packed)
    if row.operands in OFFSET and _stored_signed(derivation, k):
        derivation.apply(at(loop_of(k, "reduce"), offset_signed(right if OFFSET[row.operands] == "b" else left)))
        _sums_before(derivation, product, f"{k}.sum")
        epilogue = True
    derivation.apply(at(loop_of(k, "reduce"), split_reduce_any(row.shape[2])))
    derivation.apply(try_(topdown(pad_fill_zip)) >> at(loop_of(f"{k}.block", "reduce"), reduce_split_zip))
    terms = row.shape[2]
    if row.shape[0] == 1:
        return Prepared(f"{k}.block", epilogue, terms, group=(UNROLL,))
    together = row.scalars[2].bytes // row.scalars[1].bytes
    return Prepared(f"{k}.block", epilogue, terms, group=(VEC,), interleaved=together)


def made_apart(k: str, components: tuple[int, ...]) -> Strategy:
    """What a reduction of pairs makes of these components is made before, in what will be packed."""
    strategy = seq(*[try_(at(loop_of(k, "reduce"), reduce_operand_fission(i))) for i in components])
    strategy.name = f"made-apart({k})"
    return strategy


def computed_where_read(product: Product) -> Strategy:
    """Work on the operands is done by whoever reads them: as they are packed, or at every use."""
    everything = try_(everywhere(only(_is_work, map_level(INLINE), "inline-work")))
    k, nest = product.loops.k, (product.loops.m, product.loops.n, *product.loops.batch)
    loops = [loop_of(k, "reduce"), *[loop_of(name, "map") for name in nest]]
    strategy = seq(*[at(loop, at((2 if number == 0 else 1,), everything)) for number, loop in enumerate(loops)])
    strategy.name = f"computed-where-read({k})"
    return strategy


def _is_work(t: Term) -> bool:
    """Is it a map that computes, without loops? It may be computed wherever it is read."""
    return t.kind == "map" and t["level"] is None and contains(t.args[0], lambda u: u.kind == "op") and is_lazy(t)


def inside(k: str) -> Strategy:
    """Factors are converted where they are multiplied: maps over the operands move into the reduction."""
    fused = repeat(first(at((2,), zip_of_maps), reduce_map_fusion))
    around = repeat(topdown(first(transpose_map_map, zip_of_maps, map_fusion)))
    strategy = around >> normal_form() >> try_(at(loop_of(k, "reduce"), fused))
    strategy.name = "convert-inside"
    return strategy


def _stored_signed(derivation: Derivation, k: str) -> bool:
    """Are both factors signed bytes?"""
    is_wanted = loop_of(k, "reduce")
    pairs = next(t for t in subterms(derivation.term) if is_wanted(t)).args[2]
    return all(str(a.type).endswith(".i8") for a in pairs.args)


def _sums_before(derivation: Derivation, product: Product, name: str) -> None:
    """The sums of rows (or columns), which the offset asks for, are computed before the product, by loops of their own.

    Their levels are left open, as those of a sum in any program.
    """
    loops = product.loops
    derivation.apply(at(loop_of(name, "reduce"), store_reduce(HEAP)))
    for loop in (loops.n, loops.m, *reversed(loops.batch)):
        derivation.apply(try_(at(loop, hoist(HEAP))) >> try_(at(loop, hoist_expanded(HEAP))) >> NARROW)
    derivation.apply(repeat(topdown(let_atom)))


# ---- in the register tile ------------------------------------------------------------------------------------------


def instructions(k: str, rows: str, columns: str, row: InstructionRow) -> Strategy:
    """The sums of the register tile by instructions, as many rows and columns at a time as one computes."""
    m, n, _ = row.shape
    tile = f"{columns}.tile" if m == 1 else f"{rows}.tile"
    cut = at(columns, split_join_zip(n)) >> NARROW
    if m > 1:  # rows of a block inside of its columns: then the rows of an instruction stand around its columns
        in_rows = at(rows, split_join_zip(m)) >> NARROW
        cut = in_rows >> cut >> try_(at(tile, layout_out)) >> at(tile, map_map_shared) >> NARROW
    levels = [try_(at(f"{loop}.block", map_level(UNROLL))) for loop in (rows, columns)]
    strategy = at(loop_of(k, "reduce"), seq(cut, at(tile, use_instruction(row.name)), *levels))
    strategy.name = f"instructions({k}, {rows}, {columns}, {row.name})"
    return strategy
