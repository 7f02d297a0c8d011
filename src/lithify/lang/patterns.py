"""The patterns of the core language: one declaration each.

A declaration holds the name, the attributes, the type signature with sizes, and a one-line meaning. The reader, the
printer, the type checker and the reference pages read it. Adding a pattern touches its declaration here, its evaluation
and its translation; nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lithify.arith import Expr, const, proves
from lithify.lang.assumptions import OpenCondition, never_equal
from lithify.lang.errors import TypeMismatch
from lithify.lang.index_functions import IndexFormula, operand_variable
from lithify.lang.scalars import Scalar
from lithify.lang.signature import Signature
from lithify.lang.types import Array, Function, Index, Tuple, Type, reshaped, shape_of

if TYPE_CHECKING:
    from lithify.lang.term import Term

Attrs = tuple[Any, ...]
Args = tuple["Term", ...]

_INDICES = "numbers do not become indices: make them a parameter, ids : n.idx[m], whose values are checked by a call"


class Pattern:
    """The declaration of a primitive.

    `signature` is text (see `lithify.lang.signature`); patterns whose type cannot be said that way (variable arity,
    leaves) give `typing`, a function from attributes and children to the type. `simplify` holds the always-on laws.
    `layout` marks views that move no data.
    """

    __slots__ = ("attributes", "layout", "meaning", "name", "signature", "simplify", "typing")

    def __init__(
        self,
        name: str,
        attributes: tuple[str, ...] = (),
        signature: str = "",
        meaning: str = "",
        *,
        conditions: tuple[str, ...] = (),
        typing: Callable[[Attrs, Args], Type] | None = None,
        simplify: Callable[[Attrs, Args], Term | None] | None = None,
        layout: bool = False,
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.signature = Signature(signature, conditions) if typing is None else None
        self.meaning = meaning
        self.typing = typing
        self.simplify = simplify
        self.layout = layout

    def infer(self, attrs: Attrs, args: Args) -> Type:
        """The type of a node; raises TypeMismatch."""
        if self.typing is not None:
            return self.typing(attrs, args)
        assert self.signature is not None
        attributes = dict(zip(self.attributes, attrs, strict=True))
        return self.signature.infer(self.name, attributes, tuple(a.type for a in args))

    def __repr__(self) -> str:
        return f"Pattern({self.name})"


# ---- types that a signature cannot say -----------------------------------------------------------------------------


def _attribute_type(attrs: Attrs, _args: Args) -> Type:
    type_ = attrs[1]
    assert isinstance(type_, Type)
    return type_


def _lambda_type(attrs: Attrs, args: Args) -> Type:
    return Function(attrs[0], args[0].type)


def _applied_type(attrs: Attrs, args: Args) -> Type:
    """Of an operator or an instruction."""
    type_ = attrs[0].result_type(tuple(a.type for a in args))
    assert isinstance(type_, Type)
    return type_


def _tuple_type(_attrs: Attrs, args: Args) -> Type:
    if len(args) < 2 or any(isinstance(a.type, Function) for a in args):
        raise TypeMismatch(f"a tuple has two or more values, not ({', '.join(str(a.type) for a in args)})")
    return Tuple(*[a.type for a in args])


def _projection_type(attrs: Attrs, args: Args) -> Type:
    type_ = args[0].type
    if not isinstance(type_, Tuple) or not 0 <= attrs[0] < len(type_.items):
        raise TypeMismatch(f"component {attrs[0]} is taken of a {type_}")
    return type_.items[attrs[0]]


def _arrays(name: str, args: Args) -> list[Array]:
    arrays = [a.type for a in args]
    for type_ in arrays:
        if not isinstance(type_, Array):
            raise TypeMismatch(f"{name} takes arrays, not {type_}")
    return [t for t in arrays if isinstance(t, Array)]


def _zip_type(_attrs: Attrs, args: Args) -> Type:
    from lithify.arith import proves_equal

    arrays = _arrays("zip", args)
    if len(arrays) < 2:
        raise TypeMismatch("zip takes two or more arrays")
    type_, conditions, mismatch = Array(arrays[0].size, Tuple(*[t.element for t in arrays])), [], None
    for other in arrays[1:]:
        if proves_equal(arrays[0].size, other.size):
            continue
        hint = f"the arrays are {' and '.join(map(str, arrays))}{_as_long(arrays[0], other)}"
        mismatch = f"zip of arrays of different lengths: {arrays[0].size} and {other.size}", hint
        if never_equal(arrays[0].size, other.size):
            raise TypeMismatch(mismatch[0], hint=mismatch[1])
        conditions.append(f"{arrays[0].size} = {other.size}")
    if mismatch is not None:
        raise OpenCondition(mismatch[0], conditions, type_, hint=mismatch[1])
    return type_


def _as_long(first: Array, other: Array) -> str:
    """Where an array has dimensions of length 1 too many or too few for another's length: what to make of it."""
    for type_, wanted in ((other, first), (first, other)):
        shape = reshaped(len(shape_of(wanted)[0]), type_)
        if shape is not None and len(shape) != len(shape_of(type_)[0]) and shape[0] is wanted.size:
            return f": {type_} fits as .reshape({', '.join(map(str, shape))})"
    return ""


