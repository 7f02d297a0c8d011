"""Random lowered programs, translated and run by the kernel evaluator, against the reference evaluator.

Integers only, so that both sides are exact; whatever the translation accepts must pass every check and be right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from lithify.lang import build as b
from lithify.lang.errors import EvaluationError, Rejected
from lithify.lang.levels import INLINE, LOCAL, SEQ
from lithify.lang.scalars import f32, i32
from lithify.lang.term import Term
from lithify.lang.types import Array, Index, Type, array
from lithify.machine.nvidia import H200_CUDA
from tests.evaluate.test_random_terms import random_value
from tests.kernel.lowered_terms import G0, GLOBAL0, I0, folded_in_groups, folded_on_cpu, in_groups, on_cpu, on_gpu
from tests.kernel.mutations import MUTATIONS, Mutation, mutants
from tests.kernel.test_evaluator_mutants import EXPECTED, MISSING, outcome
from tests.kernel.tiles import matmul_by_groups
from tests.kernel.translated import check

Make = Callable[[Random, int], tuple[Term, dict[str, Type]]]
WARP = 4
GPU = replace(H200_CUDA, warp_width=WARP)
KINDS = {
    "cpu": on_cpu,
    "gpu": on_gpu,
    "groups": in_groups,
    "folded on cpu": folded_on_cpu,
    "folded in groups": folded_in_groups,
}


def translated(make: Make, seed: int, depth: int) -> tuple[ir.Program, dict[str, Any], list[Any]] | None:
    """A random program, its inputs and what it must compute; None where the translation rejects the term."""
    r = Random(seed)
    term, types = make(r, depth)
    used = {name: type_ for name, type_ in types.items() if name in term.parameters}
    values = {name: random_value(r, type_) for name, type_ in used.items()}
    try:
        program = translate(term, list(used.items()), device=None if make in (on_cpu, folded_on_cpu) else GPU)
    except Rejected:
        return None
    flat = [leaf for name in used for leaf in leaves(values[name])]
    inputs = {buffer.name: leaf for buffer, leaf in zip(program.parameters, flat, strict=True)}
    return program, inputs, leaves(evaluate(term, values))


def is_right(program: ir.Program, inputs: dict[str, Any], expected: list[Any], seed: int) -> bool:
    results = run(program, inputs, seed=seed, warp=WARP)
    return all(np.array_equal(a, b) for a, b in zip(results, expected, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(seed=st.integers(0, 2**40), depth=st.sampled_from([2, 2, 3, 4]))
def test_what_is_translated_is_right(kind: str, seed: int, depth: int) -> None:
    subject = translated(KINDS[kind], seed, depth)
    if subject is not None:
        assert is_right(*subject, seed)


# Once wrong: work on scalars, or a choice between indices, evaluated also where the side it belongs to does not exist;
# an index read from memory before the condition that makes it safe; no barrier between [item, k] and [k, item].


def test_work_of_a_side_that_does_not_exist() -> None:
    x = b.param("x", Array(3, i32))
    shifted = b.concat(b.generate(2, lambda _i: b.const(7, i32)), b.map_(lambda e: b.let(e, double), x, INLINE))
    padded = b.pad(2, 2, b.const(7, i32), b.map_(lambda e: b.let(e, double), x, INLINE))
    for term in (shifted, padded):
        check(b.copy(term, SEQ))
        check(b.copy(term, GLOBAL0))


def double(x: Term) -> Term:
    return b.add(x, x)


def test_indices_of_a_side_that_does_not_exist() -> None:
    x, i, j = b.param("x", Array(4, i32)), b.param("i", Array(2, Index(4))), b.param("j", Array(3, Index(4)))
    ids = b.concat(i, j)
    check(b.copy(b.gather(ids, x), SEQ))
    check(b.copy(b.gather(ids, x), GLOBAL0))
    twice = b.gather(b.concat(b.gather(i, b.generate(4, lambda k: k)), j), x)
    check(b.copy(b.concat(twice, b.gather(b.pad(1, 2, b.const(1, Index(4)), j), x)), GLOBAL0))


def test_an_item_reads_its_row_without_a_barrier_and_a_column_with_one() -> None:
    """What is compared are elements, not the numbers of the items that appear in their indices."""
    x = b.param("x", array(2, 3, 3, i32))

    def staged(read: Callable[[Term], Term]) -> Term:
        def group(tile: Term) -> Term:
            return b.let(b.to(LOCAL, b.copy(tile, I0, SEQ)), lambda t: b.copy(b.at(read(t), 1), I0))

        return b.map_(group, x, G0)

    assert _barriers(check(staged(b.transpose))) == 0  # item reads [item, 1]
    assert _barriers(check(staged(lambda t: t))) == 1  # item reads [1, item]


def test_most_programs_are_translated() -> None:
    for make in KINDS.values():
        accepted = sum(translated(make, seed, 2) is not None for seed in range(150))
        assert accepted > 100, make


def test_barriers_are_needed() -> None:
    """Without one of its barriers a translated program has a race, or (where it was not needed after all) is right."""
    (no_barrier,) = (m for m in MUTATIONS if m.name == "no barrier")
    found = {"race": 0, "right": 0}
    for seed in range(250):
        subject = translated(in_groups, seed, 2)
        if subject is None or not _barriers(subject[0]):
            continue
        program, inputs, expected = subject
        for mutant in mutants(program, no_barrier):
            try:
                assert is_right(mutant.program, inputs, expected, seed)
                found["right"] += 1
            except EvaluationError as error:
                assert "race" in error.message, error  # noqa: PT017
                found["race"] += 1
    assert found["race"] > 100
    assert found["race"] > 2 * found["right"], found


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("slots", [0, 2, 3])
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_no_mistake_in_a_translated_kernel_survives(slots: int, asynchronous: bool, mutation: Mutation) -> None:
    """A matrix product in tiles of a group, staged or fetched ahead in a ring, with register tiles."""
    program = _matmul(slots, asynchronous)
    rng = np.random.default_rng(0)
    left, right = rng.uniform(0.5, 2, (8, 12)), rng.uniform(0.5, 2, (12, 16))
    allowed = EXPECTED[mutation.name]
    if mutation.name.startswith(("index", "guard", "one slot", "fetch")):  # the wrong place may hold nothing
        allowed = allowed | MISSING | {"out of bounds"}
    found = [outcome(mutant.program, {"A": left, "B": right}, left @ right) for mutant in mutants(program, mutation)]
    spare = 1 if asynchronous and mutation.name in ("no barrier", "no commit") else 0  # one of them may be redundant
    assert found.count("right") <= spare
    assert set(found) <= allowed | {"right"}


@cache
def _matmul(slots: int, asynchronous: bool) -> ir.Program:
    term = matmul_by_groups(8, 16, 12, (4, 8, 4), (2, 2), slots)
    device = H200_CUDA if asynchronous else None
    program = translate(term, [("A", array(8, 12, f32)), ("B", array(12, 16, f32))], device=device)
    copies = any(isinstance(s, ir.Async) for kernel in program.kernels for s in statements(kernel.body))
    assert copies == (asynchronous and slots > 0)
    return program


def _barriers(program: ir.Program) -> int:
    return sum(isinstance(s, ir.Barrier) for kernel in program.kernels for s in statements(kernel.body))
