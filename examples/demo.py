"""The demonstration (`make demo`): a photograph is sharpened, its corners are found, and the times are told.

The two programs are `unsharp` and `harris` of `lithify/operators/image.lift`. Nothing in them says how they are
computed: the kernels are derived for the CPU in front of you when they are first called. The table compares them with
SciPy and NumPy doing the same mathematics, and with the least time that the machine's memory allows, measured in the
same run.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from scipy import ndimage
from skimage import data

import lithify as lf
from lithify.program.explain import Explanation, duration

Picture = NDArray[Any]

OUTPUT = Path(__file__).resolve().parent.parent / "demo-output"
AMOUNT, KAPPA = 1.5, 0.05  # how much is sharpened; Harris and Stephens' constant
TILES = (3, 5)  # of 512 x 512: 1536 x 2560 for the timing
ROUNDS = 9
CORNERS_ABOVE = 0.02  # of the strongest response
GAUSSIAN = np.array(
    [[2, 4, 5, 4, 2], [4, 9, 12, 9, 4], [5, 12, 15, 12, 5], [4, 9, 12, 9, 4], [2, 4, 5, 4, 2]], dtype=float
)


# ---- the same mathematics with SciPy and NumPy -----------------------------------------------------------------------


def unsharp_scipy(image: Picture) -> Picture:
    """image + amount (image - Gaussian image)."""
    blurred = ndimage.correlate(image, (GAUSSIAN / 159).astype(image.dtype), mode="nearest")
    return image + image.dtype.type(AMOUNT) * (image - blurred)


def unsharp_numpy(image: Picture) -> Picture:
    """The same by shifted slices."""
    rows, columns = image.shape
    padded = np.pad(image, 2, mode="edge")
    blurred = np.zeros_like(image)
    for (i, j), weight in np.ndenumerate(GAUSSIAN / 159):
        blurred += image.dtype.type(weight) * padded[i : i + rows, j : j + columns]
    return image + image.dtype.type(AMOUNT) * (image - blurred)


def harris_scipy(image: Picture) -> Picture:
    """det S - kappa (trace S)^2 of the 3x3 sums S of products of Sobel derivatives."""
    twelve, nine = image.dtype.type(12), image.dtype.type(9)
    ix = ndimage.sobel(image, axis=1, mode="nearest") / twelve
    iy = ndimage.sobel(image, axis=0, mode="nearest") / twelve
    xx, xy, yy = (ndimage.uniform_filter(p, 3, mode="nearest") * nine for p in (ix * ix, ix * iy, iy * iy))
    trace = xx + yy
    return xx * yy - xy * xy - image.dtype.type(KAPPA) * trace * trace


def harris_numpy(image: Picture) -> Picture:
    """The same by shifted slices."""

    def around(picture: Picture) -> list[list[Picture]]:
        rows, columns = picture.shape
        padded = np.pad(picture, 1, mode="edge")
        return [[padded[i : i + rows, j : j + columns] for j in range(3)] for i in range(3)]

    w, twelve = around(image), image.dtype.type(12)
    ix = (w[0][2] - w[0][0] + 2 * (w[1][2] - w[1][0]) + w[2][2] - w[2][0]) / twelve
    iy = (w[2][0] - w[0][0] + 2 * (w[2][1] - w[0][1]) + w[2][2] - w[0][2]) / twelve
    xx, xy, yy = (sum(part for row in around(p) for part in row) for p in (ix * ix, ix * iy, iy * iy))
    trace = xx + yy
    result: Picture = xx * yy - xy * xy - image.dtype.type(KAPPA) * trace * trace
    return result


# ---- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One program: what it is, what is known of it, and the others' times beside its own, run in turns."""

    title: str
    explanation: Explanation
    ours: float
    others: dict[str, float]
    error: float
    first_call: float

    @property
    def best_other(self) -> tuple[str, float]:
        """The fastest of the others."""
        return min(self.others.items(), key=lambda item: item[1])


def measure(
    title: str, program: lf.Program, image: Picture, parameter: float, others: dict[str, Callable[[Picture], Picture]]
) -> Measured:
    """Call, check against float64, and time in turns with the others."""
    start = time.perf_counter()
    result = program(image, parameter)
    first_call = time.perf_counter() - start
    reference = next(iter(others.values()))(image.astype(np.float64))
    error = float(np.abs(result - reference).max() / np.abs(reference).max())
    runs: dict[str, Callable[[], object]] = {"lithify": lambda: program(image, parameter, out=result)}
    runs |= {name: (lambda run=run: run(image)) for name, run in others.items()}  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ours = medians.pop("lithify")
    return Measured(title, program.explain(image, parameter), ours, medians, error, first_call)


# ---- pictures --------------------------------------------------------------------------------------------------------


def save(picture: Picture, name: str) -> Path:
    """Write a picture with values between 0 and 1."""
    path = OUTPUT / name
    Image.fromarray(np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8)).save(path)
    return path


def corners_of(response: Picture) -> NDArray[np.intp]:
    """Row and column of the local maxima of the response that are strong enough."""
    strongest = ndimage.maximum_filter(response, 9) == response
    strongest &= response > CORNERS_ABOVE * response.max()
    strongest[[0, -1], :] = strongest[:, [0, -1]] = False
    return np.argwhere(strongest)


