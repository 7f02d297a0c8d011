"""What the cost model is told of kernels before they are derived, beside what is counted in those that were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from lithify.explore.candidates import Features, features_of
from lithify.explore.problems import read_problem
from lithify.kernel.census import Census, census
from lithify.kernel.translate import translate
from lithify.lang.module import Elaborated
from lithify.lowering import lower
from lithify.lowering.families import recognise
from lithify.lowering.loops import name_loops
from lithify.lowering.tuning import Family, Parameters, Problem, Space
from lithify.machine import GENERIC_CPU, GENERIC_GPU, H200_OPENCL, CpuFacts, DeviceModel, cpu_model
from lithify.machine.memory import Cache
from lithify.program import parse

CACHES = (Cache(1, 32 << 10, 64), Cache(2, 1 << 20, 64), Cache(3, 32 << 20, 64, 4))
CPU = cpu_model(CpuFacts("some CPU", "x86_64", frozenset({"avx2", "fma", "sse2"}), 4, CACHES, 2.5e9, 1 << 34))
MATRIX_UNIT = {"avx512f", "avx512vl", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8"}
AMX = cpu_model(CpuFacts("a CPU with tiles", "x86_64", frozenset(MATRIX_UNIT), 2, CACHES, 2.5e9, 1 << 34))
MODELS = (CPU, AMX, GENERIC_CPU, GENERIC_GPU, H200_OPENCL)
LINES = (
    "gemm -t f32 -m 512 -n 512 -k 512",
    "gemm -t f32 -transA true -transB true -m 60 -n 1000 -k 300",
    "gemm -t f64 -g 12 -m 384 -n 64 -k 384",
    "gemm -t f16 -m 384 -n 768 -k 768",
    "gemm -t i8 -m 384 -n 768 -k 768",
    "gemm -t bf16 -m 384 -n 768 -k 768",
    "gemm -t complex64 -m 100 -n 100 -k 100",
)


def looked_at(line: str, model: DeviceModel) -> tuple[Elaborated, Family, Problem, Space]:
    named = read_problem(line)
    program = parse(named.text)[named.name]
    elaborated = program.specialise(*program.types()[0]).elaborated
    found = recognise(name_loops(elaborated.term))
    assert found is not None
    space = found[0].space(found[1], model)
    assert space is not None
    return elaborated, *found, space


def some(space: Space, count: int, seed: int = 0) -> list[str]:
    """The default and some valid sets at random."""
    random = np.random.default_rng(seed)
    found = [str(space.default)]
    while len(found) < count:
        drawn = {name: values[int(random.integers(len(values)))] for name, values in space.choices.items()}
        if space.against(Parameters(drawn)) is None:
            found.append(str(Parameters(drawn)))
    return found


def features(line: str, model: DeviceModel, keys: Sequence[str] | None = None) -> Features:
    _, family, problem, space = looked_at(line, model)
    return features_of(family, problem, model, space, keys or some(space, 200))


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("line", LINES)
def test_every_set_has_features(line: str, model: DeviceModel) -> None:
    found = features(line, model)
    assert np.isfinite(found.rows).all()
    assert np.isfinite(found.rough).all()
    assert len(found.rows) == len(found.rough) == 200
    assert np.mean(found.rough < found.rough[0]) < 0.6  # the default is among the better ones
    assert found.rows.shape[1] == features(LINES[0], model).rows.shape[1]  # problems can be compared


def counted(line: str, model: DeviceModel, key: str) -> Census:
    elaborated, *_ = looked_at(line, model)
    lowered = lower(elaborated.term, model, parameters=Parameters.parse(key))
    return census(translate(lowered.term, tuple(elaborated.parameters), device=model))


@pytest.mark.parametrize("model", [CPU, AMX, GENERIC_CPU, replace(GENERIC_CPU, cores=4)], ids=str)
@pytest.mark.parametrize(
    "line",
    [
        "gemm -t complex64 -m 1 -n 4096 -k 4096",  # a number in two registers: the widest tiles have no room for a row
        "gemm -t complex128 -m 4 -n 4096 -k 4096",
        "gemm -t f16 -g 3 -m 1000 -n 17 -k 4096",  # more to pack than local memory holds, and the batch is split up
    ],
)
def test_the_default_is_valid(line: str, model: DeviceModel) -> None:
    *_, space = looked_at(line, model)
    space.check(space.default)


def test_as_counted_in_the_kernels() -> None:
    """Padding is what is computed too much; gathers are where there are any; what is packed is written."""
    line = "gemm -t f32 -transB true -m 45 -n 53 -k 24"
    _, family, problem, space = looked_at(line, CPU)
    keys = [k for k in some(space, 200, 1) if f"kPerBlock={problem.sizes['k']}," in k][:40]
    columns = {
        name: np.array([Parameters.parse(key)[name] for key in keys]).astype(float if name[0] in "mnk" else str)
        for name in space.choices
    }
    told = family.features(problem, CPU, columns)
    kernels = [counted(line, CPU, key) for key in keys]
    # where parts of blocks are computed by code of their own, the census counts both
    plain = np.array([not kernel.counts["conditions"] for kernel in kernels])
    assert plain.sum() > 5
    # one vector a row of the tile, or registers by themselves where some hold nothing but padding
    lane, row = CPU.vector_width(32), columns["nPerThread"]
    width = np.where(-problem.sizes["n"] % row >= lane, lane, row)
    lanes = np.array([kernel.counts["vector operations"] for kernel in kernels]) * width
    least = 2 * prod(problem.sizes.values())
    np.testing.assert_allclose((2 ** (told["padding"] / 4))[plain], (lanes / least)[plain])
    gathers = [kernel.counts["gathers"] > 0 for kernel in kernels]
    assert ((told["cycles: gathers"] > -5) == gathers).all()
    assert len(set(gathers)) == 2
    packed = (columns["packA"] == "thread") | (columns["packB"] == "thread")
    assert [kernel.bytes["thread written"] > 0 for kernel in kernels] == packed.tolist()
