"""Passes over kernels: what the translation leaves to be decided by the code alone.

Not here, because the targets' compilers do it as well (measured on an 8 x 32 register tile of a matrix multiplication
through LLVM: no load twice, no address computed twice): common subexpressions within a value, hoisting of invariant
loads, strength reduction. Nor are the gathers at clamped edges of vectors turned into selections: that was not faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lithify.kernel import ir
from lithify.kernel.passes.barriers import insert_barriers
from lithify.kernel.passes.implied import drop_implied_conditions
from lithify.kernel.passes.lanes import join_lanes
from lithify.kernel.passes.last_group import finish_in_last_groups
from lithify.kernel.passes.own_updates import store_own_updates
from lithify.kernel.passes.repeated import drop_repeated
from lithify.kernel.passes.reuse import reuse_memory
from lithify.kernel.passes.sharing import share_with_threads
from lithify.kernel.passes.splitting import split_index_sets
from lithify.kernel.passes.unused import drop_unused
from lithify.kernel.passes.versioning import version_symbolic_loops
from lithify.machine import DeviceModel

Pass = Callable[[ir.Program], ir.Program]

PIPELINE: tuple[Pass, ...] = (
    # Values that nothing reads, for instance a shared scalar whose readers vanished; first, to spare the others work.
    drop_unused,
    # What lines of a strip share is computed once; before loops are cut, which doubles the text.
    join_lanes,
    drop_repeated,
    # Required for correctness on CPUs; before all that looks at lifetimes.
    share_with_threads,
    # Private memory is private now. Required for lanes, which cannot update indivisibly.
    store_own_updates,
    # Cuts loops at the edges of padding and partial tiles; what it tests in front of a body is implied inside.
    split_index_sets,
    version_symbolic_loops,
    drop_implied_conditions,
    # Smaller local memory: more groups at a time. Before the barriers, which the sharing may need more of.
    reuse_memory,
    # Needs the final accesses to shared memory: nothing that moves or shares memory comes after it.
    insert_barriers,
)


def pipeline_for(device: DeviceModel | None) -> tuple[Pass, ...]:
    """The pipeline for a device: where the items of a warp cannot wait for each other, the group does; where groups can
    count themselves, the last one does what a launch would be needed for."""
    if device is None:
        return PIPELINE
    *passes, reuse, barriers = PIPELINE
    if device.counts_groups:
        passes.append(partial(finish_in_last_groups, device=device))  # before the memory of both kernels is shared
    if "warp" not in device.barrier_scopes:
        barriers = partial(insert_barriers, warps=False)
    return (*passes, reuse, barriers)


def run(program: ir.Program, passes: tuple[Pass, ...] = PIPELINE) -> ir.Program:
    """The program after the passes, in order."""
    for each in passes:
        program = each(program)
    return program