def with_marks(image: Picture, places: NDArray[np.intp], scale: int = 2) -> Picture:
    """The picture enlarged and darkened a little, a ring around each place."""
    large = np.kron(image * 0.75, np.ones((scale, scale)))
    coloured = np.stack([large] * 3, axis=2)
    rows, columns = np.indices((15, 15)) - 7
    ring = np.argwhere(np.abs(np.hypot(rows, columns) - 5.5) < 1.0) - 7
    for place in places * scale + scale // 2:
        marked = place + ring
        inside = ((marked >= 0) & (marked < large.shape)).all(axis=1)
        coloured[tuple(marked[inside].T)] = (1.0, 0.35, 0.1)
    return coloured


def before_and_after(before: Picture, after: Picture, rows: slice, columns: slice, scale: int = 4) -> Picture:
    """The same detail of both, enlarged, side by side."""
    parts = [np.kron(np.clip(p[rows, columns], 0, 1), np.ones((scale, scale))) for p in (before, after)]
    return np.hstack([parts[0], np.ones((parts[0].shape[0], 8)), parts[1]])


def heat(response: Picture) -> Picture:
    """The response in colours: corners bright, edges blue, nothing black."""
    positive = np.sqrt(np.clip(response / np.quantile(response, 0.999), 0, 1))
    negative = np.sqrt(np.clip(response / np.quantile(response, 0.02), 0, 1))
    return np.stack([positive, 0.65 * positive + 0.15 * negative, 0.2 * positive + 0.8 * negative], axis=2)


# ---- telling ---------------------------------------------------------------------------------------------------------


def table_of(found: list[Measured], pixels: str) -> Table:
    """The times and what they mean."""
    table = Table(title=f"{pixels} pixels, f32", title_style="bold", header_style="bold", caption_justify="left")
    for title in ("program", "time", "bound", "share", "NumPy, SciPy", "faster", "error"):
        table.add_column(title, justify="left" if title == "program" else "right", no_wrap=True)
    for each in found:
        name, other = each.best_other
        bound = dict(each.explanation.bound.each)["heap"]
        table.add_row(
            Text(each.title, style="bold green"),
            duration(each.ours),
            duration(bound),
            f"{bound / each.ours:.0%}",
            f"{name} {duration(other)}",
            Text(f"{other / each.ours:.1f} x", style="bold"),
            f"{each.error:.0e}",
        )
    bandwidth = found[0].explanation.model.bandwidth().rate / 1e9
    table.caption = (
        f"bound: every pixel read and written once, at the {bandwidth:.1f} GB/s that the memory streamed in this run. "
        "A share above 100 %: a part of the picture was still in caches. "
        "NumPy, SciPy: the faster of the two, in f32, run in turns with lithify. "
        "error: the largest difference from float64, relative to the largest value."
    )
    return table


def derivation_of(program: lf.Program, image: Picture, parameter: float, first_call: float) -> Panel:
    """The rules that were applied, how often, and what each says."""
    steps = program.derivation(image, parameter).steps
    laws = {step.rule.rule.name: " ".join(step.rule.rule.law.split()) for step in steps}
    grid = Table.grid(padding=(0, 2))
    for name, count in Counter(step.rule.rule.name for step in steps).items():
        law = re.split(r"(?<=\w)[.:;] ", laws[name])[0].rstrip(".")
        grid.add_row(Text(f"{count:3} x", style="dim"), Text(name, style="green"), Text(law, style="dim"))
    title = f"how {program.name} was derived: {len(steps)} rewrite steps"
    subtitle = f"first call, compiled or from the cache: {duration(first_call)}"
    return Panel(grid, title=title, subtitle=subtitle, border_style="dim")


def main() -> int:
    """Run the demonstration."""
    console = Console()
    photograph = (data.camera() / 255).astype(np.float32)
    large = np.tile(photograph, TILES)
    OUTPUT.mkdir(exist_ok=True)
    programs = lf.library("image")
    unsharp, harris = programs["unsharp"], programs["harris"]
    promise = "a photograph, two programs from image.lift, no schedule, no compiler, no GPU"
    console.print(Panel(f"[bold]lithify[/bold] {lf.__version__} on {unsharp.device}\n{promise}", expand=False))
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("sharpening the photograph and looking for corners", total=None)
        sharp = unsharp(photograph, AMOUNT)
        response = harris(photograph, KAPPA)
        corners = corners_of(response)
        written = [
            save(photograph, "photograph.png"),
            save(sharp, "sharpened.png"),
            save(before_and_after(photograph, sharp, slice(60, 220), slice(160, 320)), "sharpened-detail.png"),
            save(heat(response), "corner-response.png"),
            save(with_marks(photograph, corners), "corners.png"),
        ]
        found = []
        for title, program, parameter, others in (
            ("unsharp mask", unsharp, AMOUNT, {"SciPy": unsharp_scipy, "NumPy": unsharp_numpy}),
            ("Harris corners", harris, KAPPA, {"SciPy": harris_scipy, "NumPy": harris_numpy}),
        ):
            progress.update(task, description=f"measuring {title}, SciPy and NumPy in turns")
            found.append(measure(title, program, large, parameter, others))

    console.print(table_of(found, " x ".join(map(str, large.shape))))
    console.print()
    for each, program, parameter in zip(found, (unsharp, harris), (AMOUNT, KAPPA), strict=True):
        console.print(derivation_of(program, large, parameter, each.first_call))
    console.print(f"{len(corners)} corners; the pictures are in {_shown(OUTPUT)}: {', '.join(p.name for p in written)}")
    return 0 if all(each.error < 1e-4 for each in found) else 1


def _shown(path: Path) -> str:
    here = Path.cwd()
    return f"{path.relative_to(here)}/" if path.is_relative_to(here) else str(path)


if __name__ == "__main__":
    sys.exit(main())
