"""Device models of NVIDIA GPUs, as OpenCL and as CUDA see them.

H200: NVIDIA's data sheet for the SXM part (4.8 TB/s, 67 TF/s in f32, 989 TF/s dense in f16), the CUDA programming
guide's table for compute capability 9.0 (registers, shared memory, items and warps), and what was measured on one:
a copy moves 4.27 TB/s, and an empty kernel takes 3.4 us between two events.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.machine import memory
from lithify.machine.levels import launch_level, sequential_levels, vector_level
from lithify.machine.memory import Cache, Registers
from lithify.machine.model import DeviceModel
from lithify.machine.roofline import Peak

_WARP = 32
_GROUP_ITEMS = 1024
_REGISTERS = Registers(per_item=255, per_core=1 << 16, bytes=4)
_GRID = ((1 << 31) - 1, 65535, 65535)
_LINE_BYTES = 128
_GLOBAL_BYTES = 141 * 10**9
_LOCAL_BYTES_OPENCL = 48 << 10
_LOCAL_BYTES_CUDA = 227 << 10
_COPY_BYTES_A_SECOND = 4.27e12
_TERAFLOPS = {
    "f64": 34,
    "f32": 67,
    "matrix f64": 67,
    "matrix tf32": 494,
    "matrix f16": 989,
    "matrix bf16": 989,
    "matrix f8e4m3": 1979,
    "matrix f8e5m2": 1979,
    "matrix i8": 1979,
}
_ARITHMETIC = tuple(Peak(name, rate * 1e12, "data sheet") for name, rate in _TERAFLOPS.items())
_ITEMS = launch_level("item", (_GROUP_ITEMS, _GROUP_ITEMS, 64), _GROUP_ITEMS)
_GROUPS = launch_level("group", _GRID, _GRID[0])
_WARPS = launch_level("warp", (), _GROUP_ITEMS // _WARP)
_LANES = launch_level("lane", (), _WARP)

H200_OPENCL = DeviceModel(
    name="NVIDIA H200",
    api="opencl",
    kind="gpu",
    architecture="sm_90",
    cores=132,
    levels=(
        *sequential_levels(),
        vector_level(16),
        *launch_level("global", (_GRID[0],) * 3, _GRID[0]),
        *_GROUPS,
        *_ITEMS,
        *_WARPS,
        *_LANES,
    ),
    memories=(
        memory.out(),
        memory.heap(_GLOBAL_BYTES, _LINE_BYTES),
        memory.local(_LOCAL_BYTES_OPENCL, banks=32, line_bytes=_LINE_BYTES),
        *memory.private(_REGISTERS.per_item * 4, _REGISTERS),
    ),
    registers=_REGISTERS,
    vector_bytes=16,
    access_bytes=16,
    vector_lanes=16,
    caches=(Cache(1, 256 << 10, _LINE_BYTES), Cache(2, 50 << 20, _LINE_BYTES, shared_by=132)),
    group_items=_GROUP_ITEMS,
    warp_width=_WARP,
    # Threads of a warp are scheduled independently since Volta, and its OpenCL has no barrier for a warp.
    barrier_scopes=frozenset({"group"}),
    counts_groups=True,
    no_arithmetic=frozenset({"f16", "bf16", "f8e4m3", "f8e5m2"}),
    bandwidths=(Peak("heap", _COPY_BYTES_A_SECOND, "measured"),),
    arithmetic=tuple(peak for peak in _ARITHMETIC if peak.of in ("f32", "f64")),
    launch_seconds=3.4e-6,
)

H200_CUDA = replace(
    H200_OPENCL,
    api="cuda",
    levels=(
        *sequential_levels(),
        vector_level(16),
        *launch_level("global", (_GRID[0],) * 3, _GRID[0]),
        *_GROUPS,
        *launch_level("cluster", (), 8),
        *launch_level("warpgroup", (), _GROUP_ITEMS // (4 * _WARP)),
        *_ITEMS,
        *_WARPS,
        *_LANES,
    ),
    memories=tuple(
        replace(spec, bytes=_LOCAL_BYTES_CUDA) if spec.name == "local" else spec for spec in H200_OPENCL.memories
    ),
    barrier_scopes=frozenset({"warp", "warpgroup", "group", "cluster"}),
    no_arithmetic=frozenset({"f8e4m3", "f8e5m2"}),
    copy_kinds=frozenset({"plain", "vector", "async", "bulk"}),
    arithmetic=_ARITHMETIC,
)
