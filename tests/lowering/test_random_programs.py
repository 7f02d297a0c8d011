"""Random programs, lowered for three kinds of machines: every one computes what it means, and none is refused.

Each goes the whole way: lowering, translation, every check of the kernel evaluator, and on the host's lowering machine
code. A failure shows the smallest program that fails in the same way.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.errors import EvaluationError, LithifyError
from lithify.lang.term import Term, subterms
from lithify.lang.types import Function
from lithify.lowering import lower
from lithify.lowering.work import elements, work
from lithify.machine import GENERIC_CPU, GENERIC_GPU, DeviceModel
from lithify.program.devices import device
from tests.kernel.translated import flat, parameters_of, random_value
from tests.lowering.random_programs import LongPrograms, Programs
from tests.lowering.smaller import smallest, text

CHUNK = 40  # programs a test


def model(machine: str) -> DeviceModel:
    return {"cpu through OpenCL": GENERIC_CPU, "gpu": GENERIC_GPU}.get(machine) or device("cpu").model


def failure(term: Term, machine: str, seed: int) -> str | None:
    """What is wrong with the program on a machine; None if it works."""
    parameters = parameters_of(term)
    rng = np.random.default_rng(seed)
    given = {p["name"]: random_value(p.type, rng) for p in parameters}
    leaves = [leaf for p in parameters for leaf in flat(given[p["name"]])]
    try:
        wanted = flat(evaluate(term, given))
    except EvaluationError:  # a smaller program of which an input is no permutation, say
        return None
    try:
        program = translate(lower(term, model(machine)).term, parameters, device=model(machine))
        results = run(program, {b.name: leaf for b, leaf in zip(program.parameters, leaves, strict=True)}, seed=seed)
        _compare(results, wanted)
        if machine == "host":
            compiled = device("cpu").target.compile(program)(*leaves)
            _compare(compiled if isinstance(compiled, tuple) else (compiled,), wanted)
    except (LithifyError, AssertionError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _compare(results: Any, wanted: Any) -> None:
    for result, expected in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result, np.asarray(expected, dtype=np.asarray(result).dtype), strict=True)


def check(machine: str, seeds: range, depth: int) -> None:
    for seed in seeds:
        try:
            term = Programs(random.Random(seed)).program(depth)
        except LithifyError:  # windows longer than what they slide over
            continue
        found = failure(term, machine, seed)
        if found is not None:
            small = smallest(term, lambda t, seed=seed: failure(t, machine, seed))  # type: ignore[misc]
            pytest.fail(f"seed {seed}, depth {depth}: {text(small)}\n{failure(small, machine, seed)}")


MACHINES = ("host", "cpu through OpenCL", "gpu")


@pytest.mark.parametrize("chunk", range(7))
@pytest.mark.parametrize("machine", MACHINES)
def test_random_programs(machine: str, chunk: int) -> None:
    check(machine, range(chunk * CHUNK, (chunk + 1) * CHUNK), depth=3 + chunk % 2)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(100))
@pytest.mark.parametrize("machine", MACHINES)
def test_many_random_programs(machine: str, chunk: int) -> None:
    check(machine, range(10_000 + chunk * CHUNK, 10_000 + (chunk + 1) * CHUNK), depth=3 + chunk % 3)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(20))
@pytest.mark.parametrize("target", ["cpu", "c", "opencl"])
def test_long_arrays(target: str, chunk: int) -> None:
    """Through compiled code alone, where lowering blocks, vectorises and spreads over threads."""
    try:
        where = device(target)
    except LithifyError as error:
        pytest.skip(str(error))
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        try:
            term = LongPrograms(random.Random(seed)).program(3)
        except LithifyError:
            continue
        largest = max(elements(t.type) for t in subterms(term) if not isinstance(t.type, Function))
        if largest > 20_000 or work(term) > 300_000:
            continue
        parameters, rng = parameters_of(term), np.random.default_rng(seed)
        given = {p["name"]: random_value(p.type, rng) for p in parameters}
        program = translate(lower(term, where.model).term, parameters, device=where.model)
        found = where.target.compile(program)(*[leaf for p in parameters for leaf in flat(given[p["name"]])])
        _compare(found if isinstance(found, tuple) else (found,), flat(evaluate(term, given)))