def _unzip_type(_attrs: Attrs, args: Args) -> Type:
    (array,) = _arrays("unzip", args)
    if not isinstance(array.element, Tuple):
        raise TypeMismatch(f"unzip takes an array of tuples, not {array}")
    return Tuple(*[Array(array.size, item) for item in array.element.items])


def _concat_type(_attrs: Attrs, args: Args) -> Type:
    arrays = _arrays("concat", args)
    if len(arrays) < 2:
        raise TypeMismatch("concat takes two or more arrays")
    total = const(0)
    for array in arrays:
        if array.element is not arrays[0].element:
            raise TypeMismatch(f"concat of arrays of {arrays[0].element} and of {array.element}")
        total = total + array.size
    return Array(total, arrays[0].element)


def _literal_array_type(_attrs: Attrs, args: Args) -> Type:
    for arg in args:
        if arg.type is not args[0].type:
            raise TypeMismatch(f"an array of {args[0].type} and {arg.type}")
    if not args:
        raise TypeMismatch("an array literal has at least one element")
    return Array(len(args), args[0].type)


def _pad_type(attrs: Attrs, args: Args) -> Type:
    left, right, mode = attrs
    array = _arrays("pad", args[:1])[0]
    if mode == "fill":
        if len(args) != 2 or args[1].type is not array.element:
            given = args[1].type if len(args) == 2 else "none"
            raise TypeMismatch(f"pad of {array} needs a fill of type {array.element}, {given} given")
    elif mode not in ("clamp", "mirror", "wrap") or len(args) != 1:
        raise TypeMismatch(f"pad knows fill c, clamp, mirror and wrap, not {mode}")
    for amount in (left, right):
        if amount.lo < 0:
            raise TypeMismatch(f"pad by {amount}: the amount is negative; use take or drop")
    type_, added, empty = Array(array.size + left + right, array.element), left + right, array.size.constant == 0
    # (What fills up to whole blocks is not certain to add anything, and does not where there is nothing.)
    if mode != "fill" and not proves(array.size - 1) and (added.constant != 0 if empty else proves(added - 1)):
        padded, hint = f"pad {left} {right} {mode}", f"pad with a number, `pad {left} {right} 0 xs`, or use it"
        if empty:
            message = f"{padded} of an empty array, {array}: there is no element to repeat"
            raise TypeMismatch(message, hint=f"{hint} where there is an element")
        message = f"{padded} of an array that may be empty, {array}: there would be no element to repeat"
        raise OpenCondition(message, [f"1 <= {array.size}"], type_, hint=f"{hint} where there surely is an element")
    return type_


def _reindex_type(attrs: Attrs, args: Args) -> Type:
    from lithify.arith import proves_equal

    (function,) = attrs
    (array,) = _arrays("reindex", args)
    if not proves_equal(function.source, array.size):
        raise TypeMismatch(f"reindex {function}: made for length {function.source}, given {array}")
    return Array(function.extent, array.element)


def _to_type(_attrs: Attrs, args: Args) -> Type:
    if isinstance(args[0].type, Function):
        raise TypeMismatch("to[..] takes a value, not a function")
    return args[0].type


def _scatter_type(attrs: Attrs, args: Args) -> Type:
    """ids : n.idx[m] and xs : n.t give m.t; a permutation needs n = m, an atomic operator any n."""
    from lithify.arith import proves_equal

    mode, ids, array = attrs[0], *_arrays("scatter", args)
    if not isinstance(ids.element, Index) or not proves_equal(ids.size, array.size):
        hint = None if isinstance(ids.element, Index) else _INDICES
        raise TypeMismatch(f"scatter takes ids : n.idx[m] and xs : n.t, not {ids} and {array}", hint=hint)
    if mode == "permutation" and not proves_equal(ids.element.size, ids.size):
        raise TypeMismatch(
            f"a permutation of {ids.size} elements cannot have indices below {ids.element.size}",
            hint="`scatter[add] ids xs` adds up what comes to one place, and leaves 0 where nothing does",
        )
    if mode != "permutation" and not isinstance(array.element, Scalar):
        raise TypeMismatch(f"an atomic scatter takes scalars, not {array.element}")
    return Array(ids.element.size, array.element)


