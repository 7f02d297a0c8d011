"""How soon searches come near the best: at random, by the cost model, and by one that knows other problems.

Some points of each problem's space are drawn at random and measured, until there are enough (what was measured before
counts: an interrupted run goes on). On these points the searches are replayed, from many orders or seeds: "after 5" is
the best of the first five as a share of the best of all, "90 % after" how many it takes (medians). The default is left
out. The model that knows other problems has their measurements, never the problem's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.harness import Row, cpu_name, record, table
from lithify.explore.candidates import Features, SpaceCandidates, valid_in
from lithify.explore.experience import experience_of
from lithify.explore.problems import read_problem
from lithify.explore.proposals import Experience, ModelGuided
from lithify.explore.records import RECORDS
from lithify.program import Program, parse
from lithify.program.tune import candidates_of, tune

PROBLEMS = (
    "gemm -t f32 -m 384 -n 2304 -k 768",
    "gemm -t f32 -m 384 -n 768 -k 3072",
    "gemm -t f32 -m 64 -n 512 -k 512",
    "gemm -t f32 -transA true -m 128 -n 1536 -k 512",
    "gemm -t f32 -g 12 -m 384 -n 64 -k 384",
    "gemm -t f32 -transB true -g 12 -m 384 -n 384 -k 64",
)
SECONDS, QUICK_SECONDS, POINTS = 40, 4, 120
AT, NEAR, STEPS = (1, 3, 5, 10, 20), 0.9, 60
ORDERS, SEEDS = 300, 5


def points(program: Program, candidates: SpaceCandidates, seconds: int, wanted: int) -> dict[str, float]:
    """Measured points of a problem, those of before and, if they are too few, new ones."""
    line, device = candidates.problem.line, candidates.model.fingerprint

    def known() -> dict[str, float]:
        default = str(candidates.space.default)
        return {
            m.candidate: m.seconds
            for m in RECORDS.measurements(line, device)
            if m.seconds is not None and m.candidate != default and valid_in(candidates.space, m.candidate) is not None
        }

    if len(known()) < wanted:
        tune(program, program.types()[0], budget=f"{seconds}s", search_by="random")
    return known()


def features_in(keys: list[str], every: Features, wanted: Sequence[str]) -> Features:
    """The features of some of the keys."""
    places = [keys.index(key) for key in wanted]
    return Features(every.rows[places], every.rough[places])


def guided(times: dict[str, float], every: Features, experience: Sequence[Experience]) -> list[np.ndarray]:
    """The best so far after each measurement, for each seed; the first is drawn at random."""
    keys, curves = list(times), []
    for seed in range(SEEDS):
        keys = [keys[k] for k in np.random.default_rng(seed).permutation(len(keys))]
        of = partial(features_in, list(times), every)
        search, history = ModelGuided(keys, of, seed, (), experience), dict[str, float | None]()
        while len(history) < min(STEPS, len(keys)):
            key = next(search.propose(history))
            history[key] = times[key]
        curves.append(np.minimum.accumulate(np.array(list(history.values()), float)))
    return curves


def row(problem: str, search: str, best: float, curves: Sequence[np.ndarray]) -> Row:
    """The share of the best after some measurements, and how many it takes to be near it."""
    share = best / np.stack(curves)
    near = np.where((share >= NEAR).any(axis=1), (share >= NEAR).argmax(axis=1) + 1, np.inf)
    typical = float(np.median(near))
    return {
        "problem": problem,
        "search": search,
        **{f"after {n}": round(float(np.median(share[:, n - 1])), 2) for n in AT},
        "90 % after": int(typical) if np.isfinite(typical) else f"more than {share.shape[1]}",
    }


def main(quick: bool) -> None:
    """Measure points, replay, print, and record unless `quick`."""
    looked_at = []
    for line in PROBLEMS[:2] if quick else PROBLEMS:
        named = read_problem(line)
        program = parse(named.text)[named.name]
        candidates = candidates_of(program.specialise(*program.types()[0]))
        times = points(program, candidates, QUICK_SECONDS if quick else SECONDS, 10 if quick else POINTS)
        looked_at.append((line, candidates, times))
    rows: list[Row] = []
    random = np.random.default_rng(0)
    for line, candidates, times in looked_at:
        seconds, best = np.array(list(times.values())), min(times.values())
        every = candidates.features(list(times))
        experience = experience_of(candidates.family, candidates.problem, candidates.model)
        steps = min(STEPS, len(times))
        orders = [np.minimum.accumulate(seconds[random.permutation(len(times))])[:steps] for _ in range(ORDERS)]
        rows.append(row(line, "at random", best, orders))
        rows.append(row(line, "model", best, guided(times, every, ())))
        rows.append(row(line, f"model that knows {len(experience)} others", best, guided(times, every, experience)))
    print(table(rows))
    if not quick:
        note = "Shares of the best of all measured points; f32."
        record("search", rows, device=cpu_name(), note=note)
