"""The tables of instruction rows: what an instruction computes, and how its operands lie in lanes and registers.

A row is data that the rest of the compiler composes with. Its meaning and the layouts of its operands are text in
the language; with fragA, fragB, fragC the layouts (from [lane][register] to the matrix), its law is

    fragC (instruction (fragA^-1 a) (fragB^-1 b) (fragC^-1 c)) = meaning a b c

A CPU's vector instruction is a matrix instruction too: one lane, whose register holds a row of the result; a tile of a
CPU's matrix unit holds it all. The meaning says levels: it is also how a target without the instruction does it.

Exactness: integers are exact (sums wrap around). Floating point products are exact where the result's type holds them,
and sums are rounded in an order that each instruction chooses; those of bf16 on x86 take subnormal numbers for zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from lithify.lang.errors import TypeMismatch
from lithify.lang.instructions import INSTRUCTIONS
from lithify.lang.scalars import SCALARS, Scalar, i32
from lithify.lang.term import Term, abstract
from lithify.lang.types import Type, array
from lithify.machine.model import DeviceModel

# a : m.k, b : k.n, c : m.n; {a} and {b} convert a factor to the type of the sum; {level} is that of its loops.
MULTIPLY_ADD = """λa b c. map[{level}] (λr.
  map[vec] (λq. reduce[{level}, out] (λs x. s + {a}x.0 * {b}x.1) q.1 (zip r.0 q.0)) (zip (transpose b) r.1)
) (zip a c)"""
_AS_IT_IS = "λx. x"
# The type, in an operation, of an operand that a tile register holds.
TILE = "tile"


@dataclass(frozen=True, slots=True)
class Operation:
    """How a target names an instruction: a function and its operands in order, each a, b or c with its type there.

    An operand whose type there holds more than the instruction's operand is that operand again and again.
    """

    name: str
    operands: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """One instruction.

    * `shape`: (m, n, k) of c : m.n += a : m.k times b : k.n;
    * `operands`: scalar types of a, b and of c and the result;
    * `lanes`: how many work-items execute it together;
    * `fragments`: for a, b, c the view from [lane][register] to the matrix, as text in the language;
    * `meaning`: what it computes on the matrices, as text in the language;
    * `needs`: a word of the device model's `architecture` ("" for every device);
    * `emit`: by target, the operation that does it there; other targets do what the meaning says;
    * `line`: 0 where the registers of an operand follow one another in memory; else the bytes of a line of registers:
      lines may lie at any equal distance from one another.
    """

    name: str
    shape: tuple[int, int, int]
    operands: tuple[str, str, str]
    lanes: int
    fragments: tuple[str, str, str]
    meaning: str
    needs: str
    emit: tuple[tuple[str, Operation], ...]
    line: int = 0

    def operation_on(self, target: str) -> Operation | None:
        """The operation that does it on a target ("cpu", ...); None where there is none."""
        return dict(self.emit).get(target)

    @property
    def operations(self) -> int:
        """Scalar operations that one execution does; a multiply-add counts as two."""
        m, n, k = self.shape
        return 2 * m * n * k

    @property
    def elements(self) -> tuple[int, int, int]:
        """Elements of a, b and c that each lane holds."""
        m, n, k = self.shape
        return m * k // self.lanes, k * n // self.lanes, m * n // self.lanes

    @property
    def in_line(self) -> tuple[int, int, int]:
        """How many elements of a, b and c follow one another in memory at least: those of a line, or all."""
        if not self.line:
            return self.elements
        a, b, c = (self.line // scalar.bytes for scalar in self.scalars)
        return a, b, c

    @property
    def scalars(self) -> tuple[Scalar, Scalar, Scalar]:
        """The scalar types of a, b and c."""
        a, b, c = (SCALARS[name] for name in self.operands)
        return a, b, c

    @property
    def types(self) -> tuple[Type, Type, Type]:
        """The types of the matrices a, b and c."""
        m, n, k = self.shape
        a, b, c = self.scalars
        return array(m, k, a), array(k, n, b), array(m, n, c)

    @property
    def definition(self) -> Term:
        """The meaning as a closed function of three matrices."""
        return _definition(self)

    @property
    def layouts(self) -> tuple[Term, Term, Term]:
        """The views from [lane][register] to the matrices a, b and c, as closed functions (on i32: they move data)."""
        return _layouts(self)

    def result_type(self, operands: tuple[Type, ...]) -> Type:
        """The type of the result for operands of the given types; raises TypeMismatch where they are others."""
        if operands != self.types:
            given, expected = (", ".join(map(str, types)) for types in (operands, self.types))
            raise TypeMismatch(f"instr[{self.name}] takes ({expected}), not ({given})")
        return operands[2]


@cache
def _definition(row: InstructionRow) -> Term:
    from lithify.lang.coerce import as_function, as_term
    from lithify.lang.elaborate import elaborate
    from lithify.lang.parser import parse_expression

    function = as_function(elaborate(parse_expression(row.meaning, row.name)), row.name)
    first, second, third = row.types

    def body(a: Term, b: Term, c: Term) -> Term:
        return as_term(as_function(as_function(function(a), row.name)(b), row.name)(c), third)

    return abstract(first, lambda a: abstract(second, lambda b: abstract(third, lambda c: body(a, b, c))))


@cache
def _layouts(row: InstructionRow) -> tuple[Term, Term, Term]:
    from lithify.lang.coerce import lambda_of
    from lithify.lang.elaborate import elaborate
    from lithify.lang.parser import parse_expression

    def view(text: str, held: int, rows: int, columns: int) -> Term:
        function = elaborate(parse_expression(text, row.name))
        return lambda_of(function, (array(row.lanes, held, i32),), array(rows, columns, i32), row.name)

    m, n, k = row.shape
    (of_a, of_b, of_c), (a, b, c) = row.fragments, row.elements
    return view(of_a, a, m, k), view(of_b, b, k, n), view(of_c, c, m, n)


# ---- the rows ------------------------------------------------------------------------------------------------------

_LLVM = {"f32": "float", "f64": "double", "bf16": "bfloat", "i32": "i32", "i16": "i16", "i8": "i8", "u8": "i8"}
_BYTES = {name: scalar.bytes for name, scalar in SCALARS.items()}
_UNITS = {"neon": 16, "avx2": 32, "avx512": 64}


def _vector(scalar: str, lanes: int) -> str:
    """LLVM's vector type; of one lane, the scalar type."""
    return f"<{lanes} x {_LLVM[scalar]}>" if lanes > 1 else _LLVM[scalar]


