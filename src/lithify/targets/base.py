"""What every target offers: text for a kernel program, and an executable that takes and returns arrays.

An `Executable` describes its own arguments (`Interface`), checks them at each call, can be timed, and can be turned
into bytes, so that a program that was compiled once is never derived, translated or compiled again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lithify.arith import Atom, Expr, Floor, Min, Variable, Xor
from lithify.lang.errors import LaunchError

if TYPE_CHECKING:
    from lithify.kernel.ir import Buffer, Program

Dim = int | str
POISON = 0xFF  # bytes of a NaN, whatever the type


Quick = Callable[[tuple[Any, ...], Any], Any]


def never(_arguments: tuple[Any, ...], _out: Any) -> Any:
    """The quick call that takes nothing."""
    return NotImplemented


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter or a result: its name, the name of its scalar type, and its shape.

    A dimension is an int, or in a symbolic kernel the text of an expression over the interface's sizes. `role` is that
    of the buffer: "input", "scalar" (passed by value, shape ()) or "output". `below` is what indices are below: the
    values of such a parameter are compared with it at every call, for code relies on it; so it does on indices that
    are `distinct`.
    """

    name: str
    scalar: str
    shape: tuple[Dim, ...]
    role: str
    below: Dim | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class SizeSource:
    """Where a size is read off: dimension `dim` of parameter `parameter` is factor * size + offset."""

    size: str
    parameter: int
    dim: int
    factor: int
    offset: int


