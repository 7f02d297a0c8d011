"""Random lowered programs, translated and run by the kernel evaluator, against the reference evaluator.

Integers only, so that both sides are exact; whatever the translation accepts must pass every check and be right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.evaluate import evaluate
from lithify.evaluate.values import leaves
from lithify.kernel import ir
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.kernel.walk import statements
from lithify.lang.errors import EvaluationError, Rejected
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import Type, array
from tests.evaluate.test_random_terms import random_value
from tests.kernel.lowered_terms import in_groups, on_cpu, on_gpu
from tests.kernel.mutations import MUTATIONS, Mutation, mutants
from tests.kernel.test_evaluator_mutants import EXPECTED, MISSING, outcome
from tests.kernel.tiles import matmul_by_groups

Make = Callable[[Random, int], tuple[Term, dict[str, Type]]]
KINDS = {"cpu": on_cpu, "gpu": on_gpu, "groups": in_groups}


def translated(make: Make, seed: int, depth: int) -> tuple[ir.Program, dict[str, Any], list[Any]] | None:
    """A random program, its inputs and what it must compute; None where the translation rejects the term."""
    r = Random(seed)
    term, types = make(r, depth)
    used = {name: type_ for name, type_ in types.items() if name in term.parameters}
    values = {name: random_value(r, type_) for name, type_ in used.items()}
    try:
        program = translate(term, list(used.items()))
    except Rejected:
        return None
    flat = [leaf for name in used for leaf in leaves(values[name])]
    inputs = {buffer.name: leaf for buffer, leaf in zip(program.parameters, flat, strict=True)}
    return program, inputs, leaves(evaluate(term, values))


def right(program: ir.Program, inputs: dict[str, Any], expected: list[Any], seed: int) -> bool:
    results = run(program, inputs, seed=seed)
    return all(np.array_equal(a, b) for a, b in zip(results, expected, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=250)
@given(seed=st.integers(0, 2**40), depth=st.sampled_from([2, 2, 3, 4]))
def test_what_is_translated_is_right(kind: str, seed: int, depth: int) -> None:
    subject = translated(KINDS[kind], seed, depth)
    if subject is not None:
        assert right(*subject, seed)


# Once wrong: a choice between indices, or work on scalars, of which one side was evaluated where it does not exist;
# missing barriers between [item, k] and [k, item].
@pytest.mark.parametrize(
    ("kind", "seed", "depth"),
    [("gpu", 10552, 3), ("groups", 12380, 3), ("cpu", 20256, 5), ("cpu", 20674, 5), ("gpu", 20692, 5),
     ("groups", 11450, 3), ("groups", 12700, 3), ("groups", 20396, 5)],
)  # fmt: skip
def test_once_wrong(kind: str, seed: int, depth: int) -> None:
    subject = translated(KINDS[kind], seed, depth)
    assert subject is not None
    assert right(*subject, seed)


def test_most_programs_are_translated() -> None:
    for make in KINDS.values():
        accepted = sum(translated(make, seed, 2) is not None for seed in range(150))
        assert accepted > 100, make


def test_barriers_are_needed() -> None:
    """Without one of its barriers a translated program has a race, or (where it was not needed after all) is right.

    (Few programs have any: buffers that take turns need none.)
    """
    (no_barrier,) = (m for m in MUTATIONS if m.name == "no barrier")
    found = {"race": 0, "right": 0}
    for seed in range(400):
        subject = translated(in_groups, seed, 5)
        if subject is None or not _barriers(subject[0]):
            continue
        program, inputs, expected = subject
        for mutant in mutants(program, no_barrier):
            try:
                assert right(mutant.program, inputs, expected, seed)
                found["right"] += 1
            except EvaluationError as error:
                assert "race" in error.message, error  # noqa: PT017
                found["race"] += 1
    assert found["race"] > found["right"], found


@pytest.mark.parametrize("slots", [0, 2, 3])
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_no_mistake_in_a_translated_kernel_survives(slots: int, mutation: Mutation) -> None:
    """A matrix product in tiles of a group, staged or fetched ahead in a ring, with register tiles."""
    program = _matmul(slots)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2, (8, 12)), rng.uniform(0.5, 2, (12, 16))
    wrong_place = mutation.name.startswith(("index", "guard", "one slot"))  # which may be memory that holds nothing
    for mutant in mutants(program, mutation):
        found = outcome(mutant.program, {"A": a, "B": b}, a @ b)
        assert found in EXPECTED[mutation.name] | (MISSING if wrong_place else set())


@cache
def _matmul(slots: int) -> ir.Program:
    term = matmul_by_groups(8, 16, 12, (4, 8, 4), (2, 2), slots)
    return translate(term, [("A", array(8, 12, f32)), ("B", array(12, 16, f32))])


def _barriers(program: ir.Program) -> int:
    return sum(isinstance(s, ir.Barrier) for kernel in program.kernels for s in statements(kernel.body))
