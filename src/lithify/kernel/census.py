"""What kernels do, counted from their text: how often each kind of instruction runs, and what memory they hold.

Nothing is run: a statement counts as often as the loops around it say, conditions are taken to hold. So the numbers of
kernels with borders are a little too large, by the same rule for all that are compared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import prod

from lithify.arith import Expr, Variable
from lithify.kernel import ir
from lithify.kernel.walk import parts
from lithify.lang.levels import PAR

# Memories in which an access costs next to nothing.
_REGISTERS = ("private", "reg")


@dataclass
class Census:
    """Totals over a program's kernels.

    `counts` are executions: "vector loads", "scalar loads", "splats" (one element for all lanes), "gathers" and the
    like for stores, of everything that is not kept in registers; "vector operations", "scalar operations",
    "conditions", "barriers", "loop iterations". `bytes` are moved, by memory and direction ("heap read"); `held` are
    bytes that a group, thread or item holds, by memory; `parallel` is how many iterations may run at the same time.
    """

    counts: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    parallel: int = 1
    kernels: int = 0


def census(program: ir.Program) -> Census:
    """Count a program for fixed sizes (a symbolic extent counts once)."""
    found = Census(kernels=len(program.kernels))
    for kernel in program.kernels:
        threads = prod(_number(e) for e in (*kernel.grid, *kernel.group))
        found.parallel = max(found.parallel, threads)
        for buffer in kernel.scratch:
            found.held[buffer.memory.name] += buffer.scalar.bytes * prod(_number(e) for e in buffer.shape)
        _block(kernel.body, threads, (), found)
    return found


def _number(extent: Expr) -> int:
    return 1 if extent.constant is None else extent.constant


def _block(block: ir.Block, times: int, lanes: tuple[Variable, ...], found: Census) -> None:
    for statement in block:
        match statement:
            case ir.Loop(_, extent, level, body, _):
                rounds = _number(extent)
                found.counts["loop iterations"] += times * rounds
                if level == PAR:
                    found.parallel = max(found.parallel, rounds)
                _block(body, times * rounds, lanes, found)
            case ir.Lanes(variable, width, body, _):
                _lanes(body, times, width, variable, found)
            case ir.If(guard, body, otherwise):
                found.counts["conditions"] += times * bool(guard)
                _block(body, times, lanes, found)
                _block(otherwise, times, lanes, found)
            case ir.Store(buffer, index, value, _) | ir.AtomicUpdate(_, buffer, index, value, _):
                _access(buffer, index, "store", times, 1, None, found)
                _value(value, times, 1, None, found)
            case ir.Async(body):
                _block(body, times, lanes, found)
            case ir.Instruction(_, result, operands, _, _):
                found.counts["matrix operations"] += times
                for load in (result, *operands):
                    _access(load.buffer, load.index, "load", times, 1, None, found)
            case ir.Barrier():
                found.counts["barriers"] += times
            case ir.LastGroup(_, _, groups, body):
                found.counts["barriers"] += 2 * times
                _block(body, times // _number(groups), lanes, found)
            case _:
                pass


def _lanes(block: ir.Block, times: int, width: int, lane: Variable, found: Census) -> None:
    for statement in block:
        match statement:
            case ir.Store(buffer, index, value, _) | ir.AtomicUpdate(_, buffer, index, value, _):
                _access(buffer, index, "store", times, width, lane, found)
                _value(value, times, width, lane, found)
            case ir.Loop(_, extent, _, body, _):
                _lanes(body, times * _number(extent), width, lane, found)
            case ir.If(guard, body, otherwise):
                found.counts["conditions"] += times * bool(guard)
                _lanes(body, times, width, lane, found)
                _lanes(otherwise, times, width, lane, found)
            case _:
                _block((statement,), times, (lane,), found)


def _value(value: ir.Value, times: int, width: int, lane: Variable | None, found: Census) -> None:
    for part in parts(value):
        if isinstance(part, ir.Load):
            _access(part.buffer, part.index, "load", times, width, lane, found)
        else:
            found.counts["vector operations" if lane is not None else "scalar operations"] += times


def _access(
    buffer: ir.Buffer, index: ir.Index, what: str, times: int, width: int, lane: Variable | None, found: Census
) -> None:
    if buffer.memory.name in _REGISTERS or not index:
        return
    kind, elements = "scalar", 1
    if lane is not None:
        steps = [e.coefficient(lane) for e in index]
        if all(step == 0 for step in steps):
            kind = "splat"
        elif steps[-1] == 1 and not any(steps[:-1]):
            kind, elements = "vector", width
        else:
            kind, elements = ("gather" if what == "load" else "scatter"), width
    found.counts[f"{kind}s" if kind in ("splat", "gather", "scatter") else f"{kind} {what}s"] += times
    memory = "heap" if buffer.memory.name in ("out", "heap") else buffer.memory.name
    found.bytes[f"{memory} {'read' if what == 'load' else 'written'}"] += times * elements * buffer.scalar.bytes
