"""Device models: memories, vector widths, peaks, identity, and the roofline over them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.machine import (
    GENERIC_CPU,
    GENERIC_GPU,
    H200_CUDA,
    H200_OPENCL,
    DeviceModel,
    OpenCLFacts,
    Peak,
    host,
    known_models,
    model_of,
    roofline,
)

MODELS = (host(), *known_models())


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_model_is_a_complete_value(model: DeviceModel) -> None:
    assert pickle.loads(pickle.dumps(model)) == model
    assert hash(model) == hash(replace(model))
    assert {"out", "heap", "private", "reg"} <= {spec.name for spec in model.memories}
    assert model.bandwidth().rate > 0
    assert model.arithmetic_peak("f32").rate > 0
    assert model.cores >= 1


def test_the_h200_through_opencl() -> None:
    assert H200_OPENCL.memory("local").bytes == 48 * 1024
    assert (H200_OPENCL.cores, H200_OPENCL.warp_width) == (132, 32)
    assert H200_OPENCL.barrier_scopes == {"group"}
    assert H200_OPENCL.bandwidth() == Peak("heap", 4.27e12, "measured")
    assert H200_CUDA.memory("local").bytes == 227 * 1024
    assert "bulk" in H200_CUDA.copy_kinds
    assert "bulk" not in H200_OPENCL.copy_kinds


def test_an_unknown_memory_is_named_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"no memory local; it has out, heap, thread"):
        host().memory("local")


def test_vector_widths() -> None:
    wide = replace(host(), vector_bytes=64, vector_lanes=64)
    assert wide.vector_width(32) == 16
    assert wide.vector_width(64) == 8
    assert wide.vector_widths(32) == (2, 4, 8, 16, 32, 64)
    assert H200_OPENCL.vector_widths(32) == (2, 4)  # 16 bytes an access
    assert H200_OPENCL.vector_widths(16) == (2, 4, 8)
    assert H200_OPENCL.vector_widths(64) == (2,)
    assert H200_OPENCL.vector_widths(128) == ()
    assert GENERIC_CPU.vector_widths(64) == (2, 4, 8, 16)


# -- OpenCL devices ---------------------------------------------------------------------------------------------------


def test_an_opencl_cpu_describes_itself() -> None:
    facts = OpenCLFacts("pthread-x", is_gpu=False, compute_units=2, group_items=4096, item_sizes=(4096,) * 3,
                        local_bytes=1 << 20, float_width=16, double_arithmetic=True)  # fmt: skip
    model = model_of(facts)
    assert (model.kind, model.cores, model.vector_width(32)) == ("cpu", 2, 16)
    assert model.level("item", 0).extent == 4096
    assert model.memory("local").bytes == 1 << 20
    assert model.computes("f64")
    assert not model.computes("f16")
    assert model.registers.per_item == 32


def test_a_known_device_is_recognised_and_fitted() -> None:
    facts = OpenCLFacts("NVIDIA H200 SXM", is_gpu=True, compute_units=16, local_bytes=40 << 10)
    model = model_of(facts)
    assert model.bandwidth() == H200_OPENCL.bandwidth()
    assert (model.cores, model.memory("local").bytes) == (16, 40 << 10)
    assert model_of(replace(facts, local_bytes=1 << 20)).memory("local").bytes == 48 << 10
    assert model_of(replace(facts, name="Some GPU")).architecture == "opencl gpu"


def test_items_of_a_dimension_never_exceed_a_group() -> None:
    model = model_of(OpenCLFacts("x", is_gpu=True, group_items=64, item_sizes=(1024, 32, 1)))
    assert [model.level("item", d).extent for d in range(3)] == [64, 32, 1]
    assert model.level("warp").extent == 2


# -- identity ---------------------------------------------------------------------------------------------------------


def test_fingerprints_tell_devices_apart() -> None:
    assert len({model.fingerprint for model in MODELS}) == len(MODELS)
    assert H200_CUDA.fingerprint.startswith("cuda-nvidia-h200-")
    assert replace(H200_CUDA, cores=100).fingerprint != H200_CUDA.fingerprint


def test_fingerprints_ignore_rates_and_the_amount_of_heap() -> None:
    model = host()
    assert model.with_measured({"heap": 1e9}, {"f32": 1e9}, 1e-3).fingerprint == model.fingerprint
    smaller = tuple(replace(m, bytes=1 << 30) if m.name == "heap" else m for m in model.memories)
    assert replace(model, memories=smaller).fingerprint == model.fingerprint


def test_fingerprints_are_of_the_device_not_of_how_it_is_modelled() -> None:
    model = H200_CUDA
    same = replace(model, levels=model.levels[:-1], vector_lanes=99, copy_kinds=frozenset(), no_arithmetic=frozenset())
    assert same.fingerprint == model.fingerprint
    others = [
        replace(model, architecture="sm_80"),
        replace(model, registers=replace(model.registers, per_item=128)),
        replace(model, memories=tuple(replace(m, bytes=99) if m.name == "local" else m for m in model.memories)),
        replace(model, api="opencl"),
    ]
    assert len({m.fingerprint for m in (model, *others)}) == 5


# -- roofline ---------------------------------------------------------------------------------------------------------

TOY = GENERIC_GPU.with_measured({"heap": 100.0, "local": 1000.0}, {"f32": 50.0, "matrix f16": 500.0}, 0.5)


@pytest.mark.parametrize(
    ("bytes", "operations", "seconds", "resource"),
    [
        (200, 50, 2.5, "heap"),
        (200, 150, 3.5, "f32"),
        (10, 0, 0.6, "launch"),
        (0, 0, 0.5, "launch"),
        ({"heap": 100, "local": 4000}, 0, 4.5, "local"),
        ({"heap": 100}, {"matrix f16": 1000, "f32": 10}, 2.5, "matrix f16"),
    ],
)
def test_roofline(bytes: float, operations: float, seconds: float, resource: str) -> None:
    bound = roofline(bytes, operations, TOY)
    assert bound.seconds == pytest.approx(seconds)
    assert bound.resource == resource
    assert bound.share(2 * seconds) == pytest.approx(0.5)


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_the_bound_is_the_slowest_resource(moved: float, done: float) -> None:
    bound = roofline(moved, done, TOY)
    times = dict(bound.each)
    assert bound.seconds == pytest.approx(0.5 + max(moved / 100, done / 50))
    assert times[bound.resource] == max(times.values())


def test_an_unknown_peak_is_an_error_not_a_zero() -> None:
    with pytest.raises(LookupError, match=r"arithmetic peak for f64 of generic OpenCL GPU .* known: f32, matrix f16"):
        roofline(0, {"f64": 1}, TOY)


def test_peaks_are_read_with_their_source() -> None:
    assert str(Peak("heap", 4.27e12, "measured")) == "heap 4.27 T/s (measured)"
    assert str(Peak("f32", 12, "estimated")) == "f32 12/s (estimated)"
    measured = host().with_measured({"heap": 3e10})
    assert str(measured.bandwidth()) == "heap 30 G/s (measured)"
    assert measured.arithmetic == host().arithmetic
