"""The parameters of matrix multiplication on GPUs: which there are, why a set is invalid, and which is the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from lithify.lang.scalars import SCALARS, Scalar
from lithify.lowering.tuning import Parameters, Problem, Space, Value
from lithify.machine import DeviceModel

# What an item keeps in registers beside its tile, the operands of a step and what it has loaded for the next one.
_OTHER_REGISTERS = 24
_MANY_ROUNDS = 4  # of groups on a core: then the last one, which is not full, does not matter
_LONGEST_STEP = 1_024  # multiply-adds of an item in a step, all written out


@dataclass(frozen=True)
class _Machine:
    """What a choice of parameters depends on."""

    model: DeviceModel
    sizes: Mapping[str, int]
    across: Mapping[str, bool]  # by operand: is it contiguous along k?
    scalars: Mapping[str, Scalar]

    @staticmethod
    def of(problem: Problem, model: DeviceModel) -> _Machine:
        scalars = {name: SCALARS[text] for name, text in problem.scalars.items()}
        return _Machine(model, problem.sizes, lies_across(problem), scalars)

    @property
    def words(self) -> int:
        """Registers of a sum."""
        return -(-self.scalars["acc"].bytes // self.model.registers.bytes)

    def access(self, operand: str) -> int:
        """Elements that an item reads at once."""
        return max(1, self.model.access_bytes // self.scalars[operand].bytes)

    def contiguous(self, operand: str) -> int:
        """The length of the rows of an operand in memory."""
        return self.sizes["k" if self.across[operand] else "m" if operand == "A" else "n"]


def lies_across(problem: Problem) -> dict[str, bool]:
    """By operand: is it contiguous along k?"""
    return {"a": "-transA false" in problem.line, "b": "-transB true" in problem.line}


def space(problem: Problem, model: DeviceModel) -> Space:
    """All parameters for a problem on a GPU."""
    machine = _Machine.of(problem, model)
    choices: dict[str, tuple[Value, ...]] = {
        "mPerBlock": (16, 32, 64, 96, 128, 192, 256),
        "nPerBlock": (16, 32, 64, 96, 128, 192, 256),
        "kPerBlock": (4, 8, 16, 32),
        "mPerThread": (2, 4, 8, 16),
        "nPerThread": (2, 4, 8, 16),
        "nPerWave": (2, 4, 8, 16),
        "vectorA": (1, 2, 4),
        "vectorB": (1, 2, 4),
        "paddingA": (0, 4),
        "paddingB": (0, 4),
        "stages": (1, 2, 3),
    }
    return Space(choices, _default(machine), lambda p: _against(p, machine))


def _against(p: Parameters, machine: _Machine) -> str | None:
    """Why a set of parameters is invalid."""
    block, thread = ({dim: p.number(f"{dim}{per}") for dim in "mn"} for per in ("PerBlock", "PerThread"))
    for dim in "mn":
        if block[dim] % thread[dim]:
            return f"{dim}PerThread={thread[dim]} does not divide {dim}PerBlock={block[dim]}"
    items = {dim: block[dim] // thread[dim] for dim in "mn"}
    if items["n"] % p.number("nPerWave"):
        return f"nPerWave={p['nPerWave']} does not divide the {items['n']} items along a row of the block"
    if items["m"] * items["n"] > machine.model.group_items:
        return f"{items['m']} x {items['n']} items are more than a group has ({machine.model.group_items})"
    return _against_registers(p, machine, items["m"] * items["n"]) or _against_copies(
        p, machine, items["m"] * items["n"]
    )


def _against_registers(p: Parameters, machine: _Machine, items: int) -> str | None:
    tile = {dim: p.number(f"{dim}PerThread") for dim in "mn"}
    if tile["m"] * tile["n"] * p.number("kPerBlock") > _LONGEST_STEP:
        return f"a step of {tile['m']} x {tile['n']} x {p['kPerBlock']} multiply-adds is too long to be written out"
    registers, needed = machine.model.registers, _registers(p, machine, items)
    if needed > registers.per_item:
        return f"about {needed} registers are needed; an item has {registers.per_item}"
    if needed * items > registers.per_core:
        return f"about {needed} registers for each of {items} items are more than a core has ({registers.per_core})"
    return None


def _registers(p: Parameters, machine: _Machine, items: int) -> int:
    """About how many registers an item needs."""
    m, n, k = (p.number(name) for name in ("mPerThread", "nPerThread", "kPerBlock"))
    loaded = (p.number("mPerBlock") + p.number("nPerBlock")) * k // items
    return machine.words * (m * n + m + n + loaded) + _OTHER_REGISTERS


def _against_copies(p: Parameters, machine: _Machine, items: int) -> str | None:
    k, local = p.number("kPerBlock"), 0
    for side, dim in (("A", "m"), ("B", "n")):
        block, vector = p.number(f"{dim}PerBlock"), p.number(f"vector{side}")
        row, pitch = (k if machine.across[side.lower()] else block), machine.contiguous(side.lower())
        if row % vector or pitch % vector:
            return f"vector{side}={vector} does not divide the rows of {side} ({pitch}) and of its tile ({row})"
        if block * k % (items * vector):
            return f"{items} items do not copy {block} x {k} elements in whole rounds of vector{side}={vector}"
        local += p.number("stages") * k * (block + p.number(f"padding{side}")) * machine.scalars[side.lower()].bytes
    available = machine.model.memory("local").bytes
    if available is not None and local > available:
        return f"the tiles take {local} bytes of local memory; there are {available}"
    return None


# Blocks, items' tiles, and how fast they were on an H200 (f32): copied by vectors, and element by element.
_TILES = (
    ((128, 128), (8, 8), 1.0, 0.76),
    ((128, 128), (8, 16), 0.89, 0.92),
    ((64, 128), (8, 8), 0.98, 0.75),
    ((128, 64), (8, 8), 0.95, 0.73),
    ((64, 64), (8, 8), 0.9, 0.7),
    ((32, 64), (4, 8), 0.75, 0.6),
    ((64, 32), (4, 4), 0.65, 0.5),
    ((32, 32), (4, 4), 0.6, 0.5),
    ((16, 32), (2, 4), 0.4, 0.35),
    ((16, 16), (2, 2), 0.25, 0.2),
)


def _default(machine: _Machine) -> Parameters:
    """The choice where nothing was measured: as large a tile as keeps all cores busy."""
    best: tuple[float, Parameters] | None = None
    for block, thread, by_vectors, by_elements in _TILES:
        tiles = machine.sizes["g"] * prod(-(-machine.sizes[dim] // size) for dim, size in zip("mn", block, strict=True))
        rounds = tiles / machine.model.cores
        rounds = max(1.0, rounds if rounds > _MANY_ROUNDS else ceil(rounds))
        parameters = _with_copies(machine, block, thread)
        if parameters is not None:
            wide = min(parameters.number("vectorA"), parameters.number("vectorB")) > 1
            time = rounds * prod(block) / (by_vectors if wide else by_elements)
            if best is None or time < best[0]:
                best = time, parameters
    assert best is not None, "the smallest tile is always valid"
    return best[1]


def _with_copies(machine: _Machine, block: tuple[int, int], thread: tuple[int, int]) -> Parameters | None:
    """The widest copies, and the shortest step, that are valid with a tile; None where there are none."""
    widths = {side: [w for w in (4, 2, 1) if w <= machine.access(side.lower())] for side in "AB"}
    for a, b, k in product(widths["A"], widths["B"], (8, 16, 4)):
        parameters = Parameters(
            {
                "mPerBlock": block[0],
                "nPerBlock": block[1],
                "kPerBlock": k,
                "mPerThread": thread[0],
                "nPerThread": thread[1],
                "nPerWave": min(8, block[1] // thread[1]),
                "vectorA": a,
                "vectorB": b,
                "paddingA": 4 if machine.across["a"] else 0,
                "paddingB": 4 if machine.across["b"] else 0,
                "stages": 2,
            }
        )
        if _against(parameters, machine) is None:
            return parameters
    return None
