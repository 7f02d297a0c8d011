"""Matrix multiplication on CPUs: every step of every kind of derivation, the kernel evaluator and compiled code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.kernel.evaluator import run
from lithify.kernel.translate import translate
from lithify.lang.errors import RewriteFailed
from lithify.lang.levels import VEC
from lithify.lang.module import Elaborated
from lithify.lang.term import subterms
from lithify.lowering import lower
from lithify.lowering.families import recognise
from lithify.lowering.gemm import cpu
from lithify.lowering.gemm.cpu_default import default
from lithify.lowering.gemm.cpu_machine import Machine
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Parameters, Problem, Space
from lithify.lowering.work import length_of
from lithify.machine import GENERIC_CPU, DeviceModel, host
from lithify.machine.memory import Cache
from lithify.targets.cpu import CpuTarget
from lithify.targets.opencl import OpenCLTarget
from tests.lowering.gemm.programs import FORMS, by_name, program_of

# Machines whose vectors are short, so that small matrices have whole tiles and parts of tiles: one with threads, one
# behind OpenCL.
MODEL = replace(host(), vector_bytes=8, cores=2)
OPENCL = replace(GENERIC_CPU, vector_bytes=8, vector_lanes=2, cores=2)
WIDE = replace(MODEL, vector_bytes=64, caches=(Cache(1, 48 << 10, 64), Cache(2, 2 << 20, 64)))
TARGET = CpuTarget()
F32 = dict.fromkeys(("a", "b", "acc", "c"), "f32")


def _space(program: Elaborated, model: DeviceModel = MODEL) -> Space:
    found = recognise(name_loops(program.term))
    assert found is not None
    space = found[0].space(found[1], model)
    assert space is not None
    return space


CHOICES = {
    "rows outside": {"outer": "m", "packA": "thread", "packB": "heap"},
    "columns outside": {"outer": "n", "packA": "none", "packB": "thread"},
    "both on the heap": {"outer": "n", "packA": "heap", "packB": "heap"},
    "nothing packed": {"outer": "m", "packA": "none", "packB": "none"},
    "sums in blocks": {"outer": "n", "packA": "none", "packB": "thread", "kPerBlock": 2},
    "sums in blocks, rows outside": {"outer": "m", "packA": "thread", "packB": "none", "kPerBlock": 2},
}


@pytest.mark.parametrize("model", [MODEL, OPENCL], ids=["threads", "groups"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("choice", CHOICES)
def test_every_step(form: str, choice: str, model: DeviceModel) -> None:
    program, arguments, expected = program_of(form, 7, 6, 3)
    tiles = {"mPerBlock": 4, "nPerBlock": 4, "mPerThread": 2, "nPerThread": 4}
    space = _space(program, model)
    for parallel in space.choices["parallel"]:
        parameters = space.default.updated(**tiles, **CHOICES[choice], parallel=parallel)
        if space.against(parameters) is not None:
            assert (form, parallel) == ("batched", "all")
            continue
        lowered = lower(program.term, model, parameters=parameters, check=True)
        kernels = translate(lowered.term, program.parameters, device=model)
        (result,) = run(kernels, by_name(program, arguments))
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("where", ["thread", "heap"])
@pytest.mark.parametrize("k", [8, 12, 5])
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("steps", [4, 32])
def test_a_left_operand_along_its_rows_is_packed_by_steps(
    where: str, k: int, blocks: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "_STEPS", steps)
    program, arguments, expected = program_of("left transposed", 7, 6, blocks * k)
    if blocks > 1:
        where = "thread"  # a block packs its operands itself
    space = _space(program)
    tiles = {"mPerBlock": 8, "nPerBlock": 4, "mPerThread": 2, "nPerThread": 4, "kPerBlock": k}
    for outer in "mn":
        parameters = space.default.updated(**tiles, outer=outer, packA=where, packB="thread")
        lowered = lower(program.term, MODEL, parameters=parameters, check=True)
        each = min(steps, -(-k // MODEL.cores) if where == "heap" else k)
        assert any(name.startswith("copy-steps(") and f", {each}, " in name for name in lowered.derivation.names())
        kernels = translate(lowered.term, program.parameters, device=MODEL)
        (result,) = run(kernels, by_name(program, arguments))
        np.testing.assert_array_equal(result, expected)


# One whose second cache holds next to nothing: right operands of a few rows are large.
SMALL = replace(MODEL, caches=(Cache(1, 64, 64), Cache(2, 256, 64)))


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("form", sorted(set(FORMS) - {"right transposed", "batched"}))
def test_each_thread_sums_its_part(form: str, m: int) -> None:
    program, arguments, expected = program_of(form, m, 3, 1216)
    space = _space(program, SMALL)
    assert space.default["splitK"] == SMALL.cores
    lowered = lower(program.term, SMALL, check=True)
    kernels = translate(lowered.term, program.parameters, device=SMALL)
    (result,) = run(kernels, by_name(program, arguments))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("form", "sizes", "parts"),
    [
        ("plain", (1, 9, 1217), 1),  # the parts are equal
        ("plain", (3, 9, 128), 1),  # short sums are not worth results of each part
        ("right transposed", (1, 9, 128), None),
        ("batched", (1, 9, 128), None),
        ("plain", (40, 9, 128), None),
    ],
)
def test_where_there_are_no_parts(form: str, sizes: tuple[int, int, int], parts: int | None) -> None:
    program, _, _ = program_of(form, *sizes)
    found = recognise(name_loops(program.term))
    space = None if found is None else found[0].space(found[1], SMALL)
    assert (None if space is None else space.default.get("splitK")) == parts
    if space is not None and parts is not None and sizes[2] % 2:
        assert space.against(space.default.updated(splitK=2)) == f"splitK=2 does not divide {sizes[2]}"


@pytest.mark.parametrize(
    ("n", "k", "rows"),
    [
        (1001, 2047, 128),
        (4096, 4095, 16),  # rows that share few sets of the second cache
        (2304, 767, 64),
        (3072, 765, 16),
        (1001, 2048, 16),  # each thread reads its part from one end to the other
        (2304, 768, 16),
        (32000, 4096, 16),  # more than the last cache holds
    ],
)
def test_how_many_rows_are_read_at_a_time(n: int, k: int, rows: int) -> None:
    caches = Cache(1, 48 << 10, 64), Cache(2, 2 << 20, 64), Cache(3, 256 << 20, 64, shared_by=2)
    program, _, _ = program_of("plain", 1, n, k)
    assert _space(program, replace(MODEL, caches=caches)).default["kPerBlock"] == rows


@given(
    form=st.sampled_from(sorted(FORMS)),
    sizes=st.tuples(*[st.integers(2, 19)] * 3),
    seed=st.integers(0, 1 << 30),
)
@settings(max_examples=25, deadline=None)
def test_any_parameters_compiled(form: str, sizes: tuple[int, int, int], seed: int) -> None:
    program, arguments, expected = program_of(form, *sizes, seed)
    space, rng = _space(program), np.random.default_rng(seed)
    while True:
        drawn = {name: values[rng.integers(len(values))] for name, values in space.choices.items()}
        if space.against(Parameters(drawn)) is None:
            break
    lowered = lower(program.term, MODEL, parameters=Parameters(drawn))
    kernels = translate(lowered.term, program.parameters, device=MODEL)
    out = np.full(expected.shape, np.nan, np.float32)
    TARGET.compile(kernels)(*arguments, out=out)
    np.testing.assert_array_equal(out, expected, err_msg=str(drawn))


@pytest.mark.parametrize("n", [10, 12, 13, 15, 16])
@pytest.mark.parametrize("form", FORMS)
def test_vectors_beyond_the_columns_are_not_computed(form: str, n: int) -> None:
    """Where the last tile holds whole registers of padding, they are vectors of their own; otherwise a row is one."""
    program, _, _ = program_of(form, 4, n, 3)
    tiles = {"mPerBlock": 2, "nPerBlock": 8, "mPerThread": 2, "nPerThread": 8, "kPerBlock": 3}
    space = _space(program)
    parameters = space.default.updated(**tiles, outer="m", packA="none", packB="thread")
    lowered = lower(program.term, MODEL, parameters=parameters).term
    vectors = {length_of(t) for t in subterms(lowered) if t.kind == "map" and t["level"] == VEC}
    register = MODEL.vector_width(32)
    assert max(vectors) == (register if -n % 8 >= register else 8)


@pytest.mark.parametrize(
    ("sizes", "outer"),
    [
        ((300, 300, 64), "m"),  # threads do not write the same lines
        ((5, 1000, 90), "n"),  # few rows
    ],
)
def test_which_results_a_thread_computes(sizes: tuple[int, int, int], outer: str) -> None:
    program, _, _ = program_of("plain", *sizes)
    chosen = _space(program, WIDE).default
    assert (chosen["outer"], chosen["packA"], chosen["packB"]) == (outer, "none", "none")
    if outer == "n":
        assert -(-sizes[1] // chosen.number("nPerBlock")) == WIDE.cores


@pytest.mark.parametrize(
    ("form", "sizes", "packed"),
    [
        ("left transposed", (500, 500, 500), ("m", "thread", "heap")),
        ("left transposed", (2048, 64, 1024), ("m", "thread", "heap")),
        ("left transposed", (200, 200, 200), ("m", "none", "none")),  # near as it lies
        ("left transposed", (600, 200, 600), ("m", "none", "none")),  # nearly so, for few columns
        ("left transposed", (1500, 64, 600), ("m", "thread", "heap")),  # far
        ("left transposed", (1500, 24, 600), ("m", "none", "none")),  # for few columns
        ("left transposed", (512, 64, 512), ("m", "thread", "heap")),  # near, but rows share few sets of a cache
        ("left transposed", (64, 64, 4096), ("n", "none", "none")),  # not rows enough for all threads
        ("left transposed", (1024, 1024, 1024), ("n", "heap", "thread")),  # packed columns of which no cache holds all
        ("plain", (500, 500, 500), ("n", "none", "thread")),  # rows enough to pack the right one for
    ],
)
def test_where_a_left_operand_that_lies_across_is_packed(
    form: str, sizes: tuple[int, int, int], packed: tuple[str, str, str]
) -> None:
    program, _, _ = program_of(form, *sizes)
    chosen = _space(program, WIDE).default
    assert tuple(chosen[name] for name in ("outer", "packA", "packB")) == packed


@pytest.mark.parametrize(
    ("sizes", "packed", "rows"),
    [
        ((256, 192, 300), "thread", 130),  # by each thread for itself: it needs all, and its cache has room
        ((1200, 100, 1500), "heap", 600),  # by all
        ((16, 150, 70), "thread", 18),  # too small for two threads: one piece
    ],
)
def test_who_packs_a_right_operand_that_all_need(sizes: tuple[int, int, int], packed: str, rows: int) -> None:
    program, _, _ = program_of("right transposed", *sizes)
    chosen = _space(program, WIDE).default
    assert (chosen["outer"], chosen["packB"], chosen["mPerBlock"]) == ("m", packed, rows)


@pytest.mark.parametrize(
    ("cores", "g", "m", "n", "k"), [(64, 3, 479, 1500, 1000), (64, 5, 96, 700, 700), (8, 3, 256, 1024, 512)]
)
def test_few_products_for_many_threads_share_out_columns(cores: int, g: int, m: int, n: int, k: int) -> None:
    """Else each thread packed all of the right operand for a few rows: 5 to 7 times as much work as by columns."""
    problem = Problem("gemm", f"gemm -transB true -g {g} -m {m} -n {n} -k {k}", {"g": g, "m": m, "n": n, "k": k}, F32)
    chosen = default(problem, Machine.of(problem, replace(WIDE, cores=cores)), "none")
    assert (chosen["outer"], chosen["packB"]) == ("n", "thread")
    assert chosen.number("nPerBlock") <= 64


def test_a_cache_that_holds_no_panel() -> None:
    problem = Problem("gemm", "gemm -transB true -g 1 -m 2 -n 185 -k 96", {"g": 1, "m": 2, "n": 185, "k": 96}, F32)
    tiny = replace(WIDE, caches=(Cache(1, 64, 64), Cache(2, 256, 64)))
    assert default(problem, Machine.of(problem, tiny), "none").number("kPerBlock") >= 1


def test_rows_that_are_packed_take_whole_lines() -> None:
    for m, n, k in [(500, 500, 500), (2048, 64, 1024), (1024, 32, 2048), (10000, 120, 100)]:
        program, _, _ = program_of("left transposed", m, n, k)
        chosen = _space(program, WIDE).default
        assert chosen["packA"] == "thread"
        assert chosen.number("mPerBlock") >= 32


@pytest.mark.parametrize("sizes", [(1, 5, 1), (1, 1, 1), (7, 7, 7), (2, 33, 1), (17, 2, 40), (33, 65, 17), (5, 1, 9)])
@pytest.mark.parametrize("form", FORMS)
def test_the_default(form: str, sizes: tuple[int, int, int]) -> None:
    program, arguments, expected = program_of(form, *sizes)
    kernels = translate(lower(program.term, host()).term, program.parameters, device=host())
    out = np.full(expected.shape, np.nan, np.float32)
    TARGET.compile(kernels)(*arguments, out=out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("sizes", [(1, 5, 1), (7, 7, 7), (17, 2, 40), (33, 65, 17)])
@pytest.mark.parametrize("form", FORMS)
def test_the_default_through_opencl(opencl_device: Any, form: str, sizes: tuple[int, int, int]) -> None:
    program, arguments, expected = program_of(form, *sizes)
    kernels = translate(lower(program.term, GENERIC_CPU).term, program.parameters, device=GENERIC_CPU)
    out = np.full(expected.shape, np.nan, np.float32)
    OpenCLTarget(opencl_device.platform.name).compile(kernels)(*arguments, out=out)
    np.testing.assert_array_equal(out, expected)


def test_what_a_group_keeps_fits_its_local_memory() -> None:
    program, _, _ = program_of("plain", 300, 300, 300)
    space = _space(program, OPENCL)
    room = OPENCL.memory("local").bytes
    tile = space.default.number("nPerThread")
    whole = -(-300 // tile) * tile
    with pytest.raises(RewriteFailed, match=f"packB keeps .* bytes of local memory, there are {room}"):
        lower(program.term, OPENCL, parameters=space.default.updated(nPerBlock=whole, packB="thread", outer="n"))


@pytest.mark.parametrize("sizes", [(0, 4, 3), (4, 0, 3), (4, 3, 0)])
def test_zero_sizes(sizes: tuple[int, int, int]) -> None:
    program, arguments, expected = program_of("plain", *sizes)
    kernels = translate(lower(program.term, host()).term, program.parameters, device=host())
    out = np.full(expected.shape, np.nan, np.float32)
    TARGET.compile(kernels)(*arguments, out=out)
    np.testing.assert_array_equal(out, expected)


def test_invalid_parameters_are_refused_with_the_reason() -> None:
    program, _, _ = program_of("plain", 64, 64, 64)
    space = _space(program)
    registers = MODEL.registers.per_item
    with pytest.raises(RewriteFailed, match=f"registers.* of {registers}"):
        lower(program.term, MODEL, parameters=space.default.updated(mPerThread=28, nPerThread=8, mPerBlock=28))
    with pytest.raises(RewriteFailed, match="mPerThread=4 does not divide mPerBlock=6"):
        lower(program.term, MODEL, parameters=space.default.updated(mPerThread=4, mPerBlock=6))
    with pytest.raises(RewriteFailed, match="the parameters are"):
        lower(program.term, MODEL, parameters=Parameters({"tile": 3}))


@pytest.mark.parametrize("model", [host(), MODEL, OPENCL, GENERIC_CPU], ids=["host", "threads", "groups", "generic"])
@pytest.mark.parametrize("form", FORMS)
def test_the_default_is_valid(form: str, model: DeviceModel) -> None:
    for sizes in [(2, 2, 1), (7, 7, 7), (64, 300, 3), (300, 3, 64), (200, 300, 2500), (1200, 40, 1100), (40, 1200, 70)]:
        program, _, _ = program_of(form, *sizes)
        space = _space(program, model)
        space.check(space.default)
