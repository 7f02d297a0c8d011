"""The plainest lowering: every loop sequential, in the order of the program. The analysis of loops looks at it."""

from __future__ import annotations

from lithify.kernel import ir
from lithify.lang.levels import HEAP, PRIVATE, SEQ, THREAD, Memory
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Type
from lithify.lowering.needs import Need, Nest
from lithify.lowering.strategist import Choice, Strategist
from lithify.rewrite import Derivation
from lithify.rules.lowering import copy_loop
from lithify.rules.parallel import map_level


def plain_kernels(program: Term) -> ir.Program:
    """The program's plainest kernels. Raises LithifyError where it cannot be lowered plainly."""
    from lithify.kernel.translate import translate

    plain = PlainStrategist().settle(Derivation(program)).term
    parameters = sorted((t for t in subterms(plain) if t.kind == "param"), key=lambda t: str(t["name"]))
    return translate(plain, parameters, passes=())


class PlainStrategist(Strategist):
    """Sequential loops, and memory wherever a value is needed twice."""

    def level(self, need: Need, program: Term) -> Choice:
        return self.fused(need.term, need.path, need.nest) or Choice(need.path, map_level(SEQ))

    def reduction(self, need: Need, program: Term) -> Choice:
        return self.in_order(need.term, need.path, need.nest)

    def copy(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, copy_loop(SEQ))

    def memory_for(self, type_: Type, nest: Nest) -> Memory:
        """Where the accesses to arrays count as accesses to memory."""
        return (THREAD if isinstance(type_, Array) else PRIVATE) if nest else HEAP
