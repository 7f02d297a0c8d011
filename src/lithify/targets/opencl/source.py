"""The OpenCL C text of a kernel program."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.arith import Expr
from lithify.kernel.ir import Buffer, Kernel, Program
from lithify.kernel.passes.lengths import arrays_of_the_call
from lithify.lang.errors import LithifyError
from lithify.lang.scalars import bool_
from lithify.targets.cdialect.auxiliaries import auxiliary_texts
from lithify.targets.cdialect.declarations import Parameters, parameters_of
from lithify.targets.cdialect.dialect import computed
from lithify.targets.cdialect.names import KEYWORDS, Names
from lithify.targets.cdialect.statements import KernelPrinter
from lithify.targets.opencl.dialect import OPENCL
from lithify.targets.plan import KernelLaunch, LaunchPlan, kernel_launch, launch_plan

_EXTENSIONS = {  # by the word in the text that needs it
    "double": "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    "atom_cmpxchg": "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable",
}
MOST_DIMENSIONS = 3


@dataclass(frozen=True, slots=True)
class Source:
    """The text, and how its kernels are launched."""

    text: str
    plan: LaunchPlan


def program_source(program: Program, size_bits: int = 32, alignment: int = 1) -> Source:
    """One text with all kernels.

    `size_bits` is the width of index arithmetic where it depends on symbolic sizes (the plan's limits say when it is
    enough); `alignment` is what every buffer is known to have, beyond what it promises itself.
    """
    program = arrays_of_the_call(program)
    auxiliaries: set[str] = set()
    own: dict[str, str] = {}
    limits: set[Expr] = set()
    kernels: list[str] = []
    launches: list[KernelLaunch] = []
    names = Names(KEYWORDS | OPENCL.reserved)
    for kernel in program.kernels:
        parameters = parameters_of(kernel, (*program.parameters, *program.results, *program.temporaries))
        printer = KernelPrinter(kernel, parameters, OPENCL, size_bits, alignment)
        name = names.fresh(kernel.name)
        lines = [
            *_heading(program, kernel, parameters),
            *_head(kernel, name, parameters, printer),
            *printer.body(),
            "}",
        ]
        kernels.append("\n".join(lines))
        auxiliaries |= printer.values.auxiliaries | {b.scalar.name for b in parameters.buffers if b.scalar.is_complex}
        own |= printer.values.own_auxiliaries
        limits |= printer.values.indices.widths.assumed
        bits = {v.name: printer.values.indices.declared_bits[v] for v in parameters.sizes}
        launches.append(kernel_launch(program, kernel, name, parameters.buffers, bits))
    text = "\n\n".join([*auxiliary_texts(auxiliaries, OPENCL), *own.values(), *kernels]) + "\n"
    extensions = [pragma for word, pragma in _EXTENSIONS.items() if word in text]
    text = "\n".join([*extensions, *([""] if extensions else []), text])
    return Source(text, launch_plan(program, launches, alignment, limits))


def _heading(program: Program, kernel: Kernel, parameters: Parameters) -> list[str]:
    """Comments that say what the kernel reads and writes and how it is launched."""

    def described(buffers: list[Buffer]) -> str:
        return ", ".join(f"{b.name} : {'.'.join([*map(str, b.shape), b.scalar.name])}" for b in buffers) or "nothing"

    results = [b for b in parameters.buffers if b.role == "output"]
    others = [b for b in parameters.buffers if b.role != "output"]
    lines = [f"// {kernel.name} of {program.name}: {described(others)} -> {described(results)}"]
    grid, group = " x ".join(map(str, kernel.grid)) or "1", " x ".join(map(str, kernel.group)) or "1"
    counters = [b for b in parameters.buffers if b.role == "counter"]
    zeros = [f"// {described(counters)} holds zeros before a call, and after it"] if counters else []
    return [*lines, f"// {grid} groups of {group}", *zeros]


def _head(kernel: Kernel, name: str, parameters: Parameters, printer: KernelPrinter) -> list[str]:
    group = [_constant_extent(kernel, e.constant) for e in kernel.group]
    if len(group) > MOST_DIMENSIONS or len(kernel.grid) > MOST_DIMENSIONS:
        raise LithifyError(f"{kernel.name} is launched in {max(len(group), len(kernel.grid))} dimensions; OpenCL has 3",
                           hint="join dimensions of the group level")  # fmt: skip
    group += [1] * (MOST_DIMENSIONS - len(group))
    declared = [_parameter(b, printer.values.places[b].name, parameters) for b in parameters.buffers]
    declared += [f"const {printer.size_types[v]} {printer.values.indices.names[v]}" for v in parameters.sizes]
    lines = [f"__attribute__((reqd_work_group_size({', '.join(map(str, group))})))"]
    indent = " " * len(f"__kernel void {name}(")
    return [*lines, f"__kernel void {name}(" + f",\n{indent}".join(declared) + ") {"]


def _constant_extent(kernel: Kernel, extent: int | None) -> int:
    if extent is None:
        raise LithifyError(f"the size of a work-group of {kernel.name} depends on a symbolic size",
                           hint="group sizes are constants; let the number of groups depend on the size")  # fmt: skip
    return extent


def _parameter(buffer: Buffer, name: str, parameters: Parameters) -> str:
    scalar = buffer.scalar
    storage = OPENCL.storage.get(scalar)
    if buffer.role == "scalar":
        return f"const {_scalar_type(buffer)} {name}"
    element = OPENCL.types[scalar] if storage is None else storage.parameter
    if buffer in parameters.handed_over:
        return f"volatile __global {element} *{name}"
    constant = "" if buffer in parameters.written else "const "
    return f"__global {constant}{element} *{OPENCL.restrict} {name}"


def _scalar_type(buffer: Buffer) -> str:
    """The type in which a scalar is passed: bytes for truth values, f32 for narrower floats."""
    return "uchar" if buffer.scalar is bool_ else OPENCL.types[computed(buffer.scalar)]