def _row(name: str, n: int, k: int, operands: tuple[str, str, str], needs: str, operation: Operation) -> InstructionRow:
    """One lane: c : 1.n += a : 1.k times b : k.n, where b lies column by column."""
    a, b, c = operands
    converted = {"a": f"{c} " if a != c else "", "b": f"{c} " if b != c else "", "level": "unroll"}
    return InstructionRow(
        name=name,
        shape=(1, n, k),
        operands=operands,
        lanes=1,
        fragments=(_AS_IT_IS, _AS_IT_IS if k == 1 else f"λx. transpose (split {k} (join x))", _AS_IT_IS),
        meaning=MULTIPLY_ADD.format(**converted),
        needs=needs,
        emit=(("cpu", operation),),
    )


def _fma(name: str, scalar: str, lanes: int, needs: str) -> InstructionRow:
    """A fused multiply-add of one scalar with a vector: c : 1.n += a : 1.1 times b : 1.n."""
    type_ = _vector(scalar, lanes)
    short = f"v{lanes}{scalar}" if lanes > 1 else scalar
    operation = Operation(f"llvm.fma.{short}", tuple((operand, type_) for operand in "abc"))
    return _row(name, lanes, 1, (scalar, scalar, scalar), needs, operation)


def _dot(unit: str, k: int, operands: tuple[str, str, str], needs: str, intrinsic: str) -> InstructionRow:
    """Sums of k products in each lane: c : 1.n += a : 1.k times b : k.n.

    LLVM's dot products of x86 on integers take vectors of i32.
    """
    a, b, c = operands
    n = _UNITS[unit] // _BYTES[c]
    name = f"{unit}.dot.{n}x{k}.{a if a == b else a + b}"
    packed = unit != "neon" and c == "i32"
    factor = _vector(c, n) if packed else _vector(a, n * k)
    first, second = ("b", "a") if (a, b) == ("i8", "u8") else ("a", "b")  # x86 has the unsigned factor first
    operation = Operation(intrinsic, (("c", _vector(c, n)), (first, factor), (second, factor)))
    return _row(name, n, k, operands, needs, operation)


_TILE_ROWS, _TILE_LINE = 16, 64


