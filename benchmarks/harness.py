"""Measuring: side-by-side runs, the facts of the machine, and recorded results.

What is compared is run *interleaved*, round by round, in orders that are drawn: on a shared machine the clock
and the neighbours change from second to second, and only what ran side by side can be compared. So a ratio is
the median of the rounds' ratios, not the ratio of two medians.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lithify.version import __version__

RESULTS = Path(__file__).resolve().parent / "results"

# The devices that `--device` names; none for all that a benchmark measures.
ONLY: list[str] = []
# The programs that `--program` names; none for all. What is measured of some programs only is not recorded.
PROGRAMS: list[str] = []

Value = str | int | float | bool | None
Row = Mapping[str, Value]

# Packages whose version can change a result.
_PACKAGES = ("numpy", "scipy", "llvmlite", "pyopencl", "torch", "scikit-image", "cuda-bindings")
# Settings that change what a competitor does; results made under different ones do not compare.
_SETTINGS = re.compile(r"(OMP|OPENBLAS|MKL|NUMEXPR|POCL|LITHIFY|CUDA|GOMP)_\w+")


@dataclass(frozen=True)
class Timing:
    """Seconds a call, one entry a round, of one of the things that were run side by side."""

    name: str
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """Distance between the quartiles as a share of the median: how far to trust the median."""
        if len(self.rounds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.rounds, n=4)
        return (high - low) / self.median

    def per_second(self, amount: float) -> float:
        """`amount` (bytes, operations) a second at the median."""
        return amount / self.median

    def row(self, *, bytes: float = 0, operations: float = 0, **more: Value) -> dict[str, Value]:
        """One line of a result table: name, ms, spread, GB/s and GF/s where the amounts are given."""
        line: dict[str, Value] = {
            "name": self.name,
            "ms": round(self.median * 1e3, 5),
            "spread": round(self.spread, 3),
        }
        if bytes:
            line["GB/s"] = round(self.per_second(bytes) / 1e9, 3)
        if operations:
            line["GF/s"] = round(self.per_second(operations) / 1e9, 3)
        return line | more


def ratio(of: Timing, to: Timing) -> float:
    """How many times faster `of` is than `to`: the median over the rounds that ran side by side."""
    return statistics.median(b / a for a, b in zip(of.rounds, to.rounds, strict=True))


def compare(
    runs: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    warm_up: int = 2,
    sample_seconds: float = 0.002,
    device_timed: bool = False,
    rest: float = 0.0,
) -> dict[str, Timing]:
    """Time the named callables side by side; the result keeps their order.

    A round calls each of them often enough to last `sample_seconds`, after `rest` seconds of sleep and one call that is
    not counted: threads of one library that wait in a loop would take a core from the next. The order is drawn anew in
    each round: who always followed one that reads the same array would find it in the caches. With `device_timed` a
    callable returns its own time in seconds (from the device's clock) and that is taken instead of the clock around it.

    Raises ValueError for less than one round.
    """
    if rounds < 1:
        raise ValueError(f"at least one round is needed, not {rounds}")
    calls = {name: _calls_needed(run, warm_up, sample_seconds) for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    draw = random.Random(0)
    for _ in range(rounds):
        for name in draw.sample(list(runs), len(runs)):
            if rest:
                time.sleep(rest)
                runs[name]()
            seconds[name].append(_seconds_a_call(runs[name], calls[name], device_timed))
    return {name: Timing(name, tuple(values)) for name, values in seconds.items()}


def _calls_needed(run: Callable[[], object], warm_up: int, sample_seconds: float) -> int:
    for _ in range(warm_up):
        run()
    start = time.perf_counter()
    run()
    once = time.perf_counter() - start
    return max(1, round(sample_seconds / max(once, 1e-9)))


def _seconds_a_call(run: Callable[[], object], calls: int, device_timed: bool) -> float:
    if device_timed:
        return statistics.fmean(float(run()) for _ in range(calls))  # type: ignore[arg-type]
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


# -- the machine ---------------------------------------------------------------------------------------------


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^(?:model name|Hardware|Processor)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else platform.machine()


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Variables that make OpenBLAS take this machine for another one.
_MISLEADING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def own_kernels_of_openblas() -> None:
    """OpenBLAS chooses its kernels itself: the process starts anew without variables, which it reads when loaded."""
    if any(name in os.environ for name in _MISLEADING):
        environment = {k: v for k, v in os.environ.items() if k not in _MISLEADING}
        os.execve(sys.executable, sys.orig_argv, environment)


def machine_facts() -> dict[str, Value | dict[str, str]]:
    """What has to be known to read a result: processor, cores, what else ran, system, versions, settings."""
    versions = {"lithify": __version__}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "settings": {
            key: value for key, value in sorted(os.environ.items()) if _SETTINGS.fullmatch(key) and os.sep not in value
        },
    }


# -- results -------------------------------------------------------------------------------------------------


def record(
    name: str,
    rows: Sequence[Row],
    *,
    device: str,
    note: str = "",
    more: Mapping[str, object] | None = None,
    folder: Path = RESULTS,
) -> Path:
    """Write `<name>-<device>.json` with everything, and a short `.md` table beside it; returns the JSON's
    path.

    `device` is the name of what was measured ("NVIDIA H200", a CPU's name), `note` what a reader of the table
    must know, `more` anything else worth keeping.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    path = folder / f"{name}-{slug}.json"
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    content = {
        "benchmark": name,
        "device": device,
        "date": date,
        "command": _command(),
        "machine": machine_facts(),
        "note": note,
        "results": list(rows),
        **(more or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    head = f"# {name} on {device}\n\n{date}, `{_command()}`"
    path.with_suffix(".md").write_text(
        "\n\n".join(part for part in (head, note, table(rows)) if part) + "\n", encoding="utf-8"
    )
    return path


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table; its columns are the rows' keys in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    numeric = {key for key in columns if all(isinstance(row.get(key, 0), int | float) for row in rows)}
    lines = [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join("--:" if key in numeric else "---" for key in columns) + "|",
    ]
    lines += ["| " + " | ".join(_cell(row.get(key)) for key in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value}"


def _command() -> str:
    """The command line that started this process, without the machine's own paths."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    arguments = [Path(a).name if os.path.isabs(a) else a for a in sys.argv[1:]]
    if spec is not None:
        program = ["-m", spec.name.removesuffix(".__main__")]
    else:
        program = [Path(sys.argv[0]).name]
    return " ".join(["python", *program, *arguments])
