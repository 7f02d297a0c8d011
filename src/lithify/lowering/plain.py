"""The plainest lowering: every loop sequential, in the order of the program. The analysis of loops looks at it."""

from __future__ import annotations

from lithify.lang.levels import HEAP, PRIVATE, SEQ, THREAD
from lithify.lang.term import Term
from lithify.lowering.needs import Need, is_lazy, uses
from lithify.lowering.strategist import Choice, Strategist
from lithify.rules.algorithmic import iterate_unroll, let_inline
from lithify.rules.fusion import map_fusion, reduce_map_fusion
from lithify.rules.lowering import bind_memory, copy_loop, fuse_named, reduce_fuse_named, to_memory
from lithify.rules.parallel import map_level, reduce_level, scan_level


class PlainStrategist(Strategist):
    """Sequential loops, and memory wherever a value is needed twice."""

    def level(self, need: Need, program: Term) -> Choice:
        xs = need.term.args[1]
        if xs.kind == "map" and xs["level"] is None:
            return Choice(need.path, fuse_named if uses(need.term.args[0].args[0]) > 1 else map_fusion)
        return Choice(need.path, map_level(SEQ))

    def reduction(self, need: Need, program: Term) -> Choice:
        r = need.term
        xs = r.args[-1]
        if r.kind == "scan":
            return Choice(need.path, scan_level(SEQ, PRIVATE))
        if xs.kind == "map" and xs["level"] is None and not is_lazy(xs.args[0]):
            several = uses(r.args[0].args[0].args[0]) > 1
            return Choice(need.path, reduce_fuse_named if several else reduce_map_fusion)
        return Choice(need.path, reduce_level(SEQ, PRIVATE))

    def copy(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, copy_loop(SEQ))

    def memory(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, to_memory(THREAD if need.nest else HEAP))

    def binding(self, need: Need, program: Term) -> Choice:
        function = need.term.args[1]
        if uses(function.args[0]) <= 1:
            return Choice(need.path, let_inline)
        return Choice(need.path, bind_memory(THREAD if need.nest else HEAP))

    def sharing(self, need: Need, program: Term) -> Choice:
        return Choice((*need.path, len(need.term.args) - 1), to_memory(THREAD if need.nest else HEAP))

    def iteration(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, iterate_unroll())
