"""The tables of instruction rows: what an instruction computes, and how its operands lie in lanes and registers.

A row is data that the rest of the compiler composes with. Its meaning and the layouts of its operands are text in
the language; with fragA, fragB, fragC the layouts (from [lane][register] to the matrix), its law is

    fragC (instruction (fragA^-1 a) (fragB^-1 b) (fragC^-1 c)) = meaning a b c

A CPU's vector instruction is a matrix instruction too: one lane, whose register holds a row of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lithify.machine.model import DeviceModel

# a : m.k, b : k.n, c : m.n
MULTIPLY_ADD = (
    "λa b c. map (λr. map (λq. reduce (λs x. s + x.0 * x.1) q.1 (zip r.0 q.0)) (zip (transpose b) r.1)) (zip a c)"
)
_AS_IT_IS = "λx. x"


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """One instruction.

    * `shape`: (m, n, k) of c : m.n += a : m.k times b : k.n;
    * `operands`: scalar types of a, b and of c and the result;
    * `lanes`: how many work-items execute it together;
    * `fragments`: for a, b, c the view from [lane][register] to the matrix, as text in the language;
    * `meaning`: what it computes on the matrices, as text in the language;
    * `needs`: a word of the device model's `architecture` ("" for every device);
    * `emit`: by target, the operation that does it there.
    """

    name: str
    shape: tuple[int, int, int]
    operands: tuple[str, str, str]
    lanes: int
    fragments: tuple[str, str, str]
    meaning: str
    needs: str
    emit: tuple[tuple[str, str], ...]

    def operation_on(self, target: str) -> str | None:
        """The operation that does it on a target ("cpu", "opencl", "c", "cuda"); None where there is none."""
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


def _fma(name: str, scalar: str, lanes_of_vector: int, needs: str, emit: Mapping[str, str]) -> InstructionRow:
    """A fused multiply-add of one scalar with a vector: c : 1.n += a : 1.1 times b : 1.n."""
    return InstructionRow(
        name=name,
        shape=(1, lanes_of_vector, 1),
        operands=(scalar, scalar, scalar),
        lanes=1,
        fragments=(_AS_IT_IS, _AS_IT_IS, _AS_IT_IS),
        meaning=MULTIPLY_ADD,
        needs=needs,
        emit=tuple(emit.items()),
    )


_SCALAR_EMIT = {
    "f32": {"cpu": "llvm.fma.f32", "opencl": "fma", "c": "fmaf", "cuda": "fmaf"},
    "f64": {"cpu": "llvm.fma.f64", "opencl": "fma", "c": "fma", "cuda": "fma"},
}
_VECTOR_BYTES = {"neon": 16, "avx2": 32, "avx512": 64}
_SCALAR_BYTES = {"f32": 4, "f64": 8}

SCALAR_ROWS = tuple(_fma(f"fma.{scalar}", scalar, 1, "", emit) for scalar, emit in _SCALAR_EMIT.items())
VECTOR_ROWS = tuple(
    _fma(
        f"{unit}.fma.{count}.{scalar}",
        scalar,
        count,
        unit,
        {"cpu": f"llvm.fma.v{count}{scalar}", "opencl": "fma"},
    )
    for unit, width in _VECTOR_BYTES.items()
    for scalar, size in _SCALAR_BYTES.items()
    for count in (width // size,)
)
ROWS: Mapping[str, InstructionRow] = MappingProxyType({row.name: row for row in (*SCALAR_ROWS, *VECTOR_ROWS)})


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
