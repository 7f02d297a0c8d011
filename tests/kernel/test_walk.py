"""What blocks read and write."""

from __future__ import annotations

from lithify.arith import const, loaded, var
from lithify.kernel import ir
from lithify.kernel.walk import read_in, written_in
from lithify.lang.levels import PRIVATE
from lithify.lang.operators import OPERATORS
from lithify.lang.scalars import i32
from lithify.machine import ROWS
from tests.kernel.hand_written import buffer, given, lanes, load, loop, number, result, store

X, ENDS, CHOICE, WHERE, OTHER = (given(name, 8, scalar=i32) for name in ("x", "ends", "choice", "where", "other"))
OUT, OWN, COUNT = result(8, scalar=i32), buffer("own", 8, memory=PRIVATE, scalar=i32), buffer("count", 8, scalar=i32)


def test_what_blocks_read_and_write_at_any_depth() -> None:
    """Values, and what indices, conditions and lengths of loops are taken from."""
    element, rows = loaded(WHERE, (var("w", 8),), 0, 7), loop("r", 8, lambda r: (store(OWN, r, number(1, i32)),))
    ragged = ir.Loop(rows.variable, loaded(ENDS, (var("e", 8),), 0, 8), rows.level, rows.body)
    update = ir.AtomicUpdate(OPERATORS["add"], COUNT, (element,), load(OWN, 0))
    chosen = ir.If((loaded(CHOICE, (var("c", 8),), 0, 7) - 1,), (update,), (store(OUT, 0, load(OTHER, 0)),))
    block: ir.Block = (lanes("l", 8, lambda i: (store(OUT, i, load(X, i)),)), ragged, chosen)
    assert written_in(block) == {OUT, OWN, COUNT}
    assert read_in(block) == {X, WHERE, ENDS, CHOICE, OWN, OTHER}
    assert written_in(()) == read_in(()) == frozenset()


def test_an_instruction_reads_and_writes_what_its_meaning_does() -> None:
    at, pitch = load(OUT, 0), const(8)
    row = next(iter(ROWS.values()))
    statement = ir.Instruction(row, at, (at, at, at), (pitch, pitch, pitch, pitch), (store(OUT, 0, load(X, 0)),))
    assert (read_in((statement,)), written_in((statement,))) == ({X}, {OUT})
