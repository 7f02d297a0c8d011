"""The OpenCL C text of a kernel program."""

from __future__ import annotations

from lithify.kernel.ir import Buffer, Kernel, Program
from lithify.lang.errors import LithifyError
from lithify.lang.scalars import Kind, bool_
from lithify.targets.cdialect.declarations import Parameters, parameters_of
from lithify.targets.cdialect.dialect import computed
from lithify.targets.cdialect.helpers import helper_texts
from lithify.targets.cdialect.statements import KernelPrinter
from lithify.targets.opencl.dialect import OPENCL

_FP64 = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"
_INT64_ATOMICS = "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable"
MOST_DIMENSIONS = 3


def program_source(program: Program, size_bits: int = 64) -> str:
    """One text with all kernels. `size_bits`: the width of index arithmetic where it depends on symbolic sizes."""
    helpers: set[str] = set()
    own: dict[str, str] = {}
    kernels = []
    for kernel in program.kernels:
        parameters = kernel_parameters(program, kernel)
        printer = KernelPrinter(kernel, parameters, OPENCL, size_bits)
        body = printer.body()
        helpers |= printer.values.helpers
        own |= printer.values.own_helpers
        types = {b.scalar.name for b in parameters.buffers if b.scalar.is_complex}
        helpers |= types
        kernels.append("\n".join([*_heading(program, kernel, parameters), *_head(kernel, parameters, printer), *body, "}"]))
    functions = [*helper_texts(helpers, OPENCL), *own.values()]
    text = "\n\n".join([*functions, *kernels]) + "\n"
    pragmas = []
    if "double" in text:
        pragmas.append(_FP64)
    if "atom_cmpxchg" in text:
        pragmas.append(_INT64_ATOMICS)
    return "\n".join([*pragmas, ""] if pragmas else []) + ("\n" if pragmas else "") + text


def kernel_parameters(program: Program, kernel: Kernel) -> Parameters:
    """What the kernel's function takes, in the order of its parameters."""
    return parameters_of(kernel, (*program.parameters, *program.results, *program.temporaries))


def kernel_name(kernel: Kernel) -> str:
    """The name of the kernel's function."""
    from lithify.targets.cdialect.names import identifier

    return identifier(kernel.name)


def _heading(program: Program, kernel: Kernel, parameters: Parameters) -> list[str]:
    """Comments that say what the kernel reads and writes and how it is launched."""
    def described(buffers: list[Buffer]) -> str:
        return ", ".join(f"{b.name} : {'.'.join([*map(str, b.shape), b.scalar.name])}" for b in buffers) or "nothing"

    results = [b for b in parameters.buffers if b.role == "output"]
    others = [b for b in parameters.buffers if b.role != "output"]
    lines = [f"// {kernel.name} of {program.name}: {described(others)} -> {described(results)}"]
    grid, group = " x ".join(map(str, kernel.grid)) or "1", " x ".join(map(str, kernel.group)) or "1"
    return [*lines, f"// {grid} groups of {group}"]


def _head(kernel: Kernel, parameters: Parameters, printer: KernelPrinter) -> list[str]:
    group = [_constant_extent(kernel, e.constant) for e in kernel.group]
    if len(group) > MOST_DIMENSIONS or len(kernel.grid) > MOST_DIMENSIONS:
        raise LithifyError(f"{kernel.name} is launched in {max(len(group), len(kernel.grid))} dimensions; OpenCL has 3",
                           hint="join dimensions of the group level")  # fmt: skip
    group += [1] * (MOST_DIMENSIONS - len(group))
    declared = [_parameter(b, printer.values.places[b].name) for b in parameters.buffers]
    declared += [f"const {printer.size_types[v]} {printer.values.indices.names[v]}" for v in parameters.sizes]
    name = kernel_name(kernel)
    lines = [f"__attribute__((reqd_work_group_size({', '.join(map(str, group))})))"]
    indent = " " * len(f"__kernel void {name}(")
    return [*lines, f"__kernel void {name}(" + f",\n{indent}".join(declared) + ") {"]


def _constant_extent(kernel: Kernel, extent: int | None) -> int:
    if extent is None:
        raise LithifyError(f"the size of a work-group of {kernel.name} depends on a symbolic size",
                           hint="group sizes are constants; let the number of groups depend on the size")  # fmt: skip
    return extent


def _parameter(buffer: Buffer, name: str) -> str:
    scalar = buffer.scalar
    storage = OPENCL.storage.get(scalar)
    if buffer.role == "scalar":
        return f"const {scalar_parameter_type(buffer)} {name}"
    element = OPENCL.types[scalar] if storage is None else storage.parameter
    constant = "const " if buffer.role == "input" else ""
    return f"__global {constant}{element} *{OPENCL.restrict} {name}"


def scalar_parameter_type(buffer: Buffer) -> str:
    """The type in which a scalar is passed: bytes for truth values, f32 for narrower floats."""
    return "uchar" if buffer.scalar is bool_ else OPENCL.types[computed(buffer.scalar)]


__all__ = ["Kind", "kernel_name", "kernel_parameters", "program_source", "scalar_parameter_type"]
