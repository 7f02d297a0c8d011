"""The space of specialised programs, measured: points at random, searches among them, and winners on other devices.

Matrix multiplication as the slides write it, in f32, on every device of this machine that is not the reference. Points
are drawn at random from what the phases find and measured until the budget is spent (what was measured before counts:
an interrupted run goes on). On the measured points both searches are replayed: at random, and guided by the cost model.
The winner of each device then runs on the others.
"""

from __future__ import annotations

import statistics

import numpy as np

from benchmarks.funnel import SLIDES
from benchmarks.harness import Row, cpu_name, record, table
from lithify.explore.phases import Limit, PhaseCandidates
from lithify.explore.phases.candidates import DEFAULT
from lithify.explore.proposals import ModelGuided
from lithify.kernel.translate import translate
from lithify.lang.errors import LithifyError
from lithify.program import Program
from lithify.program.explore import Explored, explore
from lithify.program.module import load

SIZE, QUICK_SIZE = 512, 64
DEVICES = ("cpu", "opencl:0", "c")
SECONDS = 50.0
RULES = 3
RANDOM_ORDERS, GUIDED_SEEDS, STEPS = 200, 5, 60


def main(quick: bool) -> None:
    """Measure, replay, exchange the winners, and record everything."""
    size = QUICK_SIZE if quick else SIZE
    rng = np.random.default_rng(0)
    arguments = [(rng.random((size, size)) * 2 - 1).astype(np.float32) for _ in range(2)]
    program, found = load(str(SLIDES))["matMult"], dict[str, Explored]()
    for name in DEVICES:
        try:
            found[name] = explore(
                program.on(name), arguments, budget="6s" if quick else f"{SECONDS}s", search_by="random",
                limit=Limit(rules=1 if quick else RULES),
            )  # fmt: skip
        except LithifyError as error:
            print(f"{name}: {error.message}")
    more: dict[str, object] = {"size": size, "points": {}, "default": {}, "states": {}, "searches": {}}
    rows: list[Row] = []
    for name, explored in found.items():
        times = {m.candidate: m.seconds for m in explored.outcome.measurements if m.seconds is not None}
        default = times.pop(DEFAULT, None)
        states = [m.state for m in explored.outcome.measurements]
        more["points"][name] = sorted(times.values())  # type: ignore[index]
        more["default"][name] = default  # type: ignore[index]
        more["states"][name] = {state: states.count(state) for state in sorted(set(states))}  # type: ignore[index]
        more["searches"][name] = replayed(explored.candidates, times)  # type: ignore[index]
        rows.append(
            {
                "device": name,
                "points": len(times),
                "best ms": round(min(times.values()) * 1e3, 3),
                "median ms": round(statistics.median(times.values()) * 1e3, 3),
                "default ms": None if default is None else round(default * 1e3, 3),
            }
        )
    more["portability"] = portability(program, found, arguments)
    print(table(rows))
    if not quick:
        record("exploration", rows, device=cpu_name(), note=f"{size}^3, f32.", more=more)


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


def portability(program: Program, found: dict[str, Explored], arguments: list[np.ndarray]) -> dict[str, object]:
    """Seconds of each device's winner (the rows) on each device (the columns); None where it cannot run."""
    winners = {}
    for name, explored in found.items():
        right = [(m.seconds, m.candidate) for m in explored.outcome.measurements if m.seconds is not None]
        winners[name] = min((s, key) for s, key in right if key != DEFAULT)[1]
    expected = arguments[0].astype(np.float64) @ arguments[1]
    matrix = []
    for key in winners.values():
        row: list[float | None] = []
        for name, explored in found.items():
            device = program.on(name).device
            try:
                kernels = translate(
                    explored.candidates.lower(key).term, explored.candidates.parameters, device=device.model
                )
                executable = device.target.compile(kernels)
                result = np.asarray(executable(*arguments))
                if not np.allclose(result, expected, atol=1e-2):
                    raise LithifyError("the result is wrong")
                row.append(statistics.median(executable.time(tuple(arguments), 15)))
            except LithifyError as error:
                print(f"{key} on {name}: {error.message}")
                row.append(None)
        matrix.append(row)
    return {"devices": list(found), "winners": winners, "seconds": matrix}
