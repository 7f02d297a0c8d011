"""The rules of instructions and of their operands: both sides have one value, and what they must refuse."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lithify.lang.build import add, const, map_, mul, op, param, proj, reduce_, zip_
from lithify.lang.scalars import SCALARS, Scalar, bf16, complex64, complex128, f16, f32, i8, i32, u8
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array
from lithify.machine import ROWS, InstructionRow, instruction
from lithify.rewrite import difference
from lithify.rewrite.strategy import Context, Failure
from lithify.rules.instructions import offset_signed, planar_sum, reduce_operand_fission, use_instruction
from tests.rules.laws import INSTANCES

DOTS = tuple(row for row in ROWS.values() if row.shape[2] > 1)
FMAS = tuple(row for row in ROWS.values() if row.shape[2] == 1 and row.shape[1] > 1)


def converted(x: Term, scalar: Scalar) -> Term:
    return x if x.type is scalar else op(scalar.name, x)


def shuffled(rng: random.Random, operation: Callable[[Term, Term], Term], a: Term, b: Term) -> Term:
    return operation(a, b) if rng.random() < 0.5 else operation(b, a)


def dots(
    row: InstructionRow, rng: random.Random, k: int | None = None, n: int | None = None, m: int | None = None
) -> Term:
    """A map (of maps, where the row computes several rows) that means what a row does, its parts in any order."""
    m, n, k = m or row.shape[0], n or row.shape[1], k or row.shape[2]
    a, b, c = row.scalars
    own = param("b", Array(n, Array(k, b)))
    if m == 1:
        return _sums(row, rng, param("a", Array(k, a)), own, param("c", Array(n, c)))
    rows, sums = param("a", Array(m, Array(k, a))), param("c", Array(m, Array(n, c)))
    first = rng.randrange(2)
    arrays = (sums, rows) if first == 0 else (rows, sums)
    return map_(lambda r: _sums(row, rng, proj(1 - first, r), own, proj(first, r)), zip_(*arrays))


def _sums(row: InstructionRow, rng: random.Random, shared: Term, own: Term, sums: Term) -> Term:
    c = row.scalars[2]
    first, swapped = rng.randrange(2), rng.random() < 0.5
    arrays = (sums, own) if first == 0 else (own, sums)

    def one(s: Term) -> Term:
        column = proj(1 - first, s)
        pairs = zip_(column, shared) if swapped else zip_(shared, column)

        def step(acc: Term, p: Term) -> Term:
            left, right = (converted(proj(i, p), c) for i in (0, 1))
            return shuffled(rng, add, acc, shuffled(rng, mul, left, right))

        return reduce_(step, proj(first, s), pairs)

    return map_(one, zip_(*arrays))


def products(row: InstructionRow, rng: random.Random) -> Term:
    """A map that adds one product in each lane."""
    n = row.shape[1]
    a, b, c = row.scalars
    shared, own, sums = param("a", a), param("b", Array(n, b)), param("c", Array(n, c))
    first = rng.randrange(2)
    arrays = (sums, own) if first == 0 else (own, sums)
    return map_(
        lambda s: shuffled(rng, add, proj(first, s), shuffled(rng, mul, shared, proj(1 - first, s))), zip_(*arrays)
    )


def fires(rule: object, before: Term, seed: int) -> Term:
    after = rule.run(before, Context())  # type: ignore[attr-defined]
    assert not isinstance(after, Failure), f"{rule} does not fire on {before}"
    wrong = difference(before, after, seed=seed)
    assert wrong is None, f"{wrong}\n{before}\n  ->\n{after}"
    return after


@pytest.mark.parametrize("row", DOTS, ids=lambda row: row.name)
def test_dot_products(row: InstructionRow) -> None:
    rng = random.Random(row.name)
    for seed in range(INSTANCES // len(DOTS) + 1):
        after = fires(use_instruction(row.name), dots(row, rng), seed)
        assert [t["row"] for t in subterms(after) if t.kind == "instr"] == [row]


@pytest.mark.parametrize("row", FMAS, ids=lambda row: row.name)
def test_products(row: InstructionRow) -> None:
    rng = random.Random(row.name)
    for seed in range(20):
        after = fires(use_instruction(row.name), products(row, rng), seed)
        assert [t["row"] for t in subterms(after) if t.kind == "instr"] == [row]


@pytest.mark.parametrize("row", DOTS, ids=lambda row: row.name)
def test_other_shapes_and_types_are_refused(row: InstructionRow) -> None:
    rng = random.Random(1)
    m, n, k = row.shape
    wrongs = [dots(row, rng, k=k + 1), dots(row, rng, k=2 * k), dots(row, rng, n=2 * n), dots(row, rng, n=n - 1)]
    if m > 1:
        wrongs += [dots(row, rng, m=m - 1), dots(row, rng, m=2 * m), dots(row, rng, m=1)]
    for wrong in wrongs:
        assert use_instruction(row.name).explain(wrong) is not None
    right = dots(row, rng)
    for other in DOTS:
        if (other.shape, other.operands) != (row.shape, row.operands):
            assert use_instruction(other.name).explain(right) is not None


def test_sums_of_other_things_are_refused() -> None:
    row = instruction("avx512.dot.16x2.bf16")
    a, b, c = param("a", Array(2, bf16)), param("b", Array(16, Array(2, bf16))), param("c", Array(16, f32))

    def nest(step: Callable[[Term, Term, Term], Term], initial: Callable[[Term], Term]) -> Term:
        return map_(
            lambda s: reduce_(lambda acc, p: step(acc, op("f32", proj(0, p)), op("f32", proj(1, p))), initial(s),
                              zip_(a, proj(1, s))), zip_(c, b))  # fmt: skip

    right = nest(lambda acc, x, y: add(acc, mul(x, y)), lambda s: proj(0, s))
    assert use_instruction(row.name).explain(right) is None
    zero = const(0.0, f32)
    for wrong in (
        nest(lambda acc, x, y: op("sub", acc, mul(x, y)), lambda s: proj(0, s)),
        nest(lambda acc, x, y: add(acc, add(x, y)), lambda s: proj(0, s)),
        nest(lambda acc, x, y: add(acc, mul(x, x)), lambda s: proj(0, s)),
        nest(lambda acc, x, y: add(add(acc, acc), mul(x, y)), lambda s: proj(0, s)),
        nest(lambda acc, x, y: add(acc, mul(x, y)), lambda s: zero),
        nest(lambda acc, x, y: add(acc, mul(x, y)), lambda s: add(proj(0, s), zero)),
        map_(lambda s: reduce_(lambda acc, p: add(acc, mul(op("f32", proj(0, p)), op("f32", proj(1, p)))), proj(0, s),
                               zip_(proj(1, s), proj(1, s))), zip_(c, b)),
    ):  # fmt: skip
        assert use_instruction(row.name).explain(wrong) is not None


def test_rounding_needs_the_policy() -> None:
    exact = Context(policy="exact")
    rng = random.Random(2)
    for name, fires_ in (
        ("avx512.dot.16x2.bf16", False), ("avx512.dot.16x4.u8i8", True),
        ("amx.16x16x32.bf16", False), ("amx.16x16x64.i8", True),
    ):  # fmt: skip
        result = use_instruction(name).run(dots(instruction(name), rng), exact)
        assert isinstance(result, Failure) is not fires_


# ---- operands ------------------------------------------------------------------------------------------------------


def pairs_of(first: Scalar, second: Scalar, n: int) -> Term:
    return zip_(param("x", Array(n, first)), param("y", Array(n, second)))


@pytest.mark.parametrize("i", [0, 1])
def test_operands_are_converted_before(i: int) -> None:
    rng = random.Random(i)
    for seed in range(INSTANCES):
        source, other = rng.choice((bf16, f16, i8)), rng.choice((f32, bf16))
        xs = pairs_of(*((source, other) if i == 0 else (other, source)), rng.randrange(5))
        more = rng.random() < 0.3

        def step(s: Term, p: Term, more: bool = more) -> Term:
            a, b = converted(proj(0, p), f32), converted(proj(1, p), f32)
            product = mul(a, b)
            return add(s, add(product, mul(a, b)) if more else product)

        after = fires(reduce_operand_fission(i), reduce_(step, const(1.0, f32), xs, name="k"), seed)
        (zipped,) = [t for t in subterms(after) if t.kind == "zip"]
        assert zipped.args[i].kind == "map"
        assert zipped.args[1 - i].kind == "param"


def test_what_is_made_of_an_operand_becomes_a_tuple() -> None:
    xs = pairs_of(complex64, complex64, 3)
    planar = planar_sum.run(
        reduce_(lambda s, p: add(s, mul(proj(0, p), proj(1, p))), const(0, complex64), xs), Context()
    )
    assert isinstance(planar, Term)
    reduction = planar.args[0]
    for i in (0, 1):
        after = fires(reduce_operand_fission(i), reduction, i)
        (array,) = [t for t in subterms(after) if t.kind == "map"]
        assert str(array.type) == "3.(f32, f32)"


def test_an_operand_that_is_read_as_it_is_stays() -> None:
    xs = pairs_of(f32, bf16, 3)
    plain = reduce_(lambda s, p: add(s, mul(proj(0, p), op("f32", proj(1, p)))), const(0.0, f32), xs)
    assert reduce_operand_fission(0).explain(plain) is not None
    both = reduce_(
        lambda s, p: add(s, mul(proj(0, p), mul(op("exp", proj(0, p)), op("f32", proj(1, p))))), const(0.0, f32), xs
    )
    assert reduce_operand_fission(0).explain(both) is not None


@pytest.mark.parametrize("i", [0, 1])
def test_offsets_are_exact(i: int) -> None:
    rng = random.Random(i)
    for seed in range(INSTANCES):
        other = rng.choice((i8, u8, SCALARS["i16"], i32))
        n = rng.randrange(1, 6)
        xs = pairs_of(*((i8, other) if i == 0 else (other, i8)), n)
        start = param("z", i32) if rng.random() < 0.5 else const(rng.randrange(9), i32)

        def step(s: Term, p: Term) -> Term:
            return shuffled(rng, add, s, shuffled(rng, mul, converted(proj(0, p), i32), converted(proj(1, p), i32)))

        after = fires(offset_signed(i), reduce_(step, start, xs), seed)
        assert sum(t.kind == "op" and t["operator"].name == "xor" for t in subterms(after)) == 1


def test_offsets_want_signed_bytes() -> None:
    for first, second in ((u8, i8), (i8, i32)):
        step = pairs_of(first, second, 3)
        term = reduce_(
            lambda s, p: add(s, mul(converted(proj(0, p), i32), converted(proj(1, p), i32))), const(0, i32), step
        )
        for i, scalar in enumerate((first, second)):
            assert (offset_signed(i).explain(term) is None) is (scalar is i8)
    wide = reduce_(lambda s, p: add(s, mul(op("f32", proj(0, p)), op("f32", proj(1, p)))), const(0.0, f32),
                   pairs_of(i8, i8, 3))  # fmt: skip
    assert offset_signed(0).explain(wide) is not None


@pytest.mark.parametrize("scalar", [complex64, complex128])
def test_planar_sums(scalar: Scalar) -> None:
    rng = random.Random(scalar.name)
    for seed in range(INSTANCES // 2):
        xs = pairs_of(scalar, scalar, rng.randrange(5))

        def factor(i: int, p: Term) -> Term:
            x = proj(i, p)
            return op("conj", x) if rng.random() < 0.3 else add(x, const(1, scalar)) if rng.random() < 0.2 else x

        def step(s: Term, p: Term) -> Term:
            return shuffled(rng, add, s, shuffled(rng, mul, factor(0, p), factor(1, p)))

        start = param("z", scalar) if rng.random() < 0.5 else const(0, scalar)
        fires(planar_sum, reduce_(step, start, xs), seed)


def test_planar_sums_round_in_another_order() -> None:
    term = reduce_(
        lambda s, p: add(s, mul(proj(0, p), proj(1, p))), const(0, complex64), pairs_of(complex64, complex64, 3)
    )
    assert isinstance(planar_sum.run(term, Context(policy="exact")), Failure)
    real = reduce_(lambda s, p: add(s, mul(proj(0, p), proj(1, p))), const(0.0, f32), pairs_of(f32, f32, 3))
    assert isinstance(planar_sum.run(real, Context()), Failure)
