"""Machines as data: device models, the tables of instructions, and the roofline bound.

Lowering asks which levels and vector widths there are, the translation to kernels which level may stand inside which,
the cost model and the reports what the machine could do at best. Targets differ in this data, not in code.
"""

from lithify.machine.catalogue import known_models, model_of
from lithify.machine.host import CpuFacts, VectorUnit, cpu_model, host, read_cpu, usable_cores
from lithify.machine.instructions import MULTIPLY_ADD, ROWS, InstructionRow, Operation, instruction, rows_for
from lithify.machine.levels import LevelError, LevelSpec, NamedLevel, reason_against
from lithify.machine.memory import Cache, MemorySpec, Registers
from lithify.machine.model import DeviceModel
from lithify.machine.nvidia import H200_CUDA, H200_OPENCL
from lithify.machine.opencl import GENERIC_CPU, GENERIC_GPU, OpenCLFacts, opencl_model
from lithify.machine.roofline import Bound, Peak, roofline

__all__ = [
    "GENERIC_CPU",
    "GENERIC_GPU",
    "H200_CUDA",
    "H200_OPENCL",
    "MULTIPLY_ADD",
    "ROWS",
    "Bound",
    "Cache",
    "CpuFacts",
    "DeviceModel",
    "InstructionRow",
    "LevelError",
    "LevelSpec",
    "MemorySpec",
    "NamedLevel",
    "OpenCLFacts",
    "Operation",
    "Peak",
    "Registers",
    "VectorUnit",
    "cpu_model",
    "host",
    "instruction",
    "known_models",
    "model_of",
    "opencl_model",
    "read_cpu",
    "reason_against",
    "roofline",
    "rows_for",
    "usable_cores",
]
