"""The coordinate transforms, as data: each takes coordinates of some upper dims to coordinates of some lower dims.

Upper is the view's side, lower the side of storage. Each transform is one index function over normal forms, the
conditions under which a lower coordinate is real (tested at its own level), and, where there is one, its inverse.
After rocMLIR's coordinate transforms; `Embed`'s validity is by the exact interval of its sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lithify.arith import Expr, as_expr, const, maximum, proves, proves_equal, var, xor
from lithify.lang.index_functions import IndexFunction, padding_source
from lithify.views.errors import ViewError
from lithify.views.space import Dims, product, quoted

Coordinates = tuple[Expr, ...]


@dataclass(frozen=True)
class Transform:
    """Base of all transforms."""

    upper: Dims
    lower: Dims

    def index(self, u: Coordinates) -> Coordinates:
        """The lower coordinates of upper ones."""
        raise NotImplementedError

    def conditions(self, l: Coordinates) -> Coordinates:  # noqa: E741
        """What must be >= 0 for the lower coordinates to be real ones."""
        return ()

    @property
    def fill(self) -> Any:
        """What is read where a coordinate is not real."""
        return 0

    def inverse(self) -> Transform | None:
        """The transform that takes lower coordinates back, or None."""
        return None

    def parameters(self) -> str:
        """The parameters as printed between braces; empty where there are none."""
        return ""

    def equations(self) -> tuple[str, ...]:
        """One equation a lower dim, in the names of the dims."""
        names = tuple([as_named(d.name, d.size) for d in self.upper])
        return tuple([f"{d.name} = {e}" for d, e in zip(self.lower, self.index(names), strict=True)])

    def __str__(self) -> str:
        parameters = self.parameters()
        braces = f"{{{parameters}}}" if parameters else ""
        return f"{type(self).__name__}{braces}{quoted(self.upper)} <- {quoted(self.lower)}"


def as_named(name: str, size: Expr) -> Expr:
    """An index variable of this name for printing, also where the extent is 1 (which `var` folds to 0)."""
    return var(name, 2 if size.constant == 1 else size)


def _same_rank(t: Transform) -> None:
    if len(t.upper) != len(t.lower):
        raise ViewError(f"{t}: {len(t.upper)} upper dims but {len(t.lower)} lower dims")


def _equal(t: Transform, what: str, a: Expr, b: Expr) -> None:
    if not proves_equal(a, b):
        raise ViewError(f"{t}: {what} is {a}, expected {b}")


@dataclass(frozen=True)
class PassThrough(Transform):
    """l_i = u_i: renames, and permutes by where the dims stand."""

    def __post_init__(self) -> None:
        _same_rank(self)
        for u, d in zip(self.upper, self.lower, strict=True):
            _equal(self, f"the size of {u.name!r}", u.size, d.size)

    def index(self, u: Coordinates) -> Coordinates:
        return u

    def inverse(self) -> Transform:
        return PassThrough(self.lower, self.upper)


MODES = ("fill", "clamp", "mirror", "wrap")


@dataclass(frozen=True)
class Pad(Transform):
    """l = u - left, one pair of amounts a dim; u has left + right more elements.

    `mode`: "fill" reads `value` outside; the others read an element: "clamp" the nearest, "mirror" the reflected
    one (the edge included), "wrap" the periodic one.
    """

    left: Coordinates
    right: Coordinates
    mode: str = "fill"
    value: Any = 0

    def __post_init__(self) -> None:
        _same_rank(self)
        if self.mode not in MODES:
            raise ViewError(f"{self}: the mode is one of {', '.join(MODES)}, not {self.mode!r}")
        for u, d, left, right in zip(self.upper, self.lower, self.left, self.right, strict=True):
            if left.lo < 0 or right.lo < 0:
                raise ViewError(f"{self}: dim {d.name!r} is padded by {left} and {right}; use Slice to make it smaller")
            _equal(self, f"the size of {u.name!r}", u.size, d.size + left + right)

    @property
    def fill(self) -> Any:
        return self.value

    def index(self, u: Coordinates) -> Coordinates:
        amounts = zip(u, self.lower, self.left, self.right, strict=True)
        return tuple([padding_source(self.mode, i - left, d.size, left, right) for i, d, left, right in amounts])

    def conditions(self, l: Coordinates) -> Coordinates:  # noqa: E741
        if self.mode != "fill":
            return ()
        found: list[Expr] = []
        for i, d, left, right in zip(l, self.lower, self.left, self.right, strict=True):
            found += [i] if left.hi > 0 else []
            found += [d.size - 1 - i] if right.hi > 0 else []
        return tuple(found)

    def parameters(self) -> str:
        amounts = ", ".join([f"({a}, {b})" for a, b in zip(self.left, self.right, strict=True)])
        if self.mode != "fill":
            return f"{amounts}, {self.mode}"
        return amounts if self.value == 0 else f"{amounts}, fill {self.value}"


@dataclass(frozen=True)
class Slice(Transform):
    """l = u + begin; the view shows begin <= l < begin + size of each dim."""

    begin: Coordinates

    def __post_init__(self) -> None:
        _same_rank(self)
        for u, d, begin in zip(self.upper, self.lower, self.begin, strict=True):
            if not (proves(begin) and proves(d.size - begin - u.size)):
                raise ViewError(f"{self}: [{begin}, {begin + u.size}) is not known to lie in {d.name!r} of {d.size}")

    def index(self, u: Coordinates) -> Coordinates:
        return tuple([i + begin for i, begin in zip(u, self.begin, strict=True)])

    def parameters(self) -> str:
        ends = zip(self.begin, self.upper, strict=True)
        return ", ".join([f"{begin}:{begin + u.size}" for begin, u in ends])


@dataclass(frozen=True)
class Embed(Transform):
    """l = offset + sum coefficient_i u_i: windows, strides, dilations; real where the sum lies in [0, size)."""

    coefficients: Coordinates
    offset: Expr
    value: Any = 0

    def __post_init__(self) -> None:
        if len(self.lower) != 1 or len(self.coefficients) != len(self.upper):
            raise ViewError(f"{self}: one lower dim, and one coefficient for each upper dim")

    @property
    def fill(self) -> Any:
        return self.value

    def index(self, u: Coordinates) -> Coordinates:
        total = self.offset
        for c, i in zip(self.coefficients, u, strict=True):
            total = total + c * i
        return (total,)

    def conditions(self, l: Coordinates) -> Coordinates:  # noqa: E741
        low, high = self.interval()
        size = self.lower[0].size
        found = [] if low is not None and proves(low) else [l[0]]
        found += [] if high is not None and proves(size - 1 - high) else [size - 1 - l[0]]
        return tuple(found)

    def interval(self) -> tuple[Expr | None, Expr | None]:
        """The least and the greatest value of the sum; None where a coefficient's sign is not known."""
        low: Expr | None = self.offset
        high: Expr | None = self.offset
        for c, d in zip(self.coefficients, self.upper, strict=True):
            reach = c * (d.size - 1)
            if proves(c):
                high = None if high is None else high + reach
            elif proves(-c):
                low = None if low is None else low + reach
            else:
                low = high = None
        return low, high

    def parameters(self) -> str:
        coefficients = ", ".join(map(str, self.coefficients))
        return coefficients if self.offset.constant == 0 else f"{coefficients}, offset {self.offset}"


