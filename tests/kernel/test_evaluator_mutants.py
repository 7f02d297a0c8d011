"""Right kernels pass; every systematic mistake in them is caught, and for the right reason."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lithify.kernel.evaluator import run
from lithify.kernel.evaluator.reports import first_line
from lithify.lang.errors import EvaluationError
from tests.kernel.hand_written import CASES, Case, ring
from tests.kernel.mutations import MUTATIONS, Mutant, Mutation, mutants

# What the first line of a report says, by kind of report.
REPORTS = {
    "race": r"race on .*nothing orders them",
    "nothing wrote": r"reads .*which nothing wrote",
    "not initialised": r"accumulates into .*which nothing initialised",
    "not written": r"the result .* is never written",
    "out of bounds": r"out of bounds: (reads|writes|updates) index",
    "in flight": r"in flight$|an asynchronous copy is never waited for",
    "range": r"runs to \d+ and is declared below",
    "not a launch": r"a loop over CPU threads stands below",
    "lanes": r"two lanes write",
    "counter": r"the counter .* is \d+ when .* ends",
}
MISSING = {"nothing wrote", "not initialised", "not written", "wrong"}
# What each mistake may show itself as. "wrong" is a result that the comparison reveals.
EXPECTED: dict[str, set[str]] = {
    "no barrier": {"race"},
    "no wait": {"in flight"},
    "weaker wait": {"in flight"},
    "no commit": {"in flight"},
    "no initialisation": {"not initialised"},
    "no store": MISSING,
    "no fetch": {"nothing wrote"},
    "not atomic": {"race"},
    "loop over threads": {"race", "not a launch"},
    "no guard": {"out of bounds", "race"},
    "guard too wide": {"out of bounds", "race"},
    "guard too narrow": {"wrong", "not written", "nothing wrote"},
    "index + 1": {"out of bounds", "race", "nothing wrote", "in flight", "wrong"},
    "index - 1": {"out of bounds", "race", "nothing wrote", "in flight", "wrong"},
    "one slot too few": {"race", "in flight"},
    "fetch too far ahead": {"in flight"},
    "an iteration more": {"range"},
    "an iteration less": MISSING | {"in flight"},
    "not only the last group": {"race"},
    "a group too early": {"race", "counter"},
    "a group too late": {"counter"},
    "one counter for all": {"counter", "race"},
    "read before": {"race"},
}
# The last barrier of a tree: after it one work-item reads what it wrote itself, so nothing is wrong without it.
EQUIVALENT = {("tree_sum", "no barrier"): 1, ("warp_sums", "no barrier"): 1}


def wide(inputs: dict[str, Any]) -> dict[str, Any]:
    return {k: v.astype(np.float64) if v.dtype.kind == "f" else v for k, v in inputs.items()}


def outcome(program: Any, inputs: dict[str, Any], expected: Any, **options: Any) -> str:
    """What becomes of a program: a kind of report, "wrong", or "right"."""
    try:
        (result,) = run(program, inputs, **options)
    except EvaluationError as error:
        (kind,) = (kind for kind, text in REPORTS.items() if re.search(text, error.message))
        return kind
    return "right" if np.allclose(result, expected, rtol=1e-12) else "wrong"


@pytest.mark.parametrize("name", CASES)
def test_right_kernels_pass_in_any_order(name: str) -> None:
    case = CASES[name]()
    for seed in range(20):
        inputs = case.inputs(np.random.default_rng(seed))
        assert outcome(case.program, inputs, case.expected(**wide(inputs)), seed=seed) == "right"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_mistakes_are_caught(name: str, mutation: Mutation) -> None:
    case = CASES[name]()
    survivors = 0
    for mutant, found in outcomes(case, mutation):
        if found == "right":
            survivors += 1
        else:
            assert found in EXPECTED[mutation.name], (mutant.place and first_line(mutant.place), found)
    assert survivors == EQUIVALENT.get((name, mutation.name), 0)


def outcomes(case: Case, mutation: Mutation) -> list[tuple[Mutant, str]]:
    inputs = case.inputs(np.random.default_rng(0))
    expected = case.expected(**wide(inputs))
    return [(mutant, outcome(mutant.program, inputs, expected)) for mutant in mutants(case.program, mutation)]


def test_every_mutation_and_every_report_occurs() -> None:
    """The table above would also pass if nothing were mutated."""
    kinds: set[str] = set()
    for mutation in MUTATIONS:
        found = {kind for make in CASES.values() for _, kind in outcomes(make(), mutation)}
        assert found - {"right"}, mutation.name
        kinds |= found
    assert kinds >= set(REPORTS) - {"lanes"}


@pytest.mark.parametrize("mistake", ["weaker wait", "one slot too few", "fetch too far ahead"])
def test_a_pipeline_without_checks_is_right_or_wrong_by_the_landing(mistake: str) -> None:
    """Copies that land at once hide a missing wait, copies that land late hide a ring that is too small."""
    case = ring()
    inputs = case.inputs(np.random.default_rng(0))
    expected = case.expected(**wide(inputs))
    assert {outcome(case.program, inputs, expected, checks=False, seed=seed) for seed in range(20)} == {"right"}
    (mutation,) = (m for m in MUTATIONS if m.name == mistake)
    for mutant in mutants(case.program, mutation):
        found = {outcome(mutant.program, inputs, expected, checks=False, seed=seed) for seed in range(20)}
        assert found & {"wrong", "out of bounds"}


@pytest.mark.parametrize("slots", [2, 3, 4, 5])
def test_rings_of_any_size(slots: int) -> None:
    case = ring(slots, tiles=7)
    inputs = case.inputs(np.random.default_rng(1))
    assert outcome(case.program, inputs, case.expected(**wide(inputs))) == "right"
    small = {kind for mutation in MUTATIONS if mutation.name in ("one slot too few", "weaker wait", "no barrier")
             for _, kind in outcomes(case, mutation)}  # fmt: skip
    assert small <= {"race", "in flight"}
