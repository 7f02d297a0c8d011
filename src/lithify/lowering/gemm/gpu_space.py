"""The parameters of matrix multiplication on GPUs: which there are, why a set is invalid, and which is the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from lithify.lang.scalars import SCALARS, Scalar
from lithify.lowering.gemm.problem import lies_across, part_length
from lithify.lowering.tuning import Parameters, Problem, Space, Value
from lithify.machine import DeviceModel

# What an item keeps in registers beside its tile, the operands of a step and what it has loaded for the next one.
_OTHER_REGISTERS = 24
_DEPTHS = (4, 8, 16, 32)  # of a step
_OF_THE_PEAK = 0.72  # of multiply-adds, that the best tile reaches
_MANY_ROUNDS = 6  # of groups on a core: then they end apart, and the last one, which is not full, takes half as long
_BUSY_EPILOGUE = 129  # registers that an item of the largest tile of f32 needs with one
_MOST_ITEMS = 256  # NVIDIA's OpenCL refuses larger groups
_LONGEST_STEP = 1_024  # multiply-adds of an item in a step, all written out


@dataclass(frozen=True)
class _Machine:
    """What a choice of parameters depends on."""

    model: DeviceModel
    sizes: Mapping[str, int]
    across: Mapping[str, bool]  # by operand: is it contiguous along k?
    scalars: Mapping[str, Scalar]
    held: Mapping[str, Scalar]  # by operand: the widest that local memory may have to hold of it
    epilogue: bool  # does work on the results read more than them?
    fills_up: bool  # can the sum be filled up and cut into sums?

    @staticmethod
    def of(problem: Problem, model: DeviceModel) -> _Machine:
        scalars = {name: SCALARS[problem.scalars[name]] for name in ("a", "b", "acc")}
        flags = set(problem.line.split())
        held = {}
        for name in "ab":
            computed = "-prologue" in flags or f"-work{name.upper()}" in flags
            held[name] = max(scalars[name], scalars["acc"], key=lambda s: s.bytes) if computed else scalars[name]
        across = lies_across(problem)
        return _Machine(
            model, problem.sizes, across, scalars, held, "-epilogue" in flags, fills_up="-whole" not in flags
        )

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


def fits(problem: Problem) -> bool:
    """Is the problem more than a matrix times a vector, and can its sums be computed in steps?"""
    m, n, k = (problem.sizes[d] for d in "mnk")
    return min(m, n) > 1 and ("-whole" not in problem.line or k % min(_DEPTHS) == 0)


def space(problem: Problem, model: DeviceModel) -> Space:
    """All parameters for a problem on a GPU."""
    machine = _Machine.of(problem, model)
    choices: dict[str, tuple[Value, ...]] = {
        "mPerBlock": (16, 32, 64, 96, 128, 192, 256),
        "nPerBlock": (16, 32, 64, 96, 128, 192, 256),
        "kPerBlock": _DEPTHS,
        "mPerThread": (2, 4, 8, 16),
        "nPerThread": (2, 4, 8, 16),
        "nPerWave": (2, 4, 8, 16),
        "vectorA": (1, 2, 4),
        "vectorB": (1, 2, 4),
        "paddingA": (0, 4),
        "paddingB": (0, 4),
        "stages": (1, 2, 3),
        "splitK": (1, 2, 3, 4, 6, 8),
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
    most = min(_MOST_ITEMS, machine.model.group_items)
    if items["m"] * items["n"] > most:
        return f"{items['m']} x {items['n']} items are more than a group has ({most})"
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
    k, split, local = p.number("kPerBlock"), p.number("splitK"), 0
    part = part_length(machine.sizes["k"], split, k)
    if part * (split - 1) >= machine.sizes["k"]:
        return f"splitK={split}: steps of {k} leave a part of the sums (k={machine.sizes['k']}) empty"
    if part * split != machine.sizes["k"] and machine.held != {side: machine.scalars[side] for side in "ab"}:
        return f"splitK={split} does not divide k={machine.sizes['k']}, and what is computed is not filled up"
    if not machine.fills_up and (machine.sizes["k"] % k or split > 1):
        return f"kPerBlock={k}, splitK={p['splitK']}: the sum cannot be filled up or cut into sums"
    if split > 1 and machine.sizes["g"] > 1:
        return "a batch of products is not split along k, too"
    for side, dim in (("A", "m"), ("B", "n")):
        block, vector = p.number(f"{dim}PerBlock"), p.number(f"vector{side}")
        row, pitch = (k if machine.across[side.lower()] else block), machine.contiguous(side.lower())
        if split > 1 and machine.across[side.lower()] and part % vector:
            return f"vector{side}={vector} does not divide a part of the sums (splitK={split})"
        if row % vector or pitch % vector:
            return f"vector{side}={vector} does not divide the rows of {side} ({pitch}) and of its tile ({row})"
        if block * k % (items * vector):
            return f"{items} items do not copy {block} x {k} elements in whole rounds of vector{side}={vector}"
        local += p.number("stages") * k * (block + p.number(f"padding{side}")) * machine.held[side.lower()].bytes
    available = machine.model.memory("local").bytes
    if available is not None and local > available:
        return f"the tiles take {local} bytes of local memory; there are {available}"
    return None


@dataclass(frozen=True)
class _Tile:
    """A block of a group, the tile of an item, items along a row of a wave, the depth of a step; and how fast.

    `rate` is the share of the best tile's speed on a busy H200 (f32), where copies are by vectors and where they are
    element by element, or ask whether there is an element; `wave` what 32 items reach alone on a multiprocessor.
    """

    block: tuple[int, int]
    thread: tuple[int, int]
    columns: int
    depth: int
    rate: tuple[float, float]
    wave: float


_TILES = (
    _Tile((128, 128), (8, 8), 16, 8, (1.0, 0.76), 0.25),
    _Tile((128, 128), (16, 8), 16, 8, (0.98, 0.99), 0.25),
    _Tile((64, 128), (8, 8), 8, 16, (0.985, 0.7), 0.25),
    _Tile((64, 128), (8, 8), 8, 8, (0.985, 0.79), 0.25),
    _Tile((64, 64), (8, 8), 8, 8, (0.955, 0.75), 0.25),
    _Tile((32, 64), (4, 8), 8, 16, (0.8, 0.65), 0.11),
    _Tile((64, 32), (4, 4), 8, 16, (0.78, 0.6), 0.1),
    _Tile((32, 32), (4, 4), 8, 32, (0.7, 0.55), 0.11),
    _Tile((16, 32), (2, 4), 8, 32, (0.42, 0.35), 0.07),
    _Tile((16, 16), (2, 2), 8, 16, (0.3, 0.25), 0.03),
)


def _default(machine: _Machine) -> Parameters:
    """The choice where nothing was measured: the tile that takes least time by what is known of an H200."""
    splits = (1, 2, 3, 4, 6, 8)
    found = [(t, p) for t in _TILES for split in splits if (p := _with_copies(machine, t, split)) is not None]
    assert found, "the smallest tile is always valid"
    return min(found, key=lambda choice: _time(machine, *choice))[1]


def _time(machine: _Machine, tile: _Tile, parameters: Parameters) -> float:
    """Seconds: those of the groups of a multiprocessor, one after another, and of adding up partial sums."""
    model, sizes, split = machine.model, machine.sizes, parameters.number("splitK")
    blocks = [-(-sizes[dim] // size) for dim, size in zip("mn", tile.block, strict=True)]
    rounds = sizes["g"] * split * prod(blocks) / model.cores
    rounds = (rounds + ceil(rounds)) / 2 if rounds > _MANY_ROUNDS else ceil(rounds)
    step = parameters.number("kPerBlock")
    part = part_length(sizes["k"], split, step)
    whole = part * split == sizes["k"] and part % step == 0
    by_vectors = min(parameters.number("vectorA"), parameters.number("vectorB")) > 1 and whole
    items = prod(tile.block) // prod(tile.thread)
    resident = min(rounds, model.registers.per_core // (_registers(parameters, machine, items) * items))
    rate = min(tile.rate[0 if by_vectors else 1], tile.wave * resident * items / model.warp_width)
    if machine.epilogue and items * _BUSY_EPILOGUE > model.registers.per_core // 2:
        rate *= 0.8  # what it reads takes registers, too, and half as many groups fit
    a_core = _OF_THE_PEAK * model.arithmetic_peak("f32").rate / 2 / model.cores
    seconds = rounds * prod(tile.block) * (-(-part // step) * step) / (rate * a_core)
    if split > 1:
        written = sizes["m"] * sizes["n"] * machine.scalars["acc"].bytes
        seconds += 2 * model.launch_seconds + (2 * split + 1) * written / model.bandwidth().rate
    return seconds


def _with_copies(machine: _Machine, tile: _Tile, split: int) -> Parameters | None:
    """The widest copies that are valid with a tile, in steps of its depth if possible; None where there are none."""
    widths = {side: [w for w in (4, 2, 1) if w <= machine.access(side.lower())] for side in "AB"}
    depths = sorted(_DEPTHS, key=lambda depth: abs(depth - tile.depth))
    for depth, a, b in product(depths, widths["A"], widths["B"]):
        parameters = Parameters(
            {
                "mPerBlock": tile.block[0],
                "nPerBlock": tile.block[1],
                "kPerBlock": depth,
                "mPerThread": tile.thread[0],
                "nPerThread": tile.thread[1],
                "nPerWave": min(tile.columns, tile.block[1] // tile.thread[1]),
                "vectorA": a,
                "vectorB": b,
                "paddingA": 4 if machine.across["a"] else 0,
                "paddingB": 4 if machine.across["b"] and not machine.across["a"] else 0,
                "stages": 2,
                "splitK": split,
            }
        )
        if _against(parameters, machine) is None:
            return parameters
    return None