@dataclass(frozen=True)
class Unmerge(Transform):
    """l = ((u_0 len_1 + u_1) len_2 + u_2) ...: one lower dim seen as several."""

    def __post_init__(self) -> None:
        if len(self.lower) != 1:
            raise ViewError(f"{self}: one lower dim")
        _equal(self, f"the size of {self.lower[0].name!r}", self.lower[0].size, product(self.upper))

    def index(self, u: Coordinates) -> Coordinates:
        total = const(0)
        for i, d in zip(u, self.upper, strict=True):
            total = total * d.size + i
        return (total,)

    def inverse(self) -> Transform:
        return Merge(self.lower, self.upper)

    def parameters(self) -> str:
        return ", ".join([str(d.size) for d in self.upper])


@dataclass(frozen=True)
class Merge(Transform):
    """l_i = (u div stride_i) mod len_i: several lower dims seen as one."""

    def __post_init__(self) -> None:
        if len(self.upper) != 1:
            raise ViewError(f"{self}: one upper dim")
        _equal(self, f"the size of {self.upper[0].name!r}", self.upper[0].size, product(self.lower))

    def index(self, u: Coordinates) -> Coordinates:
        # The first dim of more than one element takes the whole quotient. It is below the size anyway, and a masked
        # vector that runs past the end (`vector_widths`) keeps the coefficient of its lane.
        first = next((i for i, d in enumerate(self.lower) if d.size.constant != 1), 0)
        rest = u[0]
        found: list[Expr] = []
        for d in reversed(self.lower[first + 1 :]):
            whole = rest // maximum(d.size, 1)  # no upper coordinate exists where a lower dim has none
            found.append(rest - whole * d.size)
            rest = whole
        found += [rest] if self.lower else []
        found += [const(0)] * first
        return tuple(reversed(found))

    def inverse(self) -> Transform:
        return Unmerge(self.lower, self.upper)

    def equations(self) -> tuple[str, ...]:
        found: list[str] = []
        stride = const(1)
        for d in reversed(self.lower):
            quotient = self.upper[0].name + ("" if stride.constant == 1 else f" div {_factor(stride)}")
            whole = len(found) == len(self.lower) - 1
            remainder = f"({quotient})" if " " in quotient else quotient
            found.append(f"{d.name} = {quotient if whole else f'{remainder} mod {_factor(d.size)}'}")
            stride = stride * d.size
        return tuple(reversed(found))

    def parameters(self) -> str:
        return ", ".join([str(d.size) for d in self.lower])


