"""The default lowering for CPUs: blocks for threads, explicit vectors, no barriers.

The outermost loop with enough work is spread over the threads; the loop along which memory is contiguous becomes
vectors; reductions get independent accumulators, one a lane of a few vectors. Lengths that do not fit are cut.
"""

from __future__ import annotations

from lithify.arith import proves_divisible
from lithify.lang.levels import HEAP, LOCAL, PAR, PRIVATE, SEQ, THREAD, UNROLL, VEC, Level, Memory
from lithify.lang.reading import has_work
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, subterms
from lithify.lang.types import Type
from lithify.lowering import columns, dot_products, rearrangement, row_blocks, stages
from lithify.lowering.facts import (
    CHEAP_WORK,
    body_work,
    element_of,
    has_lanes,
    has_start,
    is_elementwise,
    is_flat,
    is_long_sum,
    lanes_of,
    scalar_bits,
)
from lithify.lowering.needs import Need, Nest, Path, accumulates, is_scalar, updates
from lithify.lowering.strategist import Choice, DeviceStrategist
from lithify.lowering.work import elements, is_at_most, is_bounded, is_constant, length_of, size_of, work
from lithify.rewrite import Derivation, Strategy, everywhere, try_
from lithify.rules.algorithmic import split_join, split_range
from lithify.rules.fusion import zip_of_maps
from lithify.rules.lowering import (
    copy_loop,
    copy_vectors,
    copy_vectors_rest,
    cut_borders,
)
from lithify.rules.memory import materialise, set_memory
from lithify.rules.parallel import map_level
from lithify.rules.reduction import (
    partial_reduce,
    reduce_lanes,
    reduce_range,
    scan_lanes,
    scan_of_sums,
    scan_of_sums_rest,
    scan_steps,
    scan_vectors,
)
from lithify.rules.stencil import reduce_window_rows

# Below this many operations starting the threads costs more than it brings.
PARALLEL_WORK = 100_000
# Pieces a thread: enough to even out what the threads are slowed down by, few enough to keep each long.
PIECES = 8
# A piece where the length is not known.
ANY_PIECE = 4_096
# Vectors that a reduction accumulates into at the same time: additions take about four cycles, two start in one.
ACCUMULATORS = 8
# Elements along a side of a tile that is copied through registers.
WIDEST_TILE = 16
# What a loop body may keep in private memory; more goes to memory of the thread.
PRIVATE_BYTES = 2_048


