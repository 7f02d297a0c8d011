"""Tile registers of a CPU's matrix unit: which tiles they hold, and when these go to memory.

There are eight, numbered by whoever prints instructions; LLVM does not allocate them. In a loop of nothing but tile
instructions, the tiles that these add to stay in registers from before the loop until after it. What is multiplied is
loaded when it is first needed, and stays until its register is wanted for something else.

(Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lithify.arith import Expr
from lithify.kernel import ir
from lithify.machine import InstructionRow, host, rows_for
from lithify.machine.instructions import TILE
from lithify.targets.cpu.expressions import Emitter

REGISTERS = 8
# At least this many are left for what is multiplied.
_FOR_FACTORS = 2
_ROWS, _LINE = 16, 64
_SHAPES = "@tile_shapes"


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile in memory: the place of its first element, and elements from one of its lines to the next."""

    place: ir.Load
    pitch: Expr


def is_tile_instruction(statement: ir.Statement) -> bool:
    """Is it an instruction of this machine whose operands are in tile registers?"""
    if not isinstance(statement, ir.Instruction) or statement.row not in rows_for(host()):
        return False
    operation = statement.row.operation_on("cpu")
    return operation is not None and all(type_ == TILE for _, type_ in operation.operands)


def result_of(statement: ir.Instruction) -> Tile:
    """The tile that an instruction writes."""
    return Tile(statement.result, statement.pitches[0])


def operand_of(statement: ir.Instruction, name: str) -> Tile:
    """The tile that is operand a, b or c."""
    number = "abc".index(name)
    return Tile(statement.operands[number], statement.pitches[number + 1])


def accumulated(loop: ir.Loop) -> tuple[Tile, ...]:
    """The tiles that a loop of tile instructions adds to, if they can stay in registers all the while.

    They are the same in each iteration, do not overlap, and nothing else reads or writes their arrays.
    """
    found: dict[Tile, InstructionRow] = {}
    factors = set()
    for statement in loop.body:
        if not isinstance(statement, ir.Instruction) or not is_tile_instruction(statement):
            return ()
        result = result_of(statement)
        if result != operand_of(statement, "c"):
            return ()
        if any(loop.variable in form.variables() for form in (*result.place.index, result.pitch)):
            return ()
        found[result] = statement.row
        factors |= {operand_of(statement, name).place.buffer for name in "ab"}
    tiles = list(found)
    if len(tiles) > REGISTERS - _FOR_FACTORS or factors & {tile.place.buffer for tile in tiles}:
        return ()
    for number, tile in enumerate(tiles):
        if any(_may_overlap(tile, other, found[tile]) for other in tiles[:number]):
            return ()
    return tuple(tiles)


def _may_overlap(a: Tile, b: Tile, row: InstructionRow) -> bool:
    if a.place.buffer is not b.place.buffer:
        return False
    apart = (a.place.buffer.position(a.place.index) - b.place.buffer.position(b.place.index)).constant
    pitch, columns = a.pitch.constant, row.in_line[2]
    if apart is None or pitch is None or a.pitch != b.pitch:
        return True
    return any(abs(apart - lines * pitch) < columns for lines in range(1 - _ROWS, _ROWS))


class TileRegisters:
    """Tile registers from their set-up to their release: for one instruction, or a loop that adds to tiles (`kept`).

    Nothing else is printed meanwhile, so that what is multiplied stays as it was loaded.
    """

    def __init__(self, emitter: Emitter, kept: Iterable[Tile] = ()) -> None:
        self.emitter = emitter
        self.kept = {tile: register for register, tile in enumerate(kept)}
        self.factors: dict[Tile, int] = {}  # the one whose register is wanted next, first
        shapes = bytearray(_LINE)  # palette 1, then for each register its bytes a line and its lines
        shapes[0] = 1
        for register in range(REGISTERS):
            shapes[16 + 2 * register], shapes[48 + register] = _LINE, _ROWS
        numbers = ", ".join(f"i8 {byte}" for byte in shapes)
        emitter.declare(f"{_SHAPES} = private unnamed_addr constant [{_LINE} x i8] [{numbers}], align {_LINE}")
        self._call("ldtilecfg", f"ptr {_SHAPES}")
        for tile, register in self.kept.items():
            self._move("tileloadd64", register, tile)

    def multiply_add(self, statement: ir.Instruction) -> None:
        """One instruction."""
        operation = statement.row.operation_on("cpu")
        assert operation is not None
        result = result_of(statement)
        registers = {name: self._register(operand_of(statement, name)) for name, _ in operation.operands}
        text = ", ".join(f"i8 {registers[name]}" for name, _ in operation.operands)
        self._call(operation.name.removeprefix("llvm.x86."), text)
        if result not in self.kept:
            self._move("tilestored64", registers["c"], result)

    def release(self) -> None:
        """Store the tiles that were kept, and give the registers back."""
        for tile, register in self.kept.items():
            self._move("tilestored64", register, tile)
        self._call("tilerelease", "")

    def _register(self, tile: Tile) -> int:
        """The register that holds a tile; loaded if none does."""
        if tile in self.kept:
            return self.kept[tile]
        register = self.factors.pop(tile, None)
        if register is None:
            free = set(range(len(self.kept), REGISTERS)) - set(self.factors.values())
            register = min(free) if free else self.factors.pop(next(iter(self.factors)))
            self._move("tileloadd64", register, tile)
        self.factors[tile] = register
        return register

    def _move(self, operation: str, register: int, tile: Tile) -> None:
        emitter, place = self.emitter, tile.place
        access = emitter.access(place.buffer, place.index)
        address = emitter.address(access, access.index)
        pitch = emitter.index(tile.pitch * place.buffer.scalar.bytes)
        self._call(operation, f"i8 {register}, {address.typed}, {pitch.typed}")

    def _call(self, operation: str, arguments: str) -> None:
        types = ", ".join(argument.split()[0] for argument in arguments.split(", ") if argument)
        self.emitter.declare(f"declare void @llvm.x86.{operation}({types})")
        self.emitter.line(f"call void @llvm.x86.{operation}({arguments})")
