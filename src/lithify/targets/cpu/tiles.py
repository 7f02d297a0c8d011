"""Tile registers of a CPU's matrix unit: which tiles they hold, and when these go to memory.

There are eight, numbered by whoever prints instructions; LLVM does not allocate them. Around tile instructions one
after another, and around a loop of nothing else, the tiles that these add to stay in registers: where memory was just
filled with zeros for them, it is the registers that are set to zero. What is multiplied is loaded when it is first
needed, and stays until its register is wanted for something else. A function that has tile instructions sets the
registers' shapes once (that takes as long as many instructions), and gives them back when it ends.

(Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, takewhile

from lithify.arith import Expr, Variable
from lithify.kernel import ir
from lithify.machine import InstructionRow, host, rows_for
from lithify.machine.instructions import TILE
from lithify.targets.cpu import policy
from lithify.targets.cpu.values import ValueEmitter

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

    @property
    def start(self) -> Expr:
        """The number of its first element in its array."""
        return self.place.position


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


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Statements of a block, from a position on, that add to tiles: so many, and the tiles.

    `zeros`: how many statements just before fill these tiles with zeros, and do nothing else.
    """

    statements: int
    tiles: tuple[Tile, ...]
    zeros: int


def accumulations(block: ir.Block) -> dict[int, Accumulation]:
    """By position: loops of tile instructions, and tile instructions one after another, that keep what they add to."""
    found: dict[int, Accumulation] = {}
    position = 0
    while position < len(block):
        statement, count = block[position], 1
        if isinstance(statement, ir.Loop):
            tiles = accumulated(statement.body, statement.variable)
        else:
            count = max(1, sum(1 for _ in takewhile(is_tile_instruction, islice(block, position, None))))
            tiles = accumulated(block[position : position + count], None)
        if tiles:
            found[position] = Accumulation(count, tiles, zeros_before(block, position, tiles))
        position += count
    return found


def accumulated(block: ir.Block, variable: Variable | None) -> tuple[Tile, ...]:
    """The tiles that a block (of a loop with that variable) adds to, if they can stay in registers all the while.

    They are the same in each iteration, do not overlap, and nothing else reads or writes their arrays.
    """
    found: dict[Tile, InstructionRow] = {}
    factors = set()
    for statement in block:
        if not isinstance(statement, ir.Instruction) or not is_tile_instruction(statement):
            return ()
        result = result_of(statement)
        if result != operand_of(statement, "c"):
            return ()
        if variable is not None and any(variable in f.variables() for f in (*result.place.index, result.pitch)):
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
    apart, pitch, columns = (a.start - b.start).constant, a.pitch.constant, row.in_line[2]
    if apart is None or pitch is None or a.pitch != b.pitch:
        return True
    return any(abs(apart - lines * pitch) < columns for lines in range(1 - _ROWS, _ROWS))


def zeros_before(block: ir.Block, position: int, tiles: tuple[Tile, ...]) -> int:
    """How many statements just before a position fill these tiles with zeros, and write nothing else; 0 where none do.

    Whoever keeps the tiles in registers and stores them later may leave these statements out.
    """
    buffer, origin = tiles[0].place.buffer, tiles[0].start
    if any(tile.place.buffer is not buffer for tile in tiles):
        return 0
    wanted: set[int] = set()
    for tile in tiles:
        start, pitch = (tile.start - origin).constant, tile.pitch.constant
        if start is None or pitch is None:
            return 0
        columns = _LINE // buffer.scalar.bytes
        wanted |= {start + row * pitch + column for row in range(_ROWS) for column in range(columns)}
    count = 0
    while wanted and count < position:
        zeros = _zeros(block[position - count - 1], buffer, origin)
        if not zeros or not zeros <= wanted:
            return 0
        wanted -= zeros
        count += 1
    return 0 if wanted else count


def _zeros(statement: ir.Statement, buffer: ir.Buffer, origin: Expr) -> set[int]:
    """The elements of a buffer, counted from `origin`, that a statement sets to zero; none where it does other things.

    The statement is a store, alone or in lanes.
    """
    store, variable, lanes = statement, None, 1
    if isinstance(statement, ir.Lanes) and len(statement.body) == 1:
        store, variable, lanes = statement.body[0], statement.variable, statement.width
    if not isinstance(store, ir.Store) or store.buffer is not buffer or store.guard or not _is_zero(store.value):
        return set()
    first = store.position - origin
    step = first.coefficient(variable) if variable is not None else 0
    if variable is not None and step is not None:
        first = first - step * variable.expr
    if step is None or first.constant is None:
        return set()
    return {first.constant + step * lane for lane in range(lanes)}


