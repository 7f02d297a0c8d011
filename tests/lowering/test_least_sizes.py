"""Rows of which only a least number, or a least length, is known: no loop is taken for as short as that."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.arith import Expr, size
from lithify.evaluate import evaluate
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.module import Definition, read_file, read_text
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.lowering import lower
from lithify.machine import GENERIC_CPU, H200_OPENCL
from lithify.operators import path
from lithify.program.devices import device

_OWN = read_text("""
sums = λ rows . map (λ row . reduce (+) 0 row) rows
total = λ rows . reduce (+) 0 (join rows)
totals = λ rows . reduce (+) 0 (map (λ row . reduce max (-inf) row) rows)
columns = λ rows . map (λ column . reduce (+) 0 column) (transpose rows)
added = λ rows . reduce (λ a row . map (+) (zip a row)) rows[0] rows
added_up = λ rows . reduce (+) 0 (reduce (λ a row . map (+) (zip a row)) rows[0] rows)
prefixes = λ rows . map (λ row . scan (+) 0 row) rows
running = λ rows . scan (λ a row . map (+) (zip a row)) rows[0] rows
argmax = λ (rows : n.m.f32) . map (λ row .
  reduce (λ a b . select (b.0 > a.0) b a) (row[0], 0) (zip row (generate m (λ i . i32 i)))) rows
extremes = λ rows . map (λ row . reduce (λ a b . (max a.0 b.0, min a.1 b.1)) (-inf, inf) (zip row row)) rows
scaled = λ rows . map (map (λ x . x * 2)) rows
copied = λ rows . rows
turned = λ rows . transpose rows
normed = λ rows . map (λ row . let s = reduce (+) 0 row in map (λ x . x / s) row) rows
folded = λ rows . map (λ row . let r = scan (+) 0 row in map (+) (zip r (reverse r))) rows
differences = λ (rows : n.m.f32) . map (λ row . map (λ p . p.0 - p.1) (zip (drop 1 row) (take (m - 1) row))) rows
all_but_one = λ (rows : n.m.f32) . map (λ row . reduce (+) 0 (take (m - 1) row)) rows
stencil = λ rows . map (λ row . map (λ w . w[0] + 2 * w[1] + w[2]) (slide 3 1 (pad 1 1 clamp row))) rows
both_ways = λ rows . map (λ w . map (λ v . reduce (+) 0 (join v)) (map transpose (slide 3 1 (transpose w))))
  (slide 3 1 (pad 1 1 clamp (map (pad 1 1 clamp) rows)))
products = λ rows . map (λ a . map (λ b . reduce (+) 0 (map (*) (zip a b))) rows) rows
outer = λ rows . map (λ row . map (λ x . map (λ y . x * y) row) row) rows
tuples = λ rows . map (λ row . reduce (λ a x . (map (λ y . y + x) a.0, max a.1 x)) (row, 1) row) rows
first = λ rows . map (λ x . x * 2) rows[0]
""")
_SHIPPED = ("softmax", "variance")
_MODELS = {"host": device("cpu").model, "cpu through OpenCL": GENERIC_CPU, "gpu": H200_OPENCL}
# The rows and their lengths: a number that is known, or one that is at least so large.
_KNOWN, _LEAST = "known", "at least"
_BOUNDS = [
    *[((_LEAST, n), (_LEAST, m)) for n, m in ((1, 2), (2, 3), (4, 5), (1, 33), (33, 65))],
    *[((_KNOWN, n), (_LEAST, m)) for n, m in ((3, 2), (40, 9), (40, 33))],
    *[((_LEAST, n), (_KNOWN, m)) for n, m in ((2, 3), (33, 40))],
]


def _definition(name: str) -> Definition:
    return read_file(path("rows"))[name] if name in _SHIPPED else _OWN[name]


def _bound(name: str, kind: str, number: int) -> Expr | int:
    return number if kind == _KNOWN else size(name, number)


@pytest.mark.parametrize("machine", _MODELS)
@pytest.mark.parametrize("name", [*_OWN, *_SHIPPED])
def test_rows_of_at_least_a_number(name: str, machine: str) -> None:
    model, definition = _MODELS[machine], _definition(name)
    for rows, length in _BOUNDS:
        program = definition.elaborate([array(_bound("n", *rows), _bound("m", *length), f32)])
        kernels = translate(lower(program.term, model, check=False).term, program.parameters, device=model)
        for more in (0, 1):
            shape = [number + more * (kind == _LEAST) for kind, number in (rows, length)]
            xs = np.random.default_rng(7).integers(1, 5, shape).astype(np.float32)
            exact = definition.elaborate([array(*shape, f32)])
            wanted = evaluate(exact.term, {"rows": xs})
            results = run(kernels, {"rows": xs})
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for found, expected in zip(results, wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=f"{rows} {length} {shape}")


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("name", ["softmax", "folded", "added_up", "both_ways", "differences"])
def test_compiled(name: str, target: str) -> None:
    model, definition = _MODELS["host"], _definition(name)
    program = definition.elaborate([array(size("n", 2), size("m", 3), f32)])
    kernels = translate(lower(program.term, model, check=False).term, program.parameters, device=model)
    compiled = device(target).target.compile(kernels)
    for shape in ((2, 3), (3, 4), (2, 2500), (900, 3), (131, 300)):
        xs = np.random.default_rng(7).integers(1, 5, shape).astype(np.float32)
        wanted = evaluate(definition.elaborate([array(*shape, f32)]).term, {"rows": xs})
        np.testing.assert_allclose(compiled(xs), wanted, rtol=1e-5)


@pytest.mark.parametrize("least", [1, 2, 3, 8])
def test_a_small_bound_does_not_make_a_loop_short(least: int) -> None:
    """Lanes and threads, as for a length of which nothing is known."""
    program = _OWN["scaled"].elaborate([array(size("n", least), size("m", least), f32)])
    text = str(lower(program.term, _MODELS["host"]).term)
    assert "[vec]" in text
    assert "[par]" in text
