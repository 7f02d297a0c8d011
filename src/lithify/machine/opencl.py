"""Device models for OpenCL: what any CPU and any GPU offers through it, sharpened by what the device says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.machine import memory
from lithify.machine.levels import launch_level, sequential_levels, vector_level
from lithify.machine.memory import Registers
from lithify.machine.model import DeviceModel
from lithify.machine.roofline import Peak

# OpenCL C's longest vector.
_VECTOR_LANES = 16
_GRID = 1 << 31


@dataclass(frozen=True, slots=True)
class OpenCLFacts:
    """What an OpenCL device says of itself (CL_DEVICE_*); the defaults are the least that the standard asks for.

    `item_sizes`: most items of a group in each dimension; `float_width`: native vector width for float.
    """

    name: str
    is_gpu: bool
    compute_units: int = 1
    group_items: int = 256
    item_sizes: tuple[int, ...] = (256, 256, 64)
    local_bytes: int = 32 << 10
    global_bytes: int | None = None
    line_bytes: int = 64
    float_width: int = 4
    half_arithmetic: bool = False
    double_arithmetic: bool = False


def opencl_model(facts: OpenCLFacts) -> DeviceModel:
    """The model of an OpenCL device. Its rates are rough estimates until `with_measured` replaces them.

    OpenCL 1.2 promises no lockstep and no barrier below the work-group, so warps and lanes are a way of numbering
    items (by 32 on a GPU, by the vector width on a CPU) that synchronises at the group.
    """
    warp = 32 if facts.is_gpu else facts.float_width
    group_items = max(1, facts.group_items)
    missing = {"bf16", "f8e4m3", "f8e5m2"}
    missing |= set() if facts.half_arithmetic else {"f16"}
    missing |= set() if facts.double_arithmetic else {"f64"}
    vector_bytes = 16 if facts.is_gpu else 4 * facts.float_width
    if facts.is_gpu:
        registers = Registers(per_item=255, per_core=1 << 16, bytes=4)
    else:
        count = 32 if vector_bytes == 64 else 16  # AVX-512 has twice the vector registers of what came before
        registers = Registers(per_item=count, per_core=count, bytes=vector_bytes)
    bandwidth, arithmetic = (200e9, 2e12) if facts.is_gpu else (12e9, 40e9)
    return DeviceModel(
        name=facts.name,
        api="opencl",
        kind="gpu" if facts.is_gpu else "cpu",
        architecture="opencl gpu" if facts.is_gpu else "opencl cpu",
        cores=facts.compute_units,
        levels=(
            *sequential_levels(),
            vector_level(_VECTOR_LANES),
            *launch_level("global", (_GRID,) * 3, _GRID),
            *launch_level("group", (_GRID,) * 3, _GRID),
            *launch_level("item", tuple(min(size, group_items) for size in facts.item_sizes), group_items),
            *launch_level("warp", (), max(1, group_items // warp)),
            *launch_level("lane", (), warp),
        ),
        memories=(
            memory.out(),
            memory.heap(facts.global_bytes, facts.line_bytes),
            memory.local(facts.local_bytes, banks=32 if facts.is_gpu else 1, line_bytes=facts.line_bytes),
            *memory.private(registers.per_item * 4 if facts.is_gpu else None, registers),
        ),
        registers=registers,
        vector_bytes=vector_bytes,
        access_bytes=16 if facts.is_gpu else vector_bytes,
        vector_lanes=_VECTOR_LANES,
        group_items=group_items,
        warp_width=warp,
        barrier_scopes=frozenset({"group"}),
        counts_groups=facts.is_gpu,
        no_arithmetic=frozenset(missing),
        bandwidths=(Peak("heap", bandwidth, "estimated"),),
        arithmetic=(Peak("f32", arithmetic, "estimated"),),
        launch_seconds=10e-6 if facts.is_gpu else 30e-6,
    )


GENERIC_CPU = opencl_model(
    OpenCLFacts("generic OpenCL CPU", is_gpu=False, group_items=1024, item_sizes=(1024, 1024, 64), float_width=8)
)
GENERIC_GPU = opencl_model(
    OpenCLFacts("generic OpenCL GPU", is_gpu=True, compute_units=16, line_bytes=128, double_arithmetic=True)
)
