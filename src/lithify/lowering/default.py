"""The default lowering of a program for a device: what runs when a program without any schedule is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.lang.errors import LithifyError, RewriteFailed
from lithify.lang.levels import PAR
from lithify.lang.term import Term
from lithify.lowering.cpu import CpuStrategist
from lithify.lowering.families import FAMILIES, recognise
from lithify.lowering.generated import settle_generated
from lithify.lowering.gpu import GpuStrategist
from lithify.lowering.loops import Loops, name_loops
from lithify.lowering.opencl_cpu import OpenClCpuStrategist
from lithify.lowering.plain import plain_kernels
from lithify.lowering.strategies import named
from lithify.lowering.strategist import Strategist
from lithify.lowering.tuning import Family, Parameters
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation
from lithify.rules.algorithmic import single_row
from lithify.rules.lowering import hoist_reduction


@dataclass(frozen=True)
class Lowered:
    """A lowered program and the derivation that led to it."""

    term: Term
    derivation: Derivation


def lower(
    term: Term,
    model: DeviceModel,
    *,
    check: bool = False,
    strategy: str | None = None,
    parameters: Parameters | None = None,
    families: tuple[Family, ...] = FAMILIES,
) -> Lowered:
    """Lower a program for a device; levels and memories that it gives already are kept.

    A named strategy (see `strategies`) goes first, or that of the program's family (see `families`) by the given tuning
    parameters or else by its default ones; the device's default fills in what is left open. With `check`, the values
    before and after every step are compared (use small sizes) and failures shown; without it, where the family's
    strategy fails by its default parameters, the device's default lowers all. Raises RewriteFailed when the program
    cannot be lowered so, and for parameters that are invalid.
    """
    program = name_loops(term)
    derivation = Derivation(program, check=check)
    by_family = False
    if strategy is not None:
        named(strategy)(derivation, model)
    else:
        try:
            by_family = _by_family(derivation, model, parameters, families)
        except RewriteFailed:
            if parameters is not None or check:
                raise
            derivation = Derivation(program)  # nobody asked for the family: the device's default will do
    derivation.normalize(hoist_reduction)
    if not by_family:  # whose views of single rows are to stay views
        derivation.normalize(single_row)
    settle_generated(derivation)
    strategist_for(model)(model, loops_of(name_loops(derivation.term))).settle(derivation)
    return Lowered(derivation.term, derivation)


def _by_family(
    derivation: Derivation, model: DeviceModel, parameters: Parameters | None, families: tuple[Family, ...]
) -> bool:
    """Lower a program of one of the families by the family's strategy; False where there is none for it."""
    found = recognise(derivation.term, families)
    space = None if found is None else found[0].space(found[1], model)
    if found is None or space is None:
        if parameters is not None:
            raise RewriteFailed(f"nothing in this program is tuned on {model}, but parameters are given: {parameters}")
        return False
    family, problem = found
    if parameters is not None:
        space.check(parameters)
    family.derive(derivation, problem, parameters or space.default, model)
    return True


def strategist_for(model: DeviceModel) -> Callable[[DeviceModel, Loops], Strategist]:
    """Who answers for a device: by kind of machine, and by whether it is reached through threads or through groups."""
    if model.kind == "gpu":
        return GpuStrategist
    return CpuStrategist if model.has_level(PAR) else OpenClCpuStrategist


def loops_of(program: Term) -> Loops:
    """How the program's loops walk through memory; nothing is known where it cannot be lowered plainly."""
    try:
        return Loops(plain_kernels(program))
    except LithifyError:
        return Loops(None)
