"""How long the derivations of the case studies take: from a fresh program to one that says everything.

Times are those of the process, so that other work on the machine does not count; every round derives from a program of
other sizes, whose terms are in no cache. `wanted` is the most that a derivation may take.
"""

from __future__ import annotations

import itertools
import time

from benchmarks.harness import Row, cpu_name, record, table
from lithify.lang.build import add, const, map_, mul, param, proj, reduce_, transpose, zip_
from lithify.lang.scalars import f32
from lithify.lang.term import Term
from lithify.lang.types import array
from lithify.lowering import lower, matrix_multiplication, reduction
from lithify.lowering.loops import name_loops
from lithify.lowering.strategies import named
from lithify.machine import GENERIC_GPU, host
from lithify.rewrite import Derivation

WANTED_MILLISECONDS = 50.0
_fresh = itertools.count(1)


def product(i: int) -> Term:
    """Matrix multiplication as the slides write it."""
    rows, depth, columns = 1024 + i, 512 + i, 1024 - i % 512
    a, b = param("A", array(rows, depth, f32)), param("B", array(depth, columns, f32))

    def dot(row: Term, column: Term) -> Term:
        return reduce_(add, const(0, f32), map_(lambda p: mul(proj(0, p), proj(1, p)), zip_(row, column)))

    return map_(lambda row: map_(lambda column: dot(row, column), transpose(b)), a)


def total(i: int) -> Term:
    """The sum of an array."""
    return reduce_(add, const(0, f32), param("xs", array((1 << 20) + i, f32)))


def main(quick: bool) -> None:
    """Print and record the time of each named strategy, by itself and with the device's default behind it."""
    rounds = 5 if quick else 31
    model, rows = host(), list[Row]()
    for strategy in matrix_multiplication.VERSIONS:
        rows.append(_row(strategy.name, [_alone(strategy.name) for _ in range(rounds)], "by the strategy alone"))
    cases = [(s.name, product, model) for s in matrix_multiplication.VERSIONS]
    cases += [(s.name, total, GENERIC_GPU) for s in reduction.VERSIONS]
    for name, make, device in cases:
        measured = []
        for _ in range(rounds):
            program = make(next(_fresh))
            start = time.process_time()
            steps = len(lower(program, device, strategy=name).derivation.steps)
            measured.append((time.process_time() - start, steps))
        rows.append(_row(name, measured, f"lowered for {device.name}"))
    print(table(rows))
    if not quick:
        record("derivations", rows, device=cpu_name(), note="One core; ms of the process, the median of 31 programs.")


def _alone(name: str) -> tuple[float, int]:
    derivation = Derivation(name_loops(product(next(_fresh))))
    strategy, model = named(name), host()
    start = time.process_time()
    strategy(derivation, model)
    return time.process_time() - start, len(derivation.steps)


def _row(name: str, measured: list[tuple[float, int]], how: str) -> Row:
    times = sorted(seconds for seconds, _ in measured)
    return {
        "name": name,
        "how": how,
        "ms": round(times[len(times) // 2] * 1e3, 2),
        "steps": measured[-1][1],
        "wanted": WANTED_MILLISECONDS,
    }
