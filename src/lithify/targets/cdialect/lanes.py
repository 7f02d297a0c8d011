"""From lanes around whole blocks to lanes around single stores, of widths that the language has.

The body of `Lanes` means: each statement for all lanes, then the next. So lanes move inwards past loops and conditions
that do not depend on the lane; conditions that do become guards of the stores. What is left is one vector statement
a store. Where a language has no vectors of the width the lanes are cut; where it cannot compute the statement on
vectors they become one statement a lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lithify.arith import Variable, as_variable, const, var
from lithify.kernel.ir import (
    Async,
    AtomicUpdate,
    Block,
    Buffer,
    Guard,
    If,
    Instruction,
    Lanes,
    LastGroup,
    Load,
    Loop,
    Statement,
    Store,
)
from lithify.kernel.walk import Substitution
from lithify.lang.errors import Rejected
from lithify.lang.levels import PRIVATE
from lithify.targets.cdialect.walk import subvalues

Leaf = Store | AtomicUpdate
WidthOf = Callable[[Leaf, int], int]


class LaneSplitter:
    """Rewrites a block; `width_of(statement, lanes)` gives the width in which a statement is written.

    `scratch` collects the buffers that were added: the lanes of one statement all read before any writes, so a
    statement that is cut and reads what it writes goes through a buffer.
    """

    def __init__(self, width_of: WidthOf) -> None:
        self.scratch: list[Buffer] = []
        self._width_of = width_of

    def block(self, block: Block) -> Block:
        """The block with all its lanes moved to the stores."""
        result: list[Statement] = []
        for statement in block:
            if isinstance(statement, Lanes):
                result.extend(self._inwards(statement.body, statement.variable, statement.width, ()))
            elif isinstance(statement, If):
                body, otherwise = self.block(statement.body), self.block(statement.otherwise)
                result.append(replace(statement, body=body, otherwise=otherwise))
            elif isinstance(statement, Instruction):  # what it means: vectors or loops over lanes
                result.extend(self.block(statement.body))
            elif isinstance(statement, Loop | Async | LastGroup):
                result.append(replace(statement, body=self.block(statement.body)))
            else:
                result.append(statement)
        return tuple(result)

    def _inwards(self, block: Block, lane: Variable, width: int, guard: Guard) -> Block:
        result: list[Statement] = []
        for statement in block:
            match statement:
                case Store() | AtomicUpdate():
                    guarded = replace(statement, guard=guard + statement.guard)
                    result.extend(self._leaf(guarded, lane, width))
                case Loop():
                    if lane in statement.extent.variables():
                        raise Rejected(
                            f"the loop {statement.name or ''} inside lanes runs to {statement.extent}, "
                            "which differs from lane to lane",
                            hint="use a sequential map there",
                        )
                    result.append(replace(statement, body=self._inwards(statement.body, lane, width, guard)))
                case If():
                    result.extend(self._condition(statement, lane, width, guard))
                case Lanes():
                    raise Rejected("lanes inside lanes: only one map of a nest can be map[vec]")
                case Async():
                    result.append(Async(self._inwards(statement.body, lane, width, guard)))
                case _:
                    result.append(statement)
        return tuple(result)

    def _condition(self, statement: If, lane: Variable, width: int, guard: Guard) -> Block:
        if not any(lane in e.variables() for e in statement.guard):
            body = self._inwards(statement.body, lane, width, guard)
            return (If(statement.guard, body, self._inwards(statement.otherwise, lane, width, guard)),)
        result = list(self._inwards(statement.body, lane, width, guard + statement.guard))
        if statement.otherwise:  # not (a and b and ..): not a, or a and not b, or ..
            for i, e in enumerate(statement.guard):
                failing = (*guard, *statement.guard[:i], -e - 1)
                result.extend(self._inwards(statement.otherwise, lane, width, failing))
        return tuple(result)

    def _leaf(self, statement: Leaf, lane: Variable, width: int) -> Block:
        part = self._width_of(statement, width)
        if isinstance(statement, Store) and part < width and self._reads_other_lanes(statement):
            buffer = Buffer(
                f"{statement.buffer.name}_next",
                statement.buffer.scalar,
                (const(width),),
                PRIVATE,
                "scratch",
                statement.buffer.scalar.bytes,
            )
            self.scratch.append(buffer)
            first = Store(buffer, (lane.expr,), statement.value, statement.guard)
            second = replace(statement, value=Load(buffer, (lane.expr,)))
            return self._leaf(first, lane, width) + self._leaf(second, lane, width)
        if part == width:
            return (Lanes(lane, width, (statement,)),)
        pieces: list[Statement] = []
        for start in range(0, width, part):
            fresh = var(lane.name, part)  # 0 where a part is one lane
            piece = Substitution({lane: fresh + start}).statement(statement)
            pieces.extend((Lanes(as_variable(fresh), part, piece),) if part > 1 and piece else piece)
        return tuple(pieces)

    @staticmethod
    def _reads_other_lanes(statement: Store) -> bool:
        return any(
            isinstance(v, Load) and v.buffer is statement.buffer and v.index != statement.index
            for v in subvalues(statement.value)
        )
