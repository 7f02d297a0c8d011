"""The phases, of any program: what they find is right, counted, the same every time, and can be stopped."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from lithify.evaluate import evaluate
from lithify.explore.phases import Limit, PhaseCandidates, Plan, explore
from lithify.explore.phases.anatomy import anatomy, primes
from lithify.explore.phases.candidates import DEFAULT, derive, lower_by
from lithify.explore.phases.funnel import Funnel
from lithify.explore.phases.mapping import Mapping
from lithify.explore.phases.parameters import sample
from lithify.explore.phases.rewritten import Move, enumerate_programs
from lithify.explore.phases.sizes import Cuts
from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.errors import LithifyError, RewriteFailed
from lithify.lang.levels import PRIVATE
from lithify.lang.module import Elaborated
from lithify.lang.term import subterms
from lithify.lang.types import shape_of
from lithify.lowering.loops import name_loops
from lithify.machine import GENERIC_CPU, GENERIC_GPU, DeviceModel, host
from tests.explore.phases.programs import dot, gemv, inputs, jacobi, product

SMALL = Limit(rules=2, programs=300, mapped=40, points=2000)
PROGRAMS = {"product": product(32, 16, 64), "dot": dot(4096), "gemv": gemv(64, 48), "jacobi": jacobi(34, 66)}


def found(name: str, model: DeviceModel, limit: Limit = SMALL) -> PhaseCandidates:
    program = PROGRAMS[name]
    return explore(program.term, program.parameters, model, limit)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("model", [host(), GENERIC_CPU, GENERIC_GPU], ids=str)
def test_what_is_found_computes_the_program(name: str, model: DeviceModel) -> None:
    """Some of the points: every step compared, and the kernels run."""
    program, candidates = PROGRAMS[name], found(name, model)
    keys = list(candidates)
    assert keys[0] == DEFAULT
    given = inputs(program)
    expected = evaluate(program.term, given)
    chosen = [keys[0], *random.Random(name).sample(keys[1:], min(4, len(keys) - 1))]
    for key in chosen:
        try:
            kernels = translate(candidates.lower(key).term, program.parameters, device=model)
        except LithifyError:  # a reason that a search counts
            continue
        (result,) = run(kernels, given)
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_every_step_of_a_point_is_right() -> None:
    program = product(9, 7, 10)
    candidates = PhaseCandidates(program.term, program.parameters, host(), Funnel(), [])
    key = "tile:{0}+{1} register-block-2d:{0}.tile+{1}.tile;{1}.tile.block:t;"
    key += "{0}.tile.block=2,{0}.tile.tile=2,{1}.tile.block=2,{1}.tile.tile=4"
    rows, columns = (t["name"] for t in itertools.islice(loops(program), 2))
    candidates.lower(key.format(rows, columns), check=True)


def loops(program: Elaborated) -> list:
    return [t for t in subterms(name_loops(program.term)) if t.kind == "map"]


def test_all_that_is_kept_is_valid_and_has_features() -> None:
    candidates = found("product", host())
    result = candidates.filtered()
    assert result.keys == tuple(candidates)
    assert not result.rejected
    assert len(candidates) == len(result.keys) > 10
    rows = candidates.features(result.keys).rows
    assert rows.shape[0] == len(result.keys)
    assert np.isfinite(rows).all()


def test_the_same_limit_gives_the_same_candidates() -> None:
    assert list(found("gemv", host())) == list(found("gemv", host()))


def test_keys_say_everything() -> None:
    candidates = found("product", host())
    for key in list(candidates)[1:50]:
        plan, values = Plan.parse(key)
        assert plan.key([float(values[part]) for part in plan.cuts.parts]) == key


@pytest.mark.parametrize(
    ("key", "message"),
    [("x", "names no specialised program"), ("tile:a;-;", "is no macro rule"), ("split:a;-;b=3", "the lengths are b"),
     ("split:a;b:q;a.tile=3", "how operands are packed")],
)  # fmt: skip
def test_keys_that_are_none(key: str, message: str) -> None:
    with pytest.raises(RewriteFailed, match=message):
        Plan.parse(key)


@pytest.mark.parametrize(
    ("origin", "other"), [(host(), GENERIC_GPU), (GENERIC_GPU, host()), (GENERIC_CPU, GENERIC_GPU)]
)
def test_points_of_one_device_on_another(origin: DeviceModel, other: DeviceModel) -> None:
    """They are lowered there, or refused with a reason."""
    keys, reasons = list(found("product", origin))[1:], []
    packed = [key for key in keys if Plan.parse(key)[0].mapping.packed]
    for key in [*random.Random(0).sample(keys, 8), *packed[:8]]:
        try:
            lower_by(key, PROGRAMS["product"].term, other)
        except LithifyError as error:
            reasons.append(error.message)
    if other is GENERIC_GPU:
        assert any("no memory in which one loop packs" in reason for reason in reasons)


def test_a_point_that_a_filter_drops_is_refused_with_its_name() -> None:
    candidates = found("product", host())
    plan, values = Plan.parse(list(candidates)[1])
    far = plan.key([256.0 for _ in values])
    assert "iterations that padding adds" in str(candidates.against(far))
    assert "not among the programs" in str(candidates.against("split:q;-;q.tile=4"))


def test_the_funnel_adds_up() -> None:
    funnel = found("product", host()).funnel
    rewritten, mapped, points = funnel.stages
    assert rewritten.came_in == 1
    assert rewritten.went_on == mapped.came_in
    assert mapped.went_on == points.came_in
    assert points.went_on == len(found("product", host())) - 1
    assert "loops between a sum and its summands" in str(funnel)
    assert str(Funnel.from_json(funnel.to_json())).splitlines()[1:3] == str(funnel).splitlines()[1:3]


def test_an_interrupt_leaves_what_there_is() -> None:
    calls = itertools.count()

    def stop(what: str, done: int, total: int | None) -> None:
        if next(calls) == 40:
            raise KeyboardInterrupt

    program = PROGRAMS["product"]
    candidates = explore(program.term, program.parameters, host(), SMALL, stop)
    assert candidates.funnel.interrupted
    assert "interrupted" in str(candidates.funnel)
    assert candidates.funnel.stages[0].made == 41
    assert next(iter(candidates)) == DEFAULT


# ---- macro rules ---------------------------------------------------------------------------------------------------


def test_every_rewritten_program_has_the_same_value() -> None:
    program = name_loops(product(8, 8, 12).term)
    given = inputs(product(8, 8, 12))
    expected = evaluate(program, given)
    several = list(enumerate_programs(program, 3, 2, 400, lambda n: None))
    assert len(several) == 400
    assert len({r.term.id for r in several}) == 400
    for each in random.Random(1).sample(several, 60):
        np.testing.assert_array_equal(evaluate(each.term, given), expected)


def test_a_loop_is_cut_once() -> None:
    for each in enumerate_programs(name_loops(product(64, 64, 64).term), 3, 2, 300, lambda n: None):
        cut = [loop for move in each.moves for loop in move.cut]
        assert len(cut) == len(set(cut))


def test_lengths_of_tiles_multiply() -> None:
    cuts = Cuts((Move("tile", ("m", "n")), Move("split", ("m.tile",)), Move("split", ("m.block",))))
    assert cuts.parts == ("n.tile", "m.tile.block", "m.tile.tile", "m.block.tile")
    values = {"n.tile": 5, "m.tile.block": 2, "m.tile.tile": 3, "m.block.tile": 7}
    assert cuts.tile("m", values) == 6
    assert cuts.tile("m.tile", values) == 3
    assert cuts.tile("m.block", values) == 7
    assert cuts.roots == {"n": ("n.tile",), "m": ("m.tile.block", "m.tile.tile", "m.block.tile")}


# ---- what points take ----------------------------------------------------------------------------------------------


def test_the_anatomy_agrees_with_the_derived_program() -> None:
    """Bytes of accumulators, from the prime factors of one derivation, against the program at the point itself."""
    program = name_loops(product(64, 32, 64).term)
    rows, columns = [t["name"] for t in loops(product(64, 32, 64))[:2]]
    blocks = Move("register-block-2d", (f"{rows}.tile", f"{columns}.tile"))
    plan = Plan((Move("tile", (rows, columns)), blocks), Mapping())
    model = host()
    extents = {rows: 64, columns: 64}
    taken = anatomy(plan.cuts, extents, derive(plan, primes(plan.cuts, extents), program, model).term)
    for lengths in itertools.product((2, 4, 8), repeat=4):
        point = dict(zip(plan.cuts.parts, lengths, strict=True))
        derived = derive(plan, point, program, model).term
        (accumulator,) = [t for t in subterms(derived) if t.kind == "reduce" and t["memory"] == PRIVATE]
        wanted = 4 * np.prod([s.constant for s in shape_of(accumulator.type)[0]])
        row = np.array([[float(v) for v in lengths]])
        assert taken.total(taken.registers, row)[0] == wanted
        assert taken.tiles(row)[rows][0] == -(-64 // (point[f"{rows}.tile.block"] * point[f"{rows}.tile.tile"]))


@pytest.mark.parametrize(("counts", "most"), [([5, 100, 3], 30), ([5, 5], 100), ([], 10), ([1000], 7)])
def test_points_are_left_out_of_large_programs_first(counts: list[int], most: int) -> None:
    rows = sample(counts, most, seed=0)
    kept = [len(r) for r in rows]
    assert sum(kept) <= most
    assert all(k == n or k == max(kept) for k, n in zip(kept, counts, strict=True))
    assert [list(r) for r in rows] == [list(r) for r in sample(counts, most, seed=0)]


def test_what_spans_a_whole_loop_counts_its_tiles() -> None:
    """Sums that move out of the loop over tiles accumulate all of them: far more than there are registers."""
    program = name_loops(product(64, 32, 64).term)
    rows, columns = [t["name"] for t in loops(product(64, 32, 64))[:2]]
    moves = (Move("register-block-2d", (rows, columns)), Move("sums-out", (f"{columns}.block",)))
    plan, extents = Plan(moves, Mapping()), {rows: 64, columns: 64}
    taken = anatomy(plan.cuts, extents, derive(plan, primes(plan.cuts, extents), program, host()).term)
    assert taken.total(taken.registers, np.array([[2.0, 2.0]]))[0] == 4 * 2 * 2 * 32
