"""Who executes a statement, and the values of the index variables for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lithify.arith import Expr, Floor, Loaded, Min, Variable, Xor
from lithify.arith.atoms import Atom

Integers = NDArray[np.int64]
Number = int | Integers
LoadIndex = Callable[[Loaded, tuple[Number, ...]], Number]
Formula = Callable[[dict[Variable, Number], LoadIndex], Number]


class Active:
    """The executors of a statement: each entry is a thread, or a lane of a thread.

    `owners[d]` numbers, for each entry, its part of the machine at depth d: 0 is the whole kernel; on a GPU 1 is the
    group and 2 the work-item; on a CPU d is the iteration of the d-th enclosing loop over threads. `values` holds index
    variables, one number where all entries agree. Objects are not changed after they are made: records of accesses
    refer to them.
    """

    __slots__ = ("count", "lanes", "owners", "values")

    def __init__(
        self, values: dict[Variable, Number], owners: tuple[Integers, ...], count: int, lanes: bool = False
    ) -> None:
        self.values = values
        self.owners = owners
        self.count = count
        self.lanes = lanes

    @property
    def depth(self) -> int:
        """The depth of a thread: 0 outside everything parallel."""
        return len(self.owners) - 1

    @property
    def threads(self) -> Integers:
        """The thread of each entry."""
        return self.owners[-1]

    def at(self, variable: Variable, value: Number) -> Active:
        """The same executors with one more variable."""
        return Active({**self.values, variable: value}, self.owners, self.count, self.lanes)

    def select(self, chosen: NDArray[Any]) -> Active:
        """Some of the executors: `chosen` is a mask or positions."""
        values = {v: x if isinstance(x, int) else x[chosen] for v, x in self.values.items()}
        owners = tuple([owner[chosen] for owner in self.owners])
        return Active(values, owners, len(owners[0]), self.lanes)

    def expand(self, variable: Variable, indices: Integers, *, extent: int | None = None) -> Active:
        """Each executor becomes one for each index: a lane, or (with an extent) a thread of one depth more."""
        n = len(indices)
        values = {v: x if isinstance(x, int) else np.repeat(x, n) for v, x in self.values.items()}
        values[variable] = np.tile(indices, self.count)
        owners = tuple([np.repeat(owner, n) for owner in self.owners])
        if extent is not None:
            owners = (*owners, owners[-1] * extent + values[variable])
        return Active(values, owners, self.count * n, self.lanes or extent is None)


def as_array(number: Number, count: int) -> Integers:
    """One number an entry."""
    return np.full(count, number, np.int64) if isinstance(number, int) else number


def compiled(expr: Expr) -> Formula:
    """An index formula as a function of the variables' values (arrays broadcast) and of how buffers are read."""
    constants: dict[str, Any] = {"minimum": _minimum}
    source = _source(expr, constants)
    formula: Formula = eval(f"lambda v, load: {source}", constants)  # made of our own normal form only
    return formula


def _minimum(a: Number, b: Number) -> Number:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def _source(expr: Expr, constants: dict[str, Any]) -> str:
    parts = []
    for monomial, coefficient in expr.terms:
        factors = [_atom(atom, constants) for atom in monomial]
        if coefficient != 1:
            factors.insert(0, f"({coefficient})")
        parts.append("*".join(factors))
    if expr.offset or not parts:
        parts.append(f"({expr.offset})")
    return "(" + "+".join(parts) + ")"


def _atom(atom: Atom, constants: dict[str, Any]) -> str:
    if isinstance(atom, Variable):
        return f"v[{_named(atom, constants)}]"
    if isinstance(atom, Floor):
        return f"({_source(atom.numerator, constants)}//{_source(atom.divisor, constants)})"
    if isinstance(atom, Xor):
        return f"({_source(atom.left, constants)}^{_source(atom.right, constants)})"
    if isinstance(atom, Min):
        return f"minimum({_source(atom.left, constants)},{_source(atom.right, constants)})"
    assert isinstance(atom, Loaded)
    index = "".join(f"{_source(i, constants)}," for i in atom.index)
    return f"load({_named(atom, constants)},({index}))"


def _named(value: object, constants: dict[str, Any]) -> str:
    for name, known in constants.items():
        if known is value:
            return name
    name = f"k{len(constants)}"
    constants[name] = value
    return name
