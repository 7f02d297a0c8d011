"""The default lowering: every choice that a program leaves open is answered, outermost first, by a rule.

A strategist is a device's way to answer. It never changes what a program already says: the levels and memories that a
user gives are kept, and only what is missing is filled in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from lithify.lang.errors import RewriteFailed
from lithify.lang.levels import INLINE, OUT, PRIVATE, SEQ, UNROLL, Memory
from lithify.lang.reading import has_work
from lithify.lang.term import Term
from lithify.lang.types import Array, Tuple, Type, shape_of
from lithify.lowering.facts import (
    CHEAP_WORK,
    LONGEST_UNROLLED,
    accumulates_in_place,
    body_work,
    computes_rows,
    element_of,
    fits_locally,
)
from lithify.lowering.loops import Loops
from lithify.lowering.needs import (
    Need,
    Nest,
    Path,
    Search,
    front_of,
    has_loops,
    is_lazy,
    is_named_view,
    is_repeated,
    is_scalar,
    uses,
)
from lithify.lowering.work import is_constant, length_of, work
from lithify.machine import DeviceModel
from lithify.rewrite import Derivation, Strategy, at
from lithify.rules.algorithmic import iterate_unroll, let_inline
from lithify.rules.fusion import map_fusion, reduce_map_fusion, zip_of_maps
from lithify.rules.lowering import (
    bind_memory,
    by_components,
    double_buffer_components,
    fuse_named,
    fuse_stored,
    hoist_array,
    name_initial,
    name_initial_scan,
    reduce_fuse_named,
    to_memory,
)
from lithify.rules.memory import double_buffer, drop_store
from lithify.rules.parallel import map_level, reduce_level, scan_level

# More steps than any program of sensible size needs: a strategist that goes on for ever is a defect of ours.
_STEP_LIMIT = 5_000
# Steps of an iteration that are written out.
_MOST_ITERATIONS = 1_000
# From so many operations on an array that no iteration changes is computed before the loop, not in each.
HOISTED_WORK = 64


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer: a strategy, and where to apply it (a path from the root of the program)."""

    path: Path
    strategy: Strategy


