"""What explanations say of the bound: which rates are measured, and what is said where one is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lithify as lf
from lithify.cli import bench
from lithify.lang.scalars import f32
from lithify.lang.types import array
from lithify.machine import GENERIC_GPU, DeviceModel, instruction, roofline
from lithify.machine.host import host
from lithify.program.bandwidth import measured
from lithify.program.devices import device
from lithify.program.explain import Explanation, _about_caches, why_above
from lithify.program.work import Work, on_units
from tests.instruction_tiles import tile

PROGRAMS = lf.parse("""
squares (xs : n.complex64) = map (λ x . x * x) xs
""")


def explanation(model: DeviceModel, work: Work, seconds: float = 1e-3) -> Explanation:
    """An explanation of some work, as it would be on a device that is not there."""
    bound = roofline(work.bytes, work.operations, model)
    types = (("xs", array(8, f32)),)
    return Explanation("p", f"here ({model.name})", types, f32, work, model, bound, seconds, (), (), 1)


def test_of_types_everything_but_the_time_is_said() -> None:
    squares = PROGRAMS["squares"]
    of_values = squares.explain(np.ones(1000, np.complex64))
    for program in (squares, squares.for_any_size()):
        found = program.explain("1000.complex64")
        assert np.isnan(found.seconds)
        assert np.isnan(found.share)
        assert "not measured" in dict(found.rows())["time"]
        assert "share of the bound" not in dict(found.rows())
        assert found.work == of_values.work
    assert squares.explain("1000.complex64").steps == of_values.steps
    assert dict(of_values.rows()).keys() - dict(found.rows()).keys() <= {"share of the bound", "note"}


def test_shares_above_the_bound_and_times_of_kernels_alone_say_so() -> None:
    work = Work(10**10, 0, {})
    bound = roofline(work.bytes, work.operations, GENERIC_GPU).seconds
    fast = dict(explanation(GENERIC_GPU, work, bound / 2).rows())
    slow = dict(explanation(GENERIC_GPU, work, bound * 2).rows())
    assert fast["share of the bound"].startswith("200%")
    assert "data come from caches" in fast["share of the bound"]
    assert "caches" not in slow["share of the bound"]
    assert "caches" in why_above(1.2)
    assert "caches" not in why_above(1.2, "f32")
    assert "machine was slower" in why_above(1.2, "f32")
    assert why_above(1.002, "f32") == ""  # shown as 100%
    nothing = Work(1, 0, {})
    called = replace(GENERIC_GPU, launch_seconds=1e-5)
    assert "is the cost of a call" in dict(explanation(called, nothing, 1e-6).rows())["share of the bound"]
    assert "on the device, without what the call costs" in slow["time"]
    assert "on the device" not in dict(explanation(host(), work, 1.0).rows())["time"]


@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_arithmetic_is_measured_on_opencl_cpus_as_on_the_cpu(pocl_device: object, scalar: str) -> None:
    """By the same program on the same cores: of the same order, and no estimate."""
    rates = []
    for name in ("cpu", "opencl:0"):
        peak = measured(device(name)).model.arithmetic_peak(scalar)
        assert peak.source == "measured"
        rates.append(peak.rate)
    assert 1 / 30 < rates[0] / rates[1] < 30


@pytest.mark.parametrize("caches", [True, False])
def test_notes_about_caches_are_about_memory(caches: bool) -> None:
    """They are made where the memory binds alone: arithmetic and the cost of a call do not care where data lie."""
    model = replace(
        host().with_measured(bandwidths={"heap": 1e10}, arithmetic={"f32": 1e11}, launch_seconds=1e-6),
        caches=host().caches if caches else (),  # OpenCL's CPUs do not say theirs, and have this machine's
    )
    largest = max((cache.bytes for cache in host().caches), default=0)
    for work, binds, noted in (
        (Work(100, 100, {}), "launch", False),
        (Work(10**5, 10**5, {"f32": 10**9}), "f32", False),
        (Work(10**5, 10**5, {"f32": 10}), "heap", largest > 1 << 20),
        (Work(largest, largest, {}), "heap", False),
    ):
        bound = roofline(work.bytes, work.operations, model)
        assert bound.resource == binds or not largest
        assert bool(_about_caches(work, bound, model)) == noted


def test_types_whose_rate_is_not_known_are_named() -> None:
    found = PROGRAMS["squares"].explain(np.ones(1000, np.complex64))
    assert [note for note in found.notes if "rate of complex64 arithmetic is not known" in note]


def test_an_estimated_bound_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    work = Work(100, 100, {"f32": 10**9})
    guessed = explanation(GENERIC_GPU, work)
    known = explanation(GENERIC_GPU.with_measured(arithmetic={"f32": 1e12}), work)
    assert guessed.estimated
    assert not known.estimated
    assert not explanation(GENERIC_GPU, Work(1, 1, {})).estimated  # the cost of a call binds
    assert dict(guessed.rows())["least time"].endswith("/s estimated")
    assert dict(known.rows())["least time"].endswith("/s measured")
    bench._print({"gpu:0": guessed, "gpu:1": replace(known, device="there (measured)")}, None)
    shown = capsys.readouterr()
    rows = shown.out.splitlines()
    assert rows[1].startswith("gpu:0")
    assert rows[1].rstrip().endswith("f32 arithmetic, estimated")
    assert rows[2].rstrip().endswith("f32 arithmetic")
    assert "gpu:0: the rate of f32 arithmetic is an estimate" in shown.err
    assert "gpu:1: the rate" not in shown.err


def test_instructions_work_on_the_units_that_have_them() -> None:
    lowered = tile(instruction("amx.16x16x32.bf16")).term
    done = {"f32": 1000, "i32": 5}
    assert on_units(done, lowered, {"f32", "i32", "matrix bf16"}) == {"matrix bf16": 1000, "i32": 5}
    assert on_units(done, lowered, {"f32", "i32"}) == done
    plain = tile(instruction("avx512.fma.16.f32")).term
    assert on_units(done, plain, {"f32", "matrix f32"}) == done