# ---- always-on laws ------------------------------------------------------------------------------------------------
# They live in the constructor that substitution uses: a surviving projection would hide a zip from the next rule.


def _project_tuple(attrs: Attrs, args: Args) -> Term | None:
    return args[0].args[attrs[0]] if args[0].kind == "tuple" else None


def _transpose_twice(_attrs: Attrs, args: Args) -> Term | None:
    return args[0].args[0] if args[0].kind == "transpose" else None


def _join_of_split(_attrs: Attrs, args: Args) -> Term | None:
    return args[0].args[0] if args[0].kind == "split" else None


def _split_of_join(attrs: Attrs, args: Args) -> Term | None:
    if args[0].kind == "join":
        inner = args[0].args[0].type
        assert isinstance(inner, Array) and isinstance(inner.element, Array)
        if inner.element.size is attrs[0]:
            return args[0].args[0]
    return None


def _map_identity(attrs: Attrs, args: Args) -> Term | None:
    """`map id xs` is xs; with a level it is a copy and stays."""
    if attrs[0] is None and args[0].kind == "lambda":
        body = args[0].args[0]
        if body.kind == "bound" and body.attrs[0] == 0:
            return args[1]
    return None


def _take_all(attrs: Attrs, args: Args) -> Term | None:
    type_ = args[0].type
    return args[0] if isinstance(type_, Array) and type_.size is attrs[0] else None


def _by_zero(attrs: Attrs, args: Args) -> Term | None:
    """`drop 0 xs` and `pad 0 0 xs` are xs."""
    amounts = attrs[:2] if len(attrs) > 1 else attrs
    return args[0] if all(amount.constant == 0 for amount in amounts) else None


def _small_power(attrs: Attrs, args: Args) -> Term | None:
    """`x ^ 2` is x * x: a whole power is a product, where that is as good as the function."""
    from lithify.lang.build import power

    if attrs[0].name != "pow" or args[1].kind != "const" or not isinstance(args[0].type, Scalar):
        return None
    exponent = args[1].attrs[0].value
    return power(args[0], int(exponent)) if exponent in _PRODUCTS else None


_PRODUCTS = range(-4, 5)  # of more factors the roundings add up to more than the function's error


def _index_of_indices(attrs: Attrs, args: Args) -> Term | None:
    """One formula of an index that is computed from computed ones, of those operands that it depends on, each once."""
    from lithify.lang.build import const as constant
    from lithify.lang.digest import digest
    from lithify.lang.term import make

    formula, type_ = attrs
    operands: list[Term] = []
    values: list[Expr] = []
    for arg in args:
        if arg.kind == "const":
            values.append(arg.attrs[0].value)
            continue
        inner = arg.args if arg.kind == "index" else (arg,)
        operands += [o for o in inner if o not in operands]
        variables = [_variable(operands.index(o), o) for o in inner]
        values.append(arg.attrs[0].of(variables) if arg.kind == "index" else variables[0])
    expression = formula.of(values)
    if len(operands) > 1:  # in an order that the term alone decides
        ordered = sorted(operands, key=digest)
        expression = IndexFormula(expression, tuple(map(_extent, operands))).of(
            [_variable(ordered.index(o), o) for o in operands]
        )
        operands = ordered
    used = [k for k, o in enumerate(operands) if expression.variables() & _variable(k, o).variables()]
    if not used and isinstance(type_, Index) and proves(expression) and proves(type_.size - 1 - expression):
        return constant(expression, type_)
    if not used and not isinstance(type_, Index) and expression.constant is not None:
        return constant(expression.constant, type_)
    if len(used) == 1 and expression is _variable(used[0], operands[used[0]]) and operands[used[0]].type is type_:
        return operands[used[0]]
    kept = [operands[k] for k in used] if used else operands
    if kept == list(args):
        return None
    here = IndexFormula(expression, tuple(map(_extent, operands)))
    places = [_variable(kept.index(o) if o in kept else 0, o) for o in operands]
    return make(PATTERNS["index"], (IndexFormula(here.of(places), tuple(map(_extent, kept))), type_), tuple(kept))


def _extent(t: Term) -> Expr:
    assert isinstance(t.type, Index)
    return t.type.size


def _variable(position: int, t: Term) -> Expr:
    return operand_variable(position, _extent(t))


# ---- the declarations ----------------------------------------------------------------------------------------------

