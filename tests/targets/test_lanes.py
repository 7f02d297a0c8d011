"""Lanes that are read or written one by one, where PoCL makes vectors of the items of a group.

`PUNNED` is the smallest kernel that we know PoCL 3.1 to get wrong: elements are written to a private array, and the
array is read as a vector. LLVM makes a number of 64 bits of the vector and moves its load, in a loop over items that
PoCL says to be parallel, before the stores: t gets what lay on the stack. Generated kernels have no such array.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lithify.kernel import ir
from lithify.kernel.translate import translate
from lithify.lang.module import Elaborated
from lithify.lowering import lower
from lithify.lowering.tuning import Parameters
from lithify.machine import H200_OPENCL
from lithify.targets.opencl import OpenCLTarget
from tests.lowering.gemm.programs import program_of

PUNNED = """
__attribute__((reqd_work_group_size(4, 8, 4)))
__kernel void punned(__global const float *restrict a, __global float *restrict out) {
  const int at = 2 * get_local_id(0) + 8 * get_local_id(1) + 64 * get_local_id(2);
  __local float t[256];
  float lanes[2];
  for (int l = 0; l < 2; ++l) lanes[l] = a[min(255, at + l)];
  vstore2(vload2(0, lanes), 0, t + at);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int l = 0; l < 2; ++l) out[at + l] = t[at + l];
}
"""
FOUND = Parameters.parse(
    "mPerBlock=64,nPerBlock=32,kPerBlock=8,mPerThread=8,nPerThread=2,nPerWave=4,"
    "vectorA=2,vectorB=2,paddingA=0,paddingB=4,stages=2,splitK=1"
)


def _kernels(program: Elaborated) -> ir.Program:
    lowered = lower(program.term, H200_OPENCL, parameters=FOUND)
    return translate(lowered.term, program.parameters, device=H200_OPENCL)


def test_what_pocl_gets_wrong(pocl_device: Any) -> None:
    """Says when the reason is gone: this kernel is right by the standard."""
    import pyopencl as cl

    context = cl.Context([pocl_device])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, PUNNED).build(), "punned")
    a, out = np.arange(1, 257, dtype=np.float32), np.zeros(256, np.float32)
    flags = cl.mem_flags
    given = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=a)
    result = cl.Buffer(context, flags.READ_WRITE, out.nbytes)
    kernel(queue, (4, 8, 4), (4, 8, 4), given, result)
    cl.enqueue_copy(queue, out, result)
    if not np.array_equal(out, a):
        pytest.xfail("this PoCL reads a private array as a vector before its elements are written")


def test_lanes_that_are_loaded_one_by_one(opencl_device: Any) -> None:
    """Operands that no vector covers, and few work-items in the first dimension: what PoCL got wrong now and then."""
    program, arguments, expected = program_of("left transposed", 2, 2, 17, 5226)
    executable = OpenCLTarget(opencl_device.platform.name).compile(_kernels(program))
    for _ in range(200):
        out = np.full(expected.shape, np.nan, np.float32)
        executable(*arguments, out=out)
        np.testing.assert_array_equal(out, expected)


def test_no_array_is_read_as_a_vector() -> None:
    program, _, _ = program_of("left transposed", 2, 2, 17)
    text = OpenCLTarget().source(_kernels(program))
    arrays = set(re.findall(r"^ +float (\w+)\[\d+\];", text, re.MULTILINE))
    assert not [name for name in arrays if re.search(rf"v(?:load|store)\d+\([^;]*\b{name}\b", text)]
    assert ".s1 = a[" in text
