"""The seven reductions: checked step by step, right on every element count, and no barrier too many or too few."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.kernel.evaluator import Counts, run
from lithify.kernel.translate import translate
from lithify.lang.build import add, const, param, reduce_
from lithify.lang.errors import EvaluationError, RewriteFailed
from lithify.lang.scalars import f32, i32
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.lowering.reduction import VERSIONS
from lithify.machine import GENERIC_GPU
from lithify.machine.host import host
from tests.kernel.mutations import MUTATIONS, mutants

SMALLEST = 4096
NAMES = [version.name for version in VERSIONS]


def _sum(n: int, scalar: object = f32) -> object:
    assert scalar in (f32, i32)
    return reduce_(add, const(0, scalar), param("xs", array(n, scalar)))


def _kernels(name: str, n: int, *, check: bool = False) -> object:
    lowered = lower(_sum(n), GENERIC_GPU, strategy=name, check=check)
    return translate(lowered.term, [("xs", array(n, f32))], device=GENERIC_GPU)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [SMALLEST, SMALLEST + 1, 10_007])
def test_every_version_sums(name: str, n: int) -> None:
    data = np.random.default_rng(n).integers(-8, 8, n).astype(np.float32)
    (result,) = run(_kernels(name, n, check=n == SMALLEST), {"xs": data})
    assert result == data.sum()


@pytest.mark.parametrize("name", NAMES)
def test_every_barrier_is_needed(name: str) -> None:
    """Where a barrier is left out, the evaluator finds two items that do not wait for each other."""
    (no_barrier,) = (m for m in MUTATIONS if m.name == "no barrier")
    program = _kernels(name, SMALLEST)
    data = np.ones(SMALLEST, np.float32)
    found = list(mutants(program, no_barrier))
    assert found
    for mutant in found:
        with pytest.raises(EvaluationError, match="race"):
            run(mutant.program, {"xs": data})


def test_later_versions_wait_less() -> None:
    waits = []
    for name in ("reduction-3", "reduction-4", "reduction-5", "reduction-6"):
        counts = Counts()
        run(_kernels(name, SMALLEST), {"xs": np.ones(SMALLEST, np.float32)}, counts=counts)
        waits.append(counts.barriers)
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > 3 * waits[-1]


def test_what_is_no_reduction_is_refused() -> None:
    with pytest.raises(RewriteFailed, match="is for a program `reduce f z xs`"):
        lower(param("xs", array(8, f32)), GENERIC_GPU, strategy="reduction-1")
    with pytest.raises(RewriteFailed, match="needs at least 512 elements, 100 given"):
        lower(_sum(100), GENERIC_GPU, strategy="reduction-4")
    with pytest.raises(RewriteFailed, match="did you mean reduction-"):
        lower(_sum(4096), GENERIC_GPU, strategy="reduction-9")


@pytest.mark.parametrize("name", NAMES)
def test_a_device_without_groups_is_refused_with_one_that_has_them(name: str) -> None:
    with pytest.raises(RewriteFailed, match=rf'{name} is for devices with work-groups.*\nhint: .*p.on\("opencl:0"\)'):
        lower(_sum(4096), host(), strategy=name)
