"""The default lowering for CPUs behind OpenCL: one work-item a group, which runs a whole piece with vectors.

Work-items that share a group would be run in turn by one core, and every barrier would cut their loops in two.
"""

from __future__ import annotations

from lithify.lang.levels import LOCAL, SEQ, Level
from lithify.lang.term import Term
from lithify.lowering.cpu import PIECES, CpuStrategist
from lithify.lowering.facts import has_lanes, is_elementwise
from lithify.lowering.needs import Need, is_scalar
from lithify.lowering.strategist import Choice
from lithify.lowering.work import length_of
from lithify.rewrite import Strategy
from lithify.rules.algorithmic import split_join
from lithify.rules.lowering import one_group

GROUP = Level("group", 0)


class OpenClCpuStrategist(CpuStrategist):
    """Answers for a CPU behind OpenCL: as for any CPU, with groups of one item instead of threads."""

    parallel = leftover = GROUP
    scratch = LOCAL
    blocks_rows = False  # compilers of OpenCL take many seconds for such code, and what they make of it is slower

    def spreads(self, operations: int) -> bool:
        """Always: outside of a group nobody may write to shared memory."""
        return True

    def spread(self, m: Term) -> Strategy:
        """Pieces for the groups; a loop too short to be cut is one piece."""
        if is_elementwise(m) and 1 < length_of(m) < self.shortest_spread(m):
            return split_join(length_of(m))
        return super().spread(m)

    def reduction(self, need: Need, program: Term) -> Choice:
        """Outside of all groups: one sum a group, or everything by a single group."""
        r = need.term
        start = self.start(need)
        if start is not None:
            return start
        if need.nest or r.kind != "reduce":
            return super().reduction(need, program)
        long = length_of(r.args[2]) >= 4 * self.model.cores * PIECES * self._lanes(r)
        if is_scalar(r.type) and has_lanes(r) and long:
            return Choice(need.path, self._partial_sums(r))
        return Choice(need.path, one_group(GROUP, SEQ))
