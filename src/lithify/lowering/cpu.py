"""The default lowering for CPUs: blocks for threads, explicit vectors, no barriers.

The outermost loop with enough work is spread over the threads; the loop along which memory is contiguous becomes
vectors; reductions get independent accumulators, one a lane of a few vectors. Lengths that do not fit are cut.
"""

from __future__ import annotations

from lithify.lang.algebra import algebra_of
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Level, Memory
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, subterms
from lithify.lang.types import Array, Index, Tuple, Type
from lithify.lowering import stages
from lithify.lowering.loops import Loops
from lithify.lowering.needs import Need, Nest, Path, has_loops, has_work, is_lazy, is_scalar, uses
from lithify.lowering.strategist import Choice, Strategist
from lithify.lowering.work import body_of, elements, length_of, work
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, Strategy, everywhere, try_
from lithify.rules.algorithmic import iterate_unroll, let_inline, split_join, split_range
from lithify.rules.fusion import map_fusion, reduce_map_fusion, zip_of_maps
from lithify.rules.lowering import (
    bind_memory,
    copy_loop,
    copy_vectors,
    copy_vectors_rest,
    cut_borders,
    fuse_named,
    fuse_stored,
    reduce_fuse_named,
    to_memory,
)
from lithify.rules.memory import materialise, set_memory
from lithify.rules.parallel import map_level, reduce_level, scan_level
from lithify.rules.reduction import partial_reduce, reduce_lanes, reduce_range

# Below this many operations starting the threads costs more than it brings.
PARALLEL_WORK = 100_000
# Pieces a thread: enough to even out what the threads are slowed down by, few enough to keep each long.
PIECES = 8
# Vectors that a reduction accumulates into at the same time: additions take about four cycles, two start in one.
ACCUMULATORS = 8
# Straight code up to so many operations; beyond, a loop.
UNROLLED_WORK = 160
# Reductions of so many elements may be straight code.
LONGEST_UNROLLED = 32
# Operations of a reduction's step that take no longer than its last one takes to be ready.
CHEAP_WORK = 6
# What a loop body may keep in private memory; more goes to memory of the thread.
PRIVATE_BYTES = 2_048


