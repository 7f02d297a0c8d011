"""Pictures of a view: both spaces as grids of cells, padding hatched, and one element's path through every map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from lithify.arith import Expr
from lithify.views.concrete import everywhere, shape
from lithify.views.errors import ViewError
from lithify.views.space import Dims
from lithify.views.transforms import PassThrough
from lithify.views.view import View

At = Sequence[Expr | int] | Mapping[str, Expr | int]

LARGEST = 4096  # cells of one grid
_CELL = 14
_FONT = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12"'


@dataclass(frozen=True)
class Step:
    """Where an element is at one level: its coordinates, the equations that led here, and whether it is real.

    Below a level where it is padding there are no further steps; `fill` is what is read then.
    """

    dims: Dims
    coordinates: tuple[int, ...]
    equations: tuple[str, ...]
    real: bool = True
    fill: Any = None

    def __str__(self) -> str:
        places = zip(self.dims, self.coordinates, strict=True)
        text = ", ".join([f"{d.name} = {i}" for d, i in places]) or "(one element)"
        return text if self.real else f"{text}: padding, reads {self.fill}"


def trace(view: View, at: At) -> list[Step]:
    """The path of one element from the top of a view to the bottom, or to where it turns out to be padding.

    Raises ViewError where a coordinate is not a number inside its dim.
    """
    u = view.coordinates(at)
    for i, d in zip(u, view.upper, strict=True):
        if i.constant is None or not 0 <= i.constant < shape((d,))[0]:
            raise ViewError(f"coordinate {i} of {d.name!r} is not a number from 0 to {d.size - 1}")
    steps = [Step(view.upper, _numbers(u), ())]
    for m in view.maps:
        u, guards = m.step(u)
        equations = tuple([e for t in m.transforms for e in t.equations() if not _trivial(t, e)])
        failed = [g for g in guards if any(c.offset < 0 for c in g.conditions)]
        steps.append(Step(m.lower, _numbers(u), equations, not failed, failed[0].fill if failed else None))
        if failed:
            break
    return steps


def _trivial(transform: object, equation: str) -> bool:
    left, _, right = equation.partition(" = ")
    return isinstance(transform, PassThrough) and left == right


def _numbers(u: Sequence[Expr]) -> tuple[int, ...]:
    return tuple([i.offset for i in u])


def text(view: View, at: At) -> str:
    """The path of one element as lines of text."""
    return "\n".join(_path_lines(trace(view, at)))


class _Grid:
    """Cells of a space on a plane: the last dim runs right, the one before it down, the next ones in blocks again."""

    def __init__(self, space: Dims) -> None:
        self.dims = space
        self.extents = shape(space)
        count = int(np.prod(self.extents))
        if count > LARGEST:
            raise ViewError(f"a space of {count} cells is too large to draw (at most {LARGEST}): take slices of it")
        self._pitch: list[tuple[int, int]] = []  # (dx, dy) of a step along each dim, the last dim first
        reach = [_CELL, _CELL]
        for depth, extent in enumerate(reversed(self.extents)):
            axis = depth % 2
            gap = 0 if depth < 2 else 4 * (depth // 2)
            pitch = reach[axis] + gap
            self._pitch.append((pitch, 0) if axis == 0 else (0, pitch))
            reach[axis] = pitch * (extent - 1) + reach[axis]
        self.width, self.height = reach

    def place(self, coordinates: Sequence[int]) -> tuple[int, int]:
        """The upper left corner of a cell."""
        steps = list(zip(reversed(coordinates), self._pitch, strict=True))
        return sum(i * dx for i, (dx, _) in steps), sum(i * dy for i, (_, dy) in steps)


def svg(view: View, at: At | None = None) -> str:
    """The view as an SVG drawing: upper space, path of the element `at` (the first one by default), lower space.

    An upper cell has the colour of the lower element that it shows; padding is hatched; lower elements that no upper
    cell shows are white. Raises ViewError for symbolic sizes and spaces too large to draw.
    """
    upper, lower = _Grid(view.upper), _Grid(view.lower)
    steps = trace(view, [0] * len(view.upper) if at is None else at)
    found = everywhere(view)
    strides = [int(np.prod(lower.extents[i + 1 :])) for i in range(len(lower.extents))]
    cells = int(np.prod(lower.extents))

    def colour(coordinates: Sequence[int]) -> str:
        position = sum(i * s for i, s in zip(coordinates, strides, strict=True))
        red, green, blue = hls_to_rgb(0.83 * position / max(1, cells), 0.78, 0.7)
        return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"

    shown: set[tuple[int, ...]] = set()
    upper_cells: list[str] = []
    for u in np.ndindex(*upper.extents):
        real = bool(found.real[u])
        below = tuple([int(i[u]) for i in found.index])
        if real:
            shown.add(below)
        note = f"{_named(view.upper, u)} -> " + (_named(view.lower, below) if real else f"padding ({found.fill[u]})")
        upper_cells.append(_cell(upper.place(u), colour(below) if real else None, note))
    lower_cells = [
        _cell(lower.place(l), colour(l) if l in shown else "white", _named(view.lower, l))
        for l in np.ndindex(*lower.extents)  # noqa: E741
    ]

    lines = _path_lines(steps)
    middle = max([len(line) for line in lines]) * 7.4 + 20
    start = 20 + max(upper.width, int(7.4 * len(_names(view.upper)))) + 20
    height = max(upper.height, lower.height, 18 * len(lines)) + 60
    right = start + middle
    width = right + max(lower.width, 7.4 * len(_names(view.lower))) + 20
    last = steps[-1]
    marks = _mark(upper.place(steps[0].coordinates), 20)
    if last.real and len(steps) == len(view.maps) + 1:
        marks += _mark(lower.place(last.coordinates), right)
    path = ""
    for i, line in enumerate(lines):
        words = line.lstrip()
        x, y = start + 7 * (len(line) - len(words)), 52 + 18 * i
        path += f'<text x="{x}" y="{y}" {_FONT}>{escape(words)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}">\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
        f"{_title(view.upper, 20)}{_title(view.lower, right)}\n"
        f'<g transform="translate(20,40)">{"".join(upper_cells)}</g>\n'
        f'<g transform="translate({right:.0f},40)">{"".join(lower_cells)}</g>\n'
        f"{marks}\n{path}\n</svg>\n"
    )


def _named(space: Dims, coordinates: Sequence[int]) -> str:
    return ", ".join([f"{d.name} {i}" for d, i in zip(space, coordinates, strict=True)])


def _cell(place: tuple[int, int], fill: str | None, note: str) -> str:
    """A coloured cell, or a hatched one where the fill is None."""
    x, y = place
    hatching = ""
    if fill is None:
        half = _CELL // 2
        strokes = (
            f"M{x} {y + half}l{half} {-half}M{x} {y + _CELL}l{_CELL} {-_CELL}M{x + half} {y + _CELL}l{half} {-half}"
        )
        hatching = f'<path d="{strokes}" stroke="#999" stroke-width="1.2"/>'
    return (
        f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="{fill or "white"}" stroke="#666" '
        f'stroke-width="0.5"><title>{escape(note)}</title></rect>{hatching}'
    )


def _mark(place: tuple[int, int], left: float) -> str:
    x, y = place
    return (
        f'<rect x="{left + x:.0f}" y="{40 + y}" width="{_CELL}" height="{_CELL}" fill="none" stroke="black" '
        'stroke-width="2.5"/>'
    )


def _title(space: Dims, x: float) -> str:
    return f'<text x="{x:.0f}" y="24" {_FONT} font-weight="bold">{escape(_names(space))}</text>'


def _names(space: Dims) -> str:
    return " x ".join([f"{d.name} {d.size}" for d in space])


def _path_lines(steps: Sequence[Step]) -> list[str]:
    lines: list[str] = []
    for step in steps:
        lines += [f"    {equation}" for equation in step.equations]
        lines.append(str(step))
    return lines
