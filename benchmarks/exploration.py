"""The space of specialised programs, measured: points at random, and searches among them.

Matrix multiplication as the slides write it, in f32, on every device of this machine that is not the reference (or
those that `--device` names). Points are drawn at random from what the phases find and measured until the budget is
spent (what was measured before counts: an interrupted run goes on). On the measured points both searches are replayed:
at random, and guided by the cost model. What wins is recorded, for `portability`.

Results of several machines are drawn together. On a machine that is only lent, with a copy of this tree:

    python -m benchmarks exploration portability --device opencl:0

then bring back the files that this wrote below benchmarks/results (data only), and

    python -m benchmarks portability                  # here: its winners on this machine's devices
    lithify report pictures benchmarks/results docs/pictures
"""

from __future__ import annotations

import re
import statistics

import numpy as np

from benchmarks import harness
from benchmarks.funnel import SLIDES
from benchmarks.harness import Row, cpu_name, record, table
from lithify.explore.phases import Limit, PhaseCandidates
from lithify.explore.phases.candidates import DEFAULT
from lithify.explore.proposals import ModelGuided
from lithify.lang.errors import LithifyError
from lithify.program import Device, device
from lithify.program.explore import Explored, explore
from lithify.program.module import load

SIZE, QUICK_SIZE = 512, 64
DEVICES = ("cpu", "opencl:0", "c")
SECONDS = 50.0
RULES = 3
RANDOM_ORDERS, GUIDED_SEEDS, STEPS = 200, 5, 60


def main(quick: bool) -> None:
    """Measure, replay, and record everything."""
    size = QUICK_SIZE if quick else SIZE
    arguments = operands(size)
    program, found = load(str(SLIDES))["matMult"], dict[str, Explored]()
    for name in harness.ONLY or DEVICES:
        try:
            found[label(device(name))] = explore(
                program.on(name), arguments, budget="6s" if quick else f"{SECONDS}s", search_by="random",
                limit=Limit(rules=1 if quick else RULES),
            )  # fmt: skip
        except LithifyError as error:
            print(f"{name}: {error.message}")
    more: dict[str, dict[str, object]] = {"points": {}, "default": {}, "states": {}, "searches": {}, "winners": {}}
    rows: list[Row] = []
    for name, explored in found.items():
        times = {m.candidate: m.seconds for m in explored.outcome.measurements if m.seconds is not None}
        default = times.pop(DEFAULT, None)
        states = [m.state for m in explored.outcome.measurements]
        more["points"][name] = sorted(times.values())
        more["default"][name] = default
        more["states"][name] = {state: states.count(state) for state in sorted(set(states))}
        more["searches"][name] = replayed(explored.candidates, times)
        more["winners"][name] = min(times, key=lambda key: times[key])
        rows.append(
            {
                "device": name,
                "points": len(times),
                "best ms": round(min(times.values()) * 1e3, 3),
                "median ms": round(statistics.median(times.values()) * 1e3, 3),
                "default ms": None if default is None else round(default * 1e3, 3),
            }
        )
    print(table(rows))
    if not quick and rows:
        record(
            "exploration", rows, device=recorded_as(list(found)), note=f"{size}^3, f32.", more={"size": size, **more}
        )


def operands(size: int) -> list[np.ndarray]:
    """Two square matrices between -1 and 1."""
    rng = np.random.default_rng(0)
    return [(rng.random((size, size)) * 2 - 1).astype(np.float32) for _ in range(2)]


def label(of: Device) -> str:
    """A device's name among those of several machines: how it is reached, and what it is."""
    name = re.sub(r"\((R|TM)\)|Processor|pthread-|\s+", " ", of.model.name)
    return f"{of.name.partition(':')[0]}: {' '.join(name.split())}"


def recorded_as(labels: list[str]) -> str:
    """What the results of some devices are filed under: this machine, or the one device that was asked for."""
    return labels[0].replace(":", "") if harness.ONLY and len(labels) == 1 else cpu_name()


def replayed(candidates: PhaseCandidates, times: dict[str, float]) -> dict[str, object]:
    """The best so far after each measurement: of random orders (quartiles), and of the guided search (each seed)."""
    keys, seconds = list(times), np.array(list(times.values()))
    steps = min(STEPS, len(keys))
    rng = np.random.default_rng(0)
    orders = np.stack(
        [np.minimum.accumulate(seconds[rng.permutation(len(keys))])[:steps] for _ in range(RANDOM_ORDERS)]
    )
    guided = []
    for seed in range(GUIDED_SEEDS):
        proposer, history = ModelGuided(keys, candidates.features, seed, near=()), dict[str, float | None]()
        first = rng.permutation(len(keys))[:1]
        history[keys[first[0]]] = float(seconds[first[0]])
        while len(history) < steps:
            key = next(proposer.propose(history))
            history[key] = times[key]
        guided.append(np.minimum.accumulate(np.array(list(history.values()), dtype=float)).tolist())
    low, middle, high = np.quantile(orders, [0.25, 0.5, 0.75], axis=0)
    return {"random": {"low": low.tolist(), "median": middle.tolist(), "high": high.tolist()}, "guided": guided}
