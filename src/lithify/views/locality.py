"""What a warp's access costs: how many cache lines it touches, and how its lanes collide in banks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lithify.arith import Expr
from lithify.views.errors import ViewError
from lithify.views.view import Access


@dataclass(frozen=True, slots=True)
class Locality:
    """The figures of one access by all lanes together.

    `lines`: distinct cache lines; `passes`: how often the banks are used in turn (an access without conflicts needs
    `ideal_passes`); `lanes`: lanes whose element is real.
    """

    lines: int
    passes: int
    ideal_passes: int
    lanes: int

    @property
    def conflict_degree(self) -> float:
        """How many times slower than without bank conflicts: 1.0 is free of them."""
        return self.passes / self.ideal_passes if self.ideal_passes else 1.0


def locality(
    access: Access,
    lane: Expr,
    width: int,
    strides: Sequence[Expr | int],
    element_bytes: int,
    *,
    at: Mapping[Expr, int] | None = None,
    vector: int = 1,
    line_bytes: int = 128,
    banks: int = 32,
    bank_bytes: int = 4,
) -> Locality:
    """The cost of an access in which lane 0 .. width - 1 each touch `vector` consecutive elements.

    `access` is a view's access at coordinates that depend on `lane`; `at` gives its other variables (0 where missing).
    Banks serve as many lanes in one pass as fit in banks times bank_bytes; lanes that read one word share it.
    """
    address = access.address(strides)
    known = {v.expr: 0 for e in (address, *access.conditions) for v in e.variables()}
    values: dict[Expr, object] = {**known, **(at or {}), lane: np.arange(width)}
    first = np.broadcast_to(address.evaluate(values), width) * element_bytes  # type: ignore[arg-type]
    real = np.ones(width, bool)
    for condition in access.conditions:
        real &= np.broadcast_to(condition.evaluate(values), width) >= 0  # type: ignore[arg-type]
    size = vector * element_bytes
    if size > banks * bank_bytes:
        raise ViewError(f"one lane's access of {size} bytes is wider than all {banks} banks of {bank_bytes} bytes")
    touched = [range(int(a) // line_bytes, (int(a) + size - 1) // line_bytes + 1) for a in first[real]]
    per_pass = max(1, banks * bank_bytes // max(size, bank_bytes))
    passes = ideal = 0
    for start in range(0, width, per_pass):
        group = slice(start, start + per_pass)
        words = {
            word
            for a in first[group][real[group]]
            for word in range(int(a) // bank_bytes, (int(a) + size - 1) // bank_bytes + 1)
        }
        if words:
            passes += int(np.bincount([word % banks for word in words]).max())
            ideal += 1
    return Locality(len({line for lines in touched for line in lines}), passes, ideal, int(real.sum()))