def _is_zero(value: ir.Value) -> bool:
    return isinstance(value, ir.Constant) and value.value == 0 and not str(value.value).startswith("-")


def set_up(emitter: ValueEmitter) -> None:
    """Print, at the beginning of a function, the shapes of all registers; `release` belongs to its end."""
    shapes = bytearray(_LINE)  # palette 1, then for each register its bytes a line and its lines
    shapes[0] = 1
    for register in range(REGISTERS):
        shapes[16 + 2 * register], shapes[48 + register] = _LINE, _ROWS
    numbers = ", ".join(f"i8 {byte}" for byte in shapes)
    emitter.declare(f"{_SHAPES} = private unnamed_addr constant [{_LINE} x i8] [{numbers}], align {_LINE}")
    _call(emitter, "ldtilecfg", f"ptr {_SHAPES}")


def release(emitter: ValueEmitter) -> None:
    """Print, at the end of a function, that the registers are not used any more."""
    _call(emitter, "tilerelease", "")


class TileRegisters:
    """What tile registers hold during one instruction, or a loop that adds to tiles (`kept`).

    `zero`: what the kept tiles hold at first is zero, and not read from memory. Nothing else is printed meanwhile that
    does something (see `policy.BETWEEN_TILES`), so that what is multiplied stays as it was loaded.
    """

    def __init__(self, emitter: ValueEmitter, kept: Iterable[Tile] = (), *, zero: bool = False) -> None:
        self.emitter = emitter
        self.kept = {tile: register for register, tile in enumerate(kept)}
        self.factors: dict[Tile, int] = {}  # the one whose register is wanted next, first
        for tile, register in self.kept.items():
            if zero:
                _call(emitter, "tilezero", f"i8 {register}")
            else:
                self._move("tileloadd64", register, tile)

    def load_factors(self, block: ir.Block) -> None:
        """Load what a block of instructions multiplies before the first of them, where there are registers for all."""
        factors = {operand_of(s, name): None for s in block if isinstance(s, ir.Instruction) for name in "ab"}
        if len(factors) <= REGISTERS - len(self.kept):
            for tile in factors:
                self._register(tile)

    def multiply_add(self, statement: ir.Instruction) -> None:
        """One instruction."""
        operation = statement.row.operation_on("cpu")
        assert operation is not None
        result = result_of(statement)
        registers = {name: self._register(operand_of(statement, name)) for name, _ in operation.operands}
        text = ", ".join(f"i8 {registers[name]}" for name, _ in operation.operands)
        self._space()
        _call(self.emitter, operation.name.removeprefix("llvm.x86."), text)
        if result not in self.kept:
            self._move("tilestored64", registers["c"], result)

    def store(self) -> None:
        """Store the tiles that were kept."""
        for tile, register in self.kept.items():
            self._move("tilestored64", register, tile)

    def _register(self, tile: Tile) -> int:
        """The register that holds a tile; loaded if none does."""
        if tile in self.kept:
            return self.kept[tile]
        register = self.factors.pop(tile, None)
        if register is None:
            free = set(range(len(self.kept), REGISTERS)) - set(self.factors.values())
            register = min(free) if free else self.factors.pop(next(iter(self.factors)))
            self._space()
            self._move("tileloadd64", register, tile)
        self.factors[tile] = register
        return register

    def _space(self) -> None:
        """Print what stands before an instruction on tile registers."""
        nothing = "\\0A".join(("nop",) * policy.BETWEEN_TILES)
        self.emitter.line(f'call void asm sideeffect "{nothing}", ""()')

    def _move(self, operation: str, register: int, tile: Tile) -> None:
        emitter, place = self.emitter, tile.place
        access = emitter.access(place)
        address = emitter.address(access, access.index)
        pitch = emitter.index(tile.pitch * place.buffer.scalar.bytes)
        _call(emitter, operation, f"i8 {register}, {address.typed}, {pitch.typed}")


def _call(emitter: ValueEmitter, operation: str, arguments: str) -> None:
    types = ", ".join(argument.split()[0] for argument in arguments.split(", ") if argument)
    emitter.declare(f"declare void @llvm.x86.{operation}({types})")
    emitter.line(f"call void @llvm.x86.{operation}({arguments})")
