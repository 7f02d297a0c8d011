"""The CPU of this machine, through LLVM: vectors up to the native width, and a pool of threads."""

from lithify.targets.cpu.target import CpuTarget

__all__ = ["CpuTarget"]
