"""Lowered programs through translation and the cpu target, against what they mean (the reference evaluator)."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from lithify.arith import size
from lithify.evaluate import evaluate
from lithify.kernel.translate import translate
from lithify.lang import build as b
from lithify.lang.errors import LaunchError, Rejected
from lithify.lang.levels import PAR, PRIVATE, SEQ
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import Array
from lithify.program.module import parse
from lithify.targets.cpu import CpuTarget
from tests.kernel.lowered_terms import on_cpu
from tests.kernel.translated import flat, parameters_of, random_value

TARGET = CpuTarget(threads=2)


def agrees(term: Term, rng: np.random.Generator) -> None:
    """Compile the term, run it, and compare with the evaluator."""
    parameters = parameters_of(term)
    given = {p["name"]: random_value(p.type, rng) for p in parameters}
    run = TARGET.compile(translate(term, parameters))
    leaves: list[Any] = [leaf for p in parameters for leaf in flat(given[p["name"]])]
    kept = [np.array(leaf) for leaf in leaves]
    got = run(*leaves)
    expected = flat(evaluate(term, given))
    for result, wanted in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        np.testing.assert_allclose(result, np.asarray(wanted, dtype=result.dtype), rtol=1e-6)
    for before, after in zip(kept, leaves, strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_symbolic_program() -> None:
    n, m = size("n"), size("m")
    matrix = b.param("a", Array(n, Array(m, f32)))
    sums = b.map_(lambda row: b.reduce_(b.add, b.const(0.0, f32), row, SEQ, PRIVATE), matrix, PAR)
    run = TARGET.load(TARGET.compile(translate(sums, [matrix])).serialize())
    for shape in ((1, 1), (3, 4), (1000, 777), (2, 300000)):
        x = np.random.default_rng(1).random(shape).astype(np.float32)
        np.testing.assert_allclose(run(x), x.sum(1, dtype=np.float64), rtol=1e-3)
    with pytest.raises(LaunchError, match="size n of kernel is 0; the kernel is for 1 or more"):
        run(np.empty((0, 4), np.float32))


@pytest.mark.parametrize("block", range(10))
def test_random_lowered_programs(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, unrolled loops, vectors of odd widths, threads, memories, every view; many are refused, most run."""
    if block % 2:
        monkeypatch.setattr("lithify.targets.cpu.policy.LEAST_WORK", 0)  # threads whatever the size
    ran = 0
    for seed in range(block * 25, block * 25 + 25):
        term, _ = on_cpu(Random(seed), 3)
        try:
            agrees(term, np.random.default_rng(seed))
        except Rejected:
            continue
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {term}\n{error}") from error
        ran += 1
    assert ran >= 12


@pytest.mark.parametrize("terms", [1, 2, 3, 4, 5, 7, 8, 9, 50])
@pytest.mark.parametrize(("rows", "in_turn"), [(3, 0), (6, 1)])
def test_loops_that_add_to_a_register_tile_are_written_several_times(rows: int, in_turn: int, terms: int) -> None:
    """Those with sums enough, whatever is left over of their iterations."""
    text = "f a b = map (λ row . map (λ col . reduce (+) 0 (map (*) (zip row col))) (transpose b)) a"
    tile = f"outer=n,parallel=outer,mPerBlock={rows},nPerBlock=16,kPerBlock={terms},mPerThread={rows},nPerThread=16"
    numbers = np.random.default_rng(terms)
    a, b = (numbers.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, terms), (terms, 32)))
    f = parse(text)["f"].tuned_by(f"{tile},packA=none,packB=thread,instruction=none")
    assert f.source(a, b).count("llvm.loop.unroll.count") == (in_turn if terms > 1 else 0)
    np.testing.assert_array_equal(f(a, b), a @ b)
