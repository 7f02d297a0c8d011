"""What strategies ask of a loop: is it flat, does its operator have an algebra, how wide are its scalars."""

from __future__ import annotations

from lithify.lang.algebra import algebra_of
from lithify.lang.build import param, tuple_
from lithify.lang.levels import Memory
from lithify.lang.reading import has_work
from lithify.lang.scalars import Scalar
from lithify.lang.term import Term, apply, subterms
from lithify.lang.types import Array, Index, Tuple, Type
from lithify.lowering.needs import has_loops, is_lazy, is_scalar
from lithify.lowering.work import body_of, count, elements, is_bounded, length_of, work
from lithify.machine import DeviceModel

# Reductions of so many elements may be straight code.
LONGEST_UNROLLED = 32
# Operations of a reduction's step that take no longer than its last one takes to be ready.
CHEAP_WORK = 6


def computes_rows(m: Term) -> bool:
    """More than a view and scalar operators: the map has loops of its own, or rows that it computes."""
    return not is_lazy(m.args[0]) or (not is_scalar(element_of(m)) and has_work(m.args[0]))


def lanes_of(model: DeviceModel, t: Term, *, access: bool = False) -> int:
    """The vector width for the scalars that a loop works on: of the registers, or of the widest access of one item."""
    bits = max(element_bits(t), default=32)
    return max(1, model.access_bytes * 8 // bits) if access else model.vector_width(bits)


def is_flat(m: Term) -> bool:
    """A map whose elements are scalars: no loop inside writes."""
    return is_scalar(element_of(m))


def is_elementwise(m: Term) -> bool:
    """A flat map whose iterations are too short to be shared out one by one."""
    return is_flat(m) and not has_loops(m.args[0])


def has_lanes(r: Term) -> bool:
    """May a reduction be split into sums side by side: is it associative and commutative, with a neutral element?"""
    algebra = algebra_of(r.args[0])
    return algebra.associative and algebra.commutative and algebra.neutral is not None


def has_start(r: Term) -> bool:
    """May a part of a reduction or scan begin afresh: is the operator associative, with a neutral element?"""
    algebra = algebra_of(r.args[0])
    return algebra.associative and algebra.neutral is not None


def accumulates_in_place(r: Term) -> bool:
    """Is each new element of an accumulator that is an array made of the old element at its place alone?

    So it is where the step is `map f acc` or `map f (zip acc ..)`, in every dimension, and nothing else in it reads the
    accumulator.
    """
    accumulator = param("_accumulator", r.type)
    element = param("_element", element_of(r.args[2]))
    return _in_place(apply(r.args[0], accumulator, element), accumulator)


def _in_place(body: Term, accumulator: Term) -> bool:
    name = accumulator["name"]
    if body is accumulator or name not in body.parameters or is_scalar(accumulator.type):
        return True
    if body.kind != "map" or name in body.args[0].parameters:
        return False
    xs = body.args[1]
    sources = xs.args if xs.kind == "zip" else (xs,)
    if any(name in source.parameters and source is not accumulator for source in sources):
        return False
    elements = [
        param(name if source is accumulator else f"_{i}", element_of(source)) for i, source in enumerate(sources)
    ]
    inner = apply(body.args[0], tuple_(*elements) if xs.kind == "zip" else elements[0])
    return all(_in_place(inner, e) for e, source in zip(elements, sources, strict=True) if source is accumulator)


def is_long_sum(t: Term) -> bool:
    """A reduction that runs as a loop whose iterations are so short that they wait for one another."""
    if t.kind != "reduce" or not is_scalar(t.type):
        return False
    return length_of(t.args[2]) > LONGEST_UNROLLED and work(t) <= CHEAP_WORK * length_of(t.args[2])


def element_of(t: Term) -> Type:
    """The type of the elements of an array term."""
    assert isinstance(t.type, Array)
    return t.type.element


def body_work(t: Term) -> int:
    """Operations of one iteration of a loop."""
    return max(1, work(body_of(t.args[0])))


def element_bits(t: Term) -> set[int]:
    """The widths of the scalars that a loop's results and the arrays that it reads are made of."""
    found = scalar_bits(t.type)
    for u in subterms(t):
        if u.kind in ("param", "bound"):
            found |= scalar_bits(u.type)
    return found - {8} or {32}


def scalar_bits(type_: Type) -> set[int]:
    """The widths of the scalars that a type is made of."""
    if isinstance(type_, Array):
        return scalar_bits(type_.element)
    if isinstance(type_, Tuple):
        return set().union(*map(scalar_bits, type_.items))
    if isinstance(type_, Scalar):
        return {type_.bits}
    return {32} if isinstance(type_, Index) else set()


def bytes_of(type_: Type) -> int:
    """About how many bytes a value of the type takes: sizes that are not known count as `count` says."""
    if isinstance(type_, Array):
        return count(type_.size) * bytes_of(type_.element)
    if isinstance(type_, Tuple):
        return sum(map(bytes_of, type_.items))
    return type_.bytes if isinstance(type_, Scalar) else 4


def core_cache(model: DeviceModel) -> int:
    """Bytes of the second cache, which each core of a CPU has to itself."""
    return next((c.bytes for c in model.caches if c.level == 2), 1 << 18)


def own_caches(model: DeviceModel) -> int:
    """Bytes of the second caches of all cores of a CPU together."""
    return model.cores * core_cache(model)


def last_cache(model: DeviceModel) -> int:
    """Bytes of the largest cache; 0 where none is known."""
    return max((c.bytes for c in model.caches), default=0)


def fits_locally(model: DeviceModel, type_: Type, memory: Memory) -> bool:
    """Does a value of the type take at most half of the local memory, if that is where it goes?"""
    room = model.memory("local").bytes if memory.name == "local" else None
    if room is None:
        return True
    return is_bounded(type_) and 2 * elements(type_) * max(scalar_bits(type_), default=32) // 8 <= room