def _tile(factors: tuple[str, str], result: str, needs: str, intrinsic: str) -> InstructionRow:
    """A product of tiles of 16 lines of 64 bytes each: c : 16.16 += a : 16.k times b : k.16.

    A line of b holds, for each column, as many terms of its sum as fill the place of one result.
    (Intel Architecture Instruction Set Extensions Programming Reference, chapter on AMX.)
    """
    a, b = factors
    k, group = _TILE_LINE // _BYTES[a], _BYTES[result] // _BYTES[b]
    n = _TILE_LINE // _BYTES[result]
    converted = {"a": f"{result} ", "b": f"{result} ", "level": "seq"}
    return InstructionRow(
        name=f"amx.{_TILE_ROWS}x{n}x{k}.{a if a == b else a + b}",
        shape=(_TILE_ROWS, n, k),
        operands=(a, b, result),
        lanes=1,
        fragments=(
            f"λx. split {k} (join x)",
            f"λx. join (map transpose (split {n} (split {group} (join x))))",
            f"λx. split {n} (join x)",
        ),
        meaning=MULTIPLY_ADD.format(**converted),
        needs=needs,
        emit=(("cpu", Operation(intrinsic, (("c", TILE), ("a", TILE), ("b", TILE)))),),
        line=_TILE_LINE,
    )


SCALAR_ROWS = tuple(_fma(f"fma.{scalar}", scalar, 1, "") for scalar in ("f32", "f64"))
VECTOR_ROWS = tuple(
    _fma(f"{unit}.fma.{width // _BYTES[scalar]}.{scalar}", scalar, width // _BYTES[scalar], unit)
    for unit, width in _UNITS.items()
    for scalar in ("f32", "f64")
)
DOT_ROWS = (
    _dot("avx512", 2, ("bf16", "bf16", "f32"), "avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.512"),
    _dot("avx512", 4, ("u8", "i8", "i32"), "avx512vnni", "llvm.x86.avx512.vpdpbusd.512"),
    _dot("avx512", 4, ("i8", "u8", "i32"), "avx512vnni", "llvm.x86.avx512.vpdpbusd.512"),
    _dot("avx512", 2, ("i16", "i16", "i32"), "avx512vnni", "llvm.x86.avx512.vpdpwssd.512"),
    _dot("avx2", 4, ("u8", "i8", "i32"), "avxvnni", "llvm.x86.avx512.vpdpbusd.256"),
    _dot("avx2", 4, ("i8", "u8", "i32"), "avxvnni", "llvm.x86.avx512.vpdpbusd.256"),
    _dot("avx2", 2, ("i16", "i16", "i32"), "avxvnni", "llvm.x86.avx512.vpdpwssd.256"),
    _dot("neon", 2, ("bf16", "bf16", "f32"), "bf16", "llvm.aarch64.neon.bfdot.v4f32.v8bf16"),
    _dot("neon", 4, ("i8", "i8", "i32"), "dotprod", "llvm.aarch64.neon.sdot.v4i32.v16i8"),
    _dot("neon", 4, ("u8", "u8", "i32"), "dotprod", "llvm.aarch64.neon.udot.v4i32.v16i8"),
)
TILE_ROWS = (
    _tile(("bf16", "bf16"), "f32", "amxbf16", "llvm.x86.tdpbf16ps"),
    _tile(("i8", "i8"), "i32", "amxint8", "llvm.x86.tdpbssd"),
    _tile(("i8", "u8"), "i32", "amxint8", "llvm.x86.tdpbsud"),
    _tile(("u8", "i8"), "i32", "amxint8", "llvm.x86.tdpbusd"),
    _tile(("u8", "u8"), "i32", "amxint8", "llvm.x86.tdpbuud"),
)
ROWS: Mapping[str, InstructionRow] = MappingProxyType(
    {row.name: row for row in (*SCALAR_ROWS, *VECTOR_ROWS, *DOT_ROWS, *TILE_ROWS)}
)
INSTRUCTIONS.update(ROWS)


def instruction(name: str) -> InstructionRow:
    """The row of this name; raises LookupError, listing what there is, where it is missing."""
    try:
        return ROWS[name]
    except KeyError:
        raise LookupError(f"no instruction named {name}; there are {', '.join(ROWS)}") from None


def rows_for(model: DeviceModel) -> tuple[InstructionRow, ...]:
    """The instructions that a device executes, the one that does most at once first."""
    words = set(model.architecture.split())
    rows = [row for row in ROWS.values() if not row.needs or row.needs in words]
    return tuple(sorted(rows, key=lambda row: -row.operations))
