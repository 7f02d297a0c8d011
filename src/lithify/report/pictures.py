"""Pictures of exploration, drawn from recorded results alone (`benchmarks/results`): matplotlib, the extra `plots`.

funnel        what each phase made and each filter dropped
space         the performance of every point that was measured
search        the best so far, at random (a band over the orders) and guided by the cost model
portability   what a kernel that won on one device reaches on the others
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lithify.lang.errors import LithifyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that are told apart by all (Okabe and Ito).
_BLUE, _ORANGE, _GREEN, _RED, _GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"
_DPI = 130
_NAME = 18  # characters of a line of a device's name
_LONGEST_REASON = 46
_MOST_REASONS = 4

Record = Mapping[str, Any]


def draw_all(results: Path, folder: Path) -> list[Path]:
    """Draw every picture whose results are recorded in a folder; the files that were written.

    Raises LithifyError where matplotlib is missing, nothing is recorded, or a file cannot be read or written.
    """
    _pyplot()
    written = []
    for source, name, draw in _PICTURES:
        found = [_read(path) for path in sorted(results.glob(f"{source}-*.json"))]
        if found:
            written.append(_save(draw(_together(found)), folder / f"{name}.png"))
    if not written:
        raise LithifyError(
            f"{results} holds no results of exploration",
            hint="python -m benchmarks funnel exploration portability records some",
        )
    return written


def _together(records: Sequence[Record]) -> Record:
    """The results of several machines as one: what is kept by device, and rows. Of other sizes than the first: none."""
    first = records[0]
    merged: dict[str, Any] = dict(first)
    for record in records[1:]:
        if record.get("size") == first.get("size"):
            for name, value in record.items():
                if isinstance(merged.get(name), dict) and name != "machine":
                    merged[name] = {**merged[name], **value}
                elif name == "results":
                    merged[name] = [*merged[name], *value]
    return merged


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise LithifyError("pictures need matplotlib", hint="pip install 'lithify[plots]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "figure.titlesize": 12,
            "figure.titleweight": "bold",
        }
    )
    return pyplot


def _read(path: Path) -> Record:
    try:
        found: Record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LithifyError(f"{path} cannot be read: {error}") from error
    return found


def _save(figure: Figure, path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=_DPI, facecolor="white", metadata={"Software": ""})
    except OSError as error:
        raise LithifyError(f"{path} cannot be written: {error.strerror or error}") from error
    _pyplot().close(figure)
    return path


# ---- the funnel ----------------------------------------------------------------------------------------------------


def draw_funnel(record: Record) -> Figure:
    """Every stage as a bar whose length is the logarithm of how many there are; what filters dropped, beside it."""
    funnels: Mapping[str, Record] = record["funnels"]
    figure, axes = _pyplot().subplots(
        1, len(funnels), figsize=(5.2 * len(funnels), 6.4), layout="constrained", squeeze=False
    )
    for axis, (device, funnel) in zip(axes[0], funnels.items(), strict=True):
        _funnel(axis, device, funnel["stages"])
    figure.suptitle("From one program to the kernels that are searched: matrix multiplication, 1024³")
    return figure  # type: ignore[no-any-return]


def _funnel(axis: Axes, device: str, stages: Sequence[Record]) -> None:
    bars: list[tuple[str, int, str]] = [("high-level program", 1, _GREY)]
    notes: dict[int, list[str]] = {}
    for stage in stages:
        bars.append((stage["what"], stage["made"], _BLUE))
        reasons = list(stage["dropped"].items())
        shown = [f"− {count:,}  {_short(why)}" for why, count in reasons[:_MOST_REASONS]]
        rest = sum(count for _, count in reasons[_MOST_REASONS:])
        notes[len(bars)] = [*shown, *[f"− {rest:,}  for other reasons"] * bool(rest)]
        bars.append(("go on", stage["went_on"], _GREEN))
    most = max(np.log10(count + 1.0) for _, count, _ in bars)
    position = 0.0
    for number, (what, count, colour) in enumerate(bars):
        width = np.log10(count + 1.0) / most
        axis.barh(position, width, left=-width / 2, height=0.62, color=colour)
        axis.text(0, position, f"{count:,}", ha="center", va="center", color="white",
                  fontweight="bold")  # fmt: skip
        axis.text(-0.56, position, what, ha="right", va="center")
        position += 1.0
        for line in notes.get(number + 1, []):
            axis.text(-0.5, position - 0.12, line, ha="left", va="center", fontsize=7, color=_GREY)
            position += 0.42
    axis.set(title=device, xlim=(-1.25, 0.85), ylim=(position - 0.4, -0.6))
    axis.axis("off")


def _short(reason: str) -> str:
    reason = reason.split(" (")[0]
    return reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 1] + "…"


# ---- the space -----------------------------------------------------------------------------------------------------


def draw_space(record: Record) -> Figure:
    """The performance of every measured point, from the slowest to the fastest, and of the default."""
    points: Mapping[str, Sequence[float]] = record["points"]
    figure, axes = _pyplot().subplots(1, len(points), figsize=(4.2 * len(points), 3.8), layout="constrained",
                                      squeeze=False)  # fmt: skip
    operations = 2.0 * record["size"] ** 3
    for axis, (device, seconds) in zip(axes[0], points.items(), strict=True):
        speeds = np.sort(operations / np.array(seconds) / 1e9)
        share = 100.0 * (np.arange(len(speeds)) + 0.5) / len(speeds)
        axis.scatter(share, speeds, s=5, color=_BLUE, alpha=0.6, linewidths=0, label=f"{len(speeds):,} points")
        default = record["default"].get(device)
        if default is not None:
            axis.axhline(operations / default / 1e9, color=_ORANGE, linestyle="--", label="default")
        good = np.count_nonzero(speeds >= 0.9 * speeds[-1]) / len(speeds)
        axis.annotate(f"best: {speeds[-1]:.0f}; {good:.1%} of the points\nreach nine tenths of it",
                      (100, speeds[-1]), (52, 0.45 * speeds[-1]), fontsize=8, color=_GREY, ha="center")  # fmt: skip
        axis.set(title=device, xlabel="points, slowest first (%)", xlim=(0, 101))
        axis.set_ylim(bottom=0)
        axis.grid(axis="y", color="#dddddd")
        axis.legend(loc="upper left", bbox_to_anchor=(0.0, 0.9), frameon=False)
    axes[0][0].set_ylabel("performance (Gflop/s)")
    figure.suptitle(f"The space of specialised programs: matrix multiplication, {record['size']}³, f32")
    return figure  # type: ignore[no-any-return]


# ---- searches ------------------------------------------------------------------------------------------------------


def draw_search(record: Record) -> Figure:
    """The best so far as a share of the best of all, after each measurement."""
    searches: Mapping[str, Record] = record["searches"]
    figure, axes = _pyplot().subplots(1, len(searches), figsize=(4.2 * len(searches), 3.8), layout="constrained",
                                      sharey=True, squeeze=False)  # fmt: skip
    for axis, (device, found) in zip(axes[0], searches.items(), strict=True):
        best = min(record["points"][device])
        quartiles = {name: 100.0 * best / np.array(found["random"][name]) for name in ("low", "median", "high")}
        steps = np.arange(1, len(quartiles["median"]) + 1)
        axis.fill_between(steps, quartiles["high"], quartiles["low"], color=_ORANGE, alpha=0.25, linewidth=0,
                          label="random: half of all orders")  # fmt: skip
        axis.plot(steps, quartiles["median"], color=_ORANGE, label="random: median")
        guided = 100.0 * best / np.array(found["guided"])
        for each in guided:
            axis.plot(np.arange(1, len(each) + 1), each, color=_BLUE, alpha=0.25, linewidth=0.8)
        axis.plot(np.arange(1, guided.shape[1] + 1), np.median(guided, axis=0), color=_BLUE, linewidth=2,
                  label=f"cost model: median of {len(guided)}")  # fmt: skip
        axis.axhline(90, color=_GREY, linestyle=":", linewidth=1)
        axis.set(title=device, xlabel="points measured", xlim=(1, len(steps)), ylim=(0, 102))
        axis.grid(axis="y", color="#dddddd")
        axis.legend(loc="lower right", frameon=False)
    axes[0][0].set_ylabel("best so far (% of the best of all)")
    figure.suptitle(f"Searching: matrix multiplication, {record['size']}³, f32")
    return figure  # type: ignore[no-any-return]


# ---- portability ---------------------------------------------------------------------------------------------------


def draw_portability(record: Record) -> Figure:
    """What each device's winner reaches on each device, as a share of that device's own winner."""
    rows: Sequence[Record] = record["results"]
    devices = [name for name in dict.fromkeys(row["run on"] for row in rows) if name in {r["tuned for"] for r in rows}]
    milliseconds = {(row["tuned for"], row["run on"]): row["ms"] for row in rows}
    times = np.array([[milliseconds.get((of, on)) or np.nan for on in devices] for of in devices], dtype=float)
    share = 100.0 * np.diag(times)[None, :] / times
    figure, axis = _pyplot().subplots(figsize=(1.7 * len(devices) + 2.6, 1.2 * len(devices) + 2.0),
                                      layout="constrained")  # fmt: skip
    image = axis.imshow(np.clip(share, 0, 100), cmap="cividis", vmin=0, vmax=100)
    for row, of in enumerate(devices):
        for column, on in enumerate(devices):
            value = share[row, column]
            missing = "does not\nrun" if (of, on) in milliseconds else "not\nmeasured"
            text = missing if np.isnan(value) else f"{value:.0f} %"
            dark = not np.isnan(value) and value < 55
            axis.text(column, row, text, ha="center", va="center", color="white" if dark else "black",
                      fontweight="bold")  # fmt: skip
    names = [textwrap.fill(name, _NAME) for name in devices]
    axis.set_xticks(range(len(devices)), names)
    axis.set_yticks(range(len(devices)), names)
    axis.set(xlabel="run on", ylabel="tuned for")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    figure.colorbar(image, ax=axis, label="share of the device's own best (%)", shrink=0.85)
    figure.suptitle(f"Portability: matrix multiplication, {rows[0]['size']}³, f32")
    return figure  # type: ignore[no-any-return]


_PICTURES: tuple[tuple[str, str, Callable[[Record], Any]], ...] = (
    ("funnel", "exploration-funnel", draw_funnel),
    ("exploration", "exploration-space", draw_space),
    ("exploration", "exploration-search", draw_search),
    ("portability", "exploration-portability", draw_portability),
)