@dataclass(frozen=True, slots=True)
class Interface:
    """What a call of an executable takes and returns.

    `parameters` are in the order of the call (the components of tuples one after another), `results` in the order
    returned. `sizes` are the symbolic sizes, `sources` says which of them the arguments' shapes determine, in an order
    in which they can be solved; the others are given as `sizes={"n": 3}` with the call. `least` are the smallest values
    of the sizes that the kernel was made for.
    """

    name: str
    parameters: tuple[Argument, ...]
    results: tuple[Argument, ...]
    sizes: tuple[str, ...] = ()
    sources: tuple[SizeSource, ...] = ()
    least: tuple[int, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The interface as lists, strings and ints."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Interface:
        """The inverse of `as_data`."""

        def arguments(items: Sequence[Mapping[str, Any]]) -> tuple[Argument, ...]:
            return tuple(Argument(**{**item, "shape": tuple(item["shape"])}) for item in items)

        return Interface(
            data["name"],
            arguments(data["parameters"]),
            arguments(data["results"]),
            tuple(data["sizes"]),
            tuple(SizeSource(**s) for s in data["sources"]),
            tuple(data["least"]),
        )


class Resident:
    """An array that lies in a device's memory and stays there when it is passed as an argument.

    Where it was given as indices, they were seen to be below `below`, and `distinct` if it says so.
    """

    shape: tuple[int, ...]
    dtype: Any  # NumPy's
    below: int | None = None
    distinct: bool = False


class Executable(ABC):
    """A compiled program. Calling it runs it; it may be called from several threads at once.

    Set `poisoned`, and temporaries (and results, where they do not lie in the caller's arrays) are filled with bytes
    that are NaN in every floating-point type before each call: code that reads what it has not written shows then,
    instead of finding the zeros of fresh memory or the values of an earlier run.
    """

    interface: Interface
    poisoned: bool = False

    @abstractmethod
    def __call__(self, *arguments: Any, out: Any = None, sizes: Mapping[str, int] | None = None) -> Any:
        """Run on arrays (NumPy, or anything with DLPack) and Python scalars, in the order of the parameters.

        Returns a new array, a tuple of them where the program has several results, or `out` filled. The arguments are
        never modified. Raises LaunchError for arguments that do not fit.
        """

    def quick(self, arguments: Sequence[Any]) -> Quick:
        """A quicker call for arguments just like these: a function of the arguments and of `out` or None.

        It returns NotImplemented, without having done anything, for what it does not take: other arrays and numbers
        than exactly those of these types, and everything that is wrong. It may be `never`.
        """
        return never

    @abstractmethod
    def time(self, arguments: Sequence[Any], repetitions: int) -> list[float]:
        """Seconds that each of `repetitions` runs took, on buffers of its own, the transfer of arguments excluded."""

    @abstractmethod
    def serialize(self) -> bytes:
        """The executable as bytes, for `Target.load` of the same target on the same kind of device."""


class Target(ABC):
    """A kind of device and the language that its kernels are written in."""

    name: str

    @abstractmethod
    def source(self, program: Program) -> str:
        """The text that the device's compiler gets."""

    @abstractmethod
    def compile(self, program: Program) -> Executable:
        """Compile the program for the device."""

    @abstractmethod
    def load(self, data: bytes) -> Executable:
        """The executable that `Executable.serialize` wrote."""

    def prepare(self, program: Program) -> bytes:
        """What of `compile` can be done in a process that must not touch the device, as bytes for `finish`."""
        return self.compile(program).serialize()

    def finish(self, data: bytes) -> Executable:
        """The rest of `compile`, of what `prepare` made in any process."""
        return self.load(data)

    @abstractmethod
    def fingerprint(self) -> str:
        """Everything about device, compiler and settings that compiled code depends on, as text."""


def interface_of(program: Program) -> Interface:
    """The interface of a kernel program: its parameters, its results, and where its sizes come from."""
    names = tuple(v.name for v in program.sizes)
    return Interface(
        program.name,
        tuple(_argument(b) for b in program.parameters),
        tuple(_argument(b) for b in program.results),
        names,
        _size_sources(program),
        tuple(int(v.lo) for v in program.sizes),
    )


def _argument(buffer: Buffer) -> Argument:
    below = None if buffer.below is None else size_text(buffer.below)
    shape = tuple(size_text(e) for e in buffer.shape)
    return Argument(buffer.name, buffer.scalar.name, shape, buffer.role, below, buffer.distinct)


def _size_sources(program: Program) -> tuple[SizeSource, ...]:
    """Each size that some dimension determines as the only unknown in a linear form; plain sizes are preferred."""
    found: dict[Variable, SizeSource] = {}
    dims = [
        (dim, p, d) for p, buffer in enumerate(program.parameters) for d, dim in enumerate(buffer.shape) if dim.terms
    ]
    dims.sort(key=lambda entry: entry[0].single is None)
    for expression, parameter, dim in dims:
        unknown = expression.variables() - found.keys()
        if len(unknown) == 1 and len(expression.terms) == 1:
            variable = next(iter(unknown))
            factor = expression.coefficient(variable)
            if factor:
                found[variable] = SizeSource(variable.name, parameter, dim, factor, expression.offset)
    return tuple(found.values())


def size_text(expression: Expr) -> Dim:
    """A size as an int, or as the text of a Python expression over the names of its variables."""
    if expression.constant is not None:
        return expression.constant
    parts = [
        "*".join([*([str(c)] if c != 1 else []), *(_atom_text(a) for a in monomial)])
        for monomial, c in expression.terms
    ]
    if expression.offset:
        parts.append(str(expression.offset))
    return "(" + " + ".join(parts) + ")" if len(parts) > 1 else parts[0]


def _atom_text(atom: Atom) -> str:
    if isinstance(atom, Variable):
        return atom.name
    if isinstance(atom, Floor):
        return f"({size_text(atom.numerator)} // {size_text(atom.divisor)})"
    if isinstance(atom, Min):
        return f"min({size_text(atom.left)}, {size_text(atom.right)})"
    if isinstance(atom, Xor):
        return f"({size_text(atom.left)} ^ {size_text(atom.right)})"
    raise LaunchError(f"a size cannot depend on the contents of a buffer: {atom}")


def size_function(dims: Sequence[Dim], names: Sequence[str]) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    """A function from the values of the sizes to the value of each dimension."""
    if all(isinstance(d, int) for d in dims):
        fixed = tuple(int(d) for d in dims)
        return lambda _sizes: fixed
    for name in names:
        if not name.isidentifier():
            raise LaunchError(f"{name!r} cannot be the name of a size")
    code = compile("(" + "".join(f"{d}, " for d in dims) + ")", "<sizes>", "eval")
    allowed = {"__builtins__": {}, "min": min}

    def evaluate(sizes: Mapping[str, int]) -> tuple[int, ...]:
        result: tuple[int, ...] = eval(code, allowed, dict(sizes))  # the text is of our own making
        return result

    return evaluate