@dataclass(frozen=True)
class AddDim(Transform):
    """An upper dim with nothing below: every coordinate shows the same."""

    def __post_init__(self) -> None:
        if len(self.upper) != 1 or self.lower:
            raise ViewError(f"{self}: one upper dim and no lower one")

    def index(self, u: Coordinates) -> Coordinates:
        return ()

    def inverse(self) -> Transform | None:
        return ConstDim((), self.upper, (const(0),)) if self.upper[0].size.constant == 1 else None

    def parameters(self) -> str:
        return str(self.upper[0].size)


@dataclass(frozen=True)
class Broadcast(Transform):
    """l = u mod size: the lower dim repeated."""

    def __post_init__(self) -> None:
        _same_rank(self)
        for d in self.lower:
            if d.size.lo < 1:
                raise ViewError(f"{self}: dim {d.name!r} of size {d.size} may be empty and cannot be repeated")

    def index(self, u: Coordinates) -> Coordinates:
        return tuple([i % d.size for i, d in zip(u, self.lower, strict=True)])

    def equations(self) -> tuple[str, ...]:
        pairs = zip(self.upper, self.lower, strict=True)
        return tuple([f"{d.name} = {u.name} mod {_factor(d.size)}" for u, d in pairs])

    def parameters(self) -> str:
        return ", ".join([str(d.size) for d in self.lower])


@dataclass(frozen=True)
class ConstDim(Transform):
    """l = c: a lower dim held at one coordinate."""

    values: Coordinates

    def __post_init__(self) -> None:
        if self.upper or len(self.values) != len(self.lower):
            raise ViewError(f"{self}: no upper dims, and one value for each lower dim")
        for value, d in zip(self.values, self.lower, strict=True):
            if not (proves(value) and proves(d.size - 1 - value)):
                raise ViewError(f"{self}: {value} is not known to lie in {d.name!r} of {d.size}")

    def index(self, u: Coordinates) -> Coordinates:
        return self.values

    def inverse(self) -> Transform | None:
        one = len(self.lower) == 1 and self.lower[0].size.constant == 1
        return AddDim(self.lower, ()) if one else None

    def parameters(self) -> str:
        return ", ".join([f"{v} of {d.size}" for v, d in zip(self.values, self.lower, strict=True)])


@dataclass(frozen=True)
class Xor(Transform):
    """l_0 = u_0, l_1 = u_1 xor ((u_0 div period) mod size_1): a swizzle; size_1 is a power of two; its own inverse."""

    period: int = 1

    def __post_init__(self) -> None:
        sizes = [d.size for d in self.upper]
        width = sizes[1].constant if len(sizes) == 2 else None
        if sizes != [d.size for d in self.lower] or width is None or width < 1 or width & (width - 1):
            raise ViewError(f"{self}: two dims of equal sizes on both sides, the second size a power of two")
        if self.period < 1:
            raise ViewError(f"{self}: the period is at least 1")

    def index(self, u: Coordinates) -> Coordinates:
        row, chunk = u
        size = self.upper[1].size  # the remainder changes only coordinates that are not real
        return row, xor(chunk % size, row // self.period % size)

    def inverse(self) -> Transform:
        return Xor(self.lower, self.upper, self.period)

    def parameters(self) -> str:
        return "" if self.period == 1 else str(self.period)


@dataclass(frozen=True)
class Reindex(Transform):
    """l = f(u) for a declared index function (reverse, strides, ...), with its declared inverse."""

    function: IndexFunction

    def __post_init__(self) -> None:
        if len(self.upper) != 1 or len(self.lower) != 1:
            raise ViewError(f"{self}: one dim on each side")
        _equal(self, f"the size of {self.upper[0].name!r}", self.upper[0].size, self.function.extent)
        _equal(self, f"the size of {self.lower[0].name!r}", self.lower[0].size, self.function.source)

    def index(self, u: Coordinates) -> Coordinates:
        return (self.function.at(u[0]),)

    def inverse(self) -> Transform | None:
        if self.function.inverse is None:
            return None
        return Reindex(self.lower, self.upper, self.function.inverted())

    def parameters(self) -> str:
        return self.function.name


def _factor(size: Expr) -> str:
    text = str(size)
    return text if text.isalnum() else f"({text})"


def amounts(values: Expr | int | tuple[Expr | int, ...], count: int) -> Coordinates:
    """One amount for each of `count` dims."""
    found = values if isinstance(values, tuple) else (values,) * count
    if len(found) != count:
        raise ViewError(f"{len(found)} amounts for {count} dims")
    return tuple([as_expr(v) for v in found])
