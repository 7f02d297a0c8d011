"""Elementary functions."""

from __future__ import annotations

from collections.abc import Callable

from lithify.targets.cpu.builder import Builder, Value


def _lib(name: str) -> Callable[[Builder, list[Value]], Value]:
    return lambda b, v: b.intrinsic(name, *v)


exp, log, sin, cos = (_lib(n) for n in ("exp", "log", "sin", "cos"))
FUNCTIONS = {n: _lib(n) for n in ("exp", "log", "sin", "cos", "tan", "tanh", "pow")}
