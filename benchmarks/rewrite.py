"""How fast rewriting is: rule attempts a second on one core, and whole derivations from a fresh program.

An attempt is one rule tried on one term, most of them in vain, as in a search. Times are those of the process, so that
other work on the machine does not count. Derivations are made from programs whose
terms are not in any cache: each round multiplies matrices of other sizes.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

from benchmarks.harness import Row, cpu_name, record, table
from lithify.lang.build import add, const, map_, mul, param, proj, reduce_, transpose, zip_
from lithify.lang.levels import LOCAL, PRIVATE, SEQ, UNROLL, Level
from lithify.lang.scalars import f32
from lithify.lang.term import Term, subterms
from lithify.lang.types import array
from lithify.rewrite import Context, Derivation, first, topdown
from lithify.rules import all_rules
from lithify.rules.fusion import map_fusion, reduce_map_fusion
from lithify.rules.matrix import block_reduction, outer_product, tile
from lithify.rules.memory import accumulate, stage_reduce_both
from lithify.rules.parallel import map_level
from lithify.rules.reduction import partial_reduce, reduce_lanes
from lithify.rules.vector import vectorise

WANTED_ATTEMPTS = 50_000  # a second
WANTED_MILLISECONDS = 50.0  # a derivation
_fresh = itertools.count(1)


def matmul(rows: int, columns: int, depth: int) -> Term:
    """Matrix multiplication as a program: rows, columns and the sum of products."""
    a, b = param("A", array(rows, depth, f32)), param("B", array(depth, columns, f32))

    def dot(row: Term, column: Term) -> Term:
        products = map_(lambda p: mul(proj(0, p), proj(1, p)), zip_(row, column))
        return reduce_(lambda s, x: add(s, x), const(0, f32), products, name="k")

    return map_(lambda row: map_(lambda column: dot(row, column), transpose(b), name="n"), a, name="m")


def derive_matmul(program: Term) -> Derivation:
    """Group tiles, item tiles, blocks of the sum staged in local memory, register accumulators, vectors, levels."""
    d = Derivation(program)
    d.apply(tile("m", "n", 64, 64)).apply(tile("m.tile", "n.tile", 4, 8))
    d.apply(outer_product("m.tile.tile", "n.tile.tile")).apply(block_reduction("k", 16))
    d.once(stage_reduce_both(LOCAL, (SEQ, UNROLL), (SEQ, UNROLL)), "k.block")
    d.once(accumulate(SEQ, PRIVATE, (UNROLL, UNROLL), (UNROLL, UNROLL)), "k.block")
    d.once(vectorise(4), lambda t: t.kind == "map" and t["name"] == "n.tile.tile")
    for name, level in (
        ("m.block", Level("group", 1)),
        ("n.block", Level("group", 0)),
        ("m.tile.block", Level("item", 1)),
        ("n.tile.block", Level("item", 0)),
        ("m.tile.tile", UNROLL),
    ):
        d.once(map_level(level), name)
    return d


def derive_sum(program: Term) -> Derivation:
    """Partial sums in parallel, each in lanes."""
    d = Derivation(program)
    d.once(partial_reduce(1 << 16)).once(reduce_lanes(32), "k.tile").normalize(first(map_fusion, reduce_map_fusion))
    return d


def attempts_a_second(seconds: float, same_root: bool) -> float:
    """Every rule tried on every subterm of a derived program; or only where the root has the rule's pattern."""
    rules = [rule() for rule in all_rules().values() if not rule.parameters]
    terms = list(subterms(derive_matmul(matmul(1024, 1024, 1024)).term))
    attempts = [
        (rule, term) for term in terms for rule in rules if not same_root or term.pattern in rule.rule.body.roots
    ]
    random.Random(1).shuffle(attempts)
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        context = Context()
        for rule, term in attempts:
            rule.run(term, context)
        count += len(attempts)
    return count / (time.process_time() - start)


def searches_a_second(seconds: float) -> float:
    """Places searched a second by `topdown` of a rule that fires nowhere, without what it remembers."""
    rule = all_rules()["scan-map-fusion"]
    term = derive_matmul(matmul(1024, 1024, 1024)).term
    places = sum(1 for _ in subterms(term))
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        topdown(rule()).run(term, Context())
        count += places
    return count / (time.process_time() - start)


def milliseconds(make: Callable[[int], Term], derive: Callable[[Term], Derivation], rounds: int) -> tuple[float, int]:
    """Median time of a derivation, and its steps; every round has a program of its own."""
    times, steps = [], 0
    for _ in range(rounds):
        program = make(next(_fresh))
        start = time.process_time()
        steps = len(derive(program).steps)
        times.append((time.process_time() - start) * 1e3)
    return sorted(times)[rounds // 2], steps


def main(quick: bool) -> None:
    """Print and record attempts a second and milliseconds a derivation."""
    seconds, rounds = (0.3, 5) if quick else (3.0, 31)
    rows: list[Row] = [
        {"name": name, "a second": round(measured(seconds)), "wanted": WANTED_ATTEMPTS}
        for name, measured in (
            ("rule attempts", lambda s: attempts_a_second(s, same_root=False)),
            ("rule attempts where the root fits", lambda s: attempts_a_second(s, same_root=True)),
            ("places searched", searches_a_second),
        )
    ]
    programs: dict[str, tuple[Callable[[int], Term], Callable[[Term], Derivation]]] = {
        "matrix multiplication": (lambda i: matmul(1024 + i, 1024 - i % 512, 512 + i), derive_matmul),
        "sum": (
            lambda i: reduce_(lambda a, x: add(a, x), const(0, f32), param("xs", array((1 << 20) + i, f32)), name="k"),
            derive_sum,
        ),
    }
    for name, (make, derive) in programs.items():
        median, steps = milliseconds(make, derive, rounds)
        rows.append(
            {"name": f"derivation: {name}", "ms": round(median, 2), "steps": steps, "wanted": WANTED_MILLISECONDS}
        )
    print(table(rows))
    if not quick:
        record("rewrite", rows, device=cpu_name(), note="One core; `wanted` is the least number a second, the most ms.")
