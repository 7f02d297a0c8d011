"""The default lowering of a program for a device: what runs when a program without any schedule is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.lang.errors import LithifyError
from lithify.lang.levels import PAR
from lithify.lang.term import Term, subterms
from lithify.lowering.cpu import CpuStrategist
from lithify.lowering.gpu import GpuStrategist
from lithify.lowering.loops import Loops, name_loops
from lithify.lowering.opencl_cpu import OpenClCpuStrategist
from lithify.lowering.plain import PlainStrategist
from lithify.lowering.strategist import Strategist
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation


@dataclass(frozen=True)
class Lowered:
    """A lowered program and the derivation that led to it."""

    term: Term
    derivation: Derivation


def lower(term: Term, model: DeviceModel, *, check: bool = False) -> Lowered:
    """Lower a program for a device; levels and memories that it gives already are kept.

    With `check`, the values before and after every step are compared (use small sizes). Raises RewriteFailed when the
    program cannot be lowered.
    """
    program = name_loops(term)
    derivation = Derivation(program, check=check)
    strategist_for(model)(model, loops_of(program)).settle(derivation)
    return Lowered(derivation.term, derivation)


def strategist_for(model: DeviceModel) -> Callable[[DeviceModel, Loops], Strategist]:
    """Who answers for a device: by kind of machine, and by whether it is reached through threads or through groups."""
    if model.kind == "gpu":
        return GpuStrategist
    return CpuStrategist if model.has_level(PAR) else OpenClCpuStrategist


def loops_of(program: Term) -> Loops:
    """How the program's loops walk through memory; nothing is known where it cannot be lowered plainly."""
    from lithify.kernel.translate import translate

    try:
        plain = PlainStrategist().settle(Derivation(program)).term
        parameters = sorted((t for t in subterms(plain) if t.kind == "param"), key=lambda t: str(t["name"]))
        return Loops(translate(plain, parameters, passes=()))
    except LithifyError:
        return Loops(None)