_DECLARATIONS = (
    Pattern("param", ("name", "type"), meaning="a free variable: an input of the program", typing=_attribute_type),
    Pattern("bound", ("index", "type"), meaning="a bound variable (de Bruijn index)", typing=_attribute_type),
    Pattern("const", ("value", "type"), meaning="a scalar or index constant", typing=_attribute_type),
    Pattern("lambda", ("parameter",), meaning="a function; only an argument of patterns", typing=_lambda_type),
    Pattern("op", ("operator",), meaning="a scalar operator applied", typing=_applied_type, simplify=_small_power),
    Pattern("tuple", (), meaning="a tuple of values", typing=_tuple_type),
    Pattern("proj", ("component",), meaning="a component of a tuple", typing=_projection_type, simplify=_project_tuple),
    Pattern("let", (), "s -> (s -> t) -> t", "let x = e in b: e is evaluated once, there"),
    Pattern("array", (), meaning="an array of the given elements", typing=_literal_array_type),
    Pattern("index", ("formula", "type"), meaning="an index that is computed from others, or that as an integer",
            typing=_attribute_type, simplify=_index_of_indices),
    Pattern("at", (), "n.t -> idx[n] -> t", "the element at an index"),
    Pattern("map", ("level", "name"), "(s -> t) -> n.s -> n.t", "apply a function to every element",
            simplify=_map_identity),
    Pattern("reduce", ("level", "memory", "name"), "(a -> s -> a) -> a -> n.s -> a",
            "combine the elements from the left, starting with the initial value"),
    Pattern("scan", ("level", "memory", "name"), "(a -> s -> a) -> a -> n.s -> n.a",
            "all the intermediate results of reduce, after each element (inclusive)"),
    Pattern("pipe", ("slots", "lag", "roles", "name"), "(a -> t -> a) -> (s -> t) -> a -> n.s -> a",
            "reduce (λacc x. f acc (load x)) z xs, with `slots` loaded tiles in flight"),
    Pattern("iterate", ("count",), "(t -> t) -> t -> t", "apply a function `count` times"),
    Pattern("generate", ("size",), "(idx[size] -> t) -> size.t", "the array of f i for i = 0 .. size - 1"),
    Pattern("to", ("memory",), meaning="write the value to a memory", typing=_to_type),
    Pattern("instr", ("row",), meaning="a matrix instruction, a row of the machine's table", typing=_applied_type),
    Pattern("launch", ("grid", "group"), "t -> t", "the root of a kernel: groups in the grid, items in a group"),
    Pattern("scatter", ("mode",), typing=_scatter_type,
            meaning="element i at position ids[i], each once; of `scatter[add]` the sum of all that come there"),
    # views: they move no data
    Pattern("split", ("size",), "n.t -> {n // size}.size.t", "rows of `size` elements", conditions=("size divides n",),
            simplify=_split_of_join, layout=True),
    Pattern("join", (), "n.m.t -> {n * m}.t", "the rows one after another", simplify=_join_of_split, layout=True),
    Pattern("transpose", (), "n.m.t -> m.n.t", "swap the two outer dimensions", simplify=_transpose_twice, layout=True),
    Pattern("take", ("size",), "n.t -> size.t", "the first elements", conditions=("0 <= size", "size <= n"),
            simplify=_take_all, layout=True),
    Pattern("drop", ("size",), "n.t -> {n - size}.t", "all but the first elements",
            conditions=("0 <= size", "size <= n"), simplify=_by_zero, layout=True),
    Pattern("slide", ("size", "step"), "n.t -> {(n - size) // step + 1}.size.t",
            "the windows of `size` elements at distance `step`; none where up to `step` elements are missing for one",
            conditions=("1 <= step", "size <= n + step"), layout=True),
    Pattern("pad", ("left", "right", "mode"), meaning="more elements at both ends: fill c, clamp, mirror or wrap",
            typing=_pad_type, simplify=_by_zero, layout=True),
    Pattern("zip", (), meaning="the array of tuples of corresponding elements", typing=_zip_type, layout=True),
    Pattern("unzip", (), meaning="the tuple of arrays of components", typing=_unzip_type, layout=True),
    Pattern("concat", (), meaning="arrays one after another", typing=_concat_type, layout=True),
    Pattern("replicate", ("size",), "t -> size.t", "the same element at every position", layout=True),
    Pattern("reindex", ("function",), meaning="element function(i) at position i", typing=_reindex_type, layout=True),
    Pattern("gather", (), "m.idx[n] -> n.t -> m.t", "element ids[i] at position i", layout=True),
    Pattern("swz", ("width",), "n.m.t -> n.m.t",
            "16-byte chunks of a row xored by the row number, within `width` bytes", layout=True),
)  # fmt: skip

PATTERNS: dict[str, Pattern] = {pattern.name: pattern for pattern in _DECLARATIONS}
