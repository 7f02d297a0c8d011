"""What an error says: the statement and the coordinates of the executor that ran it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lithify.kernel import ir
from lithify.kernel.evaluator.active import Active
from lithify.kernel.show import block_lines
from lithify.lang.errors import EvaluationError


def first_line(statement: ir.Statement) -> str:
    """The statement as text, without the blocks inside it."""
    return next(iter(block_lines((statement,)))).strip()


def coordinates(active: Active, position: int) -> str:
    """The values of all index variables of one executor: `group0 = 1, item0 = 3, k = 2`."""
    named = {v.name: x if isinstance(x, int) else int(x[position]) for v, x in active.values.items()}
    return ", ".join(f"{name} = {value}" for name, value in named.items()) or "the start"


def failure(
    message: str, kernel: str, statement: ir.Statement, active: Active, position: int, hint: str | None = None
) -> EvaluationError:
    """An error of one executor at a statement."""
    where = f"in {kernel}: {first_line(statement)}\n  at {coordinates(active, position)}"
    return EvaluationError(message, where=where, hint=hint)


def first(mask: NDArray[np.bool_]) -> int:
    """The position of the first True."""
    return int(np.argmax(mask))
