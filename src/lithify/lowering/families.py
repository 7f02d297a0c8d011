"""The families of programs that have parametrised strategies."""

from __future__ import annotations

from lithify.lang.term import Term
from lithify.lowering.gemm.family import Gemm
from lithify.lowering.tuning import Family, Problem

FAMILIES: tuple[Family, ...] = (Gemm(),)


def recognise(program: Term, families: tuple[Family, ...] = FAMILIES) -> tuple[Family, Problem] | None:
    """The family that a program belongs to and its problem there; None where it belongs to none."""
    for family in families:
        problem = family.recognise(program)
        if problem is not None:
            return family, problem
    return None
