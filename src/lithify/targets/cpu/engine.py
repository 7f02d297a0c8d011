"""LLVM: text to object code for this machine, and object code to addresses. llvmlite is imported on first use."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

_lock = threading.Lock()  # LLVM's global context is not meant for several threads


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # for what stands before instructions on tile registers
    return llvm


@cache
def host() -> tuple[str, str, str, str]:
    """This machine for LLVM: triple, CPU name, its features, and LLVM's version."""
    llvm = _llvm()
    version = ".".join(map(str, llvm.llvm_version_info))
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), version


def _machine() -> Any:
    llvm = _llvm()
    triple, cpu, features, _ = host()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


@cache
def _jit() -> Any:
    return _llvm().create_lljit_compiler(_machine())


def compile_text(text: str) -> bytes:
    """The object code of a module, for this machine. Raises RuntimeError with LLVM's message for bad text."""
    with _lock:
        machine = _machine()
        code: bytes = machine.emit_object(_optimised(text, machine))
        return code


def assembly(text: str) -> str:
    """The machine code of a module as assembly text."""
    with _lock:
        machine = _machine()
        result: str = machine.emit_assembly(_optimised(text, machine))
        return result


def _optimised(text: str, machine: Any) -> Any:
    """A module after LLVM's pipeline without what would change the shape of the program.

    Loops are vectorised and unrolled where the text says so, and nowhere else. What the pipeline adds is that
    private arrays become registers, in loops too, and that what is invariant is computed once.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(text)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


class Library:
    """Loaded object code. The code stays loaded as long as the object lives."""

    _count = 0

    def __init__(self, code: bytes, *names: str) -> None:
        llvm = _llvm()
        with _lock:
            Library._count += 1
            builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
            for name in names:
                builder.export_symbol(name)
            self._tracker = builder.link(_jit(), f"lithify{Library._count}")
            self.addresses: dict[str, int] = {name: self._tracker[name] for name in names}
