"""Convolutions as matrix products: the named stacks that show filter, input and output as gemm operands.

Dims: filter g k c and one a spatial axis (y x); input n g c and (hi wi); output n g k and (ho wo); c and k are those of
one group. The gemm is C[G, M, N] = sum over K of A[G, K, M] B[G, K, N]. Merges go in memory order, so that contiguous
runs stay contiguous. After rocMLIR's lowering of convolutions (implicit gemm; backward data version v4r1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from lithify.arith import Expr
from lithify.views.builders import bottom_up
from lithify.views.errors import ViewError
from lithify.views.view import View

Size = Expr | int


@dataclass(frozen=True)
class Axis:
    """One spatial axis: sizes of input and filter, stride, dilation, padding on both sides."""

    size: int
    filter: int
    stride: int = 1
    dilation: int = 1
    left: int = 0
    right: int = 0

    def __post_init__(self) -> None:
        if min(self.size, self.filter, self.stride, self.dilation) < 1 or min(self.left, self.right) < 0:
            raise ViewError(f"{self}: sizes, stride and dilation are at least 1, paddings at least 0")
        if self.output < 1:
            raise ViewError(f"{self}: the dilated filter is larger than the padded input")

    @property
    def output(self) -> int:
        """The size of the output."""
        return (self.size + self.left + self.right - self.dilation * (self.filter - 1) - 1) // self.stride + 1

    # Backward data, v4r1: y = dot FT + tilda, o = t - (d / g) dot, hi = tilda d + t s - left, with g = gcd(s, d).

    @property
    def filter_tilda(self) -> int:
        """FT: how many gemms the axis splits into; each takes every FT-th filter element."""
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def filter_dot(self) -> int:
        """FD: the filter elements of one gemm, at most."""
        return -(-self.filter // self.filter_tilda)

    @property
    def output_tilda(self) -> int:
        """OT: the extent of t."""
        return self.output - (-self.dilation * (self.filter - 1) // self.stride)

    @property
    def tilda_range(self) -> tuple[int, int]:
        """The t that can meet an input element."""
        first = max(0, self.left - self.dilation * (self.filter_tilda - 1)) // self.stride
        return first, min(self.output_tilda, -(-(self.left + self.size - 1) // self.stride) + 1)

    def dot_slice(self, tilda: int) -> int:
        """How many filter elements gemm number `tilda` of the axis takes."""
        return -(-(self.filter - tilda) // self.filter_tilda)

    def written(self) -> set[int]:
        """The input positions that backward data writes."""
        first, end = self.tilda_range
        return {
            position
            for tilda in range(min(self.filter_tilda, self.filter))
            for t in range(first, end)
            if 0 <= (position := tilda * self.dilation + t * self.stride - self.left) < self.size
        }


_NAMES = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x")}
_INPUTS = {1: ("wi",), 2: ("hi", "wi"), 3: ("di", "hi", "wi")}
_OUTPUTS = {1: ("wo",), 2: ("ho", "wo"), 3: ("do", "ho", "wo")}


@dataclass(frozen=True)
class Gemm:
    """The three operands as views: A over [gemmG, gemmK, gemmM], B over [gemmG, gemmK, gemmN], C over [G, M, N]."""

    a: View
    b: View
    c: View


@dataclass(frozen=True)
class Convolution:
    """A convolution of 1, 2 or 3 spatial axes; c and k are channels of one group.

    Layouts are the dims' names in memory order, the last one contiguous; by default g k c y x, n g c hi wi and
    n g k ho wo.
    """

    n: Size
    c: Size
    k: Size
    axes: tuple[Axis, ...]
    g: Size = 1
    filter_layout: tuple[str, ...] = ()
    input_layout: tuple[str, ...] = ()
    output_layout: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.axes) not in _NAMES:
            raise ViewError(f"a convolution has 1, 2 or 3 spatial axes, not {len(self.axes)}")
        defaults = (
            ("filter_layout", ("g", "k", "c", *self.filters)),
            ("input_layout", ("n", "g", "c", *self.inputs)),
            ("output_layout", ("n", "g", "k", *self.outputs)),
        )
        for field, names in defaults:
            given = getattr(self, field) or names
            if sorted(given) != sorted(names):
                raise ViewError(f"{field} names each of {' '.join(names)} once, not {' '.join(given)}")
            object.__setattr__(self, field, tuple(given))

    @property
    def filters(self) -> tuple[str, ...]:
        """The names of the filter's spatial dims."""
        return _NAMES[len(self.axes)]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the input's spatial dims."""
        return _INPUTS[len(self.axes)]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the output's spatial dims."""
        return _OUTPUTS[len(self.axes)]

    def _sizes(self) -> dict[str, Size]:
        sizes: dict[str, Size] = {"n": self.n, "c": self.c, "k": self.k, "g": self.g}
        for axis, y, hi, ho in zip(self.axes, self.filters, self.inputs, self.outputs, strict=True):
            sizes |= {y: axis.filter, hi: axis.size, ho: axis.output}
        return sizes

    def _tensor(self, layout: Sequence[str]) -> list[tuple[str, Size]]:
        sizes = self._sizes()
        return [(name, sizes[name]) for name in layout]

    def _filter_order(self) -> list[str]:
        """c and the filter's dims in the input's memory order."""
        place = dict(zip(self.inputs, self.filters, strict=True)) | {"c": "c"}
        return [place[name] for name in self.input_layout if name in place]

    def _output_order(self) -> list[str]:
        """n and the output's dims in the output's memory order."""
        return [name for name in self.output_layout if name in ("n", *self.outputs)]

    def _windows(self) -> View:
        """The input as n, g, c, filter dims and output dims: padded, then embedded."""
        pad = bottom_up(self._tensor(self.input_layout)).passthrough("n", "g", "c")
        for axis, hi in zip(self.axes, self.inputs, strict=True):
            pad.pad(hi, axis.left, axis.right, hi + "pad")
        padded = pad.get()
        embed = padded.above().passthrough("n", "g", "c")
        for axis, y, hi, ho in zip(self.axes, self.filters, self.inputs, self.outputs, strict=True):
            embed.embed(hi + "pad", {y: axis.filter, ho: axis.output}, [axis.dilation, axis.stride])
        return embed.get()

    def forward(self) -> Gemm:
        """output[k, (n ho wo)] = sum over (c y x) of filter[k, (c y x)] input[(c y x), (n ho wo)]."""
        inner, outer = self._filter_order(), self._output_order()
        a = bottom_up(self._tensor(self.filter_layout)).merge("gemmK", inner)
        b = self._windows().above().merge("gemmK", inner).merge("gemmN", outer)
        c = bottom_up(self._tensor(self.output_layout)).merge("gemmN", outer)
        return Gemm(
            a.passthrough("g", "k", upper=["gemmG", "gemmM"]).get(["gemmG", "gemmK", "gemmM"]),
            b.passthrough("g", upper="gemmG").get(["gemmG", "gemmK", "gemmN"]),
            c.passthrough("g", "k", upper=["gemmG", "gemmM"]).get(["gemmG", "gemmM", "gemmN"]),
        )

    def backward_weight(self, blocks: int = 1) -> Gemm:
        """filter gradient[k, (c y x)] = sum over (n ho wo) of output gradient and input.

        `blocks` splits the batch: every block is a gemm of its own in G, and all blocks of a group accumulate into the
        same elements of C (blocks must divide n).
        """
        inner, outer = self._filter_order(), self._output_order()
        order = ["batch" if name == "n" else name for name in outer]

        def blocked(view: View) -> View:
            if isinstance(self.n, int) and self.n % blocks:
                raise ViewError(f"{blocks} blocks do not divide a batch of {self.n}")
            split = view.above().unmerge("n", {"block": blocks, "batch": view_size(view, "n") // blocks})
            return split.passthrough(*[d.name for d in view.upper if d.name != "n"]).get()

        output = blocked(bottom_up(self._tensor(self.output_layout)).passthrough(*self.output_layout).get())
        a = output.above().merge("gemmK", order).merge("gemmG", ["block", "g"])
        b = blocked(self._windows()).above().merge("gemmK", order).merge("gemmN", inner)
        weights = bottom_up(self._tensor(self.filter_layout)).passthrough(*self.filter_layout)
        c = weights.add_dim("block", blocks).get().above().merge("gemmN", inner).merge("gemmG", ["block", "g"])
        return Gemm(
            a.passthrough("k", upper="gemmM").get(["gemmG", "gemmK", "gemmM"]),
            b.merge("gemmG", ["block", "g"]).get(["gemmG", "gemmK", "gemmN"]),
            c.passthrough("k", upper="gemmM").get(["gemmG", "gemmM", "gemmN"]),
        )

    def backward_data(self) -> Iterator[tuple[int, Gemm]]:
        """The dense gemms of v4r1 with their ids: together they write every input gradient at most once.

        Ids need not be contiguous. Elements that none writes are zero: see `backward_data_needs_zero`.
        """
        for number, tildas in enumerate(product(*[range(axis.filter_tilda) for axis in self.axes])):
            if all(tilda < axis.filter for tilda, axis in zip(tildas, self.axes, strict=True)):
                yield number, self._backward_data(tildas)

    def backward_data_needs_zero(self) -> bool:
        """Does backward data leave input gradients unwritten?"""
        return any(len(axis.written()) < axis.size for axis in self.axes)

    def _backward_data(self, tildas: tuple[int, ...]) -> Gemm:
        def names(kind: str) -> list[str]:
            return [f"{y}{kind}" for y in self.filters]

        dots, rests, ts = names("dot"), names("tilda"), [f"{ho}t" for ho in self.outputs]
        axes = list(zip(self.axes, self.filters, self.inputs, self.outputs, tildas, strict=True))

        a = bottom_up(self._tensor(self.filter_layout)).passthrough("g", "k", "c")
        b = bottom_up(self._tensor(self.output_layout)).passthrough("n", "g", "k")
        pad = bottom_up(self._tensor(self.input_layout)).passthrough("n", "g", "c")
        for axis, y, hi, ho, _ in axes:
            extents = axis.filter_dot, axis.filter_tilda, axis.output_tilda
            a.embed(y, {f"{y}dot": extents[0], f"{y}tilda": extents[1]}, [axis.filter_tilda, 1])
            spread = axis.dilation // gcd(axis.stride, axis.dilation)
            b.embed(ho, {f"{y}dot": extents[0], f"{ho}t": extents[2]}, [-spread, 1])
            pad.pad(hi, axis.left, axis.right, hi + "pad")
        c = pad.get().above().passthrough("n", "g", "c")
        for axis, y, hi, ho, _ in axes:
            sizes = {f"{y}tilda": axis.filter_tilda, f"{ho}t": axis.output_tilda}
            c.embed(hi + "pad", sizes, [axis.dilation, axis.stride])

        a = a.get().above().passthrough("g", "k", "c")
        b = b.get().above().passthrough("n", "g", "k")
        c = c.get().above().passthrough("n", "g", "c")
        for axis, y, _, ho, tilda in axes:
            a.slice(f"{y}dot", 0, axis.dot_slice(tilda)).slice(f"{y}tilda", tilda, tilda + 1)
            b.slice(f"{y}dot", 0, axis.dot_slice(tilda)).slice(f"{ho}t", *axis.tilda_range)
            c.slice(f"{y}tilda", tilda, tilda + 1).slice(f"{ho}t", *axis.tilda_range)

        a = a.get().above().merge("gemmK", ["k", *dots]).merge("gemmM", ["c", *rests])
        b = b.get().above().merge("gemmK", ["k", *dots]).merge("gemmN", ["n", *ts])
        c = c.get().above().merge("gemmM", ["c", *rests]).merge("gemmN", ["n", *ts])
        return Gemm(
            a.passthrough("g", upper="gemmG").get(["gemmG", "gemmK", "gemmM"]),
            b.passthrough("g", upper="gemmG").get(["gemmG", "gemmK", "gemmN"]),
            c.passthrough("g", upper="gemmG").get(["gemmG", "gemmM", "gemmN"]),
        )


def view_size(view: View, name: str) -> Expr:
    """The size of an upper dim."""
    return next(d.size for d in view.upper if d.name == name)