class Strategist(ABC):
    """Answers the needs of a program, one at a time. `unrolled_work`: straight code up to so many operations."""

    unrolled_work = 0

    def settle(self, derivation: Derivation) -> Derivation:
        """Answer needs until none is left. Raises RewriteFailed where an answer does not apply."""
        search = Search()
        for _ in range(_STEP_LIMIT):
            need = search.first(derivation.term)
            if need is None:
                return derivation
            choice = self.answer(need, derivation.term)
            derivation.apply(at(choice.path, choice.strategy))
        raise RewriteFailed(
            f"the default lowering did not come to an end after {_STEP_LIMIT} steps",
            hint="say more in the program: levels for its loops, memories for its arrays",
        )

    def answer(self, need: Need, program: Term) -> Choice:
        """The choice for a need."""
        answer: Choice = getattr(self, need.lack.name.lower())(need, program)
        return answer

    @abstractmethod
    def level(self, need: Need, program: Term) -> Choice:
        """For a map that writes and has no level."""

    @abstractmethod
    def reduction(self, need: Need, program: Term) -> Choice:
        """For a reduction or scan without a level."""

    @abstractmethod
    def copy(self, need: Need, program: Term) -> Choice:
        """For an array that is a result as it stands."""

    @abstractmethod
    def memory_for(self, type_: Type, nest: Nest) -> Memory:
        """Where a value of the type is written that is computed below such maps."""

    # -- answers that devices share

    def fused(self, m: Term, path: Path, nest: Nest) -> Choice | None:
        """A map over a map that is no mere view of it: one loop, each element computed once."""
        xs = m.args[1]
        if xs.kind == "zip" and any(a.kind == "map" and a["level"] is None and computes_rows(a) for a in xs.args):
            return Choice((*path, 1), zip_of_maps)
        if xs.kind != "map" or xs["level"] is not None:
            return None
        if uses(m.args[0].args[0]) <= 1 or not has_work(xs.args[0]):
            return Choice(path, map_fusion)
        if is_scalar(element_of(xs)):
            return Choice(path, fuse_named)
        return Choice(path, fuse_stored(self.memory_for(element_of(xs), (*nest, SEQ))))

    def in_order(self, r: Term, path: Path, nest: Nest) -> Choice:
        """A reduction or scan one element after another; what it reads is computed on the way, once."""
        xs = r.args[-1]
        if r.kind == "reduce" and xs.kind == "map" and xs["level"] is None and not is_lazy(xs.args[0]):
            several = uses(r.args[0].args[0].args[0]) > 1 and is_scalar(element_of(xs))
            return Choice(path, reduce_fuse_named if several else reduce_map_fusion)
        n = length_of(xs)
        straight = n <= LONGEST_UNROLLED and n * body_work(r) <= self.unrolled_work
        level = UNROLL if is_constant(xs) and (straight or n <= 2) else SEQ
        if r.kind == "scan":
            return Choice(path, scan_level(level, PRIVATE if is_scalar(element_of(r)) else OUT))
        memory = PRIVATE if is_scalar(r.type) else self.memory_for(r.type, (*nest, level))
        chosen: Strategy = reduce_level(level, memory)
        if isinstance(r.type, Array) and not accumulates_in_place(r):
            chosen = chosen >> double_buffer(memory, (SEQ,) * len(shape_of(r.type)[0]))
        if isinstance(r.type, Tuple) and not is_scalar(r.type):
            chosen = chosen >> double_buffer_components(memory)
        return Choice(path, chosen)

    def memory(self, need: Need, program: Term) -> Choice:
        """For a computed array that is read and has no memory. (It stands in front of loops that do not change it.)"""
        front = front_of(program, need.path)
        if is_repeated(program, need.path, front) and work(need.term) >= HOISTED_WORK:
            return Choice(front, hoist_array(need.path[len(front) :]))
        return Choice(need.path, to_memory(self.memory_for(need.term.type, need.nest)))

    def binding(self, need: Need, program: Term) -> Choice:
        """For what is bound by let and neither a view nor in a memory. (Kernels share nothing but the heap.)"""
        value, function = need.term.args
        if is_scalar(value.type):
            inline = not has_loops(value) and work(value) <= CHEAP_WORK
        else:
            inline = uses(function.args[0]) <= 1 or is_named_view(value)
        if inline:
            return Choice(need.path, let_inline)
        memory = self.memory_for(value.type, need.nest)
        if value.kind == "map" and value["level"] is None and is_lazy(value) and not self.fits(value.type, memory):
            return Choice((*need.path, 0), map_level(INLINE))
        return Choice(need.path, bind_memory(memory))

    def fits(self, type_: Type, memory: Memory) -> bool:
        """Is there room for a value of the type? (Where there is not, its readers compute it again.)"""
        del type_, memory
        return True

    def sharing(self, need: Need, program: Term) -> Choice:
        """For a function that uses a computed element several times."""
        last = len(need.term.args) - 1
        return Choice((*need.path, last), to_memory(self.memory_for(need.term.args[last].type, need.nest)))

    def components(self, need: Need, program: Term) -> Choice:
        """For a tuple of arrays that is a result as it stands: each component by itself."""
        return Choice(need.path, by_components)

    def result(self, need: Need, program: Term) -> Choice:
        """For memory of the whole device where the result is written anyway: the slides' toGlobal at the result."""
        return Choice(need.path, drop_store)

    def iteration(self, need: Need, program: Term) -> Choice:
        """For an iteration that is not expanded."""
        (count,) = need.term.attrs
        if count.lo > _MOST_ITERATIONS:
            raise RewriteFailed(
                f"an iteration of {count} steps would be written out, step by step; {_MOST_ITERATIONS} are the most",
                hint="iterate fewer times in the program, and call it several times",
            )
        return Choice(need.path, iterate_unroll())


class DeviceStrategist(Strategist):
    """Answers for a device: `model` describes it, `loops` how the program's loops walk through memory."""

    def __init__(self, model: DeviceModel, loops: Loops) -> None:
        self.model, self.loops = model, loops

    def fits(self, type_: Type, memory: Memory) -> bool:
        """At most half of the local memory, if that is where the value goes."""
        return fits_locally(self.model, type_, memory)

    def start(self, need: Need) -> Choice | None:
        """The initial value of a reduction or scan outside of all groups, computed before; None if without loops."""
        r = need.term
        if need.nest or not is_scalar(r.args[1].type) or not has_loops(r.args[1]):
            return None
        return Choice(need.path, name_initial if r.kind == "reduce" else name_initial_scan)