class CpuStrategist(DeviceStrategist):
    """Answers for a CPU: `model` gives cores and vector width, `loops` how the program's loops walk through memory.

    `parallel` is the level that the outermost loop gets, `leftover` that of what its pieces leave over, `scratch` the
    memory for what a loop body cannot keep in registers. `blocks_rows` says that long straight code pays.
    """

    unrolled_work = 160
    parallel: Level = PAR
    leftover: Level = SEQ
    scratch: Memory = THREAD
    blocks_rows = True

    def settle(self, derivation: Derivation) -> Derivation:
        if not self.model.has_memory("local"):
            derivation.apply(try_(everywhere(set_memory(LOCAL, self.scratch))))
        return super().settle(derivation)

    # -- maps

    def level(self, need: Need, program: Term) -> Choice:
        m, path, nest = need.term, need.path, need.nest
        fused = self.fused(m, path, nest)
        if fused is not None:
            return fused
        if VEC in nest:
            return Choice(path, map_level(UNROLL if is_at_most(m, 16) else SEQ))
        if is_flat(m) and updates(program, path):
            return Choice(path, map_level(self.parallel if not nest and self.spreads(work(m)) else SEQ))
        if not nest:
            again = stages.recomputed(m, self.loops) if self.blocks_rows else None
            step = again or stages.next_step(m, self.model)
            if step is not None:
                return Choice((*path, *step[0]), step[1])
        interior = None if nest else self._without_borders(m)
        if interior is not None:
            return Choice(path, interior)
        in_rows = self._in_rows_of_windows(m, path, nest) if self.blocks_rows else None
        if in_rows is not None:
            return in_rows
        if not nest and self.spreads(work(m)):
            return Choice(path, self._rows_at_a_time(m) or self.spread(m))
        if is_flat(m):
            exact = not is_constant(m) and accumulates(program, path)
            return Choice(path, self._in_whole_vectors(m) if exact else self._vectorised(m))
        straight = is_at_most(m, 8) and length_of(m) * body_work(m) <= self.unrolled_work * 8
        return Choice(path, map_level(UNROLL if straight else SEQ))

    def _without_borders(self, m: Term) -> Strategy | None:
        """The interior of a nest that reads padding, apart from its ends: its rows are free of conditions.

        (The ends of rows are cut off by the kernel passes.) What the nest reads is named twice more by this, so it may
        be nothing but a view.
        """
        low, high = self.loops.borders(m)
        inner = length_of(m) - low - high
        pays = 0 < low + high <= inner and is_constant(m)
        return cut_borders(low, inner) if pays and not is_flat(m) and not has_work(m.args[1]) else None

    def _in_rows_of_windows(self, m: Term, path: Path, nest: Nest) -> Choice | None:
        """Several rows of a stencil at a time; what is computed for a row on the way becomes a part of its loop."""
        step = row_blocks.next_step(m, self._lanes(m))
        if step is not None:
            return Choice(path, step)
        row = m.args[0].args[0]
        if row.kind != "map" or row["level"] is not None or not is_flat(row) or length_of(row) < 2 * self._lanes(row):
            return None
        operations = body_work(row) + stages.recomputed_work(m, self.loops)
        step = row_blocks.block(m, operations, self.loops, self.model, not nest) if self._vectorises(row) else None
        if step is None or not has_work(row.args[1]):
            return None if step is None else Choice(path, step)
        if row.args[1].kind == "zip":
            return Choice((*path, 0, 0, 1), zip_of_maps)
        return self.fused(row, (*path, 0, 0), (*nest, SEQ))

    def _rows_at_a_time(self, m: Term) -> Strategy | None:
        """Several rows of a matrix at a time, for sums down its columns or along its rows."""
        if not self.blocks_rows:
            return None
        read = columns.in_rows if self._vectorises(m) else dot_products.together
        return read(m, self.model, self.loops)

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
        return self._in_rows(m, piece if is_constant(m) else max(grain, ANY_PIECE))

    def _in_rows(self, m: Term, width: int) -> Strategy:
        """Rows of `width` iterations; what is left over is a loop of its own, or padding where no length is known."""
        n = length_of(m)
        if is_constant(m) and n % width:
            return split_range(n // width * width)
        return split_join(width)

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
        if is_constant(m) and n in (4, 8) and n < lanes:
            return map_level(VEC)
        if n < lanes or not self._wants_vectors(m):
            return map_level(UNROLL if is_at_most(m, 8) and n * body_work(m) <= self.unrolled_work else SEQ)
        width = self._width(m, n)
        return map_level(VEC) if is_constant(m) and n == width else self._in_rows(m, width)

    def _in_whole_vectors(self, m: Term) -> Strategy:
        """For a length that is not known, without padding, which would read an accumulator's end while it changes."""
        size, lanes = size_of(m), self._lanes(m)
        if proves_divisible(size, lanes):
            return split_join(lanes)
        if size.hi < lanes or not self._wants_vectors(m):
            return map_level(SEQ)
        return split_range(size // lanes * lanes)

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
        if r.kind == "reduce" and nest[-2:] == (UNROLL, VEC) and r.args[2].kind == "join" and has_start(r):
            return Choice(path, reduce_window_rows)
        in_lanes = r.kind == "scan" and VEC not in nest and not updates(program, path)
        scan = self._scan(r, nest) if in_lanes else None
        return self.in_order(r, path, nest) if scan is None else Choice(path, scan)

    def _scan(self, r: Term, nest: Nest) -> Strategy | None:
        """Squares of as many vectors as lanes, each after the sums of those before; in a square, vectors in doubling
        steps, or, where steps cost much, turned and side by side.

        None for what has no such algebra, or is short.
        """
        n, element = length_of(r.args[2]), element_of(r)
        lanes = min(self._lanes(r), WIDEST_TILE)
        if not (is_constant(r.args[2]) and isinstance(element, Scalar) and has_start(r) and lanes > 1):
            return None
        square, cheap = lanes * lanes, body_work(r) <= CHEAP_WORK and not element.is_complex
        if n == lanes and cheap:
            return scan_steps[lanes](PRIVATE) | self.in_order(r, (), nest).strategy
        if n == square and cheap:
            return scan_vectors(lanes, PRIVATE)
        if n == square:
            return scan_lanes(lanes, self.memory_for(r.type, (*nest, SEQ)), (VEC, UNROLL))
        if n < 2 * square:
            return None
        memory = self.memory_for(r.type, nest)
        return scan_of_sums_rest(square, memory) if n % square else scan_of_sums(square, memory)

    def _sums_in_lanes(self, r: Term) -> bool:
        """Is memory contiguous along the reduction, and may its order change?"""
        walk = self.loops.walk(r)
        return walk is not None and walk.contiguous > walk.strided and has_lanes(r)

    def _partial_sums(self, r: Term) -> Strategy:
        """One partial result a piece; the pieces are spread over the threads and written down."""
        n = length_of(r.args[-1])
        grain = ACCUMULATORS * self._lanes(r)
        piece = max(1, n // (self.model.cores * PIECES * grain)) * grain
        if not is_constant(r.args[2]):
            return partial_reduce(max(grain, ANY_PIECE)) >> materialise(HEAP)
        whole = n // piece * piece
        return reduce_range(whole) if whole != n else partial_reduce(piece) >> materialise(HEAP)

    def _independent_sums(self, r: Term) -> Strategy:
        """As many accumulators as lanes of a few vectors, added up in the end; half of the registers for tuples."""
        n, lanes = length_of(r.args[-1]), self._lanes(r)
        vectors, most = ACCUMULATORS, max(ACCUMULATORS, self.model.registers.per_item // 2)
        while vectors > 1 and (n < 2 * vectors * lanes or vectors * elements(r.type) > most):
            vectors //= 2
        width = vectors * lanes
        whole = n // width * width if is_constant(r.args[2]) else n
        return reduce_range(whole) if whole != n else reduce_lanes(width)

    def _added_up(self, r: Term) -> Strategy:
        """The accumulators: the vectors to one, then halves to halves."""
        n, lanes = length_of(r.args[-1]), self._lanes(r)
        return reduce_lanes(lanes if n > lanes and n % lanes == 0 else n // 2 if n % 2 == 0 else 1)

    # -- memory

    def copy(self, need: Need, program: Term) -> Choice:
        xs, path, nest = need.term, need.path, need.nest
        n, lanes = length_of(xs), self.model.vector_width(max(scalar_bits(xs.type), default=32))
        spread = not nest and self.spreads(elements(xs.type))
        if not is_scalar(element_of(xs)):
            level = self.parallel if spread else SEQ
            tiles = None if nest else rearrangement.tiles(program, path, min(lanes, WIDEST_TILE), level)
            if tiles is not None:
                return Choice(path, tiles)
            straight = is_at_most(xs, 8) and elements(xs.type) <= 256
            return Choice(path, copy_loop(self.parallel if spread else UNROLL if straight else SEQ))
        generated = [g.args[0] for g in subterms(xs) if g.kind == "generate"]
        loops = any(u.kind in ("reduce", "scan", "iterate") for f in generated for u in subterms(f))
        loops = loops or any(u.kind == "to" for u in subterms(xs))  # two copies would compute what is stored twice
        if VEC in nest or n < lanes or not is_constant(xs) or loops or updates(program, path):
            return Choice(path, copy_loop(UNROLL if is_at_most(xs, 16) else self.parallel if spread else SEQ))
        level = self.parallel if spread else UNROLL if n // lanes <= 16 else SEQ
        rest = self.leftover if spread else SEQ
        return Choice(path, copy_vectors_rest(level, lanes, rest) if n % lanes else copy_vectors(level, lanes))

    def memory_for(self, type_: Type, nest: Nest) -> Memory:
        """The heap outside of all loops; inside, private memory for what is known to be small, else `scratch`."""
        if not nest:
            return HEAP
        return PRIVATE if is_bounded(type_) and elements(type_) * 8 <= PRIVATE_BYTES else self.scratch
