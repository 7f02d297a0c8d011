"""`instr[row]`: one instruction of the machine, its operands checked against the layouts that the row has for them.

The row's meaning is translated as well, as the statement's body: targets without the instruction run it, and it says
to every pass what is read and written. An operand is taken where its elements lie in memory exactly as the row holds
them in registers: by identity of index normal forms; anything else is refused with both formulas. Where the row's
registers come in lines, these may lie at any equal distance from one another.
"""

from __future__ import annotations

from lithify.arith import Expr, const, var
from lithify.kernel import ir
from lithify.kernel.builder import Translator, reads, writes
from lithify.kernel.places import Acceptor, ArrayValue, Environment, Readable
from lithify.lang.levels import LevelKind
from lithify.lang.term import Term
from lithify.lang.types import Array
from lithify.machine import InstructionRow, rows_for

_NAMES = ("a", "b", "c")


@reads("instr")
def _read(tr: Translator, t: Term, env: Environment) -> Readable:
    raise tr.rejected(t, "an instruction writes its result, and here nobody says where",
                      "put to[private] (or another memory) around it")  # fmt: skip


@writes("instr")
def _write(tr: Translator, t: Term, acceptor: Acceptor, env: Environment) -> None:
    row = t["row"]
    assert isinstance(row, InstructionRow)
    _check_device(tr, t, row)
    values = [tr.evaluated(a, env) for a in t.args]
    operands = [_place(tr, t, f"operand {_NAMES[k]}", k, value) for k, value in enumerate(values)]
    (a, p), (b, q), (c, r) = operands
    result, pitch = _place(tr, t, "the result", 2, acceptor.read())
    body, inner = row.definition, env
    for value in values:
        body, inner = body.args[0], (value, *inner)
    with tr.collected() as block:
        tr.write(body, acceptor, inner)
    tr.emit(ir.Instruction(row, result, (a, b, c), (pitch, p, q, r), tuple(block)))


def _check_device(tr: Translator, t: Term, row: InstructionRow) -> None:
    if tr.device is not None and row not in rows_for(tr.device):
        known = ", ".join(each.name for each in rows_for(tr.device))
        raise tr.rejected(t, f"{tr.device} has no instruction {row.name}; it has {known}",
                          "use scalar or vector arithmetic: map[vec], map[unroll]")  # fmt: skip
    if row.lanes > 1:
        raise tr.rejected(t, f"{row.name} is executed by {row.lanes} work-items together, which hold its operands")
    if any(level.kind is LevelKind.VECTOR for level in tr.scope.entered):
        raise tr.rejected(t, "an instruction stands below map[vec]: it fills the lanes itself")


def _place(tr: Translator, t: Term, what: str, number: int, value: Readable) -> tuple[ir.Load, Expr]:
    """The first element of a matrix that lies in memory as operand `number` lies in registers, and its lines' pitch."""
    row = t["row"]
    rows, columns = (var(name, size) for name, size in zip("ij", _sizes(t.args[number].type), strict=True))
    element = _element(value, rows, columns)
    hint = "copy it to memory in the layout that the instruction takes"
    if not isinstance(element, ir.Load):
        raise tr.rejected(t, f"{what} of {row.name} is computed, not in memory", hint)
    if element.guard:
        raise tr.rejected(t, f"{what} of {row.name} may lie outside of its array; an instruction takes all elements",
                          "copy it to memory with its padding")  # fmt: skip
    first = _element(value, const(0), const(0))
    assert isinstance(first, ir.Load)
    origin = first.position
    position = element.position - origin
    register = _register(tr, row, number, rows, columns)
    if position is register:
        return first, const(row.in_line[number])
    if row.line:
        line = register // row.in_line[number]
        begins = _begin_of_second_line(tr, row, number)
        second = _element(value, *begins)
        assert isinstance(second, ir.Load)
        pitch = second.position - origin
        if position is line * pitch + (register - line * row.in_line[number]):
            return first, pitch
    raise tr.rejected(
        t,
        f"{what} of {row.name} does not lie in memory as in its registers: element ({rows}, {columns}) is "
        f"{position} elements after the first in {element.buffer}, in the registers it is {register}",
        hint,
    )


def _sizes(type_: object) -> tuple[Expr, Expr]:
    assert isinstance(type_, Array) and isinstance(type_.element, Array)
    return type_.size, type_.element.size


def _element(value: Readable, row: Expr, column: Expr) -> Readable:
    for index in (row, column):
        assert isinstance(value, ArrayValue)
        value = value.at(index)
    return value


def _register(tr: Translator, row: InstructionRow, number: int, i: Expr, j: Expr) -> Expr:
    """The number of the register that holds element (i, j), from the row's layout for the operand."""
    layout = row.layouts[number]
    held = layout.attrs[0]
    assert isinstance(held, Array) and isinstance(held.element, Array)
    lane = ArrayValue(held.element, lambda register: register)
    view = tr.evaluated(layout.args[0], (ArrayValue(held, lambda _: lane),))
    register = _element(view, i, j)
    assert isinstance(register, Expr)
    return register


def _begin_of_second_line(tr: Translator, row: InstructionRow, number: int) -> tuple[Expr, Expr]:
    """Row and column of the element that the second line of registers begins with."""
    m, n, k = row.shape
    rows, columns = ((m, k), (k, n), (m, n))[number]
    places = ((const(i), const(j)) for j in range(columns) for i in range(rows))  # it is near the first one's column
    return next(p for p in places if _register(tr, row, number, *p).constant == row.in_line[number])
