"""C: kernels as a self-contained C11 file with a header, to be shipped or compiled here."""

from lithify.targets.c.compiler import CompileError, find_compiler
from lithify.targets.c.executable import CExecutable
from lithify.targets.c.target import CTarget, write

__all__ = ["CExecutable", "CTarget", "CompileError", "find_compiler", "write"]
