"""What distinguishes one C-like language from another, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lithify.lang.scalars import Kind, Scalar, f32, f64, u32, u64
from lithify.targets.cdialect.text import Template


@dataclass(frozen=True, slots=True)
class Storage:
    """How a scalar type lies in memory where that is not how it is computed with.

    `load` has {pointer}, {index}; `store` has {value} too; `vector_load` and `vector_store` have {width} and {address}
    instead (None: such accesses are written lane by lane). `parameter` is the element type of a buffer that is a
    parameter, `array` that of an array declared in a kernel; `cast` is applied to the latter's name, with {space}.
    """

    parameter: str
    array: str
    load: Template
    store: str
    vector_load: Template | None = None
    vector_store: str | None = None
    cast: str = "{name}"


@dataclass(frozen=True, slots=True)
class VectorForms:
    """How vectors are written in a language that has them.

    `load` and `store` have {width} and {address}; `aligned` is the lvalue used when the address is known to be a
    multiple of the vector's bytes, with {type} and {address}. `components` names the elements. `lane_by_lane` are
    operators, with the type they are computed in, that are not applied to vectors although the language has them.
    """

    widths: tuple[int, ...]  # largest first
    load: str
    store: str
    aligned: str
    components: str
    scalars: frozenset[Scalar]  # the types that statements on vectors may mention
    operations: Mapping[tuple[str, Kind], Template]
    lane_by_lane: frozenset[tuple[str, Scalar]] = frozenset()


@dataclass(frozen=True, slots=True)
class AtomicForms:
    """How indivisible updates are written, as lines.

    `builtin` by (operator, scalar), with {pointer}, {index}, {value}. Everything else is `fallback`, which also has
    {update} (the plain statement) and {auxiliary}: the name of a function made from `auxiliary` (by bits), with {name},
    {space}, {t} and {combined}: the operator applied to `now` and `value`. `bits` are the types that it can do.
    """

    builtin: Mapping[tuple[str, Scalar], tuple[str, ...]]
    fallback: tuple[str, ...]
    auxiliary: Mapping[int, str] = field(default_factory=dict)  # by bits of the scalar
    bits: frozenset[int] = frozenset((32, 64))


@dataclass(frozen=True, slots=True)
class LastGroupForms:
    """How the last of several groups is told: what it declares, and the lines before its block.

    They have {flag}: what all items of the group know then, {first}: the condition of one of them, {counter}, {index}
    and {groups}. `auxiliary` is the function of the preamble that they call.
    """

    declaration: str
    lines: tuple[str, ...]
    auxiliary: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """A C-like language.

    `types` names the types that values are computed in; mathematical functions end in the suffix of `suffixes`.
    `operations` overrides the shared table of operators by (operator, kind). `spaces` gives the qualifier of each
    memory, `hardware` the index of each hardware level with {dim}; levels that it lacks are refused. `auxiliary_texts`
    are preamble functions of its own. Private arrays of more than `stack_bytes` lie in a workspace that is passed in.
    """

    name: str
    types: Mapping[Scalar, str]
    storage: Mapping[Scalar, Storage]
    index_types: Mapping[int, str]  # by bits, signed
    unsigned_index_types: Mapping[int, str]
    literal_suffixes: Mapping[Scalar, str]
    suffixes: Mapping[Scalar, str]
    least_integers: Mapping[int, str]  # by bits
    operations: Mapping[tuple[str, Kind], Template]
    auxiliary_texts: Mapping[str, str]
    spaces: Mapping[str, str]
    hardware: Mapping[str, str]
    barriers: Mapping[str, str]  # by scope, with {fences}
    fences: Mapping[str, str]  # by memory
    atomics: AtomicForms
    restrict: str
    function: str  # qualifiers of auxiliary functions
    aligned: str  # attribute of a declaration, with {bytes}
    reserved: frozenset[str]
    vectors: VectorForms | None = None
    lane_pragma: str | None = None  # before a loop over lanes, where lanes are loops
    parallel_pragma: str | None = None  # before the outermost parallel loop
    last_group: LastGroupForms | None = None
    stack_bytes: int | None = None
    workspace: str = ""  # declares an array in the workspace, with {t}, {name}, {stride}, {offset}


def computed(scalar: Scalar) -> Scalar:
    """The type in which values of a scalar type are computed: f32 for floats of 8 and 16 bits, rounded after each."""
    return f32 if scalar.is_float and scalar.bits < 32 else scalar


def unsigned_of(scalar: Scalar) -> Scalar:
    """The unsigned integer type in which wrap-around arithmetic on an integer type is written."""
    return u64 if scalar.bits == 64 else u32


def parts_of(scalar: Scalar) -> Scalar:
    """The type of the real and imaginary parts of a complex type."""
    return f32 if scalar.bits == 64 else f64


def is_rounded(scalar: Scalar) -> bool:
    """Whether results of this type must be rounded to it after being computed in a wider one."""
    return computed(scalar) is not scalar
