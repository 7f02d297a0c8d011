"""Execute every level of a compilation on small data and compare: definition, lowered program, kernels, device.

The definition is evaluated in float64 whatever the types say. What the lower levels may differ by is rounding: a
tolerance that grows with the scalar type's unit of rounding, relative to the largest element of each result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lithify.arith import Expr, as_expr
from lithify.explore.comparison import distance, relative_difference
from lithify.lang.errors import LithifyError
from lithify.lang.operators import Typing
from lithify.lang.reading import permutations_of
from lithify.lang.scalars import SCALARS, Kind, Scalar, f16
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Index, Tuple, Type
from lithify.program.arguments import flatten

if TYPE_CHECKING:
    from lithify.program.program import Program
    from lithify.program.specialise import Specialisation

Values = list[np.ndarray[Any, Any]]
LARGE = 48  # a longer dimension is replaced by a small one
_SMALL = (13, 17, 7, 19, 11, 23, 5)
_ROUNDINGS = 2000  # units of rounding that a result may be off, relative to its largest element
_SEED = 12345


@dataclass(frozen=True)
class LevelResult:
    """A level that was executed: the largest difference from the definition (relative), and what is allowed.

    `problem` is set where the level could not be reached or executed, or differs by more.
    """

    level: str
    difference: float | None
    tolerance: float
    problem: str = ""

    @property
    def right(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class Check:
    """The levels in order, the types on which they were executed, and those that it was asked for.

    They differ where dimensions are long: the levels above the device's are slow.
    """

    name: str
    types: tuple[Type, ...]
    levels: tuple[LevelResult, ...]
    asked: tuple[Type, ...]

    @property
    def right(self) -> bool:
        """Whether every level gives what the definition says."""
        return all(level.right for level in self.levels)

    def __bool__(self) -> bool:
        return self.right

    def __str__(self) -> str:
        lines = [f"{self.name} on {', '.join(map(str, self.types))}"]
        if self.types != self.asked:
            lines[0] += f", in place of {', '.join(map(str, self.asked))} (dimensions above {LARGE} are made smaller)"
        for each in self.levels:
            found = each.problem or f"differs by {each.difference:.1e} (allowed {each.tolerance:.0e})"
            lines.append(f"  {'ok   ' if each.right else 'WRONG'} {each.level}: {found}")
        return "\n".join(lines)


def check(program: Program, arguments: Sequence[Any], sizes: Mapping[str, int] | None = None) -> Check:
    """Execute every level for arguments like these, made smaller where they are large.

    Values are random, numbers are taken as given. Errors of the program itself (types, sizes) are raised.
    """
    from lithify.evaluate import evaluate

    fixed = program.for_these_sizes()
    full = fixed.specialise(*arguments, sizes=sizes)
    types = [type_ for _, type_ in full.elaborated.parameters]
    parameters = (_smaller(fixed, types, sizes) or full).elaborated.parameters
    names = [name for name, _ in parameters]
    small = tuple(type_ for _, type_ in parameters)
    specialisation = program.specialise(*small, sizes=sizes)
    elaborated = specialisation.elaborated
    random = np.random.default_rng(_SEED)
    permutations = permutations_of(elaborated.term)

    def value(name: str, type_: Type, given: Any) -> Any:
        if isinstance(type_, Scalar) and isinstance(given, int | float | complex):
            return given
        return _permutation(type_, random) if name in permutations else sample(type_, random)

    values = list(map(value, names, small, arguments))
    inputs = dict(zip(names, values, strict=True))
    expected = _leaves(evaluate(elaborated.term, inputs))
    scalars = _scalars_of(elaborated.type)
    coarsest = _coarsest_rounding(elaborated.term)
    levels: list[LevelResult] = []

    def level(name: str, compute: Callable[[], Any]) -> None:
        try:
            found = _leaves(compute())
        except LithifyError as error:
            levels.append(LevelResult(name, None, 0.0, str(error)))
            return
        levels.append(compare(name, found, expected, scalars, coarsest))

    def kernels() -> Any:
        from lithify.kernel.evaluator import run

        program_ = specialisation.kernels
        return run(program_, dict(zip([b.name for b in program_.parameters], flatten(values), strict=True)))

    level("the program in its own types", lambda: evaluate(elaborated.term, inputs, exact=False))
    level("the lowered program", lambda: evaluate(specialisation.lowered.term, inputs))
    level("the kernels", kernels)
    level(f"compiled for {specialisation.device}", lambda: program(*values, sizes=sizes))
    return Check(program.name, small, tuple(levels), tuple(types))


# ---- smaller arguments -----------------------------------------------------------------------------------------------


def _smaller(program: Program, types: Sequence[Type], sizes: Mapping[str, int] | None) -> Specialisation | None:
    """The program for types whose long dimensions are shortened, equal ones equally, where it still has a type."""
    replaced: dict[Expr, int] = {}
    shortened = [_shorten(type_, replaced) for type_ in types]
    if not replaced:
        return None
    specialisation = program.specialise(*shortened, sizes=sizes)
    try:
        specialisation.elaborated  # noqa: B018
    except LithifyError:
        return None  # some size has to be what it is, a multiple of 128 for instance
    return specialisation


def _shorten(type_: Type, replaced: dict[Expr, int]) -> Type:
    if isinstance(type_, Array):
        size = type_.size
        if size.constant is not None and size.constant > LARGE:
            if size not in replaced:
                replaced[size] = _SMALL[len(replaced) % len(_SMALL)]
            size = as_expr(replaced[size])
        return Array(size, _shorten(type_.element, replaced))
    return Tuple(*[_shorten(item, replaced) for item in type_.items]) if isinstance(type_, Tuple) else type_


# ---- data ------------------------------------------------------------------------------------------------------------


def sample(type_: Type, random: np.random.Generator, shape: tuple[int, ...] = ()) -> Any:
    """Random values of a type, as an argument: floats between 0 and 1, small integers, indices in range."""
    if isinstance(type_, Array):
        if type_.size.constant is None:
            raise LithifyError(f"the size {type_.size} is not known", hint="give arguments, or their types (100.f32)")
        return sample(type_.element, random, (*shape, type_.size.constant))
    if isinstance(type_, Tuple):
        return tuple([sample(item, random, shape) for item in type_.items])
    if isinstance(type_, Index):
        assert type_.size.constant is not None
        if type_.size.constant == 0 and 0 not in shape:
            raise LithifyError(f"no index is in {type_}: the array that it is for is empty")
        return random.integers(0, max(1, type_.size.constant), shape).astype(np.int32)
    assert isinstance(type_, Scalar)
    if type_.kind is Kind.BOOL:
        return random.integers(0, 2, shape).astype(np.bool_)
    if type_.is_integer:
        return random.integers(0, 10, shape).astype(type_.dtype)
    if type_.is_complex:
        return (random.random(shape) + 1j * random.random(shape)).astype(type_.dtype)
    return np.asarray(random.random(shape)).astype(type_.dtype)


def _permutation(type_: Type, random: np.random.Generator) -> Any:
    """Indices below a length, each once, in any order."""
    assert isinstance(type_, Array) and type_.size.constant is not None
    return random.permutation(type_.size.constant).astype(np.int32)


def _leaves(value: Any) -> Values:
    return [np.asarray(leaf) for leaf in flatten([value])]


def _scalars_of(type_: Type) -> list[Scalar]:
    while isinstance(type_, Array):
        type_ = type_.element
    if isinstance(type_, Tuple):
        return [scalar for item in type_.items for scalar in _scalars_of(item)]
    return [type_ if isinstance(type_, Scalar) else SCALARS["i32"]]


# ---- comparing -------------------------------------------------------------------------------------------------------


def compare(
    name: str, found: Values, expected: Values, scalars: Sequence[Scalar], coarsest: float = 0.0
) -> LevelResult:
    """How far the results are from what is expected, relative to the largest element of each.

    `coarsest` is what a rounding on the way may change in them, where they are floating point.
    """
    worst, allowed = 0.0, 0.0
    for got, wanted, scalar in zip(found, expected, scalars, strict=True):
        if got.shape != wanted.shape:
            return LevelResult(name, None, 0.0, f"has shape {got.shape}, the definition gives {wanted.shape}")
        tolerance = max(tolerance_of(scalar), coarsest if tolerance_of(scalar) else 0.0)
        difference = relative_difference(got, wanted)
        if difference > tolerance:
            place = np.unravel_index(int(np.argmax(distance(got, wanted))), got.shape)
            where = f" at [{', '.join(str(int(i)) for i in place)}]" if got.ndim else ""
            text = f"{got[place]} instead of {wanted[place]}{where}"
            text += f" (differs by {difference:.1e}, allowed {tolerance:.0e})"
            return LevelResult(name, difference, tolerance, text)
        worst, allowed = max(worst, difference), max(allowed, tolerance)
    return LevelResult(name, worst, allowed)


def _coarsest_rounding(term: Term) -> float:
    """What the roundings of a program's operators may change: those of bf16 in a result of f32, for example."""
    operators = [t for t in subterms(term) if t.kind == "op"]
    types = [f16 if t["operator"].typing is Typing.SINGLE else t.type for t in operators]  # TF32 has as many bits
    return max([tolerance_of(type_) for type_ in types if isinstance(type_, Scalar)], default=0.0)


def tolerance_of(scalar: Scalar) -> float:
    """What rounding may change, relative to the largest element: nothing for integers."""
    if not (scalar.is_float or scalar.is_complex):
        return 0.0
    bits = {"f8e5m2": 2, "f8e4m3": 3, "bf16": 7, "f16": 10, "f32": 23, "complex64": 23}.get(scalar.name, 52)
    return min(0.25, _ROUNDINGS * 2.0 ** -(bits + 1)) if bits > 20 else min(0.25, 8 * 2.0**-bits)