class CpuStrategist(Strategist):
    """Answers for a CPU: `model` gives cores and vector width, `loops` how the program's loops walk through memory.

    `parallel` is the level that the outermost loop gets, `leftover` that of what its pieces leave over, `scratch` the
    memory for what a loop body cannot keep in registers.
    """

    parallel: Level = PAR
    leftover: Level = SEQ
    scratch: Memory = THREAD

    def __init__(self, model: DeviceModel, loops: Loops) -> None:
        self.model, self.loops = model, loops

    def settle(self, derivation: Derivation) -> Derivation:
        if not self.model.has_memory("local"):
            derivation.apply(try_(everywhere(set_memory(LOCAL, self.scratch))))
        return super().settle(derivation)

    # -- maps

    def level(self, need: Need, program: Term) -> Choice:
        m, path, nest = need.term, need.path, need.nest
        fused = self._fused(m, path, nest)
        if fused is not None:
            return fused
        if VEC in nest:
            return Choice(path, map_level(UNROLL if length_of(m) <= 16 else SEQ))
        if not nest:
            step = stages.next_step(m, self.model)
            if step is not None:
                return Choice((*path, *step[0]), step[1])
        interior = None if nest else self._without_borders(m)
        if interior is not None:
            return Choice(path, interior)
        if not nest and self.spreads(work(m)):
            return Choice(path, self.spread(m))
        if is_flat(m):
            return Choice(path, self._vectorised(m))
        straight = length_of(m) <= 8 and length_of(m) * body_work(m) <= UNROLLED_WORK * 8
        return Choice(path, map_level(UNROLL if straight else SEQ))

    def _fused(self, m: Term, path: Path, nest: Nest) -> Choice | None:
        """A map over a map that is no mere view of it: one loop, each element computed once."""
        xs = m.args[1]
        if xs.kind == "zip" and any(a.kind == "map" and a["level"] is None and _is_loop(a) for a in xs.args):
            return Choice((*path, 1), zip_of_maps)
        if xs.kind != "map" or xs["level"] is not None:
            return None
        if uses(m.args[0].args[0]) <= 1 or not has_work(xs.args[0]):
            return Choice(path, map_fusion)
        if is_scalar(element_of(xs)):
            return Choice(path, fuse_named)
        return Choice(path, fuse_stored(self._memory_for(element_of(xs), nested=True)))

    def _without_borders(self, m: Term) -> Strategy | None:
        """The interior of a nest that reads padding, apart from its ends: its rows are free of conditions.

        (The ends of rows are cut off by the kernel passes.) What the nest reads is named twice more by this, so it may
        be nothing but a view.
        """
        low, high = self.loops.borders(m)
        inner = length_of(m) - low - high
        if low + high == 0 or is_scalar(element_of(m)) or has_work(m.args[1]) or inner < low + high:
            return None
        return cut_borders(low, inner)

    def spreads(self, operations: int) -> bool:
        """Is a loop outside of all others worth running in parallel?"""
        return operations >= PARALLEL_WORK

    def spread(self, m: Term) -> Strategy:
        """Over the threads: whole iterations of a nest, or pieces of a flat loop."""
        n = length_of(m)
        if n < self.shortest_spread(m) or not (is_elementwise(m) or (is_flat(m) and self._vectorises(m))):
            return map_level(self.parallel)
        grain = self._grain(m)
        piece = max(1, n // (self.model.cores * PIECES * grain)) * grain
        whole = n // piece * piece
        return split_range(whole) if whole != n else split_join(piece)

    def shortest_spread(self, m: Term) -> int:
        """From this length on a flat loop is cut into pieces."""
        return 2 * self._grain(m) * self.model.cores if is_elementwise(m) else self._lanes(m)

    def _grain(self, m: Term) -> int:
        """A piece of a flat loop is a multiple of this."""
        if is_elementwise(m):
            return 4 * self._lanes(m)
        return self._width(m, length_of(m) // (2 * self.model.cores))

    def _vectorised(self, m: Term) -> Strategy:
        n, lanes = length_of(m), self._lanes(m)
        if n in (4, 8) and n < lanes:
            return map_level(VEC)
        if n < lanes or not self._wants_vectors(m):
            return map_level(UNROLL if n <= 8 and n * body_work(m) <= UNROLLED_WORK else SEQ)
        width = self._width(m, n)
        if n == width:
            return map_level(VEC)
        return split_join(width) if n % width == 0 else split_range(n // width * width)

    def _width(self, m: Term, n: int) -> int:
        """Lanes of a vector loop over n iterations: one register, or as many as a reduction inside needs accumulators.

        (A sum waits some cycles for its last addition; half of the registers hold sums meanwhile.)
        """
        lanes, vectors = self._lanes(m), 1
        if any(is_long_sum(t) for t in subterms(m.args[0])):
            vectors = min(self.model.registers.per_item // 2, self.model.vector_lanes // lanes)
        while vectors > 1 and n < vectors * lanes:
            vectors //= 2
        return max(1, vectors) * lanes

    def _vectorises(self, m: Term) -> bool:
        own = self.loops.walk(m)
        return own is not None and own.vectorises and not self.loops.is_over_blocks(m)

    def _wants_vectors(self, m: Term) -> bool:
        """Along the map, unless a long reduction in its body is the contiguous direction."""
        if self.loops.walk(m) is None or self._vectorises(m):
            return True
        return not any(
            t.kind == "reduce" and length_of(t.args[2]) >= 2 * self._lanes(t) and self._sums_in_lanes(t)
            for t in subterms(m.args[0])
        )

    def _lanes(self, t: Term) -> int:
        return lanes_of(self.model, t)

    # -- reductions

    def reduction(self, need: Need, program: Term) -> Choice:
        r, path, nest = need.term, need.path, need.nest
        n = length_of(r.args[-1])
        if r.kind == "reduce" and is_scalar(r.type) and VEC not in nest and has_lanes(r):
            lanes = self._lanes(r)
            pieces = self.model.cores * PIECES
            if not nest and n * body_work(r) >= PARALLEL_WORK and n >= 4 * pieces * lanes:
                return Choice(path, self._partial_sums(r))
            if n > 2 and r.args[2].kind == "reduce":
                return Choice(path, self._added_up(r))
            if n >= 2 * lanes and self._sums_in_lanes(r):
                return Choice(path, self._independent_sums(r))
        return self._in_order(r, path, nest)

    def _sums_in_lanes(self, r: Term) -> bool:
        """Is memory contiguous along the reduction, and may its order change?"""
        walk = self.loops.walk(r)
        return walk is not None and walk.contiguous > walk.strided and has_lanes(r)

    def _partial_sums(self, r: Term) -> Strategy:
        """One partial result a piece; the pieces are spread over the threads and written down."""
        n = length_of(r.args[-1])
        grain = ACCUMULATORS * self._lanes(r)
        piece = max(1, n // (self.model.cores * PIECES * grain)) * grain
        whole = n // piece * piece
        return reduce_range(whole) if whole != n else partial_reduce(piece) >> materialise(HEAP)

    def _independent_sums(self, r: Term) -> Strategy:
        """As many accumulators as lanes of a few vectors, added up in the end."""
        n, lanes = length_of(r.args[-1]), self._lanes(r)
        vectors = ACCUMULATORS
        while vectors > 1 and n < 2 * vectors * lanes:
            vectors //= 2
        width = vectors * lanes
        whole = n // width * width
        return reduce_range(whole) if whole != n else reduce_lanes(width)

    def _added_up(self, r: Term) -> Strategy:
        """The accumulators: the vectors to one, then halves to halves."""
        n, lanes = length_of(r.args[-1]), self._lanes(r)
        return reduce_lanes(lanes if n > lanes and n % lanes == 0 else n // 2 if n % 2 == 0 else 1)

    def _in_order(self, r: Term, path: Path, nest: Nest) -> Choice:
        xs = r.args[-1]
        if r.kind == "reduce" and xs.kind == "map" and xs["level"] is None and not is_lazy(xs.args[0]):
            several = uses(r.args[0].args[0].args[0]) > 1 and is_scalar(element_of(xs))
            return Choice(path, reduce_fuse_named if several else reduce_map_fusion)
        n = length_of(xs)
        straight = n <= LONGEST_UNROLLED and n * body_work(r) <= UNROLLED_WORK
        level = UNROLL if straight or n <= 2 else SEQ
        if r.kind == "scan":
            return Choice(path, scan_level(level, PRIVATE))
        return Choice(path, reduce_level(level, self._memory_for(r.type, nested=True)))

    # -- memory

    def copy(self, need: Need, program: Term) -> Choice:
        xs, path, nest = need.term, need.path, need.nest
        n, lanes = length_of(xs), self.model.vector_width(max(_scalar_bits(xs.type), default=32))
        spread = not nest and self.spreads(elements(xs.type))
        if not is_scalar(element_of(xs)):
            straight = n <= 8 and elements(xs.type) <= 256
            return Choice(path, copy_loop(self.parallel if spread else UNROLL if straight else SEQ))
        if VEC in nest or n < lanes:
            return Choice(path, copy_loop(UNROLL if n <= 16 else SEQ))
        level = self.parallel if spread else UNROLL if n // lanes <= 16 else SEQ
        rest = self.leftover if spread else SEQ
        return Choice(path, copy_vectors_rest(level, lanes, rest) if n % lanes else copy_vectors(level, lanes))

    def memory(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, to_memory(self._memory_for(need.term.type, nested=bool(need.nest))))

    def binding(self, need: Need, program: Term) -> Choice:
        value, function = need.term.args
        if uses(function.args[0]) <= 1 and not is_scalar(value.type):
            return Choice(need.path, let_inline)
        return Choice(need.path, bind_memory(self._memory_for(value.type, nested=bool(need.nest))))

    def sharing(self, need: Need, program: Term) -> Choice:
        at = len(need.term.args) - 1
        xs = need.term.args[at]
        return Choice((*need.path, at), to_memory(self._memory_for(xs.type, nested=bool(need.nest))))

    def _memory_for(self, type_: Type, *, nested: bool) -> Memory:
        """The heap outside of all loops; inside, private memory where it is small, else `scratch`."""
        if not nested:
            return HEAP
        return PRIVATE if elements(type_) * 8 <= PRIVATE_BYTES else self.scratch

    def iteration(self, need: Need, program: Term) -> Choice:
        return Choice(need.path, iterate_unroll())


def _is_loop(m: Term) -> bool:
    """More than a view and scalar operators: the map has loops of its own, or rows that it computes."""
    return not is_lazy(m.args[0]) or (not is_scalar(element_of(m)) and has_work(m.args[0]))


def lanes_of(model: DeviceModel, t: Term, *, access: bool = False) -> int:
    """The vector width for the scalars that a loop works on: of the registers, or of the widest access of one item."""
    bits = max(_bits(t), default=32)
    return max(1, model.access_bytes * 8 // bits) if access else model.vector_width(bits)


def is_flat(m: Term) -> bool:
    """A map whose elements are scalars: no loop inside writes."""
    return is_scalar(element_of(m))


def is_elementwise(m: Term) -> bool:
    """A flat map whose iterations are too short to be shared out one by one."""
    return is_flat(m) and not has_loops(m.args[0])


def has_lanes(r: Term) -> bool:
    algebra = algebra_of(r.args[0])
    return algebra.associative and algebra.commutative and algebra.neutral is not None


def is_long_sum(t: Term) -> bool:
    """A reduction that runs as a loop whose iterations are so short that they wait for one another."""
    if t.kind != "reduce" or not is_scalar(t.type):
        return False
    return length_of(t.args[2]) > LONGEST_UNROLLED and work(t) <= CHEAP_WORK * length_of(t.args[2])


def element_of(t: Term) -> Type:
    assert isinstance(t.type, Array)
    return t.type.element


def body_work(t: Term) -> int:
    """Operations of one iteration of a loop."""
    return max(1, work(body_of(t.args[0])))


def _bits(t: Term) -> set[int]:
    """The widths of the scalars that a loop's results and the arrays that it reads are made of."""
    found = _scalar_bits(t.type)
    for u in subterms(t):
        if u.kind in ("param", "bound"):
            found |= _scalar_bits(u.type)
    return found - {8} or {32}


def _scalar_bits(type_: Type) -> set[int]:
    if isinstance(type_, Array):
        return _scalar_bits(type_.element)
    if isinstance(type_, Tuple):
        return set().union(*map(_scalar_bits, type_.items))
    if isinstance(type_, Scalar):
        return {type_.bits}
    return {32} if isinstance(type_, Index) else set()
