"""Kernels written by hand, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lithify.arith import Expr, as_variable, const, var
from lithify.kernel import ir
from lithify.lang.levels import HEAP, OUT, SEQ
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import Scalar, f32


def buffer(name: str, *shape: int | Expr, scalar: Scalar = f32, role: str = "input", memory: Any = HEAP) -> ir.Buffer:
    return ir.Buffer(name, scalar, tuple(const(s) if isinstance(s, int) else s for s in shape), memory, role, 64)


def op(name: str, *operands: ir.Value, result: Scalar | None = None) -> ir.Apply:
    return ir.Apply(OPERATORS[name], operands, result or operands[0].scalar)


def loop(variable: Expr, extent: Expr | int, *body: ir.Statement, level: Any = SEQ) -> ir.Loop:
    return ir.Loop(as_variable(variable), const(extent) if isinstance(extent, int) else extent, level, body)


def lanes(variable: Expr, width: int, *body: ir.Statement) -> ir.Lanes:
    return ir.Lanes(as_variable(variable), width, body)


def program(inputs: Sequence[ir.Buffer], outputs: Sequence[ir.Buffer], *body: ir.Statement, **more: Any) -> ir.Program:
    kernel = ir.Kernel("k", body, scratch=more.pop("scratch", ()))
    return ir.Program("k", tuple(inputs), tuple(outputs), more.pop("temporaries", ()), (kernel,), more.pop("sizes", ()))


def index(name: str, extent: Expr | int) -> Expr:
    return var(name, extent)


def random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def elementwise(name: str, n: int, width: int, operands: Sequence[Scalar], result: Scalar) -> ir.Program:
    """out[i] = name(x0[i], x1[i], ..); `width` lanes with a masked tail, or a plain loop for width 1."""
    inputs = [buffer(f"x{k}", n, scalar=s) for k, s in enumerate(operands)]
    out = buffer("out", n, scalar=result, role="output", memory=OUT)
    blocks = -(-n // width)
    i, lane = index("i", blocks), index("l", width)
    at = i * width + lane
    guard = (const(n - 1) - at,) if n % width else ()
    loads = [ir.Load(x, (at,), guard, ir.Constant(0, x.scalar) if guard else None) for x in inputs]
    store = ir.Store(out, (at,), op(name, *loads, result=result), guard)
    return program(inputs, [out], loop(i, blocks, lanes(lane, width, store) if width > 1 else store))
