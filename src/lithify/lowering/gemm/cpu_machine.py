"""What the parameters of matrix multiplication on CPUs depend on of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.lang.scalars import SCALARS
from lithify.lowering.tuning import Problem
from lithify.machine import DeviceModel


@dataclass(frozen=True)
class Machine:
    """A CPU as a product of some type meets it.

    `lanes` and `vector_bytes` of a vector, vector `registers`, `threads`; bytes of the `first` and the `second` cache
    that a thread has for itself, and of the `last` one its share. `own_bytes` is what a thread may keep for itself
    (behind OpenCL the local memory); None for no limit.

    A complex number is two numbers, in two registers.
    """

    lanes: int
    vector_bytes: int
    registers: int
    threads: int
    first: int
    second: int
    last: float
    own_bytes: int | None

    @staticmethod
    def of(problem: Problem, model: DeviceModel) -> Machine:
        """The machine for the type of a problem's sums."""
        sum_ = problem.scalars["acc"]
        caches = {c.level: c.bytes // c.shared_by for c in model.caches}
        first = caches.get(1, 32 << 10)
        second = caches.get(2, 8 * first)
        return Machine(
            lanes=lanes_of_sums(sum_, model),
            vector_bytes=model.vector_bytes,
            registers=model.registers.per_item // _numbers(sum_),
            threads=model.cores,
            first=first,
            second=second,
            last=max([second, *(c.bytes / min(c.shared_by, model.cores) for c in model.caches)]),
            own_bytes=None if model.has_memory("thread") else model.memory("local").bytes,
        )

    @property
    def room(self) -> int:
        """Bytes for what a thread reads again and again: its second cache, or all that it may keep for itself."""
        return self.second if self.own_bytes is None else self.own_bytes


def lanes_of_sums(scalar: str, model: DeviceModel) -> int:
    """How many sums of a type a vector register holds; of complex ones, a register of each of both numbers."""
    return model.vector_width(SCALARS[scalar].bits // _numbers(scalar))


def _numbers(scalar: str) -> int:
    return 2 if SCALARS[scalar].is_complex else 1
